//! Laws of `cluster` and `orchestration` together: two autoscalers before a made-up API server, through
//! adoption, routing, scaling, takeover and giving back. Writes meet conflicts, failures and lost answers;
//! watches are late, repeat themselves, and are refused for being too old.

mod replica;
mod server;
mod world;

use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;

use crate::replica::WriteFault;
use crate::server::{Collection, ServiceOwner};
use crate::world::{Step, World};

fn step() -> impl Strategy<Value = Step> {
    let which = || (any::<bool>()).prop_map(usize::from);
    let collection = || select(Collection::ALL.to_vec());
    let fault = select(vec![WriteFault::Conflict, WriteFault::Failed, WriteFault::AnswerLost]);
    prop_oneof![
        6 => (1_u16..60).prop_map(Step::Pass),
        3 => (0_u32..5).prop_map(Step::Demand),
        3 => Just(Step::Give(ServiceOwner::Ebb)),
        1 => Just(Step::Give(ServiceOwner::Kubernetes)),
        1 => (0_u32..5).prop_map(Step::ForeignCount),
        1 => Just(Step::KillPod),
        3 => (which(), fault).prop_map(|(which, fault)| Step::Fail(which, fault)),
        2 => (which(), collection()).prop_map(|(which, collection)| Step::Delay(which, collection)),
        2 => which().prop_map(Step::CatchUp),
        2 => (which(), collection()).prop_map(|(which, collection)| Step::Repeat(which, collection)),
        1 => (which(), collection()).prop_map(|(which, collection)| Step::Relist(which, collection)),
        1 => which().prop_map(Step::Hang),
        2 => which().prop_map(Step::GoOn),
        1 => which().prop_map(Step::Leave),
        2 => which().prop_map(Step::Return),
    ]
}

/// No write that a rule forbids, whatever happens; and once nothing happens any more, everything is as it
/// should be and nothing is written.
fn check(steps: &[Step]) {
    let mut world = World::new();
    for step in steps {
        world.step(step);
        assert!(world.breaches.is_empty(), "{:#?}", world.breaches);
    }
    world.heal();
    // The windows of the decider, the end of the last pod, and a Service that lingers.
    world.pass(Duration::from_millis(500), 300);
    assert!(world.breaches.is_empty(), "{:#?}", world.breaches);
    let unsettled = world.unsettled();
    assert!(unsettled.is_empty(), "{unsettled:#?}");
    let before = world.tally;
    world.pass(Duration::from_millis(500), 40);
    assert_eq!(world.tally, before, "the world is at rest, and something is written");
}

proptest! {
    #![proptest_config(Config { cases: 48, ..Config::default() })]

    #[test]
    fn nothing_forbidden_is_written_and_everything_converges(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        check(&steps);
    }
}

#[test]
fn an_adopted_service_is_routed_scaled_taken_over_and_given_back() {
    let mut world = World::new();
    let pass = |world: &mut World, seconds: u16| world.pass(Duration::from_millis(100), seconds * 10);
    pass(&mut world, 5);
    world.step(&Step::Give(ServiceOwner::Ebb));
    pass(&mut world, 10);
    assert!(world.tally.slices > 0 && world.tally.takeovers > 0, "it is adopted: {:?}", world.tally);
    world.step(&Step::Demand(4));
    pass(&mut world, 20);
    assert!(world.tally.counts > 0, "it is scaled: {:?}", world.tally);
    for which in [0, 1] {
        world.step(&Step::Hang(which));
        pass(&mut world, 30);
        assert_eq!(world.owned(), 1, "the other autoscaler owns the bucket");
        world.step(&Step::GoOn(which));
        pass(&mut world, 5);
    }
    assert_eq!((world.unsettled(), &world.breaches), (Vec::new(), &Vec::new()));
    world.step(&Step::Give(ServiceOwner::Kubernetes));
    pass(&mut world, 80);
    assert_eq!((world.unsettled(), &world.breaches), (Vec::new(), &Vec::new()));
}

#[test]
fn each_fault_alone_changes_nothing_in_the_end() {
    let before = [Step::Pass(20), Step::Give(ServiceOwner::Ebb), Step::Pass(30), Step::Demand(3)];
    for fault in [WriteFault::Conflict, WriteFault::Failed, WriteFault::AnswerLost] {
        let faults = [Step::Fail(0, fault), Step::Fail(1, fault), Step::Pass(50)];
        check(&before.iter().cloned().chain(faults).collect::<Vec<_>>());
    }
    for collection in Collection::ALL {
        let late = [Step::Delay(0, collection), Step::Delay(1, collection), Step::Pass(50)];
        let anew = [Step::Relist(0, collection), Step::Repeat(1, collection), Step::Pass(50)];
        check(&before.iter().cloned().chain(late).chain(anew).collect::<Vec<_>>());
    }
}

/// Kubernetes' slices that came while the bucket had no owner are taken away, although the route stays
/// as it was and no order comes.
#[test]
fn slices_that_came_while_a_bucket_had_no_owner_are_taken_away_by_the_next_one() {
    check(&[
        Step::Give(ServiceOwner::Ebb),
        Step::Pass(20),
        Step::Leave(0),
        Step::Leave(1),
        Step::Give(ServiceOwner::Kubernetes),
        Step::ForeignCount(0),
        Step::Give(ServiceOwner::Ebb),
    ]);
}

/// A Service leads past ebb, and the watch does not show a count that grew: it is not lowered to the count
/// that the watch showed last.
#[test]
fn a_count_that_no_watch_has_shown_is_not_lowered_under_clients_that_reach_pods_past_ebb() {
    check(&[
        Step::Demand(2),
        Step::Give(ServiceOwner::Ebb),
        Step::Pass(21),
        Step::Give(ServiceOwner::Kubernetes),
        Step::Delay(0, Collection::Deployments),
        Step::Delay(1, Collection::Deployments),
        Step::Pass(20),
        Step::Demand(3),
        Step::Pass(80),
        Step::Demand(1),
        Step::Pass(300),
    ]);
}

/// An autoscaler stands still for longer than its Lease lasts, and is the owner again at once. Meanwhile
/// another client wrote a count. An order of the former epoch is refused, and is not taken for done.
#[test]
fn a_count_that_was_ordered_in_a_former_epoch_is_ordered_again() {
    check(&[
        Step::Hang(1),
        Step::Give(ServiceOwner::Ebb),
        Step::Pass(21),
        Step::Demand(1),
        Step::Hang(0),
        Step::Pass(79),
        Step::ForeignCount(0),
        Step::Pass(45),
    ]);
    // A Service that is given back needs a pod, too.
    check(&[
        Step::Leave(0),
        Step::Hang(0),
        Step::Give(ServiceOwner::Ebb),
        Step::Pass(12),
        Step::ForeignCount(0),
        Step::Hang(1),
        Step::Pass(83),
        Step::Give(ServiceOwner::Kubernetes),
        Step::Pass(51),
    ]);
}

/// An autoscaler gives ports, leaves, and takes the next seat: the Lease has the ports already, and nothing
/// more is written of them.
#[test]
fn ports_that_the_lease_has_already_may_be_used_by_the_next_seat() {
    check(&[
        Step::Hang(0),
        Step::Leave(0),
        Step::Give(ServiceOwner::Ebb),
        Step::Leave(1),
        Step::GoOn(0),
        Step::ForeignCount(0),
    ]);
}
