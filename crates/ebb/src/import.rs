//! `ebb import`: an autoscaler of another project goes in, annotations that mean the same come out, and what
//! has no equivalent is named.

mod cron;
mod http_add_on;
mod knative;
mod kubernetes;
mod predictive;
mod result;
mod scaled_object;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use platform_local::{NotYaml, TextPlace, Trouble};
use settings::hpa::reading::{self, DocumentNode};

use crate::cli::{ImportOptions, ImportTarget};
use crate::input_files::{files_of, read_text};
use crate::output;
use result::{ImportResult, document_annotations, messages};
use tree::text_at;

/// Prints what each document of the files becomes. Exit code 2 if something cannot be read, as of `ebb lint`.
pub(crate) fn run(options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let mut troubles = Vec::new();
    for file in files_of(&options.files)? {
        let read =
            read_text(&file).map_err(|error| trouble(&file, None, format!("cannot be read: {error:#}")));
        let nodes = read.and_then(|text| {
            let not_yaml =
                |found: NotYaml| trouble(&file, found.place, format!("is not YAML: {}", found.message));
            platform_local::read_yaml(&text).map_err(not_yaml)
        });
        let nodes = match nodes {
            Ok(nodes) => nodes,
            Err(trouble) => {
                troubles.push(trouble);
                continue;
            }
        };
        for node in nodes.into_iter().flat_map(platform_local::items) {
            match import_as(&platform_local::tree_of(&node), options) {
                Ok(text) => output::print_line(text.trim_end())?,
                Err(problems) => troubles.extend(problems.into_iter().map(|problem| {
                    let place = platform_local::place_of(path_in(&problem), &node);
                    trouble(&file, Some(place), problem)
                })),
            }
        }
    }
    if options.to == ImportTarget::Kubernetes && troubles.is_empty() {
        output::print_line(&format!("# {}", apply_command(options)))?;
    }
    for trouble in &troubles {
        output::print_problem(&trouble.to_string());
    }
    Ok(if troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The text that a document becomes.
fn import_as(document: &DocumentNode, options: &ImportOptions) -> Result<String, Vec<String>> {
    match options.to {
        ImportTarget::Annotations => import(document).map(|imported| imported.text()),
        ImportTarget::Kubernetes => kubernetes::objects(document, options.gateway.as_ref()),
    }
}

/// The line by which a person applies the objects that were printed.
fn apply_command(options: &ImportOptions) -> String {
    let files = options.files.iter().map(|file| format!(" -f {}", file.display()));
    let files = files.collect::<Vec<_>>().concat();
    let gateway = options.gateway.as_ref();
    let gateway = gateway.map_or_else(String::new, |to| format!(" --gateway {}/{}", to.namespace, to.name));
    format!("ebb import{files} --to kubernetes{gateway} | kubectl apply -f -")
}

fn trouble(file: &Path, place: Option<TextPlace>, message: String) -> Trouble {
    Trouble { file: file.to_owned(), place, message }
}

/// The field that a problem begins with: `spec.maxReplicas is 0` is about `spec.maxReplicas`.
fn path_in(problem: &str) -> &str {
    problem.split([' ', ':']).next().unwrap_or_default()
}

fn import(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let mut imported = import_unchecked(document)?;
    imported.check();
    Ok(imported)
}

fn import_unchecked(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    match text_at(document, &["kind"]) {
        Some("HorizontalPodAutoscaler") => autoscaler(document),
        Some("AdvancedHorizontalPodAutoscaler" | "AdvancedHorizontalPodAutoscalerTemplate") => {
            predictive::import(document)
        }
        Some("ScaledObject") => scaled_object::import(document),
        Some("HTTPScaledObject") => http_add_on::scaled_object(document),
        Some("InterceptorRoute") => http_add_on::route(document),
        Some("Service") if text_at(document, &["apiVersion"]) == Some("serving.knative.dev/v1") => {
            Ok(knative::service(document))
        }
        Some(kind) => Err(vec![format!(
            "kind is {kind}; what can be imported is HorizontalPodAutoscaler, AdvancedHorizontalPodAutoscaler(Template), ScaledObject, HTTPScaledObject, InterceptorRoute and Service of serving.knative.dev/v1"
        )]),
        None => Err(vec!["kind is missing; it must say what the document is".to_owned()]),
    }
}

fn autoscaler(document: &DocumentNode) -> Result<ImportResult, Vec<String>> {
    let json = |text: &str| serde_json::from_str(text).map_err(|error: serde_json::Error| error.to_string());
    let checked = reading::read_document(document, json).map_err(messages)?;
    let (target, document) = checked.value;
    Ok(ImportResult {
        target: format!("{} {}", target.target.kind, target.target.name),
        annotations: document_annotations(&document),
        notes: checked.warnings.into_iter().map(|warning| warning.message).collect(),
    })
}

#[cfg(test)]
mod tests {
    use settings::{ClusterConfig, RevisionSettings};

    use super::*;
    use crate::cli::GatewayName;

    pub(super) fn imported(yaml: &str) -> Result<ImportResult, Vec<String>> {
        import(&serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}")))
    }

    const AUTOSCALER: &str = "\
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  targetCPUUtilizationPercentage: 50
";

    /// What is printed is what the autoscaler takes.
    pub(super) fn assert_valid(imported: &ImportResult) {
        let annotations = imported.annotations.iter().cloned().collect();
        RevisionSettings::read(&annotations, &ClusterConfig::default(), None).expect("valid annotations");
    }

    #[test]
    fn an_autoscaler_of_any_version_becomes_the_same() {
        let first = imported(AUTOSCALER).expect("sound");
        assert_valid(&first);
        for (version, metric) in [
            ("v2beta1", "resource: {name: cpu, targetAverageUtilization: 50}"),
            ("v2beta2", "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}"),
            ("v2", "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}"),
        ] {
            let metrics = format!("metrics: [{{type: Resource, {metric}}}]");
            let document = AUTOSCALER
                .replace("autoscaling/v1", &format!("autoscaling/{version}"))
                .replace("targetCPUUtilizationPercentage: 50", &metrics);
            assert_eq!(imported(&document), Ok(first.clone()), "{version}");
        }
    }

    #[test]
    fn an_autoscaler_becomes_a_document_of_the_present_version() {
        let imported = imported(AUTOSCALER).expect("sound");
        let text = imported.text();
        let expected = "\
autoscaling.knative.dev/class: \"hpa.autoscaling.knative.dev\"
ebb.dev/hpa: |
  minReplicas: 1
  maxReplicas: 10
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: 50
";
        assert!(text.starts_with("# Deployment web: ") && text.contains(expected), "{text}");
        let last = text.lines().last().unwrap_or_default();
        let line = "# kubectl annotate --overwrite deployment/web autoscaling.knative.dev/class=hpa.autoscaling.knative.dev ebb.dev/hpa=$'minReplicas: 1\\n";
        assert!(last.starts_with(line), "{last}");
    }

    #[test]
    fn objects_of_a_cluster_end_with_the_line_that_applies_them() {
        let gateway = Some(GatewayName { namespace: "infra".to_owned(), name: "web".to_owned() });
        let files = vec!["a.yaml".into(), "b".into()];
        let options = ImportOptions { files, to: ImportTarget::Kubernetes, gateway };
        let expected = "ebb import -f a.yaml -f b --to kubernetes --gateway infra/web | kubectl apply -f -";
        assert_eq!(apply_command(&options), expected);
    }

    #[test]
    fn wrong_fields_and_unknown_kinds_are_named() {
        let problems = imported(&AUTOSCALER.replace("maxReplicas: 10", "maxReplicas: 0")).expect_err("none");
        assert!(problems[0].starts_with("spec.maxReplicas is 0"), "{problems:?}");
        let problems = imported("kind: Deployment\n").expect_err("nothing to import");
        assert!(problems[0].contains("kind is Deployment"), "{problems:?}");
    }
}
