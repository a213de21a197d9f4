//! What is written over the life of a revision (contract §1.2, §3).

use serde_json::{Value, json};

use super::*;
use crate::knative::condition::ConditionKind;
use crate::knative::pod_autoscaler::tests::{autoscaler, object, read};
use crate::knative::serverless::tests::{carried_out, service};

fn at(second: u64) -> Moment {
    let wall: WallTime = "2026-11-22T10:00:00Z".parse().expect("a time");
    Moment { wall: wall + Duration::from_secs(second), axis: Timestamp::from_secs(second) }
}

fn figures(want: Option<u32>, ready: u32) -> RevisionFigures {
    RevisionFigures {
        want: want.map(PodCount::new),
        ready: PodCount::new(ready),
        min: PodCount::ZERO,
        initial: PodCount::ONE,
        progress_deadline: Duration::from_secs(600),
    }
}

fn route(routing: Routing, activators: u32) -> RouteOrder {
    RouteOrder { routing, activators }
}

fn spec(mode: &str, activators: u32) -> Value {
    json!({
        "mode": mode, "numActivators": activators, "protocolType": "http1",
        "objectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
    })
}

/// A revision whose `ServerlessService` is carried out, and whose status is written.
fn standing(want: Option<u32>, ready: u32, mode: &str) -> RevisionDesk {
    let mut desk = RevisionDesk::new(autoscaler(&json!({})));
    desk.put_service(Some(service(&spec(mode, 2), &carried_out())));
    desk.put_figures(figures(want, ready));
    let write = desk.next_write(at(0));
    let Some(DeskWrite::Status(write)) = write else { panic!("no status: {write:?}") };
    let mut shown = autoscaler(&json!({}));
    (shown.status, shown.resource_version) = (write.status, "8".to_owned());
    desk.status_written();
    desk.put_autoscaler(shown);
    desk
}

fn service_spec(write: Option<DeskWrite>) -> Value {
    match write {
        Some(DeskWrite::Service(ServerlessWrite::Create(object))) => object["spec"].clone(),
        Some(DeskWrite::Service(ServerlessWrite::Replace { spec, .. })) => spec,
        other => panic!("no service is written: {other:?}"),
    }
}

fn condition(write: Option<DeskWrite>, kind: ConditionKind) -> String {
    let Some(DeskWrite::Status(write)) = write else { panic!("no status is written: {write:?}") };
    let words = write.status.condition(kind).words;
    format!("{} {}", words.status, words.reason).trim().to_owned()
}

#[test]
fn a_new_revision_gets_its_service_once_and_then_its_status() {
    let mut desk = RevisionDesk::new(autoscaler(&json!({})));
    assert_eq!(service_spec(desk.next_write(at(0))), spec("Proxy", 2));
    desk.put_figures(figures(None, 0));
    let sks = condition(desk.next_write(at(0)), ConditionKind::ServerlessServiceReady);
    assert_eq!(sks, "Unknown NotReady", "the status waits for no answer of the service");
    desk.service_written();
    assert_eq!(desk.next_write(at(1)), None, "the watch has not shown the service yet");

    desk.put_service(Some(service(&spec("Proxy", 2), &json!({}))));
    desk.put_route(route(Routing::Direct, 5));
    assert_eq!(desk.next_write(at(2)), None, "the controller has not begun with it");
    desk.put_service(None);
    assert_eq!(service_spec(desk.next_write(at(3))), spec("Proxy", 2), "it was deleted");
}

#[test]
fn a_route_order_becomes_the_spec() {
    let mut desk = standing(Some(1), 1, "Proxy");
    assert_eq!(desk.next_write(at(10)), None, "no route was decided: the spec that is written stays");
    desk.put_route(route(Routing::Direct, 3));
    assert_eq!(service_spec(desk.next_write(at(10))), spec("Serve", 3));
    desk.service_written();
    let mut served = service(&spec("Serve", 3), &carried_out());
    served.resource_version = "42".to_owned();
    desk.put_service(Some(served));
    desk.put_figures(figures(Some(0), 1));
    let idle = service_spec(desk.next_write(at(90)));
    assert_eq!(idle, spec("Proxy", 3), "no pod is wanted, so activators have to be in the path");
}

