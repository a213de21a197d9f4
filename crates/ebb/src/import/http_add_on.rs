//! KEDA's HTTP add-on: `HTTPScaledObject` and `InterceptorRoute`, whose numbers are requests too.
//!
//! Its interceptor is called in the app's place, by host and path; here the Service itself is. So what routes
//! has no equivalent and needs none, and what scales becomes Knative's short form, or, with both metrics at
//! once, a document of class hpa. The add-on fills a pod up to its target, and Knative to 70 % of it, unless
//! told otherwise: it is.

use settings::hpa::reading::{self, DocumentNode};

use super::result::{ImportResult, document_annotations, messages};
use super::scaled_object::{COOLDOWN_DEFAULT, MAX_DEFAULT};
use super::tree::{at, fields, map, number_at, text, text_at};

/// `targetValue` where an `HTTPScaledObject` has none; an `InterceptorRoute` must have one.
const TARGET_DEFAULT: i64 = 100;
/// The default of `requestRate.window`, which is Knative's.
const WINDOW_DEFAULT: &str = "1m";

/// What the add-on measures of the requests.
#[derive(Clone, Copy)]
struct AddOnMetric {
    field: &'static str,
    knative: &'static str,
    own: &'static str,
}

const METRICS: [AddOnMetric; 2] = [
    AddOnMetric { field: "concurrency", knative: "concurrency", own: "ebb.concurrency" },
    AddOnMetric { field: "requestRate", knative: "rps", own: "ebb.rps" },
];

/// The add-on's object until 0.13: it names the workload, and its `ScaledObject` is made from it.
pub(super) fn scaled_object(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let spec = at(document, &["spec"]).ok_or_else(|| vec!["spec is missing".to_owned()])?;
    // The first versions named a Deployment by a field of its own, and counted requests that wait or run.
    let name = text_at(spec, &["scaleTargetRef", "name"])
        .or_else(|| text_at(spec, &["scaleTargetRef", "deployment"]))
        .ok_or_else(|| vec!["spec.scaleTargetRef.name is missing".to_owned()])?;
    let kind = text_at(spec, &["scaleTargetRef", "kind"]).unwrap_or("Deployment");
    let mut imported = ImportResult { target: format!("{kind} {name}"), ..ImportResult::default() };
    let mut targets = targets(spec, Some(TARGET_DEFAULT))?;
    if targets.is_empty() {
        let pending = number_at(spec, &["targetPendingRequests"]).unwrap_or(TARGET_DEFAULT);
        if pending < 1 {
            return Err(vec![format!("spec.targetPendingRequests is {pending}; it must be at least 1")]);
        }
        targets.push((METRICS[0], pending));
    }
    let min = number_at(spec, &["replicas", "min"]).unwrap_or(0);
    let max = number_at(spec, &["replicas", "max"]).unwrap_or(MAX_DEFAULT);
    imported.scale_by(&targets, spec, (min, max))?;
    if targets.len() == 1 {
        imported.annotate("min-scale", min.to_string());
        imported.annotate("max-scale", max.to_string());
    }
    if min == 0 {
        let cooldown = number_at(spec, &["scaledownPeriod"]).unwrap_or(COOLDOWN_DEFAULT);
        imported.annotate("scale-to-zero-pod-retention-period", format!("{cooldown}s"));
    }
    if let Some(service) = text_at(spec, &["scaleTargetRef", "service"]) {
        imported.note_service(service, &format!("{}/{name}", kind.to_lowercase()));
    }
    for (field, why) in [
        ("host", "clients call the Service, by whatever name leads to it"),
        ("hosts", "clients call the Service, by whatever name leads to it"),
        ("pathPrefixes", "what goes where is an ingress' affair; the Service is called for all paths"),
        ("headers", "what goes where is an ingress' affair"),
        ("initialCooldownPeriod", "a new workload stays until it was needed and then was not"),
        ("coldStartTimeoutFailoverRef", "a request waits as long as its own timeout allows"),
    ] {
        imported.note_if_there(spec, field, why);
    }
    imported.note_timeouts(spec, &[("responseHeader", "response-start-timeout")]);
    if annotation(document, "httpscaledobject.keda.sh/skip-scaledobject-creation") == Some("true") {
        imported.notes.push(
            "it has a ScaledObject of its own, whose other triggers are to be imported from there".to_owned(),
        );
    }
    Ok(imported)
}

