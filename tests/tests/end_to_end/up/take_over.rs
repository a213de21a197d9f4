//! One `ebb up` takes the place of another: no client is refused, nothing is lost, and the pods are the same
//! processes before and after.

use std::time::Duration;

use nix::sys::signal::Signal;
use tests::client::whole_answer;
use tests::ebb::{copy_executable, descendants, is_alive, signal_process};
use tests::{ConfigMap, Ebb, Revision, Service, eventually};

use crate::up::lifecycle::until_dead;

/// Of each pod: itself, its queue-proxy and its app.
pub(crate) fn processes(revision: &Revision) -> Vec<u32> {
    let mut pids: Vec<u32> =
        ["pod_pid", "queue_proxy_pid", "app_pid"].iter().flat_map(|which| revision.pids(which)).collect();
    pids.sort_unstable();
    pids
}

fn in_flight(revision: &Revision) -> f64 {
    revision.pods().iter().filter_map(|pod| pod["in_flight"].as_f64()).sum()
}

pub(crate) fn three(name: &str) -> Service {
    Service::new(name).scaling("min-scale", "3").scaling("max-scale", "3").spec("containerConcurrency: 10")
}

#[tokio::test]
async fn requests_in_flight_and_on_their_way_outlive_two_take_overs() {
    let mut first = Ebb::up(&[three("kept")], &ConfigMap::short()).await;
    let revision = first.until_pods("kept", 3).await;
    let before = processes(&revision);
    let epoch = |revision: &Revision| revision.field("owner")["epoch"].as_u64();
    let first_epoch = epoch(&revision).expect("somebody decides");
    let long = first.load("kept").path("/?sleep=8000").with_own_connections();
    let long = tokio::spawn(async move { long.burst(8).await });
    let steady = first.load("kept").path("/?sleep=20");
    let steady = tokio::spawn(async move { steady.steady(100, Duration::from_secs(9)).await });
    first.until("kept", "8 requests in flight", |revision| in_flight(revision) >= 8.0).await;
    let mut second = first.successor().await;
    let third = second.successor().await;
    for tally in [long.await.expect("no panic"), steady.await.expect("no panic")] {
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    }
    for ended in [&mut first, &mut second] {
        assert_eq!(ended.ended().await.code(), Some(0), "{}", ended.output());
    }
    let revision = third.until_pods("kept", 3).await;
    assert_eq!(processes(&revision), before);
    assert_eq!(epoch(&revision), Some(first_epoch + 2), "each raises it by one");
    third.load("kept").burst(20).await.assert_all_answered();
    assert_eq!(descendants(third.pid()), Vec::<u32>::new(), "it started none");
}

#[tokio::test]
async fn requests_that_wait_for_a_starting_pod_are_answered_by_that_pod() {
    let service = Service::new("slow").args(&["--start-delay-ms", "4000"]);
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true").set("initial-scale", "0");
    let mut first = Ebb::up(&[service], &config).await;
    let waiting = first.load("slow").with_own_connections();
    let waiting = tokio::spawn(async move { waiting.burst(5).await });
    let starting = first.until("slow", "a pod", |revision| revision.pids("app_pid").len() == 1).await;
    let second = first.successor().await;
    waiting.await.expect("no panic").assert_all_answered();
    let revision = second.until_pods("slow", 1).await;
    assert_eq!(revision.pids("app_pid"), starting.pids("app_pid"));
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    second.until_pods("slow", 0).await;
    until_dead(&processes(&revision)).await;
}

#[tokio::test]
async fn the_death_of_the_old_one_ends_no_pod_and_that_of_the_new_one_ends_all() {
    let mut old = Ebb::up(&[three("kept")], &ConfigMap::short()).await;
    let before = processes(&old.until_pods("kept", 3).await);
    let held = old.load("kept").path("/?sleep=60000").with_own_connections();
    let held = tokio::spawn(async move { held.burst(1).await });
    old.until("kept", "a request in flight", |revision| in_flight(revision) >= 1.0).await;
    let mut new = old.successor().await;
    old.signal(Signal::SIGKILL);
    old.ended().await;
    assert_eq!(held.await.expect("no panic").answered(), 0, "the old one held it when it was killed");
    new.load("kept").burst(20).await.assert_all_answered();
    assert_eq!(processes(&new.until_pods("kept", 3).await), before);

    // One pod's own process dies: what is below it goes with it, although it has no parent any more.
    let revision = new.until_pods("kept", 3).await;
    let victim = &revision.pods()[0];
    let pid = |which: &str| victim["details"][which].as_str().and_then(|pid| pid.parse::<u32>().ok());
    let [pod, app] = ["pod_pid", "app_pid"].map(|which| pid(which).expect("a process id"));
    signal_process(pod, Signal::SIGKILL);
    until_dead(&[pod, app]).await;
    let revision = new
        .until("kept", "a replacement", |revision| {
            revision.ready() == 3 && revision.pods().len() == 3 && !revision.pids("app_pid").contains(&app)
        })
        .await;
    let all = processes(&revision);
    assert!(all.iter().all(|pid| is_alive(*pid)));
    new.signal(Signal::SIGKILL);
    new.ended().await;
    until_dead(&all).await;
}

