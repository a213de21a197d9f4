//! The main job: traffic scales real processes, from zero and back.

use std::time::Duration;

use tests::client::whole_answer;
use tests::{ConfigMap, Ebb, Revision, Service};

/// A service that gets no pod before its first request.
fn from_zero(name: &str) -> Service {
    Service::new(name).scaling("initial-scale", "0")
}

fn zero_allowed() -> ConfigMap {
    ConfigMap::short().set("allow-zero-initial-scale", "true")
}

#[tokio::test]
async fn fifty_clients_at_target_ten_get_eight_pods_and_then_none() {
    let ebb = Ebb::up(&[from_zero("hello").scaling("target", "10")], &zero_allowed()).await;
    ebb.until_pods("hello", 0).await;
    let load = ebb.load("hello").path("/?sleep=100");
    let traffic = load.closed_loop_in_background(50);
    // ⌈50 / (10 × 0.7)⌉
    let revision = ebb.until_pods("hello", 8).await;
    assert_eq!(revision.wanted(), 8);
    traffic.end_after_a_second().await.assert_all_answered();
    ebb.until_pods("hello", 0).await;
    load.one().await.assert_all_answered();
}

#[tokio::test]
async fn bounds_hold_whatever_the_load() {
    let service =
        Service::new("bounded").scaling("target", "10").scaling("min-scale", "1").scaling("max-scale", "3");
    let ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    ebb.until_pods("bounded", 1).await;
    let load = ebb.load("bounded").path("/?sleep=100");
    let traffic = tokio::spawn(async move { load.closed_loop(50, Duration::from_secs(12)).await });
    let mut most = 0;
    while !traffic.is_finished() {
        let revision = ebb.revision("bounded").await.expect("ebb answers");
        assert!(revision.wanted() <= 3, "{revision:?}");
        most = most.max(revision.ready());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    traffic.await.expect("the load ends").assert_all_answered();
    assert_eq!(most, 3);
    ebb.until_pods("bounded", 1).await;
}

#[tokio::test]
async fn a_hard_limit_of_one_is_never_exceeded() {
    let service = from_zero("hard").spec("containerConcurrency: 1").scaling("max-scale", "5");
    let ebb = Ebb::up(&[service], &zero_allowed()).await;
    let tally = ebb.load("hard").path("/?sleep=20").closed_loop(30, Duration::from_secs(8)).await;
    tally.assert_all_answered();
    assert_eq!(tally.most_in_one_pod, 1);
    assert!(tally.by_process.len() >= 5, "the load was spread over {:?}", tally.by_process);
}

#[tokio::test]
async fn requests_per_second_scale_too() {
    let service = from_zero("rate").scaling("metric", "rps").scaling("target", "20");
    let ebb = Ebb::up(&[service], &zero_allowed()).await;
    let traffic = ebb.load("rate").in_background(56);
    // 56 per second at 20 × 0.7 per pod.
    let revision = ebb.until("rate", "4 pods", |revision| revision.ready() == 4).await;
    assert_eq!(revision.field("target_per_pod").as_f64(), Some(14.0));
    traffic.end_after_a_second().await.assert_all_answered();
    ebb.until_pods("rate", 0).await;
}

#[tokio::test]
async fn get_and_explain_say_where_every_revision_stands() {
    let ebb =
        Ebb::up(&[Service::new("one").scaling("min-scale", "1"), from_zero("two")], &zero_allowed()).await;
    ebb.until_pods("one", 1).await;
    let (code, table, _) = ebb.run(&["get"]).await;
    assert_eq!(code, 0);
    let url = format!("http://one.localhost:{}", ebb.requests.port());
    for expected in
        ["one", "two", "1/1", &url, "REASON", "1 ready, ", "asleep: the next request starts a pod"]
    {
        assert!(table.contains(expected), "{expected} is missing in\n{table}");
    }
    // In a pipe nothing is cut, and every column has its place.
    let headings = |table: &str| {
        let line = table.lines().next().unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let (_, wide, _) = ebb.run(&["get", "-o", "wide"]).await;
    assert!(wide.contains("SERVES") && wide.contains("TARGET"), "{wide}");
    assert_eq!(headings(&table), headings(&wide));
    assert!(
        ebb.output().contains(&format!(
            "default/service/one: http://{} (Host: one.default.example.com; in a browser {url})",
            ebb.requests
        )),
        "{}",
        ebb.output()
    );
    for host in ["one.localhost", "one.default.localhost", "ONE.localhost:8080"] {
        let answer = whole_answer(ebb.requests, host, "/").await.expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    let page = whole_answer(ebb.api, "localhost", "/").await.expect("it is answered");
    assert!(page.contains("text/html") && page.contains("/v1/revisions"), "{page}");
    let json = ebb.json(&["get", "-o", "json"]).await.expect("get answers in JSON");
    assert_eq!(json["revisions"].as_array().map(Vec::len), Some(2), "{json}");
    let (code, text, _) = ebb.run(&["explain", "one"]).await;
    assert_eq!(code, 0);
    assert!(text.contains("min-scale"), "{text}");
    let explained = Revision(ebb.explain("one").await.expect("explain answers in JSON"));
    assert_eq!(explained.pids("app_pid").len(), 1, "{explained:?}");
    let (code, _, stderr) = ebb.run(&["explain", "three"]).await;
    assert_eq!(code, 1);
    assert!(stderr.contains("three") && stderr.contains("default/service/one"), "{stderr}");
}

#[tokio::test]
async fn a_sleeping_revision_is_shown_asleep_by_a_restarted_autoscaler_too() {
    let ebb = Ebb::up(&[from_zero("asleep")], &zero_allowed().set("scale-to-zero-grace-period", "30s")).await;
    ebb.until_pods("asleep", 0).await;
    let (code, _, stderr) = ebb.run(&["restart", "autoscaler"]).await;
    assert_eq!(code, 0, "{stderr}");
    ebb.until("asleep", "nothing but its sleep to be said", |revision| {
        revision.wanted() == 0 && revision.field("why_not_zero").is_null()
    })
    .await;
    let (_, table, _) = ebb.run(&["get"]).await;
    assert!(table.contains("asleep: the next request starts a pod"), "{table}");
    let (_, text, _) = ebb.run(&["explain", "asleep"]).await;
    assert!(text.contains("zero       now; the next request starts a pod"), "{text}");
}

#[tokio::test]
async fn a_watch_outlives_a_restart_of_everything() {
    let services = [Service::new("watched").scaling("min-scale", "1")];
    let mut first = Ebb::up(&services, &ConfigMap::short()).await;
    let api = first.api;
    let mut watch = tokio::process::Command::new(tests::ebb::executable())
        .args(["get", "--watch", "-o", "json", "--api", &format!("http://{api}")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let stdout = watch.stdout.take().expect("it is piped");
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
    let mut shown = async || {
        let looking = async {
            while let Some(line) = lines.next_line().await.expect("it prints") {
                if line.contains("default/service/watched") {
                    return;
                }
            }
            panic!("the watch ended");
        };
        tokio::time::timeout(Duration::from_secs(60), looking).await.expect("it shows the revision");
    };
    shown().await;
    first.signal(nix::sys::signal::Signal::SIGTERM);
    first.ended().await;
    // What was shown before is read away; then nothing more comes until an autoscaler answers again.
    let _second = Ebb::up_at(&services, &ConfigMap::short(), api).await;
    shown().await;
    shown().await;
}

#[tokio::test]
async fn the_api_is_asked_over_ipv6_too() {
    let api = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
    let ebb = Ebb::up_at(&[Service::new("six")], &ConfigMap::short(), api).await;
    assert!(ebb.api.is_ipv6());
    assert!(ebb.json(&["get", "-o", "json"]).await.is_ok());
}

/// The manifests still say what they said at the start; what counts is how many pods there are by now.
#[tokio::test]
async fn an_edit_of_the_config_map_reaches_revisions_at_zero() {
    let ebb = Ebb::up(&[Service::new("asleep")], &ConfigMap::short()).await;
    ebb.until("asleep", "zero after its first pod", |revision| {
        revision.pods().is_empty() && revision.had_ready(1)
    })
    .await;
    ebb.configure(&ConfigMap::short().set("min-scale", "1"));
    ebb.until_pods("asleep", 1).await;
    ebb.configure(&ConfigMap::short());
    ebb.until_pods("asleep", 0).await;
    ebb.configure(&ConfigMap::short().set("scale-to-zero-pod-retention-period", "20s"));
    ebb.load("asleep").one().await.assert_all_answered();
}

#[tokio::test]
async fn edits_take_effect_while_it_runs() {
    let service = Service::new("edited").scaling("min-scale", "1");
    let ebb =
        Ebb::up(&[service.clone(), Service::new("stays").scaling("min-scale", "1")], &ConfigMap::short())
            .await;
    let before = ebb.until_pods("edited", 1).await.pids("app_pid");
    // An annotation applies to the pods that are there.
    ebb.rewrite(&service.clone().scaling("min-scale", "2"));
    let grown = ebb.until_pods("edited", 2).await.pids("app_pid");
    assert!(grown.contains(&before[0]), "{grown:?} should contain {before:?}");
    assert!(ebb.output().contains("edited: it applies to the pods that run"), "{}", ebb.output());
    // The ConfigMap applies to every revision.
    ebb.configure(&ConfigMap::short().set("container-concurrency-target-default", "40"));
    ebb.until("edited", "a target of 28", |revision| revision.field("target_per_pod").as_f64() == Some(28.0))
        .await;
    assert!(ebb.output().contains("the ConfigMap changed"), "{}", ebb.output());
    // A Service that is removed with its file drains and stops.
    std::fs::remove_file(ebb.folder().join("edited.yaml")).expect("it is there");
    tests::eventually("the service is gone", Duration::from_secs(30), || async {
        let json = ebb.json(&["get", "-o", "json"]).await?;
        if json["revisions"].as_array().map(Vec::len) == Some(1) { Ok(()) } else { Err(json.to_string()) }
    })
    .await;
    tests::eventually("its processes have ended", Duration::from_secs(30), || async {
        let alive: Vec<u32> = grown.iter().copied().filter(|&pid| tests::ebb::is_alive(pid)).collect();
        if alive.is_empty() { Ok(()) } else { Err(format!("{alive:?}")) }
    })
    .await;
}

#[tokio::test]
async fn hosts_end_in_the_domain_that_was_chosen() {
    let services = [Service::new("named"), Service::new("other")];
    let ebb = Ebb::up_with(&services, &ConfigMap::short(), &["--domain", "test.org"]).await;
    tests::Load::new(ebb.requests, "named.default.test.org").one().await.assert_all_answered();
    let tally = tests::Load::new(ebb.requests, "named.default.example.com").one().await;
    assert_eq!(tally.refused(), 1, "{:?}", tally.outcomes);
}