/// The add-on's object from 0.14 on: it names a Service, and the `ScaledObject` stands beside it.
pub(super) fn route(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let spec = at(document, &["spec"]).ok_or_else(|| vec!["spec is missing".to_owned()])?;
    let service = text_at(spec, &["target", "service"])
        .ok_or_else(|| vec!["spec.target.service is missing".to_owned()])?;
    let targets = targets(spec, None)?;
    if targets.is_empty() {
        return Err(vec![
            "spec.scalingMetric names no metric; it must have concurrency, requestRate or both".to_owned(),
        ]);
    }
    let mut imported =
        ImportResult { target: format!("the workload of Service {service}"), ..ImportResult::default() };
    imported.scale_by(&targets, spec, (0, MAX_DEFAULT))?;
    let bounds = if targets.len() == 1 {
        "annotations min-scale, max-scale (KEDA's default is 100) and scale-to-zero-pod-retention-period (300s)"
    } else {
        "minReplicas and maxReplicas above, and the annotation scale-to-zero-pod-retention-period (300s)"
    };
    imported.notes.push(format!(
        "its ScaledObject has minReplicaCount, maxReplicaCount and cooldownPeriod: write them as {bounds}"
    ));
    imported.note_service(service, "deployment/NAME");
    imported.note_if_there(spec, "rules", "clients call the Service, by whatever name leads to it");
    if at(spec, &["staticRoutes"]).is_some() {
        imported.notes.push(
            "spec.staticRoutes has no equivalent: each request wakes the workload, so let an ingress answer these"
                .to_owned(),
        );
    }
    imported.note_if_there(spec, "coldStart", "a request waits as long as its own timeout allows");
    imported.note_timeouts(spec, &[("request", "timeout"), ("responseHeader", "response-start-timeout")]);
    Ok(imported)
}

/// Which metrics there are, and their targets.
fn targets(spec: &DocumentNode, default: Option<i64>) -> Result<Vec<(AddOnMetric, i64)>, Vec<String>> {
    let (mut targets, mut problems) = (Vec::new(), Vec::new());
    for metric in METRICS {
        if at(spec, &["scalingMetric", metric.field]).is_none() {
            continue;
        }
        match number_at(spec, &["scalingMetric", metric.field, "targetValue"]).or(default) {
            Some(target @ 1..) => targets.push((metric, target)),
            Some(target) => problems.push(format!(
                "spec.scalingMetric.{}.targetValue is {target}; it must be at least 1",
                metric.field
            )),
            None => problems.push(format!("spec.scalingMetric.{}.targetValue is missing", metric.field)),
        }
    }
    if problems.is_empty() { Ok(targets) } else { Err(problems) }
}

impl ImportResult {
    /// One metric in the short form; both in a document, where the larger number of pods wins as in KEDA.
    fn scale_by(
        &mut self,
        targets: &[(AddOnMetric, i64)],
        spec: &DocumentNode,
        (min, max): (i64, i64),
    ) -> Result<(), Vec<String>> {
        if let [(metric, target)] = targets {
            self.annotate("metric", metric.knative.to_owned());
            self.annotate("target", target.to_string());
            self.annotate("target-utilization-percentage", "100".to_owned());
        } else {
            let metrics = targets.iter().map(|(metric, target)| own_metric(*metric, *target)).collect();
            let written = map(&[
                ("minReplicas", DocumentNode::Integer(min)),
                ("maxReplicas", DocumentNode::Integer(max)),
                ("metrics", DocumentNode::List(metrics)),
            ]);
            let checked = reading::read_spec(&written, "spec").map_err(messages)?;
            self.annotations.extend(document_annotations(&checked.value));
        }
        let rate = ["scalingMetric", "requestRate"];
        let window = text_at(spec, &[rate[0], rate[1], "window"]).filter(|window| *window != WINDOW_DEFAULT);
        match window {
            Some(window) if targets.len() == 1 => self.annotate("window", window.to_owned()),
            Some(window) => {
                self.notes.push(format!("spec.scalingMetric.requestRate.window {window} has no equivalent beside a second metric: our own metrics are the mean of stable-window"));
            }
            None => {}
        }
        if at(spec, &[rate[0], rate[1], "granularity"]).is_some() {
            self.notes.push(
                "spec.scalingMetric.requestRate.granularity has no equivalent: it is one second".to_owned(),
            );
        }
        Ok(())
    }

