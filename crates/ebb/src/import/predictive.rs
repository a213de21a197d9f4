//! `AdvancedHorizontalPodAutoscalerTemplate` of Alibaba Cloud, and the annotations beside it: class ahpa with
//! the same metric and bounds, the time of a start, and the hours of its bounds as a schedule.

use settings::hpa::reading::DocumentNode;

use super::cron;
use super::result::ImportResult;
use super::tree::{at, fields, number_at, text_at};

/// The prefix of Alibaba Cloud's own annotations; the others are Knative's.
pub(super) const OWN_PREFIX: &str = "autoscaling.alibabacloud.com/";
const KNATIVE: &str = "autoscaling.knative.dev/";
const CLASS: &str = "ahpa.autoscaling.knative.dev";

pub(super) fn import(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let spec = at(document, &["spec"]).ok_or_else(|| vec!["spec is missing".to_owned()])?;
    let mut imported = ImportResult { target: target(document, spec), ..ImportResult::default() };
    annotate(&mut imported, &format!("{KNATIVE}class"), CLASS);
    if !take_metrics(spec, &mut imported) {
        let why = "no metric has an equivalent, so nothing can be imported".to_owned();
        return Err([vec![why], imported.notes].concat());
    }
    for (field, key) in [("minReplicas", "min-scale"), ("maxReplicas", "max-scale")] {
        if let Some(number) = number_at(spec, &[field]) {
            annotate(&mut imported, &format!("{KNATIVE}{key}"), &number.to_string());
        }
    }
    if let Some(strategy) = text_at(spec, &["scaleStrategy"]) {
        take_strategy("spec.scaleStrategy", strategy, &mut imported);
    }
    take_prediction(spec, &mut imported);
    take_bounds(spec, &mut imported);
    Ok(imported)
}

/// Takes the strategy, which says whether pods follow forecasts; `place` names its field or annotation.
pub(super) fn take_strategy(place: &str, strategy: &str, imported: &mut ImportResult) {
    match strategy {
        "auto" => annotate(imported, "ebb.dev/prediction", "auto"),
        "observer" => {
            annotate(imported, "ebb.dev/prediction", "observe");
            imported.notes.push(format!(
                "{place}: with \"observe\" nothing is asked for early, and the class goes on by itself; ebb.dev/shadow: \"true\" writes no count at all"
            ));
        }
        other => imported
            .notes
            .push(format!("{place} {other:?} has no equivalent: a forecast only raises the count")),
    }
}

fn target(document: &DocumentNode, spec: &DocumentNode) -> String {
    let of_spec = |field: &str| text_at(spec, &["scaleTargetRef", field]);
    match of_spec("name") {
        Some(name) => format!("{} {name}", of_spec("kind").unwrap_or("Deployment")),
        None => format!("what uses {}", text_at(document, &["metadata", "name"]).unwrap_or("the template")),
    }
}

fn annotate(imported: &mut ImportResult, key: &str, value: &str) {
    imported.annotations.push((key.to_owned(), value.to_owned()));
}

/// Takes the first metric that is made of requests. Returns whether there is one.
fn take_metrics(spec: &DocumentNode, imported: &mut ImportResult) -> bool {
    let Some(DocumentNode::List(metrics)) = at(spec, &["metrics"]) else { return false };
    let mut is_taken = false;
    for (index, metric) in metrics.iter().enumerate() {
        let place = format!("spec.metrics[{index}]");
        let name = text_at(metric, &["resource", "name"]).unwrap_or_default();
        let target = number_at(metric, &["resource", "target", "averageUtilization"])
            .or_else(|| number_at(metric, &["resource", "target", "averageValue"]));
        match (name, target) {
            ("rps" | "concurrency", Some(target)) if !is_taken => {
                is_taken = true;
                annotate(imported, &format!("{KNATIVE}metric"), name);
                annotate(imported, &format!("{KNATIVE}target"), &target.to_string());
                annotate(imported, &format!("{KNATIVE}target-utilization-percentage"), "100");
            }
            ("rps" | "concurrency", Some(_)) => {
                imported.notes.push(format!("{place} is left out: one metric decides, which is the first"));
            }
            ("rps" | "concurrency", None) => {
                imported.notes.push(format!("{place} has no target that is a whole number"));
            }
            _ => imported.notes.push(format!(
                "{place} ({}) has no equivalent: prediction goes by rps or concurrency",
                if name.is_empty() { "of another type" } else { name }
            )),
        }
    }
    is_taken
}

fn take_prediction(spec: &DocumentNode, imported: &mut ImportResult) {
    for (field, value) in fields(at(spec, &["prediction"])) {
        match (field.as_str(), value) {
            ("scaleUpForward", DocumentNode::Integer(seconds)) => {
                annotate(imported, "ebb.dev/scale-up-forward", &format!("{seconds}s"));
            }
            ("quantile", _) => imported.notes.push(
                "spec.prediction.quantile has no equivalent: rules of several quantiles are played against the last seven days, and the cheapest of the best is in force".to_owned(),
            ),
            _ => imported.notes.push(format!("spec.prediction.{field} has no equivalent")),
        }
    }
}

