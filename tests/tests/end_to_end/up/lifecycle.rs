//! How it ends: in order when asked, at once when asked twice, and without a trace even when killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::ebb::{descendants, is_alive, signal_process};
use tests::{ConfigMap, Ebb, Service, eventually};

pub(crate) async fn until_dead(pids: &[u32]) {
    eventually("every process has ended", Duration::from_secs(30), || async {
        let alive: Vec<u32> = pids.iter().copied().filter(|&pid| is_alive(pid)).collect();
        if alive.is_empty() { Ok(()) } else { Err(format!("{alive:?} live on")) }
    })
    .await;
}

/// An app that leaves grandchildren behind, in sessions of their own.
fn parent_of_many(name: &str) -> Service {
    Service::new(name)
        .scaling("min-scale", "2")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]")
        .command(&["sh", "-c", "setsid sleep 1000 & sleep 1000 & sleep 1000"])
}

#[tokio::test]
async fn a_killed_ebb_leaves_no_process_behind() {
    let mut ebb = Ebb::up(
        &[Service::new("plain").scaling("min-scale", "2"), parent_of_many("parent")],
        &ConfigMap::short(),
    )
    .await;
    ebb.until_pods("plain", 2).await;
    ebb.until_pods("parent", 2).await;
    let everything = eventually("every grandchild runs", Duration::from_secs(30), || async {
        let found = descendants(ebb.pid());
        // Of each pod: itself, the queue-proxy and the app; the parents' apps have three more.
        if found.len() >= 4 * 3 + 2 * 3 { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await;
    ebb.signal(Signal::SIGKILL);
    ebb.ended().await;
    until_dead(&everything).await;
}

/// The environment variable that makes [`a_benchmark_plays_its_part`] a benchmark.
const BENCHMARK: &str = "LIFECYCLE_TEST_BENCHMARK";

/// What is killed below: this suite again, in a process of its own, which starts an `ebb up` as benchmarks
/// do.
#[tokio::test]
async fn a_benchmark_plays_its_part() {
    if std::env::var_os(BENCHMARK).is_none() {
        return;
    }
    let services = [Service::new("plain").scaling("min-scale", "2"), parent_of_many("parent")];
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    for service in &services {
        ebb.until_pods(service.name(), 2).await;
    }
    println!("\nstarted {}", ebb.pid());
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_killed_benchmark_leaves_no_process_behind() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut command = Command::new(std::env::current_exe().expect("this suite"));
        command.args(["--exact", "up::lifecycle::a_benchmark_plays_its_part", "--nocapture"]);
        command.env(BENCHMARK, "1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut benchmark = command.spawn().expect("this suite starts again");
        let lines = BufReader::new(benchmark.stdout.take().expect("it is piped")).lines();
        let said =
            lines.map_while(Result::ok).find_map(|line| line.strip_prefix("started ").map(str::to_owned));
        let ebb: u32 = said.and_then(|pid| pid.parse().ok()).expect("it says what it started");
        let everything = descendants(benchmark.id());
        // The shell that watches, `ebb up`, and of each of four pods itself, its queue-proxy and its app.
        assert!(everything.contains(&ebb) && everything.len() >= 2 + 4 * 3, "{everything:?}");
        signal_process(benchmark.id(), signal);
        benchmark.wait().expect("it was our child");
        until_dead(&everything).await;
    }
}

#[tokio::test]
async fn an_interrupt_ends_everything_in_order() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut ebb = Ebb::up(
            &[Service::new("plain").scaling("min-scale", "2"), parent_of_many("parent")],
            &ConfigMap::short(),
        )
        .await;
        ebb.until_pods("plain", 2).await;
        let everything = descendants(ebb.pid());
        ebb.signal(signal);
        assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
        until_dead(&everything).await;
    }
}

/// Of a pod that fails it warns, whether or not that can be read.
async fn assert_works_on(mut ebb: Ebb, victim: u32) {
    signal_process(victim, Signal::SIGKILL);
    ebb.until("unread", "a replacement", |revision| {
        revision.ready() == 1 && !revision.pids("app_pid").contains(&victim)
    })
    .await;
    ebb.load("unread").one().await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    assert_eq!(ebb.ended().await.code(), Some(0));
}

#[tokio::test]
async fn it_works_on_when_nobody_can_read_what_it_prints() {
    let mut ebb = Ebb::up(&[Service::new("unread").scaling("min-scale", "1")], &ConfigMap::short()).await;
    let victim = ebb.until_pods("unread", 1).await.pids("app_pid")[0];
    ebb.stop_reading().await;
    assert_works_on(ebb, victim).await;
}

#[tokio::test]
async fn it_works_on_when_nobody_reads_what_it_prints() {
    let unread = Service::new("unread").scaling("min-scale", "1");
    let (ebb, stderr) = Ebb::up_unread(&[unread], &ConfigMap::short()).await;
    let victim = ebb.until_pods("unread", 1).await.pids("app_pid")[0];
    assert_works_on(ebb, victim).await;
    drop(stderr);
}

/// The second time once the first is heard; that ends it at once.
async fn interrupt_twice(ebb: &mut Ebb) {
    ebb.signal(Signal::SIGINT);
    eventually("it stops", Duration::from_secs(30), || async {
        if ebb.output().contains("stopping") { Ok(()) } else { Err(ebb.output()) }
    })
    .await;
    ebb.signal(Signal::SIGINT);
    assert_eq!(ebb.ended().await.code(), Some(130), "{}", ebb.output());
}

#[tokio::test]
async fn a_second_interrupt_ends_everything_at_once() {
    let mut ebb = Ebb::up(&[Service::new("slow").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("slow", 1).await;
    let everything = descendants(ebb.pid());
    let load = ebb.load("slow").path("/?sleep=100000").patience(Duration::from_secs(20));
    let hanging = tokio::spawn(async move { load.one().await });
    ebb.until("slow", "a request in flight", |revision| revision.0.to_string().contains("\"in_flight\":1"))
        .await;
    interrupt_twice(&mut ebb).await;
    until_dead(&everything).await;
    hanging.await.expect("the request ends");
}

#[tokio::test]
async fn explain_says_which_app_was_killed_and_how_long_after_term() {
    let app = tests::ebb::test_app();
    let script = format!("{app} & trap '' TERM; while :; do sleep 1; done");
    let service =
        Service::running("stubborn", &["sh", "-c", &script]).spec("terminationGracePeriodSeconds: 2");
    let mut ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    let first = ebb.until_pods("stubborn", 1).await;
    let pod = first.pods()[0]["name"].as_str().expect("it has a name").to_owned();
    let said = "the app was killed 2 s after TERM";
    let revision =
        ebb.until("stubborn", "the kill", |revision| revision.0["last_kill"]["reason"] == said).await;
    assert_eq!(revision.field("last_kill")["pod"], pod.as_str());
    assert!(revision.field("last_failure").is_null(), "it is no failure: {revision:?}");
    let (_, text, _) = ebb.run(&["explain", "stubborn"]).await;
    assert!(text.contains(&format!("killed     pod {pod}, ")) && text.contains(said), "{text}");
    assert!(ebb.output().contains("a pod did not end in time"), "{}", ebb.output());
    // Nothing runs any more, and the next pod has just as little time.
    ebb.load("stubborn").one().await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    until_it_says(&ebb, "is killed, an app 2s after its TERM").await;
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
}

#[tokio::test]
async fn an_ordinary_scale_down_is_no_failure_of_its_pods() {
    const MANY: usize = 12;
    let service = |pods: usize| Service::new("shrinks").scaling("min-scale", &pods.to_string());
    let ebb = Ebb::up(&[service(MANY)], &ConfigMap::short()).await;
    for _ in 0..2 {
        ebb.rewrite(&service(MANY));
        ebb.until("shrinks", "all of its pods", |revision| revision.ready() == MANY).await;
        ebb.rewrite(&service(1));
        ebb.until_pods("shrinks", 1).await;
    }
    assert!(!ebb.output().contains("a pod failed"), "{}", ebb.output());
    let revision = ebb.revision("shrinks").await.expect("ebb answers");
    assert!(revision.field("last_failure").is_null(), "{revision:?}");
}

async fn until_it_says(ebb: &Ebb, text: &str) {
    eventually(&format!("it says {text:?}"), Duration::from_secs(30), || async {
        if ebb.output().contains(text) { Ok(()) } else { Err(ebb.output()) }
    })
    .await;
}

#[tokio::test]
async fn a_stop_says_what_it_waits_for_and_how_long_at_most() {
    let service = Service::new("slow").scaling("min-scale", "1").spec("timeoutSeconds: 8");
    let mut ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    ebb.until_pods("slow", 1).await;
    let load = ebb.load("slow").path("/?sleep=100000").patience(Duration::from_secs(60));
    let hanging = tokio::spawn(async move { load.one().await });
    ebb.until("slow", "a request in flight", |revision| revision.0.to_string().contains("\"in_flight\":1"))
        .await;
    ebb.signal(Signal::SIGTERM);
    until_it_says(&ebb, "waits for 1 request of default/service/slow, at most 8s more").await;
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    until_it_says(&ebb, "a pod that has not ended within 1m3s is killed").await;
    hanging.await.expect("the request ends").assert_none_lost();
}

/// The process that runs the tests may ignore SIGHUP, as nohup does, and what a process ignores its children
/// ignore too.
pub(crate) const HEARS_HANGUPS: [&str; 2] = ["env", "--default-signal=HUP"];

#[tokio::test]
async fn a_hangup_reads_the_files_again_and_ends_nothing() {
    let service = Service::new("reloaded").scaling("min-scale", "1");
    let ebb = Ebb::up_under(&HEARS_HANGUPS, Stdio::null(), &[service], &ConfigMap::short()).await;
    let pids = ebb.until_pods("reloaded", 1).await.pids("app_pid");
    ebb.signal(Signal::SIGHUP);
    until_it_says(&ebb, "SIGHUP: the files are read again").await;
    ebb.load("reloaded").one().await.assert_all_answered();
    assert_eq!(ebb.revision("reloaded").await.expect("ebb answers").pids("app_pid"), pids);
}

#[tokio::test]
async fn an_ignored_hangup_stays_ignored() {
    let service = Service::new("unmoved").scaling("min-scale", "1");
    let mut ebb = Ebb::up_under(&["nohup"], Stdio::null(), &[service], &ConfigMap::short()).await;
    ebb.until_pods("unmoved", 1).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", ebb.pid())).expect("it runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).expect("a mask");
    assert_eq!(ignored & 1, 1, "{status}");
    ebb.signal(Signal::SIGHUP);
    ebb.load("unmoved").one().await.assert_all_answered();
    ebb.signal(Signal::SIGTERM);
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    assert!(!ebb.output().contains("SIGHUP"), "{}", ebb.output());
}

/// A terminal's end that decides whether it is there, and its device. No child inherits either by itself, or
/// it would never be gone.
fn pseudo_terminal() -> (nix::pty::PtyMaster, std::fs::File) {
    use nix::fcntl::OFlag;
    use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let terminal = posix_openpt(flags).expect("a pseudo terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it is ours");
    let name = ptsname_r(&terminal).expect("it has a name");
    let device =
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(name);
    (terminal, device.expect("it can be opened"))
}

#[tokio::test]
async fn a_terminal_that_is_closed_is_a_request_to_stop() {
    let (terminal, its_device) = pseudo_terminal();
    let service = Service::new("attended").scaling("min-scale", "1");
    let stdin = Stdio::from(its_device);
    let wrapper = [&HEARS_HANGUPS[..], &["setsid", "--ctty"]].concat();
    let mut ebb = Ebb::up_under(&wrapper, stdin, &[service], &ConfigMap::short()).await;
    ebb.until_pods("attended", 1).await;
    let everything = descendants(ebb.pid());
    let load = ebb.load("attended").path("/?sleep=3000");
    let held = tokio::spawn(async move { load.one().await });
    ebb.until("attended", "a request in flight", |revision| {
        revision.0.to_string().contains("\"in_flight\":1")
    })
    .await;
    drop(terminal);
    until_it_says(&ebb, "the terminal is gone").await;
    held.await.expect("the request ends").assert_all_answered();
    assert_eq!(ebb.ended().await.code(), Some(0), "{}", ebb.output());
    until_dead(&everything).await;
}

#[tokio::test]
async fn a_restart_of_the_activator_waits_for_no_request_and_loses_none() {
    let mut ebb = Ebb::up(&[Service::new("slow").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("slow", 1).await;
    let [finishing, hanging] = ["/?sleep=3000", "/?sleep=100000"].map(|path| {
        let load = ebb.load("slow").path(path).patience(Duration::from_secs(20));
        tokio::spawn(async move { load.one().await })
    });
    ebb.until("slow", "two requests in flight", |revision| {
        revision.0.to_string().contains("\"in_flight\":2")
    })
    .await;
    for _ in 0..2 {
        let (code, _, stderr) = ebb.run(&["restart", "activator"]).await;
        assert_eq!(code, 0, "{stderr}");
        ebb.load("slow").one().await.assert_all_answered();
    }
    finishing.await.expect("the request ends").assert_all_answered();
    // The other one is still held by the first activator, and a stop waits for that one too.
    interrupt_twice(&mut ebb).await;
    hanging.await.expect("the request ends");
}

#[tokio::test]
async fn an_app_may_use_huge_pages_though_we_do_not() {
    let ebb = Ebb::up(&[Service::new("plain").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("plain", 1).await;
    let with_huge_pages = descendants(ebb.pid())
        .into_iter()
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok())
        .filter(|status| status.contains("THP_enabled:\t1"))
        .filter_map(|status| status.lines().next().map(str::to_owned));
    let with_huge_pages: Vec<String> = with_huge_pages.filter(|name| !name.ends_with("ebb")).collect();
    assert_eq!(with_huge_pages, ["Name:\ttest-app"]);
}
