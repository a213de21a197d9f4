//! What apps print: nothing is lost on the way to a file or pipe, and it can be asked for later.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

/// An app that prints and then lives on. Nobody asks whether it is ready.
fn printer(name: &str, script: &str) -> Service {
    Service::running(name, &["sh", "-c", &format!("{script}; exec sleep 1000")])
        .scaling("min-scale", "1")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]")
}

#[tokio::test]
async fn no_line_is_dropped_for_a_reader_that_is_slow() {
    const LINES: usize = 50_000;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let script = format!("seq 1 {LINES}");
    std::fs::write(folder.path().join("app.yaml"), printer("chatty", &script).yaml()).expect("writing");
    let mut child = Command::new(executable())
        .args(["up", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f", "app.yaml"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next: usize = 1;
    let reading = async {
        while next <= LINES {
            let line = lines.next_line().await.expect("it prints").expect("a line");
            // The queue-proxy logs under the same name.
            let number: Option<usize> =
                line.strip_prefix("[chatty-00001-0001] ").and_then(|line| line.parse().ok());
            let Some(number) = number else { continue };
            assert_eq!(next, number, "{line}");
            // More than the pipes and queues on the way have room for.
            if next == 1 {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            next += 1;
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("every line comes");
}

#[tokio::test]
async fn logs_can_be_asked_for_also_of_a_pod_that_has_ended() {
    let script = "echo to stdout; echo to stderr >&2; sleep 1; echo last words >&2; exit 7";
    let failing = Service::running("failing", &["sh", "-c", script]).scaling("min-scale", "1");
    let ebb = Ebb::up(&[failing, printer("living", "echo alive")], &ConfigMap::short()).await;
    eventually("the lines of the pod that ended", PATIENCE, || async {
        let (code, stdout, stderr) = ebb.run(&["logs", "failing", "--previous", "-o", "json"]).await;
        let lines: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut said: Vec<(&str, &str)> = lines
            .iter()
            .filter_map(|line| Some((line["stream"].as_str()?, line["line"].as_str()?)))
            .filter(|(stream, _)| *stream != "queue-proxy")
            .collect();
        said.sort_unstable();
        let expected = [("stderr", "last words"), ("stderr", "to stderr"), ("stdout", "to stdout")];
        if code == 0 && said == expected { Ok(()) } else { Err(format!("{stdout}{stderr}")) }
    })
    .await;
    let (_, text, _) = ebb.run(&["logs", "living", "--since", "5m"]).await;
    assert!(text.contains("[living-00001-") && text.contains("] alive"), "{text}");
    let revision = ebb.until("failing", "its last words", |revision| {
        revision.field("last_failure")["last_lines"].to_string().contains("last words")
    });
    assert_eq!(revision.await.field("last_failure")["reason"], "the app exited with code 7");
    let (_, explained, _) = ebb.run(&["explain", "failing"]).await;
    assert!(explained.contains("| last words"), "{explained}");
}

#[tokio::test]
async fn further_lines_are_followed() {
    let ebb = Ebb::up(
        &[printer("counting", "for i in $(seq 1 600); do echo $i; sleep 0.1; done")],
        &ConfigMap::short(),
    )
    .await;
    let mut child = Command::new(executable())
        .args(["logs", "counting", "-f", "--api", &format!("http://{}", ebb.api)])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let following = async {
        let mut next: usize = 1;
        while next <= 30 {
            let line = lines.next_line().await.expect("it prints").expect("a line");
            let number: Option<usize> =
                line.strip_prefix("[counting-00001-0001] ").and_then(|line| line.parse().ok());
            // The queue-proxy logs under the same name.
            let Some(number) = number else { continue };
            assert_eq!(next, number, "{line}");
            next += 1;
        }
    };
    tokio::time::timeout(PATIENCE, following).await.expect("thirty lines come");
}

#[tokio::test]
async fn every_line_is_json_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("app.yaml"), printer("plain", "echo hello").yaml()).expect("writing");
    let mut child = Command::new(executable())
        .args([
            "up",
            "--listen",
            "127.0.0.1:0",
            "--api",
            "127.0.0.1:0",
            "--log-format",
            "json",
            "-f",
            "app.yaml",
        ])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    // A quick pod's first line may come before the addresses.
    let reading = async {
        let (mut welcome, mut line) = (None, None);
        while welcome.is_none() || line.is_none() {
            let text = stdout.next_line().await.expect("it prints").expect("a line");
            let read: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            if read["line"] == "hello" {
                line = Some(read);
            } else if read["requests"].is_string() {
                welcome = Some(read);
            }
        }
        (welcome.expect("it was seen"), line.expect("it was seen"))
    };
    let (welcome, line) = tokio::time::timeout(PATIENCE, reading).await.expect("both lines come");
    assert!(welcome["requests"].as_str().is_some_and(|url| url.starts_with("http://")), "{welcome}");
    assert_eq!((&line["stream"], &line["pod"]), (&"stdout".into(), &"plain-00001-0001".into()), "{line}");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    tests::ebb::signal_process(child.id().expect("it runs"), nix::sys::signal::Signal::SIGTERM);
    while let Some(line) = stderr.next_line().await.expect("it prints") {
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}
