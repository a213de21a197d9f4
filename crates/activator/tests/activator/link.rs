//! The activator's links, seen from the autoscaler's end.

use ::link::ActivatorOrder;
use vocabulary::{
    ActivatorWord, Epoch, LinkAddress, LinkToken, PodState, PresentCount, RevisionLoad, Routing, Version,
};

use crate::world::{Autoscaler, Caller, Pod, World, assignment, until, with_concurrency, within};

#[tokio::test]
async fn the_first_word_says_who_answers_and_what_is_in_force() {
    let (world, pod) = (World::start(), Pod::held());
    let autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let running = Caller::http1(&world).start("/");
    until("it runs", || pod.running() == 1).await;
    autoscaler
        .report("a second with the request", |report| {
            second_of(report).filter(|(_, loads)| !loads.is_empty())
        })
        .await;
    drop(autoscaler);
    let mut next = Autoscaler::dial(world.link_address).await;
    next.send(ActivatorOrder::Heartbeat).await;
    let hello = next
        .report("the hello", |report| {
            if let ActivatorWord::Hello(hello) = report { Some(hello.clone()) } else { None }
        })
        .await;
    let name = assignment(1, &[]).revision;
    assert_eq!(hello.activator.as_str(), "activator-1");
    assert_eq!(hello.routings, [(name.clone(), Routing::ThroughActivator)]);
    assert_eq!(hello.present.len(), 1);
    assert_eq!((&hello.present[0].0, hello.present[0].1.in_flight), (&name, 1));
    let remembered = hello.history.iter().find(|(_, loads)| !loads.is_empty()).expect("a second with load");
    assert_eq!((&remembered.1[0].revision, remembered.1[0].load.request_rate.value()), (&name, 1.0));
    assert!(hello.history.iter().all(|(second, _)| *second < hello.current_second));
    pod.permits.add_permits(1);
    assert_eq!(running.await.unwrap().status, 200);
}

/// Versions only grow, so one assignment of the greatest epoch would keep every later word of the
/// autoscaler's out.
#[tokio::test]
async fn a_stranger_cannot_take_over_a_host() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let robber = Pod::start();
    let mut robbery = assignment(1, &[("robber", robber.address, PodState::Ready)]);
    robbery.version = Version { epoch: Epoch(u64::MAX), counter: u64::MAX };
    for token in [None, Some(LinkToken::new([8; 16]))] {
        let mut stranger = Autoscaler::dial(LinkAddress { token, ..world.link_address }).await;
        stranger.send(ActivatorOrder::Assign(Box::new(robbery.clone()))).await;
        stranger.closed().await;
    }
    assert_eq!(world.metric("activator_refused_links_total"), 2.0);
    // The autoscaler's link stands, and what it says applies.
    autoscaler.assign(&assignment(2, &[("a", pod.address, PodState::Ready)])).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
    assert_eq!((pod.seen().len(), robber.seen().len()), (1, 0));
}

