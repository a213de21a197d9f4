//! A revision of Knative's before a whole autoscaler's state of the cluster (contract §1.2, §2, §3, §4), with
//! a controller that does by a test's word what Knative's does.

mod closing;
#[path = "../../../tests/shared/knative_objects.rs"]
mod knative_objects;
mod laws;
mod mixed;
mod mixture;

use std::collections::BTreeSet;

use jiff::Timestamp as WallTime;
use orchestration::{Order, OrderId, PlatformFact, PlatformOrder};
use serde_json::{Value, json};
use vocabulary::{Bucket, PodCount, ReplicaName, Routing};

use crate::knative::{
    BucketCount, DeskWrite, KnativeBuckets, PodAutoscalerRecord, ServerlessRecord, ServerlessWrite,
    public_slice, revision_deployment,
};
use crate::lease::LeaseRecord;
use crate::news::{Change, ShownPod};
use crate::resources::{ObjectKey, pod};
use crate::seat::SeatNumber;
use crate::write::{ScaleAnswer, WriteAnswer};
use crate::{ClusterEvent, ClusterKeys, ClusterStateConfig, Installation};

use super::*;
use crate::News;
use knative_objects::{
    autoscaler, carried_out_status, condition, deployment, labels, pod_object, read, revision, slice_object,
    status_in_words,
};

const SEAT: SeatNumber = SeatNumber(1);

/// An autoscaler in Knative's place, one revision, and the objects as the API server has them.
struct Place {
    state: ClusterState,
    second: u64,
    version: u64,
    orders: u64,
    autoscaler: Value,
    service: Option<Value>,
    replicas: u32,
    facts: Vec<PlatformFact>,
    pods: BTreeSet<ObjectKey>,
    /// Each write but those of the status, in words.
    writes: Vec<String>,
    /// How often the status was written.
    statuses: usize,
    /// Whether Knative's webhook refuses each write of a service.
    is_webhook_away: bool,
    /// Whether clients get the addresses of activators alone, and the controller says so.
    is_path_proven: bool,
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }
}

impl Place {
    /// The autoscaler has its Lease and its seat, and knows one activator of Knative's at 10.1.0.1.
    fn new() -> Self {
        let buckets = BucketCount::default();
        let state = ClusterState::new(ClusterStateConfig {
            name: ReplicaName::new("autoscaler-x_10.0.0.9"),
            installation: Installation::Knative { buckets, domain: "cluster.local".to_owned() },
            keys: ClusterKeys::new(b"hop", b"slice"),
            salt: 1,
        });
        let mut place = Self {
            state,
            second: 100,
            version: 10,
            orders: 0,
            autoscaler: autoscaler(),
            service: None,
            replicas: 0,
            facts: Vec::new(),
            pods: BTreeSet::new(),
            writes: Vec::new(),
            statuses: 0,
            is_webhook_away: false,
            is_path_proven: false,
        };
        place.state.handle(ClusterEvent::SeatTaken(SEAT), place.moment());
        let activator =
            pod_object("activator-1", "knative-serving", &json!({"app": "activator"}), "10.1.0.1", "True");
        place.show(News::Activator(Change::Put(
            ObjectKey { namespace: "knative-serving".to_owned(), name: "activator-1".to_owned() },
            pod::read(&read(&activator)),
        )));
        place
    }

    /// Everything that is there has been said, and the Lease is ours.
    fn listed(mut self) -> Self {
        let activators =
            ObjectKey { namespace: "knative-serving".to_owned(), name: "activator-1".to_owned() };
        let mine = |name: Option<&str>| name.into_iter().map(key).collect::<BTreeSet<_>>();
        let has_service = self.service.is_some().then_some("hello-00001");
        for news in [
            News::Config(none_of()),
            News::Pod(Change::Listed(self.pods.clone())),
            News::Activator(Change::Listed([activators].into())),
            News::Lease(none_of()),
            News::Knative(KnativeNews::PodAutoscaler(Change::Listed(mine(Some("hello-00001"))))),
            News::Knative(KnativeNews::ServerlessService(Change::Listed(mine(has_service)))),
            News::Knative(KnativeNews::Deployment(Change::Listed(mine(Some("hello-00001-deployment"))))),
            News::Knative(KnativeNews::PublicSlice(none_of())),
            News::Knative(KnativeNews::AutoscalerPod(none_of())),
            News::Knative(KnativeNews::ProgressDeadline(none_of())),
        ] {
            self.show(news);
        }
        self.settle();
        self
    }