#[tokio::test]
async fn pods_of_another_template_roll_and_what_was_removed_stays_removed() {
    let services = [three("edited"), three("same"), Service::new("removed")];
    let mut old = Ebb::up(&services, &ConfigMap::short()).await;
    let edited = processes(&old.until_pods("edited", 3).await);
    let same = processes(&old.until_pods("same", 3).await);
    let (code, _, stderr) = old.run(&["delete", "removed"]).await;
    assert_eq!(code, 0, "{stderr}");
    let services = [three("edited").env("GREETING", "new"), three("same"), Service::new("removed")];
    let new = old.successor_on(&services).await;
    eventually("every pod of the old template has gone", Duration::from_secs(60), || async {
        let revision = new.revision("edited").await?;
        let old = revision.pods().iter().filter(|pod| pod["outdated"] == true).count();
        if revision.ready() == 3 && old == 0 && revision.pods().len() == 3 {
            Ok(())
        } else {
            Err(revision.0.to_string())
        }
    })
    .await;
    until_dead(&edited).await;
    assert_eq!(processes(&new.until_pods("same", 3).await), same, "{}", new.output());
    assert!(new.revision("removed").await.is_err(), "it stays removed until its file is written");
    assert_eq!(old.ended().await.code(), Some(0), "{}", old.output());
}

#[tokio::test]
async fn connections_wait_while_a_service_manager_restarts_it() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    let (services, config) = ([three("activated")], ConfigMap::short());
    let start = async || {
        let given = socket.try_clone().expect("a copy of the socket");
        let given = std::process::Stdio::from(std::os::fd::OwnedFd::from(given));
        let wrapper = ["sh", "-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&0 </dev/null"];
        Ebb::up_under(&wrapper, given, &services, &config).await
    };
    let mut first = start().await;
    assert_eq!(first.requests, address, "it takes the socket that it was given");
    first.until_pods("activated", 3).await;
    let load = tests::Load::new(address, "activated.default.example.com");
    load.burst(10).await.assert_all_answered();
    first.signal(Signal::SIGTERM);
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    let waiting = tokio::spawn({
        let load = load.with_own_connections();
        async move { load.burst(10).await }
    });
    let second = start().await;
    waiting.await.expect("no panic").assert_all_answered();
    second.until_pods("activated", 3).await;
}

#[tokio::test]
async fn a_reload_is_a_take_over_and_the_service_manager_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("notify");
    let told = tokio::net::UnixDatagram::bind(&path).expect("a socket");
    let mut first = Ebb::up_notifying(&path, &[three("kept")]).await;
    assert_eq!(heard(&told).await, format!("MAINPID={}\nREADY=1", first.pid()));
    let before = processes(&first.until_pods("kept", 3).await);
    let load = first.load("kept").path("/?sleep=20");
    let steady = tokio::spawn(async move { load.steady(100, Duration::from_secs(4)).await });
    first.signal(Signal::SIGUSR2);
    assert!(heard(&told).await.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    let ready = heard(&told).await;
    let new = ready.strip_prefix("MAINPID=").and_then(|pid| pid.strip_suffix("\nREADY=1"));
    let new: u32 = new.and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("{ready}"));
    assert_ne!(new, first.pid());
    let tally = steady.await.expect("no panic");
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    assert_eq!(processes(&first.until_pods("kept", 3).await), before);
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    signal_process(new, Signal::SIGTERM);
    assert_eq!(heard(&told).await, "STOPPING=1");
    until_dead(&before).await;
}

/// What the service manager hears next.
async fn heard(told: &tokio::net::UnixDatagram) -> String {
    let mut words = [0; 1024];
    let heard = tokio::time::timeout(Duration::from_secs(60), told.recv(&mut words)).await;
    let length = heard.expect("it says something").expect("it can be heard");
    String::from_utf8_lossy(&words[..length]).trim().to_owned()
}

