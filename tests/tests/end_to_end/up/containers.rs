//! What a manifest says of a pod's containers, on real processes.

use std::time::Duration;

use tests::ebb::{is_alive, signal_process};
use tests::{ConfigMap, Ebb, Revision, Service, eventually};

use crate::up::lifecycle::until_dead;

const PATIENCE: Duration = Duration::from_secs(60);

/// A Service that never serves; no probe asks whether it is ready.
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

/// An app, and beside it a container that runs this script.
fn with_helper(name: &str, script: &str) -> Service {
    Service::new(name)
        .scaling("min-scale", "1")
        .scaling("max-scale", "1")
        .container("name: web\nports: [{containerPort: 8080}]")
        .beside("helper", &["sh", "-c", script])
}

fn pid(revision: &Revision, which: &str) -> u32 {
    *revision.pids(which).first().unwrap_or_else(|| panic!("no {which}: {revision:?}"))
}

#[tokio::test]
async fn several_containers_are_several_processes_of_one_pod_that_end_together() {
    let helper = "trap 'echo helper ends; exit 0' TERM; echo helper on $PORT beside $PORT_WEB; \
                  echo not well >&2; while true; do sleep 0.1; done";
    let ebb = Ebb::up(&[with_helper("both", helper)], &ConfigMap::short()).await;
    let revision = ebb.until_pods("both", 1).await;
    ebb.load("both").burst(10).await.assert_all_answered();
    let ports =
        |which: &str| revision.pods()[0]["details"][which].as_str().map(str::to_owned).expect("a port");
    let said = format!("helper on {} beside {}", ports("container_helper_port"), ports("app_port"));
    printed(&ebb, "both", &format!("[both-00001-0001/helper] {said}")).await;
    printed(&ebb, "both", "[both-00001-0001/helper] not well").await;
    let json = ebb.run(&["logs", "both", "-o", "json"]).await.1;
    assert!(json.contains(r#""container":"helper","stream":"stderr","line":"not well""#), "{json}");
    let processes = ["pod_pid", "app_pid", "container_helper_pid"].map(|which| pid(&revision, which));
    assert!(processes.iter().all(|pid| is_alive(*pid)));
    ebb.rewrite(&with_helper("both", "exec sleep 1000"));
    printed(&ebb, "both", "helper ends").await;
    until_dead(&processes).await;
}

#[tokio::test]
async fn a_pod_of_which_a_container_ends_has_failed_and_says_which() {
    let helper = "echo no upstream >&2; sleep 2; exit 3";
    let ebb = Ebb::up(&[with_helper("fragile", helper)], &ConfigMap::short()).await;
    let first = ebb.until_pods("fragile", 1).await;
    let app = pid(&first, "app_pid");
    let revision = ebb
        .until("fragile", "its failure", |revision| {
            revision.field("last_failure")["reason"] == "the container helper exited with code 3"
        })
        .await;
    assert_eq!(revision.field("last_failure")["last_lines"], serde_json::json!(["no upstream"]));
    until_dead(&[app]).await;
    ebb.until("fragile", "a successor", |revision| {
        revision.ready() == 1 && !revision.pids("app_pid").contains(&app)
    })
    .await;
}

#[tokio::test]
async fn a_take_over_keeps_every_container_and_goes_on_reading_what_it_prints() {
    let helper = "n=0; while true; do n=$((n+1)); echo line $n; sleep 0.05; done";
    let service = with_helper("kept", helper).spec("terminationGracePeriodSeconds: 20");
    let mut first = Ebb::up(&[service], &ConfigMap::short()).await;
    let before = first.until_pods("kept", 1).await;
    printed(&first, "kept", "line 10").await;
    let second = first.successor().await;
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    printed(&second, "kept", "/helper] line ").await;
    let after = second.until_pods("kept", 1).await;
    for which in ["pod_pid", "app_pid", "container_helper_pid"] {
        assert_eq!(after.pids(which), before.pids(which), "{which}");
    }
    // Neither lost a line nor said one twice.
    let lines = |ebb: &Ebb| -> Vec<u32> {
        let output = ebb.output();
        let numbers = output.lines().filter_map(|line| line.strip_prefix("[kept-00001-0001/helper] line "));
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    eventually("lines read by both", PATIENCE, || async {
        let (old, new) = (lines(&first), lines(&second));
        let all: Vec<u32> = old.iter().chain(&new).copied().collect();
        let expected: Vec<u32> = (1..).take(all.len()).collect();
        if all == expected && !new.is_empty() { Ok(()) } else { Err(format!("{old:?} {new:?}")) }
    })
    .await;
    let processes = ["pod_pid", "app_pid", "container_helper_pid"].map(|which| pid(&after, which));
    signal_process(processes[2], nix::sys::signal::Signal::SIGKILL);
    until_dead(&processes).await;
    second
        .until("kept", "its failure", |revision| {
            revision.field("last_failure")["reason"] == "the container helper was killed by SIGKILL"
        })
        .await;
}

#[tokio::test]
async fn an_app_reads_nothing_and_is_killed_when_it_hears_no_order_to_end() {
    let deaf = Service::running("deaf", &["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
        .scaling("min-scale", "1")
        .spec("terminationGracePeriodSeconds: 2")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]");
    let mut ebb = Ebb::up(&[deaf], &ConfigMap::short()).await;
    let revision = ebb.until_pods("deaf", 1).await;
    let app = revision.pids("app_pid")[0];
    let stdin = std::fs::read_link(format!("/proc/{app}/fd/0")).expect("it lives");
    assert_eq!(stdin, std::path::Path::new("/dev/null"));
    ebb.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    until_dead(&[app]).await;
    // By its own pod, in time, and not by the supervisor that watches over that.
    assert!(!ebb.output().contains("is killed pod="), "{}", ebb.output());
    assert!(!ebb.output().contains("did not end within its time"), "{}", ebb.output());
}
