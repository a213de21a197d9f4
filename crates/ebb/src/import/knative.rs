//! A Knative Service: its annotations mean here what they mean in Knative.
//!
//! On one machine the manifest runs as it is. On a cluster there is no Knative Service, so what it says
//! beside its annotations is named, with the place where it goes.

use settings::hpa::reading::DocumentNode;

use super::predictive;
use super::result::ImportResult;
use super::tree::{at, fields, number_at, text_at};

pub(super) fn service(document: &DocumentNode) -> ImportResult {
    let name = text_at(document, &["metadata", "name"]).unwrap_or_default();
    let annotations = at(document, &["spec", "template", "metadata", "annotations"]);
    let mut imported = ImportResult { target: format!("Service {name}"), ..ImportResult::default() };
    for (key, value) in fields(annotations) {
        let DocumentNode::Text(value) = value else { continue };
        if key.starts_with("autoscaling.knative.dev/") {
            imported.annotations.push((key.clone(), value.clone()));
        } else if let Some(name) = key.strip_prefix(predictive::OWN_PREFIX) {
            match name {
                "scaleStrategy" => predictive::take_strategy(key, value, &mut imported),
                _ => imported.notes.push(format!("annotation {key} has no equivalent")),
            }
        }
    }
    let notes = &mut imported.notes;
    if imported.annotations.is_empty() {
        notes.push("it has no autoscaling annotation: the defaults apply, which are Knative's".to_owned());
    }
    notes.push("the manifest can be used as it is: `ebb up -f FILE`".to_owned());
    note_limits(document, notes);
    if let Some(DocumentNode::List(targets)) = at(document, &["spec", "traffic"])
        && targets.iter().any(is_split)
    {
        let why = "a workload is one revision; split traffic where you route";
        notes.push(format!("spec.traffic has no equivalent: {why}"));
    }
    imported
}

/// What a pod's queue-proxy goes by, which stands on the pod template on a cluster.
fn note_limits(document: &DocumentNode, notes: &mut Vec<String>) {
    for (field, annotation, unit) in [
        ("containerConcurrency", "container-concurrency", ""),
        ("timeoutSeconds", "timeout", "s"),
        ("responseStartTimeoutSeconds", "response-start-timeout", "s"),
        ("idleTimeoutSeconds", "idle-timeout", "s"),
    ] {
        let number = number_at(document, &["spec", "template", "spec", field]).filter(|&number| number > 0);
        notes.extend(number.map(|number| {
            format!(
                "spec.template.spec.{field} becomes, on a cluster, ebb.dev/{annotation}: \"{number}{unit}\" on the pod template of the workload"
            )
        }));
    }
}

/// All traffic to the latest revision is what there is here.
fn is_split(target: &DocumentNode) -> bool {
    text_at(target, &["revisionName"]).is_some()
        || text_at(target, &["tag"]).is_some()
        || number_at(target, &["percent"]).is_some_and(|percent| percent != 100)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_valid, imported};

    const MANIFEST: &str = "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: hello}
spec: {template: {metadata: {annotations: {autoscaling.knative.dev/target: '7', other: x}}}}
";

    #[test]
    fn a_manifest_keeps_its_annotations() {
        let imported = imported(MANIFEST).expect("sound");
        assert_eq!(imported.annotations, [("autoscaling.knative.dev/target".to_owned(), "7".to_owned())]);
        assert_valid(&imported);
        assert_eq!(imported.notes, ["the manifest can be used as it is: `ebb up -f FILE`"]);
    }

    #[test]
    fn fields_that_stand_elsewhere_on_a_cluster_or_nowhere_are_named() {
        let imported = imported(
            "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: hello}
spec:
  template:
    metadata:
      annotations: {autoscaling.knative.dev/class: hpa.example.com, autoscaling.knative.dev/window: '5'}
    spec: {containerConcurrency: 10, timeoutSeconds: 60, responseStartTimeoutSeconds: 5, idleTimeoutSeconds: 0}
  traffic: [{latestRevision: true, percent: 90}, {revisionName: hello-1, percent: 10}]
",
        )
        .expect("it can be read");
        for said in [
            "containerConcurrency becomes, on a cluster, ebb.dev/container-concurrency: \"10\"",
            "spec.timeoutSeconds becomes, on a cluster, ebb.dev/timeout: \"60s\"",
            "responseStartTimeoutSeconds becomes, on a cluster, ebb.dev/response-start-timeout: \"5s\"",
            "spec.traffic has no equivalent",
            "annotation autoscaling.knative.dev/window is \"5\", which has no unit",
        ] {
            assert!(imported.notes.iter().any(|note| note.contains(said)), "{said}: {:?}", imported.notes);
        }
        assert!(!imported.notes.iter().any(|note| note.contains("idleTimeoutSeconds")));
    }

    #[test]
    fn annotations_of_alibaba_cloud_become_ours() {
        let predicted = MANIFEST.replace(
            "other: x",
            "autoscaling.knative.dev/class: ahpa.autoscaling.knative.dev, \
             autoscaling.alibabacloud.com/scaleStrategy: observer, autoscaling.alibabacloud.com/other: other",
        );
        let imported = imported(&predicted).expect("sound");
        assert_valid(&imported);
        let is_observed =
            |annotation: &(String, String)| annotation.0 == "ebb.dev/prediction" && annotation.1 == "observe";
        assert!(imported.annotations.iter().any(is_observed), "{imported:?}");
        let said = "annotation autoscaling.alibabacloud.com/other has no equivalent";
        assert!(imported.notes.iter().any(|note| note == said), "{imported:?}");
    }

    #[test]
    fn a_class_that_nothing_here_runs_is_named() {
        let foreign = MANIFEST
            .replace("autoscaling.knative.dev/target: '7'", "autoscaling.knative.dev/class: hpa.example.com");
        let imported = imported(&foreign).expect("it can be read");
        assert!(imported.notes.iter().any(|note| note.contains("which nothing here runs")), "{imported:?}");
    }
}
