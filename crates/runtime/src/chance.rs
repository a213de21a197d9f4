//! The only place that asks the operating system for chance that nobody can guess.

use rand::TryRng;
use rand::rngs::SysRng;
use vocabulary::LinkToken;

/// A token for the links of one process. Without a source of chance a program cannot keep strangers out, and
/// does not start.
pub fn new_link_token() -> LinkToken {
    let mut bytes = [0; LinkToken::BYTES];
    SysRng.try_fill_bytes(&mut bytes).expect("the kernel gives random bytes");
    LinkToken::new(bytes)
}

/// What a generator of random numbers begins with.
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
