//! Pods and processes end in every way there is, under load: what a process held that was killed is counted,
//! and nothing else is lost.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use tests::bench::clock;
use tests::client::{Outcome, Tally, Unanswered};
use tests::cluster::{PATIENCE, TestNamespace, Workload, WorkloadPlan, in_namespace, process_of};
use tests::eventually;

/// Requests each second, each of half a second.
const RATE: u32 = 20;
/// How long an activator on a busy machine may take to read that a connection was closed, and one request to
/// overtake another.
const READ_LATE: Duration = Duration::from_millis(500);

/// Which way requests take.
#[derive(Clone, Copy, Debug)]
enum RequestPath {
    Direct,
    ThroughActivator,
}

/// One pod, whose requests go this way.
async fn one_pod(namespace: &TestNamespace, name: &str, path: RequestPath) -> Workload {
    let capacity = match path {
        RequestPath::Direct => "0",
        RequestPath::ThroughActivator => "-1",
    };
    let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", "1");
    let plan = plan.annotated("autoscaling.knative.dev/target-burst-capacity", capacity);
    // What waits while a busy machine starts something again would bring another pod.
    let app = plan.annotated("autoscaling.knative.dev/max-scale", "1").create(namespace).await;
    app.has_pods(1).await;
    let front = match path {
        RequestPath::Direct => name,
        RequestPath::ThroughActivator => "activator",
    };
    eventually(&format!("{name} is served by {front}"), PATIENCE, || async {
        let served = app.served_by().await;
        let is_so = !served.is_empty() && served.iter().all(|pod| pod.starts_with(&format!("{front}-")));
        if is_so { Ok(()) } else { Err(format!("{served:?}")) }
    })
    .await;
    app.load().one().await.assert_all_answered();
    app
}

/// What becomes of requests while `fault` happens in their midst, and what that returns.
async fn under_load<Seen>(
    app: &Workload,
    lasts: Duration,
    fault: impl AsyncFnOnce() -> Seen,
) -> (Tally, Seen) {
    let load = app.load().path("/?sleep=500").with_own_connections();
    let traffic = tokio::spawn(async move { load.steady(RATE, lasts).await });
    // As many as there will be at once are under way.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seen = fault().await;
    (traffic.await.expect("the client does not panic"), seen)
}

async fn only_pod(app: &Workload) -> String {
    let names = app.pod_names().await;
    let [name] = &names[..] else { panic!("one pod: {names:?}") };
    name.clone()
}

async fn is_replaced(app: &Workload, former: &str) {
    eventually(&format!("{former} is gone"), PATIENCE, || async {
        let present = app.pod_names().await;
        if present.iter().any(|pod| pod == former) { Err(format!("{present:?}")) } else { Ok(()) }
    })
    .await;
    app.has_pods(1).await;
    app.load().one().await.assert_all_answered();
}

/// Nothing is lost, and nothing refused.
fn nothing_is_missing(tally: &Tally) {
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
}

/// The end of a process, as [`clock::now`] counts.
#[derive(Clone, Copy, Debug)]
struct ProcessEnd {
    /// When somebody began to end it.
    begun: Duration,
    /// When it had nothing open any more.
    over: Duration,
}

/// But for what a killed process held, and for what was sent to it before that was known.
fn missing_is_what_was_killed(tally: &Tally, end: ProcessEnd, path: RequestPath) {
    let until = match path {
        // Nobody is there who could hold requests until Kubernetes has noticed and its nodes know of others,
        // or it was started again. From then on nothing is missing.
        RequestPath::Direct => {
            let answered = tally.answered_since.iter().filter(|begun| **begun > end.over);
            *answered.min().expect("it is followed") + READ_LATE
        }
        RequestPath::ThroughActivator => end.over + READ_LATE,
    };
    let is_explained = |request: &Unanswered| {
        let is_of_its_time = request.ended >= end.begun && request.begun <= until;
        is_of_its_time
            && match &request.outcome {
                Outcome::Answered => false,
                Outcome::BrokenAfterStart | Outcome::ClosedWhileIdle => true,
                Outcome::Refused(status, reason) => *status == 502 && reason.starts_with("upstream-"),
                Outcome::Lost(what) => what.starts_with("no response") || what.starts_with("connecting"),
            }
    };
    let unexplained: Vec<_> = tally.unanswered.iter().filter(|request| !is_explained(request)).collect();
    assert!(
        unexplained.is_empty(),
        "{path:?}, not explained by {end:?}: {unexplained:?} of {:?}",
        tally.outcomes
    );
    assert_eq!(tally.answered() + tally.unanswered.len(), tally.sent, "{:?}", tally.outcomes);
}

async fn is_deleted_without_loss(namespace: TestNamespace, name: &str, path: RequestPath) {
    let app = one_pod(&namespace, name, path).await;
    let former = only_pod(&app).await;
    let (tally, ()) = under_load(&app, Duration::from_secs(15), async || {
        app.delete_a_pod().await;
    })
    .await;
    nothing_is_missing(&tally);
    is_replaced(&app, &former).await;
}

