//! The ConfigMap `config-autoscaler`: the settings of all revisions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{
    BurstCapacity, CheckedValue, Concurrency, DRAIN_LIMIT_DEFAULT, HeadSizeLimit, IgnoredUserAgents,
    Percentage, PodCount, Problem,
};

use super::class::Class;
use super::keys::{EXAMPLE, HISTORIC, RETIRED_HPA_SWITCHES, SettingKey, config_map as keys};
use super::limits;
use super::prediction::PredictionDefaults;
use super::prices::ResourcePrices;
use super::queue_proxy::QueueProxyResources;
use super::reader::{SettingsPlace, SettingsReader};
use super::record_place::RecordPlace;
use super::suggestion;
use super::texts::SettingsTexts;
use crate::hpa::HpaSettings;

/// The prefixes of the keys that say where Prometheus is, how it is asked, and where records are.
const PLACE_PREFIXES: [&str; 2] = ["prometheus-", "record-"];

/// The ConfigMap, read and checked. The default is what an empty ConfigMap means.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the ConfigMap")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterConfig {
    /// `pod-autoscaler-class`: the class of revisions that name none.
    pub pod_autoscaler_class: Class,
    /// `enable-scale-to-zero`: whether any revision may end at zero pods.
    pub enable_scale_to_zero: bool,
    /// `allow-zero-initial-scale`: whether `initial-scale` may be 0.
    pub allow_zero_initial_scale: bool,
    /// `container-concurrency-target-percentage` as a fraction: above 0, at most 1.
    pub container_concurrency_target_fraction: f64,
    /// `container-concurrency-target-default`, requests in flight per pod that has no limit; at least 0.01.
    pub container_concurrency_target_default: f64,
    /// `requests-per-second-target-default`, per pod; at least 0.01.
    pub requests_per_second_target_default: f64,
    /// `target-burst-capacity`: spare room to keep.
    pub target_burst_capacity: BurstCapacity,
    /// `stable-window`: 6 s … 1 h, whole seconds.
    pub stable_window: Duration,
    /// `panic-window-percentage` of the stable window: 1 … 100.
    pub panic_window_percentage: Percentage,
    /// `panic-threshold-percentage`, needed of ready pods: 110 … 1000.
    pub panic_threshold_percentage: Percentage,
    /// `max-scale-up-rate`, a factor per evaluation; above 1.
    pub max_scale_up_rate: f64,
    /// `max-scale-down-rate`, a divisor per evaluation; above 1.
    pub max_scale_down_rate: f64,
    /// `scale-to-zero-grace-period`: how long the activators must have been in the path before the last pod
    /// ends; above 0.
    pub scale_to_zero_grace_period: Duration,
    /// `scale-to-zero-pod-retention-period`: 0 … 1 h.
    pub pod_retention: Duration,
    /// `scale-down-delay`: 0 … 1 h, whole seconds.
    pub scale_down_delay: Duration,
    /// `activator-capacity`, concurrent requests per activator; at least 1.
    pub activator_capacity: f64,
    /// `initial-scale`: 0 only if that is allowed.
    pub initial_scale: PodCount,
    /// `min-scale`: the least count of revisions that name none; 0 means no lower bound.
    pub min_scale: PodCount,
    /// `max-scale` as written; 0 means no limit.
    pub max_scale: PodCount,
    /// `max-scale-limit` as written, the most that any revision may ask for; 0 means no limit.
    pub max_scale_limit: PodCount,
    /// `surge-evaluation`: whether a queue that builds up is acted upon at once.
    pub surge_evaluation: bool,
    /// `idle-first-scale-down`: whether the least loaded pods end first.
    pub idle_first_scale_down: bool,
    /// `in-flight-holds-pods`: whether a request in flight keeps the last pod, even if no metric needs it.
    pub in_flight_holds_pods: bool,
    /// `adopted-connections-hold`: how long connections from before an adoption keep the count from falling;
    /// 0 … 168 h.
    pub adopted_connections_hold: Duration,
    /// `routing-dwell`: how long there must be room before the activator leaves the path; 0 … 1 h.
    pub routing_dwell: Duration,
    /// `drain-limit`: how long requests without a timeout may take in a pod that leaves; 0 … 24 h, whole
    /// seconds.
    pub drain_limit: Duration,
    /// `ignore-user-agents`: the clients whose requests are not measured and wake no pod.
    pub ignored_user_agents: IgnoredUserAgents,
    /// `head-size-limit`: how large the head of a request or a response may be; no annotation allows more.
    pub head_size_limit: HeadSizeLimit,
    /// `prediction`, its limits and `time-zone`.
    pub prediction: PredictionDefaults,
    /// `queue-proxy-…`: what the queue-proxy of a pod on a cluster may use.
    pub queue_proxy: QueueProxyResources,
    /// `hpa-sync-period`: how often class hpa looks at its metrics; 1 s … 1 h.
    pub hpa_sync_period: Duration,
    /// `hpa-tolerance`: how far a ratio may be off before class hpa acts; at least 0.
    pub hpa_tolerance: f64,
    /// `hpa-downscale-stabilization`: the window towards fewer pods of class hpa where a document has none; 0
    /// … 1 h.
    pub hpa_downscale_stabilization: Duration,
    /// `hpa-cpu-initialization-period`: how long after its start a pod's CPU use counts only from readiness
    /// on; 0 … 1 h.
    pub hpa_cpu_initialization_period: Duration,
    /// `hpa-initial-readiness-delay`: a pod that got unready within this time of its start was never ready; 0
    /// … 1 h.
    pub hpa_initial_readiness_delay: Duration,
    /// `prometheus-url`: the server that is asked for metrics of types Object and External; `http://…` or
    /// `https://…`. `None`: no server.
    pub prometheus_url: Option<String>,
    /// `prometheus-bearer-token-file`: the file with the token that authenticates requests to that server.
    pub prometheus_bearer_token_file: Option<String>,
    /// `prometheus-ca-file`: the certificate authorities for a server that is asked over TLS; `None`: those
    /// of the machine.
    pub prometheus_ca_file: Option<String>,
    /// `prometheus-namespace-label`: the label of a series that names its namespace; empty: series of all
    /// namespaces count.
    pub prometheus_namespace_label: String,
    /// `price-per-…-hour`: what pods are priced by.
    pub prices: ResourcePrices,
    /// `record-…`: where an autoscaler of a cluster records its run.
    pub record: RecordPlace,
    /// The texts from which all of this was read. Where Prometheus is, how it is asked and where records are
    /// is left out: nothing is decided by that, and an address may hold a password.
    #[serde(skip)]
    pub texts: SettingsTexts,
}

