//! Hexadecimal floats, `1.8p3`, rounded once and to even however many digits are written.

/// Bits that are collected of a mantissa. What follows matters only by not being zero, as long as there are
/// two bits more than a float has.
const MANTISSA_BITS_MAX: u32 = 60;
/// Of a float.
const PRECISION: i64 = 53;
/// Of the smallest float with all its bits.
const EXPONENT_MIN: i64 = -1022;
/// Beyond it every value is zero or infinite.
const EXPONENT_BOUND: i64 = 1 << 40;

/// Reads what follows sign and prefix. The exponent is mandatory, as in Go.
pub(super) fn float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = binary_exponent(exponent)? - 4 * i64::try_from(fraction.len()).ok()?;
    let (mut bits, mut is_more): (u64, bool) = (0, false);
    for letter in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(letter.to_digit(16)?);
        if bits >> (MANTISSA_BITS_MAX - 4) == 0 {
            bits = bits << 4 | digit;
        } else {
            exponent += 4;
            is_more |= digit > 0;
        }
    }
    Some(rounded(bits << 1 | u64::from(is_more), exponent - 1))
}

/// An optional sign, then decimal digits, cut to what makes a difference.
fn binary_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(EXPONENT_BOUND).min(EXPONENT_BOUND);
    Some(if text.starts_with('-') { -size } else { size })
}

/// `bits · 2^exponent` as the nearest float; of two, the even one.
fn rounded(bits: u64, exponent: i64) -> f64 {
    let length = i64::from(u64::BITS - bits.leading_zeros());
    let top = length - 1 + exponent;
    if bits == 0 || top < EXPONENT_MIN - PRECISION {
        return 0.0;
    }
    if top > 1023 {
        return f64::INFINITY;
    }
    let kept = PRECISION - (EXPONENT_MIN - top).max(0);
    let dropped = u32::try_from(length - kept).unwrap_or(0);
    let (short, rest) = (bits.checked_shr(dropped).unwrap_or(0), bits & ((1_u64 << dropped) - 1));
    let half = (1_u64 << dropped) >> 1;
    let is_up = dropped > 0 && (rest > half || rest == half && short % 2 == 1);
    let short = short + u64::from(is_up);
    let [high, low] = [short >> 32, short & 0xffff_ffff].map(|part| u32::try_from(part).unwrap_or(0));
    let value = f64::from(high) * 4_294_967_296.0 + f64::from(low);
    // In two steps, since the whole power may be no float of its own; the result is one, so both are exact.
    let power = i32::try_from(exponent + i64::from(dropped)).unwrap_or(0);
    value * 2.0_f64.powi(power / 2) * 2.0_f64.powi(power - power / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_counts_and_is_rounded_once() {
        for (text, bits) in [
            ("1p-2", 0x3fd0_0000_0000_0000_u64),
            ("1.00000000000001p0", 0x3ff0_0000_0000_0000),
            ("1.00000000000008p0", 0x3ff0_0000_0000_0000),
            ("1.000000000000080000000000000000000000001p0", 0x3ff0_0000_0000_0001),
            ("0.0000000000000000000000000000000000000001p160", 0x3ff0_0000_0000_0000),
            ("100000000000000000000000000000000p-128", 0x3ff0_0000_0000_0000),
            ("1.fffffffffffffp1023", 0x7fef_ffff_ffff_ffff),
            ("1p-1074", 1),
            ("1.8p-1075", 1),
            ("1p-1075", 0),
            ("1p-1022", 0x0010_0000_0000_0000),
            ("0.fffffffffffffp-1022", 0x000f_ffff_ffff_ffff),
            ("0p999999999999999999", 0),
            ("1p-99999999999999999999", 0),
            ("1p1024", f64::INFINITY.to_bits()),
            ("1.fffffffffffff8p1023", f64::INFINITY.to_bits()),
            ("1p999999999999999999999", f64::INFINITY.to_bits()),
        ] {
            assert_eq!(float(text).map(f64::to_bits), Some(bits), "{text}");
        }
        for text in ["", "p1", ".p1", "1", "1p", "1p+", "1pz", "gp1", "-1p1", "1.1.1p1", "1p1p1"] {
            assert_eq!(float(text), None, "{text}");
        }
    }
}
