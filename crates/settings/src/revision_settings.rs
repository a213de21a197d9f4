//! The settings of one revision, as its annotations give them, and those that apply under the ConfigMap.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{
    BurstCapacity, CountSchedule, HeadSizeLimit, IgnoredUserAgents, Percentage, PodCount, PredictionSwitch,
    Problem, ScaleUpForward, TimeZoneName, shown,
};

use super::class::Class;
use super::cluster::ClusterConfig;
use super::keys::{annotation as keys, config_map};
use super::metric::Metric;
use super::reader::SettingsPlace;
use super::spec::Aggregation;
use super::texts::SettingsTexts;
use super::waiting_page_setting::WaitingPageSetting;
use crate::hpa::reading::HpaDocument;
use crate::hpa::{PodRequests, UsageSource};

/// The annotations of one revision, checked but not yet joined with the cluster's configuration. `None` means
/// that the revision says nothing and the ConfigMap or the default applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RevisionSettings {
    /// `class`: the algorithm that scales the revision.
    pub class: Option<Class>,
    /// `metric`, if it is one of ours; class hpa has more.
    pub metric: Option<Metric>,
    /// `metric` as it is written.
    pub metric_name: Option<Box<str>>,
    /// `metric-aggregation-algorithm`: how a window weighs its seconds.
    pub aggregation: Option<Aggregation>,
    /// `target`, requests in flight or per second; at least 0.01.
    pub target: Option<f64>,
    /// `target-utilization-percentage`: the share of a pod's capacity to aim at; 1 … 100.
    pub target_utilization: Option<Percentage>,
    /// `min-scale`: the least count; 0 means no lower bound.
    pub min_scale: Option<PodCount>,
    /// `max-scale` as written; 0 means no limit, even if the ConfigMap has one.
    pub max_scale: Option<PodCount>,
    /// `initial-scale`: the count until the revision was ready once; 0 only where the ConfigMap allows it.
    pub initial_scale: Option<PodCount>,
    /// `activation-scale`: the least count while there is any need; at least 2.
    pub activation_scale: Option<PodCount>,
    /// `scale-down-delay`: 0 … 1 h, whole seconds.
    pub scale_down_delay: Option<Duration>,
    /// `window`: 6 s … 1 h, whole seconds.
    pub stable_window: Option<Duration>,
    /// `panic-window-percentage`: the panic window in percent of the stable window; 1 … 100.
    pub panic_window_percentage: Option<Percentage>,
    /// `panic-threshold-percentage`: the needed pods, in percent of the ready pods, at which panic mode
    /// starts; 110 … 1000.
    pub panic_threshold_percentage: Option<Percentage>,
    /// `target-burst-capacity`: spare room to keep, in requests; -1 keeps the activators in the path.
    pub target_burst_capacity: Option<BurstCapacity>,
    /// `scale-to-zero-pod-retention-period`: 0 … 1 h.
    pub pod_retention: Option<Duration>,
    /// `ebb.dev/surge-evaluation`: whether a queue that builds up is acted upon at once.
    pub surge_evaluation: Option<bool>,
    /// `ebb.dev/idle-first-scale-down`: whether the least loaded pods end first.
    pub idle_first_scale_down: Option<bool>,
    /// `ebb.dev/in-flight-holds-pods`: whether a request in flight keeps the last pod.
    pub in_flight_holds_pods: Option<bool>,
    /// `ebb.dev/forget-connections`: connections from before an adoption hold nothing any more.
    pub forget_connections: Option<bool>,
    /// `ebb.dev/routing-dwell`: 0 … 1 h.
    pub routing_dwell: Option<Duration>,
    /// `ebb.dev/drain-limit`: 0 … 24 h, whole seconds.
    pub drain_limit: Option<Duration>,
    /// `ebb.dev/ignore-user-agents`: the clients whose requests are not measured and wake nothing.
    pub ignored_user_agents: Option<IgnoredUserAgents>,
    /// `ebb.dev/head-size-limit`: 8 KiB … 512 KiB, and no more than the ConfigMap's.
    pub head_size_limit: Option<HeadSizeLimit>,
    /// `ebb.dev/hpa-sync-period`: 1 s … 1 h.
    pub hpa_sync_period: Option<Duration>,
    /// `ebb.dev/stable-window`, of our own metrics within class hpa: 6 s … 1 h, whole seconds.
    pub own_stable_window: Option<Duration>,
    /// `ebb.dev/shadow`: whether everything is decided and nothing written.
    pub shadow: Option<bool>,
    /// `ebb.dev/paused`: a person decides about the count, and at zero no request waits for a pod.
    pub paused: Option<bool>,
    /// `ebb.dev/prediction`: whether a forecast raises the count.
    pub prediction: Option<PredictionSwitch>,
    /// `ebb.dev/prediction-budget`: the part of class kpa's pod-seconds that may be added; 0 … 100 %.
    pub prediction_budget: Option<Percentage>,
    /// `ebb.dev/cold-start-worth`: the pod-time that one avoided cold start may cost; 0 … 24 h.
    pub cold_start_worth: Option<Duration>,
    /// `ebb.dev/scale-up-forward`: how long a start is taken to last; 1 s … 1 h where that is fixed.
    pub scale_up_forward: Option<ScaleUpForward>,
    /// `ebb.dev/time-zone`: the local time by which days and the schedule go.
    pub time_zone: Option<TimeZoneName>,
    /// `ebb.dev/schedule`: bounds of the count for times of the week.
    #[serde(skip)]
    pub schedule: Option<Arc<CountSchedule>>,
    /// `ebb.dev/waiting-page`: what a browser is shown while it would wait for a pod.
    #[serde(skip)]
    pub waiting_page: Option<WaitingPageSetting>,
    /// The document of class hpa (`ebb.dev/hpa`, or one of kind `HorizontalPodAutoscaler`); its presence
    /// means that class.
    #[serde(skip)]
    pub document: Option<Box<HpaDocument>>,
    /// The requests of each pod, put here by the reader of the pod template: targets in percent refer to it.
    #[serde(skip)]
    pub requests: PodRequests,
    /// The source of what the pods use, put here by the platform that runs them.
    #[serde(skip)]
    pub usage: UsageSource,
    /// The annotations from which all of this was read. A document that stands by itself is not among them.
    #[serde(skip)]
    pub texts: SettingsTexts,
}

