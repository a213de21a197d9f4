//! A number of four bytes, for sums of which a revision keeps thousands.

use serde::{Deserialize, Serialize};

/// The upper half of a double: as large as any, exact to a millionth, and equal on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShortNumber(u32);

impl ShortNumber {
    /// The number without the digits behind the sixth.
    pub(crate) fn of(number: f64) -> Self {
        Self(u32::try_from(number.to_bits() >> 32).expect("the upper half of eight bytes has four"))
    }

    pub(crate) fn value(self) -> f64 {
        f64::from_bits(u64::from(self.0) << 32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_returns_to_a_millionth(number in 0.0..1e12_f64) {
            let returned = ShortNumber::of(number).value();
            prop_assert!(returned <= number && number - returned <= number / 1_000_000.0);
        }
    }
}