#[test]
fn an_answer_that_comes_after_the_watch_holds_nothing_up() {
    let mut desk = standing(Some(1), 1, "Proxy");
    desk.put_route(route(Routing::Direct, 3));
    assert!(desk.next_write(at(10)).is_some());
    let mut shown = service(&spec("Serve", 3), &carried_out());
    shown.resource_version = "42".to_owned();
    desk.put_service(Some(shown));
    desk.service_written();
    desk.put_route(route(Routing::Direct, 4));
    assert_eq!(service_spec(desk.next_write(at(11))), spec("Serve", 4));
}

#[test]
fn a_restart_that_knows_nothing_leaves_the_path_as_it_is() {
    let mut desk = standing(Some(1), 1, "Serve");
    desk.put_figures(figures(None, 1));
    desk.put_route(route(Routing::Direct, 2));
    assert_eq!(desk.next_write(at(10)), None);
    desk.put_route(route(Routing::ThroughActivator, 2));
    assert_eq!(service_spec(desk.next_write(at(11))), spec("Proxy", 2));
}

#[test]
fn a_service_that_cannot_be_written_is_tried_again_and_the_status_goes_on() {
    let mut desk = standing(Some(1), 1, "Proxy");
    desk.put_route(route(Routing::Direct, 2));
    assert!(desk.next_write(at(10)).is_some());
    // The API server says so while Knative's webhook is away.
    desk.service_failed(None, at(10).axis);
    desk.put_figures(figures(Some(0), 1));
    assert_eq!(condition(desk.next_write(at(10)), ConditionKind::Active), "False NoTraffic");
    desk.put_figures(figures(Some(1), 1));
    assert_eq!(service_spec(desk.next_write(at(11))), spec("Serve", 2));
}

#[test]
fn nothing_is_written_of_another_controllers_revision_or_over_its_service() {
    let mut others = object();
    others["metadata"]["annotations"]["autoscaling.knative.dev/class"] = json!("hpa.autoscaling.knative.dev");
    let mut desk = RevisionDesk::new(read(others));
    desk.put_figures(figures(Some(1), 1));
    assert_eq!((desk.next_write(at(0)), desk.next_deadline(at(0))), (None, None));

    let mut desk = RevisionDesk::new(autoscaler(&json!({})));
    let mut foreign = service(&spec("Proxy", 9), &carried_out());
    foreign.controller = "another".to_owned();
    desk.put_service(Some(foreign));
    desk.put_figures(figures(Some(1), 1));
    assert_eq!(condition(desk.next_write(at(0)), ConditionKind::Ready), "False NotOwned");
    assert_eq!(desk.next_write(at(1)), None);
}

#[test]
fn another_object_under_the_name_begins_anew_and_finds_a_foreign_service() {
    let mut desk = standing(Some(1), 1, "Proxy");
    let mut other = object();
    other["metadata"]["uid"] = json!("pa2");
    desk.put_autoscaler(read(other));
    assert_eq!(condition(desk.next_write(at(1)), ConditionKind::Active), "False NotOwned");
}

#[test]
fn counts_wait_for_their_second_and_the_deadline_says_so() {
    let mut desk = standing(Some(2), 1, "Proxy");
    desk.put_figures(figures(Some(3), 2));
    assert_eq!(desk.next_write(at(0)), None);
    assert_eq!(desk.next_deadline(at(0)), Some(at(1).axis));
    assert!(desk.next_write(at(1)).is_some());
}

#[test]
fn a_start_of_which_zero_is_wanted_times_out_without_any_event() {
    let mut desk = standing(Some(1), 0, "Proxy");
    desk.put_figures(figures(Some(0), 0));
    assert_eq!(desk.next_write(at(10)), None, "the start has time");
    let limit = at(630).axis + Duration::from_millis(1);
    assert_eq!(desk.next_deadline(at(10)), Some(limit), "the progress deadline and 30 s");
    assert_eq!(desk.next_deadline(at(630)), Some(limit));
    assert_eq!(condition(desk.next_write(at(631)), ConditionKind::Active), "False TimedOut");
}
