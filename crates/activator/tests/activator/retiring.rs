//! A revision that others serve from now on: nothing that waits here is refused, and nothing that still
//! comes.

use std::time::Duration;

use ::link::ActivatorOrder;
use tokio::task::JoinHandle;
use vocabulary::{ActivatorWord, Assignment, Epoch, Ownership, PodState, Standing, Version};

use crate::world::{Autoscaler, Caller, Got, Pod, World, assignment, until};

/// The same assignment, for an activator that is not among those that serve.
fn retired(assignment: Assignment) -> Assignment {
    Assignment { standing: Standing::Retired, ..assignment }
}

/// Requests that wait for a pod that is not there yet.
async fn waiting(world: &World, count: u16) -> Vec<JoinHandle<Got>> {
    let caller = Caller::http1(world);
    let requests = (0..count).map(|_| caller.start("/")).collect();
    until("all of them wait", || world.metric("activator_waiting_requests") == f64::from(count)).await;
    requests
}

async fn all_answered(requests: Vec<JoinHandle<Got>>) {
    for request in requests {
        let got = request.await.unwrap();
        assert_eq!(got.status, 200, "{got:?}");
    }
}

fn emptied(autoscaler: &Autoscaler) -> usize {
    let words = autoscaler.reports();
    words.iter().filter(|word| matches!(word, ActivatorWord::Emptied { .. })).count()
}

fn forget(counter: u64) -> ActivatorOrder {
    let revision = assignment(1, &[]).revision;
    ActivatorOrder::Forget { revision, version: Version { epoch: Epoch(1), counter } }
}

#[tokio::test]
async fn none_of_500_that_wait_where_the_subset_is_left_is_refused() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let requests = waiting(&world, 500).await;
    autoscaler.assign(&retired(assignment(2, &[]))).await;
    assert_eq!(world.metric("activator_waiting_requests"), 500.0);
    assert_eq!(emptied(&autoscaler), 0, "it holds 500");
    autoscaler.assign(&retired(assignment(3, &[("a", pod.address, PodState::Ready)]))).await;
    all_answered(requests).await;
    assert_eq!(world.metric("activator_refused_requests_total"), 0.0);
    until("it says that it holds nothing", || emptied(&autoscaler) > 0).await;
    autoscaler.send(forget(4)).await;
    let forgotten = assignment(4, &[]);
    autoscaler.acknowledged(&forgotten.revision, forgotten.version).await;
    assert_eq!(world.metric("activator_assigned_revisions"), 0.0);
    assert_eq!(Caller::http1(&world).get("/").await.status, 404);
}

/// The new owner neither names the revision here at first, nor chooses this activator when it does.
#[tokio::test]
async fn none_of_500_that_wait_across_a_change_of_owner_to_another_subset_is_refused() {
    let (world, pod) = (World::start(), Pod::start());
    let former = world.synced(&[assignment(1, &[])]).await;
    let requests = waiting(&world, 500).await;
    let mut next = Autoscaler::dial(world.link_address).await;
    let ownership = Ownership::of_everything(Epoch(2));
    next.sync_of("next", ownership.clone(), &[]).await;
    drop(former);
    until("the former owner is gone", || world.metric("activator_link_connected") == 1.0).await;
    assert_eq!(world.metric("activator_waiting_requests"), 500.0);
    let mut told = retired(assignment(1, &[("a", pod.address, PodState::Ready)]));
    told.version.epoch = Epoch(2);
    next.sync_of("next", ownership, std::slice::from_ref(&told)).await;
    next.acknowledged(&told.revision, told.version).await;
    all_answered(requests).await;
    assert_eq!(world.metric("activator_refused_requests_total"), 0.0);
    until("the new owner hears that nothing is left", || emptied(&next) > 0).await;
}

#[tokio::test]
async fn a_retired_revision_serves_late_requests_and_reports_each_time_that_it_is_empty() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    autoscaler.assign(&retired(assignment(2, &[("a", pod.address, PodState::Ready)]))).await;
    until("it holds nothing from the beginning", || emptied(&autoscaler) == 1).await;
    let caller = Caller::http1(&world);
    for times in 2..5 {
        assert_eq!(caller.get("/").await.status, 200);
        until("it holds nothing again", || emptied(&autoscaler) == times).await;
    }
    // Past the queue as well.
    let mut direct = retired(assignment(3, &[("a", pod.address, PodState::Ready)]));
    direct.routing = vocabulary::Routing::Direct;
    autoscaler.assign(&direct).await;
    until("it is told with a new assignment", || emptied(&autoscaler) == 5).await;
    assert_eq!(caller.get("/").await.status, 200);
    until("it holds nothing again", || emptied(&autoscaler) == 6).await;
    // Assigned again there is nothing to say.
    autoscaler.assign(&assignment(4, &[("a", pod.address, PodState::Ready)])).await;
    assert_eq!(caller.get("/").await.status, 200);
    autoscaler.assign(&assignment(5, &[("a", pod.address, PodState::Ready)])).await;
    assert_eq!(emptied(&autoscaler), 6);
}

