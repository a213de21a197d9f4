//! Numbers as Go reads them, because manifests written for Knative must mean the same here.

mod hexadecimal;

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

/// Decimal or hexadecimal, with an exponent or without, digits separated by underscores or not, and finite.
pub(super) fn float(text: &str) -> Result<f64, NumberError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_signed = unsigned.len() < text.len();
    // Go knows a sign before an infinity, but none before NaN.
    if is_signed && unsigned.eq_ignore_ascii_case("nan") || !are_underscores_between_digits(unsigned) {
        return Err(NumberError::NoFloat);
    }
    let digits = unsigned.replace('_', "");
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => hexadecimal::float(digits).ok_or(NumberError::NoFloat)?,
        // What follows the sign has none of its own.
        None if digits.starts_with(['+', '-']) => return Err(NumberError::NoFloat),
        None => digits.parse::<f64>().map_err(|_| NumberError::NoFloat)?,
    };
    let value = if text.starts_with('-') { -value } else { value };
    if value.is_finite() { Ok(value) } else { Err(NumberError::NotFinite) }
}

/// Go's rule for underscores: one at a time, between digits or between the prefix and a digit.
fn are_underscores_between_digits(unsigned: &str) -> bool {
    let is_hexadecimal = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    // The prefix counts as a digit here.
    let digits = if is_hexadecimal { &unsigned[2..] } else { unsigned };
    let is_digit = |letter: char| letter.is_digit(if is_hexadecimal { 16 } else { 10 });
    let mut before = is_hexadecimal.then_some('0');
    let mut letters = digits.chars().peekable();
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
        let table = [
            ("5", 5.0),
            ("+.5", 0.5),
            ("5.", 5.0),
            ("-1e2", -100.0),
            ("0x1p-2", 0.25),
            ("0X1.8P3", 12.0),
            ("-0x.8p1", -1.0),
            ("0x1p-9999", 0.0),
        ];
        for (text, value) in table {
            assert_eq!(float(text), Ok(value), "{text}");
        }
        for (text, value) in [
            ("1_000", 1000.0),
            ("1_000.5_0", 1000.5),
            ("1e1_0", 1e10),
            ("0_1", 1.0),
            ("-1_0", -10.0),
            ("0x_1p4", 16.0),
            ("0x1_0p4", 256.0),
            ("0X_fP-2", 3.75),
            ("0x1p-1_0", 0.000_976_562_5),
        ] {
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
    fn what_is_not_finite_is_no_number_here() {
        for text in ["NaN", "nan", "Inf", "-inf", "+Infinity", "1e999", "0x1p9999"] {
            assert_eq!(float(text), Err(NumberError::NotFinite), "{text}");
        }
    }
}
