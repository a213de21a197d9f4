//! How many bytes does a `Content-Length` announce, in either protocol?

/// So many digits are a number that 64 bits hold, whatever they are.
const SAFE_DIGITS: usize = 19;

/// A length is digits and nothing else; `+5` and ` 5,5` are numbers to some and not to others.
pub(crate) fn parse_length(text: &[u8]) -> Option<u64> {
    let (safe, others) = text.split_at(text.len().min(SAFE_DIGITS));
    let mut number: u64 = 0;
    for byte in safe {
        number = 10 * number + digit(*byte)?;
    }
    for byte in others {
        number = number.checked_mul(10)?.checked_add(digit(*byte)?)?;
    }
    (!text.is_empty()).then_some(number)
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_digits_and_nothing_else() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("00000000000000000000012", Some(12)),
            ("99999999999999999999", None),
            ("1844674407370955161x", None),
            ("", None),
            ("+5", None),
            ("-0", None),
            ("5 ", None),
            ("5,5", None),
            ("0x5", None),
        ] {
            assert_eq!(parse_length(text.as_bytes()), expected, "{text:?}");
        }
    }
}
