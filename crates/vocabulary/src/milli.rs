//! Values in thousandths, and Kubernetes' grammar for writing them: `250m`, `1.5`, `128Mi`, `1e3`. No crate
//! reads exactly this.
//!
//! The Kubernetes autoscaler reckons in whole thousandths, so a quantity is read straight into them: exactly,
//! and what is finer is rounded away from zero (a request of 1 µ-core is 1 m-core, never nothing).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::findings::shown;

/// A metric's value or a resource's amount in thousandths, of any sign. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MilliValue(i64);

impl MilliValue {
    /// The quantity zero, which has no digits.
    pub const ZERO: Self = Self(0);
    /// The most that can be said.
    pub const MAX: Self = Self(i64::MAX);

    /// A quantity of this many thousandths.
    pub const fn new(thousandths: i64) -> Self {
        Self(thousandths)
    }

    /// A sum that was taken exactly, brought into range.
    pub fn saturated_from(thousandths: i128) -> Self {
        let least = i128::from(i64::MIN);
        Self(
            i64::try_from(thousandths.clamp(least, i128::from(i64::MAX)))
                .expect("it was clamped to this range"),
        )
    }

    /// The smallest value that is at least as many thousandths; NaN becomes zero, too much the nearest that
    /// can be said.
    #[expect(clippy::cast_possible_truncation, reason = "saturation is intended")]
    pub fn ceil_from(thousandths: f64) -> Self {
        Self(thousandths.ceil() as i64)
    }

    /// The quantity as a whole number of thousandths.
    pub const fn value(self) -> i64 {
        self.0
    }

    /// The thousandths for arithmetic with ratios; beyond 2⁵³ the nearest double, as in Kubernetes.
    #[expect(clippy::cast_precision_loss, reason = "the autoscaler that is followed here reckons in doubles")]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

/// As Kubernetes writes it: without a fraction, with the largest suffix that leaves a whole number (`1500m`,
/// `20`, `524288k`).
impl fmt::Display for MilliValue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 8] = ["m", "", "k", "M", "G", "T", "P", "E"];
        let mut number = self.0;
        let mut suffix = 0;
        while number != 0 && number % 1000 == 0 && suffix + 1 < SUFFIXES.len() {
            number /= 1000;
            suffix += 1;
        }
        write!(to, "{number}{}", if number == 0 { "" } else { SUFFIXES[suffix] })
    }
}

impl Serialize for MilliValue {
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for MilliValue {
    /// Reads the thousandths as an exact keyframe has them. Texts are read by [`parse_quantity`].
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        i64::deserialize(from).map(Self)
    }
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityTextError {
    /// The text is empty, so there is nothing to read.
    #[error("is empty; write a number with or without a suffix, such as \"250m\"")]
    Empty,
    /// No digits where there must be some.
    #[error(
        "is not a quantity; write a number with or without a suffix, such as \"250m\", \"1.5\" or \"128Mi\""
    )]
    Malformed,
    /// Digits, then something that is no suffix.
    #[error(
        "has the unknown suffix {}; use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3",
        shown(.0)
    )]
    UnknownSuffix(String),
}

/// Reads a quantity into thousandths.
pub fn parse_quantity(text: &str) -> Result<MilliValue, QuantityTextError> {
    WrittenQuantity::read(text).map(|written| MilliValue::saturated_from(written.rounded(3)))
}

/// Reads a quantity into a double, as Kubernetes does where it wants one: in billionths, as the API server
/// keeps it (whole thousandths, millionths or billionths), times the unit of these. Two doubles that are
/// multiplied are not always the nearest to what was written, and a ratio may lie just on it.
#[expect(clippy::cast_precision_loss, reason = "the autoscaler that is followed here reckons in doubles")]
pub fn parse_quantity_as_f64(text: &str) -> Result<f64, QuantityTextError> {
    const UNITS: [f64; 3] = [1e-9, 1e-6, 1e-3];
    let mut number = WrittenQuantity::read(text)?.rounded(9);
    for unit in UNITS {
        if number % 1000 != 0 {
            return Ok(number as f64 * unit);
        }
        number /= 1000;
    }
    Ok(number as f64)
}

/// A quantity as it is written.
struct WrittenQuantity {
    is_negative: bool,
    mantissa: Mantissa,
    scale: SuffixScale,
}