/// Takes bounds of hours as lines of a schedule.
fn take_bounds(spec: &DocumentNode, imported: &mut ImportResult) {
    let Some(DocumentNode::List(periods)) = at(spec, &["instanceBounds"]) else { return };
    let mut schedule = String::new();
    for (index, period) in periods.iter().enumerate() {
        let place = format!("spec.instanceBounds[{index}]");
        if let (Some(start), Some(end)) = (text_at(period, &["startTime"]), text_at(period, &["endTime"])) {
            imported.notes.push(format!(
                "{place} is for {start} to {end}: a schedule has no dates, and holds until it is taken away"
            ));
        }
        let Some(DocumentNode::List(bounds)) = at(period, &["bounds"]) else { continue };
        for (index, bound) in bounds.iter().enumerate() {
            schedule.push_str(&lines_of(
                bound,
                spec,
                &format!("{place}.bounds[{index}]"),
                &mut imported.notes,
            ));
        }
    }
    if !schedule.is_empty() {
        imported.notes.push("hours are those of ebb.dev/time-zone, UTC if that is not set".to_owned());
        annotate(imported, "ebb.dev/schedule", &schedule);
    }
}

/// The lines of one bound, each with its line break; no line where the bound narrows nothing of the spec's.
fn lines_of(bound: &DocumentNode, spec: &DocumentNode, place: &str, notes: &mut Vec<String>) -> String {
    let pattern = text_at(bound, &["cron"]).unwrap_or_default();
    let Some(times) = cron::times_of_hours(pattern) else {
        notes.push(format!(
            "{place}.cron {pattern:?} is not taken: a schedule has hours and days of the week; write a line such as \"Mon-Fri 07:00-10:00 min=5\""
        ));
        return String::new();
    };
    let number = |node: &DocumentNode, field: &str| number_at(node, &[field]);
    let (min, max) = (number(bound, "minReplicas"), number(bound, "maxReplicas"));
    let (least, most) =
        (number(spec, "minReplicas").unwrap_or(0), number(spec, "maxReplicas").unwrap_or(i64::MAX));
    if min.is_some_and(|min| min < least) || max.is_some_and(|max| max > most) {
        notes.push(format!(
            "{place} lies beyond minReplicas and maxReplicas of the whole, within which a schedule stays"
        ));
    }
    let min = min.filter(|min| *min > least).map(|min| format!(" min={min}")).unwrap_or_default();
    let max = max.filter(|max| *max < most).map(|max| format!(" max={max}")).unwrap_or_default();
    if min.is_empty() && max.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = times.iter().map(|time| format!("{time}{min}{max}\n")).collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_valid, imported};

    const TEMPLATE: &str = "\
apiVersion: autoscaling.alibabacloud.com/v1beta1
kind: AdvancedHorizontalPodAutoscalerTemplate
metadata: {name: shop}
spec:
  metrics:
    - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 40}}}
    - {type: Resource, resource: {name: rps, target: {type: Utilization, averageUtilization: 10}}}
  maxReplicas: 50
  minReplicas: 1
  scaleStrategy: observer
  prediction: {quantile: 95, scaleUpForward: 180}
  instanceBounds:
    - startTime: '2023-06-01 00:00:00'
      endTime: '2123-06-01 00:00:00'
      bounds:
        - {cron: '* 0-6 ? * *', maxReplicas: 50, minReplicas: 1}
        - {cron: '* 7-9 ? * MON-FRI', maxReplicas: 50, minReplicas: 5}
        - {cron: '* 17-23 ? * *', maxReplicas: 20, minReplicas: 2}
        - {cron: '0 0 1 * *', maxReplicas: 20, minReplicas: 2}
";

    #[test]
    fn a_template_becomes_class_ahpa_with_a_schedule() {
        let imported = imported(TEMPLATE).expect("sound");
        assert_valid(&imported);
        let expected = "\
autoscaling.knative.dev/class: \"ahpa.autoscaling.knative.dev\"
autoscaling.knative.dev/metric: \"rps\"
autoscaling.knative.dev/target: \"10\"
autoscaling.knative.dev/target-utilization-percentage: \"100\"
autoscaling.knative.dev/min-scale: \"1\"
autoscaling.knative.dev/max-scale: \"50\"
ebb.dev/prediction: \"observe\"
ebb.dev/scale-up-forward: \"180s\"
ebb.dev/schedule: |
  Mon-Fri 07:00-10:00 min=5
  17:00-24:00 min=2 max=20
";
        let text = imported.text();
        assert!(text.contains(expected), "{text}");
        for said in [
            "spec.metrics[0] (cpu) has no equivalent",
            "quantile has no equivalent",
            "a schedule has no dates",
            "bounds[3].cron \"0 0 1 * *\" is not taken",
            "those of ebb.dev/time-zone",
        ] {
            assert!(imported.notes.iter().any(|note| note.contains(said)), "{said}: {:?}", imported.notes);
        }
    }

    #[test]
    fn a_template_without_a_metric_of_requests_cannot_be_imported() {
        let problems = imported(&TEMPLATE.replace("rps", "gpu")).expect_err("nothing to import");
        assert!(problems[0].starts_with("no metric has an equivalent"), "{problems:?}");
        assert!(problems[2].contains("spec.metrics[1] (gpu)"), "{problems:?}");
    }

    #[test]
    fn an_autoscaler_with_a_workload_names_it() {
        let text = TEMPLATE
            .replace("PodAutoscalerTemplate", "PodAutoscaler")
            .replace(
                "  maxReplicas: 50\n  min",
                "  scaleTargetRef: {kind: Deployment, name: web}\n  maxReplicas: 50\n  min",
            )
            .replace("observer", "scalingUpOnly");
        let imported = imported(&text).expect("sound");
        assert_eq!(imported.target, "Deployment web");
        assert!(imported.notes.iter().any(|note| note.contains("\"scalingUpOnly\" has no equivalent")));
    }
}
