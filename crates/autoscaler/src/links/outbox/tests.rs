use vocabulary::{Epoch, Routing};

use super::*;

fn name(text: &str) -> RevisionName {
    RevisionName::new("default", "service", text).unwrap()
}

fn assignment(revision: &str, counter: u64) -> Arc<Assignment> {
    Arc::new(Assignment {
        routing: Routing::Direct,
        ..Assignment::of_nothing(name(revision), Version { epoch: Epoch(1), counter })
    })
}

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_millis(milliseconds)
}

/// An outbox after its first sync, with revision `a` in version 1, sent at 0.
fn synced() -> OrderOutbox {
    let outbox = OrderOutbox::default();
    outbox.sync(Ownership::default(), vec![assignment("a", 1)]);
    assert_eq!(outbox.next(at(0)), everything(&["a"]));
    assert_eq!(outbox.next(at(0)), NextStep::Wait(None));
    outbox
}

fn everything(revisions: &[&str]) -> NextStep {
    let assignments = revisions.iter().map(|revision| assignment(revision, 1)).collect();
    NextStep::Sync(BucketSync { ownership: Ownership::default(), assignments })
}

fn assigned(revision: &str, counter: u64) -> NextStep {
    NextStep::Send(AssignmentSlot::Assigned(assignment(revision, counter)))
}

#[test]
fn nothing_leaves_before_the_sync_and_what_changes_meanwhile_goes_after_it() {
    let outbox = OrderOutbox::default();
    outbox.assign(assignment("b", 1), Urgency::AtOnce, at(0));
    assert_eq!(outbox.next(at(1000)), NextStep::Wait(None), "the sync will say it");
    outbox.sync(Ownership::default(), vec![assignment("a", 1), assignment("b", 1)]);
    outbox.assign(assignment("b", 2), Urgency::AtOnce, at(1000));
    assert_eq!(outbox.next(at(1000)), everything(&["a", "b"]));
    assert_eq!(outbox.next(at(1000)), assigned("b", 2));
    assert_eq!(outbox.next(at(1000)), NextStep::Wait(None), "what the sync said is not said twice");
}

#[test]
fn a_release_leaves_once() {
    let outbox = synced();
    outbox.release([Bucket(2)].into());
    assert_eq!(outbox.next(at(5)), NextStep::Release([Bucket(2)].into()));
    assert_eq!(outbox.next(at(5)), NextStep::Wait(None));
}

#[test]
fn urgent_changes_leave_at_once_and_others_at_most_every_20_ms() {
    let outbox = synced();
    outbox.assign(assignment("a", 2), Urgency::Soon, at(5));
    assert_eq!(outbox.next(at(5)), NextStep::Wait(Some(at(20))));
    outbox.assign(assignment("a", 3), Urgency::Soon, at(10));
    assert_eq!(outbox.next(at(20)), assigned("a", 3), "only the latest counts");
    outbox.assign(assignment("a", 4), Urgency::AtOnce, at(21));
    assert_eq!(outbox.next(at(21)), assigned("a", 4));
    outbox.assign(assignment("a", 5), Urgency::Soon, at(500));
    assert_eq!(outbox.next(at(500)), assigned("a", 5), "after a pause the first change waits for nothing");
    assert_eq!(outbox.next(at(500)), NextStep::Wait(None));
}

#[test]
fn a_change_that_replaces_an_urgent_one_is_as_urgent() {
    let outbox = synced();
    outbox.assign(assignment("a", 2), Urgency::AtOnce, at(5));
    outbox.assign(assignment("a", 3), Urgency::Soon, at(6));
    assert_eq!(outbox.next(at(6)), assigned("a", 3));
}

#[test]
fn a_removal_leaves_once_and_an_assignment_after_it_too() {
    let outbox = synced();
    let version = Version { epoch: Epoch(1), counter: 2 };
    outbox.unassign(&name("a"), version, Unassignment::Forgotten, at(5));
    assert_eq!(
        outbox.next(at(5)),
        NextStep::Send(AssignmentSlot::Unassigned(name("a"), version, Unassignment::Forgotten))
    );
    assert_eq!(outbox.next(at(5)), NextStep::Wait(None));
    outbox.assign(assignment("a", 3), Urgency::AtOnce, at(6));
    assert_eq!(outbox.next(at(6)), assigned("a", 3));
}

#[test]
fn after_a_lost_link_nothing_leaves_but_the_next_sync() {
    let outbox = synced();
    outbox.assign(assignment("b", 2), Urgency::AtOnce, at(5));
    outbox.disconnected();
    assert_eq!(outbox.next(at(1000)), NextStep::Wait(None));
    outbox.assign(assignment("c", 4), Urgency::Soon, at(1000));
    outbox.sync(Ownership::default(), vec![assignment("b", 1)]);
    assert_eq!(outbox.next(at(1000)), everything(&["b"]));
    assert_eq!(outbox.next(at(2000)), NextStep::Wait(None));
}
