//! What the API says, as programs read it; `docs/reference/api.md` says the same to people. A serialised type
//! is a promise: fields are only ever added within a version, and readers ignore those they do not know.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /v1/revisions` | [`RevisionList`] |
//! | `GET /v1/revisions/{namespace}/{kind}/{name}` | [`RevisionDetail`], or 404 with [`ApiError`] |
//! | `GET /v1/revisions/{namespace}/{kind}/{name}/series?range=15m` | [`SeriesView`], or 404 with [`ApiError`] |
//! | `GET /v1/revisions/{namespace}/{kind}/{name}/forecast` | [`ForecastView`], or 404 with [`ApiError`] |
//! | `GET /v1/revisions/{namespace}/{kind}/{name}/demand` | [`DemandView`], or 404 with [`ApiError`] |
//! | `PUT` the same, a [`DemandView`], to `ebb up` | [`DemandImportView`]; 400, 404 or 409 with [`ApiError`] |
//! | `GET /v1/ledger?since=7d&revision=NAME` | [`LedgerList`]; 400 or 404 with [`ApiError`] |
//! | `GET /v1/problems` | [`ProblemList`] |
//! | `GET /v1/record` | [`RecordList`] |
//! | `GET /v1/record/{autoscaler}/{segment}?from=BYTE` | bytes of the segment, from that one on; 404 with [`ApiError`] |
//! | `GET /v1/stream` | server-sent events, each a [`ChangeEvent`] |
//! | `GET /healthz` | 200 `ok` while the event loop turns, else 503 |
//! | `GET /ready` | 200 `ready` once it knows everything that is there, else 503 |
//!
//! Times are ages in milliseconds at the moment of the answer, never clock times: they mean the same on every
//! machine.

mod changes;
mod class_hpa;
mod decisions;
mod demand;
mod forecast;
mod ledger;
mod pods;
mod record;
mod series;

use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, ReplicaName, RevisionName, Routing};

pub use changes::ChangeEvent;
pub use class_hpa::{AskedMetricView, HpaConditionView, HpaMetricView, HpaView};
pub use decisions::{DecisionView, InputsView, ReasonView};
pub use demand::{DemandImportView, DemandView};
pub use forecast::{ForecastHourView, ForecastView};
pub use ledger::{ColdStartsView, LedgerList, LedgerRange, LedgerView, PodSecondsView, WhatIfView};
pub use pods::{EndedPodView, FailureView, KillView, LateBytesView, PodView};
pub use record::{RecordList, RecordView, SegmentView};
pub use series::SeriesView;

/// The version of these types, in the field `version` of every answer and in every path.
pub const API_VERSION: u32 = 1;

/// An answer that several autoscalers give a part of each.
pub trait OwnersAnswer: DeserializeOwned {
    /// One of all that were given; `None` if that is none. `silent` are those that did not answer.
    fn merged(answers: Vec<Self>, silent: &[ReplicaName]) -> Option<Self>;
}

/// All revisions, with what is wrong and how the links stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionList {
    /// The version of the API's types, [`API_VERSION`].
    pub version: u32,
    /// The number of the snapshot that the answer is made of, as events of the stream have it; of several
    /// autoscalers the least.
    #[serde(default)]
    pub snapshot: u64,
    /// In the order of their names.
    pub revisions: Vec<RevisionSummary>,
    /// Configuration that was refused, so that the last good one is in force; empty when all is well.
    pub problems: Vec<String>,
    /// Autoscalers that did not answer, of several; revisions about which they decide are missing, or as
    /// another knows them.
    #[serde(default)]
    pub unanswered: Vec<String>,
    /// Of each autoscaler that answered.
    #[serde(default)]
    pub links: Vec<LinksView>,
}

/// The links of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinksView {
    /// The replica that keeps these links, as its pod is called.
    pub autoscaler: String,
    /// To activators that are not on their way out.
    pub to_activators: LinkTallyView,
    /// To pods that run and are not on their way out.
    pub to_pods: LinkTallyView,
}

/// Links to those of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTallyView {
    /// To how many there should be one.
    pub expected: usize,
    /// To how many there is.
    pub up: usize,
    /// The names of peers without a link, at most ten.
    pub down: Vec<String>,
}