#[test]
fn the_only_pod_that_is_deleted_is_replaced_before_it_ends_on_either_path() {
    in_namespace("deleted", async |namespace| {
        tokio::join!(
            is_deleted_without_loss(namespace.clone(), "direct", RequestPath::Direct),
            is_deleted_without_loss(namespace.clone(), "through", RequestPath::ThroughActivator),
        );
    });
}

async fn is_evicted_without_loss(namespace: TestNamespace, name: &str, path: RequestPath) {
    let app = one_pod(&namespace, name, path).await;
    let former = only_pod(&app).await;
    let (tally, ()) = under_load(&app, Duration::from_secs(15), async || {
        let evicted = namespace.api::<Pod>().evict(&former, &EvictParams::default()).await;
        evicted.expect("nothing forbids it");
    })
    .await;
    nothing_is_missing(&tally);
    is_replaced(&app, &former).await;
}

#[test]
fn the_only_pod_that_is_evicted_loses_nothing_on_either_path() {
    in_namespace("evicted", async |namespace| {
        tokio::join!(
            is_evicted_without_loss(namespace.clone(), "direct", RequestPath::Direct),
            is_evicted_without_loss(namespace.clone(), "through", RequestPath::ThroughActivator),
        );
    });
}

async fn is_forced_out(namespace: TestNamespace, name: &str, path: RequestPath) {
    let app = one_pod(&namespace, name, path).await;
    let former = only_pod(&app).await;
    let (tally, end) = under_load(&app, Duration::from_secs(15), async || {
        let process = process_of(&former, "ebb-queue-proxy");
        let begun = clock::now();
        let at_once = DeleteParams::default().grace_period(0);
        let deleted = namespace.api::<Pod>().delete(&former, &at_once).await;
        deleted.expect("a person may force it");
        ProcessEnd { begun, over: process.gone().await }
    })
    .await;
    missing_is_what_was_killed(&tally, end, path);
    is_replaced(&app, &former).await;
}

#[test]
fn a_pod_that_is_deleted_by_force_takes_only_what_it_held() {
    in_namespace("forced", async |namespace| {
        tokio::join!(
            is_forced_out(namespace.clone(), "direct", RequestPath::Direct),
            is_forced_out(namespace.clone(), "through", RequestPath::ThroughActivator),
        );
    });
}

async fn process_is_killed(namespace: TestNamespace, name: &str, path: RequestPath, program: &str) {
    let app = one_pod(&namespace, name, path).await;
    let pod = only_pod(&app).await;
    let (tally, end) = under_load(&app, Duration::from_secs(15), async || {
        let process = process_of(&pod, program);
        let begun = clock::now();
        process.kill();
        ProcessEnd { begun, over: process.gone().await }
    })
    .await;
    missing_is_what_was_killed(&tally, end, path);
    app.has_pods(1).await;
    assert_eq!(only_pod(&app).await, pod, "kubelet starts what was killed again");
    app.load().steady(RATE, Duration::from_secs(2)).await.assert_all_answered();
}

#[test]
fn an_app_that_is_killed_alone_takes_only_what_it_held() {
    in_namespace("app-killed", async |namespace| {
        tokio::join!(
            process_is_killed(namespace.clone(), "direct", RequestPath::Direct, "test-app"),
            process_is_killed(namespace.clone(), "through", RequestPath::ThroughActivator, "test-app"),
        );
    });
}

#[test]
fn a_queue_proxy_that_is_killed_alone_takes_only_what_it_held() {
    in_namespace("proxy-killed", async |namespace| {
        tokio::join!(
            process_is_killed(namespace.clone(), "direct", RequestPath::Direct, "ebb-queue-proxy"),
            process_is_killed(namespace.clone(), "through", RequestPath::ThroughActivator, "ebb-queue-proxy"),
        );
    });
}

#[test]
fn pods_that_go_in_the_midst_of_requests_of_ten_seconds_answer_them() {
    in_namespace("long-requests", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target", "2");
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "3").create(&namespace).await;
        hello.takes_connections().await;
        let load = hello.load().path("/?sleep=10000");
        let crowd = load.clone().with_own_connections();
        let crowd = tokio::spawn(async move { crowd.burst(6).await });
        hello.has_pods(3).await;
        crowd.await.expect("the client does not panic").assert_all_answered();
        // One at a time keeps one pod, and the others go while some of these are under way.
        let few = tokio::spawn(async move { load.paced(12, Duration::from_secs(4)).await });
        eventually("fewer pods", PATIENCE, || async {
            let count = hello.count().await;
            if count < 3 { Ok(()) } else { Err(format!("{count}")) }
        })
        .await;
        nothing_is_missing(&few.await.expect("the client does not panic"));
    });
}
