//! The forecast of a revision for readers: what is expected, and what a store writes down.
//!
//! A reader has a copy. The sums that make up nearly all of a forecast are shared with the multiscaler until
//! the next minute or hour ends, so a copy costs a few kilobytes.

use forecasting::{PredictionRecord, ZoneOffsets, outlook};

use super::count_forecast::CountForecast;
use super::forecast_report::ForecastReport;
use super::prediction::RevisionPrediction;
use crate::history::DemandDays;

/// The forecast of a revision as it was when it was published.
#[derive(Clone, Debug)]
pub struct PublishedForecast {
    forecast: CountForecast,
    zone: ZoneOffsets,
}

impl PublishedForecast {
    pub(super) fn new(forecast: CountForecast, zone: ZoneOffsets) -> Self {
        Self { forecast, zone }
    }

    /// The forecast as it is written down.
    pub fn record(&self) -> PredictionRecord {
        let reactive = self.forecast.reactive.value();
        let prediction = self.forecast.prediction.as_ref().map(RevisionPrediction::record);
        PredictionRecord { reactive, ..prediction.unwrap_or_default() }
    }

    /// The forecast for people when a minute since 1970 begins; `None` where prediction is off.
    pub fn report(&self, past: Option<&DemandDays>, minute: u64) -> Option<ForecastReport> {
        let prediction = self.forecast.prediction.as_ref()?;
        let hours = past.map(|past| outlook(past, &self.zone, minute)).unwrap_or_default();
        Some(prediction.report(hours))
    }
}
