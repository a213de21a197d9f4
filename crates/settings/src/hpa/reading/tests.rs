//! Documents in every spelling, and every rule with what is said when it is broken.

mod rules;

use std::time::Duration;

use vocabulary::{CheckedValue, MilliValue, PodCount, Problem};

use super::*;
use crate::Metric;
use crate::hpa::behavior::{Behavior, PolicyAmount, RulesOrigin, ScalingPolicy, ScalingRules, SelectPolicy};
use crate::hpa::spec::{MetricSpec, ResourceName, ResourceTarget, TotalTarget};

fn yaml(text: &str) -> DocumentNode {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn json(text: &str) -> Result<DocumentNode, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn spec(text: &str) -> Result<CheckedValue<HpaDocument>, Vec<Problem>> {
    read_spec(&yaml(text), "spec")
}

fn read(text: &str) -> HpaDocument {
    spec(text).unwrap_or_else(|problems| panic!("{problems:?}: {text}")).value
}

fn refusals(text: &str) -> Vec<String> {
    let problems = spec(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
    problems.iter().map(ToString::to_string).collect()
}

fn whole(text: &str) -> Result<(ScaleTarget, HpaDocument), Vec<String>> {
    let read = read_document(&yaml(text), json);
    read.map(|checked| checked.value).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn cpu(percent: u32) -> MetricSpec {
    MetricSpec::Resource {
        resource: ResourceName::Cpu,
        container: None,
        target: ResourceTarget::Utilization(percent),
    }
}

/// `id | spec`, in flow style: these are accepted.
const ACCEPTED: &str = "
    V2 with External | {minReplicas: 0, maxReplicas: 3, metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}]}
    V2 with our own | {minReplicas: 0, maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: ebb.rps}, target: {type: AverageValue, averageValue: 10}}}]}
    V4 omitted | {maxReplicas: 3, behavior: {scaleUp: {selectPolicy: Min}}}
    V5 0 | {maxReplicas: 3, behavior: {scaleUp: {tolerance: \"0\"}}}
    V5 10 | {maxReplicas: 3, behavior: {scaleUp: {tolerance: 10}}}
    V5 0.1 | {maxReplicas: 3, behavior: {scaleUp: {tolerance: 0.1}}}
    V5 finer than a thousandth | {maxReplicas: 3, behavior: {scaleUp: {tolerance: 12500u}, scaleDown: {tolerance: 0.0005}}}
    V5 100m | {maxReplicas: 3, behavior: {scaleUp: {tolerance: 100m}}}
    V7 300 | {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 300}}}]}
    the longest window and period | {maxReplicas: 3, behavior: {scaleUp: {stabilizationWindowSeconds: 3600, policies: [{type: Percent, value: 900, periodSeconds: 1800}]}}}
    null is absent | {maxReplicas: 3, minReplicas: null, metrics: null, behavior: {scaleUp: {policies: null}}}
";