/// One revision as `ebb get` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionSummary {
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// What people call its present template.
    pub template: String,
    /// Where a browser reaches it; absent where the platform does not know.
    #[serde(default)]
    pub url: Option<String>,
    /// How many pods the platform is asked for.
    pub wanted: PodCount,
    /// Of them, those that the load does not call for yet: demand is expected, a pod is kept warm, or the
    /// schedule asks for them.
    #[serde(default)]
    pub early_pods: PodCount,
    /// What prediction brought and cost; absent where it is off.
    #[serde(default)]
    pub prediction: Option<PredictionView>,
    /// What the load calls for, before bounds; absent before the first valid decision.
    pub desired: Option<PodCount>,
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Pods that do not pass their probes.
    pub not_ready_pods: PodCount,
    /// Of them, those that do not run yet.
    pub pending_pods: PodCount,
    /// Of them, those whose starts wait until starts of other pods use less of the machine's cores.
    #[serde(default)]
    pub awaiting_core_pods: PodCount,
    /// Pods on their way out.
    pub terminating_pods: PodCount,
    /// The mode of the last decision: `stable` or `panic`.
    pub mode: String,
    /// Which algorithm decides: `kpa` or `hpa`.
    #[serde(default)]
    pub class: String,
    /// Class hpa: each metric beside its target, as `kubectl get hpa` shows them (`cpu 45%/80%, concurrency
    /// 7.1/10`); absent for class kpa.
    #[serde(default)]
    pub metrics: Option<String>,
    /// Another autoscaler that scales the same pods.
    #[serde(default)]
    pub other_autoscaler: Option<OtherAutoscalerView>,
    /// In shadow: how decisions compare with the count that there is; absent where they are carried out.
    #[serde(default)]
    pub shadow: Option<ShadowView>,
    /// Why the count is left alone without `ebb.dev/shadow`: `paused`, or the other autoscaler that decides
    /// about it; absent otherwise.
    #[serde(default)]
    pub left_alone: Option<String>,
    /// What is counted: `concurrency` or `rps`.
    pub metric: String,
    /// The average over the stable window, of the whole revision; absent without data.
    pub stable_value: Option<f64>,
    /// The average over the panic window.
    pub panic_value: Option<f64>,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// Whether requests go to pods directly or through activators.
    pub routing: Routing,
    /// Requests that wait for a slot of a pod, as last reported.
    pub waiting: u32,
    /// The revision's activity: `active`, `activating` or `inactive`.
    pub activity: String,
    /// Why the count last changed.
    pub last_reason: String,
    /// Why the count is not zero, if zero was asked for.
    pub why_not_zero: Option<String>,
    /// What the revision waits for, or which of its pods are in trouble; absent when there is nothing to say.
    pub why_not_ready: Option<String>,
    /// Links to those of its pods that are ready. Not of a silent link: what is up carries frames.
    #[serde(default)]
    pub links: Option<LinkTallyView>,
    /// Which autoscaler decides about it.
    #[serde(default)]
    pub owner: Option<OwnerView>,
}

/// The autoscaler that decides about a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerView {
    /// The replica that decides, as its pod is called.
    pub name: String,
    /// The bucket of the revision, from 0.
    pub bucket: u16,
    /// How many buckets there are: as many as autoscalers.
    pub buckets: u16,
    /// Grows with every change of owner.
    pub epoch: u64,
}

/// Another autoscaler of the same pods, as it shows itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherAutoscalerView {
    /// Of the `HorizontalPodAutoscaler`, in the namespace of the revision.
    pub name: String,
    /// How many pods it wants.
    pub desired: PodCount,
    /// The number of pods that the other autoscaler found.
    pub current: PodCount,
    /// Each of its metrics beside its target.
    pub metrics: String,
    /// Why, in its own words.
    pub why: String,
}

/// What prediction brought and cost in the last seven days, in hours that have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionView {
    /// The rule in force, such as `day-rise-0.8-total`; `none` where none would help.
    pub rule: String,
    /// Request-seconds that no ready pod took.
    pub late_request_seconds: f64,
    /// The same as it would have been without prediction.
    pub late_without_request_seconds: f64,
    /// Pod-seconds that prediction added to those of class kpa.
    pub extra_pod_seconds: u64,
    /// Those of them that demand needed by the time when they were ready.
    pub used_pod_seconds: u64,
    /// Pod-seconds that the budget of 24 hours still has.
    pub budget_left_pod_seconds: u64,
}