    fn annotate(&mut self, key: &str, value: String) {
        self.annotations.push((format!("autoscaling.knative.dev/{key}"), value));
    }

    fn note_service(&mut self, service: &str, workload: &str) {
        self.notes.push(format!(
            "on a cluster Service {service} gets the annotation ebb.dev/revision: {workload} and loses its selector; point ingresses at it again, not at the interceptor"
        ));
    }

    fn note_if_there(&mut self, spec: &DocumentNode, field: &str, why: &str) {
        if at(spec, &[field]).is_some() {
            self.notes.push(format!("spec.{field} is not needed: {why}"));
        }
    }

    /// Limits belong to a pod, so they are no annotations of the workload.
    fn note_timeouts(&mut self, spec: &DocumentNode, known: &[(&str, &str)]) {
        for (field, value) in fields(at(spec, &["timeouts"])) {
            let DocumentNode::Text(value) = value else { continue };
            self.notes.push(match known.iter().find(|(known, _)| known == field) {
                Some((_, limit)) => format!(
                    "spec.timeouts.{field} is the annotation ebb.dev/{limit}: {value} on the pod template (on one machine the Service's field)"
                ),
                None => format!(
                    "spec.timeouts.{field} has no equivalent: how long a request waits is part of its whole time, ebb.dev/timeout"
                ),
            });
        }
    }
}

fn own_metric(metric: AddOnMetric, target: i64) -> DocumentNode {
    let target = map(&[("type", text("AverageValue")), ("averageValue", text(&target.to_string()))]);
    map(&[
        ("type", text("Pods")),
        ("pods", map(&[("metric", map(&[("name", text(metric.own))])), ("target", target)])),
    ])
}

fn annotation<'n>(document: &'n DocumentNode, key: &str) -> Option<&'n str> {
    text_at(document, &["metadata", "annotations", key])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_valid, imported};
    use super::*;

    const SCALED: &str = "\
apiVersion: http.keda.sh/v1alpha1
kind: HTTPScaledObject
metadata: {name: shop}
spec:
  hosts: [shop.example.com]
  scaleTargetRef: {name: shop, kind: Deployment, apiVersion: apps/v1, service: shop, port: 8080}
  replicas: {max: 7}
  scaledownPeriod: 60
  scalingMetric: {requestRate: {granularity: 1s, targetValue: 20, window: 30s}}
  timeouts: {conditionWait: 20s, responseHeader: 5s}
";
    const ROUTE: &str = "\
apiVersion: http.keda.sh/v1beta1
kind: InterceptorRoute
metadata: {name: shop}
spec:
  target: {service: shop, port: 80}
  rules: [{hosts: [shop.example.com]}]
  scalingMetric: {concurrency: {targetValue: 9}, requestRate: {targetValue: 20}}
  timeouts: {request: 60s}