#[tokio::test]
async fn a_process_that_cannot_take_over_changes_nothing() {
    let ebb = Ebb::up(&[three("kept")], &ConfigMap::short()).await;
    let before = processes(&ebb.until_pods("kept", 3).await);
    let (code, stderr) = ebb.failing_successor(&["--listen", "127.0.0.1:1"]).await;
    assert!(code == 1 && stderr.contains("--listen says 127.0.0.1:1"), "{code}: {stderr}");
    ebb.write("broken.yaml", "kind: Service\n");
    let (code, stderr) = ebb.failing_successor(&["--listen", &ebb.requests.to_string()]).await;
    assert!(code == 2 && stderr.contains("broken.yaml"), "{code}: {stderr}");
    ebb.load("kept").burst(20).await.assert_all_answered();
    assert_eq!(processes(&ebb.until_pods("kept", 3).await), before);
    // The autoscaler that gives orders is the one that did, or was built anew: it still does.
    ebb.rewrite(&three("kept").scaling("min-scale", "2").scaling("max-scale", "2"));
    ebb.until_pods("kept", 2).await;
}

#[tokio::test]
async fn failures_and_earlier_log_lines_are_known_to_the_successor() {
    let crashes = Service::running("crashes", &["sh", "-c", "echo no database at db:5432 >&2; exit 3"])
        .scaling("min-scale", "1");
    let dies = Service::running("dies", &["sh", "-c", "echo these last words >&2; exec sleep 1000"])
        .scaling("min-scale", "1")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]");
    let host = crashes.host();
    let old = Ebb::up(&[crashes, dies], &ConfigMap::short()).await;
    let doomed = old.until_pods("dies", 1).await.pids("app_pid")[0];
    let refusal = whole_answer(old.requests, &host, "/").await.expect("an answer");
    assert!(refusal.contains("failures in a row"), "{refusal}");
    eventually("what the other one printed", Duration::from_secs(10), || async {
        let output = old.output();
        if output.contains("these last words") { Ok(()) } else { Err(output) }
    })
    .await;
    let new = old.successor().await;
    let refusal = whole_answer(new.requests, &host, "/").await.expect("an answer");
    let (before, _) = refusal.split_once(" failures in a row").unwrap_or_else(|| panic!("{refusal}"));
    let known = before.rsplit(|character: char| !character.is_ascii_digit()).next();
    let known: usize = known.and_then(|number| number.parse().ok()).expect("a number");
    let own = new.output().matches("a pod failed pod=crashes").count();
    assert!(known >= 3 && known > own, "{own} of {known} failures were seen here: {refusal}");
    let revision = new.revision("crashes").await.expect("ebb answers");
    assert!(revision.field("last_failure")["last_lines"].to_string().contains("no database"), "{revision:?}");
    signal_process(doomed, Signal::SIGKILL);
    let revision =
        new.until("dies", "a failure", |revision| revision.field("last_failure").is_object()).await;
    let said = &revision.field("last_failure")["last_lines"];
    assert!(said.to_string().contains("these last words"), "{revision:?}");
}

#[tokio::test]
async fn without_a_running_predecessor_a_take_over_is_an_ordinary_start() {
    let services = [Service::new("kept").scaling("min-scale", "1")];
    let mut first = Ebb::up_with(&services, &ConfigMap::short(), &["--take-over"]).await;
    let before = processes(&first.until_pods("kept", 1).await);
    first.signal(Signal::SIGKILL);
    first.ended().await;
    // Its socket is still there, and no process at it.
    let api = first.api.to_string();
    let second = Ebb::up_with(&services, &ConfigMap::short(), &["--take-over", "--api", &api]).await;
    until_dead(&before).await;
    second.until_pods("kept", 1).await;
    second.load("kept").one().await.assert_all_answered();
}

#[tokio::test]
async fn an_upgrade_of_the_executable_is_a_take_over_by_the_new_one() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (installed, new) = (folder.path().join("ebb"), folder.path().join("ebb.new"));
    copy_executable(&installed);
    let mut first = Ebb::up_as(&installed, &[three("kept")], &ConfigMap::short(), &[]).await;
    let before = processes(&first.until_pods("kept", 3).await);
    // As package managers do: the running one's file is nameless from now on.
    copy_executable(&new);
    std::fs::rename(&new, &installed).expect("it is replaced");
    let steady = first.load("kept").path("/?sleep=20");
    let steady = tokio::spawn(async move { steady.steady(100, Duration::from_secs(4)).await });
    first.signal(Signal::SIGUSR2);
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    let output = first.output();
    let started = output.split_once("a successor is started, to take over pid=").map(|(_, rest)| rest);
    let digits: String = started.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let pid: u32 = digits.parse().unwrap_or_else(|_| panic!("{output}"));
    let runs = std::fs::read_link(format!("/proc/{pid}/exe")).expect("it lives");
    assert_eq!(runs, installed);
    let tally = steady.await.expect("no panic");
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    assert_eq!(processes(&first.until_pods("kept", 3).await), before);
    // Pods that start from now on are the new file's.
    first.rewrite(&three("kept").scaling("min-scale", "4").scaling("max-scale", "4"));
    let all = processes(&first.until_pods("kept", 4).await);
    signal_process(pid, Signal::SIGTERM);
    until_dead(&all).await;
}
