//! Every key that is read, in one place, so that the readers, the suggestions for misspelt keys and the
//! documentation cannot drift apart.

/// The ConfigMap with the settings of all revisions.
pub const CONFIG_MAP_NAME: &str = "config-autoscaler";

/// Prefixes under which every annotation is ours to know.
pub const ANNOTATION_PREFIXES: [&str; 2] = ["autoscaling.knative.dev/", "ebb.dev/"];

/// How long a pod may take to get ready. It is Knative's, but not among the autoscaling keys, so it stands
/// under another prefix.
pub const PROGRESS_DEADLINE_ANNOTATION: &str = "serving.knative.dev/progress-deadline";

/// Which class scales a revision.
pub const CLASS_ANNOTATION: &str = "autoscaling.knative.dev/class";

/// How long requests that have no timeout may take in a pod that leaves.
pub const DRAIN_LIMIT_ANNOTATION: &str = "ebb.dev/drain-limit";

/// The clients whose requests are passed on and answered, but not measured.
pub const IGNORE_USER_AGENTS_ANNOTATION: &str = "ebb.dev/ignore-user-agents";

/// Further hosts of a Service on one machine. It stands on the Service itself, for all of its templates.
pub const HOSTS_ANNOTATION: &str = "ebb.dev/hosts";

/// What a browser is shown while it would wait for a pod.
pub const WAITING_PAGE_ANNOTATION: &str = "ebb.dev/waiting-page";

/// A key and, where one exists, its old camelCase spelling.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingKey {
    pub(super) name: &'static str,
    pub(super) old: Option<&'static str>,
}

const fn key(name: &'static str) -> SettingKey {
    SettingKey { name, old: None }
}

