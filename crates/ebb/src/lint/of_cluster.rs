//! `kubectl ebb lint`: says of manifests of a cluster what the webhook of the injector would say when they
//! are applied, without a cluster. It is the webhook's own review.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use injector::{ConfigMapCheck, InjectorSettings, ReviewQuestion, answer};
use runtime::{OBSERVABILITY_CONFIG_MAP, Observability};
use serde_json::{Value, json};
use settings::{CONFIG_MAP_NAME, ClusterConfig};
use vocabulary::{Findings, INJECT_LABEL};

use crate::input_files::{files_of, read_text, title_of, yaml_documents};
use crate::output;

/// The kinds of workloads whose annotations and pods are reviewed.
const WORKLOADS: [&str; 4] = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"];

/// Exit code 0 if an injector would let all of it be applied (warnings allowed), 2 if not.
pub(super) fn run(named: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let (mut reviewed, mut is_sound) = (0, true);
    for file in files_of(named)? {
        let text = read_text(&file).with_context(|| format!("reading {}", file.display()))?;
        let place = file.display();
        match findings_of(&text) {
            Ok(found) => {
                reviewed += found.reviewed;
                is_sound &= found.findings.problems.is_empty();
                for problem in found.findings.problems {
                    output::print_problem(&format!("{place}: {problem}"));
                }
                for warning in found.findings.warnings {
                    output::print_warning(&format!("{place}: {warning}"));
                }
            }
            Err(problem) => {
                is_sound = false;
                output::print_problem(&format!("{place}: {problem}"));
            }
        }
    }
    if !is_sound {
        return Ok(ExitCode::from(2));
    }
    output::print_line(&verdict(reviewed))?;
    Ok(ExitCode::SUCCESS)
}

fn verdict(reviewed: usize) -> String {
    match reviewed {
        0 => format!(
            "nothing here is ebb's to check: workloads whose pods have the label {INJECT_LABEL}, {CONFIG_MAP_NAME} and {OBSERVABILITY_CONFIG_MAP} are (`ebb lint` checks files of `ebb up`)"
        ),
        1 => "1 object was checked and can be applied".to_owned(),
        more => format!("{more} objects were checked and can be applied"),
    }
}

/// What was found in one file.
#[derive(Debug, Default)]
struct ReviewedFile {
    findings: Findings<String>,
    /// How many objects an injector would look at.
    reviewed: usize,
}

fn findings_of(text: &str) -> Result<ReviewedFile, String> {
    let documents = yaml_documents(text)?;
    let mut file = ReviewedFile::default();
    for object in documents.iter().flat_map(items).filter(|object| is_reviewed(object)) {
        file.reviewed += 1;
        let Findings { problems, warnings } = review(object)?;
        let title = title_of(object);
        let titled = |line: String| format!("{title}: {line}");
        file.findings.problems.extend(problems.into_iter().map(titled));
        file.findings.warnings.extend(warnings.into_iter().map(titled));
    }
    Ok(file)
}

/// The objects of a document: one, or those of a List.
fn items(document: &Value) -> Vec<&Value> {
    match document["items"].as_array() {
        Some(items) if document["kind"] == "List" => items.iter().collect(),
        Some(_) | None => vec![document],
    }
}

fn is_reviewed(object: &Value) -> bool {
    let is_named = |name: &str| object["metadata"]["name"] == name;
    match object["kind"].as_str() {
        Some("ConfigMap") => is_named(CONFIG_MAP_NAME) || is_named(OBSERVABILITY_CONFIG_MAP),
        Some(kind) if WORKLOADS.contains(&kind) => {
            object["spec"]["template"]["metadata"]["labels"][INJECT_LABEL] == "true"
        }
        Some(_) | None => false,
    }
}

/// What an injector answers about an object that is new, with the defaults of every key.
fn review(object: &Value) -> Result<Findings<String>, String> {
    let settings = InjectorSettings {
        image: String::new(),
        link_ca: String::new(),
        cluster: ClusterConfig::default(),
        observability: None,
    };
    let others = [ConfigMapCheck { name: OBSERVABILITY_CONFIG_MAP, findings: Observability::findings }];
    let question = json!({"request": {"uid": "lint", "object": object}}).to_string();
    let reviewed = answer(question.as_bytes(), ReviewQuestion::Validate, &settings, &others);
    let reviewed = reviewed.ok_or_else(|| "it cannot be reviewed".to_owned())?;
    let response = &reviewed.review["response"];
    let problems = response["status"]["message"].as_str().map(str::to_owned);
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned);
    Ok(Findings { problems: problems.into_iter().collect(), warnings: warnings.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello, annotations: {autoscaling.knative.dev/window: "30s"}}
spec:
  template:
    metadata: {labels: {ebb.dev/inject: "true"}}
    spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]}
"#;

    fn found(text: &str) -> ReviewedFile {
        findings_of(text).expect("it is YAML")
    }

    #[test]
    fn manifests_of_a_cluster_are_told_what_the_webhook_would_say() {
        let sound = found(DEPLOYMENT);
        assert_eq!((sound.reviewed, sound.findings.problems.len()), (1, 0), "{:?}", sound.findings);
        let refused = found(&DEPLOYMENT.replace("30s", "5")).findings.problems.join("\n");
        assert!(refused.starts_with("Deployment hello: ") && refused.contains("window"), "{refused}");
        let no_port = found(&DEPLOYMENT.replace("containerPort: 8080", "containerPort: 53, protocol: UDP"));
        assert_eq!(no_port.findings.problems.len(), 1, "{:?}", no_port.findings);
        let map = "kind: ConfigMap\nmetadata: {name: config-autoscaler}\ndata: {stable-window: soon}\n";
        let map = found(&format!("kind: List\nitems:\n- {}", map.trim_end().replace('\n', "\n  ")));
        assert!(map.findings.problems.join("\n").contains("stable-window"), "{:?}", map.findings);
    }

    #[test]
    fn manifests_without_ebb_are_left_alone_and_said() {
        let foreign = found(&DEPLOYMENT.replace("\"true\"", "\"false\"").replace("30s", "soon"));
        assert_eq!((foreign.reviewed, foreign.findings.problems.len()), (0, 0));
        assert!(verdict(0).contains("ebb.dev/inject") && verdict(2).starts_with("2 objects"));
        assert!(findings_of("a: [").expect_err("broken").starts_with("it is not YAML"));
    }
}
