//! Queries, word by word.

use scaling::hpa::{
    LabelCondition, LabelRequirement, LabelSelector, MetricIdentifier, ObjectReference, TotalTarget,
};
use vocabulary::MilliValue;

use super::*;

fn identifier(requirements: Vec<(&str, LabelCondition)>) -> MetricIdentifier {
    let requirements = requirements
        .into_iter()
        .map(|(label, condition)| LabelRequirement { label: label.into(), condition })
        .collect();
    MetricIdentifier { name: "jobs_waiting".into(), selector: LabelSelector::new(requirements) }
}

fn external(requirements: Vec<(&str, LabelCondition)>) -> MetricSpec {
    let target = TotalTarget::Value(MilliValue::new(1000));
    MetricSpec::External { metric: identifier(requirements), target }
}

#[test]
fn a_selector_becomes_matchers_beside_the_namespace() {
    let all = external(vec![
        ("a", LabelCondition::Equals("x\"y\\".into())),
        ("b", LabelCondition::In(vec!["1.5".into(), "z".into()])),
        ("c", LabelCondition::NotIn(vec!["q|r".into()])),
        ("d", LabelCondition::Exists),
        ("e", LabelCondition::DoesNotExist),
    ]);
    assert_eq!(
        query_of(&all, "shop", "namespace").unwrap(),
        "sum({__name__=\"jobs_waiting\",namespace=\"shop\",a=\"x\\\"y\\\\\",b=~\"1\\\\.5|z\",c!~\"q\\\\|r\",d!=\"\",e=\"\"})"
    );
    assert_eq!(query_of(&external(vec![]), "shop", "").unwrap(), "sum({__name__=\"jobs_waiting\"})");
}

/// Matchers are all to hold, so a selector that names the namespace too finds nothing of another one.
#[test]
fn nobody_asks_for_another_namespace() {
    let foreign = external(vec![("namespace", LabelCondition::Equals("other".into()))]);
    assert_eq!(
        query_of(&foreign, "shop", "namespace").unwrap(),
        "sum({__name__=\"jobs_waiting\",namespace=\"shop\",namespace=\"other\"})"
    );
    let label = external(vec![("a\"}) or vector(1", LabelCondition::Exists)]);
    assert!(query_of(&label, "shop", "namespace").unwrap_err().contains("is no label of Prometheus"));
}

#[test]
fn an_object_is_known_by_its_kind_and_name() {
    let object = MetricSpec::Object {
        described: ObjectReference { api_version: "v1".into(), kind: "Ingress".into(), name: "main".into() },
        metric: identifier(vec![]),
        target: TotalTarget::Value(MilliValue::new(1000)),
    };
    let expected = "sum({__name__=\"jobs_waiting\",namespace=\"shop\",ingress=\"main\"})";
    assert_eq!(query_of(&object, "shop", "namespace").unwrap(), expected);
    assert_eq!(query_of(&object, "shop", "").unwrap(), expected, "an object always has a namespace");
}

#[tokio::test]
async fn without_a_server_every_metric_fails_with_the_remedy() {
    let source = RevisionSource {
        server: None,
        namespace: "default".to_owned(),
        namespace_label: String::new(),
        questions: Arc::new(Semaphore::new(1)),
        platform: None,
    };
    let said = source.ask(0, &external(vec![])).await;
    assert!(matches!(said.samples, MetricSamples::Failed(_)));
    assert_eq!(said.shown, "nobody is asked: set prometheus-url in ConfigMap config-autoscaler");
    assert_eq!(said.query.as_deref(), Some("sum({__name__=\"jobs_waiting\"})"));
}
