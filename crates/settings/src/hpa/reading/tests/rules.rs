//! The rules that need a row each, one after the other: what is refused, and what is said.

use super::*;

/// What is refused of one metric, without its place.
fn of_metric(metric: &str) -> Vec<String> {
    let said = refusals(&format!("{{maxReplicas: 3, metrics: [{metric}]}}"));
    let short = |said: &String| said.strip_prefix("spec.metrics[0].").unwrap_or(said).to_owned();
    said.iter().map(short).collect()
}

fn check(rows: &[(&str, &str)], refused: impl Fn(&str) -> Vec<String>) {
    for (text, expected) in rows {
        assert_eq!(refused(text), [*expected], "{text}");
    }
}

#[test]
fn targets_and_bodies() {
    check(
        &[
            (
                "{type: External, external: {metric: {name: q}, target: {type: Sum, value: 5}}}",
                "external.target.type is \"Sum\", which is no type of target; write Utilization, Value or AverageValue",
            ),
            (
                "{type: External, external: {metric: {name: q}, target: {value: 5}}}",
                "external.target.type is missing; write Utilization, Value or AverageValue",
            ),
            (
                "{type: External, external: {metric: {name: q}}}",
                "external.target is missing; write what to aim at, with its type",
            ),
            (
                "{type: External, external: {metric: {name: q}, target: {type: Value}}}",
                "external.target has neither value nor averageValue; write one of them",
            ),
            (
                "{type: External, external: {target: {type: Value, value: 5}}}",
                "external.metric is missing; write the metric with its name",
            ),
            (
                "{type: External, external: {metric: {}, target: {type: Value, value: 5}}}",
                "external.metric.name is missing; write the name of the metric",
            ),
            (
                "{type: Object, object: {metric: {name: hits}, target: {type: Value, value: 5}}}",
                "object.describedObject is missing; write an object with kind and name",
            ),
            (
                "{type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: hits}, target: {type: Utilization, averageUtilization: 5}}}",
                "object.target has type Utilization, which is for resources of pods; write Value or AverageValue",
            ),
            (
                "{type: Object, object: {describedObject: {kind: a/b, name: s}, metric: {name: hits}, target: {type: Value, value: 5}}}",
                "object.describedObject.kind is \"a/b\", which no object can be called; write it without \"/\" and \"%\"",
            ),
            (
                "{type: Object, object: {describedObject: {kind: Service, name: 50%}, metric: {name: hits}, target: {type: Value, value: 5}}}",
                "object.describedObject.name is \"50%\", which no object can be called; write it without \"/\" and \"%\"",
            ),
            (
                "{type: ContainerResource, containerResource: {name: cpu, target: {type: Utilization, averageUtilization: 5}}}",
                "containerResource.container is missing; write the name of a container",
            ),
            (
                "{type: Resource, resource: {target: {type: Utilization, averageUtilization: 5}}}",
                "resource.name is missing; write the resource, such as \"cpu\" or \"memory\"",
            ),
        ],
        of_metric,
    );
}

#[test]
fn selectors() {
    let selected = |selector: &str| {
        let metric = format!("{{name: q, selector: {selector}}}");
        let said = of_metric(&format!(
            "{{type: External, external: {{metric: {metric}, target: {{type: Value, value: 5}}}}}}"
        ));
        let short = |said: &String| said.strip_prefix("external.metric.selector.").unwrap_or(said).to_owned();
        said.iter().map(short).collect::<Vec<_>>()
    };
    check(
        &[
            (
                "{matchLabels: [a]}",
                "matchLabels is a list, which is no mapping; write labels with their values",
            ),
            ("{matchLabels: {a: 1}}", "matchLabels.a is 1, which is no text; write it in quotes"),
            (
                "{matchLabels: {a b: c}}",
                "matchLabels.a b names the label \"a b\", which no label can be called; write letters, digits, \"-\", \"_\" and \".\", at most 63",
            ),
            (
                "{matchLabels: {a: b c}}",
                "matchLabels.a is \"b c\", which no label can have as its value; write letters, digits, \"-\", \"_\" and \".\", at most 63",
            ),
            (
                "{matchExpressions: [{key: a, operator: Exists, values: [b]}]}",
                "matchExpressions[0].values is not asked by this operator; remove it, or write In or NotIn",
            ),
            (
                "{matchExpressions: [{key: a, operator: In, values: [b, 5]}]}",
                "matchExpressions[0].values[1] is 5, which is no text; write it in quotes",
            ),
            (
                "{matchExpressions: [{operator: Exists}]}",
                "matchExpressions[0].key is missing; write the label",
            ),
        ],
        selected,
    );
}

