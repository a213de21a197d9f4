//! KEDA's `ScaledObject`: its triggers as metrics of class hpa, as far as there is an equivalent.
//!
//! KEDA makes an autoscaler of Kubernetes' out of it and brings it to zero and back itself. Here one document
//! does both. A trigger that asks a system of its own has no equivalent: its number has to be recorded by
//! Prometheus, and is then a metric of type External.

use scaling::hpa::reading::{self, DocumentNode};

use super::{ImportResult, at, document_annotations, map, messages, number_at, text, text_at};

/// What is kept after the last activity where nobody says, in seconds (KEDA's `cooldownPeriod`).
pub(super) const COOLDOWN_DEFAULT: i64 = 300;
/// How often a trigger is asked where nobody says, in seconds (`pollingInterval`).
const POLLING_DEFAULT: i64 = 30;
/// The most pods where nobody says (`maxReplicaCount`).
pub(super) const MAX_DEFAULT: i64 = 100;

pub(super) fn import(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let spec = at(document, &["spec"]).ok_or_else(|| vec!["spec is missing".to_owned()])?;
    let name = text_at(spec, &["scaleTargetRef", "name"])
        .ok_or_else(|| vec!["spec.scaleTargetRef.name is missing".to_owned()])?;
    let kind = text_at(spec, &["scaleTargetRef", "kind"]).unwrap_or("Deployment");
    let mut notes = Vec::new();
    let metrics = metrics(spec, &mut notes);
    if metrics.is_empty() {
        notes.insert(0, "no trigger has an equivalent, so nothing can be imported".to_owned());
        return Err(notes);
    }
    let wakes = metrics.iter().any(|metric| text_at(metric, &["type"]) == Some("External"));
    let mut min = number_at(spec, &["minReplicaCount"]).unwrap_or(0);
    if min == 0 && !wakes {
        notes.push("minReplicaCount 0 became 1: cpu and memory say nothing without pods; add ebb.concurrency to reach zero".to_owned());
        min = 1;
    }
    note_what_is_left(spec, &mut notes);
    let mut written = vec![
        ("minReplicas".to_owned(), DocumentNode::Integer(min)),
        (
            "maxReplicas".to_owned(),
            DocumentNode::Integer(number_at(spec, &["maxReplicaCount"]).unwrap_or(MAX_DEFAULT)),
        ),
        ("metrics".to_owned(), DocumentNode::List(metrics)),
    ];
    if let Some(behavior) = at(spec, &["advanced", "horizontalPodAutoscalerConfig", "behavior"]) {
        written.push(("behavior".to_owned(), behavior.clone()));
    }
    let checked = reading::read_spec(&DocumentNode::Map(written), "spec").map_err(messages)?;
    notes.extend(checked.warnings.into_iter().map(|warning| warning.message));
    let mut annotations = document_annotations(&checked.value);
    let polling = number_at(spec, &["pollingInterval"]).unwrap_or(POLLING_DEFAULT);
    annotations.push(("ebb.dev/hpa-sync-period".to_owned(), format!("{polling}s")));
    if min == 0 {
        let cooldown = number_at(spec, &["cooldownPeriod"]).unwrap_or(COOLDOWN_DEFAULT);
        let retention = "autoscaling.knative.dev/scale-to-zero-pod-retention-period";
        annotations.push((retention.to_owned(), format!("{cooldown}s")));
    }
    Ok(ImportResult { target: format!("{kind} {name}"), annotations, notes })
}

fn note_what_is_left(spec: &DocumentNode, notes: &mut Vec<String>) {
    for (field, why) in [
        ("fallback", "a metric that fails never takes pods away; there is no other count for that time"),
        ("idleReplicaCount", "without work there are minReplicas"),
    ] {
        if at(spec, &[field]).is_some() {
            notes.push(format!("spec.{field} has no equivalent: {why}"));
        }
    }
    if at(spec, &["advanced", "scalingModifiers"]).is_some() {
        notes.push(
            "spec.advanced.scalingModifiers has no equivalent: record the formula as a series".to_owned(),
        );
    }
}

fn metrics(spec: &DocumentNode, notes: &mut Vec<String>) -> Vec<DocumentNode> {
    let Some(DocumentNode::List(triggers)) = at(spec, &["triggers"]) else { return Vec::new() };
    let mut metrics = Vec::new();
    for (index, trigger) in triggers.iter().enumerate() {
        let kind = text_at(trigger, &["type"]).unwrap_or_default();
        let metric = match kind {
            "cpu" | "memory" => resource(kind, trigger),
            "prometheus" => prometheus(trigger),
            "external-push" if is_http_add_on(trigger) => {
                Err("import the HTTPScaledObject or InterceptorRoute that it names".to_owned())
            }
            _ => Err("export its number to Prometheus, and use a metric of type External".to_owned()),
        };
        match metric {
            Ok(metric) => metrics.push(metric),
            Err(why) => notes.push(format!("spec.triggers[{index}] ({kind}) has no equivalent: {why}")),
        }
    }
    metrics
}

/// The HTTP add-on is asked by a trigger that names its object.
fn is_http_add_on(trigger: &DocumentNode) -> bool {
    ["httpScaledObject", "interceptorRoute"]
        .iter()
        .any(|name| text_at(trigger, &["metadata", name]).is_some())
}

