//! The request log, by Knative's settings in the ConfigMap `config-observability`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tests::{ConfigMap, Ebb, Service, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

/// Writes the ConfigMap with these settings, one on each line.
fn write(folder: &Path, settings: &[(&str, &str)]) -> PathBuf {
    let file = folder.join("observability.yaml");
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-observability\ndata:\n";
    let lines: Vec<String> = settings.iter().map(|(key, value)| format!("  {key}: '{value}'\n")).collect();
    std::fs::write(&file, head.to_owned() + &lines.concat()).expect("the folder can be written");
    file
}

/// The lines of Knative's shape that were printed so far.
fn lines(ebb: &Ebb) -> Vec<Value> {
    let output = ebb.output();
    let line = |line: &str| serde_json::from_str(&line[line.find("{\"httpRequest\"")?..]).ok();
    output.lines().filter_map(line).collect()
}

async fn until_lines(ebb: &Ebb, count: usize) -> Vec<Value> {
    eventually("a line for each request", PATIENCE, || async {
        let lines = lines(ebb);
        if lines.len() == count { Ok(lines) } else { Err(ebb.output()) }
    })
    .await
}

const ON: (&str, &str) = ("logging.enable-request-log", "true");

#[tokio::test]
async fn each_request_has_a_line_of_the_shape_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = write(folder.path(), &[ON]);
    let arguments = ["-f", file.to_str().expect("UTF-8")];
    let service = Service::new("hello").scaling("min-scale", "1");
    let mut ebb = Ebb::up_with(&[service], &ConfigMap::short(), &arguments).await;
    ebb.until_pods("hello", 1).await;
    let load = ebb.load("hello").path("/?sleep=20");
    for _ in 0..3 {
        load.one().await.assert_all_answered();
    }
    for line in until_lines(&ebb, 3).await {
        let request = &line["httpRequest"];
        assert_eq!((&request["requestMethod"], &request["status"]), (&"GET".into(), &200.into()), "{line}");
        assert_eq!((&request["requestUrl"], &request["responseSize"]), (&"/?sleep=20".into(), &"3".into()));
        assert_eq!((&request["serverIp"], &request["protocol"]), (&"127.0.0.1".into(), &"HTTP/1.1".into()));
        let latency = request["latency"].as_str().and_then(|text| text.strip_suffix('s')?.parse().ok());
        assert!(latency.is_some_and(|latency: f64| latency >= 0.02), "{line}");
    }
    // What is not understood is refused at its place, and changes nothing.
    write(folder.path(), &[ON, ("logging.request-log-template", "a {{.Request.Foo}}")]);
    eventually("a word about the template", PATIENCE, || async {
        let output = ebb.output();
        let refused = "observability.yaml:7:3: logging.request-log-template column 3: {{.Request.Foo}}";
        if output.contains(refused) { Ok(()) } else { Err(output) }
    })
    .await;
    load.one().await.assert_all_answered();
    until_lines(&ebb, 4).await;
    // Another shape is another template, for new pods.
    let template = r#"{{.Revision.Namespace}}/{{.Revision.Service}} {{.Response.Code}} {{index .Request.Header "Host"}}"#;
    write(folder.path(), &[ON, ("logging.request-log-template", template)]);
    eventually("a line of the new shape", PATIENCE, || async {
        load.one().await.assert_all_answered();
        let output = ebb.output();
        if output.contains("default/hello 200 [") { Ok(()) } else { Err(output) }
    })
    .await;
    // Off again: pods that know of no log take the place of the others.
    let revision = ebb.revision("hello").await.expect("it is there");
    let before = revision.pids("app_pid");
    write(folder.path(), &[("logging.enable-request-log", "false")]);
    ebb.until("hello", "other pods", |revision| {
        let now = revision.pids("app_pid");
        revision.ready() == 1 && now.len() == 1 && now.iter().all(|pid| !before.contains(pid))
    })
    .await;
    load.path("/off").one().await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    assert!(!ebb.output().contains("/off"), "{}", ebb.output());
}

#[tokio::test]
async fn a_request_that_the_activator_refuses_has_a_line_of_the_same_shape() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = write(folder.path(), &[ON]);
    let service = Service::new("hello").scaling("min-scale", "1");
    let arguments = ["-f", file.to_str().expect("UTF-8")];
    let ebb = Ebb::up_with(&[service], &ConfigMap::short(), &arguments).await;
    ebb.until_pods("hello", 1).await;
    // One answer of a pod, which has the line of it, and one of no pod.
    ebb.load("hello").path("/served").one().await.assert_all_answered();
    assert_eq!(ebb.load("nobody").path("/refused").one().await.refused(), 1);
    let written = until_lines(&ebb, 2).await;
    let of = |path: &str| {
        let line = written.iter().find(|line| line["httpRequest"]["requestUrl"] == path);
        line.unwrap_or_else(|| panic!("{path} is not in {written:?}"))
    };
    assert_eq!(of("/served")["httpRequest"]["status"], 200);
    let refused = &of("/refused")["httpRequest"];
    assert_eq!((&refused["status"], &refused["serverIp"]), (&404.into(), &"".into()), "{refused}");
    assert_ne!(refused["responseSize"], "0", "{refused}");
}

#[tokio::test]
async fn without_settings_no_request_has_a_line() {
    let mut ebb = Ebb::up(&[Service::new("hello")], &ConfigMap::short()).await;
    ebb.load("hello").path("/off").burst(3).await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    assert!(!ebb.output().contains("/off"), "{}", ebb.output());
}
