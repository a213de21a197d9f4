//! When things break: killed processes, apps that misbehave, links that are cut or stall.

use std::time::Duration;

use nix::sys::signal::Signal;
use tests::bench::clock;
use tests::client::{Outcome, whole_answer};
use tests::ebb::{descendants, signal_process};
use tests::grip::{Grip, PANIC_TEXT, PanickingPart};
use tests::relay::{Mood, Relay};
use tests::{ConfigMap, Ebb, Service, eventually};

use crate::up::lifecycle::until_dead;

#[tokio::test]
async fn a_killed_app_or_queue_proxy_breaks_only_what_it_held() {
    let ebb = Ebb::up(&[Service::new("killed").scaling("min-scale", "3")], &ConfigMap::short()).await;
    for which in ["app_pid", "queue_proxy_pid"] {
        let revision = ebb.until_pods("killed", 3).await;
        let victim = revision.pids(which)[0];
        let load = ebb.load("killed").path("/?sleep=50");
        let traffic = tokio::spawn(async move { load.steady(100, Duration::from_secs(5)).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        signal_process(victim, Signal::SIGKILL);
        let tally = traffic.await.expect("the load ends");
        tally.assert_none_lost();
        let broken = tally.sent - tally.answered();
        // At most what the victim held: a third of 100/s × 50 ms, with room for a slow machine.
        assert!(broken <= 30, "{which}: {:?}", tally.outcomes);
        for outcome in tally.outcomes.keys() {
            let named = match outcome {
                Outcome::Answered | Outcome::BrokenAfterStart => true,
                Outcome::Refused(502, reason) => reason == "upstream-closed" || reason == "upstream-reset",
                Outcome::Refused(..)
                | Outcome::ClosedWhileIdle
                | Outcome::ConnectionRefused
                | Outcome::Lost(_) => false,
            };
            assert!(named, "{which}: {outcome:?}");
        }
        ebb.until("killed", "a replacement", |revision| {
            revision.ready() == 3 && !revision.pids(which).contains(&victim)
        })
        .await;
    }
}

#[tokio::test]
async fn bytes_behind_a_response_are_explained_while_connections_to_the_app_are_not_used_again() {
    let service = Service::new("late").args(&["--raw"]).scaling("min-scale", "1");
    let host = service.host();
    let ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    ebb.until_pods("late", 1).await;
    let whole = whole_answer(ebb.requests, &host, "/whole").await.expect("an answer");
    assert!(whole.starts_with("HTTP/1.1 200 "), "{whole}");
    let (_, text, _) = ebb.run(&["explain", "late"]).await;
    assert!(!text.contains("late bytes"), "{text}");
    for _ in 0..2 {
        let late = whole_answer(ebb.requests, &host, "/late-bytes").await.expect("an answer");
        assert!(late.ends_with("\r\n\r\nok\n"), "{late}");
    }
    let words = "the app sent bytes behind whole responses on 2 connections; each of its connections is used for one request, for 9m";
    eventually("a line about late bytes", Duration::from_secs(60), || async {
        let (_, text, _) = ebb.run(&["explain", "late"]).await;
        if text.contains(words) { Ok(()) } else { Err(text) }
    })
    .await;
    let detail = ebb.json(&["explain", "late", "-o", "json"]).await.expect("it answers");
    assert_eq!(detail["pods"][0]["late_bytes"]["connections"], 2, "{detail}");
}

/// Nothing goes on half alive: the process ends at once, says which part failed and why, and takes its pods
/// with it. Who started it (systemd, `docker run --restart`) starts it again.
#[tokio::test]
async fn a_panic_in_a_part_that_others_rely_on_ends_the_process_with_a_code_of_its_own() {
    for (part, name) in [
        (PanickingPart::EventLoop, "the autoscaler's event loop"),
        (PanickingPart::Link, "a link of the autoscaler"),
    ] {
        let mut grip = Grip::listen().await;
        let service = |pods: &str| Service::new("hello").scaling("min-scale", pods);
        let mut ebb = Ebb::up_gripped(&grip, &[service("1")], &ConfigMap::short(), &[]).await;
        ebb.until_pods("hello", 1).await;
        let everything = descendants(ebb.pid());
        assert!(everything.len() >= 3, "{everything:?}");
        grip.panic_in(part, "autoscaler-1").await;
        // Which is an order, and then a pod to be linked.
        ebb.rewrite(&service("2"));
        assert_eq!(ebb.ended().await.code(), Some(70), "{part:?}: {}", ebb.output());
        until_dead(&everything).await;
        let said = format!("error: {name} failed ({PANIC_TEXT}), and nothing works without it");
        eventually("the reason", Duration::from_secs(10), || async {
            if ebb.output().contains(&said) { Ok(()) } else { Err(ebb.output()) }
        })
        .await;
        let next = Ebb::up_at(&[service("1")], &ConfigMap::short(), ebb.api).await;
        let told = format!("ended with exit code 70: {name} failed ({PANIC_TEXT})");
        eventually("its successor's word about it", Duration::from_secs(10), || async {
            let (_, _, warnings) = next.run(&["get"]).await;
            if warnings.contains(&told) { Ok(()) } else { Err(warnings) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_slow_start_is_waited_for_and_others_are_not_disturbed() {
    let slow = Service::new("slow").scaling("initial-scale", "0").args(&["--start-delay-ms", "8000"]);
    let ebb =
        Ebb::up(&[slow, Service::new("quick")], &ConfigMap::short().set("allow-zero-initial-scale", "true"))
            .await;
    let load = ebb.load("slow");
    let waiting = tokio::spawn(async move { load.one().await });
    let others = ebb.load("quick").steady(50, Duration::from_secs(4)).await;
    others.assert_all_answered();
    assert!(!waiting.is_finished(), "it waits for twice as long as the others were asked");
    waiting.await.expect("the request ends").assert_all_answered();
}

#[tokio::test]
async fn an_app_that_never_gets_ready_is_given_up_with_its_reason() {
    let service = Service::new("never")
        .args(&["--never-ready"])
        .container("readinessProbe:\n  httpGet:\n    path: /ready")
        .annotation("serving.knative.dev/progress-deadline", "1s")
        .spec("timeoutSeconds: 5");
    let ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    ebb.until("never", "the probe's failure", |revision| revision.0.to_string().contains("503")).await;
    let tally = ebb.load("never").one().await;
    tally.assert_none_lost();
    assert_eq!(
        tally.outcomes.get(&Outcome::Refused(504, "no-ready-pod".to_owned())),
        Some(&1),
        "{:?}",
        tally.outcomes
    );
    // The progress deadline and 30 s later the activation is over.
    ebb.until_within("never", "giving up", Duration::from_secs(90), |revision| {
        revision.wanted() == 0 && revision.0["decisions"].to_string().contains("activation_timeout")
    })
    .await;
}

#[tokio::test]
async fn an_app_that_exits_at_once_is_named_with_its_code_and_disturbs_no_other() {
    let service = Service::new("exits").args(&["--exit", "3"]).spec("timeoutSeconds: 3");
    let ebb = Ebb::up(&[service, Service::new("fine")], &ConfigMap::short()).await;
    ebb.until("exits", "its exit code", |revision| revision.0.to_string().contains("exited with code 3"))
        .await;
    let (code, text, _) = ebb.run(&["explain", "exits"]).await;
    assert_eq!(code, 0);
    assert!(text.contains("code 3"), "{text}");
    let tally = ebb.load("exits").one().await;
    assert_eq!(tally.refused(), 1, "{:?}", tally.outcomes);
    ebb.load("fine").steady(50, Duration::from_secs(2)).await.assert_all_answered();
}

#[tokio::test]
async fn a_request_to_an_app_that_only_crashes_is_refused_after_its_third_failure() {
    let service = Service::running("crashes", &["sh", "-c", "echo no database at db:5432 >&2; exit 3"])
        .scaling("initial-scale", "0");
    let ebb =
        Ebb::up(std::slice::from_ref(&service), &ConfigMap::short().set("allow-zero-initial-scale", "true"))
            .await;
    ebb.until_pods("crashes", 0).await;
    // The request that wakes it waits for three attempts, far less than its five minutes; the next one does
    // not wait at all.
    for attempt in ["the waking request", "the next one"] {
        let host = service.host();
        let answer = whole_answer(ebb.requests, &host, "/");
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        let answer =
            answer.unwrap_or_else(|_| panic!("{attempt} waits: {}", ebb.output())).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 504 "), "{attempt}: {answer}");
        for text in [
            "ebb-error: no-ready-pod",
            "failures in a row",
            "the app exited with code 3 (`ebb explain default/service/crashes` shows its last lines)",
        ] {
            assert!(answer.contains(text), "{attempt}: {text:?} is missing in {answer}");
        }
        // Any client reads that, and logs are for those who have the token.
        assert!(!answer.contains("no database"), "{attempt}: {answer}");
    }
    let (code, explained, errors) = ebb.run(&["explain", "default/service/crashes"]).await;
    assert!(code == 0 && explained.contains("no database at db:5432"), "{explained}{errors}");
    let revision = ebb.revision("crashes").await.expect("ebb answers");
    assert_eq!(revision.field("last_failure")["reason"], "the app exited with code 3", "{revision:?}");
    // What is mended serves again, without any other step.
    ebb.rewrite(&service.command(&[&tests::ebb::test_app()]));
    ebb.until("crashes", "a pod that works", |revision| revision.ready() == 1).await;
    ebb.load("crashes").one().await.assert_all_answered();
}

/// It listens, takes what it is sent, and ends before it has answered anything.
#[tokio::test]
async fn an_app_that_listens_for_a_moment_and_ends_is_refused_like_one_that_does_not_start() {
    let app = tests::ebb::test_app();
    let script = format!("{app} & sleep 0.4; kill -9 $!; echo no module named app >&2; exit 1");
    let service = Service::running("listens", &["sh", "-c", &script]).spec("timeoutSeconds: 20");
    let ebb = Ebb::up(std::slice::from_ref(&service), &ConfigMap::short()).await;
    let mut refused_at_once = 0;
    for attempt in 0..8 {
        let answer =
            whole_answer(ebb.requests, &service.host(), "/?sleep=100000").await.expect("it is answered");
        let reason = answer.lines().find(|line| line.starts_with("ebb-error: ")).unwrap_or(&answer);
        assert!(reason.contains("the app exited with code 1"), "attempt {attempt}: {reason}");
        refused_at_once += u32::from(reason.contains("no-ready-pod"));
        if reason.contains("no-ready-pod") {
            assert!(reason.contains("failures in a row") && reason.contains("`ebb explain "), "{reason}");
        }
        assert!(!answer.contains("no module named app"), "attempt {attempt}: {answer}");
    }
    assert!(refused_at_once > 0, "{}", ebb.output());
    // What is mended serves again.
    ebb.rewrite(&service.command(&[&app]));
    ebb.until("listens", "a pod that works", |revision| revision.ready() == 1).await;
    ebb.load("listens").one().await.assert_all_answered();
}

/// An answered request ends a row of failures, so the next requests wait for the next pod, however often that
/// is.
#[tokio::test]
async fn an_app_that_answers_before_it_fails_is_waited_for_each_time() {
    let script = format!("{} & sleep 1; kill -9 $!; exit 1", tests::ebb::test_app());
    let service = Service::running("answers", &["sh", "-c", &script]);
    let ebb = Ebb::up(std::slice::from_ref(&service), &ConfigMap::short()).await;
    while ebb.output().matches("a pod failed pod=answers").count() < 5 {
        let answer = whole_answer(ebb.requests, &service.host(), "/").await.expect("it is answered");
        assert!(!answer.contains("no-ready-pod"), "{answer}");
    }
}

#[tokio::test]
async fn more_pods_than_the_machine_may_run_wait_and_say_so() {
    let services =
        [Service::new("first").scaling("min-scale", "2"), Service::new("second").scaling("min-scale", "2")];
    let ebb = Ebb::up_with(&services, &ConfigMap::short(), &["--max-pods", "3"]).await;
    for service in ["first", "second"] {
        ebb.until(service, "a pod", |revision| revision.ready() >= 1).await;
    }
    eventually("the fourth says why it waits", Duration::from_secs(30), || async {
        let mut ready = 0;
        let mut said = String::new();
        for service in ["first", "second"] {
            let revision = ebb.revision(service).await?;
            ready += revision.ready();
            let (_, text, _) = ebb.run(&["explain", service]).await;
            said.push_str(&text);
        }
        if ready == 3 && said.contains("3 at most (--max-pods)") { Ok(()) } else { Err(said) }
    })
    .await;
    for service in ["first", "second"] {
        ebb.load(service).one().await.assert_all_answered();
    }
}

#[tokio::test]
async fn a_burst_at_an_app_that_starts_slowly_starts_a_few_pods_at_a_time() {
    let service =
        Service::new("interpreter").args(&["--start-work-ms", "700"]).spec("containerConcurrency: 1");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true").set("initial-scale", "0");
    let ebb = Ebb::up(&[service], &config).await;
    let load = ebb.load("interpreter").path("/?sleep=200").with_own_connections();
    let burst = tokio::spawn(async move { load.burst(30).await });
    let mut most = 0;
    while !burst.is_finished() {
        let revision = ebb.revision("interpreter").await.expect("the API answers");
        most =
            most.max(revision.pids("app_pid").len() - revision.ready().min(revision.pids("app_pid").len()));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    burst.await.expect("no panic").assert_all_answered();
    // Two for each core, and some of those that began before and were the last of theirs to be ready.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!((1..=3 * cores).contains(&most), "{most} were started at once on {cores} cores");
}

#[tokio::test]
async fn an_app_that_hangs_is_taken_out_by_its_liveness_probe() {
    let service = Service::new("hangs")
        .args(&["--hang-after", "10"])
        .scaling("min-scale", "1")
        .spec("timeoutSeconds: 4")
        .container("livenessProbe:\n  httpGet:\n    path: /\n  periodSeconds: 1\n  failureThreshold: 2");
    let ebb = Ebb::up(&[service, Service::new("fine")], &ConfigMap::short()).await;
    let first = ebb.until_pods("hangs", 1).await.pids("app_pid");
    let tally = ebb.load("hangs").burst(12).await;
    tally.assert_none_lost();
    let revision = ebb
        .until("hangs", "a replacement", |revision| {
            revision.ready() == 1 && revision.pids("app_pid") != first
        })
        .await;
    let reason = revision.field("last_failure")["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("because the app failed its liveness probe"), "{revision:?}");
    ebb.load("fine").steady(50, Duration::from_secs(2)).await.assert_all_answered();
}

#[tokio::test]
async fn cut_and_stalled_links_scale_nothing_down_and_lose_no_request() {
    let relay = Relay::start().await.expect("a port is free");
    let service = Service::new("linked").scaling("min-scale", "1").scaling("target", "20");
    let ebb = Ebb::up_through(&relay, &[service], &ConfigMap::short()).await;
    // 35 in flight at 14 per pod: in the middle of what 3 pods take.
    let traffic = ebb.load("linked").path("/?sleep=500").in_background(70);
    ebb.until("linked", "three pods, settled", |revision| revision.is_settled_at(3)).await;
    assert!(relay.carried() >= 4, "the activator's link and those of three pods");
    for mood in [Mood::Cut, Mood::Stalled] {
        relay.set(mood);
        for _ in 0..100 {
            let revision = ebb.revision("linked").await.expect("ebb answers");
            assert!(
                revision.wanted() >= 3,
                "scaled down from silence while {mood:?}: {}",
                revision.decisions()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        relay.set(Mood::Passing);
        ebb.until("linked", "every link is back", |revision| revision.ready() >= 3 && is_linked(revision))
            .await;
    }
    traffic.end().await.assert_all_answered();
}

/// Whether every pod's link is up.
fn is_linked(revision: &tests::Revision) -> bool {
    revision.field("pods").as_array().is_some_and(|pods| pods.iter().all(|pod| pod["linked"] == true))
}

#[tokio::test]
async fn with_no_link_at_all_nothing_is_scaled_down() {
    let relay = Relay::start().await.expect("a port is free");
    let service = Service::new("silent").scaling("min-scale", "0");
    let ebb = Ebb::up_through(&relay, &[service], &ConfigMap::short()).await;
    // It begins a window, which lasts for longer than reporters that say nothing count as heard.
    ebb.load("silent").one().await.assert_all_answered();
    ebb.until_pods("silent", 1).await;
    assert!(relay.carried() >= 2, "the activator's link and the pod's");
    relay.set(Mood::Cut);
    // Twice the stable window without a word from a reporter: missing data is not zero.
    for _ in 0..60 {
        let revision = ebb.revision("silent").await.expect("ebb answers");
        assert!(revision.wanted() >= 1, "{revision:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let silent = ebb.revision("silent").await.expect("ebb answers");
    assert!(!is_linked(&silent), "there was no link in that time: {silent:?}");
    ebb.load("silent").one().await.assert_all_answered();
    relay.set(Mood::Passing);
    eventually("zero after all", Duration::from_secs(60), || async {
        let revision = ebb.revision("silent").await?;
        if revision.wanted() == 0 { Ok(()) } else { Err(revision.0.to_string()) }
    })
    .await;
}

/// The pods that were started, in their order, as the log has them.
fn starts_in(log: &str) -> Vec<&str> {
    let starts = log.lines().filter(|line| line.contains("a pod is started"));
    starts.filter_map(|line| line.split_once("pod=")?.1.split_whitespace().next()).collect()
}

/// What the log says of an edited template.
const EDITED: &str = "edited: new pods take over";

/// Waits until so many pods of a template were started.
async fn until_started(ebb: &Ebb, template: &str, count: usize) {
    eventually(&format!("{count} starts of {template}"), Duration::from_secs(60), || async {
        let log = ebb.output();
        let started = starts_in(&log).into_iter().filter(|pod| pod.starts_with(template)).count();
        if started >= count { Ok(()) } else { Err(log) }
    })
    .await;
}

#[tokio::test]
async fn an_edit_during_a_burst_of_slow_starters_has_the_next_start() {
    let app = tests::ebb::test_app();
    // Others keep every core busy.
    let busy = format!("for burner in 1 2 3 4; do while :; do :; done & done; exec {app}");
    let busy = Service::running("busy", &["sh", "-c", &busy]).scaling("min-scale", "1");
    let slow = Service::new("slow").args(&["--start-work-ms", "1000"]).spec("containerConcurrency: 1");
    let slow = slow.scaling("initial-scale", "0");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true");
    let ebb = Ebb::up(&[busy, slow.clone()], &config).await;
    ebb.until_pods("busy", 1).await;
    let load = ebb.load("slow").path("/?sleep=300").with_own_connections().patience(Duration::from_secs(120));
    let burst = tokio::spawn(async move { load.burst(30).await });
    until_started(&ebb, "slow-00001", 1).await;
    let first_start = clock::now();
    let one_start = async {
        ebb.until("slow", "the first ready pod", |revision| revision.ready() >= 1).await;
        clock::since(first_start)
    };
    let from_edit_to_start = async {
        until_started(&ebb, "slow-00001", 2).await;
        // The log is ahead of readers by a tenth of a second.
        ebb.until("slow", "starts that wait", |revision| revision.wanted() > 4).await;
        ebb.rewrite(&slow.env("EDITED", "yes"));
        eventually("the edit", Duration::from_secs(60), || async {
            let log = ebb.output();
            if log.contains(EDITED) { Ok(()) } else { Err(log) }
        })
        .await;
        let edited = clock::now();
        until_started(&ebb, "slow-00002", 1).await;
        clock::since(edited)
    };
    let (one_start, from_edit_to_start) = tokio::join!(one_start, from_edit_to_start);
    // As long as a start takes on this machine now, and once more for what the clocks of a test miss.
    assert!(from_edit_to_start <= 2 * one_start, "{from_edit_to_start:?}, one start takes {one_start:?}");
    let log = ebb.output();
    let (_, after) = log.split_once(EDITED).expect("the edit is in the log");
    let next = starts_in(after).into_iter().find(|pod| pod.starts_with("slow-")).expect("it was started");
    assert!(next.starts_with("slow-00002"), "the next start is {next} of the older template: {after}");
    burst.await.expect("no panic").assert_all_answered();
}

/// Its pods of the template with this number that are not on their way out.
fn pods_of(revision: &tests::Revision, template: u32) -> Vec<&serde_json::Value> {
    let name = format!("edited-{template:05}-");
    let is_meant = |pod: &&serde_json::Value| {
        pod["leaving"] == false && pod["name"].as_str().is_some_and(|pod| pod.starts_with(&name))
    };
    revision.pods().iter().filter(is_meant).collect()
}

#[tokio::test]
async fn a_bad_template_crashes_once_at_a_time_and_a_good_one_begins_with_one_pod() {
    let service = Service::new("edited").scaling("min-scale", "4").scaling("max-scale", "4");
    let ebb = Ebb::up(std::slice::from_ref(&service), &ConfigMap::short()).await;
    ebb.until_pods("edited", 4).await;
    let load = ebb.load("edited").path("/?sleep=20");
    let traffic = tokio::spawn(async move { load.steady(100, Duration::from_secs(8)).await });
    ebb.rewrite(&service.clone().command(&["sh", "-c", "sleep 0.3; exit 3"]));
    while ebb.output().matches("a pod failed pod=edited-00002").count() < 3 {
        let revision = ebb.revision("edited").await.expect("ebb answers");
        assert!(pods_of(&revision, 2).len() <= 1, "{revision:?}");
        assert_eq!(pods_of(&revision, 1).len(), 4, "the old ones stay: {revision:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    traffic.await.expect("the load ends").assert_all_answered();
    ebb.rewrite(&service.args(&["--start-delay-ms", "1500"]));
    loop {
        let revision = ebb.revision("edited").await.expect("ebb answers");
        let new = pods_of(&revision, 3);
        if new.iter().any(|pod| pod["state"] == "ready") {
            break;
        }
        assert!(new.len() <= 1, "{revision:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ebb.until("edited", "four new ones", |revision| pods_of(revision, 3).len() == 4 && revision.ready() == 4)
        .await;
}
