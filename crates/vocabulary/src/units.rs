//! A newtype per quantity. Constructors refuse NaN, infinities and negatives, so no caller checks again, and
//! every rounding has a name here.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a number is not the quantity it was meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum QuantityError {
    /// The number is NaN or an infinity.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// Below zero where that has no meaning.
    #[error("{0} is negative")]
    Negative(f64),
}

fn checked(value: f64) -> Result<f64, QuantityError> {
    if !value.is_finite() {
        Err(QuantityError::NotFinite(value))
    } else if value < 0.0 {
        Err(QuantityError::Negative(value))
    } else {
        // Adding zero turns -0.0 into 0.0, which prints and compares as people expect.
        Ok(value + 0.0)
    }
}

macro_rules! non_negative {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// The least value that the quantity has.
            pub const ZERO: Self = Self(0.0);

            /// Refuses NaN, infinities and negatives.
            pub fn new(value: f64) -> Result<Self, QuantityError> {
                checked(value).map(Self)
            }

            /// The nearest legal value: NaN and negatives become zero, infinity the largest finite number.
            /// For values that another process sent and that were not worth refusing a whole message for.
            pub fn clamped(value: f64) -> Self {
                Self(if value.is_nan() { 0.0 } else { value.clamp(0.0, f64::MAX) + 0.0 })
            }

            /// The quantity as a number; finite and not negative.
            pub const fn value(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = QuantityError;
            fn try_from(value: f64) -> Result<Self, QuantityError> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> f64 {
                quantity.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, formatter)
            }
        }
    };
}

non_negative!(
    /// Requests in flight, averaged over time.
    Concurrency
);
non_negative!(
    /// The rate at which requests arrive, per second.
    RequestRate
);
non_negative!(
    /// A percentage as a person writes it: 70 means 70 %.
    Percentage
);

impl Percentage {
    /// The percentage as a fraction: 0.7 for 70 %.
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

/// A number of pods: 0 … 2,147,483,647, the range of a Kubernetes replica count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodCount(u32);

impl PodCount {
    /// The count of a revision that sleeps.
    pub const ZERO: Self = Self(0);
    /// The count of a revision with a single pod.
    pub const ONE: Self = Self(1);
    /// The most that a Kubernetes replica count can say.
    pub const MAX: Self = Self(i32::MAX as u32);

    /// A count, clamped to [`PodCount::MAX`].
    pub const fn new(count: u32) -> Self {
        if count > Self::MAX.0 { Self::MAX } else { Self(count) }
    }

    /// How many elements a collection has, as a count.
    pub fn of(length: usize) -> Self {
        u32::try_from(length).map_or(Self::MAX, Self::new)
    }

    /// The smallest count that is at least `pods`; NaN and negatives become zero, too much becomes
    /// [`PodCount::MAX`].
    pub fn ceil_from(pods: f64) -> Self {
        Self::truncated_from(pods.ceil())
    }

    /// The largest count that is at most `pods`.
    pub fn floor_from(pods: f64) -> Self {
        Self::truncated_from(pods.floor())
    }

    /// `pods` without its fraction. `as` saturates and sends NaN to zero, which is the clamping wanted here;
    /// this, [`ExcessBurstCapacity::truncated_from`] and [`crate::MilliValue::ceil_from`] are the only
    /// float-to-integer conversions of the pure crates.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is intended")]
    pub fn truncated_from(pods: f64) -> Self {
        Self::new(pods as u32)
    }

    /// The count as a plain number.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number for arithmetic with loads.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0)
    }

    /// As an index or a length.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for PodCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// The spare room that a revision should have (Knative: target burst capacity), in concurrent requests.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum BurstCapacity {
    /// `-1`: no room is ever enough, the activator always stays in the path.
    Unlimited,
    /// This many concurrent requests; zero keeps the activator out of the path whenever a pod is wanted.
    Requests(Concurrency),
}

impl BurstCapacity {
    /// Reads Knative's number: `-1` or at least 0. Other negatives are refused.
    pub fn new(value: f64) -> Result<Self, QuantityError> {
        if value.total_cmp(&-1.0).is_eq() {
            Ok(Self::Unlimited)
        } else {
            Concurrency::new(value).map(Self::Requests)
        }
    }

    /// Knative's number: -1 for [`BurstCapacity::Unlimited`].
    pub fn value(self) -> f64 {
        match self {
            Self::Unlimited => -1.0,
            Self::Requests(room) => room.value(),
        }
    }
}

impl fmt::Display for BurstCapacity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), formatter)
    }
}

/// Room beyond the target burst capacity, in concurrent requests; negative puts the activator in the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExcessBurstCapacity(i32);

impl ExcessBurstCapacity {
    /// There is exactly as much room as the target asks for.
    pub const ZERO: Self = Self(0);

    /// An excess of so many requests; negative where room is missing.
    pub const fn new(requests: i32) -> Self {
        Self(requests)
    }

    /// `requests` without its fraction, clamped to what 32 bits hold; NaN becomes zero.
    #[expect(clippy::cast_possible_truncation, reason = "saturation is intended")]
    pub fn truncated_from(requests: f64) -> Self {
        Self(requests as i32)
    }

    /// Whether the activator is needed in the path.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The excess in requests, as a signed number.
    pub const fn value(self) -> i32 {
        self.0
    }
}

impl fmt::Display for ExcessBurstCapacity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_refuse_what_is_not_a_quantity() {
        assert!(matches!(Concurrency::new(f64::NAN), Err(QuantityError::NotFinite(_))));
        assert_eq!(Concurrency::new(f64::INFINITY), Err(QuantityError::NotFinite(f64::INFINITY)));
        assert_eq!(RequestRate::new(-1.0), Err(QuantityError::Negative(-1.0)));
        assert!(Concurrency::new(-0.0).is_ok_and(|zero| zero.value().is_sign_positive()));
    }

    #[test]
    fn clamping_never_yields_an_illegal_value() {
        assert_eq!(Concurrency::clamped(f64::NAN), Concurrency::ZERO);
        assert_eq!(Concurrency::clamped(f64::NEG_INFINITY), Concurrency::ZERO);
        assert_eq!(Concurrency::clamped(f64::INFINITY).value(), f64::MAX);
    }

    #[test]
    fn rounding_is_named_and_saturates() {
        assert_eq!(PodCount::ceil_from(7.000_001), PodCount::new(8));
        assert_eq!(PodCount::ceil_from(-3.0), PodCount::ZERO);
        assert_eq!(PodCount::ceil_from(f64::NAN), PodCount::ZERO);
        assert_eq!(PodCount::ceil_from(1e300), PodCount::MAX);
        assert_eq!(PodCount::floor_from(2.9), PodCount::new(2));
        assert_eq!(ExcessBurstCapacity::truncated_from(-0.5), ExcessBurstCapacity::ZERO);
        assert_eq!(ExcessBurstCapacity::truncated_from(-1e300), ExcessBurstCapacity::new(i32::MIN));
    }

    #[test]
    fn burst_capacity_reads_knatives_number() {
        assert_eq!(BurstCapacity::new(-1.0), Ok(BurstCapacity::Unlimited));
        assert!(BurstCapacity::new(-2.0).is_err());
        assert_eq!(BurstCapacity::new(0.0).map(BurstCapacity::value), Ok(0.0));
    }
}
