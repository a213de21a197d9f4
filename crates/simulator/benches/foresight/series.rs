//! Series of demand, minute by minute.

use std::ops::Range;

pub(crate) const MINUTES_OF_DAY: usize = 1_440;
/// The first days are history alone; fewer of a series that is short.
const HISTORY_DAYS: usize = 8;
const HISTORY_DAYS_OF_SHORT: usize = 5;
const SHORT_DAYS: usize = 12;

/// The demand of one system, minute by minute, in a unit of its own.
#[derive(Clone, Debug)]
pub(crate) struct DemandSeries {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

impl DemandSeries {
    /// The same demand with another greatest value, in requests in flight.
    pub(crate) fn with_peak(&self, peak: f64) -> Vec<f64> {
        let greatest = self.values.iter().copied().fold(0.0, f64::max);
        let scale = if greatest > 0.0 { peak / greatest } else { 0.0 };
        self.values.iter().map(|value| value * scale).collect()
    }

    /// The minutes that are judged.
    pub(crate) fn judged(&self) -> Range<usize> {
        let is_short = self.values.len() < SHORT_DAYS * MINUTES_OF_DAY;
        let days = if is_short { HISTORY_DAYS_OF_SHORT } else { HISTORY_DAYS };
        (days * MINUTES_OF_DAY).min(self.values.len())..self.values.len()
    }

    /// The first days of the series.
    pub(crate) fn first_days(mut self, days: usize) -> Self {
        self.values.truncate(days * MINUTES_OF_DAY);
        self
    }
}
