//! Requests that are not measured: passed on while a pod is ready, answered here while none is, and never
//! heard of by the autoscaler.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use vocabulary::{ActivatorWord, Assignment, PodState, PresentCount, RequestTimeouts, Routing};

use crate::world::{Autoscaler, Caller, Got, HOP_KEY, Pod, World, assignment, until, with_concurrency};

const KUBELET: &str = "kube-probe/1.31";

async fn check_as(caller: &Caller, agent: &str, path: &str) -> Got {
    caller.send(Request::get(path).header("user-agent", agent).body(Full::default()).unwrap()).await
}

async fn check(caller: &Caller, path: &str) -> Got {
    check_as(caller, KUBELET, path).await
}

/// Sends one in the background.
fn start_check(caller: &Caller, path: &'static str) -> tokio::task::JoinHandle<Got> {
    let caller = caller.clone();
    tokio::spawn(async move { check(&caller, path).await })
}

fn ready(counter: u64, pod: &Pod) -> Assignment {
    assignment(counter, &[("a", pod.address, PodState::Ready)])
}

/// The early report in a word, if it is one.
fn present_in(report: &ActivatorWord) -> Option<PresentCount> {
    if let ActivatorWord::Present { count, .. } = report { Some(*count) } else { None }
}

/// The second that a word is about, and whether anything was held in it.
fn second_in(report: &ActivatorWord) -> Option<(u64, bool)> {
    if let ActivatorWord::Loads { second, loads } = report {
        Some((*second, !loads.is_empty()))
    } else {
        None
    }
}

/// Whether anything that the autoscaler has heard is about a revision.
fn has_heard_of_load(autoscaler: &Autoscaler) -> bool {
    let is_about_load = |report: &ActivatorWord| {
        present_in(report).is_some() || second_in(report).is_some_and(|(_, is_held)| is_held)
    };
    autoscaler.reports().iter().any(is_about_load)
}

/// Waits until the second that runs now was reported, and one more.
async fn two_seconds_later(autoscaler: &Autoscaler) {
    let second = |report: &ActivatorWord| second_in(report).map(|(second, _)| second);
    let last = autoscaler.reports().iter().filter_map(second).max().unwrap_or_default();
    autoscaler.report("a later second", |report| second(report).filter(|second| *second >= last + 2)).await;
}

#[tokio::test]
async fn at_zero_they_are_answered_at_once_and_wake_nobody() {
    let world = World::start();
    let autoscaler = world.synced(&[assignment(1, &[])]).await;
    for caller in [Caller::http1(&world), Caller::http2(&world)] {
        for agent in [KUBELET, "GoogleHC/1.0", "ELB-HealthChecker/2.0"] {
            let got = check_as(&caller, agent, "/healthz").await;
            assert_eq!((got.status.as_u16(), got.body.as_str()), (200, ""), "{agent}");
            assert_eq!(
                (got.header("content-type"), got.header("ebb-error")),
                ("text/plain; charset=utf-8", "")
            );
        }
        let request = Request::post("/").header("user-agent", KUBELET).body(Full::from("a body")).unwrap();
        assert_eq!(caller.send(request).await.status, 200);
    }
    let grpc = Request::post("/grpc.health.v1.Health/Check")
        .header("user-agent", "kube-probe/1.31 grpc-go/1.65")
        .header("content-type", "application/grpc")
        .body(Full::default())
        .unwrap();
    let got = Caller::http2(&world).send(grpc).await;
    assert_eq!((got.status.as_u16(), got.header("grpc-status")), (200, "0"));
    // The first that the autoscaler hears of the revision is of an ordinary request, and of that alone.
    let waiting = Caller::http1(&world).start("/");
    let first = autoscaler.report("the waiting request", present_in);
    assert_eq!(first.await, PresentCount { in_flight: 1, waiting: 1 });
    assert_eq!(check(&Caller::http1(&world), "/").await.status, 200, "though somebody waits by now");
    assert_eq!(world.metric("activator_answered_health_checks_total"), 10.0);
    assert_eq!(world.metric("activator_requests_total"), 1.0);
    waiting.abort();
}

#[tokio::test]
async fn with_a_ready_pod_they_are_passed_on_and_nobody_hears_of_them() {
    // Side by side, for each waits for seconds in which nothing may come.
    tokio::join!(
        health_checks_are_passed_on(Routing::ThroughActivator),
        health_checks_are_passed_on(Routing::Direct),
    );
}

async fn health_checks_are_passed_on(routing: Routing) {
    let (world, pod) = (World::start(), Pod::held());
    let autoscaler = world.synced(&[Assignment { routing, ..ready(1, &pod) }]).await;
    let held = start_check(&Caller::http1(&world), "/healthz");
    until("it runs in the pod", || pod.running() == 1).await;
    two_seconds_later(&autoscaler).await;
    pod.permits.add_permits(1);
    assert_eq!(held.await.unwrap().status, 200);
    two_seconds_later(&autoscaler).await;
    assert!(!has_heard_of_load(&autoscaler), "{routing:?}: {:?}", autoscaler.reports());
    let seen = &pod.seen()[0];
    let header = |name: &str| seen.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!((seen.path.as_str(), header("user-agent")), ("/healthz", Some(KUBELET)));
    assert_eq!((header("ebb-unmeasured"), header("ebb-hop-key")), (Some("1"), Some(HOP_KEY)));
    assert_eq!(header("k-proxy-request"), None, "the activator does not count it");
    // Operators see what moves all the same.
    until("it is counted", || world.metric("activator_responses_total") == 1.0).await;
    assert_eq!(world.metric("activator_direct_requests_total"), 1.0);
}