#[test]
fn values_of_the_wrong_kind() {
    check(
        &[
            (
                "{maxReplicas: 3, metrics: 5}",
                "spec.metrics is 5, which is no list; write its entries each after a dash",
            ),
            (
                "{maxReplicas: 3, behavior: {scaleUp: {tolerance: []}}}",
                "spec.behavior.scaleUp.tolerance is a list, which is no quantity; write a number with or without a suffix, such as \"500m\"",
            ),
            (
                "{maxReplicas: 3, behavior: {scaleUp: {selectPolicy: 5}}}",
                "spec.behavior.scaleUp.selectPolicy is 5, which is no text; write it in quotes",
            ),
            (
                "{maxReplicas: 3, behavior: {scaleUp: {policies: [{type: Pod, value: 1, periodSeconds: 15}]}}}",
                "spec.behavior.scaleUp.policies[0].type is \"Pod\", which is no kind of policy; write Pods or Percent",
            ),
        ],
        refusals,
    );
    let twice = json("{\"maxReplicas\": 3, \"maxReplicas\": 4}").expect("JSON allows it");
    let said = read_spec(&twice, "spec").expect_err("nobody can say which is meant");
    assert_eq!(said[0].message, "spec.maxReplicas stands twice; keep one of them");
}

/// The targets of version 2beta1, and of the annotation of version 1.
#[test]
fn flat_targets() {
    let flat = |metric: &str| {
        let said = other_version("v2beta1", &format!("  metrics: [{metric}]")).expect_err("refused");
        let short = |said: &String| said.strip_prefix("spec.metrics[0].").unwrap_or(said).to_owned();
        said.iter().map(short).collect::<Vec<_>>()
    };
    check(
        &[
            (
                "{type: Resource, resource: {name: cpu, targetAverageUtilization: 5, targetAverageValue: 5}}",
                "resource has both targetAverageUtilization and targetAverageValue; remove one of them",
            ),
            (
                "{type: Resource, resource: {name: cpu}}",
                "resource has neither targetAverageUtilization nor targetAverageValue; write one of them",
            ),
            (
                "{type: Pods, pods: {metricName: rps}}",
                "pods.targetAverageValue is missing; write the average to aim at",
            ),
            (
                "{type: Object, object: {target: {kind: Service, name: s}, metricName: hits}}",
                "object has neither targetValue nor averageValue; write one of them",
            ),
            (
                "{type: External, external: {metricName: q, targetValue: 5, targetAverageValue: 5}}",
                "external has both targetValue and targetAverageValue; remove one of them",
            ),
            (
                "{type: External, external: {metricName: q}}",
                "external has neither targetValue nor targetAverageValue; write one of them",
            ),
        ],
        flat,
    );
    let container = "  metrics: [{type: ContainerResource, containerResource: {name: cpu, container: app, targetAverageUtilization: 50}}]";
    let (_, document) = other_version("v2beta1", container).expect("sound");
    let target = ResourceTarget::Utilization(50);
    let expected =
        MetricSpec::Resource { resource: ResourceName::Cpu, container: Some("app".into()), target };
    assert_eq!(document.metrics, [expected]);
}

#[test]
fn names_of_documents() {
    let said = whole(&V1.replace("name: shop\n  namespace", "name: The_Shop\n  namespace")).unwrap_err();
    assert_eq!(
        said,
        [
            "metadata.name is \"The_Shop\", which no object can be called; write lower-case letters, digits, \"-\" and \".\", at most 253"
        ]
    );
}
