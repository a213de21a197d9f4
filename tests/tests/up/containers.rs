//! What a manifest says of a pod's containers, on real processes.

use std::time::Duration;

use tests::{ConfigMap, Ebb, Service, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

/// A Service that never serves; nobody asks whether it is ready.
fn script(name: &str, script: &str) -> Service {
    Service::running(name, &["sh", "-c", script])
        .scaling("min-scale", "1")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]")
}

async fn printed(ebb: &Ebb, service: &str, line: &str) {
    eventually(&format!("{line:?} of {service}"), PATIENCE, || async {
        let (_, text, _) = ebb.run(&["logs", service]).await;
        if text.contains(line) { Ok(()) } else { Err(text) }
    })
    .await;
}

#[tokio::test]
async fn variables_come_from_config_maps_and_secrets_and_an_edit_of_one_rolls() {
    let data = |colour: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{COLOUR: {colour}}}\n---\n\
             apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\ndata: {{password: JChQT1JUKQ==}}\n"
        )
    };
    let said = "echo \"colour $COLOUR, password $PASSWORD, pod $POD\"; exec sleep 1000";
    let service = script("told", said).container(
        "envFrom: [{configMapRef: {name: settings}}]\nenv:\n\
         - {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}\n\
         - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}",
    );
    // The document is needed, so it must be there before.
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("data.yaml");
    std::fs::write(&file, data("blue")).expect("writing");
    let ebb = Ebb::up_with(&[service], &ConfigMap::short(), &["-f", &file.to_string_lossy()]).await;
    printed(&ebb, "told", "colour blue, password $(PORT), pod told-00001-0001").await;
    std::fs::write(&file, data("green")).expect("writing");
    printed(&ebb, "told", "colour green, password $(PORT), pod told-00002-0002").await;
}

#[tokio::test]
async fn an_app_has_as_long_to_end_as_its_manifest_says() {
    // Longer than apps have whose manifests do not say.
    let slow =
        "trap 'sleep 12; echo ended in order; exit 0' TERM; echo started; while true; do sleep 0.1; done";
    let ebb =
        Ebb::up(&[script("slow", slow).spec("terminationGracePeriodSeconds: 60")], &ConfigMap::short()).await;
    printed(&ebb, "slow", "started").await;
    ebb.rewrite(&script("slow", "exec sleep 1000"));
    printed(&ebb, "slow", "ended in order").await;
}