/// `id | spec | problem; problem`: these are refused.
const REFUSED: &str = "
    V1 max 0 | {maxReplicas: 0} | spec.maxReplicas is 0, which is out of range; write a whole number from 1 to 2147483647
    V1 max below min | {maxReplicas: 2, minReplicas: 3} | spec.maxReplicas is 2, which is below minReplicas 3; raise it, or lower minReplicas
    V2 | {maxReplicas: 3, minReplicas: 0} | spec.minReplicas is 0, which needs a metric that says something without pods: ebb.concurrency or ebb.rps, or one of type Object or External; add one, or write 1
    V3 window | {maxReplicas: 3, behavior: {scaleUp: {stabilizationWindowSeconds: 3601}, scaleDown: {stabilizationWindowSeconds: -1}}} | spec.behavior.scaleUp.stabilizationWindowSeconds is 3601, which is out of range; write a whole number from 0 to 3600 ;; spec.behavior.scaleDown.stabilizationWindowSeconds is -1, which is out of range; write a whole number from 0 to 3600
    V3 period and value | {maxReplicas: 3, behavior: {scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 0}, {type: Pods, value: 1, periodSeconds: 1801}]}}} | spec.behavior.scaleUp.policies[0].value is 0, which is out of range; write a whole number from 1 to 2147483647 ;; spec.behavior.scaleUp.policies[0].periodSeconds is 0, which is out of range; write a whole number from 1 to 1800 ;; spec.behavior.scaleUp.policies[1].periodSeconds is 1801, which is out of range; write a whole number from 1 to 1800
    V4 | {maxReplicas: 3, behavior: {scaleUp: {policies: []}}} | spec.behavior.scaleUp.policies is empty; write at least one policy, or remove it for the default ones
    V5 negative | {maxReplicas: 3, behavior: {scaleDown: {tolerance: -0.001}}} | spec.behavior.scaleDown.tolerance is -0.001, which is negative; write a quantity of at least 0, such as \"0.05\"
    V5 a little negative | {maxReplicas: 3, behavior: {scaleDown: {tolerance: \"-0.0001\"}}} | spec.behavior.scaleDown.tolerance is \"-0.0001\", which is negative; write a quantity of at least 0, such as \"0.05\"
    V6 | {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50, averageValue: 100m}}}]} | spec.metrics[0].resource.target has both averageUtilization and averageValue; remove one of them
    V7 0 | {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}}]} | spec.metrics[0].resource.target.averageUtilization is 0, which is out of range; write a whole number from 1 to 2147483647
    V8 | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: rps}, target: {type: Value, value: 5}}}]} | spec.metrics[0].pods.target has no averageValue, the only target of a metric of pods; write one
    V9 | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 5}}, object: {}}]} | spec.metrics[0].object does not belong to a metric of type Pods; remove it, or make it an entry of its own
    no max | {} | spec.maxReplicas is missing; write a whole number from 1 to 2147483647
    max as text | {maxReplicas: \"3\"} | spec.maxReplicas is \"3\", which is no whole number; write a whole number from 1 to 2147483647
    a misspelt field | {maxReplicas: 3, behaviour: {}} | spec.behaviour is not known here; did you mean behavior?
    a strange field | {maxReplicas: 3, colour: red} | spec.colour is not known here; remove it, or write one of scaleTargetRef, minReplicas, maxReplicas, metrics, behavior
    a target | {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: shop}} | spec.scaleTargetRef is the workload on which this stands; remove it
    an unknown type | {maxReplicas: 3, metrics: [{type: Node, pods: {}}]} | spec.metrics[0].pods does not belong to a metric of type Node; remove it, or make it an entry of its own ;; spec.metrics[0].type is \"Node\", which is no type of metric; write Resource, ContainerResource, Pods, Object or External
    no body | {maxReplicas: 3, metrics: [{type: Object}]} | spec.metrics[0].object is missing; a metric has one body, named for its type
    no target of a resource | {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Value, value: 1}}}]} | spec.metrics[0].resource.target has neither averageUtilization nor averageValue; write one of them
    an amount of nothing | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 0}}}]} | spec.metrics[0].pods.target.averageValue is 0, which is not above zero; write a quantity above zero, such as \"500m\"
    no quantity | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 5 apples}}}]} | spec.metrics[0].pods.target.averageValue is \"5 apples\", which has the unknown suffix \" apples\"; use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3
    an object by the wrong type | {maxReplicas: 3, metrics: [{type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: hits}, target: {type: Value, averageValue: 5}}}]} | spec.metrics[0].object.target has no value, which its type asks for; write one
    an external with both | {maxReplicas: 3, metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 5, averageValue: 5}}}]} | spec.metrics[0].external.target has both value and averageValue; remove one of them
    a name with a slash | {maxReplicas: 3, metrics: [{type: External, external: {metric: {name: a/b}, target: {type: Value, value: 5}}}]} | spec.metrics[0].external.metric.name is \"a/b\", which no metric can be called; write a name without \"/\" and \"%\"
    a name with a query | {maxReplicas: 3, metrics: [{type: External, external: {metric: {name: \"a?b\"}, target: {type: Value, value: 5}}}]} | spec.metrics[0].external.metric.name is \"a?b\", which no metric can be called; write a name without \"/\" and \"%\"
    an object outside of its path | {maxReplicas: 3, metrics: [{type: Object, object: {describedObject: {kind: Service, name: \"../s\"}, metric: {name: hits}, target: {type: Value, value: 5}}}]} | spec.metrics[0].object.describedObject.name is \"../s\", which no object can be called; write it without \"/\" and \"%\"
    an object in capitals | {maxReplicas: 3, metrics: [{type: Object, object: {describedObject: {kind: Service, name: S}, metric: {name: hits}, target: {type: Value, value: 5}}}]} | spec.metrics[0].object.describedObject.name is \"S\", which no object can be called; write lower-case letters, digits, \"-\" and \".\", at most 253
    a kind with a query | {maxReplicas: 3, metrics: [{type: Object, object: {describedObject: {kind: \"S?\", name: s}, metric: {name: hits}, target: {type: Value, value: 5}}}]} | spec.metrics[0].object.describedObject.kind is \"S?\", which no kind can be called; write letters and digits
    a group outside of its path | {maxReplicas: 3, metrics: [{type: Object, object: {describedObject: {apiVersion: \"../v1\", kind: Service, name: s}, metric: {name: hits}, target: {type: Value, value: 5}}}]} | spec.metrics[0].object.describedObject.apiVersion is \"../v1\", which is no group with a version; write something like \"apps/v1\"
    a container in capitals | {maxReplicas: 3, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: App, target: {type: Utilization, averageUtilization: 5}}}]} | spec.metrics[0].containerResource.container is \"App\", which no container can be called; write lower-case letters, digits and \"-\", at most 63
    a metric of ours that we do not have | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: ebb.latency}, target: {type: AverageValue, averageValue: 5}}}]} | spec.metrics[0].pods is \"ebb.latency\", which is not measured by ebb; write \"ebb.concurrency\" or \"ebb.rps\"
    a selection of our own | {maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: ebb.rps, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: 5}}}]} | spec.metrics[0].pods selects series of ebb.rps, which has none: every pod is measured; remove the selector
    no operator | {maxReplicas: 3, metrics: [{type: External, external: {metric: {name: q, selector: {matchExpressions: [{key: a, operator: Is}]}}, target: {type: Value, value: 5}}}]} | spec.metrics[0].external.metric.selector.matchExpressions[0].operator is \"Is\", which is no operator; write In, NotIn, Exists or DoesNotExist
    no values | {maxReplicas: 3, metrics: [{type: External, external: {metric: {name: q, selector: {matchExpressions: [{key: a, operator: In}]}}, target: {type: Value, value: 5}}}]} | spec.metrics[0].external.metric.selector.matchExpressions[0].values is empty; write at least one value
    no way to select | {maxReplicas: 3, behavior: {scaleUp: {selectPolicy: Disable}}} | spec.behavior.scaleUp.selectPolicy is \"Disable\", which is no way to select; write Max, Min or Disabled
    a policy without anything | {maxReplicas: 3, behavior: {scaleUp: {policies: [{}]}}} | spec.behavior.scaleUp.policies[0].type is missing; write Pods or Percent ;; spec.behavior.scaleUp.policies[0].value is missing; write a whole number from 1 to 2147483647 ;; spec.behavior.scaleUp.policies[0].periodSeconds is missing; write a whole number from 1 to 1800
    no mapping | [] | spec is a list, which is no mapping; write fields with their names
";

fn rows(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.split(" | ").map(str::trim).collect()).collect()
}

#[test]
fn documents_that_kubernetes_accepts_are_accepted() {
    for row in rows(ACCEPTED) {
        assert!(spec(row[1]).is_ok(), "{row:?}: {:?}", spec(row[1]));
    }
}

#[test]
fn documents_that_kubernetes_refuses_are_refused_with_place_value_and_remedy() {
    for row in rows(REFUSED) {
        let expected: Vec<&str> = row[2].split(" ;; ").collect();
        assert_eq!(refusals(row[1]), expected, "{row:?}");
    }
}

#[test]
fn every_problem_of_a_document_is_reported_at_once() {
    let said = refusals(
        "{minReplicas: -1, maxReplicas: 0, metrics: [{type: Resource}, 5], behavior: {scaleDown: {policies: [{type: Pod, value: 1, periodSeconds: 0}]}}, extra: 1}",
    );
    assert_eq!(said.len(), 7, "{said:#?}");
}

#[test]
fn without_metrics_cpu_is_aimed_at_80_percent() {
    let one =
        HpaDocument { min: PodCount::ONE, max: PodCount::new(3), metrics: vec![cpu(80)], behavior: None };
    assert_eq!(read("{maxReplicas: 3}"), one);
    assert_eq!(read("{maxReplicas: 3, metrics: []}"), one);
}

#[test]
fn each_kind_of_metric_is_read() {
    let document = read(
        "
        minReplicas: 0
        maxReplicas: 10
        metrics:
        - type: Resource
          resource: {name: memory, target: {type: AverageValue, averageValue: 128Mi}}
        - type: ContainerResource
          containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 60}}
        - type: Pods
          pods:
            metric: {name: packets-per-second, selector: {matchLabels: {verb: GET}, matchExpressions: [{key: code, operator: NotIn, values: ['500', '404']}]}}
            target: {type: AverageValue, averageValue: 1k}
        - type: Pods
          pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 7.5}}
        - type: Object
          object:
            describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main-route}
            metric: {name: requests-per-second}
            target: {type: Value, value: 2k}
        - type: External
          external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 30}}
        ",
    );
    let names: Vec<&str> = document.metrics.iter().map(MetricSpec::name).collect();
    let expected = ["memory", "cpu", "packets-per-second", "ebb.concurrency", "requests-per-second", "queue"];
    assert_eq!(names, expected);
    let [memory, container, pods, own, object, external] = &document.metrics[..] else { panic!("six") };
    assert!(
        matches!(memory, MetricSpec::Resource { resource: ResourceName::Memory, container: None, target: ResourceTarget::AverageValue(value) } if value.value() == 134_217_728_000)
    );
    assert!(
        matches!(container, MetricSpec::Resource { container: Some(name), target: ResourceTarget::Utilization(60), .. } if &**name == "app")
    );
    let MetricSpec::Pods { metric, target } = pods else { panic!("{pods:?}") };
    assert_eq!(
        (metric.selector.to_string().as_str(), target.value()),
        ("code notin (404,500),verb=GET", 1_000_000)
    );
    assert_eq!(*own, MetricSpec::Own { metric: Metric::Concurrency, target: MilliValue::new(7500) });
    assert!(
        matches!(object, MetricSpec::Object { described, target: TotalTarget::Value(value), .. } if &*described.kind == "Ingress" && value.value() == 2_000_000)
    );
    assert!(
        matches!(external, MetricSpec::External { target: TotalTarget::AverageValue(value), .. } if value.value() == 30_000)
    );
    assert_eq!((document.min, document.max), (PodCount::ZERO, PodCount::new(10)));
}

