//! `ebb up --record` and `ebb replay`: what a run decided is decided again.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service};
use tokio::process::Command;

async fn replay(arguments: &[&str]) -> (i32, String, String) {
    run("replay", arguments).await
}

/// Runs a command of `ebb` and returns exit code, standard output and standard error.
async fn run(command_of_ebb: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(executable());
    command.arg(command_of_ebb).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.expect("the executable starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_recorded_run_is_replayed_with_every_decision_as_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let record = folder.path().join("record");
    let record = record.to_str().expect("UTF-8");
    let service = Service::new("hello").scaling("target", "10").scaling("min-scale", "1");
    let mut ebb = Ebb::up_with(&[service], &ConfigMap::short(), &["--record", record]).await;
    ebb.until_pods("hello", 1).await;
    let load = ebb.load("hello").path("/?sleep=100");
    let traffic = tokio::spawn(async move { load.closed_loop(30, Duration::from_secs(8)).await });
    ebb.until_pods("hello", 5).await;
    traffic.await.expect("the load ends").assert_all_answered();
    // While the record is written, too.
    let (exit, shown, errors) = replay(&[record, "--explain", "hello"]).await;
    assert_eq!(exit, 0, "{shown}{errors}");
    assert!(shown.contains("default/service/hello at "), "{shown}");
    // Copied over the API, also while it is written: a record like the first one.
    let saved = folder.path().join("saved");
    let saved = saved.to_str().expect("UTF-8");
    let (exit, shown, errors) = ebb.run(&["record", "save", saved]).await;
    assert_eq!((exit, errors.as_str()), (0, ""), "{shown}");
    assert!(shown.contains("autoscaler autoscaler-1: 1 segment, "), "{shown}");
    let (exit, shown, errors) = replay(&[saved]).await;
    assert_eq!(exit, 0, "{shown}{errors}");
    assert!(shown.contains(" decisions, all as recorded"), "{shown}");
    let (exit, _, errors) = ebb.run(&["record", "save", saved]).await;
    assert!(exit == 1 && errors.contains("it holds a record already"), "{errors}");
    // Rebuilt: another life of the autoscaler, in the same record.
    let (exit, _, errors) = ebb.run(&["restart", "autoscaler"]).await;
    assert_eq!(exit, 0, "{errors}");
    ebb.until_pods("hello", 1).await;
    ebb.signal(Signal::SIGTERM);
    assert!(ebb.ended().await.success());

    let (exit, shown, errors) = replay(&[record]).await;
    assert_eq!((exit, errors.as_str()), (0, ""), "{shown}");
    assert!(shown.contains("autoscaler-1: ") && shown.contains(" decisions, all as recorded"), "{shown}");
    // The load of the run: 30 clients whose requests took a tenth of a second, for 8 s.
    let manifests = ebb.folder().to_str().expect("UTF-8");
    let simulation = ["-f", manifests, "--record", record];
    let (exit, shown, errors) = run("simulate", &simulation).await;
    assert_eq!((exit, errors.as_str()), (0, ""), "{shown}");
    let row = shown.lines().find(|line| line.contains("default/service/hello")).expect("a row");
    let requests: Option<u32> = row.split_whitespace().find_map(|word| word.parse().ok());
    assert!(requests.is_some_and(|requests| requests > 1_000), "{shown}");
    let (exit, _, errors) = run("simulate", &[&simulation[..], &["--hours", "1"]].concat()).await;
    assert_eq!(exit, 2, "{errors}");
    assert!(errors.contains("--record: the record ends after "), "{errors}");
    let (exit, shown, errors) = replay(&[record, "--with", "target=2"]).await;
    assert_eq!(exit, 0, "{shown}{errors}");
    assert!(shown.contains("  default/service/hello: ") && shown.contains(" in the place of "), "{shown}");
    let (exit, _, errors) = replay(&[record, "--with", "window=1s"]).await;
    assert_eq!(exit, 2, "{errors}");
    assert!(errors.contains("autoscaling.knative.dev/window is \"1s\""), "{errors}");
    let (exit, _, errors) = replay(&[folder.path().to_str().expect("UTF-8")]).await;
    assert_eq!(exit, 2, "the folder of the record is one level below: {errors}");
}

#[tokio::test]
async fn an_anonymous_record_is_replayed_under_other_names() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let record = folder.path().join("record");
    let record = record.to_str().expect("UTF-8");
    let service = Service::new("hello").scaling("min-scale", "1");
    let options = ["--record", record, "--anonymous"];
    let mut ebb = Ebb::up_with(&[service], &ConfigMap::short(), &options).await;
    ebb.until_pods("hello", 1).await;
    ebb.load("hello").burst(5).await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    assert!(ebb.ended().await.success());
    let (exit, shown, errors) = replay(&[record, "--at", "23:59:59"]).await;
    assert_eq!((exit, errors.as_str()), (0, ""), "{shown}");
    assert!(shown.contains("the record is anonymous: the counts that were recorded in "), "{shown}");
    assert!(shown.contains("/service/") && !shown.contains("hello"), "{shown}");
}
