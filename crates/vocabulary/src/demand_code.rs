//! The demand of a minute as a byte, so that fifteen days of minutes are small.
//!
//! A byte is a place in a table of values, each 1.0553 times the one before: the nearest value is within
//! 2.8 % of every demand from 1/64 to 12,000. Rules read the values of the bytes and never the demand itself,
//! so a series that was stored, sent to the next owner or read from a file gives the same floors.

/// The values of the bytes from 1 to 254.
const VALUES: [f64; 254] = values();
/// The squares of the bounds between two values. A bound is the geometric mean: both values are as near.
const SQUARED_BOUNDS: [f64; 253] = squared_bounds();
const MISSING_BYTE: u8 = 255;

/// The demand of one minute as a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandCode(u8);

impl DemandCode {
    /// The code of a minute that was not observed.
    pub const MISSING: Self = Self(MISSING_BYTE);
    /// The code of a minute in which nothing was asked for.
    pub const NONE: Self = Self(0);

    /// The code whose value is nearest in ratio; of two that are as near the greater. Whatever is more than
    /// none has at least the least value, and no more than the greatest.
    pub fn of(demand: f64) -> Self {
        if demand.is_nan() || demand <= 0.0 {
            return Self::NONE;
        }
        let passed = SQUARED_BOUNDS.partition_point(|bound| demand * demand >= *bound);
        Self(u8::try_from(passed + 1).expect("the table has 254 values"))
    }

    /// The code that a byte is; each byte is one.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// The code as a byte, for a store.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The demand that the code stands for; `None` for a minute that was not observed.
    pub fn demand(self) -> Option<f64> {
        match self.0.checked_sub(1) {
            None => Some(0.0),
            Some(place) => VALUES.get(usize::from(place)).copied(),
        }
    }
}

const fn values() -> [f64; 254] {
    let mut values = [1.0 / 64.0; 254];
    let mut place = 1;
    while place < values.len() {
        values[place] = values[place - 1] * 1.0553;
        place += 1;
    }
    values
}

const fn squared_bounds() -> [f64; 253] {
    let mut bounds = [0.0; 253];
    let mut place = 0;
    while place < bounds.len() {
        bounds[place] = VALUES[place] * VALUES[place + 1];
        place += 1;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_byte_but_the_last_is_the_code_of_its_value() {
        for byte in 0..MISSING_BYTE {
            let code = DemandCode::from_byte(byte);
            assert_eq!(code.demand().map(DemandCode::of), Some(code));
        }
        assert_eq!(DemandCode::MISSING.demand(), None);
        // The table's last value, by the formula that the table stands for.
        assert!((VALUES[253] * 64.0 / 1.0553_f64.powi(253) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn values_outside_the_table_get_its_ends() {
        let byte_of = |demand| DemandCode::of(demand).byte();
        assert_eq!([byte_of(0.0), byte_of(-1.0), byte_of(f64::NAN), byte_of(f64::NEG_INFINITY)], [0; 4]);
        assert_eq!([byte_of(1e-300), byte_of(1e-9), byte_of(1.0 / 64.0)], [1, 1, 1]);
        assert_eq!([byte_of(1e12), byte_of(f64::INFINITY)], [254, 254]);
    }

    #[test]
    fn a_demand_halfway_between_two_values_gets_the_greater_one() {
        // The values of bytes 1 and 2 are 1/64 and 1.0553/64; the bound is their geometric mean.
        let bound = SQUARED_BOUNDS[0].sqrt();
        assert_eq!(DemandCode::of(bound * 0.999_999).byte(), 1);
        assert_eq!(DemandCode::of(bound * 1.000_001).byte(), 2);
        // The middle of the sum is above the middle of the ratio.
        assert_eq!(DemandCode::of(f64::midpoint(VALUES[0], VALUES[1])).byte(), 2);
    }

    proptest! {
        #[test]
        fn a_demand_returns_within_the_bound(demand in 0.016..12_000.0_f64) {
            let returned = DemandCode::of(demand).demand().expect("the minute was observed");
            prop_assert!((returned / demand).max(demand / returned) < 1.028, "{demand} became {returned}");
        }

        #[test]
        fn a_greater_demand_has_no_lesser_code(one in 0.0..20_000.0_f64, more in 0.0..20_000.0_f64) {
            prop_assert!(DemandCode::of(one).byte() <= DemandCode::of(one + more).byte());
        }
    }
}