fn resource(name: &str, trigger: &DocumentNode) -> Result<DocumentNode, String> {
    let value = text_at(trigger, &["metadata", "value"]).ok_or("it has no value")?;
    let kind = text_at(trigger, &["metricType"]).or_else(|| text_at(trigger, &["metadata", "type"]));
    let target = if kind == Some("AverageValue") {
        ("averageValue", DocumentNode::Text(value.to_owned()))
    } else {
        let percent =
            value.parse().map_err(|_| format!("its value {value:?} is no whole number of percent"))?;
        ("averageUtilization", DocumentNode::Integer(percent))
    };
    let target = map(&[("type", text(kind.unwrap_or("Utilization"))), target]);
    let mut body = vec![("name", text(name)), ("target", target)];
    let (kind, field) = match text_at(trigger, &["metadata", "containerName"]) {
        Some(container) => {
            body.insert(1, ("container", text(container)));
            ("ContainerResource", "containerResource")
        }
        None => ("Resource", "resource"),
    };
    Ok(map(&[("type", text(kind)), (field, map(&body))]))
}

/// A query that only names a series and its labels, summed or not, is a metric of type External.
fn prometheus(trigger: &DocumentNode) -> Result<DocumentNode, String> {
    let query = text_at(trigger, &["metadata", "query"]).ok_or("it has no query")?;
    let threshold = text_at(trigger, &["metadata", "threshold"]).ok_or("it has no threshold")?;
    let (name, labels) = series(query).ok_or_else(|| {
        format!(
            "the query {query:?} is more than a series and its labels; record it as a series and name that"
        )
    })?;
    let mut metric = vec![("name", text(name))];
    if !labels.is_empty() {
        let labels: Vec<(&str, DocumentNode)> =
            labels.iter().map(|(label, value)| (*label, text(value))).collect();
        metric.push(("selector", map(&[("matchLabels", map(&labels))])));
    }
    let target = map(&[("type", text("AverageValue")), ("averageValue", text(threshold))]);
    Ok(map(&[("type", text("External")), ("external", map(&[("metric", map(&metric)), ("target", target)]))]))
}

type Labels<'q> = Vec<(&'q str, &'q str)>;

/// `name`, `name{a="b",c="d"}`, and the same within `sum(…)`.
fn series(query: &str) -> Option<(&str, Labels<'_>)> {
    let query = query.trim();
    let inner = query.strip_prefix("sum(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(query).trim();
    let (name, labels) = match inner.split_once('{') {
        Some((name, rest)) => (name.trim(), rest.strip_suffix('}')?),
        None => (inner, ""),
    };
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.starts_with(|first: char| first.is_ascii_digit())
            && text.chars().all(|one| one.is_ascii_alphanumeric() || "_:".contains(one))
    };
    if !is_name(name) {
        return None;
    }
    let pairs = labels.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let labels = pairs.map(|pair| {
        let (label, value) = pair.split_once('=')?;
        let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
        (is_name(label.trim()) && !value.contains(['"', '\\'])).then_some((label.trim(), value))
    });
    Some((name, labels.collect::<Option<Labels<'_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::tests::imported;
    use super::*;

    const SCALED: &str = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker}
spec:
  scaleTargetRef: {name: worker}
  maxReplicaCount: 8
  cooldownPeriod: 120
  fallback: {failureThreshold: 3, replicas: 6}
  triggers:
    - type: prometheus
      metadata: {serverAddress: 'http://prometheus:9090', query: 'sum(jobs_waiting{queue=\"mail\"})', threshold: '30'}
    - type: cpu
      metricType: Utilization
      metadata: {value: '60'}
    - type: kafka
      metadata: {topic: mail}
";

    #[test]
    fn triggers_become_metrics_and_what_has_no_equivalent_is_named() {
        let imported = imported(SCALED).expect("two triggers have an equivalent");
        assert_eq!(imported.target, "Deployment worker");
        let document = &imported.annotations[1].1;
        for line in [
            "minReplicas: 0\n",
            "maxReplicas: 8\n",
            "name: jobs_waiting\n",
            "queue: mail\n",
            "averageValue: \"30\"\n",
            "averageUtilization: 60\n",
        ] {
            assert!(document.contains(line), "{line:?} is missing in\n{document}");
        }
        assert!(imported.annotations.contains(&("ebb.dev/hpa-sync-period".to_owned(), "30s".to_owned())));
        let retention = "autoscaling.knative.dev/scale-to-zero-pod-retention-period".to_owned();
        assert!(imported.annotations.contains(&(retention, "120s".to_owned())));
        assert!(
            imported.notes.iter().any(|note| note.starts_with("spec.triggers[2] (kafka) has no equivalent"))
        );
        assert!(imported.notes.iter().any(|note| note.starts_with("spec.fallback has no equivalent")));
    }

    #[test]
    fn only_a_series_with_its_labels_is_a_metric() {
        assert_eq!(series("up"), Some(("up", vec![])));
        assert_eq!(series(" sum( a:b{c=\"d\", e=\"f\"} ) "), Some(("a:b", vec![("c", "d"), ("e", "f")])));
        for query in ["rate(hits[2m])", "sum(rate(hits[2m]))", "a + b", "a{b=~\"c\"}", "a{b!=\"c\"}", "", "1"]
        {
            assert_eq!(series(query), None, "{query}");
        }
    }
}