/// An ordinary request waits here until a slot is free; a health check waits in the pod, where there is the
/// limit, or a long queue here would look like an outage to a load balancer.
#[tokio::test]
async fn they_do_not_wait_behind_the_requests_that_wait_here() {
    let (world, pod) = (World::start(), Pod::held());
    let _autoscaler = world.synced(&[with_concurrency(ready(1, &pod), 1)]).await;
    let caller = Caller::http1(&world);
    let running = caller.start("/runs");
    until("the first runs", || pod.running() == 1).await;
    let waiting = caller.start("/waits");
    until("the second waits", || world.metric("activator_waiting_requests") > 0.0).await;
    let checked = start_check(&caller, "/healthz");
    until("the pod has it", || pod.running() == 2).await;
    assert_eq!(pod.paths(), ["/runs", "/healthz"]);
    pod.permits.add_permits(3);
    for request in [running, waiting, checked] {
        assert_eq!(request.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn one_that_its_pod_did_not_start_is_tried_again_or_answered_here() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[ready(1, &pod)]).await;
    let caller = Caller::http1(&world);
    pod.refusals.store(2, Ordering::SeqCst);
    assert_eq!(check(&caller, "/again").await.status, 200);
    assert_eq!(pod.paths(), ["/again", "/again", "/again"]);
    assert_eq!(world.metric("activator_retries_total"), 2.0);
    pod.refusals.store(usize::MAX, Ordering::SeqCst);
    let checked = start_check(&caller, "/gone");
    until("it was refused", || pod.paths().contains(&"/gone".to_owned())).await;
    autoscaler.assign(&assignment(2, &[])).await;
    let got = checked.await.unwrap();
    assert_eq!((got.status.as_u16(), got.body.as_str()), (200, ""));
    assert!(!has_heard_of_load(&autoscaler), "{:?}", autoscaler.reports());
    assert_eq!(world.metric("activator_answered_health_checks_total"), 1.0);
}

#[tokio::test]
async fn one_that_no_pod_starts_ends_with_its_time() {
    let (world, pod) = (World::start(), Pod::start());
    pod.refusals.store(usize::MAX, Ordering::SeqCst);
    let request = Some(Duration::from_millis(300));
    let timeouts = RequestTimeouts { request, ..RequestTimeouts::default() };
    let _autoscaler = world.synced(&[Assignment { timeouts, ..ready(1, &pod) }]).await;
    let got = check(&Caller::http1(&world), "/").await;
    assert_eq!(got.status, 504);
    // Nearly always it ends between two attempts.
    let reason = got.header("ebb-error").split(';').next();
    assert!(matches!(reason, Some("no-ready-pod" | "request-timeout")), "{got:?}");
}

#[tokio::test]
async fn health_checks_are_refused_when_the_pods_queue_is_full() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[ready(1, &pod)]).await;
    let caller = Caller::http1(&world);
    pod.full.store(1, Ordering::SeqCst);
    let got = check(&caller, "/").await;
    assert_eq!((got.status.as_u16(), got.header("retry-after")), (503, "1"));
    assert!(got.header("ebb-error").starts_with("queue-full; "), "{got:?}");
    assert_eq!(got.header("ebb-not-started"), "", "that is between our hops");
    assert_eq!(caller.get("/").await.status, 200, "the pod is well and was not left alone");
    assert_eq!(world.metric("activator_retries_total"), 0.0);
}

/// Where an ordinary request would be refused at once, "all is well" would be a lie.
#[tokio::test]
async fn under_a_hold_they_are_refused_like_every_request() {
    let world = World::start();
    let hold = Some("paused".to_owned());
    let _autoscaler = world.synced(&[Assignment { hold, ..assignment(1, &[]) }]).await;
    let got = check(&Caller::http1(&world), "/").await;
    assert_eq!((got.status.as_u16(), got.header("ebb-error")), (504, "no-ready-pod; detail=\"paused\""));
}

#[tokio::test]
async fn an_assignment_changes_the_ignored_user_agents() {
    let world = World::start();
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let caller = Caller::http1(&world);
    let ignored_user_agents = "Scraper/".parse().unwrap();
    autoscaler.assign(&Assignment { ignored_user_agents, ..assignment(2, &[]) }).await;
    assert_eq!(check_as(&caller, "Scraper/2.1 (every 15 s)", "/metrics").await.status, 200);
    assert!(!has_heard_of_load(&autoscaler), "{:?}", autoscaler.reports());
    let waiting = start_check(&caller, "/");
    until("what was ignored before waits", || world.metric("activator_waiting_requests") > 0.0).await;
    autoscaler.assign(&assignment(3, &[])).await;
    let scraping = caller.clone();
    let scraping = tokio::spawn(async move { check_as(&scraping, "Scraper/2.1", "/metrics").await });
    until("so does what was ignored since", || world.metric("activator_waiting_requests") > 1.0).await;
    waiting.abort();
    scraping.abort();
}

#[tokio::test]
async fn a_retired_revision_holds_them_to_their_end() {
    let (world, pod) = (World::start(), Pod::held());
    let mut autoscaler = world.synced(&[ready(1, &pod)]).await;
    let held = start_check(&Caller::http1(&world), "/");
    until("it runs in the pod", || pod.running() == 1).await;
    let retired = Assignment { standing: vocabulary::Standing::Retired, ..ready(2, &pod) };
    autoscaler.assign(&retired).await;
    let is_emptied = |report: &ActivatorWord| matches!(report, ActivatorWord::Emptied { .. }).then_some(());
    assert!(autoscaler.reports().iter().find_map(is_emptied).is_none(), "it still holds one");
    pod.permits.add_permits(1);
    assert_eq!(held.await.unwrap().status, 200);
    autoscaler.report("that it holds nothing", is_emptied).await;
}