#[tokio::test]
async fn the_first_request_of_an_idle_revision_is_reported_at_once_and_growth_after_it() {
    let world = World::start();
    let autoscaler = world.synced(&[assignment(1, &[])]).await;
    let caller = Caller::http1(&world);
    let mut waiting = Vec::new();
    for number in 1..=3 {
        waiting.push(caller.start("/"));
        let count = autoscaler
            .report("the present count", |report| {
                present_in(report).filter(|count| count.in_flight >= number)
            })
            .await;
        assert_eq!((count.in_flight, count.waiting), (number, number));
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn every_second_is_reported_once_and_an_idle_revision_falls_silent() {
    let (world, pod) = (World::start(), Pod::start());
    let autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
    let busy = autoscaler
        .report("the second of the request", |report| {
            second_of(report).filter(|(_, loads)| !loads.is_empty())
        })
        .await
        .0;
    autoscaler
        .report("two seconds later", |report| {
            second_of(report).filter(|second| *second == (busy + 2, Vec::new()))
        })
        .await;
    let seconds: Vec<u64> =
        autoscaler.reports().iter().filter_map(|report| Some(second_of(report)?.0)).collect();
    assert!(seconds.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seconds:?}");
}

#[tokio::test]
async fn a_draining_pod_is_left_before_the_acknowledgement() {
    let (world, leaving, staying) = (World::start(), Pod::start(), Pod::start());
    let states = |state| [("a", leaving.address, state), ("b", staying.address, PodState::Ready)];
    let mut autoscaler = world.synced(&[with_concurrency(assignment(1, &states(PodState::Ready)), 1)]).await;
    let caller = Caller::http1(&world);
    assert_eq!(caller.get("/").await.status, 200);
    assert_eq!(leaving.seen().len(), 1, "the first available is used");
    until("the connection is kept", || leaving.connections.load(std::sync::atomic::Ordering::SeqCst) == 1)
        .await;
    autoscaler.assign(&with_concurrency(assignment(2, &states(PodState::Draining)), 1)).await;
    until("it is closed", || leaving.connections.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
    for _ in 0..3 {
        assert_eq!(caller.get("/").await.status, 200);
    }
    assert_eq!((leaving.seen().len(), staying.seen().len()), (1, 3));
}

#[tokio::test]
async fn a_request_in_a_leaving_pod_ends_there_and_takes_its_connection_along() {
    let (world, pod) = (World::start(), Pod::held());
    let mut autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let running = Caller::http1(&world).start("/");
    until("it runs", || pod.running() == 1).await;
    autoscaler.assign(&assignment(2, &[])).await;
    pod.permits.add_permits(1);
    assert_eq!(running.await.unwrap().status, 200);
    until("it is closed", || pod.connections.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn only_greater_versions_are_accepted_and_a_repeat_is_acknowledged_again() {
    let (world, pod) = (World::start(), Pod::start());
    let ready = assignment(5, &[("a", pod.address, PodState::Ready)]);
    let mut autoscaler = world.synced(std::slice::from_ref(&ready)).await;
    autoscaler.acknowledged(&ready.revision, ready.version).await;
    autoscaler.send(ActivatorOrder::Assign(Box::new(assignment(4, &[])))).await;
    until("the old one is ignored", || world.metric("activator_stale_assignments_total") > 0.0).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
    drop(autoscaler);
    let mut next = Autoscaler::dial(world.link_address).await;
    next.sync(std::slice::from_ref(&ready)).await;
    next.acknowledged(&ready.revision, ready.version).await;
    let mut of_next_epoch = assignment(1, &[("a", pod.address, PodState::Unheard)]);
    of_next_epoch.version.epoch = Epoch(2);
    next.assign(&of_next_epoch).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200, "an unheard pod stays what it was");
}

#[tokio::test]
async fn a_removal_counts_only_if_it_is_newer() {
    let (world, pod) = (World::start(), Pod::start());
    let ready = assignment(5, &[("a", pod.address, PodState::Ready)]);
    let mut autoscaler = world.synced(std::slice::from_ref(&ready)).await;
    let caller = Caller::http1(&world);
    for (counter, status) in [(5, 200), (6, 404)] {
        let (revision, version) = (ready.revision.clone(), Version { epoch: Epoch(1), counter });
        autoscaler.send(ActivatorOrder::Remove { revision: revision.clone(), version }).await;
        autoscaler.acknowledged(&revision, version).await;
        assert_eq!(caller.get("/").await.status, status);
    }
}

#[tokio::test]
async fn traffic_goes_on_without_a_link() {
    let (world, pod) = (World::start(), Pod::start());
    let autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    drop(autoscaler);
    until("the link is gone", || world.metric("activator_link_connected") == 0.0).await;
    let got = within("the answer", Caller::http1(&world).get("/")).await;
    assert_eq!(got.status, 200);
}

#[tokio::test]
async fn a_host_moves_with_its_assignment() {
    let (world, first, second) = (World::start(), Pod::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[("a", first.address, PodState::Ready)])]).await;
    let mut other = assignment(1, &[("b", second.address, PodState::Ready)]);
    other.revision = "default/service/other".to_owned().try_into().unwrap();
    autoscaler.assign(&other).await;
    let mut moved = assignment(2, &[("a", first.address, PodState::Ready)]);
    moved.hosts = vec!["elsewhere.example.com".to_owned()];
    autoscaler.assign(&moved).await;
    let caller = Caller::http1(&world);
    assert_eq!(caller.get("/").await.status, 200);
    assert_eq!(caller.to("elsewhere.example.com").get("/").await.status, 200);
    assert_eq!((first.seen().len(), second.seen().len()), (1, 1));
}

fn second_of(report: &ActivatorWord) -> Option<(u64, Vec<RevisionLoad>)> {
    if let ActivatorWord::Loads { second, loads } = report { Some((*second, loads.clone())) } else { None }
}

fn present_in(report: &ActivatorWord) -> Option<PresentCount> {
    if let ActivatorWord::Present { count, .. } = report { Some(*count) } else { None }
}
