//! Go's duration grammar, which Knative's configuration uses: `1h2m3.5s`, `.5m`, `-4m11s`, a bare `0`. No
//! crate reads exactly this.

use std::time::Duration;

use thiserror::Error;

use crate::findings::{printable, shown};

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// The text is empty, so there is nothing to read.
    #[error("is empty; write a number with a unit, such as \"60s\"")]
    Empty,
    /// A number without `ns`, `us`, `ms`, `s`, `m` or `h`.
    #[error("has no unit; write \"{}s\"", printable(.0))]
    NoUnit(String),
    /// A unit that is not one of Go's.
    #[error("has the unknown unit {}; use h, m, s, ms, us or ns", shown(.0))]
    UnknownUnit(String),
    /// The duration is below zero.
    #[error("is negative")]
    Negative,
    /// Not a number, or more than about 292 years.
    #[error("is not a duration; write something like \"1h2m3.5s\"")]
    Malformed,
}

/// The largest number with a sign, up to which Go takes the digits of a fraction.
const FRACTION_MAX: u64 = i64::MAX.unsigned_abs();

/// Reads a non-negative duration in Go's grammar. A leading `+` is allowed, a `-` only before zero.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(if text.is_empty() { DurationError::Empty } else { DurationError::Malformed });
    }
    let mut nanoseconds: u128 = 0;
    while !rest.is_empty() {
        let (part, after) = one_part(rest, text)?;
        nanoseconds = nanoseconds.saturating_add(part);
        rest = after;
    }
    if i64::try_from(nanoseconds).is_err() {
        return Err(DurationError::Malformed);
    }
    if negative && nanoseconds > 0 {
        return Err(DurationError::Negative);
    }
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).expect("checked to fit 63 bits")))
}

/// Reads one number with its unit from the start of `rest`, as nanoseconds.
fn one_part<'a>(rest: &'a str, whole: &str) -> Result<(u128, &'a str), DurationError> {
    let digits_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (integer, after) = rest.split_at(digits_end);
    let (fraction, after) = match after.strip_prefix('.') {
        Some(after) => after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())),
        None => ("", after),
    };
    if integer.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
    let (unit, after) = after.split_at(unit_end);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationError::NoUnit(whole.to_owned())),
        unknown => return Err(DurationError::UnknownUnit(unknown.to_owned())),
    };
    let integer: u128 =
        if integer.is_empty() { 0 } else { integer.parse().map_err(|_| DurationError::Malformed)? };
    let value = integer.saturating_mul(u128::from(scale)).saturating_add(fraction_of(scale, fraction).into());
    Ok((value, after))
}

/// The part of `scale` that the digits after a point say, in whole nanoseconds. Go takes as many digits as 63
/// bits hold and multiplies floats, so `0.3333333333333333333h` are twenty minutes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the product is cut to whole nanoseconds, of which an hour has fewer than 2^53, and none is negative"
)]
fn fraction_of(scale: u64, digits: &str) -> u64 {
    let (mut number, mut divisor) = (0_u64, 1.0);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let next = (number <= FRACTION_MAX / 10).then(|| number * 10 + digit);
        let Some(next) = next.filter(|&next| next <= FRACTION_MAX + 1) else { break };
        number = next;
        divisor *= 10.0;
    }
    (number as f64 * (scale as f64 / divisor)) as u64
}

/// Writes a duration as Go does for whole parts: `1h0m0s` as `1h`, `90s` as `1m30s`, `0` as `0s`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fraction = duration.subsec_nanos();
    if seconds == 0 && fraction > 0 {
        return if fraction.is_multiple_of(1_000_000) {
            format!("{}ms", fraction / 1_000_000)
        } else if fraction.is_multiple_of(1_000) {
            format!("{}us", fraction / 1_000)
        } else {
            format!("{fraction}ns")
        };
    }
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let part = |count: u64, unit: &str| if count > 0 { format!("{count}{unit}") } else { String::new() };
    let longer = part(hours, "h") + &part(minutes, "m");
    let shorter = if fraction > 0 {
        let decimals = format!("{fraction:09}");
        format!("{rest}.{}s", decimals.trim_end_matches('0'))
    } else if longer.is_empty() {
        format!("{rest}s")
    } else {
        part(rest, "s")
    };
    longer + &shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gos_grammar() {
        for (text, milliseconds) in [
            ("0", 0),
            ("-0", 0),
            ("60s", 60_000),
            ("1h2m3.5s", 3_723_500),
            (".5m", 30_000),
            ("5.s", 5_000),
            ("+1m", 60_000),
            ("1m9s82ms", 69_082),
            ("365h", 1_314_000_000),
            ("1500us", 1),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_millis()), Ok(milliseconds), "{text}");
        }
        assert_eq!(parse_duration("0.1s"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_duration("1.000000001s"), Ok(Duration::from_nanos(1_000_000_001)));
    }

    #[test]
    fn fractions_of_many_digits_are_those_of_go() {
        for (text, nanoseconds) in [
            ("1.9999999999s", 1_999_999_999),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("0.333333333333333333333333333h", 1_200_000_000_000),
            ("0.7777777777777777h", 2_800_000_000_000),
            ("1.5555555555h", 5_599_999_999_800),
            ("0.9999999999999999999m", 59_999_999_999),
            ("0.1234567890123456789s", 123_456_789),
            ("1.00000000000000000000001s", 1_000_000_000),
            ("0.00000000000000000000000001h", 0),
            ("0.3us", 300),
            ("1.1ns", 1),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
            ("2562047h47m16.854775807s", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for text in ["9223372036854775808ns", "2562047h47m16.854775808s", "100000000000000000000000s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else_and_says_why() {
        assert_eq!(parse_duration(""), Err(DurationError::Empty));
        assert_eq!(parse_duration("5"), Err(DurationError::NoUnit("5".to_owned())));
        assert_eq!(parse_duration("1d"), Err(DurationError::UnknownUnit("d".to_owned())));
        assert_eq!(parse_duration("-42s"), Err(DurationError::Negative));
        for text in ["s", ".s", "-", "+", "1s 2s", "99999999999999999999h", "x"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["0s", "1h", "1m30s", "1h0.5s", "250ms", "3us", "7ns", "2h3m4s"] {
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), Ok(text), "{text}");
        }
    }
}
