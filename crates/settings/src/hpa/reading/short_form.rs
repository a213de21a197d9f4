//! Knative's short form: `metric`, `target`, `min-scale`, `max-scale` and `window` as annotations, and the
//! document that they mean.
//!
//! As Knative's autoscaler for this class does it, but for two things. Knative's `concurrency` and `rps` name
//! metrics that an adapter would have to serve; here they are our own measurements, and with them `min-scale`
//! 0 means zero. And where Knative rounds a target down to nothing, or forgets a metric because it has no
//! target, the annotation is refused.

use vocabulary::{MilliValue, PodCount, Problem, printable, shown};

use super::document::HpaDocument;
use super::names::is_path_segment;
use crate::hpa::behavior::{Behavior, RulesOrigin, ScalingRules};
use crate::hpa::selector::LabelSelector;
use crate::hpa::spec::{MetricIdentifier, MetricSpec, ResourceName, ResourceTarget};
use crate::{ClusterConfig, Metric, RevisionSettings};

const METRIC: &str = "autoscaling.knative.dev/metric";
const TARGET: &str = "autoscaling.knative.dev/target";

/// The default of Kubernetes and of Knative, in percent of what is requested.
const CPU_UTILIZATION_DEFAULT: u32 = 80;

/// A mebibyte in thousandths of a byte.
const MEBIBYTE: f64 = 1_048_576_000.0;

/// The document that annotations of class hpa stand for. `metric` is the annotation as it is written.
pub(crate) fn document_of_short_form(
    settings: &RevisionSettings,
    metric: Option<&str>,
    cluster: &ClusterConfig,
) -> Result<HpaDocument, Problem> {
    let metric = metric_of(settings, metric.unwrap_or("cpu"), cluster)?;
    let min = settings.min_scale.unwrap_or(cluster.min_scale);
    let max = settings.max_scale.unwrap_or(cluster.max_scale);
    let least = if matches!(metric, MetricSpec::Own { .. }) { PodCount::ZERO } else { PodCount::ONE };
    let behavior = settings.stable_window.map(|window| {
        let windowed = |rules| ScalingRules { stabilization_window: Some(window), ..rules };
        Behavior {
            scale_up: windowed(ScalingRules::default_up()),
            scale_down: ScalingRules {
                origin: RulesOrigin::Document,
                ..windowed(ScalingRules::default_down())
            },
        }
    });
    Ok(HpaDocument {
        min: min.max(least),
        max: if max == PodCount::ZERO { PodCount::MAX } else { max },
        metrics: vec![metric],
        behavior,
    })
}

fn metric_of(
    settings: &RevisionSettings,
    name: &str,
    cluster: &ClusterConfig,
) -> Result<MetricSpec, Problem> {
    let own = |metric, default: f64| {
        let target = MilliValue::ceil_from(settings.target.unwrap_or(default) * 1000.0);
        MetricSpec::Own { metric, target }
    };
    match (name, settings.target) {
        ("concurrency", _) => Ok(own(Metric::Concurrency, cluster.container_concurrency_target_default)),
        ("rps", _) => Ok(own(Metric::Rps, cluster.requests_per_second_target_default)),
        ("cpu", target) => {
            let percent =
                target.map_or(CPU_UTILIZATION_DEFAULT, |target| PodCount::ceil_from(target).value());
            Ok(resource(ResourceName::Cpu, ResourceTarget::Utilization(percent)))
        }
        ("memory", Some(target)) => {
            let amount = MilliValue::ceil_from(whole(target, "Mi of memory")? * MEBIBYTE);
            Ok(resource(ResourceName::Memory, ResourceTarget::AverageValue(amount)))
        }
        // It is a part of the path at which the autoscaler asks for it, with its own rights.
        (name, _) if !is_path_segment(name) => Err(Problem {
            key: METRIC.to_owned(),
            message: format!(
                "annotation {METRIC} is {}, which no metric can be called; write a name without \"/\" and \"%\"",
                shown(name)
            ),
        }),
        (name, Some(target)) => {
            let target = MilliValue::ceil_from(whole(target, name)? * 1000.0);
            let metric = MetricIdentifier { name: name.into(), selector: LabelSelector::default() };
            Ok(MetricSpec::Pods { metric, target })
        }
        (name, None) => Err(Problem {
            key: METRIC.to_owned(),
            message: format!(
                "annotation {METRIC} is {}, which has no default to aim at; write annotation {TARGET} too",
                shown(name)
            ),
        }),
    }
}

fn resource(resource: ResourceName, target: ResourceTarget) -> MetricSpec {
    MetricSpec::Resource { resource, container: None, target }
}

