//! The joint meaning of annotations, ConfigMap and defaults. The products are computed in the order in which
//! Knative computes them: `6 × 0.7` is 4.199999999999999 in both, and a load of exactly 4.2 asks for two pods
//! in both.

use std::sync::Arc;
use std::time::Duration;

use vocabulary::{Percentage, PodCount, PredictionSwitch};

use super::class::Class;
use super::cluster::ClusterConfig;
use super::metric::Metric;
use super::revision_settings::RevisionSettings;
use super::spec::{PredictionSettings, ScalingSpec, TARGET_MIN};
use crate::hpa::reading::document_of_short_form;
use crate::hpa::{HpaScaling, MetricSpec};

/// How full a pod is meant to be when request rate is the metric. No setting changes it.
const RPS_UTILIZATION: f64 = 0.7;

/// The time that an activation may take beyond the progress deadline, so that the platform's own verdict
/// comes first.
pub const ACTIVATION_TIMEOUT_BUFFER: Duration = Duration::from_secs(30);

/// Knative's progress deadline where no annotation sets one.
pub const PROGRESS_DEADLINE_DEFAULT: Duration = Duration::from_mins(10);

impl RevisionSettings {
    /// Joins annotations, ConfigMap and defaults. `container_concurrency` is the most requests that run in
    /// one pod at once, 0 for no limit; `progress_deadline` how long a pod may take to get ready.
    pub fn resolve(
        &self,
        cluster: &ClusterConfig,
        container_concurrency: u32,
        progress_deadline: Duration,
    ) -> ScalingSpec {
        // `window` of class hpa is its stabilization window.
        let window = if self.is_hpa(cluster) { self.own_stable_window } else { self.stable_window };
        let stable_window = window.unwrap_or(cluster.stable_window);
        let panic_percentage = self.panic_window_percentage.unwrap_or(cluster.panic_window_percentage);
        let panic_threshold = self.panic_threshold_percentage.unwrap_or(cluster.panic_threshold_percentage);
        let max_scale = self.max_scale.unwrap_or(cluster.max_scale);
        let load = self.load_per_pod(cluster, container_concurrency);
        let spec = ScalingSpec {
            metric: self.metric.unwrap_or_default(),
            aggregation: self.aggregation.unwrap_or_default(),
            stable_window,
            panic_window: panic_window(stable_window, panic_percentage),
            target_per_pod: load.target,
            total_per_pod: load.total,
            max_scale_up_rate: cluster.max_scale_up_rate,
            max_scale_down_rate: cluster.max_scale_down_rate,
            panic_threshold: panic_threshold.fraction(),
            target_burst_capacity: self.target_burst_capacity.unwrap_or(cluster.target_burst_capacity),
            activator_capacity: cluster.activator_capacity,
            scale_down_delay: self.scale_down_delay.unwrap_or(cluster.scale_down_delay),
            activation_scale: self.activation_scale.unwrap_or_default(),
            min_scale: self.min_scale.unwrap_or(cluster.min_scale),
            floor: None,
            max_scale: (max_scale > PodCount::ZERO).then_some(max_scale),
            initial_scale: self.initial_scale(cluster),
            scale_to_zero: cluster.enable_scale_to_zero,
            scale_to_zero_grace_period: cluster.scale_to_zero_grace_period,
            pod_retention: self.pod_retention.unwrap_or(cluster.pod_retention),
            activation_timeout: progress_deadline.saturating_add(ACTIVATION_TIMEOUT_BUFFER),
            reachable: true,
            surge_evaluation: self.surge_evaluation.unwrap_or(cluster.surge_evaluation),
            routing_dwell: self.routing_dwell.unwrap_or(cluster.routing_dwell),
            idle_first_scale_down: self.idle_first_scale_down.unwrap_or(cluster.idle_first_scale_down),
            in_flight_holds_pods: self.in_flight_holds_pods.unwrap_or(cluster.in_flight_holds_pods),
            adopted_connections_hold: self.adopted_connections_hold(cluster),
            shadow: self.shadow == Some(true) || self.paused == Some(true),
            prediction: self.prediction_settings(cluster),
            schedule: self.schedule.clone(),
            time_zone: self.time_zone.clone().unwrap_or_else(|| cluster.prediction.time_zone.clone()),
            hpa: None,
        };
        match self.hpa_scaling(cluster) {
            Some(hpa) => hpa_spec(spec, hpa),
            None => spec,
        }
    }

    fn is_hpa(&self, cluster: &ClusterConfig) -> bool {
        *self.effective_class(cluster) == Class::Hpa
    }

    /// What is asked of prediction; `None` where it is off. Class hpa asks for it by its annotation alone.
    fn prediction_settings(&self, cluster: &ClusterConfig) -> Option<PredictionSettings> {
        let defaults = &cluster.prediction;
        let switch = match self.effective_class(cluster) {
            Class::Kpa => self.prediction.unwrap_or(defaults.switch),
            Class::Ahpa => self.prediction.unwrap_or(PredictionSwitch::Auto),
            Class::Hpa => self.prediction.unwrap_or(PredictionSwitch::Off),
            Class::Other(_) => PredictionSwitch::Off,
        };
        (switch != PredictionSwitch::Off).then(|| PredictionSettings {
            observes_only: switch == PredictionSwitch::Observe,
            budget: self.prediction_budget.unwrap_or(defaults.budget),
            cold_start_worth: self.cold_start_worth.unwrap_or(defaults.cold_start_worth),
            scale_up_forward: self.scale_up_forward.unwrap_or(defaults.scale_up_forward),
            bin: defaults.bin,
        })
    }

