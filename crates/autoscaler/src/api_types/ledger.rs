//! What the API says of costs: for each revision what its pods came to, and what other least counts would
//! have cost.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, RevisionName, format_duration, parse_duration};

use super::OwnerView;

/// The ledgers of all revisions, or of the one that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerList {
    /// The version of the API's types.
    pub version: u32,
    /// The range that was asked for, in milliseconds; a ledger counts whole hours, so it may reach back up to
    /// an hour further.
    pub since_ms: u64,
    /// The currency of all costs; absent where no price is set.
    pub currency: Option<String>,
    /// The worth of an avoided cold start, in milliseconds of one pod, for revisions without one of their
    /// own.
    pub cold_start_worth_ms: u64,
    /// In the order of their names.
    pub revisions: Vec<LedgerView>,
    /// Autoscalers that did not answer, of several; revisions about which they decide are missing, or as
    /// another knows them.
    pub unanswered: Vec<String>,
}

/// The ledger of one revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerView {
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// Which autoscaler decides about it.
    pub owner: Option<OwnerView>,
    /// The least count that its settings ask for.
    pub min_scale: PodCount,
    /// The age of the first second that was measured and counts; 0 for a revision that was not.
    pub first_ms_ago: u64,
    /// The seconds in which it was measured.
    pub seconds: u64,
    /// The seconds of its pods by their state.
    pub pod_seconds: PodSecondsView,
    /// The starts of its pods by their cause.
    pub cold_starts: ColdStartsView,
    /// Cold starts from zero that ended with a ready pod.
    pub cold_starts_ended: u64,
    /// The time from the order to the first ready pod, of all of these together.
    pub cold_start_wait_ms: u64,
    /// The longest of these times.
    pub cold_start_wait_ms_max: u64,
    /// Requests that arrived while a reporter was heard.
    pub requests: f64,
    /// Requests that waited, as far as looks once a second saw them.
    pub waited: u64,
    /// The seconds that they waited together.
    pub waiting_seconds: u64,
    /// The price of one pod for an hour; absent where nothing that it requests has a price.
    pub pod_price: Option<f64>,
    /// The price of all pod-seconds.
    pub cost: Option<f64>,
    /// What other least counts would have brought, from 0 to 5.
    pub what_if: Vec<WhatIfView>,
    /// The worth of an avoided cold start of this revision, in milliseconds of one pod.
    #[serde(default)]
    pub cold_start_worth_ms: u64,
    /// The least count to have; absent where nothing was measured.
    pub advised_min_scale: Option<PodCount>,
    /// The advice in one sentence.
    pub advice: Option<String>,
}

/// Seconds of pods, each in one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSecondsView {
    /// The pod was not ready, and not on its way out.
    pub starting: u64,
    /// The pod was ready and held a request at some moment of the second.
    pub busy: u64,
    /// The pod was ready and held no request.
    pub idle: u64,
    /// The pod was on its way out.
    pub ending: u64,
}

/// Starts of pods, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdStartsView {
    /// The first pod of a revision that had none.
    pub from_zero: u64,
    /// A further pod, because the count was raised.
    pub growth: u64,
    /// A pod of a new template.
    pub rollout: u64,
    /// A pod in the place of one that failed or was taken away.
    pub failed_pod: u64,
}

/// What a least count would have brought, beside what was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WhatIfView {
    /// The least count of this row.
    pub min_scale: PodCount,
    /// The seconds of pods that were missing to it.
    pub extra_pod_seconds: u64,
    /// The cold starts that began with fewer pods.
    pub avoided_cold_starts: u64,
    /// The price of the extra pod-seconds; absent where pods have none.
    pub extra_cost: Option<f64>,
}

/// How far back a ledger reaches, as a person writes it: `7d`, or a duration such as `36h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerRange(Duration);

impl LedgerRange {
    /// The range where none is written.
    pub const DEFAULT_TEXT: &str = "7d";

    const DAY: Duration = Duration::from_hours(24);
    /// Hours are kept for as long.
    const LONGEST: Duration = Duration::from_hours(35 * 24);

    /// Reads a range, or says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
        let since = match days {
            Some(days) => Self::DAY.saturating_mul(days),
            None => parse_duration(text).map_err(|error| format!("{text:?} {error}, or 7d for days"))?,
        };
        if since.is_zero() || since > Self::LONGEST {
            return Err(format!("{text:?} is out of range; write a duration above 0s, up to 35d"));
        }
        Ok(Self(since))
    }

    /// The range as a length of time.
    pub fn since(self) -> Duration {
        self.0
    }

    /// The range in the words of a query.
    pub fn query(self) -> String {
        format!("since={}", format_duration(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_in_days_or_as_a_duration() {
        for (text, hours) in [("7d", 168), ("1d", 24), ("35d", 840), ("36h", 36), ("1h30m", 1)] {
            assert_eq!(LedgerRange::parse(text).map(|range| range.since().as_secs() / 3600), Ok(hours));
        }
        for text in ["", "7", "0s", "0d", "36d", "-1h", "a week", "d"] {
            assert!(LedgerRange::parse(text).is_err(), "{text}");
        }
        let refused = LedgerRange::parse("36d").expect_err("hours are kept for 35 days");
        assert_eq!(refused, "\"36d\" is out of range; write a duration above 0s, up to 35d");
        assert_eq!(LedgerRange::parse("7d").map(LedgerRange::query), Ok("since=168h".to_owned()));
    }
}