    /// `hello-00001` with so many replicas, as the controller makes it.
    fn apply(&mut self, replicas: u32) {
        self.replicas = replicas;
        self.show_deployment();
        self.show_autoscaler();
    }

    fn moment(&self) -> Moment {
        let wall: WallTime = "2026-11-22T10:00:00Z".parse().expect("a time");
        let passed = std::time::Duration::from_secs(self.second);
        Moment { wall: wall + passed, axis: Timestamp::from_secs(self.second) }
    }

    fn show(&mut self, news: News) {
        let moment = self.moment();
        self.state.handle(ClusterEvent::Shown(Box::new(news)), moment);
    }

    fn show_deployment(&mut self) {
        self.version += 1;
        let object = deployment(self.replicas, &self.version.to_string());
        let deployment = revision_deployment(&read(&object)).map(Box::new);
        let change = Change::Put(key("hello-00001-deployment"), deployment);
        self.show(News::Knative(KnativeNews::Deployment(change)));
    }

    fn show_autoscaler(&mut self) {
        let record = Box::new(PodAutoscalerRecord::read(&read(&self.autoscaler)));
        self.show(News::Knative(KnativeNews::PodAutoscaler(Change::Put(key("hello-00001"), record))));
    }

    fn show_service(&mut self) {
        let Some(service) = &mut self.service else { return };
        self.version += 1;
        service["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let record = Box::new(ServerlessRecord::read(&read(service)));
        self.show(News::Knative(KnativeNews::ServerlessService(Change::Put(key("hello-00001"), record))));
    }

    /// The controller carries out the `ServerlessService`, and clients get these addresses.
    fn controller(&mut self, addresses: &[&str], populated: &str) {
        let service = self.service.as_mut().expect("there is a service");
        service["status"] = carried_out_status(service, populated, "2026-11-22T10:01:00Z");
        self.show_service();
        self.is_path_proven = addresses == ["10.1.0.1"] && populated == "True";
        let change = Change::Put(key("hello-00001-x"), public_slice(&read(&slice_object(addresses))));
        self.show(News::Knative(KnativeNews::PublicSlice(change)));
        self.settle();
    }

    fn pod(&mut self, name: &str, address: &str, ready: &str) {
        let pod = pod_object(name, "default", &labels(), address, ready);
        self.pods.insert(key(name));
        self.show(News::Pod(Change::Put(key(name), ShownPod::read(&read(&pod)))));
        self.settle();
    }

    /// What was decided, and the route.
    fn decide(&mut self, intended: Option<u32>, activators: u32) {
        let decided = ClusterEvent::Decided {
            seat: SEAT,
            revision: revision(),
            intended: intended.map(PodCount::new),
            activators: PodCount::new(activators),
        };
        let moment = self.moment();
        self.state.handle(decided, moment);
        self.settle();
    }

    fn order(&mut self, what: Order) -> OrderId {
        self.orders += 1;
        let moment = self.moment();
        let right = self.state.rights(moment.axis).get(&Bucket(0)).copied().expect("the bucket is ours");
        let fence = Fence { bucket: Bucket(0), epoch: right.epoch };
        let id = OrderId(self.orders);
        self.state.handle(ClusterEvent::OrderGiven(SEAT, PlatformOrder { id, fence, what }), moment);
        self.settle();
        id
    }

    fn route(&mut self, routing: Routing) -> OrderId {
        self.order(Order::Route { revision: revision(), routing, activators: Vec::new() })
    }

    fn scale(&mut self, from: u32, to: u32) -> OrderId {
        let decision = scaling::Decision::empty(scaling::Trigger::Tick, Timestamp::ZERO);
        self.order(Order::ScaleTo {
            revision: revision(),
            from: PodCount::new(from),
            to: PodCount::new(to),
            end_first: Vec::new(),
            because: std::sync::Arc::new(decision),
        })
    }

    /// How an order has ended; `None` while it has not.
    fn outcome(&self, order: OrderId) -> Option<&OrderOutcome> {
        self.facts.iter().rev().find_map(|fact| {
            let PlatformFact::OrderEnded { order: ended, outcome } = fact else { return None };
            (*ended == order).then_some(outcome)
        })
    }

    /// Carries out everything that is to be written now, and takes the facts.
    fn settle(&mut self) {
        loop {
            let moment = self.moment();
            self.state.settle(moment);
            while let Some(fact) = self.state.next_fact(moment.axis) {
                self.facts.push(fact);
            }
            let Some(write) = self.state.next_write() else { return };
            let answer = self.perform(write);
            self.state.handle(ClusterEvent::Answered(answer), moment);
        }
    }

    fn perform(&mut self, write: ClusterWrite) -> WriteAnswer {
        match write {
            ClusterWrite::Lease(which, name, write) => {
                self.writes.push(format!("lease {name} {}", write.holder.as_deref().unwrap_or_default()));
                self.version += 1;
                let lease = LeaseRecord {
                    holder: write.holder,
                    transitions: write.transitions,
                    lasts: crate::LEASE,
                    resource_version: self.version.to_string(),
                    notes: write.notes,
                };
                WriteAnswer::Lease(which, Ok(lease))
            }
            ClusterWrite::Count { write, subject, hints: _ } => {
                let is_zero = write.to == PodCount::ZERO && write.from > PodCount::ZERO;
                assert!(!is_zero || self.is_path_proven, "zero is written, and clients may reach a pod");
                self.writes.push(format!("{} to {}", subject.name, write.to));
                self.replicas = write.to.value();
                self.show_deployment();
                let version = Some(crate::resources::workload::ObjectVersion(self.version));
                let answer = ScaleAnswer { outcome: OrderOutcome::Done, version };
                WriteAnswer::Count(write.revision, Ok(answer))
            }
            ClusterWrite::Revision { fence: _, revision, write } => {
                let object = write.object();
                WriteAnswer::Revision(revision, object, self.write(write))
            }
            ClusterWrite::Event(_) => WriteAnswer::Event(Ok(())),
            ClusterWrite::Slices { .. } | ClusterWrite::Takeover { .. } => {
                panic!("in an installed Knative no slice is ebb's: {write:?}")
            }
        }
    }

    fn write(&mut self, write: DeskWrite) -> Result<(), Failure> {
        match write {
            DeskWrite::Service(_) if self.is_webhook_away => {
                self.writes.push("service refused".to_owned());
                Err(Failure::Passing { why: "failed calling webhook".to_owned(), after: None })
            }
            DeskWrite::Service(ServerlessWrite::Create(object)) => {
                self.note_service(&object["spec"]);
                let mut service = object;
                (service["metadata"]["uid"], service["metadata"]["generation"]) = (json!("sks1"), json!(1));
                self.service = Some(service);
                self.show_service();
                Ok(())
            }
            DeskWrite::Service(ServerlessWrite::Replace { over, spec }) => {
                self.note_service(&spec);
                let service = self.service.as_mut().expect("there is a service");
                assert_eq!(service["metadata"]["resourceVersion"], json!(over), "it is written over what is");
                let generation = service["metadata"]["generation"].as_i64().unwrap_or_default();
                (service["spec"], service["metadata"]["generation"]) = (spec, json!(generation + 1));
                self.show_service();
                Ok(())
            }
            DeskWrite::Status(write) => {
                let patch = write.patch();
                assert_eq!(
                    self.autoscaler["metadata"]["resourceVersion"], patch["metadata"]["resourceVersion"],
                    "a status is written over what is shown"
                );
                self.judge_status(&patch["status"]);
                self.statuses += 1;
                self.version += 1;
                self.autoscaler["status"] = patch["status"].clone();
                self.autoscaler["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.show_autoscaler();
                Ok(())
            }
        }
    }

    fn note_service(&mut self, spec: &Value) {
        let mode = spec["mode"].as_str().unwrap_or_default();
        self.writes.push(format!("service {mode} {}", spec["numActivators"]));
    }

    /// Time passes, in which the autoscaler says every five seconds that it decides.
    fn pass(&mut self, seconds: u64) {
        let mut left = seconds;
        while left > 0 {
            let step = left.min(5);
            (self.second, left) = (self.second + step, left - step);
            let moment = self.moment();
            self.state.handle(ClusterEvent::SeatRenewed(SEAT), moment);
            self.settle();
        }
    }

    /// What must hold of every status that is written.
    fn judge_status(&self, status: &Value) {
        let before = &self.autoscaler["status"];
        assert_ne!(status, before, "a write that changes nothing is not sent");
        assert!(!is_true(before, "ScaleTargetInitialized") || is_true(status, "ScaleTargetInitialized"));
        let name = before["serviceName"].as_str().unwrap_or_default();
        assert!(name.is_empty() || status["serviceName"] == name, "serviceName never goes: {status}");
        let starts = !is_true(status, "ScaleTargetInitialized") && self.second < 100 + 600;
        let is_failed = condition(status, "Ready")["status"] == "False";
        assert!(!(starts && is_failed), "the revision would fail for good: {status}");
        let desired = status["desiredScale"].as_i64();
        assert!(desired != Some(-1) || before["desiredScale"].as_i64().is_none_or(|desired| desired < 0));
    }

    /// The status that is written: Ready with its reason, and the two counts.
    fn status(&self) -> String {
        status_in_words(&self.autoscaler["status"])
    }

    /// What was written since the last look, but renewals of the Lease and statuses.
    fn written(&mut self) -> Vec<String> {
        let writes = std::mem::take(&mut self.writes);
        writes.into_iter().filter(|write| !write.starts_with("lease")).collect()
    }
}

fn is_true(status: &Value, kind: &str) -> bool {
    condition(status, kind)["status"] == "True"
}

fn none_of<Record>() -> Change<Record> {
    Change::Listed(BTreeSet::new())
}

/// A revision with one ready pod behind an activator, all of whose writes are done.
fn serving() -> Place {
    let mut place = Place::new();
    place.apply(1);
    let mut place = place.listed();
    place.controller(&["10.1.0.1"], "True");
    place.pod("hello-00001-deployment-a", "10.0.0.1", "True");
    place.decide(Some(1), 3);
    place.route(Routing::ThroughActivator);
    place.controller(&["10.1.0.1"], "True");
    place.pass(2);
    place.written();
    place
}

#[test]
fn one_service_goes_from_apply_to_zero_and_back() {
    let mut place = Place::new();
    place.apply(1);
    let mut place = place.listed();
    assert_eq!(
        (place.written(), place.status()),
        (vec!["service Proxy 2".to_owned()], "Unknown Queued -1 0".to_owned())
    );
    place.controller(&["10.1.0.1"], "True");
    place.decide(Some(1), 3);
    let through = place.route(Routing::ThroughActivator);
    assert_eq!(place.written(), ["service Proxy 3"]);
    assert_eq!(place.outcome(through), None, "the controller has not carried it out");
    place.controller(&["10.1.0.1"], "True");
    assert_eq!(place.outcome(through), Some(&OrderOutcome::Done));
    place.pod("hello-00001-deployment-a", "10.0.0.1", "True");
    assert_eq!(place.status(), "True 1 1");

    place.pass(60);
    place.decide(Some(0), 2);
    assert_eq!(
        (place.written(), place.status().as_str()),
        (vec!["service Proxy 2".to_owned()], "False NoTraffic 0 1")
    );
    place.controller(&["10.1.0.1"], "True");
    let zero = place.scale(1, 0);
    assert_eq!((place.outcome(zero), place.replicas), (Some(&OrderOutcome::Done), 0));
    assert_eq!(place.written(), ["hello-00001-deployment to 0"]);
    place.show(News::Pod(Change::Gone(key("hello-00001-deployment-a"))));
    place.pass(1);
    assert_eq!(place.status(), "False NoTraffic 0 0");

    place.pass(100);
    place.decide(Some(1), 2);
    place.scale(0, 1);
    assert_eq!(place.written(), ["hello-00001-deployment to 1"]);
    assert_eq!(place.status(), "Unknown Queued 1 0");
    place.pod("hello-00001-deployment-b", "10.0.0.2", "True");
    assert_eq!(place.status(), "True 1 1");
    let statuses = place.statuses;
    place.pass(600);
    assert_eq!(
        (place.written(), place.statuses),
        (Vec::new(), statuses),
        "at rest only the Lease is written"
    );
}

#[test]
fn must_hold_knatives_leases_under_knatives_names() {
    let mut place = Place::new();
    place.apply(1);
    let place = place.listed();
    let lease = KnativeBuckets::new(BucketCount::default()).lease(Bucket(0));
    assert!(place.writes.contains(&format!("lease {lease} autoscaler-x_10.0.0.9")), "{:?}", place.writes);
}

#[test]
fn must_scale_nothing_to_zero_while_clients_get_the_address_of_a_pod() {
    let mut place = serving();
    place.controller(&["10.1.0.1", "10.0.0.1"], "True");
    let order = place.scale(1, 0);
    assert_eq!(place.outcome(order), Some(&OrderOutcome::Conflict { found: PodCount::ONE }));
    place.controller(&["10.1.0.1"], "False");
    let order = place.scale(1, 0);
    let refused = Some(&OrderOutcome::Conflict { found: PodCount::ONE });
    assert_eq!(place.outcome(order), refused, "ActivatorEndpointsPopulated");
    place.controller(&["10.1.0.1"], "True");
    let order = place.scale(1, 0);
    place.pass(2);
    assert_eq!(place.outcome(order), Some(&OrderOutcome::Done));
}

#[test]
fn a_route_through_activators_is_in_force_once_clients_get_their_addresses_alone() {
    let mut place = serving();
    place.route(Routing::Direct);
    place.controller(&["10.0.0.1"], "False");
    place.written();
    let through = place.route(Routing::ThroughActivator);
    assert_eq!(place.written(), ["service Proxy 3"]);
    place.controller(&["10.0.0.1"], "False");
    assert_eq!(place.outcome(through), None, "the slices lag behind");
    place.controller(&["10.0.0.1", "10.1.0.1"], "True");
    assert_eq!(place.outcome(through), None, "both at once while it moves");
    place.controller(&["10.1.0.1"], "True");
    assert_eq!(place.outcome(through), Some(&OrderOutcome::Done));
}

#[test]
fn must_go_on_deciding_while_knatives_webhook_is_away() {
    let mut place = serving();
    place.is_webhook_away = true;
    let direct = place.route(Routing::Direct);
    assert!(matches!(place.outcome(direct), Some(OrderOutcome::Retrying(_))), "{:?}", place.outcome(direct));
    place.decide(Some(2), 3);
    place.scale(1, 2);
    assert_eq!(place.replicas, 2);
    place.pass(2);
    assert_eq!(place.status(), "True 2 1", "the status goes on");
    place.is_webhook_away = false;
    place.pass(20);
    assert_eq!(place.written().last().map(String::as_str), Some("service Serve 3"));
}

#[test]
fn must_never_treat_the_vanished_pod_autoscaler_as_a_wish_for_zero() {
    let mut place = serving();
    place.facts.clear();
    place.show(News::Knative(KnativeNews::PodAutoscaler(Change::Gone(key("hello-00001")))));
    place.settle();
    assert!(
        place
            .facts
            .iter()
            .any(|fact| matches!(fact, PlatformFact::RevisionRemoved(name) if *name == revision())),
        "its requests are refused: {:?}",
        place.facts
    );
    let route = place.route(Routing::Direct);
    assert_eq!(place.outcome(route), Some(&OrderOutcome::Gone));
    place.pass(30);
    assert_eq!((place.written(), place.replicas), (Vec::<String>::new(), 1), "its pods end by themselves");
}

#[test]
fn must_take_an_unknown_key_for_a_warning_and_read_the_rest() {
    let mut place = serving();
    place.facts.clear();
    let data = [("vendor-key", "x"), ("stable-window", "30s")];
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let key = ObjectKey { namespace: "knative-serving".to_owned(), name: "config-autoscaler".to_owned() };
    place.show(News::Config(Change::Put(key, data)));
    place.autoscaler["metadata"]["annotations"]["autoscaling.knative.dev/vendor"] = json!("x");
    place.show_autoscaler();
    place.settle();
    let config = place.facts.iter().find_map(|fact| {
        let PlatformFact::ConfigChanged(config) = fact else { return None };
        Some(config.stable_window)
    });
    assert_eq!(config, Some(std::time::Duration::from_secs(30)));
    let problems = place.facts.iter().filter_map(|fact| {
        let PlatformFact::ProblemsChanged { problems, .. } = fact else { return None };
        Some(problems.join(" "))
    });
    let problems = problems.collect::<Vec<_>>().join(" ");
    assert!(problems.contains("vendor-key") && problems.contains("knative.dev/vendor"), "{problems}");
    let is_removed = place.facts.iter().any(|fact| matches!(fact, PlatformFact::RevisionRemoved(_)));
    assert!(!is_removed, "no annotation makes a revision unreadable");
}

#[test]
fn a_restart_finds_the_route_and_goes_on_from_the_status() {
    let before = serving();
    let mut place = Place::new();
    (place.autoscaler, place.service) = (before.autoscaler.clone(), before.service.clone());
    place.pod("hello-00001-deployment-a", "10.0.0.1", "True");
    place.show_service();
    place.apply(1);
    let place = place.listed();
    let found = place.facts.iter().find_map(|fact| {
        let PlatformFact::RouteFound { route, .. } = fact else { return None };
        Some(route.routing)
    });
    assert_eq!(found, Some(Routing::ThroughActivator));
    let revision = place.facts.iter().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some((facts.origin, facts.wanted))
    });
    assert_eq!(revision, Some((RevisionOrigin::Found, PodCount::ONE)));
}