/// Kubernetes fills in field by field: a direction that is not written, and in one that is, every field that
/// is not.
#[test]
fn behavior_is_filled_in_field_by_field() {
    let behavior = |text: &str| read(&format!("{{maxReplicas: 3, behavior: {text}}}")).behavior.unwrap();
    let nothing = Behavior { scale_up: ScalingRules::default_up(), scale_down: ScalingRules::default_down() };
    assert_eq!(behavior("{}"), nothing);
    let windowed = behavior("{scaleDown: {stabilizationWindowSeconds: 60}}");
    assert_eq!(windowed.scale_up, nothing.scale_up);
    assert_eq!(
        windowed.scale_down,
        ScalingRules {
            stabilization_window: Some(Duration::from_secs(60)),
            origin: RulesOrigin::Document,
            ..nothing.scale_down.clone()
        }
    );
    let limited =
        behavior("{scaleUp: {policies: [{type: Percent, value: 12, periodSeconds: 80}], tolerance: 0.05}}");
    let policy = ScalingPolicy { amount: PolicyAmount::Percent(12), period: Duration::from_secs(80) };
    assert_eq!(
        limited.scale_up,
        ScalingRules {
            policies: vec![policy],
            tolerance: Some(0.05),
            origin: RulesOrigin::Document,
            ..nothing.scale_up.clone()
        }
    );
    assert_eq!(limited.scale_down, nothing.scale_down);
    // Rounded to a thousandth it would hold a ratio of 1.0127, on which Kubernetes acts.
    let fine = behavior("{scaleUp: {tolerance: 12500u}, scaleDown: {tolerance: 0.0005}}");
    assert_eq!(
        (fine.scale_up.tolerance, fine.scale_down.tolerance),
        (Some(12_500.0 * 1e-6), Some(500.0 * 1e-6))
    );
}