/// Declares the keys of one place as constants, and the list of them all.
macro_rules! keys {
    ($(#[$doc:meta])* $module:ident: $($constant:ident = $name:expr $(, formerly $old:expr)?;)*) => {
        $(#[$doc])*
        pub(super) mod $module {
            use super::{SettingKey, key};

            $(pub(crate) const $constant: SettingKey = {
                #[allow(unused_mut, reason = "only keys with an old spelling are changed")]
                let mut declared = key($name);
                $(declared.old = Some($old);)?
                declared
            };)*

            pub(crate) const ALL: &[SettingKey] = &[$($constant),*];
        }
    };
}

keys! {
    /// Annotations of a pod template.
    annotation:
    CLASS = super::CLASS_ANNOTATION;
    METRIC = "autoscaling.knative.dev/metric";
    AGGREGATION = "autoscaling.knative.dev/metric-aggregation-algorithm",
        formerly "autoscaling.knative.dev/metricAggregationAlgorithm";
    TARGET = "autoscaling.knative.dev/target";
    TARGET_UTILIZATION = "autoscaling.knative.dev/target-utilization-percentage",
        formerly "autoscaling.knative.dev/targetUtilizationPercentage";
    MIN_SCALE = "autoscaling.knative.dev/min-scale", formerly "autoscaling.knative.dev/minScale";
    MAX_SCALE = "autoscaling.knative.dev/max-scale", formerly "autoscaling.knative.dev/maxScale";
    INITIAL_SCALE = "autoscaling.knative.dev/initial-scale", formerly "autoscaling.knative.dev/initialScale";
    ACTIVATION_SCALE = "autoscaling.knative.dev/activation-scale";
    SCALE_DOWN_DELAY = "autoscaling.knative.dev/scale-down-delay",
        formerly "autoscaling.knative.dev/scaleDownDelay";
    WINDOW = "autoscaling.knative.dev/window";
    PANIC_WINDOW_PERCENTAGE = "autoscaling.knative.dev/panic-window-percentage",
        formerly "autoscaling.knative.dev/panicWindowPercentage";
    PANIC_THRESHOLD_PERCENTAGE = "autoscaling.knative.dev/panic-threshold-percentage",
        formerly "autoscaling.knative.dev/panicThresholdPercentage";
    TARGET_BURST_CAPACITY = "autoscaling.knative.dev/target-burst-capacity",
        formerly "autoscaling.knative.dev/targetBurstCapacity";
    POD_RETENTION = "autoscaling.knative.dev/scale-to-zero-pod-retention-period",
        formerly "autoscaling.knative.dev/scaleToZeroPodRetentionPeriod";
    SURGE_EVALUATION = "ebb.dev/surge-evaluation";
    IDLE_FIRST_SCALE_DOWN = "ebb.dev/idle-first-scale-down";
    IN_FLIGHT_HOLDS_PODS = "ebb.dev/in-flight-holds-pods";
    FORGET_CONNECTIONS = "ebb.dev/forget-connections";
    ROUTING_DWELL = "ebb.dev/routing-dwell";
    DRAIN_LIMIT = super::DRAIN_LIMIT_ANNOTATION;
    IGNORE_USER_AGENTS = super::IGNORE_USER_AGENTS_ANNOTATION;
    HEAD_SIZE_LIMIT = "ebb.dev/head-size-limit";
    HPA = "ebb.dev/hpa";
    HPA_SYNC_PERIOD = "ebb.dev/hpa-sync-period";
    OWN_STABLE_WINDOW = "ebb.dev/stable-window";
    SHADOW = "ebb.dev/shadow";
    PAUSED = "ebb.dev/paused";
    PREDICTION = "ebb.dev/prediction";
    PREDICTION_BUDGET = "ebb.dev/prediction-budget";
    COLD_START_WORTH = "ebb.dev/cold-start-worth";
    SCALE_UP_FORWARD = "ebb.dev/scale-up-forward";
    TIME_ZONE = "ebb.dev/time-zone";
    SCHEDULE = "ebb.dev/schedule";
    WAITING_PAGE = super::WAITING_PAGE_ANNOTATION;
}

keys! {
    /// Annotations of a pod template on a cluster that only the injector of the queue-proxy reads.
    injection:
    CPU_REQUEST = "ebb.dev/queue-proxy-cpu-request";
    MEMORY_REQUEST = "ebb.dev/queue-proxy-memory-request";
    CPU_LIMIT = "ebb.dev/queue-proxy-cpu-limit";
    MEMORY_LIMIT = "ebb.dev/queue-proxy-memory-limit";
    GUARANTEED_CPU = "ebb.dev/queue-proxy-guaranteed-cpu";
    GUARANTEED_MEMORY = "ebb.dev/queue-proxy-guaranteed-memory";
}

keys! {
    /// Limits of pods on a cluster, which their queue-proxy is started with.
    pod_limit:
    CONCURRENCY = "ebb.dev/container-concurrency";
    TIMEOUT = "ebb.dev/timeout";
    RESPONSE_START_TIMEOUT = "ebb.dev/response-start-timeout";
    IDLE_TIMEOUT = "ebb.dev/idle-timeout";
}

keys! {
    /// The keys of the ConfigMap `config-autoscaler`.
    config_map:
    POD_AUTOSCALER_CLASS = "pod-autoscaler-class";
    ENABLE_SCALE_TO_ZERO = "enable-scale-to-zero";
    ALLOW_ZERO_INITIAL_SCALE = "allow-zero-initial-scale";
    TARGET_PERCENTAGE = "container-concurrency-target-percentage";
    TARGET_DEFAULT = "container-concurrency-target-default";
    RPS_TARGET_DEFAULT = "requests-per-second-target-default";
    TARGET_BURST_CAPACITY = "target-burst-capacity";
    STABLE_WINDOW = "stable-window";
    PANIC_WINDOW_PERCENTAGE = "panic-window-percentage";
    PANIC_THRESHOLD_PERCENTAGE = "panic-threshold-percentage";
    MAX_SCALE_UP_RATE = "max-scale-up-rate";
    MAX_SCALE_DOWN_RATE = "max-scale-down-rate";
    GRACE_PERIOD = "scale-to-zero-grace-period";
    POD_RETENTION = "scale-to-zero-pod-retention-period";
    SCALE_DOWN_DELAY = "scale-down-delay";
    ACTIVATOR_CAPACITY = "activator-capacity";
    INITIAL_SCALE = "initial-scale";
    MIN_SCALE = "min-scale";
    MAX_SCALE = "max-scale";
    MAX_SCALE_LIMIT = "max-scale-limit";
    SURGE_EVALUATION = "surge-evaluation";
    IDLE_FIRST_SCALE_DOWN = "idle-first-scale-down";
    IN_FLIGHT_HOLDS_PODS = "in-flight-holds-pods";
    ADOPTED_CONNECTIONS_HOLD = "adopted-connections-hold";
    ROUTING_DWELL = "routing-dwell";
    DRAIN_LIMIT = "drain-limit";
    IGNORE_USER_AGENTS = "ignore-user-agents";
    HEAD_SIZE_LIMIT = "head-size-limit";
    QUEUE_PROXY_CPU_REQUEST = "queue-proxy-cpu-request";
    QUEUE_PROXY_MEMORY_REQUEST = "queue-proxy-memory-request";
    QUEUE_PROXY_CPU_LIMIT = "queue-proxy-cpu-limit";
    QUEUE_PROXY_MEMORY_LIMIT = "queue-proxy-memory-limit";
    QUEUE_PROXY_GUARANTEED_CPU = "queue-proxy-guaranteed-cpu";
    QUEUE_PROXY_GUARANTEED_MEMORY = "queue-proxy-guaranteed-memory";
    PREDICTION = "prediction";
    PREDICTION_BUDGET = "prediction-budget";
    COLD_START_WORTH = "cold-start-worth";
    SCALE_UP_FORWARD = "scale-up-forward";
    TIME_ZONE = "time-zone";
    PREDICTION_BIN = "prediction-bin";
    HPA_SYNC_PERIOD = "hpa-sync-period";
    HPA_TOLERANCE = "hpa-tolerance";
    HPA_DOWNSCALE_STABILIZATION = "hpa-downscale-stabilization";
    HPA_CPU_INITIALIZATION_PERIOD = "hpa-cpu-initialization-period";
    HPA_INITIAL_READINESS_DELAY = "hpa-initial-readiness-delay";
    PROMETHEUS_URL = "prometheus-url";
    PROMETHEUS_BEARER_TOKEN_FILE = "prometheus-bearer-token-file";
    PROMETHEUS_CA_FILE = "prometheus-ca-file";
    PROMETHEUS_NAMESPACE_LABEL = "prometheus-namespace-label";
    PRICE_PER_CPU_HOUR = "price-per-cpu-hour";
    PRICE_PER_GIB_HOUR = "price-per-gib-hour";
    RECORD_DIRECTORY = "record-directory";
    RECORD_SIZE = "record-size";
}

/// Holds the documented keys of a ConfigMap as Knative ships it; it sets nothing.
pub(super) const EXAMPLE: &str = "_example";

/// Keys that Knative once read and that old ConfigMaps still carry.
pub(super) const HISTORIC: [&str; 2] = ["tick-interval", "panic-window"];

/// Keys that once chose the behavior of Kubernetes before 1.37 for class hpa. They get a warning for one
/// version, so that a ConfigMap which has them survives the upgrade; after it they are unknown keys.
pub(super) const RETIRED_HPA_SWITCHES: [&str; 5] = [
    "hpa-tolerance-by-distance",
    "hpa-on-target-keeps-count",
    "hpa-none-ready-keeps-count",
    "hpa-ignore-terminating-pods",
    "hpa-lacking-requests-are-missing",
];

/// Every annotation that may stand on a pod template, in its present spelling.
pub fn annotation_keys() -> impl Iterator<Item = &'static str> {
    annotation::ALL.iter().chain(injection::ALL).map(|key| key.name)
}

/// Every key that may stand in the ConfigMap.
pub fn config_map_keys() -> impl Iterator<Item = &'static str> {
    config_map::ALL.iter().map(|key| key.name)
}
