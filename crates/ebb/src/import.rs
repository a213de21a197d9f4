//! `ebb import`: an autoscaler of another project goes in, annotations that mean the same come out, and what
//! has no equivalent is named.

mod cron;
mod http_add_on;
mod knative;
mod predictive;
mod result;
mod scaled_object;
mod tree;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use settings::hpa::reading::{self, DocumentNode};

use crate::cli::ImportOptions;
use crate::output;
use result::{ImportResult, document_annotations, messages};
use tree::text_at;

/// Prints what each document of the files becomes. Exit code 2 if something cannot be read.
pub(crate) fn run(options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let mut is_sound = true;
    for file in &options.files {
        let text = read_text(file).with_context(|| format!("reading {}", file.display()))?;
        let documents: Vec<DocumentNode> = serde_saphyr::from_multiple(&text)
            .map_err(|error| anyhow::anyhow!("{} is not YAML: {error}", file.display()))?;
        for document in documents.iter().filter(|document| **document != DocumentNode::Null) {
            match import(document) {
                Ok(imported) => output::print_line(imported.text().trim_end())?,
                Err(problems) => {
                    is_sound = false;
                    for problem in problems {
                        output::print_warning(&format!("{}: {problem}", file.display()));
                    }
                }
            }
        }
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The text of a file, or of standard input.
pub(crate) fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    if file.is_dir() {
        bail!("is a directory; name its files");
    }
    Ok(std::fs::read_to_string(file)?)
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
        assert!(text.starts_with("# Deployment web: ") && text.ends_with(expected), "{text}");
    }

    #[test]
    fn wrong_fields_and_unknown_kinds_are_named() {
        let problems = imported(&AUTOSCALER.replace("maxReplicas: 10", "maxReplicas: 0")).expect_err("none");
        assert!(problems[0].starts_with("spec.maxReplicas is 0"), "{problems:?}");
        let problems = imported("kind: Deployment\n").expect_err("nothing to import");
        assert!(problems[0].contains("kind is Deployment"), "{problems:?}");
    }
}