const V1: &str = r#"
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: shop
  namespace: default
  labels: {a: b}
  annotations:
    somebody.else/thing: "1"
    autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"5"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"hits","targetValue":"0","averageValue":"2"}},{"type":"External","external":{"metricName":"q","metricSelector":{"matchLabels":{"a":"b"}},"targetValue":"7"}}]'
    autoscaling.alpha.kubernetes.io/current-metrics: 'not even json'
    autoscaling.alpha.kubernetes.io/behavior: '{"ScaleUp":{"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":2,"PeriodSeconds":30}],"StabilizationWindowSeconds":0},"scaledown":{"stabilizationwindowseconds":null,"SelectPolicy":"Disabled"}}'
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  minReplicas: 2
  maxReplicas: 10
  targetCPUUtilizationPercentage: 60
status: {currentReplicas: 3}
"#;

#[test]
fn version_1_carries_the_rest_in_annotations() {
    let (target, document) = whole(V1).unwrap();
    assert_eq!(
        (&*target.document, target.namespace.as_deref(), &*target.target.kind),
        ("shop", Some("default"), "Deployment")
    );
    let names: Vec<&str> = document.metrics.iter().map(MetricSpec::name).collect();
    assert_eq!(names, ["memory", "rps", "hits", "q", "cpu"], "those of the annotation first");
    assert_eq!(document.metrics[4], cpu(60));
    assert!(
        matches!(&document.metrics[2], MetricSpec::Object { target: TotalTarget::AverageValue(value), .. } if value.value() == 2000)
    );
    let behavior = document.behavior.unwrap();
    assert_eq!(behavior.scale_up.select_policy, SelectPolicy::Min);
    assert_eq!(behavior.scale_up.policies.len(), 1);
    assert_eq!(behavior.scale_down.select_policy, SelectPolicy::Disabled);
    assert_eq!(behavior.scale_down.stabilization_window, None);
    assert_eq!(behavior.scale_down.policies, ScalingRules::default_down().policies);
}