";

    fn pairs(imported: &ImportResult) -> Vec<(&str, &str)> {
        imported.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    #[test]
    fn one_metric_becomes_knatives_short_form() {
        let imported = imported(SCALED).expect("sound");
        assert_eq!(imported.target, "Deployment shop");
        assert_eq!(
            pairs(&imported),
            [
                ("autoscaling.knative.dev/metric", "rps"),
                ("autoscaling.knative.dev/target", "20"),
                ("autoscaling.knative.dev/target-utilization-percentage", "100"),
                ("autoscaling.knative.dev/window", "30s"),
                ("autoscaling.knative.dev/min-scale", "0"),
                ("autoscaling.knative.dev/max-scale", "7"),
                ("autoscaling.knative.dev/scale-to-zero-pod-retention-period", "60s"),
            ]
        );
        assert_valid(&imported);
        for said in [
            "ebb.dev/revision: deployment/shop",
            "spec.hosts is not needed",
            "granularity has no equivalent",
            "spec.timeouts.conditionWait has no equivalent",
            "ebb.dev/response-start-timeout: 5s",
        ] {
            assert!(imported.notes.iter().any(|note| note.contains(said)), "{said}: {:?}", imported.notes);
        }
    }

    #[test]
    fn defaults_of_the_add_on_are_written_out() {
        let bare = "kind: HTTPScaledObject\nspec: {scaleTargetRef: {name: shop}}\n";
        let imported = imported(bare).expect("sound");
        let written = pairs(&imported);
        for pair in [
            ("autoscaling.knative.dev/metric", "concurrency"),
            ("autoscaling.knative.dev/target", "100"),
            ("autoscaling.knative.dev/max-scale", "100"),
            ("autoscaling.knative.dev/scale-to-zero-pod-retention-period", "300s"),
        ] {
            assert!(written.contains(&pair), "{pair:?} in {written:?}");
        }
        assert_valid(&imported);
    }

    #[test]
    fn the_first_versions_of_the_add_on_are_read_too() {
        let first = "kind: HTTPScaledObject\nspec:\n  host: shop.example.com\n  targetPendingRequests: 40\n  scaleTargetRef: {deployment: shop, service: shop, port: 80}\n";
        let imported = imported(first).expect("sound");
        assert_eq!(imported.target, "Deployment shop");
        assert!(pairs(&imported).contains(&("autoscaling.knative.dev/target", "40")), "{imported:?}");
        assert!(
            imported.notes.iter().any(|note| note.starts_with("spec.host is not needed")),
            "{imported:?}"
        );
        assert_valid(&imported);
    }

    #[test]
    fn a_wait_that_is_longer_than_allowed_becomes_the_longest_and_that_is_said() {
        let imported = imported(
            &SCALED
                .replace("scaledownPeriod: 60", "scaledownPeriod: 7200")
                .replace("window: 30s", "window: 2s"),
        )
        .expect("sound");
        let written = pairs(&imported);
        assert!(
            written.contains(&("autoscaling.knative.dev/scale-to-zero-pod-retention-period", "1h")),
            "{written:?}"
        );
        assert!(written.contains(&("autoscaling.knative.dev/window", "6s")), "{written:?}");
        let said = imported.notes.iter().filter(|note| note.contains("the nearest value that is allowed"));
        assert_eq!(said.count(), 2, "{:?}", imported.notes);
        assert_valid(&imported);
    }

    #[test]
    fn both_metrics_become_a_document() {
        let imported = imported(ROUTE).expect("sound");
        assert_eq!(imported.target, "the workload of Service shop");
        let document = &imported.annotations[1].1;
        for line in
            ["maxReplicas: 100\n", "name: ebb.concurrency\n", "name: ebb.rps\n", "averageValue: \"9\"\n"]
        {
            assert!(document.contains(line), "{line:?} is missing in\n{document}");
        }
        assert_valid(&imported);
        assert!(imported.notes.iter().any(|note| note.contains("ebb.dev/timeout: 60s")));
    }

    #[test]
    fn missing_and_wrong_fields_are_named() {
        let problems =
            imported(&ROUTE.replace("targetValue: 9", "other: 9").replace("20", "0")).expect_err("bad");
        assert_eq!(
            problems,
            [
                "spec.scalingMetric.concurrency.targetValue is missing",
                "spec.scalingMetric.requestRate.targetValue is 0; it must be at least 1"
            ]
        );
        let problems = imported("kind: HTTPScaledObject\nspec: {}\n").expect_err("no target");
        assert_eq!(problems, ["spec.scaleTargetRef.name is missing"]);
    }
}