/// Knative cuts the fraction off.
fn whole(target: f64, unit: &str) -> Result<f64, Problem> {
    if target >= 1.0 {
        return Ok(target.trunc());
    }
    let unit = printable(unit);
    let message = format!(
        "annotation {TARGET} is {target}, which is less than 1 {unit}; write a whole number of at least 1"
    );
    Err(Problem { key: TARGET.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn read(words: &str) -> Result<HpaDocument, String> {
        let annotations: BTreeMap<String, String> = format!("class=hpa.autoscaling.knative.dev {words}")
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), value.to_owned()))
            .collect();
        let cluster = ClusterConfig::default();
        let settings = match RevisionSettings::read(&annotations, &cluster, None) {
            Ok(checked) => checked.value,
            Err(problems) => return Err(problems[0].to_string()),
        };
        let metric = annotations.get(METRIC).map(String::as_str);
        document_of_short_form(&settings, metric, &cluster).map_err(|problem| problem.to_string())
    }

    fn metric(words: &str) -> MetricSpec {
        read(words).unwrap().metrics.remove(0)
    }

    fn cpu(percent: u32) -> MetricSpec {
        resource(ResourceName::Cpu, ResourceTarget::Utilization(percent))
    }

    fn pods(name: &str, target: i64) -> MetricSpec {
        let metric = MetricIdentifier { name: name.into(), selector: LabelSelector::default() };
        MetricSpec::Pods { metric, target: MilliValue::new(target) }
    }

    /// Rows O1 to O7 of Knative's reference; of O5 only that it is refused here.
    #[test]
    fn the_short_form_has_the_meaning_of_knative() {
        let plain = read("").unwrap();
        assert_eq!((plain.min, plain.max), (PodCount::ONE, PodCount::MAX));
        assert_eq!((plain.metrics, plain.behavior), (vec![cpu(80)], None));
        let bounded = read("min-scale=5 max-scale=5").unwrap();
        assert_eq!((bounded.min, bounded.max), (PodCount::new(5), PodCount::new(5)));
        assert_eq!(metric("metric=cpu target=50"), cpu(50));
        assert_eq!(metric("metric=cpu target=1982.4"), cpu(1983));
        let fifty = ResourceTarget::AverageValue(MilliValue::new(52_428_800_000));
        assert_eq!(metric("metric=memory target=50"), resource(ResourceName::Memory, fifty));
        assert_eq!(metric("metric=customMetric target=50"), pods("customMetric", 50_000));
        assert_eq!(metric("metric=customMetric target=1.9"), pods("customMetric", 1000));
        let windowed = read("metric=cpu target=50 window=60s").unwrap().behavior.unwrap();
        let window = Some(Duration::from_secs(60));
        assert_eq!(windowed.scale_up.stabilization_window, window);
        assert_eq!(windowed.scale_down.stabilization_window, window);
        assert_eq!(windowed.scale_up.policies, ScalingRules::default_up().policies);
    }

    #[test]
    fn own_metrics_may_go_to_zero_and_others_may_not() {
        let document = read("metric=concurrency target=7.5 min-scale=0").unwrap();
        assert_eq!(document.min, PodCount::ZERO);
        let target = MilliValue::new(7500);
        assert_eq!(document.metrics, [MetricSpec::Own { metric: Metric::Concurrency, target }]);
        let target = MilliValue::new(200_000);
        assert_eq!(metric("metric=rps"), MetricSpec::Own { metric: Metric::Rps, target });
        assert_eq!(read("metric=cpu min-scale=0").unwrap().min, PodCount::ONE);
    }

    /// The annotation `window` holds recommendations back, but not requests: it sets no limit for those.
    #[test]
    fn a_window_does_not_hold_requests_back() {
        let behavior = read("metric=rps window=60s").unwrap().behavior.unwrap();
        assert_eq!(behavior.scale_up.origin, RulesOrigin::Default);
    }

    #[test]
    fn a_name_that_leads_out_of_its_path_is_refused() {
        for name in ["../../pods", "a/b", "q?x", "q#", "50%", ".."] {
            for words in [format!("metric={name} target=50"), format!("metric={name}")] {
                let said = read(&words).expect_err(name);
                assert!(said.contains("which no metric can be called"), "{said}");
            }
        }
    }

    #[test]
    fn a_target_that_would_be_rounded_to_nothing_or_forgotten_is_refused() {
        for (words, message) in [
            (
                "metric=memory target=0.5",
                "annotation autoscaling.knative.dev/target is 0.5, which is less than 1 Mi of memory; write a whole number of at least 1",
            ),
            (
                "metric=packets target=0.5",
                "annotation autoscaling.knative.dev/target is 0.5, which is less than 1 packets; write a whole number of at least 1",
            ),
            (
                "metric=memory",
                "annotation autoscaling.knative.dev/metric is \"memory\", which has no default to aim at; write annotation autoscaling.knative.dev/target too",
            ),
        ] {
            assert_eq!(read(words), Err(message.to_owned()));
        }
    }
}
