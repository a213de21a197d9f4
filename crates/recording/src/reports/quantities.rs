//! One quantity of a load: a code of three bits, and as many bytes as it needs.
//!
//! A concurrency is a sum of times, taken in seconds: most often a whole number of nanoseconds, but for the
//! last bits of its mantissa, where each addition rounds. So it is written as that number and the distance in
//! representable numbers. A rate is a number of requests.

use super::columns::{ReadColumn, WrittenColumn, unzigzag, zigzag};
use crate::frame_fault::FrameFault;

/// The code of a quantity that is written as its 64 bits.
const RAW: u8 = 7;
/// The code of a rate that is a whole number and follows.
const WHOLE_RATE: u8 = 6;
/// Rates up to this one are their own code.
const SMALL_RATE_MAX: u64 = 5;
/// The distance of a concurrency from its nanoseconds has so many bits.
const DISTANCE_BITS: u32 = 3;
const DISTANCE_MASK: u64 = (1 << DISTANCE_BITS) - 1;
/// With their distance they have six bytes; as a concurrency they are 35,184.
const NANOSECONDS_MAX: u64 = 1 << 45;
/// From here on not each whole number is a double.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes a concurrency; returns its code: how many bytes it has, or that it is raw.
pub(super) fn concurrency_out(value: f64, values: &mut WrittenColumn) -> u8 {
    if value == 0.0 {
        return 0;
    }
    let Some(scaled) = scaled(value) else { return raw_out(value, values) };
    let bytes = (u64::BITS - scaled.leading_zeros()).div_ceil(8).to_le_bytes()[0];
    values.low_bytes(scaled, usize::from(bytes));
    bytes
}

/// The concurrency with this code, of three bits.
pub(super) fn concurrency_in(code: u8, values: &mut ReadColumn<'_>) -> Result<f64, FrameFault> {
    if code == RAW {
        return raw_in(values);
    }
    let scaled = values.low_bytes(usize::from(code))?;
    let distance = unzigzag(scaled & DISTANCE_MASK);
    Ok(f64::from_bits(of_nanoseconds(scaled >> DISTANCE_BITS).to_bits().wrapping_add(distance)))
}

/// Writes a rate; returns its code.
pub(super) fn rate_out(value: f64, values: &mut WrittenColumn) -> u8 {
    match whole(value) {
        Some(small @ 0..=SMALL_RATE_MAX) => small.to_le_bytes()[0],
        Some(number) => {
            values.number(number);
            WHOLE_RATE
        }
        None => raw_out(value, values),
    }
}

/// The rate with this code, of three bits.
pub(super) fn rate_in(code: u8, values: &mut ReadColumn<'_>) -> Result<f64, FrameFault> {
    match code {
        RAW => raw_in(values),
        WHOLE_RATE => Ok(as_double(values.number()?)),
        small => Ok(f64::from(small)),
    }
}

fn raw_out(value: f64, values: &mut WrittenColumn) -> u8 {
    values.low_bytes(value.to_bits(), 8);
    RAW
}

fn raw_in(values: &mut ReadColumn<'_>) -> Result<f64, FrameFault> {
    Ok(f64::from_bits(values.low_bytes(8)?))
}

/// The nanoseconds of a concurrency and its distance from them; `None` where it is too far from a whole
/// number of them.
fn scaled(value: f64) -> Option<u64> {
    let nanoseconds = whole((value * 1e9).round()).filter(|&nanoseconds| nanoseconds < NANOSECONDS_MAX)?;
    let distance = zigzag(value.to_bits().wrapping_sub(of_nanoseconds(nanoseconds).to_bits()));
    (distance <= DISTANCE_MASK).then_some((nanoseconds << DISTANCE_BITS) | distance)
}

fn of_nanoseconds(nanoseconds: u64) -> f64 {
    as_double(nanoseconds) / 1e9
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what is written is below 2⁵³, and what is read is any number"
)]
fn as_double(number: u64) -> f64 {
    number as f64
}

/// The integer that a whole number below 2⁵³ is; `None` for any other number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in the range")]
fn whole(number: f64) -> Option<u64> {
    let is_whole = number.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many bytes a quantity takes, which is read as it was written.
    #[track_caller]
    fn check(
        value: f64,
        write: fn(f64, &mut WrittenColumn) -> u8,
        read: fn(u8, &mut ReadColumn<'_>) -> Result<f64, FrameFault>,
    ) -> usize {
        let mut column = WrittenColumn::default();
        let code = write(value, &mut column);
        assert!(code <= RAW, "{value} has the code {code}");
        let bytes = column.take();
        let mut values = ReadColumn::new("values", &bytes);
        let again = read(code, &mut values).expect("it was just written");
        assert_eq!(again.to_bits(), value.to_bits(), "{value} was read as {again}");
        assert!(values.is_at_end());
        bytes.len()
    }

    #[test]
    fn usual_concurrencies_take_few_bytes() {
        // The last ones are sums of times: a bit beside a whole number of nanoseconds, and far from one.
        let sum = 0.1 + 0.2;
        let rows =
            [(0.0, 0), (0.000_000_031, 1), (0.25, 4), (0.312_345_678, 4), (6.3, 5), (sum, 4), (1.0 / 3.0, 8)];
        for (value, bytes) in rows {
            assert_eq!(check(value, concurrency_out, concurrency_in), bytes, "{value}");
        }
    }

    #[test]
    fn usual_rates_take_few_bytes() {
        for (value, bytes) in [(0.0, 0), (5.0, 0), (6.0, 1), (130.0, 2), (0.5, 8), (1.0 / 8192.0, 8)] {
            assert_eq!(check(value, rate_out, rate_in), bytes, "{value}");
        }
    }

    proptest! {
        #[test]
        fn quantities_are_read_bit_for_bit(bits in 0..f64::INFINITY.to_bits(), held in 0..1_u64 << 40) {
            for value in [f64::from_bits(bits), of_nanoseconds(held), as_double(held)] {
                check(value, concurrency_out, concurrency_in);
                check(value, rate_out, rate_in);
            }
        }
    }
}
