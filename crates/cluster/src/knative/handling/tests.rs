//! The status row by row, and over the life of a revision (contract §1.2, §2.2, §2.3).

use serde_json::json;

use super::*;
use crate::knative::serverless::tests::{carried_out, service};

const DEADLINE: Duration = Duration::from_secs(600);

fn at(second: i64) -> WallTime {
    WallTime::from_second(1_800_000_000 + second).expect("a time")
}

fn handling(service: Option<&ServerlessRecord>) -> HandledRevision<'_> {
    HandledRevision {
        generation: 1,
        service,
        want: None,
        ready: PodCount::ZERO,
        min: PodCount::ZERO,
        initial: PodCount::ONE,
        is_reachable: true,
        progress_deadline: DEADLINE,
    }
}

/// A condition as `STATUS reason`.
fn said(status: &AutoscalerStatus, kind: ConditionKind) -> String {
    let words = status.condition(kind).words;
    format!("{} {}", words.status, words.reason).trim().to_owned()
}

fn ready_of(status: &AutoscalerStatus) -> String {
    said(status, ConditionKind::Ready)
}

fn serving() -> ServerlessRecord {
    service(&json!({"mode": "Proxy", "numActivators": 2}), &carried_out())
}

fn pods(count: u32) -> PodCount {
    PodCount::new(count)
}

/// A revision that became ready at second 5 with one pod.
fn ready_revision(service: &ServerlessRecord) -> AutoscalerStatus {
    let state = HandledRevision { want: Some(pods(1)), ready: pods(1), ..handling(Some(service)) };
    state.status(&AutoscalerStatus::default(), at(5))
}

#[test]
fn the_first_status_says_that_there_is_no_private_service_and_waits() {
    let status = handling(None).status(&AutoscalerStatus::default(), at(0));
    let sks = status.condition(ConditionKind::ServerlessServiceReady).words;
    assert_eq!(sks, ConditionWords::unknown("NotReady", "No Private Service Name"));
    assert_eq!(said(&status, ConditionKind::Active), "Unknown Queued", "want -1");
    assert_eq!(said(&status, ConditionKind::ScaleTargetInitialized), "Unknown");
    assert_eq!(ready_of(&status), "Unknown Queued");
    assert_eq!((status.desired, status.actual, status.observed_generation), (Some(-1), Some(pods(0)), 1));
}

#[test]
fn a_revision_is_ready_in_one_write_with_its_names_and_its_counts() {
    let service = serving();
    let first = handling(None).status(&AutoscalerStatus::default(), at(0));
    let state = HandledRevision { want: Some(pods(1)), ready: pods(1), ..handling(Some(&service)) };
    let status = state.status(&first, at(4));
    for kind in ConditionKind::ALL {
        assert_eq!(said(&status, kind), "True");
        assert_eq!(status.condition(kind).since, Some(at(4)), "all that changed in one write share a time");
    }
    assert_eq!(
        (status.service_name.as_str(), status.metrics_service_name.as_str()),
        ("hello-00001", "hello-00001-private")
    );
    assert_eq!((status.desired, status.actual), (Some(1), Some(pods(1))), "TestMinScale wants both at once");
    assert_eq!(state.status(&status, at(60)), status, "what changes nothing moves no time");
}

#[test]
fn an_initialized_revision_stays_so_and_min_scale_alone_counts_from_then_on() {
    let service = serving();
    let status = ready_revision(&service);
    let short =
        HandledRevision { want: Some(pods(3)), ready: pods(1), min: pods(3), ..handling(Some(&service)) };
    let status = short.status(&status, at(20));
    assert_eq!(said(&status, ConditionKind::Active), "Unknown Queued");
    assert_eq!(said(&status, ConditionKind::ScaleTargetInitialized), "True", "it never goes back");
    let unreachable = HandledRevision { is_reachable: false, ..short };
    assert_eq!(
        said(&unreachable.status(&status, at(21)), ConditionKind::Active),
        "True",
        "M16: no min-scale"
    );
}

#[test]
fn the_initial_scale_has_to_be_reached_once() {
    let service = serving();
    let with = |ready| HandledRevision {
        want: Some(pods(20)),
        ready: pods(ready),
        min: pods(11),
        initial: pods(20),
        ..handling(Some(&service))
    };
    let few = with(11).status(&AutoscalerStatus::default(), at(1));
    assert_eq!(said(&few, ConditionKind::ScaleTargetInitialized), "Unknown", "M17");
    let all = with(20).status(&few, at(2));
    assert_eq!(said(&all, ConditionKind::ScaleTargetInitialized), "True", "M17");
    assert_eq!(said(&with(11).status(&all, at(3)), ConditionKind::Active), "True");
}

#[test]
fn a_scaled_to_zero_start_gets_its_service_name_and_is_initialized_in_one_write() {
    let service = serving();
    let mut without_name = service.clone();
    without_name.service_name.clear();
    let zero = |service| HandledRevision { initial: PodCount::ZERO, ..handling(Some(service)) };
    let status = zero(&without_name).status(&AutoscalerStatus::default(), at(0));
    assert_eq!(said(&status, ConditionKind::ScaleTargetInitialized), "Unknown", "M18: the name is missing");
    let status = zero(&service).status(&status, at(1));
    assert_eq!(said(&status, ConditionKind::ScaleTargetInitialized), "True", "M18");
    assert_eq!(
        (ready_of(&status).as_str(), status.service_name.as_str()),
        ("False NoTraffic", "hello-00001")
    );
}