    /// The settings of class hpa, if it is the class. An invalid short form was refused where it was read.
    fn hpa_scaling(&self, cluster: &ClusterConfig) -> Option<HpaScaling> {
        if !self.is_hpa(cluster) {
            return None;
        }
        let metric = self.metric_name.as_deref();
        let document = self
            .document
            .clone()
            .map_or_else(|| document_of_short_form(self, metric, cluster).ok(), |document| Some(*document));
        Some(HpaScaling {
            spec: document?.with_settings(cluster.hpa_settings()),
            sync_period: self.hpa_sync_period.unwrap_or(cluster.hpa_sync_period),
            requests: self.requests.clone(),
            usage: self.usage,
        })
    }

    /// The pod's limit bounds what an annotation may aim at for concurrency; request rates are not bounded by
    /// it.
    fn load_per_pod(&self, cluster: &ClusterConfig, container_concurrency: u32) -> LoadPerPod {
        let hard_limit = (container_concurrency > 0).then(|| f64::from(container_concurrency));
        let (default_total, default_utilization) = match self.metric.unwrap_or_default() {
            Metric::Concurrency => (
                hard_limit.unwrap_or(cluster.container_concurrency_target_default),
                cluster.container_concurrency_target_fraction,
            ),
            Metric::Rps => (cluster.requests_per_second_target_default, RPS_UTILIZATION),
        };
        let total = match (self.target, self.metric.unwrap_or_default(), hard_limit) {
            (Some(target), Metric::Concurrency, Some(limit)) => target.min(limit),
            (Some(target), Metric::Concurrency, None) | (Some(target), Metric::Rps, _) => target,
            (None, _, _) => default_total,
        };
        let utilization = self.target_utilization.map_or(default_utilization, Percentage::fraction);
        LoadPerPod { target: (total * utilization).max(TARGET_MIN), total }
    }

    fn adopted_connections_hold(&self, cluster: &ClusterConfig) -> Duration {
        if self.forget_connections == Some(true) { Duration::ZERO } else { cluster.adopted_connections_hold }
    }

    /// Zero counts only while the ConfigMap allows it, which may have changed since the annotation was read.
    fn initial_scale(&self, cluster: &ClusterConfig) -> PodCount {
        match self.initial_scale {
            Some(count) if count > PodCount::ZERO || cluster.allow_zero_initial_scale => count,
            Some(_) | None => cluster.initial_scale,
        }
    }
}

/// The settings of class kpa as they apply to a revision of class hpa: bounds are the document's, and the
/// route follows from the first own metric. Without an own metric requests are not measured, so none of them
/// is a surge.
fn hpa_spec(base: ScalingSpec, hpa: HpaScaling) -> ScalingSpec {
    let document = &hpa.spec;
    let max_scale = (document.max < PodCount::MAX).then_some(document.max);
    let bounded = ScalingSpec { min_scale: document.min, max_scale, ..base };
    let own = document.metrics.iter().find_map(|metric| bounded.for_own_metric(metric));
    let spec = if let Some(own) = own {
        ScalingSpec {
            min_scale: bounded.min_scale,
            max_scale: bounded.max_scale,
            prediction: bounded.prediction,
            schedule: bounded.schedule,
            ..own
        }
    } else {
        let prediction = bounded.prediction.filter(|_| document.metrics.iter().any(MetricSpec::is_cpu));
        ScalingSpec { surge_evaluation: false, prediction, ..bounded }
    };
    ScalingSpec { hpa: Some(Arc::new(hpa)), ..spec }
}

impl Default for ScalingSpec {
    /// A revision without annotations under an empty ConfigMap, without a limit on its pods.
    fn default() -> Self {
        RevisionSettings::default().resolve(&ClusterConfig::default(), 0, PROGRESS_DEADLINE_DEFAULT)
    }
}

struct LoadPerPod {
    /// The load per pod to aim at; at least 0.01.
    target: f64,
    /// The most load that a pod can take.
    total: f64,
}

/// The share of the stable window in whole seconds, halves rounded up, at least one. Knative multiplies
/// nanoseconds and cuts the product to whole ones before it rounds; near a half that decides.
fn panic_window(stable: Duration, percentage: Percentage) -> Duration {
    const NANOSECONDS: f64 = 1e9;
    let product = (stable.as_secs_f64() * NANOSECONDS * percentage.value() / 100.0).trunc();
    let seconds = ((product + NANOSECONDS / 2.0) / NANOSECONDS).floor();
    Duration::try_from_secs_f64(seconds.max(1.0)).unwrap_or(stable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_window_is_rounded_as_by_the_reference() {
        // Stable seconds, percentage, panic seconds: the last three are a hair below a half in nanoseconds
        // and a half in seconds.
        for (stable, percentage, expected) in [
            (60, 10.0, 6),
            (60, 51.0, 31),
            (15, 10.0, 2),
            (25, 10.0, 3),
            (6, 10.0, 1),
            (6, 1.0, 1),
            (3600, 100.0, 3600),
            (125, 16.4, 20),
            (125, 34.8, 43),
            (125, 67.6, 84),
        ] {
            let window = panic_window(Duration::from_secs(stable), Percentage::clamped(percentage));
            assert_eq!(window, Duration::from_secs(expected), "{stable} s at {percentage} %");
        }
    }
}
