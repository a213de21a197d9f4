//! Which seat did an order come from?

/// One seat of the autoscaler, which may be rebuilt; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatNumber(pub u64);
