//! Pods end under load, whatever their apps do when they are to: no request is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tests::client::whole_answer;
use tests::cluster::{PATIENCE, RequestPath, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;
use tokio::task::JoinSet;

/// Where an injected pod answers probes and hooks.
const ADMIN_PORT: u16 = 8022;

/// Deletes the only pod of an app that takes a second for each request, under load, on either path.
async fn is_ended_without_loss(namespace: &TestNamespace, name: &str, hook: Option<Value>, args: &[&str]) {
    let ended = |path: RequestPath| {
        let plan = WorkloadPlan::new(&format!("{name}-{}", path.name())).by(path).app_args(args);
        is_ended_on(namespace, plan, hook.clone(), path)
    };
    tokio::join!(ended(RequestPath::Direct), ended(RequestPath::ThroughActivator));
}

async fn is_ended_on(namespace: &TestNamespace, plan: WorkloadPlan, hook: Option<Value>, path: RequestPath) {
    let plan = plan.annotated("autoscaling.knative.dev/min-scale", "1");
    let is_kept = hook.as_ref().is_some_and(|hook| hook.get("sleep").is_none());
    let plan = match hook {
        Some(hook) => plan.app_field("lifecycle", json!({"preStop": hook})),
        None => plan,
    };
    let app = plan.create(namespace).await;
    app.has_pods(1).await;
    app.is_served_by(path).await;
    if is_kept {
        app.has_event("KeptHook").await;
    }
    let load = app.load().path("/?sleep=1000").with_own_connections();
    let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(20)).await });
    // As many as there will be at once are under way.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let deleted = app.delete_a_pod().await;
    let tally = traffic.await.expect("the client does not panic");
    println!("{deleted}: {:?}", tally.outcomes);
    tally.assert_nothing_missing();
    app.has_lost(&deleted).await;
}

#[test]
fn a_pod_without_a_hook_or_with_one_that_sleeps_ends_when_its_requests_have() {
    in_namespace("replaced", async |namespace| {
        let sleep = json!({"sleep": {"seconds": 1}});
        tokio::join!(
            is_ended_without_loss(&namespace, "none", None, &[]),
            is_ended_without_loss(&namespace, "sleep", Some(sleep), &[]),
        );
    });
}

/// Hooks of the app's own that do something are kept: the app is told to end when they have. These take as
/// long as a drain.
#[test]
fn a_pod_whose_app_has_a_hook_of_its_own_keeps_it_and_loses_nothing() {
    in_namespace("kept", async |namespace| {
        let exec = json!({"exec": {"command": ["test-app", "--pause-ms", "12000"]}});
        let http = json!({"httpGet": {"path": "/?sleep=12000", "port": 8080}});
        tokio::join!(
            is_ended_without_loss(&namespace, "exec", Some(exec), &[]),
            is_ended_without_loss(&namespace, "http", Some(http), &[]),
        );
    });
}

/// The app is told to end three seconds before its queue-proxy is.
#[test]
fn a_queue_proxy_that_is_told_to_end_late_loses_nothing_with_a_link_or_without() {
    in_namespace("late", async |namespace| {
        // Which no autoscaler has a certificate of.
        let stranger = rcgen::generate_simple_self_signed(vec!["stranger".to_owned()]);
        let stranger = stranger.expect("a certificate").cert.pem();
        let ended = |name: &str, path: RequestPath| {
            let plan = WorkloadPlan::new(&format!("{name}-{}", path.name())).by(path);
            plan.sidecar_field("image", json!("ebb-queue-proxy-late:test"))
        };
        let linked = |path| is_ended_on(&namespace, ended("linked", path), None, path);
        let cut = |path| {
            let plan = ended("cut", path).sidecar_variable("EBB_LINK_CA", &stranger);
            is_ended_on(&namespace, plan, None, path)
        };
        tokio::join!(linked(RequestPath::Direct), linked(RequestPath::ThroughActivator));
        tokio::join!(cut(RequestPath::Direct), cut(RequestPath::ThroughActivator));
    });
}

#[test]
fn an_app_that_ignores_term_is_killed_when_its_requests_have_ended() {
    in_namespace("ignores", async |namespace| {
        is_ended_without_loss(&namespace, "ignores", None, &["--ignore-term"]).await;
    });
}

/// Its deletion left the pod the time of the longest drain (10 s + 45 s) and its own (5 s).
#[test]
fn an_event_names_a_pod_whose_app_ignores_term_when_its_own_time_is_over() {
    in_namespace("outlives", async |namespace| {
        let plan = WorkloadPlan::new("outlives")
            .annotated("autoscaling.knative.dev/min-scale", "1")
            .app_args(&["--ignore-term"])
            .pod_field("terminationGracePeriodSeconds", json!(5));
        let app = plan.create(&namespace).await;
        app.has_pods(1).await;
        let deleted = app.delete_a_pod().await;
        app.has_event("IgnoresTerm").await;
        app.has_lost(&deleted).await;
    });
}

/// Strangers that wait for a pod's drain, each again as soon as it was answered. Their address is that of
/// this test, which is no node's.
struct DrainWaiters {
    refused: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl DrainWaiters {
    fn start(count: usize, pod: SocketAddr) -> Self {
        let (refused, mut tasks) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        for _ in 0..count {
            let refused = Arc::clone(&refused);
            tasks.spawn(async move {
                // The pod is gone in the end.
                while let Ok(answer) = whole_answer(pod, "localhost", "/wait-for-drain").await {
                    if answer.starts_with("HTTP/1.1 503") {
                        refused.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            });
        }
        Self { refused, _tasks: tasks }
    }

    /// Waits until one more was refused: strangers hold all places that they may have.
    async fn fill_their_places(&self) {
        let before = self.refused.load(Ordering::Relaxed);
        eventually("a stranger is refused", PATIENCE, || async {
            let refused = self.refused.load(Ordering::Relaxed);
            if refused > before { Ok(()) } else { Err("each of them waits".to_owned()) }
        })
        .await;
    }
}

/// The app ends at once when it is told to, so a hook that is refused loses what is under way.
#[test]
fn strangers_that_wait_for_a_pods_drain_keep_out_neither_its_hooks_nor_its_probes() {
    in_namespace("occupied", async |namespace| {
        let plan = WorkloadPlan::new("occupied").by(RequestPath::Direct);
        let app = plan.annotated("autoscaling.knative.dev/min-scale", "1").create(&namespace).await;
        app.has_pods(1).await;
        app.is_served_by(RequestPath::Direct).await;
        let pod = *app.pod_addresses().await.first().expect("its pod has an address");
        let admin = SocketAddr::new(pod, ADMIN_PORT);
        let strangers = DrainWaiters::start(64, admin);
        strangers.fill_their_places().await;
        let load = app.load().path("/?sleep=3000").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(10)).await });
        // As many as there will be at once are under way.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let deleted = app.delete_a_pod().await;
        strangers.fill_their_places().await;
        for page in ["/healthz", "/ready"].repeat(10) {
            let answer = whole_answer(admin, "localhost", page).await.expect("the pod drains");
            assert!(answer.starts_with("HTTP/1.1 200"), "{page}: {answer}");
        }
        let tally = traffic.await.expect("the client does not panic");
        println!("{deleted}: {:?}", tally.outcomes);
        tally.assert_nothing_missing();
        app.has_lost(&deleted).await;
    });
}