impl Default for ClusterConfig {
    /// Knative's defaults for keys that Knative has, and ours for the others.
    fn default() -> Self {
        let hpa = HpaSettings::default();
        Self {
            pod_autoscaler_class: Class::Kpa,
            enable_scale_to_zero: true,
            allow_zero_initial_scale: false,
            container_concurrency_target_fraction: 0.7,
            container_concurrency_target_default: 100.0,
            requests_per_second_target_default: 200.0,
            // What Knative's code says; its user documentation says 200.
            target_burst_capacity: BurstCapacity::Requests(Concurrency::clamped(211.0)),
            stable_window: Duration::from_mins(1),
            panic_window_percentage: Percentage::clamped(10.0),
            panic_threshold_percentage: Percentage::clamped(200.0),
            max_scale_up_rate: 1000.0,
            max_scale_down_rate: 2.0,
            scale_to_zero_grace_period: Duration::from_secs(30),
            pod_retention: Duration::ZERO,
            scale_down_delay: Duration::ZERO,
            activator_capacity: 100.0,
            initial_scale: PodCount::ONE,
            min_scale: PodCount::ZERO,
            max_scale: PodCount::ZERO,
            max_scale_limit: PodCount::ZERO,
            surge_evaluation: true,
            idle_first_scale_down: true,
            in_flight_holds_pods: true,
            adopted_connections_hold: Duration::from_hours(24),
            routing_dwell: Duration::from_secs(30),
            drain_limit: DRAIN_LIMIT_DEFAULT,
            ignored_user_agents: IgnoredUserAgents::default(),
            head_size_limit: HeadSizeLimit::default(),
            prediction: PredictionDefaults::default(),
            queue_proxy: QueueProxyResources::default(),
            // Kubernetes' own, as the settings of kube-controller-manager have them.
            hpa_sync_period: Duration::from_secs(15),
            hpa_tolerance: hpa.tolerance,
            hpa_downscale_stabilization: hpa.downscale_stabilization,
            hpa_cpu_initialization_period: hpa.cpu_initialization_period,
            hpa_initial_readiness_delay: hpa.initial_readiness_delay,
            prometheus_url: None,
            prometheus_bearer_token_file: None,
            prometheus_ca_file: None,
            prometheus_namespace_label: "namespace".to_owned(),
            prices: ResourcePrices::default(),
            record: RecordPlace::default(),
            texts: SettingsTexts::default(),
        }
    }
}