impl WrittenQuantity {
    /// With so many digits after the point; what is finer is rounded away from zero.
    fn rounded(&self, decimals: i64) -> i128 {
        let size = self.mantissa.rounded(self.scale, decimals);
        if self.is_negative { -size } else { size }
    }

    fn read(text: &str) -> Result<Self, QuantityTextError> {
        if text.is_empty() {
            return Err(QuantityTextError::Empty);
        }
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityTextError::Malformed);
        }
        let scale =
            SuffixScale::parse(suffix).ok_or_else(|| QuantityTextError::UnknownSuffix(suffix.to_owned()))?;
        Ok(Self { is_negative, mantissa: Mantissa::read(whole, fraction), scale })
    }
}

/// The digits at the start, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// What a suffix multiplies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SuffixScale {
    /// The exponent of ten; negative for suffixes such as `m`.
    ten: i64,
    /// The exponent of two; zero for decimal suffixes.
    two: u32,
}

impl SuffixScale {
    fn parse(suffix: &str) -> Option<Self> {
        let tens = |ten| Some(Self { ten, two: 0 });
        let twos = |two| Some(Self { ten: 0, two });
        match suffix {
            "n" => tens(-9),
            "u" => tens(-6),
            "m" => tens(-3),
            "" => tens(0),
            "k" => tens(3),
            "M" => tens(6),
            "G" => tens(9),
            "T" => tens(12),
            "P" => tens(15),
            "E" => tens(18),
            "Ki" => twos(10),
            "Mi" => twos(20),
            "Gi" => twos(30),
            "Ti" => twos(40),
            "Pi" => twos(50),
            "Ei" => twos(60),
            _ => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if unsigned.is_empty() || !unsigned.bytes().all(|letter| letter.is_ascii_digit()) {
                    return None;
                }
                // Beyond these bounds everything is nothing or too much anyway.
                let size = unsigned.parse::<i64>().unwrap_or(i64::MAX).min(10_000);
                tens(if exponent.starts_with('-') { -size } else { size })
            }
        }
    }
}

/// The significant digits, as many as matter.
struct Mantissa {
    digits: u128,
    /// The power of ten of the last of them.
    exponent: i64,
    /// Whether digits were left out that are not zero; they only decide the rounding.
    is_cut: bool,
}

/// More digits than a 64-bit number has, and few enough that they times 2⁶⁰ fit 128 bits.
const DIGITS_MAX: u32 = 20;

impl Mantissa {
    fn read(whole: &str, fraction: &str) -> Self {
        let mut read = Self { digits: 0, exponent: 0, is_cut: false };
        let mut count = 0;
        for (place, digit) in
            whole.bytes().map(|digit| (0, digit)).chain(fraction.bytes().map(|digit| (1, digit)))
        {
            if count == 0 && digit == b'0' {
                read.exponent -= place;
            } else if count < DIGITS_MAX {
                read.digits = read.digits * 10 + u128::from(digit - b'0');
                read.exponent -= place;
                count += 1;
            } else {
                read.exponent += 1 - place;
                read.is_cut |= digit != b'0';
            }
        }
        read
    }

