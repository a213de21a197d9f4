//! The whole platform before an API server that fails on the wire as a test says: what is tried again, when,
//! which objects are disturbed, and what people are told.

mod custom;
mod histories;
mod knative;
mod pace;
mod server;
mod slices;
mod trust;

use std::time::Duration;

use orchestration::{Fence, Order, OrderId, OrderOutcome, PlatformFact, PlatformOrder};
use platform::Seat;
use scaling::{Decision, Trigger};
use serde_json::{Value, json};
use vocabulary::{Bucket, PodCount, PodName, RevisionName, Routing, Timestamp};

use self::server::{BECAUSE, Fault, ScriptedServer, WatchEnd};
use super::*;
use crate::requests::HINTS_SHOWN_WITHIN;

const DEPLOYMENTS: &str = "apis/apps/v1/deployments";
const PODS: &str = "api/v1/pods";
const SERVICES: &str = "api/v1/services";
const EVENTS: &str = "apis/events.k8s.io/v1/events";
/// It only bounds how long a failing test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A platform with a server of its own, and an autoscaler that owns everything.
struct Laboratory {
    server: ScriptedServer,
    facts: mpsc::Receiver<PlatformFact>,
    seat: Box<dyn Seat>,
    fence: Fence,
    orders: u64,
    /// It goes with its seat.
    platform: Arc<KubernetesPlatform>,
}

fn revision(name: &str) -> RevisionName {
    RevisionName::new("shop", "deployment", name).expect("a name")
}

fn scale_path(name: &str) -> String {
    format!("/apis/apps/v1/namespaces/shop/deployments/{name}/scale")
}

fn deployment(name: &str, replicas: u32) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "ports": [{"containerPort": 8080}]}]},
    });
    json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}

fn service(name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "shop", "annotations": {"ebb.dev/revision": name}});
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let spec = json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"], "ports": ports});
    json!({"metadata": metadata, "spec": spec})
}

fn decision() -> Decision {
    Decision::empty(Trigger::Tick, Timestamp::ZERO)
}

/// The platform at that API server.
async fn platform_at(server: &ScriptedServer) -> Result<Arc<KubernetesPlatform>, StartError> {
    let uri = format!("http://{}", server.address).parse().expect("an address");
    let client = connection::client(kube::Config::new(uri)).expect("a client");
    let config = KubernetesConfig {
        name: ReplicaName::new("autoscaler-1"),
        namespace: "ebb-system".to_owned(),
        buckets: 1,
        knative: None,
        clock: Clock::start(),
    };
    KubernetesPlatform::start_with(client, config).await
}

impl Laboratory {
    /// With `hello` and `other`, of no pods each.
    async fn start() -> Self {
        let server = ScriptedServer::start().await;
        for name in ["hello", "other"] {
            server.put(DEPLOYMENTS, deployment(name, 0));
            server.put(SERVICES, service(name));
        }
        let platform = platform_at(&server).await.expect("it starts");
        let Subscription { facts, seat, .. } = platform.subscribe(&ReplicaName::new("autoscaler-1"));
        let fence = Fence { bucket: Bucket(0), epoch: vocabulary::Epoch(0) };
        let mut laboratory = Self { server, facts, seat, fence, orders: 0, platform };
        let owned = laboratory.wait("everything is owned", |fact| {
            let PlatformFact::OwnershipChanged(ownership) = fact else { return None };
            ownership.epochs.get(&Bucket(0)).copied()
        });
        laboratory.fence.epoch = owned.await;
        laboratory
    }