/// How decisions that are not carried out compare with the count that there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowView {
    /// For how long they have been compared.
    pub compared_ms: u64,
    /// The number of decisions that were compared.
    pub compared: u64,
    /// How many of them would have been another count.
    pub differed: u64,
    /// For how long they have differed without a break; absent while they agree.
    pub differs_ms: Option<u64>,
    /// The last difference; absent if there was none.
    pub last_difference: Option<ShadowDifferenceView>,
}

/// A decision that would have been another count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowDifferenceView {
    /// The age of the difference in milliseconds.
    pub age_ms: u64,
    /// The count that ebb decided upon.
    pub ours: PodCount,
    /// The count that the workload had then.
    pub theirs: PodCount,
    /// Why ours is what it is.
    pub why: String,
}

/// One revision with its pods and its last decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionDetail {
    /// The version of the API's types, [`API_VERSION`].
    pub version: u32,
    /// The same fields as in the list.
    #[serde(flatten)]
    pub summary: RevisionSummary,
    /// Hosts whose requests are for it.
    pub hosts: Vec<String>,
    /// The most requests in one pod at once; 0 means no limit.
    pub container_concurrency: u32,
    /// The least number of pods by the settings; 0 lets the revision sleep.
    pub min_scale: PodCount,
    /// The upper bound; absent when there is none.
    pub max_scale: Option<PodCount>,
    /// What the platform lets happen to the count, whatever the settings say.
    #[serde(default)]
    pub platform: PlatformTermsView,
    /// Class hpa: what a `HorizontalPodAutoscaler` has in its status; absent for class kpa.
    #[serde(default)]
    pub hpa: Option<HpaView>,
    /// Class hpa: the metrics that others than pods were asked for at the last sync.
    #[serde(default)]
    pub asked: Vec<AskedMetricView>,
    /// Some of those who sent requests in its window, the latest first, at most five. Requests that are not
    /// measured, and those past activators, are not among them.
    #[serde(default)]
    pub callers: Vec<CallerView>,
    /// In the order of their names.
    pub pods: Vec<PodView>,
    /// Its pods that ended last, the first of them first, at most 20.
    #[serde(default)]
    pub ended_pods: Vec<EndedPodView>,
    /// Its last decisions, oldest first, at most 20.
    pub decisions: Vec<DecisionView>,
    /// How a pod of it failed last, whatever has become of its successors; absent if none has.
    #[serde(default)]
    pub last_failure: Option<FailureView>,
    /// How a pod of it was killed last because it did not end in time; absent if none was.
    #[serde(default)]
    pub last_kill: Option<KillView>,
    /// Configuration that was refused, of any revision or the cluster.
    pub problems: Vec<String>,
}

/// A client whose requests keep a revision awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerView {
    /// The beginning of its `User-Agent`; empty if it sends none.
    pub user_agent: String,
    /// Where it is: as trusted proxies say, or the other end of its connection.
    pub address: IpAddr,
    /// How long ago a request of it came, in milliseconds.
    pub age_ms: u64,
}

/// What a platform lets happen to the count of a revision. None of this is a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformTermsView {
    /// Whether the platform writes the count that is decided.
    pub may_write: bool,
    /// Whether traffic can arrive at all.
    pub reachable: bool,
    /// The least count, whatever `min_scale` says; 0 for none.
    pub floor: PodCount,
    /// Why there is a floor: `given_back`, `abandoned`, `bypass` or `invalid_annotations`; absent without
    /// one.
    #[serde(default)]
    pub floor_cause: Option<String>,
    /// Why no request waits for a pod while there is none; absent while a wait may help.
    pub hold: Option<String>,
}

impl Default for PlatformTermsView {
    /// The terms of a platform that holds nothing back.
    fn default() -> Self {
        Self { may_write: true, reachable: true, floor: PodCount::ZERO, floor_cause: None, hold: None }
    }
}

/// Configuration that was refused, so that the last good one is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemList {
    /// The version of the API's types, [`API_VERSION`].
    pub version: u32,
    /// One line each; empty when all is well.
    pub problems: Vec<String>,
}

/// Why a request to the API failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiError {
    /// The version of the API's types, [`API_VERSION`].
    pub version: u32,
    /// The problem in one line of text.
    pub error: String,
}

#[cfg(test)]
pub(crate) mod tests;