fn other_version(version: &str, spec: &str) -> Result<(ScaleTarget, HpaDocument), Vec<String>> {
    whole(&format!(
        "apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: shop}}\nspec:\n  scaleTargetRef: {{kind: Deployment, name: shop}}\n  maxReplicas: 3\n{spec}"
    ))
}

#[test]
fn version_2_beta_1_has_flat_targets_and_no_behavior() {
    let metrics = "  metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 50}}, {type: External, external: {metricName: q, targetAverageValue: 3}}]";
    let (_, document) = other_version("v2beta1", metrics).unwrap();
    assert_eq!(document.metrics[0], cpu(50));
    assert!(matches!(
        &document.metrics[1],
        MetricSpec::External { target: TotalTarget::AverageValue(_), .. }
    ));
    assert_eq!(
        other_version("v2beta1", "  behavior: {}").unwrap_err(),
        [
            "spec.behavior is not known here; remove it, or write one of scaleTargetRef, minReplicas, maxReplicas, metrics"
        ]
    );
}

#[test]
fn version_2_beta_2_is_version_2_without_tolerances() {
    let behavior = "  behavior: {scaleUp: {selectPolicy: Min, tolerance: 0.5}}";
    assert!(other_version("v2", behavior).is_ok());
    let said = other_version("v2beta2", behavior).unwrap_err();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("spec.behavior.scaleUp.tolerance is not known here"), "{said:?}");
}

