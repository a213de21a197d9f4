mod laws;

use std::time::Duration;

use vocabulary::{PodAssignment, PodExits, PodName, PresentCount, RevisionName, Slice};

use super::*;

const START: Timestamp = Timestamp::from_secs(60);

fn assignment(counter: u64, pods: &[(&str, u32)]) -> Assignment {
    let pod = |&(name, slots): &(&str, u32)| PodAssignment {
        pod: PodName::new(name),
        address: ([127, 0, 0, 1], 8000).into(),
        exits: PodExits::default(),
        state: PodState::Ready,
        slots,
        slice: Slice::Undivided,
        is_plain: false,
    };
    Assignment {
        hosts: vec!["hello".to_owned()],
        container_concurrency: 1,
        pods: pods.iter().map(pod).collect(),
        ..Assignment::of_nothing(
            RevisionName::parse("default/service/hello").expect("a name"),
            Version { epoch: vocabulary::Epoch(1), counter },
        )
    }
}

fn revision(pods: &[(&str, u32)]) -> ActivatorRevision {
    let seed = RevisionSeed { depth: 3, seed: 7, is_leaving: false };
    ActivatorRevision::new(&Arc::new(assignment(1, pods)), seed, START)
}

/// What one request and its commands come to.
fn arrive(revision: &mut ActivatorRevision, now: Timestamp) -> (Ticket, Vec<RevisionCommand>) {
    let ticket = revision.draw_ticket();
    revision.handle(RequestEvent::Arrived { ticket }, now);
    (ticket, commands(revision))
}

fn commands(revision: &mut ActivatorRevision) -> Vec<RevisionCommand> {
    std::iter::from_fn(|| revision.next_command())
        .filter(|command| *command != RevisionCommand::TakeNews)
        .collect()
}

fn granted(commands: &[RevisionCommand]) -> Vec<Dispatch> {
    let grant = |command: &RevisionCommand| match command {
        RevisionCommand::Grant { dispatch } => Some(*dispatch),
        RevisionCommand::Refuse { .. } | RevisionCommand::Wait { .. } | RevisionCommand::TakeNews => None,
    };
    commands.iter().filter_map(grant).collect()
}

fn refused(ticket: Ticket, refusal: RequestRefusal) -> RevisionCommand {
    RevisionCommand::Refuse { ticket, refusal }
}

#[test]
fn a_free_slot_is_granted_at_once_and_the_next_request_waits_for_it() {
    let mut revision = revision(&[("a", 1)]);
    let (first, commands_of_first) = arrive(&mut revision, START);
    let dispatch = granted(&commands_of_first)[0];
    assert_eq!((dispatch.ticket, commands_of_first.len()), (first, 1), "no place is asked for");
    let (second, waits) = arrive(&mut revision, START);
    let (third, _) = arrive(&mut revision, START);
    assert_eq!(waits, [RevisionCommand::Wait { ticket: second }]);
    revision.handle(RequestEvent::Ended { dispatch }, START);
    let next = granted(&commands(&mut revision))[0];
    assert_eq!(next.ticket, second, "first come, first served");
    revision.handle(RequestEvent::NotStarted { dispatch: next }, START);
    assert_eq!(revision.next_deadline(), Some(START + Duration::from_millis(10)), "the pod rests");
    commands(&mut revision);
    revision.advance(START + Duration::from_millis(10));
    let again = granted(&commands(&mut revision))[0];
    assert_eq!(again.ticket, second, "ahead of the one that came later: {third:?}");
    assert_eq!(revision.present(), PresentCount { in_flight: 2, waiting: 1 });
}

#[test]
fn each_cause_of_a_refusal_has_its_name_and_leaves_no_load() {
    let mut full = revision(&[]);
    let tickets: Vec<Ticket> = (0..3).map(|_| arrive(&mut full, START).0).collect();
    let (ticket, commands_of_one) = arrive(&mut full, START);
    assert_eq!(commands_of_one, [refused(ticket, RequestRefusal::RevisionQueueFull { limit: 3 })]);
    full.handle(RequestEvent::PlaceRefused { ticket: tickets[2] }, START);
    assert_eq!(commands(&mut full), [refused(tickets[2], RequestRefusal::ActivatorQueueFull)]);
    let hold = Assignment { hold: Some("paused".to_owned()), ..assignment(2, &[]) };
    full.assign(&Arc::new(hold), START);
    let expected = [refused(tickets[0], RequestRefusal::Held), refused(tickets[1], RequestRefusal::Held)];
    assert_eq!(commands(&mut full), expected);
    assert_eq!(full.present(), PresentCount::default());
    let (ticket, commands_of_one) = arrive(&mut full, START);
    assert_eq!(commands_of_one, [refused(ticket, RequestRefusal::Held)]);
    let closed = full.close_seconds(1, START, START + Duration::from_secs(1)).expect("requests came");
    assert_eq!(closed.load, closed.load.with_refused_requests(), "it keeps a pod");

    let mut gone = revision(&[]);
    let (ticket, _) = arrive(&mut gone, START);
    gone.remove(START);
    assert_eq!(commands(&mut gone), [refused(ticket, RequestRefusal::Gone)]);
    assert_eq!(gone.pick_unmeasured(START), Err(RequestRefusal::Gone));
}

