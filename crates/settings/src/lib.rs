//! The settings that people write: annotations, ConfigMaps and documents of class hpa, read and checked.
//!
//! Two layers are read, each from a map of strings: the ConfigMap `config-autoscaler` ([`ClusterConfig`]) and
//! a revision's annotations ([`RevisionSettings`]). Both report every problem at once.
//! [`RevisionSettings::resolve`] joins them into a [`ScalingSpec`], after which no string is read again.
//!
//! Keys, syntax and defaults are Knative's. Stricter than Knative on purpose: NaN and infinities, values out
//! of range and unknown keys are refused in both layers, by the same limits, because a setting that silently
//! does nothing is found at night.

mod annotations;
mod class;
mod cluster;
mod count_schedule;
mod demand;
mod duration_ranges;
mod hourly_price;
pub mod hpa;
mod installed_knative;
mod keys;
mod knative_release;
mod limits;
mod metric;
mod numbers;
mod prediction;
mod prices;
mod queue_proxy;
mod reader;
mod record_place;
mod request_limits;
mod resolve;
mod resource_amount;
mod revision_settings;
mod spec;
mod suggestion;
mod texts;
mod waiting_page_setting;
pub mod whole_form;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

pub use annotations::{
    SeparateDocument, drain_limit, ignored_user_agents, is_unknown_annotation, lacks_unit,
    misplaced_annotations, progress_deadline,
};
pub use class::Class;
pub use cluster::{ClusterConfig, is_unknown_config_key};
pub use count_schedule::{check_schedule_bounds, read_count_schedule};
pub use demand::{DemandMetric, PodDemand};
pub use duration_ranges::duration_range;
pub use hourly_price::{Currency, HourlyPrice};
pub use installed_knative::{
    BucketCount, LeaderElection, LeaseTimes, ProfileRefusal, network_refusals, progress_deadline_of,
};
pub use keys::{
    ANNOTATION_PREFIXES, CLASS_ANNOTATION, CONFIG_MAP_NAME, DRAIN_LIMIT_ANNOTATION, HOSTS_ANNOTATION,
    IGNORE_USER_AGENTS_ANNOTATION, PROGRESS_DEADLINE_ANNOTATION, WAITING_PAGE_ANNOTATION, annotation_keys,
    config_map_keys,
};
pub use knative_release::{KNATIVE_MINOR_MIN, KNATIVE_MINOR_TESTED, KNATIVE_VERSION_LABEL, KnativeRelease};
pub use metric::Metric;
pub use prediction::PredictionDefaults;
pub use prices::ResourcePrices;
pub use queue_proxy::QueueProxyResources;
pub use record_place::RecordPlace;
pub use request_limits::RequestLimits;
pub use resolve::{ACTIVATION_TIMEOUT_BUFFER, PROGRESS_DEADLINE_DEFAULT};
pub use resource_amount::ResourceAmount;
pub use revision_settings::RevisionSettings;
pub use spec::{Aggregation, FloorCause, PlatformFloor, PredictionSettings, ScalingSpec};
pub use texts::SettingsTexts;
pub use waiting_page_setting::WaitingPageSetting;