    /// The number at this scale and with these decimals, rounded away from zero.
    fn rounded(&self, scale: SuffixScale, decimals: i64) -> i128 {
        const ENOUGH: u128 = 1 << 126;
        if self.digits == 0 {
            return 0;
        }
        let scaled = self.digits.saturating_mul(1_u128 << scale.two).min(ENOUGH);
        let exponent = self.exponent.saturating_add(scale.ten).saturating_add(decimals);
        let power = u32::try_from(exponent.unsigned_abs()).ok().and_then(|power| 10_u128.checked_pow(power));
        let rounded = match (exponent >= 0, power) {
            (true, Some(power)) => scaled.saturating_mul(power),
            (true, None) => ENOUGH,
            (false, Some(power)) => scaled / power + u128::from(!scaled.is_multiple_of(power) || self.is_cut),
            (false, None) => 1,
        };
        i128::try_from(rounded.min(ENOUGH)).expect("below 2^127")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&str, i64)]) {
        for &(text, thousandths) in rows {
            assert_eq!(parse_quantity(text), Ok(MilliValue::new(thousandths)), "{text}");
        }
    }

    /// Rows Q1, Q2, Q4 and the parts of Q3 of the reference.
    #[test]
    fn quantities_are_those_of_the_reference() {
        check(&[("12345678n", 13), ("1500u", 2), ("1001u", 2), ("0.0004", 1)]);
        check(&[
            ("2.5k", 2_500_000),
            ("1Ki", 1_024_000),
            ("128Mi", 134_217_728_000),
            ("1e3", 1_000_000),
            ("12e-1", 1200),
        ]);
        check(&[("151234567n", 152), ("20500001n", 21), ("-1500u", -2)]);
    }

    /// Products of doubles on purpose: this is how they come about in Kubernetes.
    #[test]
    fn a_double_is_what_kubernetes_makes_of_a_quantity() {
        for (text, expected) in [
            ("0", 0.0),
            ("10", 10.0),
            ("2k", 2000.0),
            ("1Ki", 1024.0),
            ("0.1", 100.0 * 1e-3),
            ("0.0125", 12_500.0 * 1e-6),
            ("12500u", 12_500.0 * 1e-6),
            ("0.0005", 500.0 * 1e-6),
            ("9m", 9.0 * 1e-3),
            ("-0.0001", -100.0 * 1e-6),
            ("0.0000000001", 1e-9),
        ] {
            let read = parse_quantity_as_f64(text).map(f64::to_bits);
            assert_eq!(read, Ok(f64::to_bits(expected)), "{text}");
        }
        assert_eq!(parse_quantity_as_f64("1K"), Err(QuantityTextError::UnknownSuffix("K".to_owned())));
    }

    #[test]
    fn the_grammar_is_kubernetes() {
        check(&[
            ("0", 0),
            ("-0", 0),
            ("+5", 5000),
            ("5.", 5000),
            (".5", 500),
            ("007", 7000),
            ("0.1", 100),
            ("100m", 100),
            ("0.5Gi", 536_870_912_000),
            ("1.5Ki", 1_536_000),
            ("0.0000001Ki", 1),
            ("1E", i64::MAX),
            ("1P", 1_000_000_000_000_000_000),
            ("1E3", 1_000_000),
            ("1E+3", 1_000_000),
            ("1e-9999999999999999999999", 1),
            ("1e9999999999999999999999", i64::MAX),
            ("-1e99", i64::MIN),
            ("0e99", 0),
            ("1Ei", i64::MAX),
            ("9223372036854775807m", i64::MAX),
            ("9223372036854775.8061", 9_223_372_036_854_775_807),
            ("0.00000000000000000000000000000001", 1),
            ("1.00000000000000000000000000000001", 1001),
            ("100000000000000000000000000000000", i64::MAX),
        ]);
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused_with_the_reason() {
        assert_eq!(parse_quantity(""), Err(QuantityTextError::Empty));
        for text in ["-", "+", ".", "m", "Ki", "-m", "e3", "--1", "٣"] {
            assert_eq!(parse_quantity(text), Err(QuantityTextError::Malformed), "{text}");
        }
        for (text, suffix) in [
            ("1K", "K"),
            ("1 Gi", " Gi"),
            ("5mi", "mi"),
            ("1e", "e"),
            ("1e+", "e+"),
            ("1.2.3", ".3"),
            ("1Mib", "Mib"),
        ] {
            assert_eq!(
                parse_quantity(text),
                Err(QuantityTextError::UnknownSuffix(suffix.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn values_are_written_as_kubernetes_writes_them() {
        for (thousandths, text) in [
            (1500, "1500m"),
            (20_000, "20"),
            (2_000_000, "2k"),
            (524_288_000_000, "524288k"),
            (0, "0"),
            (-2, "-2m"),
            (-3000, "-3"),
            (9_000_000_000_000_000_000, "9P"),
            (i64::MAX, "9223372036854775807m"),
        ] {
            assert_eq!(MilliValue::new(thousandths).to_string(), text);
            assert_eq!(parse_quantity(text), Ok(MilliValue::new(thousandths)), "{text}");
        }
    }

    #[test]
    fn sums_and_ceilings_saturate() {
        assert_eq!(MilliValue::saturated_from(i128::MAX), MilliValue::MAX);
        assert_eq!(MilliValue::ceil_from(1e300), MilliValue::MAX);
        assert_eq!(MilliValue::ceil_from(f64::NAN), MilliValue::ZERO);
        assert_eq!(MilliValue::ceil_from(6666.1), MilliValue::new(6667));
    }
}
