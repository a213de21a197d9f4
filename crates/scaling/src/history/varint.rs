//! Whole numbers in as few bytes as they need: seven bits to a byte, the lowest first; a set eighth bit says
//! that another byte follows.

/// The bytes of the greatest number of 32 bits.
const BYTES_MAX: usize = 5;

pub(super) fn put(bytes: &mut Vec<u8>, mut number: u32) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(low & 0x7f);
        }
        bytes.push(low | 0x80);
    }
}

/// The number at the beginning of the bytes, which are moved behind it; `None` if there is no whole one.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for place in 0..BYTES_MAX {
        let byte = *bytes.get(place)?;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            *bytes = bytes.get(place + 1..)?;
            return u32::try_from(number).ok();
        }
    }
    None
}

/// The difference between two numbers, where small ones of either sign are small numbers.
pub(super) fn difference(from: u32, to: u32) -> u32 {
    let signed = to.wrapping_sub(from).cast_signed();
    ((signed << 1) ^ (signed >> 31)).cast_unsigned()
}

/// The number that lies by such a difference from another.
pub(super) fn moved(from: u32, difference: u32) -> u32 {
    let sign = (difference & 1).wrapping_neg();
    from.wrapping_add((difference >> 1) ^ sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_differences_return(from in any::<u32>(), to in any::<u32>()) {
            prop_assert_eq!(moved(from, difference(from, to)), to);
            let mut bytes = Vec::new();
            put(&mut bytes, from);
            put(&mut bytes, to >> 20);
            let mut rest = &bytes[..];
            prop_assert_eq!((take(&mut rest), take(&mut rest), take(&mut rest)), (Some(from), Some(to >> 20), None));
        }
    }

    #[test]
    fn a_number_that_is_cut_off_or_too_long_is_none() {
        assert_eq!(take(&mut &[0x80][..]), None);
        assert_eq!(take(&mut &[0xff; 6][..]), None);
        assert_eq!([difference(5, 5), difference(5, 4), difference(5, 6)], [0, 1, 2]);
    }
}