/// The one moment that would fail a revision for good (`ProgressDeadlineExceeded`).
#[test]
fn ready_is_never_false_while_a_first_start_still_has_time() {
    let service = serving();
    let mut status = AutoscalerStatus::default();
    for second in 0..=630 {
        for want in [None, Some(0), Some(1)] {
            let state = HandledRevision { want: want.map(PodCount::new), ..handling(Some(&service)) };
            status = state.status(&status, at(second));
            assert!(ready_of(&status).starts_with("Unknown"), "{second} s, want {want:?}: {status:?}");
        }
    }
    let state = HandledRevision { want: Some(PodCount::ZERO), ..handling(Some(&service)) };
    let status = state.status(&status, at(631));
    assert_eq!(ready_of(&status), "False TimedOut", "the progress deadline and 30 s are over");
    assert_eq!(status.desired, Some(0));
}

#[test]
fn idle_and_wake_are_written_as_the_table_says() {
    let service = serving();
    let status = ready_revision(&service);
    let idle = HandledRevision { want: Some(PodCount::ZERO), ready: pods(1), ..handling(Some(&service)) };
    let idle = idle.status(&status, at(70));
    assert_eq!((ready_of(&idle).as_str(), idle.desired), ("False NoTraffic", Some(0)));
    assert_eq!(idle.condition(ConditionKind::Active).since, Some(at(70)));
    let gone =
        HandledRevision { want: Some(PodCount::ZERO), ..handling(Some(&service)) }.status(&idle, at(100));
    assert_eq!(gone.condition(ConditionKind::Active).since, Some(at(70)), "only the counts are news");
    let wakes = HandledRevision { want: Some(pods(1)), ..handling(Some(&service)) }.status(&gone, at(200));
    assert_eq!(ready_of(&wakes), "Unknown Queued");
    let awake = HandledRevision { want: Some(pods(1)), ready: pods(1), ..handling(Some(&service)) };
    assert_eq!(ready_of(&awake.status(&wakes, at(201))), "True");
}

#[test]
fn a_restart_that_knows_nothing_hides_no_count_and_touches_no_condition() {
    let service = serving();
    let status = ready_revision(&service);
    let unknown = HandledRevision { ready: pods(1), ..handling(Some(&service)) };
    assert_eq!(unknown.status(&status, at(50)), status, "M9: active, and at its pods");
    let idle =
        HandledRevision { want: Some(PodCount::ZERO), ..handling(Some(&service)) }.status(&status, at(60));
    assert_eq!(handling(Some(&service)).status(&idle, at(90)), idle, "at rest");
}

#[test]
fn a_lost_service_keeps_the_names_and_the_wanted_count() {
    let service = serving();
    let status = handling(None).status(&ready_revision(&service), at(30));
    assert_eq!((status.service_name.as_str(), status.desired), ("hello-00001", Some(1)), "M19");
    assert_eq!(said(&status, ConditionKind::ServerlessServiceReady), "Unknown NotReady");
    assert_eq!(said(&status, ConditionKind::ScaleTargetInitialized), "True");
}

#[test]
fn ready_says_the_reason_that_is_newest() {
    let service = serving();
    let status = ready_revision(&service);
    let mut unready = service.clone();
    unready.private_service_name.clear();
    // SKSReady is Unknown from 30 on, and Active False from 40 on: False comes before Unknown.
    let status = HandledRevision { want: Some(pods(1)), ready: pods(1), ..handling(Some(&unready)) }
        .status(&status, at(30));
    assert_eq!(ready_of(&status), "Unknown Queued", "both changed at once, and Active counts first");
    let idle = HandledRevision { want: Some(PodCount::ZERO), ..handling(Some(&service)) };
    assert_eq!(ready_of(&idle.status(&status, at(40))), "False TimedOut");
}

#[test]
fn a_service_of_another_owner_is_named() {
    let service = serving();
    let status = ready_revision(&service);
    let foreign = not_owned(&status, 2, "hello-00001", at(30));
    assert_eq!((ready_of(&foreign).as_str(), foreign.observed_generation), ("False NotOwned", 2));
    let message = foreign.condition(ConditionKind::Active).words.message;
    assert_eq!(message, "There is an existing ServerlessService \"hello-00001\" that we do not own.");
}

/// As Knative's autoscaler leaves it where its handling of a new generation failed.
#[test]
fn a_generation_that_knative_failed_to_handle_is_handled() {
    let service = serving();
    let mut left = AutoscalerStatus { observed_generation: 2, ..ready_revision(&service) };
    let words = ConditionWords::unknown("NewObservedGenFailure", "unsuccessfully observed a new generation");
    put(&mut left, [(ConditionKind::Ready, words)], at(30));
    let state =
        HandledRevision { generation: 2, want: Some(pods(1)), ready: pods(1), ..handling(Some(&service)) };
    assert_eq!(ready_of(&state.status(&left, at(31))), "True");
    let foreign = not_owned(&left, 2, "hello-00001", at(31));
    assert_eq!(ready_of(&foreign), "False NotOwned");
}