#[test]
fn a_request_that_gives_up_in_the_instant_of_its_grant_is_counted_once() {
    let mut revision = revision(&[("a", 1)]);
    let (_, first) = arrive(&mut revision, START);
    let (ticket, _) = arrive(&mut revision, START);
    revision.handle(RequestEvent::Ended { dispatch: granted(&first)[0] }, START);
    revision.handle(RequestEvent::GaveUp { ticket }, START);
    assert_eq!(revision.present().in_flight, 1, "it was granted a slot, which it has to give back");
    let dispatch = granted(&commands(&mut revision))[0];
    revision.handle(RequestEvent::Ended { dispatch }, START);
    assert_eq!(revision.present().in_flight, 0);
    let (ticket, _) = arrive(&mut revision, START);
    let (waiting, _) = arrive(&mut revision, START);
    for ticket in [waiting, waiting, ticket] {
        revision.handle(RequestEvent::GaveUp { ticket }, START);
    }
    assert_eq!(revision.present(), PresentCount { in_flight: 1, waiting: 0 });
}

#[test]
fn a_request_that_rests_is_load_and_holds_no_slot() {
    let mut revision = revision(&[("a", 1), ("b", 1)]);
    let (_, first) = arrive(&mut revision, START);
    let dispatch = granted(&first)[0];
    revision.handle(RequestEvent::RestBegan { dispatch }, START);
    assert_eq!((revision.held(), revision.present().in_flight), (0, 1));
    let ticket = revision.draw_ticket();
    revision.handle(RequestEvent::RestEnded { ticket, arrived: START }, START);
    let dispatch = granted(&commands(&mut revision))[0];
    assert_eq!(revision.present(), PresentCount { in_flight: 1, waiting: 0 });
    revision.handle(RequestEvent::RestBegan { dispatch }, START);
    revision.handle(RequestEvent::RestGivenUp, START);
    assert_eq!(revision.present().in_flight, 0);
}

#[test]
fn the_first_second_of_an_idle_revision_is_averaged_over_all_of_it() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    let (ticket, _) = arrive(&mut revision, at(750));
    let closed = revision.close_seconds(1, START, at(1000)).expect("something waits");
    assert_eq!((closed.load.concurrency.value(), closed.load.request_rate.value()), (0.25, 1.0));
    assert_eq!((closed.load.queued, closed.oldest_wait), (1, Duration::from_millis(250)));
    let closed = revision.close_seconds(1, at(1000), at(2010)).expect("something waits");
    assert_eq!(closed.load.concurrency.value(), 1.0);
    revision.handle(RequestEvent::GaveUp { ticket }, at(2010));
    assert_eq!(revision.close_seconds(1, at(2000), at(3000)), None, "idle from now on");
    arrive(&mut revision, at(7500));
    let closed = revision.close_seconds(1, at(7000), at(8000)).expect("something waits");
    assert_eq!(closed.load.concurrency.value(), 0.5);
}

#[test]
fn growth_is_reported_at_once_and_then_every_ten_milliseconds() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    arrive(&mut revision, START);
    let news = revision.take_news();
    assert_eq!(news, RevisionNews { is_active: true, is_report_due: true, is_emptied: false });
    assert_eq!(revision.take_early_report(START).0, PresentCount { in_flight: 1, waiting: 1 });
    arrive(&mut revision, at(3));
    assert_eq!((revision.take_news(), revision.next_deadline()), (RevisionNews::default(), Some(at(10))));
    revision.advance(at(10));
    assert!(revision.take_news().is_report_due);
    revision.take_early_report(at(10));
    let (ticket, _) = arrive(&mut revision, at(30));
    revision.take_news();
    revision.take_early_report(at(30));
    revision.handle(RequestEvent::GaveUp { ticket }, at(50));
    assert_eq!(revision.take_news(), RevisionNews::default(), "less is no news");
    revision.leave();
    let (ticket, _) = arrive(&mut revision, at(60));
    revision.handle(RequestEvent::GaveUp { ticket }, at(60));
    assert!(revision.take_news().is_report_due, "unless another activator takes over");
}

#[test]
fn a_fall_is_reported_once_it_has_lasted_for_100_milliseconds() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    let (first, _) = arrive(&mut revision, START);
    let (second, _) = arrive(&mut revision, START);
    revision.take_news();
    revision.take_early_report(START);
    revision.handle(RequestEvent::GaveUp { ticket: first }, at(20));
    assert_eq!((revision.take_news(), revision.next_deadline()), (RevisionNews::default(), Some(at(120))));
    arrive(&mut revision, at(119));
    assert_eq!(revision.next_deadline(), None, "another request has taken the place of the first");
    revision.handle(RequestEvent::GaveUp { ticket: second }, at(200));
    revision.advance(at(299));
    assert_eq!(revision.take_news(), RevisionNews::default());
    revision.advance(at(300));
    assert!(revision.take_news().is_report_due);
    assert_eq!(revision.take_early_report(at(300)).0.in_flight, 1);
    assert_eq!(revision.next_deadline(), None, "one request is held, and nothing more is to be said");
}