impl RevisionSettings {
    /// The class that applies to the revision.
    pub fn effective_class<'a>(&'a self, cluster: &'a ClusterConfig) -> &'a Class {
        if self.document.is_some() {
            return &Class::Hpa;
        }
        self.class.as_ref().unwrap_or(&cluster.pod_autoscaler_class)
    }

    /// How long requests without a timeout may take in a pod of the revision that leaves.
    pub fn effective_drain_limit(&self, cluster: &ClusterConfig) -> Duration {
        self.drain_limit.unwrap_or(cluster.drain_limit)
    }

    /// The user agents whose requests for the revision are not measured.
    pub fn effective_ignored_user_agents(&self, cluster: &ClusterConfig) -> IgnoredUserAgents {
        self.ignored_user_agents.as_ref().unwrap_or(&cluster.ignored_user_agents).clone()
    }

    /// How large the head of a request for the revision may be. The ConfigMap's limit may have been lowered
    /// below the annotation since that was accepted; then it counts.
    pub fn effective_head_size_limit(&self, cluster: &ClusterConfig) -> HeadSizeLimit {
        self.head_size_limit.map_or(cluster.head_size_limit, |limit| limit.min(cluster.head_size_limit))
    }

    /// Refuses what only another autoscaler than ours could run. Apart from [`RevisionSettings::read`],
    /// because such a revision is written correctly; whether something here can run it is the platform's to
    /// say.
    pub fn require_class_of_ours(&self, cluster: &ClusterConfig) -> Result<(), Problem> {
        let class = match self.effective_class(cluster) {
            Class::Kpa | Class::Ahpa | Class::Hpa => return Ok(()),
            Class::Other(name) => name,
        };
        let (place, key) = match self.class {
            Some(_) => (SettingsPlace::Annotations, keys::CLASS.name),
            None => (SettingsPlace::ConfigMap, config_map::POD_AUTOSCALER_CLASS.name),
        };
        let message = format!(
            "{} is {}, which nothing here runs; write {:?} or {:?}",
            place.name(key),
            shown(class),
            Class::Kpa.name(),
            Class::Hpa.name()
        );
        Err(Problem { key: key.to_owned(), message })
    }
}
