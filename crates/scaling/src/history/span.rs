//! One second, minute or hour of the past, as readers of a series get it.

use serde::{Deserialize, Serialize};

use super::facts::PLACES;

/// One second, minute or hour of a revision, as far as it was observed. Averages and maxima of demand are
/// within 1/128 of the measured ones, waits are sums of whole milliseconds, all counts are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistorySpan {
    /// The seconds of the span in which the revision was observed; capacity is known in all of them.
    pub seconds: u32,
    /// The seconds in which a reporter was heard; in the others the demand is not known.
    pub heard_seconds: u32,
    /// Requests in flight, waiting ones included, averaged over the seconds that were heard.
    pub concurrency: f64,
    /// The greatest concurrency of a second.
    pub concurrency_max: f64,
    /// Requests that arrived; in a second within 1/128, else rounded to a whole number.
    pub requests: f64,
    /// The greatest number of requests that arrived in a second.
    pub rate_max: f64,
    /// Requests that waited, looked at once a second and added up: the seconds of waiting.
    pub waiting_seconds: u32,
    /// The greatest number of requests that waited together.
    pub waiting_max: u32,
    /// The pods that were wanted, added up over the seconds. The next four are counted alike.
    pub wanted_seconds: u32,
    /// The seconds of pods that pass their probes.
    pub ready_seconds: u32,
    /// The seconds of ready pods in which they held a request at some moment.
    pub busy_seconds: u32,
    /// The seconds of pods that are not ready, and not on their way out.
    pub starting_seconds: u32,
    /// The seconds of pods on their way out.
    pub ending_seconds: u32,
    /// How often the count was raised from 0, 1, 2, 3, 4 pods by one, and from more: a raise from 1 to 4 is
    /// one each from 1, 2 and 3. The first is the number of cold starts from zero. Of seconds and minutes all
    /// others stand in the last.
    pub raises_from: [u32; PLACES],
    /// The seconds in which 0, 1, 2, 3, 4 pods were wanted; of hours only.
    pub seconds_wanting: [u32; PLACES - 1],
    /// Pods that were started for a new template, without a raise of the count. This and the next two are not
    /// known of seconds.
    pub rollout_starts: u32,
    /// Pods that were started in the place of one that failed or was taken away.
    pub failed_pod_starts: u32,
    /// Requests that waited, by looks once a second: by so many more waited than a second before. One that
    /// waited between two looks is not seen, so these are the fewest that there can have been.
    pub waited: u32,
    /// Cold starts from zero that ended with a ready pod.
    pub wakes_ended: u32,
    /// The milliseconds from the order to the ready pod, of all these cold starts together.
    pub wake_wait_ms: u32,
    /// The longest of these waits, in milliseconds.
    pub wake_wait_ms_max: u32,
}

impl HistorySpan {
    /// The seconds of ready pods that held no request.
    pub fn idle_seconds(&self) -> u32 {
        self.ready_seconds.saturating_sub(self.busy_seconds)
    }

    /// Requests per second, averaged over the seconds that were heard.
    pub fn rate(&self) -> f64 {
        self.requests / f64::from(self.heard_seconds.max(1))
    }

    /// The seconds of pods that a least count would have added: as many as were missing to it.
    pub fn extra_seconds_with(&self, min_scale: u32) -> u32 {
        (0..min_scale).zip(self.seconds_wanting).fold(0, |sum: u32, (wanted, seconds)| {
            sum.saturating_add((min_scale - wanted).saturating_mul(seconds))
        })
    }

    /// The starts of pods that a least count would have spared: those that began with fewer.
    pub fn starts_spared_with(&self, min_scale: u32) -> u32 {
        let below = (0..min_scale).zip(&self.raises_from[..PLACES - 1]);
        below.fold(0, |sum: u32, (_, &raises)| sum.saturating_add(raises))
    }
}
