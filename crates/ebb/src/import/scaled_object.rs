//! KEDA's `ScaledObject`: its triggers as metrics of class hpa, as far as there is an equivalent.
//!
//! KEDA makes an autoscaler of Kubernetes' out of it and brings it to zero and back itself. Here one document
//! does both. A trigger that asks a system of its own has no equivalent: its number has to be recorded by
//! Prometheus, and is then a metric of type External.

use std::fmt::Write as _;

use settings::hpa::reading::{self, DocumentNode};

use super::cron;
use super::result::{ImportResult, document_annotations, messages};
use super::tree::{at, fields, map, number_at, text, text_at};

/// How long the last pod is kept after the last activity by default, in seconds (KEDA's `cooldownPeriod`).
pub(super) const COOLDOWN_DEFAULT: i64 = 300;
/// How often a trigger is asked by default, in seconds (`pollingInterval`).
const POLLING_DEFAULT: i64 = 30;
/// The most pods by default (`maxReplicaCount`).
pub(super) const MAX_DEFAULT: i64 = 100;

pub(super) fn import(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let spec = at(document, &["spec"]).ok_or_else(|| vec!["spec is missing".to_owned()])?;
    let name = text_at(spec, &["scaleTargetRef", "name"])
        .ok_or_else(|| vec!["spec.scaleTargetRef.name is missing".to_owned()])?;
    let kind = text_at(spec, &["scaleTargetRef", "kind"]).unwrap_or("Deployment");
    let mut notes = Vec::new();
    let scheduled = scheduled(spec, &mut notes);
    let (triggers, metrics): (Vec<usize>, Vec<DocumentNode>) = metrics(spec, &mut notes).into_iter().unzip();
    if metrics.is_empty() && !scheduled.is_empty() {
        note_what_is_left(spec, &mut notes);
        note_pauses(document, &mut notes);
        notes.push("without another trigger the count follows requests, beside the schedule".to_owned());
        let mut annotations = bounds(spec);
        annotations.extend(scheduled);
        return Ok(ImportResult { target: format!("{kind} {name}"), annotations, notes });
    }
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
    note_pauses(document, &mut notes);
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
    let in_words = |message: String| in_words_of_keda(&message, &triggers);
    let checked = reading::read_spec(&DocumentNode::Map(written), "spec")
        .map_err(|problems| messages(problems).into_iter().map(in_words).collect::<Vec<_>>())?;
    notes.extend(checked.warnings.into_iter().map(|warning| in_words(warning.message)));
    let mut annotations = document_annotations(&checked.value);
    let polling = number_at(spec, &["pollingInterval"]).unwrap_or(POLLING_DEFAULT);
    annotations.push(("ebb.dev/hpa-sync-period".to_owned(), format!("{polling}s")));
    if min == 0 {
        let cooldown = number_at(spec, &["cooldownPeriod"]).unwrap_or(COOLDOWN_DEFAULT);
        let retention = "autoscaling.knative.dev/scale-to-zero-pod-retention-period";
        annotations.push((retention.to_owned(), format!("{cooldown}s")));
    }
    annotations.extend(scheduled);
    Ok(ImportResult { target: format!("{kind} {name}"), annotations, notes })
}

/// A message about the document that was made, in the words of the one that was written. `triggers` has for
/// each metric the place of its trigger.
fn in_words_of_keda(message: &str, triggers: &[usize]) -> String {
    let behavior = "spec.advanced.horizontalPodAutoscalerConfig.behavior";
    let mut message = message
        .replace("spec.behavior", behavior)
        .replace("minReplicas", "minReplicaCount")
        .replace("maxReplicas", "maxReplicaCount");
    for (place, trigger) in triggers.iter().enumerate() {
        message = message.replace(&format!("spec.metrics[{place}]"), &format!("spec.triggers[{trigger}]"));
    }
    message
}

/// The bounds of a workload without a metric.
fn bounds(spec: &DocumentNode) -> Vec<(String, String)> {
    let bound = |key: &str, field: &str, default: i64| {
        let count = number_at(spec, &[field]).unwrap_or(default);
        (format!("autoscaling.knative.dev/{key}"), count.to_string())
    };
    vec![bound("min-scale", "minReplicaCount", 0), bound("max-scale", "maxReplicaCount", MAX_DEFAULT)]
}