    /// The first fact of which `read` makes something.
    async fn wait<Found>(
        &mut self,
        what: &str,
        mut read: impl FnMut(&PlatformFact) -> Option<Found>,
    ) -> Found {
        let facts = async {
            let mut renewal = tokio::time::interval(cluster::RENEW_EVERY);
            loop {
                // Both wait for the next one, and lose nothing when dropped.
                tokio::select! {
                    fact = self.facts.recv() => {
                        if let Some(found) = read(&fact.expect("the platform goes on")) {
                            return found;
                        }
                    }
                    _ = renewal.tick() => self.seat.renew(),
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, facts).await;
        found.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
    }

    fn order(&mut self, name: &str, from: u32, to: u32) -> OrderId {
        self.order_ending((name, from, to), &[])
    }

    fn order_ending(&mut self, (name, from, to): (&str, u32, u32), end_first: &[&str]) -> OrderId {
        self.orders += 1;
        let what = Order::ScaleTo {
            revision: revision(name),
            from: PodCount::new(from),
            to: PodCount::new(to),
            end_first: end_first.iter().map(|pod| PodName::new(&format!("shop/{pod}"))).collect(),
            because: Arc::new(decision()),
        };
        let id = OrderId(self.orders);
        self.seat.execute(PlatformOrder { id, fence: self.fence, what });
        id
    }

    /// The next word about an order.
    async fn word_of(&mut self, order: OrderId) -> OrderOutcome {
        let what = format!("a word of {order:?}");
        self.wait(&what, |fact| {
            let PlatformFact::OrderEnded { order: this, outcome } = fact else { return None };
            (*this == order).then(|| outcome.clone())
        })
        .await
    }

    /// Why it is not done yet.
    async fn trouble_of(&mut self, order: OrderId) -> String {
        let word = self.word_of(order).await;
        let OrderOutcome::Retrying(why) = word else { panic!("it is tried again: {word:?}") };
        why
    }

    /// How it ended at last.
    async fn end_of(&mut self, order: OrderId) -> OrderOutcome {
        loop {
            let word = self.word_of(order).await;
            if !matches!(word, OrderOutcome::Retrying(_)) {
                return word;
            }
        }
    }

    fn attempts(&self, name: &str) -> Vec<Timestamp> {
        self.server.asked("PATCH", &scale_path(name))
    }

    fn count_of(&self, name: &str) -> u64 {
        let object = self.server.object(DEPLOYMENTS, "shop", name).expect("it is there");
        object["spec"]["replicas"].as_u64().unwrap_or_default()
    }

    /// What people were told of this reason about `hello`.
    async fn event(&mut self, reason: &str) -> String {
        let told = async {
            loop {
                let events = self.server.objects(EVENTS);
                let found = events
                    .iter()
                    .find(|event| event["reason"] == reason && event["regarding"]["name"] == "hello");
                if let Some(event) = found {
                    return event["note"].as_str().unwrap_or_default().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let told = tokio::time::timeout(PATIENCE, told).await;
        told.unwrap_or_else(|_| panic!("no Event {reason}"))
    }

    /// Waits until a count of a workload is known.
    async fn knows(&mut self, name: &str, count: u32) {
        let what = format!("{name} is known to have {count}");
        self.wait(&what, |fact| {
            let PlatformFact::RevisionChanged(facts) = fact else { return None };
            (facts.name == revision(name) && facts.wanted == PodCount::new(count)).then_some(())
        })
        .await;
    }

    /// Waits until the autoscaler hears of so many pods.
    async fn knows_pods(&mut self, name: &str, count: usize) {
        let what = format!("{count} pods of {name} are known");
        self.wait(&what, |fact| {
            let PlatformFact::PodsChanged { revision: this, pods } = fact else { return None };
            (*this == revision(name) && pods.len() == count).then_some(())
        })
        .await;
    }
}

/// The count of `hello` is to be written while the server fails so; `other` is not disturbed, the reason is
/// shown, and once the server is well again the count is written without another order.
async fn is_tried_again(fault: Fault, reason: &str) {
    is_tried_again_by("", fault, reason).await;
}

/// The same where requests of one method alone fail (`PATCH `).
async fn is_tried_again_by(method: &str, fault: Fault, reason: &str) {
    let mut laboratory = Laboratory::start().await;
    let path = format!("{method}{}", scale_path("hello"));
    let failures = fault.failures_before_recovery();
    laboratory.server.fail(&path, fault);
    let order = laboratory.order("hello", 0, 3);
    let why = laboratory.trouble_of(order).await;
    assert!(why.contains(reason), "{why}");
    let why = laboratory.event("ScalingFailed").await;
    assert!(why.contains("from 0 to 3") && why.contains(reason), "{why}");

    let other = laboratory.order("other", 0, 2);
    assert_eq!(laboratory.word_of(other).await, OrderOutcome::Done, "others are not disturbed");
    for _ in 1..failures {
        laboratory.trouble_of(order).await;
    }
    assert_eq!(laboratory.count_of("hello"), 0);

    let attempts = laboratory.attempts("hello");
    let gaps: Vec<Duration> = attempts.windows(2).map(|pair| pair[1].saturating_since(pair[0])).collect();
    let least = [100, 200].map(Duration::from_millis);
    assert!(gaps.iter().zip(least).all(|(gap, least)| *gap >= least), "each wait is longer: {gaps:?}");
    laboratory.server.heal(&path);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    assert_eq!((laboratory.count_of("hello"), laboratory.count_of("other")), (3, 2));
}

#[tokio::test]
async fn every_refusal_of_a_count_is_tried_again_shown_and_disturbs_no_other_workload() {
    let cases = [
        (404, BECAUSE),
        (409, "another client wrote the object"),
        (410, BECAUSE),
        (422, BECAUSE),
        (403, BECAUSE),
        (429, BECAUSE),
        (500, BECAUSE),
        (503, BECAUSE),
        (504, BECAUSE),
    ];
    let cases = cases.map(|(code, reason)| is_tried_again(Fault::Status(code), reason));
    futures_util::future::join_all(cases).await;
}

/// By a quota or a webhook, say: uid and count are as they were, so no other client has written.
#[tokio::test]
async fn a_count_that_is_refused_although_nothing_has_changed_is_tried_again() {
    is_tried_again_by("PATCH ", Fault::Status(422), BECAUSE).await;
}

#[tokio::test]
async fn a_foreign_count_is_kept_and_an_event_names_it() {
    let mut laboratory = Laboratory::start().await;
    laboratory.knows("hello", 0).await;
    // Before the watch knows it.
    laboratory.server.change_unseen(DEPLOYMENTS, deployment("hello", 7));
    let order = laboratory.order("hello", 0, 3);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Conflict { found: PodCount::new(7) });
    assert_eq!(laboratory.count_of("hello"), 7);
    let told = laboratory.event("ForeignCount").await;
    assert!(
        told.contains("another client wrote a count of 7 while ebb was about to write 3 instead of 0"),
        "{told}"
    );
}

#[tokio::test]
async fn a_count_that_the_watch_shows_is_told_if_it_is_not_our_own() {
    let mut laboratory = Laboratory::start().await;
    laboratory.knows("hello", 0).await;
    let order = laboratory.order("hello", 0, 3);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    // The watch shows both.
    laboratory.server.put(DEPLOYMENTS, deployment("hello", 5));
    let told = laboratory.event("ForeignCount").await;
    assert_eq!(told, "another client wrote a count of 5, where 3 was wanted; ebb goes on from there");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_by_its_version() {
    let start = async |minor: &str| {
        let server = ScriptedServer::start().await;
        server.be_of_version(minor);
        platform_at(&server).await.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(
        start("28").await,
        Err("the cluster runs Kubernetes v1.28.2; ebb needs 1.29 or newer".to_owned())
    );
    assert_eq!((start("29+").await, start("37").await), (Ok(()), Ok(())));
}

const SLICES: &str = "apis/discovery.k8s.io/v1/endpointslices";
const ENDPOINTS: &str = "api/v1/endpoints";
const LEFTOVER: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/hello-k8s";
const KEPT: &str = "/api/v1/namespaces/shop/endpoints/hello";

/// What Kubernetes leaves behind where a Service had a selector.
fn put_leftovers(server: &ScriptedServer) {
    server.put(PODS, pod("hello-1", None));
    server.put(ENDPOINTS, json!({"metadata": {"name": "hello", "namespace": "shop"}, "subsets": []}));
    let labels = json!({
        "kubernetes.io/service-name": "hello",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    let metadata = json!({"name": "hello-k8s", "namespace": "shop", "labels": labels});
    let target = json!({"kind": "Pod", "name": "hello-1"});
    let endpoint = json!({"addresses": ["10.244.1.7"], "conditions": {"ready": true}, "targetRef": target});
    server.put(SLICES, json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [endpoint]}));
}

/// Waits until the server was asked so often.
async fn is_asked(server: &ScriptedServer, (method, path): (&str, &str), times: usize) {
    let asked = async {
        while server.asked(method, path).len() < times {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    asked.unwrap_or_else(|_| panic!("{method} {path}: not {times} times within {PATIENCE:?}"));
}

#[tokio::test]
async fn slices_of_kubernetes_are_deleted_after_their_endpoints_are_kept() {
    let laboratory = Laboratory::start().await;
    let server = &laboratory.server;
    // As if it had been written meanwhile.
    let deletion = format!("DELETE {LEFTOVER}");
    server.fail(&deletion, Fault::Status(409));
    put_leftovers(server);
    is_asked(server, ("DELETE", LEFTOVER), 2).await;
    server.heal(&deletion);
    let gone = async {
        while server.object(SLICES, "shop", "hello-k8s").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it goes");
    assert!(
        server.asked("PUT", KEPT)[0] <= server.asked("DELETE", LEFTOVER)[0],
        "or its copy would come again"
    );
    let kept = server.object(ENDPOINTS, "shop", "hello").expect("it stays");
    let service = server.object(SERVICES, "shop", "hello").expect("it is there");
    assert_eq!(kept["metadata"]["ownerReferences"][0]["uid"], service["metadata"]["uid"]);
    assert_eq!(kept["metadata"]["labels"]["endpointslice.kubernetes.io/skip-mirror"], "true");
    assert_eq!(kept["subsets"][0]["addresses"][0]["ip"], "10.244.1.7");
}

#[tokio::test]
async fn endpoints_are_left_alone_once_a_selector_is_back() {
    let laboratory = Laboratory::start().await;
    let server = &laboratory.server;
    let mut selecting = service("hello");
    selecting["spec"]["selector"] = json!({"app": "hello"});
    // The watch is behind.
    server.change_unseen(SERVICES, selecting);
    put_leftovers(server);
    is_asked(server, ("GET", KEPT), 2).await;
    let written = (server.asked("PUT", KEPT).len(), server.asked("DELETE", LEFTOVER).len());
    assert_eq!(written, (0, 0));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_after_seconds_and_asked_again() {
    let within = "did not answer within 4 s";
    tokio::join!(is_tried_again(Fault::Silence, within), is_tried_again(Fault::HangsAfterHead, within));
}

#[tokio::test]
async fn a_refusal_is_never_answered_with_a_busy_loop() {
    let mut laboratory = Laboratory::start().await;
    let codes = [404, 409, 422, 429, 500, 503];
    laboratory.server.fail(&scale_path("hello"), Fault::Status(500));
    for (number, code) in codes.into_iter().enumerate() {
        laboratory.server.fail(&scale_path("hello"), Fault::Status(code));
        // Orders that come meanwhile wait as long.
        let order = laboratory.order("hello", 0, 1 + u32::try_from(number).expect("few"));
        laboratory.trouble_of(order).await;
    }
    let attempts = laboratory.attempts("hello");
    // 100, 200, 400, 800, 1,600 ms lie between them.
    let took = attempts[codes.len() - 1].saturating_since(attempts[0]);
    assert_eq!(attempts.len(), codes.len(), "one for each word of it");
    assert!(took >= Duration::from_millis(3100), "{took:?}");
}

#[tokio::test]
async fn a_server_that_says_how_long_to_wait_is_left_alone_so_long() {
    let mut laboratory = Laboratory::start().await;
    let path = scale_path("hello");
    // Longer than a request may take: a client that waited inside of it would forget and ask
    // again.
    laboratory.server.fail(&path, Fault::TurnedAway { seconds: 5 });
    let order = laboratory.order("hello", 0, 3);
    let why = laboratory.trouble_of(order).await;
    assert!(why.contains("Too many requests"), "{why}");
    laboratory.server.heal(&path);
    let other = laboratory.order("other", 0, 2);
    assert_eq!(laboratory.word_of(other).await, OrderOutcome::Done);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    let attempts = laboratory.attempts("hello");
    let [first, second] = attempts[..] else { panic!("one more attempt: {attempts:?}") };
    let wait = second.saturating_since(first);
    assert!(wait >= Duration::from_secs(5), "{wait:?}");
}

#[tokio::test]
async fn a_count_that_replaces_one_that_was_never_written_is_written_over_what_is_there() {
    let mut laboratory = Laboratory::start().await;
    // Before any look at how it ended.
    let unseen = laboratory.order("other", 0, 1);
    let order = laboratory.order("other", 1, 8);
    assert_eq!(laboratory.end_of(unseen).await, OrderOutcome::Superseded);
    assert_eq!((laboratory.end_of(order).await, laboratory.count_of("other")), (OrderOutcome::Done, 8));

    // While one before it is under way, or waits to be tried again.
    let path = scale_path("hello");
    laboratory.server.fail(&path, Fault::Status(500));
    let failing = laboratory.order("hello", 0, 1);
    laboratory.trouble_of(failing).await;
    let waiting = laboratory.order("hello", 1, 3);
    assert_eq!(laboratory.end_of(failing).await, OrderOutcome::Superseded);
    laboratory.trouble_of(waiting).await;
    let order = laboratory.order("hello", 3, 8);
    assert_eq!(laboratory.end_of(waiting).await, OrderOutcome::Superseded);
    laboratory.server.heal(&path);
    assert_eq!((laboratory.end_of(order).await, laboratory.count_of("hello")), (OrderOutcome::Done, 8));

    // What another client wrote meanwhile stays, as ever.
    laboratory.server.fail(&path, Fault::Status(500));
    let failing = laboratory.order("hello", 8, 9);
    laboratory.trouble_of(failing).await;
    laboratory.server.change_unseen(DEPLOYMENTS, deployment("hello", 7));
    let order = laboratory.order("hello", 9, 10);
    laboratory.server.heal(&path);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Conflict { found: PodCount::new(7) });
}

/// The autoscaler may hear of a workload again while its count is being written.
#[tokio::test]
async fn a_count_that_is_being_written_is_neither_decided_nor_told_twice() {
    let mut laboratory = Laboratory::start().await;
    laboratory.knows("hello", 0).await;
    let path = format!("PATCH {}", scale_path("hello"));
    laboratory.server.fail(&path, Fault::Late);
    let first = laboratory.order("hello", 0, 3);
    is_asked(&laboratory.server, ("PATCH", &scale_path("hello")), 1).await;
    // The watch still shows the former count.
    let mut annotated = deployment("hello", 0);
    annotated["metadata"]["annotations"] = json!({"autoscaling.knative.dev/window": "40s"});
    laboratory.server.put(DEPLOYMENTS, annotated);
    laboratory.knows("hello", 3).await;
    // An autoscaler that heard of it before that has decided the same once more.
    let second = laboratory.order("hello", 0, 3);
    laboratory.server.heal(&path);
    for order in [first, second] {
        assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    }
    assert!(laboratory.server.asked("GET", &scale_path("hello")).is_empty(), "neither was refused");
    let third = laboratory.order("hello", 3, 2);
    assert_eq!(laboratory.end_of(third).await, OrderOutcome::Done);
    assert!(laboratory.event("ScaledDown").await.starts_with("from 3 to 2 pods"));
    let told: Vec<Value> = laboratory.server.objects(EVENTS);
    let reasons: Vec<&Value> = told.iter().map(|event| &event["reason"]).collect();
    assert_eq!(reasons, ["ScaledUp", "ScaledDown"], "{told:?}");
}

/// A pod of `hello` that serves, about whose end another client has said this.
fn pod(name: &str, cost: Option<&str>) -> Value {
    let annotations: serde_json::Map<String, Value> = cost
        .map(|cost| ("controller.kubernetes.io/pod-deletion-cost".to_owned(), json!(cost)))
        .into_iter()
        .collect();
    let metadata =
        json!({"name": name, "namespace": "shop", "labels": {"app": "hello"}, "annotations": annotations});
    let ports = json!([{"containerPort": 8080}]);
    let env = json!([{"name": "USER_PORT", "value": "8080"}]);
    let containers = json!([{"name": "app", "ports": ports}, {"name": "queue-proxy", "env": env}]);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"phase": "Running", "podIP": "10.244.1.7", "conditions": ready});
    json!({"metadata": metadata, "spec": {"containers": containers}, "status": status})
}

#[tokio::test]
async fn idle_pods_are_marked_before_the_count_shrinks_where_that_is_allowed() {
    // What another client wrote stays, and what we wrote for an earlier count does not.
    let before = [("idle", None), ("busy", Some("-1000")), ("precious", Some("5"))];
    for (is_allowed, after) in
        [(true, [Some("-1000"), None, Some("5")]), (false, [None, Some("-1000"), Some("5")])]
    {
        let mut laboratory = Laboratory::start().await;
        if is_allowed {
            laboratory.server.allow_everything();
        }
        for (name, cost) in before {
            laboratory.server.put(PODS, pod(name, cost));
        }
        laboratory.server.put(DEPLOYMENTS, deployment("hello", 3));
        laboratory.knows_pods("hello", before.len()).await;
        let order = laboratory.order_ending(("hello", 3, 1), &["idle", "precious"]);
        assert_eq!(laboratory.word_of(order).await, OrderOutcome::Done);
        let costs = before.map(|(name, _)| {
            let pod = laboratory.server.object(PODS, "shop", name).expect("it is there");
            let annotations = &pod["metadata"]["annotations"];
            annotations["controller.kubernetes.io/pod-deletion-cost"].as_str().map(str::to_owned)
        });
        assert_eq!(costs, after.map(|cost| cost.map(str::to_owned)), "allowed: {is_allowed}");
    }
}

/// A controller that ends pods hears of them by another watch than of the count.
#[tokio::test]
async fn a_smaller_count_waits_for_the_watch_to_show_the_costs_of_pods_but_not_for_ever() {
    for is_shown in [true, false] {
        let mut laboratory = Laboratory::start().await;
        laboratory.server.allow_everything();
        laboratory.server.put(PODS, pod("idle", None));
        laboratory.server.put(DEPLOYMENTS, deployment("hello", 2));
        laboratory.knows_pods("hello", 1).await;
        laboratory.server.fail(&format!("GET /{PODS}"), Fault::Late);
        let order = laboratory.order_ending(("hello", 2, 1), &["idle"]);
        let marked = ("PATCH", "/api/v1/namespaces/shop/pods/idle");
        is_asked(&laboratory.server, marked, 1).await;
        let shown = is_shown.then(|| {
            let at = laboratory.server.now();
            laboratory.server.heal(&format!("GET /{PODS}"));
            at
        });
        assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
        let given_up = laboratory.server.asked(marked.0, marked.1)[0] + HINTS_SHOWN_WITHIN;
        let earliest = shown.map_or(given_up, |shown| shown.min(given_up));
        let written = laboratory.attempts("hello")[0];
        assert!(written >= earliest, "shown: {is_shown}; {written:?}, not before {earliest:?}");
    }
}

/// A pod that was deleted with the time of its drain, of whose containers some run.
fn ending(name: &str, running: &[&str]) -> Value {
    let mut pod = pod(name, None);
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-22T10:00:00Z");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(375);
    let state = |name: &&str| json!({"name": name, "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    pod["status"]["containerStatuses"] = running.iter().map(state).collect();
    let containers = pod["spec"]["containers"].as_array_mut().expect("it has some").iter_mut();
    for container in containers.filter(|container| container["name"] == "queue-proxy") {
        container["env"] = json!([{"name": "EBB_APP_GRACE", "value": "0s"}]);
    }
    pod
}

#[tokio::test]
async fn an_app_that_ignores_sigterm_is_told_of_and_its_pod_is_left_alone() {
    let mut laboratory = Laboratory::start().await;
    laboratory.server.allow_everything();
    laboratory.server.put(PODS, ending("stubborn", &["app", "queue-proxy"]));
    laboratory.server.put(PODS, ending("ended", &[]));
    laboratory.server.put(DEPLOYMENTS, deployment("hello", 0));
    laboratory.knows_pods("hello", 2).await;
    for pod in ["ended", "stubborn"] {
        laboratory.orders += 1;
        let id = OrderId(laboratory.orders);
        let pod = PodName::new(&format!("shop/{pod}"));
        let what = Order::NoteDrained { revision: revision("hello"), pod };
        laboratory.seat.execute(PlatformOrder { id, fence: laboratory.fence, what });
    }
    let text = laboratory.event("IgnoresTerm").await;
    assert!(text.contains("pod shop/stubborn had answered all its requests"), "{text}");
    for name in ["stubborn", "ended"] {
        let pod = laboratory.server.object(PODS, "shop", name).expect("it is there");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 375, "{name}");
        let path = format!("/api/v1/namespaces/shop/pods/{name}");
        assert!(laboratory.server.asked("DELETE", &path).is_empty(), "{name}");
    }
    let told = laboratory.server.objects(EVENTS);
    let about = told.iter().filter(|event| event["reason"] == "IgnoresTerm");
    let about: Vec<_> = about.map(|event| event["regarding"]["name"].clone()).collect();
    assert!(!about.contains(&json!("ended")), "{about:?}");
}

#[tokio::test]
async fn a_count_whose_answer_was_cut_is_written_once() {
    let mut laboratory = Laboratory::start().await;
    let path = scale_path("hello");
    laboratory.server.fail(&path, Fault::CutInAnswer);
    let order = laboratory.order("hello", 0, 3);
    laboratory.trouble_of(order).await;
    assert_eq!(laboratory.count_of("hello"), 3, "it was written");
    laboratory.server.heal(&path);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done, "and that is found");
    assert_eq!(laboratory.count_of("hello"), 3);
}

#[tokio::test]
async fn a_count_of_a_deleted_workload_is_not_tried_again() {
    let mut laboratory = Laboratory::start().await;
    let path = scale_path("hello");
    laboratory.server.fail(&path, Fault::Status(404));
    let order = laboratory.order("hello", 0, 3);
    laboratory.trouble_of(order).await;
    laboratory.server.remove(DEPLOYMENTS, "shop", "hello");
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Gone);
}

#[tokio::test]
async fn another_workload_of_the_same_name_is_not_given_the_count_of_the_former() {
    let mut laboratory = Laboratory::start().await;
    let mut another = deployment("hello", 0);
    another["metadata"]["uid"] = json!("another");
    laboratory.server.change_unseen(DEPLOYMENTS, another);
    let order = laboratory.order("hello", 0, 3);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Gone);
    assert_eq!(laboratory.count_of("hello"), 0);
}

#[tokio::test]
async fn a_watch_that_breaks_between_or_within_objects_goes_on_where_it_was() {
    for end in [WatchEnd::Clean, WatchEnd::MidObject] {
        let mut laboratory = Laboratory::start().await;
        let path = "/apis/apps/v1/deployments";
        let before = laboratory.server.asked("GET", path).len();
        // Both may be read together, so the half of an object is the second's.
        laboratory.server.put(DEPLOYMENTS, deployment("other", 4));
        laboratory.server.end_watches(DEPLOYMENTS, end);
        laboratory.server.put(DEPLOYMENTS, deployment("hello", 5));
        laboratory.knows("hello", 5).await;
        laboratory.server.put(DEPLOYMENTS, deployment("hello", 6));
        laboratory.knows("hello", 6).await;
        let asked = laboratory.server.asked("GET", path).len() - before;
        assert!((1..=3).contains(&asked), "{end:?}: asked {asked} times");
    }
}

#[tokio::test]
async fn a_watch_that_expired_finds_in_a_new_list_what_came_and_what_went() {
    for end in [WatchEnd::GoneInStream, WatchEnd::GoneAsStatus] {
        let mut laboratory = Laboratory::start().await;
        laboratory.server.change_unseen(DEPLOYMENTS, deployment("hello", 5));
        laboratory.server.remove_unseen(DEPLOYMENTS, "shop", "other");
        laboratory.server.end_watches(DEPLOYMENTS, end);
        let (mut is_changed, mut is_removed) = (false, false);
        laboratory
            .wait("both are known", |fact| {
                if let PlatformFact::RevisionChanged(facts) = fact {
                    is_changed |= facts.name == revision("hello") && facts.wanted == PodCount::new(5);
                }
                if let PlatformFact::RevisionRemoved(name) = fact {
                    is_removed |= *name == revision("other");
                }
                (is_changed && is_removed).then_some(())
            })
            .await;
        // And it watches on.
        laboratory.server.put(DEPLOYMENTS, deployment("hello", 6));
        laboratory.knows("hello", 6).await;
    }
}

#[tokio::test]
async fn a_list_that_fails_after_an_expired_watch_is_asked_for_again_and_takes_nothing_away() {
    let mut laboratory = Laboratory::start().await;
    let path = "/apis/apps/v1/deployments";
    laboratory.server.fail(path, Fault::Status(500));
    let before = laboratory.server.asked("GET", path).len();
    laboratory.server.change_unseen(DEPLOYMENTS, deployment("hello", 5));
    laboratory.server.end_watches(DEPLOYMENTS, WatchEnd::GoneInStream);
    // The count is written all the same, by what is known.
    let order = laboratory.order("other", 0, 2);
    assert_eq!(laboratory.word_of(order).await, OrderOutcome::Done);
    let asked = async {
        while laboratory.server.asked("GET", path).len() < before + 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("it is asked for again");
    laboratory.server.heal(path);
    laboratory
        .wait("the count that no watch showed", |fact| {
            assert!(!matches!(fact, PlatformFact::RevisionRemoved(_)), "{fact:?}");
            let PlatformFact::RevisionChanged(facts) = fact else { return None };
            (facts.name == revision("hello") && facts.wanted == PodCount::new(5)).then_some(())
        })
        .await;
}
