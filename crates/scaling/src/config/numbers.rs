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

/// Decimal or hexadecimal, with an exponent or without, and finite.
pub(super) fn float(text: &str) -> Result<f64, NumberError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let value = match unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)? * if text.starts_with('-') { -1.0 } else { 1.0 },
        None => text.parse::<f64>().map_err(|_| NumberError::NoFloat)?,
    };
    if value.is_finite() { Ok(value) } else { Err(NumberError::NotFinite) }
}

/// Reads `1.8p3` (that is 12), without sign and prefix. The exponent is mandatory, as in Go.
fn hexadecimal(text: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = text.split_once(['p', 'P']).ok_or(NumberError::NoFloat)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumberError::NoFloat);
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16).ok_or(NumberError::NoFloat)?);
    }
    let exponent = integer(exponent).map_err(|_| NumberError::NoFloat)?;
    let shift = i64::try_from(fraction.len()).unwrap_or(i64::MAX).saturating_mul(4);
    // Beyond these bounds every value is zero or infinite anyway.
    let exponent = exponent.saturating_sub(shift).clamp(-5000, 5000);
    Ok(value * 2.0_f64.powi(i32::try_from(exponent).expect("clamped to a small range")))
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
