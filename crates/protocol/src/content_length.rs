//! How many bytes does a `Content-Length` announce, in either protocol?

/// A length is digits and nothing else; `+5` and ` 5,5` are numbers to some and not to others.
pub(crate) fn parse_length(text: &[u8]) -> Option<u64> {
    let mut number: Option<u64> = None;
    for digit in text {
        let digit = char::from(*digit).to_digit(10)?;
        number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit))?);
    }
    number
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