#[tokio::test]
async fn a_revision_is_forgotten_when_its_requests_are_answered_and_no_sooner() {
    let (world, pod) = (World::start(), Pod::held());
    let ready = [("a", pod.address, PodState::Ready)];
    let mut autoscaler = world.synced(&[assignment(1, &ready)]).await;
    let running = Caller::http1(&world).start("/");
    until("it runs", || pod.running() == 1).await;
    autoscaler.send(forget(2)).await;
    assert_eq!(world.metric("activator_assigned_revisions"), 1.0);
    pod.permits.add_permits(1);
    assert_eq!(running.await.unwrap().status, 200);
    let forgotten = assignment(2, &[]);
    autoscaler.acknowledged(&forgotten.revision, forgotten.version).await;
    assert_eq!(world.metric("activator_assigned_revisions"), 0.0);
}

#[tokio::test]
async fn a_newer_assignment_takes_back_that_a_revision_may_be_forgotten() {
    let (world, pod) = (World::start(), Pod::held());
    let ready = [("a", pod.address, PodState::Ready)];
    let mut autoscaler = world.synced(&[assignment(1, &ready)]).await;
    let caller = Caller::http1(&world);
    let running = caller.start("/");
    until("it runs", || pod.running() == 1).await;
    autoscaler.send(forget(2)).await;
    autoscaler.assign(&assignment(3, &ready)).await;
    pod.permits.add_permits(2);
    assert_eq!(running.await.unwrap().status, 200);
    assert_eq!(caller.get("/").await.status, 200, "it is served on");
    autoscaler.send(forget(2)).await;
    autoscaler.assign(&assignment(4, &ready)).await;
    assert_eq!(world.metric("activator_assigned_revisions"), 1.0, "an old word");
}

#[tokio::test]
async fn only_a_removal_refuses_what_waits() {
    let world = World::start();
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let requests = waiting(&world, 3).await;
    autoscaler.sync(&[]).await;
    autoscaler.send(forget(2)).await;
    autoscaler.assign(&retired(assignment(3, &[]))).await;
    assert_eq!(world.metric("activator_waiting_requests"), 3.0);
    let (revision, version) = (assignment(1, &[]).revision, Version { epoch: Epoch(1), counter: 4 });
    autoscaler.send(ActivatorOrder::Remove { revision, version }).await;
    for request in requests {
        let got = request.await.unwrap();
        assert_eq!(got.status, 404);
        assert!(got.header("ebb-error").starts_with("no-such-revision"), "{got:?}");
    }
    assert_eq!(world.metric("activator_assigned_revisions"), 0.0);
}

#[tokio::test]
async fn one_on_its_way_out_says_so_on_every_link_and_serves_on_until_no_route_names_it() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    world.activator.leave();
    let says_so = |word: &ActivatorWord| matches!(word, ActivatorWord::Draining).then_some(());
    autoscaler.report("that it is leaving", says_so).await;
    let got = Caller::http1(&world).get("/").await;
    assert_eq!((got.status.as_u16(), got.header("connection")), (200, "close"));
    let next = {
        let mut next = Autoscaler::dial(world.link_address).await;
        next.send(ActivatorOrder::Heartbeat).await;
        next
    };
    next.report("that it is leaving, to who comes later", says_so).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
    let released = tokio::time::timeout(Duration::ZERO, world.activator.released()).await;
    assert!(released.is_err(), "a route may name it");
    let buckets = [vocabulary::Bucket(0)].into();
    autoscaler.send(ActivatorOrder::Released { buckets }).await;
    crate::world::within("the release", world.activator.released()).await;
}

/// Of two buckets, and only the word of who owns them counts.
#[tokio::test]
async fn one_on_its_way_out_is_released_by_the_owners_of_all_buckets() {
    let world = World::start();
    let bucket = vocabulary::Bucket;
    let owns = |number, epoch| Ownership { epochs: [(bucket(number), Epoch(epoch))].into(), buckets: 2 };
    let mut owners = [Autoscaler::dial(world.link_address).await, Autoscaler::dial(world.link_address).await];
    owners[0].sync_of("one", owns(0, 5), &[]).await;
    owners[1].sync_of("two", owns(1, 5), &[]).await;
    crate::world::within("both syncs", world.activator.synced()).await;
    world.activator.leave();
    let all = [bucket(0), bucket(1)];
    owners[0].send(ActivatorOrder::Released { buckets: all.into() }).await;
    // A later owner may have routes that name it.
    let mut next = Autoscaler::dial(world.link_address).await;
    next.sync_of("next", owns(0, 6), &[]).await;
    next.report("the hello", |word| matches!(word, ActivatorWord::Hello(_)).then_some(())).await;
    owners[1].send(ActivatorOrder::Released { buckets: all.into() }).await;
    // What is read after it on the same link shows that it was read.
    let told = assignment_in(1);
    owners[1].assign(&told).await;
    let released = tokio::time::timeout(Duration::ZERO, world.activator.released()).await;
    assert!(released.is_err(), "the first bucket's owner has not said so");
    next.send(ActivatorOrder::Released { buckets: [bucket(0)].into() }).await;
    crate::world::within("the release", world.activator.released()).await;
}

/// An assignment of epoch 5 in that bucket of two.
fn assignment_in(bucket: u16) -> Assignment {
    let two = Ownership { epochs: [].into(), buckets: 2 };
    let names = (0..64)
        .map(|number| vocabulary::RevisionName::new("default", "service", &format!("r{number}")).unwrap());
    let revision = names.into_iter().find(|name| two.bucket_of(name) == vocabulary::Bucket(bucket)).unwrap();
    let version = Version { epoch: Epoch(5), counter: 1 };
    Assignment { revision, version, ..assignment(1, &[]) }
}
