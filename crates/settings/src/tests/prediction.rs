//! Prediction and schedules: what is read, what applies, and what is refused.

use std::time::Duration;

use vocabulary::{MilliValue, Percentage, PodCount, ScaleUpForward, TimeZoneName, WeekMinute};

use super::super::{Class, ClusterConfig, DemandMetric, Metric, PodDemand, PredictionSettings, ScalingSpec};
use super::{annotated, cluster, map};
use crate::hpa::{ContainerRequests, ResourceRequests};

const AHPA: &str = "ahpa.autoscaling.knative.dev";
const HPA: &str = "hpa.autoscaling.knative.dev";

const OWN_AND_CPU: &str = "
maxReplicas: 10
metrics:
  - {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 10}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
";
const MEMORY: &str = "
maxReplicas: 10
metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
";
const CPU_AND_MEMORY: &str = "
maxReplicas: 10
metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
";

fn spec(config: &[(&str, &str)], annotations: &[(&str, &str)]) -> ScalingSpec {
    let config = cluster(config);
    let settings = annotated(annotations, &config).expect("the test's annotations are valid").value;
    settings.resolve(&config, 0, Duration::from_mins(10))
}

fn by_default() -> PredictionSettings {
    PredictionSettings {
        observes_only: false,
        budget: Percentage::clamped(10.0),
        cold_start_worth: Duration::from_mins(20),
        scale_up_forward: ScaleUpForward::Measured,
        bin: Duration::from_secs(60),
    }
}

#[test]
fn class_ahpa_is_class_kpa_with_prediction() {
    assert_eq!(spec(&[], &[]).prediction, None);
    let ahpa = spec(&[], &[("class", AHPA)]);
    assert_eq!(ahpa.prediction, Some(by_default()));
    assert_eq!(ScalingSpec { prediction: None, ..ahpa.clone() }, ScalingSpec::default());
    assert_eq!(spec(&[], &[("ebb.dev/prediction", "auto")]), ahpa, "the way around another webhook");
    assert_eq!(spec(&[("pod-autoscaler-class", AHPA)], &[]), ahpa);
    assert_eq!(spec(&[], &[("class", AHPA), ("ebb.dev/prediction", "off")]), ScalingSpec::default());
    let config = ClusterConfig::default();
    let settings = annotated(&[("class", AHPA)], &config).expect("valid").value;
    assert_eq!(settings.effective_class(&config), &Class::Ahpa);
    assert_eq!(settings.require_class_of_ours(&config), Ok(()));
}

#[test]
fn class_hpa_predicts_its_own_metrics_where_it_is_asked_to() {
    let own = [("class", HPA), ("metric", "rps"), ("target", "50")];
    assert_eq!(spec(&[("prediction", "auto")], &own).prediction, None, "the ConfigMap's is class kpa's");
    let asked: Vec<(&str, &str)> = own.into_iter().chain([("ebb.dev/prediction", "auto")]).collect();
    let spec = spec(&[], &asked);
    assert_eq!((spec.prediction, spec.metric), (Some(by_default()), Metric::Rps));
    assert_eq!((spec.target_per_pod, spec.total_per_pod), (50.0, 50.0));
}

#[test]
fn demand_of_class_hpa_is_that_of_its_requests_or_of_its_processors() {
    let demand = |document: &str, requests: Option<i64>| {
        let annotations = [("ebb.dev/hpa", document), ("ebb.dev/prediction", "auto")];
        let config = ClusterConfig::default();
        let mut settings = annotated(&annotations, &config).expect("the test's annotations are valid").value;
        let requests = ResourceRequests { cpu: requests.map(MilliValue::new), ..ResourceRequests::default() };
        settings.requests.containers = vec![ContainerRequests { name: "app".into(), requests }];
        let spec = settings.resolve(&config, 0, Duration::from_mins(10));
        assert!(spec.prediction.is_some(), "{document}");
        let PodDemand { metric, target, total } = spec.demand();
        (metric, target, total)
    };
    assert_eq!(demand(OWN_AND_CPU, Some(500)), (DemandMetric::Concurrency, 10.0, 10.0));
    assert_eq!(demand(CPU_AND_MEMORY, Some(500)), (DemandMetric::Cpu, 0.3, 0.5));
    assert_eq!(demand(CPU_AND_MEMORY, None), (DemandMetric::Cpu, 0.0, 0.0), "a percentage of nothing");
    let (percent, amount) = ("Utilization, averageUtilization: 60", "AverageValue, averageValue: 750m");
    let average = CPU_AND_MEMORY.replace(percent, amount);
    assert_eq!(demand(&average, Some(500)), (DemandMetric::Cpu, 0.75, 0.75));
    assert_eq!(demand(&average, Some(2000)), (DemandMetric::Cpu, 0.75, 2.0));
}

