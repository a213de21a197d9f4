//! What was measured of a Service outlives a restart of the autoscaler, a take-over, and `ebb up` itself.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tests::ports::unused_address;
use tests::wait::eventually;
use tests::{ConfigMap, Ebb, Service};

const PATIENCE: Duration = Duration::from_secs(60);

fn arguments(api: SocketAddr, state: &Path) -> [String; 4] {
    ["--api".to_owned(), api.to_string(), "--state-dir".to_owned(), state.display().to_string()]
}

/// The ledger of the only revision.
async fn ledger(ebb: &Ebb) -> Result<Value, String> {
    let list = ebb.json(&["ledger", "-o", "json"]).await?;
    list["revisions"].as_array().and_then(|all| all.first()).cloned().ok_or_else(|| list.to_string())
}

/// Waits until the requests and the age of a former ledger are known, and returns the ledger of now.
async fn until_known(ebb: &Ebb, after: &str, former: &Value) -> Value {
    let age = |ledger: &Value| ledger["first_ms_ago"].as_u64().unwrap_or(0);
    let requests = |ledger: &Value| ledger["requests"].as_f64().unwrap_or(0.0);
    eventually(&format!("the history from before {after}"), PATIENCE, || async {
        let now = ledger(ebb).await?;
        let is_known = age(&now) >= age(former) && requests(&now) >= requests(former);
        if is_known { Ok(now) } else { Err(format!("{now} after {former}")) }
    })
    .await
}

#[tokio::test]
async fn a_history_survives_a_restart_of_the_autoscaler_a_take_over_and_a_restart_of_ebb_up() {
    let state = tempfile::tempdir().expect("a folder");
    let api = unused_address();
    let services = [Service::new("hello").scaling("class", "ahpa.autoscaling.knative.dev")];
    let written = arguments(api, state.path());
    let words: Vec<&str> = written.iter().map(String::as_str).collect();
    let mut ebb = Ebb::up_with(&services, &ConfigMap::short(), &words).await;
    // Requests that come before the first evaluation are in the ledger, too.
    ebb.load("hello").one().await.assert_all_answered();
    let mut known = eventually("the request is in the ledger", PATIENCE, || async {
        let now = ledger(&ebb).await?;
        if now["requests"].as_f64() >= Some(1.0) { Ok(now) } else { Err(now.to_string()) }
    })
    .await;

    let begins = (jiff::Timestamp::now() - Duration::from_secs(7200)).strftime("%Y-%m-%dT%H:%MZ").to_string();
    let past = state.path().join("hello.past");
    let lines = "600\n".repeat(60);
    std::fs::write(&past, format!("# begins {begins}\n# bin 1m\n# service-time 100ms\n{lines}"))
        .expect("the disk has room");
    let (code, told, trouble) =
        ebb.run(&["forecast", "hello", "--import", &past.display().to_string()]).await;
    assert!(code == 0 && told.contains("60 measured minutes"), "{told}{trouble}");

    assert_eq!(ebb.run(&["restart", "autoscaler"]).await.0, 0);
    known = until_known(&ebb, "the restart of the autoscaler", &known).await;
    let folder = state.path().join(format!("history-{}-{}", api.ip(), api.port()));
    let files: Vec<_> = std::fs::read_dir(&folder).expect("it was made").flatten().collect();
    assert!(
        files.iter().any(|file| file.path().extension().is_some_and(|end| end == "history")),
        "{files:?}"
    );
    for file in files {
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }

    let successor = ebb.successor_with(&["--state-dir", &state.path().display().to_string()]).await;
    assert!(ebb.ended().await.success());
    known = until_known(&successor, "the take-over", &known).await;
    let forecast = successor.json(&["forecast", "hello", "-o", "json"]).await.expect("it is told");
    assert_eq!(forecast["mode"], "auto", "{forecast}");
    assert!(
        forecast["why_not"].as_str().is_some_and(|why| why.contains("too little is known")),
        "{forecast}"
    );

    ebb = successor;
    ebb.signal(Signal::SIGTERM);
    assert!(ebb.ended().await.success());
    let ebb = Ebb::up_with(&services, &ConfigMap::short(), &words).await;
    until_known(&ebb, "the restart of ebb up", &known).await;
    let (code, exported, trouble) = ebb.run(&["forecast", "hello", "--export"]).await;
    assert!(code == 0 && exported.contains(&format!("# begins {begins}\n")), "{exported}{trouble}");
}

#[tokio::test]
async fn a_folder_in_which_another_process_writes_is_a_problem_that_is_told() {
    let state = tempfile::tempdir().expect("a folder");
    let api = unused_address();
    let folder = state.path().join(format!("history-{}-{}", api.ip(), api.port()));
    std::fs::create_dir_all(&folder).expect("the disk has room");
    let lock = std::fs::File::create(folder.join("lock")).expect("the disk has room");
    lock.try_lock().expect("it is new");
    let written = arguments(api, state.path());
    let words: Vec<&str> = written.iter().map(String::as_str).collect();
    let ebb = Ebb::up_with(&[Service::new("hello")], &ConfigMap::short(), &words).await;
    let list = ebb.json(&["get", "-o", "json"]).await.expect("it answers");
    let problems = list["problems"].to_string();
    assert!(problems.contains("another process writes there") && problems.contains("--state-dir"), "{list}");
}
