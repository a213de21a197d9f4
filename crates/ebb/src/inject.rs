//! `ebb inject`: how do these manifests look with their queue-proxies? What `kubectl apply` is to take
//! instead comes out, on standard output; a document that asks for no queue-proxy comes out as it went in.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use injector::{Injection, InjectorSettings, Outcome, inject};
use platform_local::{ForeignKinds, LoadedManifest, ManifestSource};
use serde_json::Value;
use settings::ClusterConfig;
use vocabulary::INJECT_LABEL;

use crate::cli::InjectOptions;
use crate::input_files::{read_text, title_of, yaml_documents};
use crate::{lint, output};

/// Prints every document of the files. Exit code 2 if something cannot be read or injected; then nothing of
/// that file is printed.
pub(crate) fn run(options: &InjectOptions) -> anyhow::Result<ExitCode> {
    let link_ca = read_text(&options.ca).with_context(|| format!("reading {}", options.ca.display()))?;
    if !link_ca.contains("BEGIN CERTIFICATE") {
        anyhow::bail!(
            "{} holds no certificate; write what `kubectl -n ebb-system get secret ebb-ca -o jsonpath='{{.data.ca\\.crt}}' | base64 -d` prints",
            options.ca.display()
        );
    }
    let loaded = match config_maps(&options.config)? {
        Ok(loaded) => loaded,
        Err(refused) => return Ok(refused),
    };
    let settings = InjectorSettings {
        image: options.image.clone(),
        link_ca,
        cluster: ClusterConfig::clone(&loaded.cluster),
        observability: loaded.observability.variable(),
    };
    let mut is_sound = true;
    for file in &options.files {
        let text = read_text(file).with_context(|| format!("reading {}", file.display()))?;
        match inject_all(&text, &settings) {
            Ok((manifests, warnings)) => {
                for warning in warnings {
                    output::print_warning(&format!("{}: {warning}", file.display()));
                }
                output::print_line(manifests.trim_end())?;
            }
            Err(problems) => {
                is_sound = false;
                for problem in problems {
                    output::print_warning(&format!("{}: {problem}", file.display()));
                }
            }
        }
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// What the ConfigMaps in these files say. Anything wrong is told with its place, and the exit code for that
/// returned.
fn config_maps(files: &[PathBuf]) -> anyhow::Result<Result<LoadedManifest, ExitCode>> {
    if files.is_empty() {
        return Ok(Ok(LoadedManifest::default()));
    }
    let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    let source = ManifestSource::new(files.to_vec(), "", ForeignKinds::Skipped)
        .with_context(|| format!("reading {names}"))?;
    let loaded = match platform_local::load(&source) {
        Ok(loaded) => loaded,
        Err(findings) => return Ok(Err(lint::refuse(&findings))),
    };
    // A person who names a file means the cluster's settings: a pod with the defaults would be another one
    // than the webhook's. `config-observability` may be missing, as on a cluster.
    if !loaded.has_cluster_config() {
        anyhow::bail!(
            "{names} holds no ConfigMap config-autoscaler; write what `kubectl -n ebb-system get configmap config-autoscaler config-observability -o yaml` prints"
        );
    }
    Ok(Ok(loaded))
}

/// All documents of a file, and what is worth a look.
fn inject_all(text: &str, settings: &InjectorSettings) -> Result<(String, Vec<String>), Vec<String>> {
    let documents = yaml_documents(text).map_err(|problem| vec![problem])?;
    let (mut all, mut warnings, mut problems) = (String::new(), Vec::new(), Vec::new());
    for mut document in documents.into_iter().filter(|document| !document.is_null()) {
        let title = title_of(&document);
        let named =
            |lines: Vec<String>| lines.into_iter().map(|line| format!("{title}: {line}")).collect::<Vec<_>>();
        if is_injected_without_scaling(&document) {
            problems.extend(named(vec![format!(
                "its pods are not scaled, and the webhook would refuse each of them; remove the label {INJECT_LABEL}"
            )]));
        }
        if let Some(pod) = pod_of(&mut document) {
            match inject(pod, settings) {
                Outcome::NotAsked => {}
                Outcome::Refused(reasons) => problems.extend(named(reasons)),
                Outcome::Injected(Injection { pod: with_sidecar, warnings: found }) => {
                    *pod = with_sidecar;
                    warnings.extend(named(found));
                }
            }
        }
        match serde_saphyr::to_string(&document) {
            Ok(written) => all.extend(["---\n", written.trim_end(), "\n"]),
            Err(error) => problems.extend(named(vec![format!("it cannot be written as YAML: {error}")])),
        }
    }
    if problems.is_empty() { Ok((all, warnings)) } else { Err(problems) }
}

/// The pod, or the template of pods, in a document of a kind that has one and can be scaled.
fn pod_of(document: &mut Value) -> Option<&mut Value> {
    match document["kind"].as_str()? {
        "Pod" => Some(document),
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController" => {
            document["spec"].get_mut("template")
        }
        _ => None,
    }
}

/// Whether pods of a kind that has no place in what we do ask for a queue-proxy.
fn is_injected_without_scaling(document: &Value) -> bool {
    let template = match document["kind"].as_str() {
        Some("DaemonSet" | "Job") => &document["spec"]["template"],
        Some("CronJob") => &document["spec"]["jobTemplate"]["spec"]["template"],
        Some(_) | None => return false,
    };
    template["metadata"]["labels"][INJECT_LABEL] == "true"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> InjectorSettings {
        InjectorSettings {
            image: "ebb-queue-proxy:1".to_owned(),
            link_ca: "BEGIN CERTIFICATE".to_owned(),
            cluster: ClusterConfig::default(),
            observability: None,
        }
    }

    const MANIFESTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: strings}
data: {a: "true", b: "0x10", c: "1e3", d: "no", e: "", f: "a: b # c", g: "two\nlines\n"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  template:
    metadata: {labels: {ebb.dev/inject: "true"}}
    spec:
      containers:
      - {name: app, image: app, ports: [{containerPort: 8080}]}
"#;

    fn documents(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).expect("YAML")
    }

    #[test]
    fn a_template_that_asks_gets_its_queue_proxy_and_the_rest_stays() {
        let (written, warnings) = inject_all(MANIFESTS, &settings()).expect("all is well");
        let [before, after] = [MANIFESTS, written.as_str()].map(documents);
        assert_eq!((before.len(), after.len(), warnings.len()), (2, 2, 0));
        assert_eq!(before[0], after[0], "{written}");
        let containers =
            after[1]["spec"]["template"]["spec"]["containers"].as_array().expect("a list").clone();
        assert_eq!((containers.len(), &containers[1]["image"]), (2, &Value::from("ebb-queue-proxy:1")));
        let (again, _) = inject_all(&written, &settings()).expect("all is well");
        assert_eq!(documents(&again), after);
    }

    #[test]
    fn a_refused_document_is_named_and_nothing_is_printed() {
        let problems = inject_all(
            &MANIFESTS.replace("containerPort: 8080", "containerPort: 53, protocol: UDP"),
            &settings(),
        );
        let problems = problems.expect_err("no TCP port").join("\n");
        assert!(problems.starts_with("Deployment hello: no container declares a TCP port"), "{problems}");
        assert!(inject_all("a: [", &settings()).expect_err("broken")[0].starts_with("it is not YAML"));
    }

    #[test]
    fn kinds_that_are_not_scaled_and_ask_for_a_queue_proxy_are_refused_by_name() {
        let template =
            "template:\n    metadata: {labels: {ebb.dev/inject: \"true\"}}\n    spec: {containers: []}\n";
        for (kind, spec) in [
            ("DaemonSet", format!("spec:\n  {template}")),
            ("Job", format!("spec:\n  {template}")),
            ("CronJob", format!("spec:\n jobTemplate:\n  spec:\n   {}", template.replace('\n', "\n   "))),
        ] {
            let manifest = format!("kind: {kind}\nmetadata: {{name: x}}\n{spec}");
            let problems = inject_all(&manifest, &settings()).expect_err(kind).join("\n");
            assert!(problems.starts_with(&format!("{kind} x: its pods are not scaled")), "{problems}");
            let quiet = manifest.replace("\"true\"", "\"false\"");
            assert_eq!(inject_all(&quiet, &settings()).expect("it does not ask").1.len(), 0);
        }
    }
}