#[test]
fn annotations_of_prediction_stand_over_the_config_map() {
    let config = [
        ("prediction", "observe"),
        ("prediction-budget", "3%"),
        ("cold-start-worth", "5m"),
        ("scale-up-forward", "90s"),
        ("time-zone", "Asia/Tokyo"),
        ("prediction-bin", "1s"),
    ];
    let of_cluster = PredictionSettings {
        observes_only: true,
        budget: Percentage::clamped(3.0),
        cold_start_worth: Duration::from_mins(5),
        scale_up_forward: ScaleUpForward::Fixed(Duration::from_secs(90)),
        bin: Duration::from_secs(1),
    };
    let by_config = spec(&config, &[]);
    assert_eq!(by_config.prediction, Some(of_cluster));
    assert_eq!(by_config.time_zone, TimeZoneName::new("Asia/Tokyo"));
    let annotations = [
        ("ebb.dev/prediction", "auto"),
        ("ebb.dev/prediction-budget", "10%"),
        ("ebb.dev/cold-start-worth", "20m"),
        ("ebb.dev/scale-up-forward", "auto"),
        ("ebb.dev/time-zone", "UTC"),
    ];
    let by_annotations = spec(&config, &annotations);
    let bin = Duration::from_secs(1);
    assert_eq!(by_annotations.prediction, Some(PredictionSettings { bin, ..by_default() }));
    assert!(by_annotations.time_zone.is_utc());
    let nothing = spec(&[], &[("class", AHPA), ("ebb.dev/prediction-budget", "0%")]);
    assert_eq!(nothing.prediction.map(|prediction| prediction.budget), Some(Percentage::clamped(0.0)));
    // A class that is written is asked for, whatever the others do by default.
    let ahpa = spec(&[("prediction", "observe")], &[("class", AHPA)]);
    assert_eq!(ahpa.prediction.map(|prediction| prediction.observes_only), Some(false));
}

#[test]
fn a_schedule_is_read_for_every_class() {
    let lines = "Mon-Fri 07:00-10:00 min=5 max=20\n22:00-06:00 max=8";
    for class in [AHPA, HPA, "kpa.autoscaling.knative.dev"] {
        let spec = spec(&[], &[("class", class), ("ebb.dev/schedule", lines)]);
        let bounds = spec.schedule.expect(class).bounds_at(WeekMinute::of_day(0, 8 * 60));
        assert_eq!((bounds.min, bounds.max), (PodCount::new(5), Some(PodCount::new(20))), "{class}");
    }
    let own = [("class", HPA), ("metric", "concurrency"), ("ebb.dev/schedule", lines)];
    assert!(spec(&[], &own).schedule.is_some());
}

#[test]
fn a_refusal_names_the_value_and_what_is_allowed() {
    let table: [(&[(&str, &str)], &str); 13] = [
        (
            &[("ebb.dev/prediction", "on")],
            "annotation ebb.dev/prediction is \"on\", which is none of them; write \"auto\", \"observe\" or \"off\"",
        ),
        (
            &[("ebb.dev/prediction-budget", "10")],
            "annotation ebb.dev/prediction-budget is \"10\", which has no % at its end; write a percentage from 0% to 100%, such as \"10%\"",
        ),
        (
            &[("ebb.dev/prediction-budget", "101%")],
            "annotation ebb.dev/prediction-budget is \"101%\", which is out of range; write a percentage from 0% to 100%, such as \"10%\"",
        ),
        (
            &[("ebb.dev/prediction-budget", "NaN%")],
            "annotation ebb.dev/prediction-budget is \"NaN%\", which is not a finite number; write a percentage from 0% to 100%, such as \"10%\"",
        ),
        (
            &[("ebb.dev/cold-start-worth", "25h")],
            "annotation ebb.dev/cold-start-worth is \"25h\", which is out of range; write a duration from 0s to 24h",
        ),
        (
            &[("ebb.dev/cold-start-worth", "20")],
            "annotation ebb.dev/cold-start-worth is \"20\", which has no unit; write \"20s\" (allowed: a duration from 0s to 24h)",
        ),
        (
            &[("ebb.dev/scale-up-forward", "2h")],
            "annotation ebb.dev/scale-up-forward is \"2h\", which is out of range; write \"auto\" or a duration from 1s to 1h",
        ),
        (
            &[("ebb.dev/time-zone", "Europe/Berlim")],
            "annotation ebb.dev/time-zone is \"Europe/Berlim\", which is no time zone that is known; write a name of the IANA database, such as \"Europe/Berlin\"; did you mean Europe/Berlin?",
        ),
        (
            &[("ebb.dev/schedule", "07:00 min=5")],
            "annotation ebb.dev/schedule has the line \"07:00 min=5\", where \"07:00\" is no time; write one such as 07:00-10:00, up to 24:00",
        ),
        (
            &[("ebb.dev/schedule", "07:00-10:00 min=5"), ("max-scale", "4")],
            "annotation ebb.dev/schedule line 1 asks for at least 5 pods, but max-scale is 4; lower the one or raise the other",
        ),
        (
            &[("ebb.dev/schedule", "07:00-10:00 max=5"), ("min-scale", "6")],
            "annotation ebb.dev/schedule line 1 allows at most 5 pods, but min-scale is 6; raise the one or lower the other",
        ),
        (
            &[("ebb.dev/hpa", MEMORY), ("ebb.dev/prediction", "auto")],
            "annotation ebb.dev/prediction is \"auto\", which class hpa.autoscaling.knative.dev can do for the metrics concurrency, rps and cpu only: of no other one demand follows; write \"off\", or scale on one of these",
        ),
        (
            &[("class", AHPA), ("metric", "cpu")],
            "annotation autoscaling.knative.dev/metric is \"cpu\", which class ahpa.autoscaling.knative.dev cannot scale on; write \"concurrency\" or \"rps\"",
        ),
    ];
    for (annotations, message) in table {
        let problems = annotated(annotations, &ClusterConfig::default()).expect_err(message);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [message]);
    }
    annotated(&[("class", HPA), ("ebb.dev/prediction", "off")], &ClusterConfig::default())
        .expect("it is off");
    let problems = ClusterConfig::parse(&map(&[("time-zone", "Mars")])).expect_err("it has no zone");
    assert_eq!(problems[0].key, "time-zone");
}
