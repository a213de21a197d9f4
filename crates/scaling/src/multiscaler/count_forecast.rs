//! Beside the count that is asked for: the count that the class would ask for by itself.
//!
//! Pods that stand above the class's own count must not look like demand that is provided for, nor hold the
//! count as a peak or a panic would. So the class goes on from its own last count, and of the ready pods it
//! sees no more than that.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use vocabulary::{PodCount, Timestamp};

use super::prediction::{ExpectedCount, MINUTE, RevisionPrediction};
use crate::history::WallClock;

/// Two looks are at least so far apart: limits count whole milliseconds.
const LOOKS_APART: Duration = Duration::from_millis(1);

/// What raises the count of one revision beside its class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CountForecast {
    /// The count that the class asked for last by itself.
    pub(super) reactive: PodCount,
    /// `None` where prediction is off.
    pub(super) prediction: Option<RevisionPrediction>,
    /// Thousandths of a core that all pods use, as of the last sync of class hpa; `None` where that is not
    /// known, or no demand.
    pub(super) cpu: Option<u32>,
    looked_at: Timestamp,
}

impl CountForecast {
    /// What stands beside the class by these settings, going on from what stood there; `None` where neither
    /// prediction nor a schedule does.
    pub(super) fn following(
        former: Option<Box<Self>>,
        spec: &ScalingSpec,
        wanted: PodCount,
        now: Timestamp,
    ) -> Option<Box<Self>> {
        if spec.prediction.is_none() && spec.schedule.is_none() {
            return None;
        }
        let mut forecast = former.unwrap_or_else(|| {
            Box::new(Self { reactive: wanted, prediction: None, cpu: None, looked_at: now })
        });
        // The next sync knows it, if it still is demand.
        forecast.cpu = None;
        let former = forecast.prediction.take();
        forecast.prediction = match (&spec.prediction, former) {
            (Some(asked), Some(mut prediction)) if prediction.has_bin_of(asked) => {
                prediction.follow(spec, asked);
                Some(prediction)
            }
            (Some(asked), _) => RevisionPrediction::new(spec, asked, now),
            (None, _) => None,
        };
        Some(forecast)
    }

    /// Looks at what is expected while the class asks for this count. Only what is acted upon is returned.
    pub(super) fn look(
        &mut self,
        reactive: PodCount,
        clock: WallClock,
        now: Timestamp,
    ) -> Option<ExpectedCount> {
        self.looked_at = now;
        self.reactive = reactive;
        let prediction = self.prediction.as_mut()?;
        let expected = prediction.decide(prediction.minute_of(clock.second_at(now)), reactive, now);
        (!prediction.observes_only()).then_some(expected)
    }

    /// When the next look is due at the latest: a limit asks for it, a minute is closed, or one begins, with
    /// which a line of a schedule may begin or end.
    pub(super) fn deadline(&self, clock: WallClock) -> Timestamp {
        let begins = (clock.second_at(self.looked_at) / MINUTE + 1) * MINUTE;
        let mut due = clock.moment_of(begins);
        if let Some(prediction) = &self.prediction {
            let closed = prediction.next_minute_due().map(|second| clock.moment_of(second));
            due = closed.into_iter().fold(due.min(prediction.next_deadline()), Timestamp::min);
        }
        due.max(self.looked_at + LOOKS_APART)
    }
}