#[test]
fn pods_have_no_link_and_their_load_is_asked_for() {
    let place = serving();
    let pods = place.facts.iter().rev().find_map(|fact| {
        let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
        pods.first().cloned()
    });
    let pod = pods.expect("there is a pod");
    let link = pod.link.expect("its load is asked for");
    assert_eq!((link.socket.port(), link.channel), (9090, vocabulary::LinkChannel::Scraped));
    assert_eq!(pod.platform_ready, Some(true), "readiness is Kubernetes' word alone");
    let activators = place.facts.iter().find_map(|fact| {
        let PlatformFact::ActivatorsChanged(activators) = fact else { return None };
        activators.first().cloned()
    });
    let activator = activators.expect("there is an activator");
    assert_eq!(activator.link.channel, vocabulary::LinkChannel::Pushed);
}

/// What was decided before says nothing of what another owner has written since.
#[test]
fn a_bucket_that_comes_back_leaves_the_path_as_it_is_until_something_is_decided() {
    let mut place = serving();
    place.second += 60;
    place.settle();
    let service = place.service.as_mut().expect("there is a service");
    service["spec"]["mode"] = json!("Serve");
    place.controller(&["10.0.0.1"], "False");
    place.pass(20);
    assert_eq!(place.written(), Vec::<String>::new(), "the Lease ran out, and was taken again");
    place.decide(Some(1), 3);
    place.route(Routing::ThroughActivator);
    assert_eq!(place.written(), ["service Proxy 3"]);
}
