//! One revision from its first sight to zero and back, and many at rest (contract §1.2), with a controller
//! that does by a test's word what Knative's does.

use serde_json::json;
use vocabulary::{PodCount, Routing};

use super::*;
use crate::knative::condition::ConditionKind;
use crate::knative::pod_autoscaler::tests::{autoscaler, object, read};
use crate::knative::serverless::ServerlessWrite;
use crate::knative::serverless::tests::{carried_out, service};

/// The revisions, and the objects as the API server has them.
struct World {
    revisions: KnativeRevisions,
    shown: PodAutoscalerRecord,
    version: u64,
    second: u64,
    writes: Vec<String>,
}

impl World {
    fn new() -> Self {
        let shown = autoscaler(&json!({}));
        let mut revisions = KnativeRevisions::default();
        revisions.put_autoscaler(shown.clone());
        Self { revisions, shown, version: 100, second: 0, writes: Vec::new() }
    }

    fn moment(&self) -> Moment {
        let wall: jiff::Timestamp = "2026-11-22T10:00:00Z".parse().expect("a time");
        Moment { wall: wall + Duration::from_secs(self.second), axis: Timestamp::from_secs(self.second) }
    }

    /// Carries out all writes, shows their results, and returns them in words.
    fn settle(&mut self, second: u64) -> Vec<String> {
        self.second = second;
        while let Some((key, write)) = self.revisions.next_write(self.moment(), |_| true) {
            self.carry_out(&key, write);
        }
        std::mem::take(&mut self.writes)
    }

    fn carry_out(&mut self, key: &ObjectKey, write: DeskWrite) {
        let now = self.moment().axis;
        self.version += 1;
        match write {
            DeskWrite::Service(write) => {
                self.revisions.ended(key, WrittenObject::Service, WriteEnd::Done, now);
                let (spec, status) = match write {
                    ServerlessWrite::Create(object) => (object["spec"].clone(), json!({})),
                    ServerlessWrite::Replace { spec, .. } => (spec, carried_out()),
                };
                self.writes.push(format!("service {} {}", spec["mode"], spec["numActivators"]));
                let mut record = service(&spec, &status);
                record.resource_version = self.version.to_string();
                self.revisions.put_service(record);
            }
            DeskWrite::Status(write) => {
                assert_eq!(write.over, self.shown.resource_version, "a status is written over what is shown");
                let words = write.status.condition(ConditionKind::Ready).words;
                self.writes.push(format!("status {} {}", words.status, words.reason).trim().to_owned());
                self.revisions.ended(key, WrittenObject::Status, WriteEnd::Done, now);
                self.shown.status = write.status;
                self.shown.resource_version = self.version.to_string();
                self.revisions.put_autoscaler(self.shown.clone());
            }
        }
    }

    fn figures(&mut self, want: Option<u32>, ready: u32) {
        let figures = RevisionFigures {
            want: want.map(PodCount::new),
            ready: PodCount::new(ready),
            min: PodCount::ZERO,
            initial: PodCount::ONE,
            progress_deadline: Duration::from_secs(600),
        };
        let key = self.shown.key.clone();
        self.revisions.put_figures(&key, figures);
    }

    fn route(&mut self, routing: Routing) {
        let key = self.shown.key.clone();
        self.revisions.put_route(&key, RouteOrder { routing, activators: 3 });
    }
}

/// The spec that the first write makes.
fn first_spec() -> serde_json::Value {
    json!({
        "mode": "Proxy", "numActivators": 2, "protocolType": "http1",
        "objectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
    })
}

#[test]
fn a_revision_goes_from_its_first_sight_to_zero_and_back() {
    let mut world = World::new();
    world.figures(None, 0);
    assert_eq!(world.settle(0), ["service \"Proxy\" 2", "status Unknown Queued"]);

    world.revisions.put_service(service(&first_spec(), &carried_out()));
    world.figures(Some(1), 0);
    world.route(Routing::ThroughActivator);
    assert_eq!(world.settle(2), ["service \"Proxy\" 3", "status Unknown Queued"]);
    world.figures(Some(1), 1);
    assert_eq!(world.settle(5), ["status True"], "a pod is ready");
    world.route(Routing::Direct);
    assert_eq!(world.settle(6), ["service \"Serve\" 3"]);

    world.figures(Some(0), 1);
    assert_eq!(world.settle(70), ["service \"Proxy\" 3", "status False NoTraffic"]);
    world.figures(Some(0), 0);
    assert_eq!(world.settle(101), ["status False NoTraffic"], "the pod has gone: a count alone");
    assert_eq!(world.shown.status.actual, Some(PodCount::ZERO));

    world.figures(Some(1), 0);
    assert_eq!(world.settle(200), ["service \"Serve\" 3", "status Unknown Queued"]);
    world.figures(Some(1), 1);
    assert_eq!(world.settle(201), ["status True"]);
    assert_eq!(world.settle(900), Vec::<String>::new(), "at rest nothing is written");
    assert_eq!(world.revisions.next_deadline(), None);
}

#[test]
fn a_revision_of_another_owner_is_not_written_until_its_bucket_comes() {
    let mut world = World::new();
    world.figures(Some(1), 1);
    assert_eq!(world.revisions.next_write(world.moment(), |_| false), None);
    assert_eq!(world.revisions.next_write(world.moment(), |_| true), None, "nothing has happened to it");
    world.revisions.owned_anew(|_| true);
    assert_eq!(world.settle(1).len(), 2);
}

#[test]
fn a_vanished_autoscaler_is_no_wish_for_zero() {
    let mut world = World::new();
    world.figures(Some(1), 1);
    world.settle(0);
    let key = world.shown.key.clone();
    world.revisions.remove_autoscaler(&key);
    world.figures(Some(0), 1);
    world.revisions.ended(&key, WrittenObject::Status, WriteEnd::Done, Timestamp::from_secs(1));
    assert_eq!(world.settle(10), Vec::<String>::new());
}

#[test]
fn a_service_that_was_there_first_is_taken_as_it_is() {
    let mut revisions = KnativeRevisions::default();
    revisions.put_service(service(&first_spec(), &carried_out()));
    let mut world = World { revisions, ..World::new() };
    world.revisions.put_autoscaler(world.shown.clone());
    world.figures(Some(1), 1);
    assert_eq!(world.settle(0), ["status True"]);
}

#[test]
fn a_thousand_revisions_at_rest_are_not_looked_at() {
    let mut revisions = KnativeRevisions::default();
    for number in 0..1_000 {
        let mut one = object();
        one["metadata"]["name"] = json!(format!("r{number}"));
        revisions.put_autoscaler(read(one));
    }
    let moment = World::new().moment();
    let mut writes = 0;
    while revisions.next_write(moment, |_| true).is_some() {
        writes += 1;
    }
    assert_eq!(writes, 1_000, "each gets its service");
    assert_eq!((revisions.touched.len(), revisions.next_deadline()), (0, None));
}