/// The schedule that triggers of type cron make, with its time zone, which is that of the first trigger that
/// is taken; nothing where there is none.
fn scheduled(spec: &DocumentNode, notes: &mut Vec<String>) -> Vec<(String, String)> {
    let Some(DocumentNode::List(triggers)) = at(spec, &["triggers"]) else { return Vec::new() };
    let (mut lines, mut zone) = (String::new(), None);
    for (index, trigger) in triggers.iter().enumerate().filter(|(_, trigger)| is_cron(trigger)) {
        let of = |field: &str| text_at(trigger, &["metadata", field]).unwrap_or_default();
        let place = format!("spec.triggers[{index}]");
        let Some(time) = cron::time_between(of("start"), of("end")) else {
            notes.push(format!(
                "{place} (cron) is not taken: start {:?} and end {:?} are no times of the same days; write a line of ebb.dev/schedule",
                of("start"),
                of("end"),
            ));
            continue;
        };
        if *zone.get_or_insert(of("timezone")) != of("timezone") {
            notes.push(format!(
                "{place} (cron) is not taken: one time zone holds for all lines of a schedule"
            ));
            continue;
        }
        let _ = writeln!(lines, "{time} min={}", of("desiredReplicas"));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let zone = ("ebb.dev/time-zone".to_owned(), zone.unwrap_or_default().to_owned());
    vec![zone, ("ebb.dev/schedule".to_owned(), lines)]
}

fn is_cron(trigger: &DocumentNode) -> bool {
    text_at(trigger, &["type"]) == Some("cron")
}

fn note_what_is_left(spec: &DocumentNode, notes: &mut Vec<String>) {
    for (field, why) in [
        ("fallback", "a metric that fails never takes pods away; there is no other count for that time"),
        ("idleReplicaCount", "without work there are minReplicas"),
        ("initialCooldownPeriod", "a new workload has its initial-scale until it was ready"),
    ] {
        if at(spec, &[field]).is_some() {
            notes.push(format!("spec.{field} has no equivalent: {why}"));
        }
    }
    if at(spec, &["advanced", "restoreToOriginalReplicaCount"]) == Some(&DocumentNode::Boolean(true)) {
        notes.push(
            "spec.advanced.restoreToOriginalReplicaCount has no equivalent: the count stays as it is when the annotations go"
                .to_owned(),
        );
    }
    if at(spec, &["advanced", "scalingModifiers"]).is_some() {
        notes.push(
            "spec.advanced.scalingModifiers has no equivalent: record the formula as a series".to_owned(),
        );
    }
}

/// A pause is a word of a person's about the present, and not imported.
fn note_pauses(document: &DocumentNode, notes: &mut Vec<String>) {
    for (key, value) in fields(at(document, &["metadata", "annotations"])) {
        if key.starts_with("autoscaling.keda.sh/paused") && *value != text("false") {
            let remedy = "write ebb.dev/paused: \"true\" where the count is to stay, and scale by hand";
            notes.push(format!("{key} is left out: {remedy}"));
        }
    }
}

/// The metrics that triggers become, each with the place of its trigger.
fn metrics(spec: &DocumentNode, notes: &mut Vec<String>) -> Vec<(usize, DocumentNode)> {
    let Some(DocumentNode::List(triggers)) = at(spec, &["triggers"]) else { return Vec::new() };
    let mut metrics = Vec::new();
    for (index, trigger) in triggers.iter().enumerate().filter(|(_, trigger)| !is_cron(trigger)) {
        let kind = text_at(trigger, &["type"]).unwrap_or_default();
        let metric = match kind {
            "cpu" | "memory" => resource(kind, trigger),
            "prometheus" => prometheus(trigger, &format!("spec.triggers[{index}]"), notes),
            "external-push" if is_http_add_on(trigger) => {
                Err("import the HTTPScaledObject or InterceptorRoute that it names".to_owned())
            }
            _ => Err("export its number to Prometheus, and use a metric of type External".to_owned()),
        };
        match metric {
            Ok(metric) => metrics.push((index, metric)),
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
fn prometheus(trigger: &DocumentNode, place: &str, notes: &mut Vec<String>) -> Result<DocumentNode, String> {
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
    let target = match text_at(trigger, &["metricType"]) {
        Some("AverageValue") | None => ("AverageValue", "averageValue"),
        Some("Value") => ("Value", "value"),
        Some(other) => return Err(format!("its metricType {other:?} is none of a number from outside")),
    };
    let target = map(&[("type", text(target.0)), (target.1, text(threshold))]);
    note_how_it_is_asked(trigger, place, notes);
    Ok(map(&[("type", text("External")), ("external", map(&[("metric", map(&metric)), ("target", target)]))]))
}

/// What of the trigger is said elsewhere here, or not at all.
fn note_how_it_is_asked(trigger: &DocumentNode, place: &str, notes: &mut Vec<String>) {
    notes.push(format!(
        "{place}: the matcher namespace=\"…\" is added, of the workload's namespace; prometheus-namespace-label: \"\" in ConfigMap config-autoscaler turns that off"
    ));
    if text_at(trigger, &["metadata", "ignoreNullValues"]) != Some("false") {
        notes.push(format!(
            "{place}: without a series the metric fails, and is not 0 as in KEDA, so no pod is taken away; record it with \"or vector(0)\""
        ));
    }
    if at(trigger, &["authenticationRef"]).is_some() {
        notes.push(format!(
            "{place}.authenticationRef has no equivalent: prometheus-bearer-token-file and prometheus-ca-file in ConfigMap config-autoscaler say how the server is asked"
        ));
    }
    for (key, value) in fields(at(trigger, &["metadata"])) {
        let place = format!("{place}.metadata.{key}");
        match (key.as_str(), value) {
            ("query" | "threshold" | "metricName" | "ignoreNullValues", _) => {}
            ("serverAddress", DocumentNode::Text(address)) => notes.push(format!(
                "{place}: one server is asked for all workloads; set prometheus-url: {address:?} in ConfigMap config-autoscaler"
            )),
            ("activationThreshold", DocumentNode::Text(zero)) if zero == "0" => {}
            ("activationThreshold", _) => {
                notes.push(format!("{place} has no equivalent: whatever is above zero wakes the workload"));
            }
            _ => notes.push(format!("{place} has no equivalent")),
        }
    }
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
    use super::super::tests::{assert_valid, imported};
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
    fn messages_have_the_field_names_of_keda() {
        let problems =
            imported(&SCALED.replace("maxReplicaCount: 8", "maxReplicaCount: 0")).expect_err("none");
        assert!(problems[0].starts_with("spec.maxReplicaCount is 0"), "{problems:?}");
        let text = "spec.metrics[1].resource is odd";
        assert_eq!(in_words_of_keda(text, &[0, 2]), "spec.triggers[2].resource is odd");
    }

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
        assert_valid(&imported);
    }

    const OFFICE: &str = "\
kind: ScaledObject
metadata: {name: office}
spec:
  scaleTargetRef: {name: office}
  minReplicaCount: 1
  maxReplicaCount: 8
  triggers:
    - type: cron
      metadata: {timezone: Europe/Berlin, start: 0 7 * * 1-5, end: 30 18 * * 1-5, desiredReplicas: '4'}
    - type: cron
      metadata: {timezone: Asia/Tokyo, start: 0 1 * * *, end: 0 2 * * *, desiredReplicas: '2'}
    - type: cron
      metadata: {timezone: Europe/Berlin, start: 0 7 1 * *, end: 0 8 1 * *, desiredReplicas: '2'}
";

    #[test]
    fn triggers_of_cron_become_a_schedule() {
        let imported = imported(OFFICE).expect("a trigger has an equivalent");
        assert_valid(&imported);
        let expected = "\
autoscaling.knative.dev/min-scale: \"1\"
autoscaling.knative.dev/max-scale: \"8\"
ebb.dev/time-zone: \"Europe/Berlin\"
ebb.dev/schedule: |
  Mon-Fri 07:00-18:30 min=4
";
        let text = imported.text();
        assert!(text.contains(expected), "{text}");
        for said in ["spec.triggers[1] (cron) is not taken: one time zone", "start \"0 7 1 * *\" and end"] {
            assert!(imported.notes.iter().any(|note| note.contains(said)), "{said}: {:?}", imported.notes);
        }
    }

    #[test]
    fn a_trigger_that_is_refused_sets_no_time_zone() {
        // The last trigger of these is refused wherever it stands.
        let (head, triggers) = OFFICE.split_once("    - type: cron\n").expect("there are three triggers");
        let (taken, refused) = triggers.rsplit_once("    - type: cron\n").expect("there are three triggers");
        let refused = refused.replace("Europe/Berlin", "America/Lima");
        let text = format!("{head}    - type: cron\n{refused}    - type: cron\n{taken}");
        let imported = imported(&text).expect("a trigger has an equivalent");
        assert_valid(&imported);
        let zone = ("ebb.dev/time-zone".to_owned(), "Europe/Berlin".to_owned());
        assert!(imported.annotations.contains(&zone), "{imported:?}");
        let schedule = ("ebb.dev/schedule".to_owned(), "Mon-Fri 07:00-18:30 min=4\n".to_owned());
        assert!(imported.annotations.contains(&schedule), "{imported:?}");
    }

    #[test]
    fn a_schedule_stands_beside_metrics() {
        let cron = "    - {type: cron, metadata: {timezone: UTC, start: 0 7 * * *, end: 0 9 * * *, desiredReplicas: '4'}}\n";
        let imported = imported(&format!("{SCALED}{cron}")).expect("three triggers have an equivalent");
        assert_valid(&imported);
        assert_eq!(imported.annotations[0].1, "hpa.autoscaling.knative.dev");
        let schedule = ("ebb.dev/schedule".to_owned(), "07:00-09:00 min=4\n".to_owned());
        assert!(imported.annotations.contains(&schedule), "{imported:?}");
        assert!(!imported.notes.iter().any(|note| note.contains("(cron)")), "{imported:?}");
    }

    /// What would otherwise be lost without a word: the trigger asks another server, as another user, and
    /// counts otherwise.
    #[test]
    fn a_prometheus_trigger_keeps_its_kind_of_target_and_names_what_is_said_elsewhere() {
        let scaled = "\
kind: ScaledObject
metadata: {name: worker, annotations: {autoscaling.keda.sh/paused-replicas: '2', autoscaling.keda.sh/paused: 'false'}}
spec:
  scaleTargetRef: {name: worker}
  initialCooldownPeriod: 60
  advanced: {restoreToOriginalReplicaCount: true}
  triggers:
    - type: prometheus
      metricType: Value
      authenticationRef: {name: keys}
      metadata: {serverAddress: 'http://prometheus:9090', query: jobs, threshold: '30', activationThreshold: '5', unsafeSsl: 'true'}
";
        let imported = imported(scaled).expect("the trigger has an equivalent");
        assert_valid(&imported);
        let document = &imported.annotations[1].1;
        assert!(document.contains("type: Value\n        value: \"30\"\n"), "{document}");
        for said in [
            "spec.initialCooldownPeriod has no equivalent",
            "spec.advanced.restoreToOriginalReplicaCount has no equivalent",
            "autoscaling.keda.sh/paused-replicas is left out",
            "spec.triggers[0]: the matcher namespace=\"…\" is added",
            "spec.triggers[0]: without a series the metric fails",
            "spec.triggers[0].authenticationRef has no equivalent",
            "spec.triggers[0].metadata.activationThreshold has no equivalent",
            "spec.triggers[0].metadata.unsafeSsl has no equivalent",
            "set prometheus-url: \"http://prometheus:9090\"",
        ] {
            assert!(imported.notes.iter().any(|note| note.contains(said)), "{said}: {:#?}", imported.notes);
        }
        assert!(!imported.notes.iter().any(|note| note.contains("keda.sh/paused is")), "it is not paused");
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