#[test]
fn an_incomplete_document_is_refused_with_the_missing_fields() {
    assert_eq!(
        whole("{apiVersion: apps/v1, kind: Deployment}").unwrap_err(),
        [
            "apiVersion is \"apps/v1\", which is no version of an autoscaler; write autoscaling/v2 (v1, v2beta1 and v2beta2 are read too)",
            "kind is \"Deployment\", which is not read here; write HorizontalPodAutoscaler",
            "metadata.name is missing; write a name",
            "spec is missing; write maxReplicas at least",
        ]
    );
    let said = whole(&V1.replace("'{\"ScaleUp\"", "'{ScaleUp")).unwrap_err();
    assert!(
        said[0].starts_with("annotation autoscaling.alpha.kubernetes.io/behavior is no JSON"),
        "{said:?}"
    );
    let said = whole(&V1.replace("apps/v1", "a/b/c")).unwrap_err();
    assert_eq!(
        said,
        [
            "spec.scaleTargetRef.apiVersion is \"a/b/c\", which is no group with a version; write something like \"apps/v1\""
        ]
    );
}

#[test]
fn a_field_without_effect_gets_a_warning() {
    let text = "{maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 5, value: 7}}}]}";
    let warnings: Vec<String> = spec(text).unwrap().warnings.iter().map(ToString::to_string).collect();
    let expected =
        "spec.metrics[0].pods.target has more than averageValue, which alone is looked at; remove the others";
    assert_eq!(warnings, [expected]);
}

mod arbitrary {
    use proptest::prelude::*;

    use super::*;

    fn nodes() -> impl Strategy<Value = DocumentNode> {
        let words = prop::sample::select(vec![
            "type",
            "resource",
            "pods",
            "object",
            "external",
            "metric",
            "name",
            "target",
            "value",
            "averageValue",
            "averageUtilization",
            "Resource",
            "Pods",
            "Utilization",
            "AverageValue",
            "cpu",
            "behavior",
            "scaleUp",
            "policies",
            "periodSeconds",
            "Percent",
            "maxReplicas",
            "minReplicas",
            "metrics",
            "selector",
            "matchLabels",
            "kind",
            "spec",
            "metadata",
            "apiVersion",
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
        ]);
        let leaf = prop_oneof![
            Just(DocumentNode::Null),
            any::<bool>().prop_map(DocumentNode::Boolean),
            (-2_i64..3000).prop_map(DocumentNode::Integer),
            any::<f64>().prop_map(DocumentNode::Float),
            words.clone().prop_map(|word| DocumentNode::Text(word.to_owned())),
            ".*".prop_map(DocumentNode::Text),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            let key = words.clone().prop_map(str::to_owned);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(DocumentNode::List),
                prop::collection::vec((key, inner), 0..6).prop_map(DocumentNode::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused_with_a_reason(node in nodes()) {
            for problems in [read_spec(&node, "spec").err(), read_document(&node, json).err()].into_iter().flatten() {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(!problem.message.contains('\n'), "{:?}", problem);
                }
            }
        }
    }
}

#[test]
fn a_document_names_at_most_64_metrics() {
    let with = |count: usize| {
        let metric = "{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}";
        format!("{{maxReplicas: 3, metrics: [{}]}}", vec![metric; count].join(", "))
    };
    assert_eq!(read(&with(64)).metrics.len(), 64);
    assert_eq!(refusals(&with(65)), ["spec.metrics has 65 metrics; write at most 64"]);
    assert_eq!(refusals(&with(2_300)).len(), 1, "and not a word of each");
}

#[test]
fn an_annotation_with_an_alias_is_refused_and_one_with_a_star_in_quotes_is_not() {
    let metric = "{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}";
    let aliased = format!("maxReplicas: 3\nmetrics:\n- &one {metric}\n- *one\n");
    let problems: Vec<String> =
        read_annotation(&aliased).expect_err("it has one").iter().map(ToString::to_string).collect();
    let expected = "annotation ebb.dev/hpa has an alias (*NAME); write what it stands for in its place";
    assert_eq!(problems, [expected]);
    let quoted = metric.replace("name: q", "name: '*q'");
    assert!(read_annotation(&format!("maxReplicas: 3\nmetrics:\n- {quoted}\n")).is_ok());
}
