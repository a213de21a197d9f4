//! Whole numbers of requests, and numbers with fractions.

/// The whole part of a number: zero for what is negative or no number, the greatest count for what is
/// greater.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is intended")]
pub(crate) fn whole_part(number: f64) -> u32 {
    number as u32
}

/// A count as a number with fractions; beyond 2^53 the nearest one.
#[expect(clippy::cast_precision_loss, reason = "counts are compared to a few digits")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_saturate() {
        for (number, expected) in
            [(0.0, 0), (2.9, 2), (-3.0, 0), (f64::NAN, 0), (1e20, u32::MAX), (f64::INFINITY, u32::MAX)]
        {
            assert_eq!(whole_part(number), expected, "{number}");
        }
        assert_eq!(real(7), 7.0);
    }
}
