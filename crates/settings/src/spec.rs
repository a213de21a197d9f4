//! The checked settings of one revision: annotations over the ConfigMap over the defaults, with the target
//! resolved.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{BurstCapacity, CountSchedule, Percentage, PodCount, ScaleUpForward, TimeZoneName};

use super::metric::Metric;
use crate::hpa::{HpaScaling, MetricSpec};

/// The least load per pod to aim at.
pub(super) const TARGET_MIN: f64 = 0.01;

/// Everything a decision needs to know of a revision's configuration. Built by resolving a revision's
/// settings against the cluster's; the numbers are finite and in range.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingSpec {
    /// The quantity that is averaged: requests in flight, or requests per second.
    pub metric: Metric,
    /// How the windows weigh the past.
    pub aggregation: Aggregation,
    /// The long averaging window; 6 s … 1 h, whole seconds.
    pub stable_window: Duration,
    /// The short averaging window; at least 1 s, whole seconds.
    pub panic_window: Duration,
    /// The load per pod to aim at: requests in flight, or requests per second. At least 0.01.
    pub target_per_pod: f64,
    /// The most load that a pod can take.
    pub total_per_pod: f64,
    /// The largest factor by which one evaluation may grow the ready pods; above 1.
    pub max_scale_up_rate: f64,
    /// The largest factor by which one evaluation may shrink the ready pods; above 1.
    pub max_scale_down_rate: f64,
    /// The ratio of needed to ready pods at which panic mode starts (2.0 for 200 %).
    pub panic_threshold: f64,
    /// Spare room to keep for a burst, in requests.
    pub target_burst_capacity: BurstCapacity,
    /// Concurrent requests that one activator is meant to carry; at least 1.
    pub activator_capacity: f64,
    /// How long a peak holds the count up; zero turns the delay off.
    pub scale_down_delay: Duration,
    /// The least count while there is any need; below 2 it is off.
    pub activation_scale: PodCount,
    /// The least count; 0 means no lower bound.
    pub min_scale: PodCount,
    /// The platform's part in the least count; `None` while the settings alone give it.
    pub floor: Option<PlatformFloor>,
    /// The largest count; `None` means no limit.
    pub max_scale: Option<PodCount>,
    /// The count until the revision was ready once.
    pub initial_scale: PodCount,
    /// Whether the count may become 0.
    pub scale_to_zero: bool,
    /// How long the activator must have been in the path before the last pod ends.
    pub scale_to_zero_grace_period: Duration,
    /// The least time the last pod stays after traffic ended.
    pub pod_retention: Duration,
    /// How long an activation may take before the revision is given up: the progress deadline plus 30 s.
    pub activation_timeout: Duration,
    /// Whether traffic can arrive at all. Settings say true; a platform's facts may say otherwise.
    pub reachable: bool,
    /// Whether a queue that builds up is acted upon at once (`surge-evaluation`).
    pub surge_evaluation: bool,
    /// How long there must be room before the activator leaves the path (`routing-dwell`).
    pub routing_dwell: Duration,
    /// Whether the least loaded pods are ended first (`idle-first-scale-down`).
    pub idle_first_scale_down: bool,
    /// Whether a request in flight keeps the last pod, even if no metric needs it (`in-flight-holds-pods`).
    pub in_flight_holds_pods: bool,
    /// How long connections from before an adoption keep the count from falling (`adopted-connections-hold`);
    /// no time at all under `ebb.dev/forget-connections`.
    pub adopted_connections_hold: Duration,
    /// Whether everything is decided and nothing written (`ebb.dev/shadow`, `ebb.dev/paused`, or a platform
    /// that may not write the count).
    pub shadow: bool,
    /// What a person asks of prediction; `None` where it is off.
    pub prediction: Option<PredictionSettings>,
    /// Bounds of the count for times of the week, of any class.
    #[serde(skip)]
    pub schedule: Option<Arc<CountSchedule>>,
    /// The local time by which days of prediction and the schedule go.
    pub time_zone: TimeZoneName,
    /// The input of class hpa; `None` for class kpa. The bounds above are then the document's, and metric and
    /// targets those of its first own metric.
    #[serde(skip)]
    pub hpa: Option<Arc<HpaScaling>>,
}

impl ScalingSpec {
    /// The settings of the decider of one own metric within class hpa, `None` for any other metric: the
    /// target is the metric's, in full, and the bounds are the document's.
    pub fn for_own_metric(&self, metric: &MetricSpec) -> Option<Self> {
        let MetricSpec::Own { metric, target } = metric else { return None };
        let target = (target.as_f64() / 1000.0).max(TARGET_MIN);
        Some(Self {
            metric: *metric,
            target_per_pod: target,
            total_per_pod: target,
            min_scale: PodCount::ZERO,
            floor: None,
            max_scale: None,
            prediction: None,
            schedule: None,
            hpa: None,
            ..self.clone()
        })
    }

    /// The same with at least this count, whatever the settings say; a most below that gives way. A floor
    /// that the settings reach themselves changes nothing.
    #[must_use]
    pub fn with_floor(mut self, floor: PodCount, cause: FloorCause) -> Self {
        if floor > self.min_scale {
            self.floor = Some(PlatformFloor { cause, min_by_settings: self.min_scale });
            self.min_scale = floor;
        }
        self.max_scale = self.max_scale.map(|most| most.max(floor));
        if let Some(hpa) = self.hpa.as_mut().filter(|hpa| hpa.spec.min < floor) {
            let document = &mut Arc::make_mut(hpa).spec;
            (document.min, document.max) = (floor, document.max.max(floor));
        }
        self
    }

    /// The least count that the settings ask for, without the platform's part in it.
    pub fn min_by_settings(&self) -> PodCount {
        self.floor.map_or(self.min_scale, |floor| floor.min_by_settings)
    }
}

/// Why `min_scale` is greater than the settings say: the platform lets the count not fall below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformFloor {
    /// Why there is such a floor.
    pub cause: FloorCause,
    /// The least count by the settings alone; below `min_scale`.
    pub min_by_settings: PodCount,
}

/// Why a platform lets a count not fall, whatever the settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorCause {
    /// A Service of the workload is being given back, or was until a moment ago: some clients still come by
    /// the former way.
    #[default]
    GivenBack,
    /// No annotation asks for ebb any more, and the Service has no selector: no other program can serve it.
    Abandoned,
    /// A Service leads clients to the pods past ebb.
    Bypass,
    /// The annotations of the workload are invalid and never were valid.
    InvalidAnnotations,
}

/// What a person asks of prediction, where it is not off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionSettings {
    /// Whether what prediction would do is only shown.
    pub observes_only: bool,
    /// The part of class kpa's pod-seconds that a forecast may add; 0 … 100 %.
    pub budget: Percentage,
    /// The pod-time that one avoided cold start may cost; zero keeps no pod warm.
    pub cold_start_worth: Duration,
    /// How long a start of a pod is taken to last.
    pub scale_up_forward: ScaleUpForward,
    /// How long a minute of the forecast is: 60 s, or 1 s in tests.
    pub bin: Duration,
}

/// How a window turns seconds into one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// The plain average over the seconds of the window.
    #[default]
    Linear,
    /// An average in which recent seconds weigh more than old ones.
    WeightedExponential,
}
