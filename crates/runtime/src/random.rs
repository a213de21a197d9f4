//! Random numbers of the operating system, which cannot be guessed. No other file of this crate asks for
//! them.

use rand::TryRng;
use rand::rngs::SysRng;
use vocabulary::LinkToken;

/// A token for the links of one process. Panics without a source of random bytes: a program without a token
/// could not keep strangers out.
pub fn new_link_token() -> LinkToken {
    let mut bytes = [0; LinkToken::BYTES];
    SysRng.try_fill_bytes(&mut bytes).expect("the kernel gives random bytes");
    LinkToken::new(bytes)
}

/// A seed for a generator of pseudo-random numbers.
pub fn new_seed() -> [u8; 32] {
    let mut bytes = [0; 32];
    SysRng.try_fill_bytes(&mut bytes).expect("the kernel gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike() {
        assert_ne!(new_link_token(), new_link_token());
    }
}