impl ClusterConfig {
    /// Reads the ConfigMap's data. Every problem is reported; with one, nothing of it applies.
    pub fn parse(data: &BTreeMap<String, String>) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = SettingsReader::new(SettingsPlace::ConfigMap, data);
        let mut config = Self::read(&mut reader);
        let is_place = |key: &&SettingKey| PLACE_PREFIXES.iter().any(|prefix| key.name.starts_with(prefix));
        config.texts = SettingsTexts::of(data, keys::ALL.iter().filter(|key| !is_place(key)));
        config.check_concurrency_target(&mut reader);
        config.check_scales(&mut reader);
        for key in data.keys() {
            check_key(&mut reader, key);
        }
        reader.finish(config)
    }

    fn read(reader: &mut SettingsReader<'_>) -> Self {
        let mut config = Self::default();
        macro_rules! set {
            ($($field:ident = $value:expr;)*) => {$(
                if let Some(value) = $value {
                    config.$field = value;
                }
            )*};
        }
        set! {
            pod_autoscaler_class = reader.class(&keys::POD_AUTOSCALER_CLASS);
            enable_scale_to_zero = reader.boolean(&keys::ENABLE_SCALE_TO_ZERO);
            allow_zero_initial_scale = reader.boolean(&keys::ALLOW_ZERO_INITIAL_SCALE);
            container_concurrency_target_fraction =
                reader.float(&keys::TARGET_PERCENTAGE, &limits::PERCENTAGE_OR_FRACTION).map(as_fraction);
            container_concurrency_target_default = reader.float(&keys::TARGET_DEFAULT, &limits::TARGET);
            requests_per_second_target_default = reader.float(&keys::RPS_TARGET_DEFAULT, &limits::TARGET);
            target_burst_capacity =
                reader.burst_capacity(&keys::TARGET_BURST_CAPACITY, &limits::BURST_CAPACITY);
            stable_window = reader.duration(&keys::STABLE_WINDOW, &limits::WINDOW);
            panic_window_percentage =
                reader.percentage(&keys::PANIC_WINDOW_PERCENTAGE, &limits::PERCENTAGE);
            panic_threshold_percentage =
                reader.percentage(&keys::PANIC_THRESHOLD_PERCENTAGE, &limits::PANIC_THRESHOLD);
            max_scale_up_rate = reader.float(&keys::MAX_SCALE_UP_RATE, &limits::RATE);
            max_scale_down_rate = reader.float(&keys::MAX_SCALE_DOWN_RATE, &limits::RATE);
            scale_to_zero_grace_period = reader.duration(&keys::GRACE_PERIOD, &limits::POSITIVE);
            pod_retention = reader.duration(&keys::POD_RETENTION, &limits::UP_TO_AN_HOUR);
            scale_down_delay = reader.duration(&keys::SCALE_DOWN_DELAY, &limits::DELAY);
            activator_capacity = reader.float(&keys::ACTIVATOR_CAPACITY, &limits::ACTIVATOR_CAPACITY);
            initial_scale = reader.count(&keys::INITIAL_SCALE, &limits::COUNT);
            min_scale = reader.count(&keys::MIN_SCALE, &limits::COUNT);
            max_scale = reader.count(&keys::MAX_SCALE, &limits::COUNT_OR_NO_LIMIT);
            max_scale_limit = reader.count(&keys::MAX_SCALE_LIMIT, &limits::COUNT_OR_NO_LIMIT);
            surge_evaluation = reader.boolean(&keys::SURGE_EVALUATION);
            idle_first_scale_down = reader.boolean(&keys::IDLE_FIRST_SCALE_DOWN);
            in_flight_holds_pods = reader.boolean(&keys::IN_FLIGHT_HOLDS_PODS);
            adopted_connections_hold =
                reader.duration(&keys::ADOPTED_CONNECTIONS_HOLD, &limits::ADOPTED_CONNECTIONS_HOLD);
            routing_dwell = reader.duration(&keys::ROUTING_DWELL, &limits::UP_TO_AN_HOUR);
            drain_limit = reader.duration(&keys::DRAIN_LIMIT, &limits::DRAIN_LIMIT);
            ignored_user_agents = reader.user_agents(&keys::IGNORE_USER_AGENTS);
            head_size_limit = reader.head_size(&keys::HEAD_SIZE_LIMIT);
            hpa_sync_period = reader.duration(&keys::HPA_SYNC_PERIOD, &limits::SYNC_PERIOD);
            hpa_tolerance = reader.float(&keys::HPA_TOLERANCE, &limits::TOLERANCE);
            hpa_downscale_stabilization =
                reader.duration(&keys::HPA_DOWNSCALE_STABILIZATION, &limits::UP_TO_AN_HOUR);
            hpa_cpu_initialization_period =
                reader.duration(&keys::HPA_CPU_INITIALIZATION_PERIOD, &limits::UP_TO_AN_HOUR);
            hpa_initial_readiness_delay =
                reader.duration(&keys::HPA_INITIAL_READINESS_DELAY, &limits::UP_TO_AN_HOUR);
            prometheus_url = reader.word(&keys::PROMETHEUS_URL, &limits::HTTP_URL).map(unless_empty);
            prometheus_bearer_token_file =
                reader.word(&keys::PROMETHEUS_BEARER_TOKEN_FILE, &limits::FILE).map(unless_empty);
            prometheus_ca_file =
                reader.word(&keys::PROMETHEUS_CA_FILE, &limits::FILE).map(unless_empty);
            prometheus_namespace_label = reader.word(&keys::PROMETHEUS_NAMESPACE_LABEL, &limits::LABEL);
        }
        config.prediction = PredictionDefaults::of_cluster(reader);
        config.queue_proxy = QueueProxyResources::of_cluster(reader);
        config.prices = ResourcePrices::of_cluster(reader);
        config.record = RecordPlace::of_cluster(reader);
        config
    }

    /// The settings that an evaluation of class hpa depends on.
    pub fn hpa_settings(&self) -> HpaSettings {
        HpaSettings {
            tolerance: self.hpa_tolerance,
            downscale_stabilization: self.hpa_downscale_stabilization,
            cpu_initialization_period: self.hpa_cpu_initialization_period,
            initial_readiness_delay: self.hpa_initial_readiness_delay,
        }
    }

    /// The load aimed at without any annotation must be at least the least target.
    fn check_concurrency_target(&self, reader: &mut SettingsReader<'_>) {
        let (fraction, default) = (&keys::TARGET_PERCENTAGE, &keys::TARGET_DEFAULT);
        let product = self.container_concurrency_target_fraction * self.container_concurrency_target_default;
        if product >= 0.01 || !reader.are_sound(&[fraction, default]) {
            return;
        }
        let (written, other) =
            if reader.entry(default).is_some() { (default, fraction) } else { (fraction, default) };
        let flaw =
            format!("makes {product} together with {}; raise one of them until it is 0.01", other.name);
        reader.refuse_present(written, &flaw);
    }

    fn check_scales(&self, reader: &mut SettingsReader<'_>) {
        let (min, max) = (self.min_scale, self.max_scale);
        self.check_max_scale_limit(reader);
        if reader.are_sound(&[&keys::MIN_SCALE, &keys::MAX_SCALE]) && max > PodCount::ZERO && min > max {
            let flaw =
                format!("is above {} {max}; write a whole number from 0 to {max}", keys::MAX_SCALE.name);
            reader.refuse_present(&keys::MIN_SCALE, &flaw);
        }
        if reader.are_sound(&[&keys::INITIAL_SCALE, &keys::ALLOW_ZERO_INITIAL_SCALE])
            && self.initial_scale == PodCount::ZERO
            && !self.allow_zero_initial_scale
        {
            let flaw = format!(
                "is not allowed; write at least 1, or set {} to \"true\"",
                keys::ALLOW_ZERO_INITIAL_SCALE.name
            );
            reader.refuse_present(&keys::INITIAL_SCALE, &flaw);
        }
    }

    /// A limit binds the default too, so setting one takes a default of one's own.
    fn check_max_scale_limit(&self, reader: &mut SettingsReader<'_>) {
        let (max, limit) = (self.max_scale, self.max_scale_limit);
        if limit == PodCount::ZERO
            || (PodCount::ONE..=limit).contains(&max)
            || !reader.are_sound(&[&keys::MAX_SCALE, &keys::MAX_SCALE_LIMIT])
        {
            return;
        }
        let shown = if max == PodCount::ZERO { "0 (no limit)".to_owned() } else { max.to_string() };
        let flaw = format!(
            "{} {shown} exceeds; set {} to a whole number from 1 to {limit}",
            keys::MAX_SCALE.name,
            keys::MAX_SCALE.name
        );
        reader.refuse_present(&keys::MAX_SCALE_LIMIT, &flaw);
    }
}

fn unless_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// 70 and 0.7 both mean 70 %; 1 means 100 %, as in Knative.
fn as_fraction(written: f64) -> f64 {
    if written > 1.0 { written / 100.0 } else { written }
}

fn check_key(reader: &mut SettingsReader<'_>, key: &str) {
    if key == EXAMPLE {
        // Documentation, which every ConfigMap of an installation has: a warning about it would appear
        // everywhere.
    } else if HISTORIC.contains(&key) {
        reader.warn(key, "is no longer read, by Knative either; remove it");
    } else if RETIRED_HPA_SWITCHES.contains(&key) {
        let flaw = "is retired and has no effect: class hpa decides as Kubernetes 1.37 does; remove it, for the next version refuses it";
        reader.warn(key, flaw);
    } else if is_unknown_config_key(key) {
        reader.refuse_key(key, &format!("is not known; {}", suggestion::for_config_map(key)));
    }
}

/// Whether no reader knows a key of `config-autoscaler`, so that it is refused.
pub fn is_unknown_config_key(key: &str) -> bool {
    key != EXAMPLE
        && !HISTORIC.contains(&key)
        && !RETIRED_HPA_SWITCHES.contains(&key)
        && keys::ALL.iter().all(|known| known.name != key)
}