/// The load of the second does not say the count at its end.
#[test]
fn a_fall_just_before_the_end_of_a_second_is_reported_though_the_count_comes_back_to_that_of_the_end() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    let tickets: Vec<Ticket> = (0..3).map(|_| arrive(&mut revision, START).0).collect();
    revision.take_news();
    revision.take_early_report(START);
    for &ticket in &tickets[..2] {
        revision.handle(RequestEvent::GaveUp { ticket }, at(950));
    }
    revision.close_seconds(1, START, at(1000));
    revision.handle(RequestEvent::GaveUp { ticket: tickets[2] }, at(1010));
    arrive(&mut revision, at(1020));
    assert_eq!((revision.take_news(), revision.next_deadline()), (RevisionNews::default(), Some(at(1050))));
    arrive(&mut revision, at(1030));
    assert!(revision.take_news().is_report_due, "growth does not wait for that");
    assert_eq!(revision.take_early_report(at(1030)).0.in_flight, 2);
    assert_eq!(revision.next_deadline(), None);
}

#[test]
fn a_report_that_is_under_way_is_not_due_again_until_it_is_made_or_its_second_is_over() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    arrive(&mut revision, START);
    assert!(revision.take_news().is_report_due);
    arrive(&mut revision, at(50));
    revision.advance(at(60));
    assert_eq!((revision.take_news(), revision.next_deadline()), (RevisionNews::default(), None));
    revision.close_seconds(1, START, at(1000));
    assert_eq!(revision.take_news(), RevisionNews::default());
    arrive(&mut revision, at(1010));
    assert!(revision.take_news().is_report_due, "the link may have been lost");
    revision.take_early_report(at(1020));
    assert_eq!(revision.next_deadline(), None);
}

#[test]
fn news_that_time_brings_are_taken_with_it_and_no_command_asks_for_them() {
    let mut revision = revision(&[]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    arrive(&mut revision, START);
    revision.take_news();
    revision.take_early_report(START);
    arrive(&mut revision, at(3));
    assert!(revision.advance_and_take_news(at(10)).is_report_due);
    assert_eq!((revision.next_command(), revision.take_news()), (None, RevisionNews::default()));
}

#[test]
fn a_pod_that_rests_is_tried_sooner_once_no_better_pod_is_left() {
    let mut revision = revision(&[("a", 1), ("b", 1)]);
    let at = |milliseconds| START + Duration::from_millis(milliseconds);
    let (_, first) = arrive(&mut revision, START);
    arrive(&mut revision, START);
    revision.handle(RequestEvent::NotStarted { dispatch: granted(&first)[0] }, START);
    let pick = revision.pick_direct(START).expect("one pod is well");
    commands(&mut revision);
    assert_eq!(revision.next_deadline(), Some(at(100)), "the other pod is left alone");
    revision.handle(RequestEvent::DirectNotStarted { pick }, START);
    assert_eq!(revision.next_deadline(), Some(at(10)));
    revision.advance(at(10));
    assert_eq!(granted(&commands(&mut revision)).len(), 1);
}

#[test]
fn a_retired_revision_says_whenever_it_is_empty_and_refuses_only_once_forgotten() {
    let mut revision = revision(&[("a", 1)]);
    let (_, first) = arrive(&mut revision, START);
    revision.retire();
    revision.may_be_forgotten(Version { epoch: vocabulary::Epoch(1), counter: 2 });
    assert_eq!(revision.remainder(), RetiredRemainder::Something);
    revision.take_news();
    let (second, _) = arrive(&mut revision, START);
    revision.handle(RequestEvent::Ended { dispatch: granted(&first)[0] }, START);
    let dispatch = granted(&commands(&mut revision))[0];
    assert_eq!((dispatch.ticket, revision.take_news().is_emptied), (second, false));
    revision.handle(RequestEvent::Ended { dispatch }, START);
    assert!(revision.take_news().is_emptied);
    revision.assign(&Arc::new(assignment(3, &[("a", 1)])), START);
    assert_eq!(revision.remainder(), RetiredRemainder::Something, "a newer assignment takes that back");
    revision.retire();
    assert_eq!(revision.remainder(), RetiredRemainder::Nothing);
    let forget = Version { epoch: vocabulary::Epoch(1), counter: 4 };
    revision.may_be_forgotten(forget);
    assert_eq!(revision.remainder(), RetiredRemainder::Forgotten(forget));
    let (ticket, commands_of_one) = arrive(&mut revision, START);
    assert_eq!(commands_of_one, [refused(ticket, RequestRefusal::Gone)]);
}
