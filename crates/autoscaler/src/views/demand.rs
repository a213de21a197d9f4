//! The demand of the past: as the API gives it, and as a client tells of it.

use std::sync::Arc;

use forecasting::{DemandMinutes, MinuteDemand, PastDemand as _};
use scaling::DemandDays;
use thiserror::Error;
use vocabulary::{RevisionName, Timestamp};

use super::values::{owner_view, word};
use crate::api_types::{API_VERSION, DemandView};
use crate::snapshot::Snapshot;

const MINUTE_SECONDS: u64 = 60;
const MINUTE_MS: u64 = 60_000;
/// Fifteen days and the one that runs are kept.
const MINUTES_MAX: usize = 16 * 24 * 60;

/// Why demand that a client tells of is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum DemandRefusal {
    #[error(
        "prediction of {0} is off, so no past is kept for it; write ebb.dev/prediction: observe, or auto"
    )]
    PredictionOff(RevisionName),
    #[error("the demand is of {told:?}, and {name} is predicted by {needed:?}; tell of that")]
    OtherMetric { name: RevisionName, told: String, needed: String },
    #[error("minutes of prediction are seconds here (prediction-bin), of which no past can be told")]
    ShortMinutes,
    #[error("there are {0} minutes; tell of 1 to {MINUTES_MAX}, the last of which has ended")]
    Count(usize),
    #[error("the last minute ends {0} ms from now; tell of minutes that have ended")]
    ToCome(u64),
    #[error("minute {0} has a mean or a maximum that is negative or no number; write 0 or more")]
    Value(usize),
}

/// The demand that is kept of a revision; `None` if there is no such revision.
pub(crate) fn demand(snapshot: &Snapshot, name: &RevisionName, now: Timestamp) -> Option<DemandView> {
    let view = snapshot.control.view(name, now)?;
    let kept = view.demand().filter(|(days, _)| days.is_by_minute());
    let span = kept.and_then(|(days, second)| Some((days, days.first_minute()?, second)));
    let (first_ms_ago, minutes) = span.map_or((0, Vec::new()), |(days, first, second)| {
        let ago = second.saturating_sub(first * MINUTE_SECONDS).saturating_mul(1000);
        let demand = |minute| days.minute(minute).map(|demand| [demand.mean, demand.maximum]);
        (ago, (first..second / MINUTE_SECONDS).map(demand).collect())
    });
    Some(DemandView {
        version: API_VERSION,
        name: name.clone(),
        owner: owner_view(&view, &snapshot.owner),
        metric: word(&view.spec().demand().metric),
        first_ms_ago,
        minutes,
    })
}

/// The demand that a client tells of, or why it is refused; `None` if there is no such revision. `second` is
/// the second since 1970 that runs.
pub(crate) fn told_demand(
    told: &DemandView,
    snapshot: &Snapshot,
    now: Timestamp,
    second: u64,
) -> Option<Result<Arc<DemandDays>, DemandRefusal>> {
    let view = snapshot.control.view(&told.name, now)?;
    let metric = view.spec().demand().metric;
    let needed = word(&metric);
    let refusal = if view.spec().prediction.is_none() {
        Some(DemandRefusal::PredictionOff(told.name.clone()))
    } else if told.metric != needed {
        Some(DemandRefusal::OtherMetric { name: told.name.clone(), told: told.metric.clone(), needed })
    } else if view.demand().is_some_and(|(days, _)| !days.is_by_minute()) {
        Some(DemandRefusal::ShortMinutes)
    } else {
        None
    };
    let minutes = match refusal {
        Some(refusal) => Err(refusal),
        None => checked_minutes(told, second),
    };
    Some(minutes.map(|minutes| Arc::new(DemandDays::of(metric, &minutes))))
}

/// The minutes that a client tells of, if each of them can have been measured by now.
fn checked_minutes(told: &DemandView, second: u64) -> Result<DemandMinutes, DemandRefusal> {
    let count = told.minutes.len();
    if count == 0 || count > MINUTES_MAX {
        return Err(DemandRefusal::Count(count));
    }
    let length_ms = u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(MINUTE_MS);
    // Clocks of two machines differ a little, and minutes are whole ones here.
    if length_ms > told.first_ms_ago.saturating_add(MINUTE_MS / 2) {
        return Err(DemandRefusal::ToCome(length_ms - told.first_ms_ago));
    }
    let first_ms = second.saturating_mul(1000).saturating_sub(told.first_ms_ago);
    let mut minutes = DemandMinutes::beginning_at(first_ms.saturating_add(MINUTE_MS / 2) / MINUTE_MS);
    for (place, demand) in told.minutes.iter().enumerate() {
        if demand.iter().flatten().any(|amount| !amount.is_finite() || *amount < 0.0) {
            return Err(DemandRefusal::Value(place));
        }
        minutes.push(demand.map(|[mean, maximum]| MinuteDemand { mean, maximum: maximum.max(mean) }));
    }
    Ok(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_045;

    fn told(first_ms_ago: u64, minutes: Vec<Option<[f64; 2]>>) -> DemandView {
        let name = RevisionName::parse("default/service/hello").expect("a name");
        let metric = "rps".to_owned();
        DemandView { version: API_VERSION, name, owner: None, metric, first_ms_ago, minutes }
    }

    #[test]
    fn minutes_are_those_of_the_clock_here() {
        let minutes = vec![Some([1.0, 2.0]), None, Some([4.0, 4.0])];
        // The client's clock is 20 s ahead or behind.
        let begun = (NOW / 60 - 3) * 60;
        for ahead in [-20_000_i64, 0, 20_000] {
            let ago = (NOW - begun).saturating_mul(1000).saturating_add_signed(ahead);
            let known = checked_minutes(&told(ago, minutes.clone()), NOW).expect("they have ended");
            let known: Vec<(u64, MinuteDemand)> = known.observed().collect();
            let demand = |mean, maximum| MinuteDemand { mean, maximum };
            let expected = [(begun / 60, demand(1.0, 2.0)), (begun / 60 + 2, demand(4.0, 4.0))];
            assert_eq!(known.len(), expected.len());
            for ((minute, known), (at, expected)) in known.into_iter().zip(expected) {
                assert_eq!(minute, at);
                // A byte stands for a demand within 3 %.
                assert!((known.mean / expected.mean - 1.0).abs() < 0.03, "{known:?}");
                assert!((known.maximum / expected.maximum - 1.0).abs() < 0.03, "{known:?}");
            }
        }
    }

    #[test]
    fn minutes_that_none_can_have_measured_are_refused() {
        let minute = || Some([1.0, 2.0]);
        for (told, expected) in [
            (told(0, Vec::new()), DemandRefusal::Count(0)),
            (told(u64::MAX, vec![None; MINUTES_MAX + 1]), DemandRefusal::Count(MINUTES_MAX + 1)),
            (told(60_000, vec![minute(), minute()]), DemandRefusal::ToCome(60_000)),
            (told(300_000, vec![minute(), Some([3.0, -2.0])]), DemandRefusal::Value(1)),
            (told(300_000, vec![Some([-1.0, 2.0])]), DemandRefusal::Value(0)),
            (told(300_000, vec![Some([f64::NAN, 2.0])]), DemandRefusal::Value(0)),
        ] {
            assert_eq!(checked_minutes(&told, NOW), Err(expected));
        }
    }
}
