//! The ledgers of revisions, in the words of the API. Prices are multiplied here.

use std::time::Duration;

use orchestration::RevisionView;
use scaling::{ColdStarts, PodSeconds, RevisionLedger};
use settings::HourlyPrice;
use vocabulary::{ReplicaName, RevisionName, Timestamp};

use super::values::{age, owner_view};
use crate::api_types::{
    API_VERSION, ColdStartsView, LedgerList, LedgerRange, LedgerView, PodSecondsView, WhatIfView,
};
use crate::snapshot::Snapshot;

/// The ledgers of all revisions of ours, or of the one that is named.
pub(crate) fn ledger(
    snapshot: &Snapshot,
    named: Option<&RevisionName>,
    range: LedgerRange,
    now: Timestamp,
) -> LedgerList {
    let Snapshot { owner, control, .. } = snapshot;
    let views = control.views(now).filter(|view| named.is_none_or(|name| view.facts().name == *name));
    LedgerList {
        version: API_VERSION,
        since_ms: age(range.since()),
        currency: control.prices().currency().map(|currency| currency.to_string()),
        cold_start_worth_ms: age(control.cold_start_worth()),
        revisions: views.map(|view| ledger_view(&view, owner, range.since())).collect(),
        unanswered: Vec::new(),
    }
}

fn ledger_view(view: &RevisionView<'_>, owner: &ReplicaName, since: Duration) -> LedgerView {
    let (min_scale, price) = (view.spec().min_scale, view.pod_price());
    let ledger = view.ledger(since).unwrap_or_default();
    let RevisionLedger { first_ago, seconds, pod_seconds, cold_starts, requests, waits, .. } = ledger;
    let advice = ledger.advice(min_scale, view.cold_start_worth());
    let what_if = ledger.least_counts().map(|(min_scale, what_if)| WhatIfView {
        min_scale,
        extra_pod_seconds: what_if.extra_pod_seconds,
        avoided_cold_starts: what_if.avoided_cold_starts,
        extra_cost: cost(what_if.extra_pod_seconds, price),
    });
    LedgerView {
        name: view.facts().name.clone(),
        owner: owner_view(view, owner),
        min_scale,
        first_ms_ago: age(first_ago),
        seconds,
        pod_seconds: pod_seconds_view(pod_seconds),
        cold_starts: cold_starts_view(cold_starts),
        cold_starts_ended: waits.wakes_ended,
        cold_start_wait_ms: waits.wake_wait_ms,
        cold_start_wait_ms_max: waits.wake_wait_ms_max.into(),
        requests,
        waited: waits.waited,
        waiting_seconds: waits.waiting_seconds,
        pod_price: price.map(HourlyPrice::amount),
        cost: cost(pod_seconds.sum(), price),
        what_if: what_if.collect(),
        cold_start_worth_ms: age(view.cold_start_worth()),
        advised_min_scale: advice.map(|advice| advice.advised),
        advice: advice.map(|advice| advice.to_string()),
    }
}

/// The price of so many seconds of one pod.
fn cost(pod_seconds: u64, price: Option<HourlyPrice>) -> Option<f64> {
    Some(Duration::from_secs(pod_seconds).as_secs_f64() / 3600.0 * price?.amount())
}

fn pod_seconds_view(seconds: PodSeconds) -> PodSecondsView {
    let PodSeconds { starting, busy, idle, ending } = seconds;
    PodSecondsView { starting, busy, idle, ending }
}

fn cold_starts_view(starts: ColdStarts) -> ColdStartsView {
    let ColdStarts { from_zero, growth, rollout, failed_pod } = starts;
    ColdStartsView { from_zero, growth, rollout, failed_pod }
}
