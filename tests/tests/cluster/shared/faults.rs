//! Pods and processes end in every way there is, under load: what a process held that was killed is counted,
//! and nothing else is lost.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use tests::bench::clock;
use tests::client::Tally;
use tests::cluster::{
    PATIENCE, ProcessEnd, RequestPath, RequestSender, TestNamespace, Workload, WorkloadPlan, in_namespace,
    in_namespace_alone, process_of,
};
use tests::eventually;

/// Requests each second, each of half a second.
const RATE: u32 = 20;
/// Less than a drain may take: seconds.
const SHORT_PERIOD: u32 = 20;

/// One pod, whose requests go this way.
async fn one_pod(namespace: &TestNamespace, path: RequestPath) -> Workload {
    let plan = WorkloadPlan::new(path.name()).by(path).annotated("autoscaling.knative.dev/min-scale", "1");
    // What waits while a busy machine starts something again would bring another pod.
    let app = plan.annotated("autoscaling.knative.dev/max-scale", "1").create(namespace).await;
    app.has_pods(1).await;
    app.is_served_by(path).await;
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
    app.has_lost(former).await;
    app.has_pods(1).await;
    app.load().one().await.assert_all_answered();
}

/// How a pod is asked to go.
#[derive(Clone, Copy, Debug)]
enum Farewell {
    Deleted,
    Evicted,
    /// With less time than a drain may take.
    DeletedSoon,
    EvictedSoon,
}

impl Farewell {
    async fn say(self, namespace: &TestNamespace, pod: &str) {
        let pods = namespace.api::<Pod>();
        let soon = DeleteParams::default().grace_period(SHORT_PERIOD);
        let done = match self {
            Self::Deleted => pods.delete(pod, &DeleteParams::default()).await.map(|_| ()),
            Self::DeletedSoon => pods.delete(pod, &soon).await.map(|_| ()),
            Self::Evicted => pods.evict(pod, &EvictParams::default()).await.map(|_| ()),
            Self::EvictedSoon => {
                let soon = EvictParams { delete_options: Some(soon), ..EvictParams::default() };
                pods.evict(pod, &soon).await.map(|_| ())
            }
        };
        done.expect("nothing forbids it");
    }
}

/// Of the only pod, on either path.
async fn goes_without_loss(namespace: &TestNamespace, farewell: Farewell) {
    let goes = async |path| {
        let app = one_pod(namespace, path).await;
        let former = only_pod(&app).await;
        let time = Duration::from_secs(15);
        let (tally, ()) = under_load(&app, time, async || farewell.say(namespace, &former).await).await;
        tally.assert_nothing_missing();
        is_replaced(&app, &former).await;
    };
    tokio::join!(goes(RequestPath::Direct), goes(RequestPath::ThroughActivator));
}

#[test]
fn the_only_pod_that_is_deleted_is_replaced_before_it_ends_on_either_path() {
    in_namespace("deleted", async |namespace| goes_without_loss(&namespace, Farewell::Deleted).await);
}

#[test]
fn the_only_pod_that_is_evicted_loses_nothing_on_either_path() {
    in_namespace("evicted", async |namespace| goes_without_loss(&namespace, Farewell::Evicted).await);
}

#[test]
fn a_pod_that_is_given_less_time_than_a_drain_may_take_loses_nothing_on_either_path() {
    in_namespace("soon", async |namespace| goes_without_loss(&namespace, Farewell::DeletedSoon).await);
}

#[test]
fn a_pod_that_is_evicted_with_less_time_than_a_drain_may_take_loses_nothing_on_either_path() {
    in_namespace("evicted-soon", async |namespace| {
        goes_without_loss(&namespace, Farewell::EvictedSoon).await;
    });
}

async fn is_forced_out(namespace: TestNamespace, path: RequestPath) {
    let app = one_pod(&namespace, path).await;
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
    end.explains(&tally, sender(path));
    is_replaced(&app, &former).await;
}

/// Who may send something to a pod that has ended.
fn sender(path: RequestPath) -> RequestSender {
    match path {
        RequestPath::Direct => RequestSender::Service,
        RequestPath::ThroughActivator => RequestSender::Activator,
    }
}

#[test]
fn a_pod_that_is_deleted_by_force_takes_only_what_it_held() {
    in_namespace_alone("forced", async |namespace| {
        tokio::join!(
            is_forced_out(namespace.clone(), RequestPath::Direct),
            is_forced_out(namespace.clone(), RequestPath::ThroughActivator),
        );
    });
}

async fn process_is_killed(
    namespace: TestNamespace,
    path: RequestPath,
    program: &str,
    sender: RequestSender,
) {
    let app = one_pod(&namespace, path).await;
    let pod = only_pod(&app).await;
    let (tally, end) = under_load(&app, Duration::from_secs(15), async || {
        let process = process_of(&pod, program);
        let begun = clock::now();
        process.kill();
        ProcessEnd { begun, over: process.gone().await }
    })
    .await;
    end.explains(&tally, sender);
    app.has_pods(1).await;
    assert_eq!(only_pod(&app).await, pod, "kubelet starts what was killed again");
    app.load().steady(RATE, Duration::from_secs(2)).await.assert_all_answered();
}

#[test]
fn an_app_that_is_killed_alone_takes_only_what_it_held() {
    in_namespace("app-killed", async |namespace| {
        let killed = |path, sender| process_is_killed(namespace.clone(), path, "test-app", sender);
        tokio::join!(
            killed(RequestPath::Direct, RequestSender::ServiceOfItsPod),
            killed(RequestPath::ThroughActivator, RequestSender::Activator),
        );
    });
}

#[test]
fn a_queue_proxy_that_is_killed_alone_takes_only_what_it_held() {
    // What nodes are told within 2 s they are told later where dozens of pods start on two cores.
    in_namespace_alone("proxy-killed", async |namespace| {
        let killed = |path| process_is_killed(namespace.clone(), path, "ebb-queue-proxy", sender(path));
        tokio::join!(killed(RequestPath::Direct), killed(RequestPath::ThroughActivator));
    });
}

async fn long_requests_are_answered(namespace: &TestNamespace, plan: WorkloadPlan) {
    let plan = plan.annotated("autoscaling.knative.dev/target", "2");
    let hello = plan.annotated("autoscaling.knative.dev/max-scale", "3").create(namespace).await;
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
    few.await.expect("the client does not panic").assert_nothing_missing();
}

#[test]
fn pods_that_go_in_the_midst_of_requests_of_ten_seconds_answer_them() {
    in_namespace("long-requests", async |namespace| {
        let through = long_requests_are_answered(&namespace, WorkloadPlan::new("hello"));
        let direct = WorkloadPlan::new("direct").by(RequestPath::Direct);
        tokio::join!(through, long_requests_are_answered(&namespace, direct));
    });
}
