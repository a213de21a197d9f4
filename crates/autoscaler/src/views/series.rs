//! The past of a revision, second by second or in longer steps.

use scaling::{HistorySpan, Series, SeriesRange};
use vocabulary::{RevisionName, Timestamp};

use super::values::age;
use crate::api_types::{API_VERSION, SeriesView};
use crate::snapshot::Snapshot;

/// A series with the epoch of the autoscaler that measured it: of two the later owner's is newer.
#[derive(Debug)]
pub(crate) struct OwnedSeries {
    pub(crate) epoch: Option<u64>,
    pub(crate) series: SeriesView,
}

/// The past of a revision; `None` if there is no such revision.
pub(crate) fn series(
    snapshot: &Snapshot,
    name: &RevisionName,
    range: SeriesRange,
    now: Timestamp,
) -> Option<OwnedSeries> {
    let view = snapshot.control.view(name, now)?;
    let epoch = view.fence().map(|fence| fence.epoch.0);
    Some(OwnedSeries { epoch, series: series_view(range, view.series(range)) })
}

fn series_view(range: SeriesRange, series: Option<Series>) -> SeriesView {
    let (first_ago, spans) = series.map_or_else(Default::default, |series| (series.first_ago, series.spans));
    let column = |value: &dyn Fn(&HistorySpan) -> Option<f64>| {
        spans.iter().map(|span| span.as_ref().and_then(value)).collect::<Vec<_>>()
    };
    let each = |value: fn(&HistorySpan) -> u32| column(&|span| Some(f64::from(value(span))));
    let pods = |value: fn(&HistorySpan) -> u32| {
        column(&|span| Some(f64::from(value(span)) / f64::from(span.seconds.max(1))))
    };
    let demand =
        |value: fn(&HistorySpan) -> f64| column(&|span| (span.heard_seconds > 0).then(|| value(span)));
    // A second does not keep them.
    let of_longer_steps = |value: fn(&HistorySpan) -> u32| {
        column(&|span| (range != SeriesRange::QuarterHour).then(|| f64::from(value(span))))
    };
    SeriesView {
        version: API_VERSION,
        range: range.word().to_owned(),
        step_ms: age(range.step()),
        first_ms_ago: age(first_ago),
        seconds: each(|span| span.seconds),
        concurrency: demand(|span| span.concurrency),
        concurrency_max: demand(|span| span.concurrency_max),
        rate: demand(HistorySpan::rate),
        rate_max: demand(|span| span.rate_max),
        requests: demand(|span| span.requests),
        waiting: pods(|span| span.waiting_seconds),
        waiting_max: each(|span| span.waiting_max),
        waited: of_longer_steps(|span| span.waited),
        wanted: pods(|span| span.wanted_seconds),
        ready: pods(|span| span.ready_seconds),
        busy: pods(|span| span.busy_seconds),
        starting: pods(|span| span.starting_seconds),
        ending: pods(|span| span.ending_seconds),
        cold_starts: each(|span| span.raises_from[0]),
        raised: each(|span| span.raises_from.iter().sum()),
        rollout_starts: of_longer_steps(|span| span.rollout_starts),
        failed_pod_starts: of_longer_steps(|span| span.failed_pod_starts),
        cold_start_wait_ms: each(|span| span.wake_wait_ms),
    }
}
