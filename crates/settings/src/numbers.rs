//! Numbers as Go reads them, because manifests written for Knative must mean the same here.

use std::num::IntErrorKind;

use thiserror::Error;

/// Why a text is not the number asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NumberError {
    /// Not in the grammar of integers.
    #[error("is not a whole number")]
    NoInteger,
    /// Not in the grammar of floats.
    #[error("is not a number")]
    NoFloat,
    /// A number, but none that fits.
    #[error("is out of range")]
    TooLarge,
    /// NaN or an infinity, which Knative lets through.
    #[error("is not a finite number")]
    NotFinite,
}

/// An optional sign, then decimal digits.
pub(super) fn integer(text: &str) -> Result<i64, NumberError> {
    text.parse::<i64>().map_err(|error| {
        if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) {
            NumberError::TooLarge
        } else {
            NumberError::NoInteger
        }
    })
}

/// Whether a text is written as a hexadecimal float of Go: `0x1p4`, whose exponent is mandatory.
pub(super) fn is_hexadecimal_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    let parts = digits.and_then(|digits| digits.split_once(['p', 'P']));
    parts.is_some_and(|(mantissa, exponent)| {
        let is_part = |text: &str, radix: u32| {
            let mut digits = text.chars().filter(|letter| !matches!(letter, '_' | '.'));
            digits.clone().next().is_some() && digits.all(|letter| letter.is_digit(radix))
        };
        is_part(mantissa, 16) && is_part(exponent.strip_prefix(['+', '-']).unwrap_or(exponent), 10)
    })
}

/// A decimal number with an exponent or without, digits separated by underscores or not, and finite.
pub(super) fn float(text: &str) -> Result<f64, NumberError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_signed = unsigned.len() < text.len();
    // Go knows a sign before an infinity, but none before NaN, and no second sign.
    let is_odd = is_signed && unsigned.eq_ignore_ascii_case("nan") || unsigned.starts_with(['+', '-']);
    if is_odd || !are_underscores_between_digits(unsigned) {
        return Err(NumberError::NoFloat);
    }
    let value = text.replace('_', "").parse::<f64>().map_err(|_| NumberError::NoFloat)?;
    if value.is_finite() { Ok(value) } else { Err(NumberError::NotFinite) }
}

/// Go's rule for underscores: one at a time, between digits.
fn are_underscores_between_digits(unsigned: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mut before = None;
    let mut letters = unsigned.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_between = before.is_some_and(is_digit) && letters.peek().copied().is_some_and(is_digit);
        if letter == '_' && !is_between {
            return false;
        }
        before = Some(letter);
    }
    true
}

/// Go's spellings of true and false.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_follow_gos_grammar() {
        for (text, value) in [("5", 5), ("+5", 5), ("-0", 0), ("007", 7), ("-42", -42)] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        for text in ["", "+", "5.0", "0x10", " 5", "5 ", "1_000", "1e3", "٣"] {
            assert_eq!(integer(text), Err(NumberError::NoInteger), "{text}");
        }
        assert_eq!(integer("99999999999999999999"), Err(NumberError::TooLarge));
    }

    #[test]
    fn floats_follow_gos_grammar() {
        let table = [("5", 5.0), ("+.5", 0.5), ("5.", 5.0), ("-1e2", -100.0)];
        for (text, value) in table {
            assert_eq!(float(text), Ok(value), "{text}");
        }
        for (text, value) in
            [("1_000", 1000.0), ("1_000.5_0", 1000.5), ("1e1_0", 1e10), ("0_1", 1.0), ("-1_0", -10.0)]
        {
            assert_eq!(float(text), Ok(value), "{text}");
        }
        for text in [
            "_1", "1_", "1__0", "1_.5", "1._5", "1_e5", "1e_5", "0x__1p4", "0x_1_p4", "0x1p_4", "0x1p4_",
            "0x_.8p1", "0x1_.8p1", "0x1._8p1", "0_x1p4", "in_f", "+nan", "-NaN", "infi", "0b1", "0o7", "+-1",
            ".", "1e5.", "0x.p1", "٣", "1٣",
        ] {
            assert_eq!(float(text), Err(NumberError::NoFloat), "{text}");
        }
        for text in ["", "x", "100}", "0x10", "0xp1", "0x1pz", "1 ", "0x1p+", "--1", "0x-1p1"] {
            assert_eq!(float(text), Err(NumberError::NoFloat), "{text}");
        }
    }

    #[test]
    fn hexadecimal_floats_are_told_from_other_texts() {
        for text in ["0x1p-2", "0X1.8P3", "-0x.8p1", "+0x_1p4", "0x1p+1_0"] {
            assert!(is_hexadecimal_float(text), "{text}");
            assert_eq!(float(text), Err(NumberError::NoFloat), "{text}");
        }
        for text in ["", "0x", "0x10", "0xp1", "0x1p", "0x1p+", "0x1pz", "0xgp1", "1p1", "5"] {
            assert!(!is_hexadecimal_float(text), "{text}");
        }
    }

    #[test]
    fn infinities_and_nan_are_refused_as_not_finite() {
        for text in ["NaN", "nan", "Inf", "-inf", "+Infinity", "1e999"] {
            assert_eq!(float(text), Err(NumberError::NotFinite), "{text}");
        }
    }
}
