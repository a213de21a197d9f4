//! An amount of demand as a small whole number, so that a change of it fits into one byte.
//!
//! The number is the leading part of the double: its exponent and six bits behind the leading one. So there
//! are 64 steps to each doubling, and the nearest of them is at most 1/128 (0.78 %) away. Whole numbers up to
//! 128 are exact. No logarithm is taken, so every platform finds the same.

/// The bits of a double's fraction that are rounded away.
const ROUNDED_BITS: u32 = 52 - 6;
/// The least amount that is told from zero, 2⁻¹⁴: half of what requests that are refused under a hold count
/// as. Lesser ones count as this.
const LEAST: u64 = (1023 - 14) << 6;
/// The number of 2⁴⁰, far above what all reporters together can hold; more counts as this.
const CODE_MAX: u64 = (40 + 14) * 64 + 1;

/// The number that stands for an amount; 0 for zero, negatives and NaN.
pub(super) fn code_of(amount: f64) -> u32 {
    if amount.is_nan() || amount <= 0.0 {
        return 0;
    }
    // A carry out of the fraction goes into the exponent: the next doubling begins there.
    let rounded = (amount.to_bits() + (1 << (ROUNDED_BITS - 1))) >> ROUNDED_BITS;
    let code = (rounded.saturating_sub(LEAST) + 1).min(CODE_MAX);
    u32::try_from(code).expect("the greatest number is below five thousand")
}

/// The amount that a number stands for.
pub(super) fn amount_of(code: u32) -> f64 {
    match u64::from(code).min(CODE_MAX).checked_sub(1) {
        None => 0.0,
        Some(steps) => f64::from_bits((steps + LEAST) << ROUNDED_BITS),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zero_and_whole_numbers_up_to_128_are_exact() {
        for whole in 0..=128_u32 {
            let amount = f64::from(whole);
            assert_eq!(amount_of(code_of(amount)), amount);
        }
        let least = 1.0 / 16_384.0;
        assert_eq!(amount_of(code_of(1e-12)), least);
        assert_eq!(amount_of(code_of(least)), least);
        assert_eq!([code_of(-1.0), code_of(f64::NAN), code_of(0.0)], [0, 0, 0]);
        assert_eq!(amount_of(code_of(f64::INFINITY)), 1_099_511_627_776.0);
    }

    proptest! {
        #[test]
        fn an_amount_returns_within_the_bound(amount in 1e-4..1e9_f64) {
            let returned = amount_of(code_of(amount));
            prop_assert!((returned - amount).abs() <= amount / 128.0, "{amount} became {returned}");
        }

        #[test]
        fn a_greater_amount_has_no_lesser_number(one in 0.0..1e9_f64, more in 0.0..1e9_f64) {
            prop_assert!(code_of(one) <= code_of(one + more));
        }
    }
}
