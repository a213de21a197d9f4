//! What several autoscalers experience, each with a link of its own and its own buckets.

use ::link::ActivatorOrder;
use vocabulary::{ActivatorWord, Assignment, Bucket, Epoch, Ownership, PodState, RevisionName, Version};

use crate::world::{Autoscaler, Caller, HOST, Pod, World, assignment, until, within};

const OTHER_HOST: &str = "other.default.example.com";

/// One of two buckets, in that epoch.
fn owns(bucket: Bucket, epoch: u64) -> Ownership {
    Ownership { epochs: [(bucket, Epoch(epoch))].into(), buckets: 2 }
}

/// A pod's assignment to `default/service/hello`, said in that epoch, and the bucket that it falls into.
fn hello(epoch: u64, counter: u64, pod: &Pod) -> (Assignment, Bucket) {
    let mut hello = assignment(counter, &[("a", pod.address, PodState::Ready)]);
    hello.version.epoch = Epoch(epoch);
    let bucket = owns(Bucket(0), 0).bucket_of(&hello.revision);
    (hello, bucket)
}

/// The same for another revision, which falls into the other bucket.
fn other(epoch: u64, counter: u64, pod: &Pod) -> (Assignment, Bucket) {
    let (hello, its_bucket) = hello(epoch, counter, pod);
    let names = (0..64).map(|number| RevisionName::new("default", "service", &format!("r{number}")).unwrap());
    let bucket_of = |name: &RevisionName| owns(Bucket(0), 0).bucket_of(name);
    let revision = names.into_iter().find(|name| bucket_of(name) != its_bucket).unwrap();
    let bucket = bucket_of(&revision);
    (Assignment { revision, hosts: vec![OTHER_HOST.to_owned()], ..hello }, bucket)
}

/// A world with two owners, who told one revision each.
struct Two {
    world: World,
    caller: Caller,
    pods: [Pod; 2],
    owners: [Autoscaler; 2],
}

impl Two {
    async fn start() -> Self {
        let (world, pods) = (World::start(), [Pod::start(), Pod::start()]);
        let mut owners =
            [Autoscaler::dial(world.link_address).await, Autoscaler::dial(world.link_address).await];
        let told = [hello(5, 1, &pods[0]), other(3, 1, &pods[1])];
        for ((owner, name), (assignment, bucket)) in owners.iter_mut().zip(["one", "two"]).zip(told) {
            owner
                .sync_of(name, owns(bucket, assignment.version.epoch.0), std::slice::from_ref(&assignment))
                .await;
            owner.acknowledged(&assignment.revision, assignment.version).await;
        }
        within("both syncs", world.activator.synced()).await;
        Self { caller: Caller::http1(&world), world, pods, owners }
    }

    /// How many requests each pod has seen after one more to each revision, all of them answered.
    async fn seen_after_one_more(&self) -> [usize; 2] {
        for host in [HOST, OTHER_HOST] {
            assert_eq!(self.caller.to(host).get("/").await.status, 200, "{host}");
        }
        self.pods.each_ref().map(|pod| pod.seen().len())
    }
}

/// The revisions whose load or present count an owner was told of.
fn heard_of(owner: &Autoscaler) -> Vec<RevisionName> {
    let mut heard: Vec<RevisionName> = Vec::new();
    for word in owner.reports() {
        match word {
            ActivatorWord::Loads { loads, .. } => heard.extend(loads.into_iter().map(|load| load.revision)),
            ActivatorWord::Present { revision, .. } | ActivatorWord::Acknowledged { revision, .. } => {
                heard.push(revision);
            }
            ActivatorWord::Hello(_) | ActivatorWord::Emptied { .. } | ActivatorWord::Draining => {}
        }
    }
    heard.sort();
    heard.dedup();
    heard
}

#[tokio::test]
async fn each_owner_tells_its_own_buckets_and_hears_of_them_alone() {
    let two = Two::start().await;
    assert_eq!(two.world.metric("activator_link_connected"), 2.0);
    assert_eq!(two.seen_after_one_more().await, [1, 1]);
    for (owner, (assignment, _)) in
        two.owners.iter().zip([hello(5, 1, &two.pods[0]), other(3, 1, &two.pods[1])])
    {
        owner
            .report("a second with the request", |word| match word {
                ActivatorWord::Loads { loads, .. } => (!loads.is_empty()).then_some(()),
                ActivatorWord::Hello(_)
                | ActivatorWord::Present { .. }
                | ActivatorWord::Acknowledged { .. }
                | ActivatorWord::Emptied { .. }
                | ActivatorWord::Draining => None,
            })
            .await;
        assert_eq!(heard_of(owner), [assignment.revision]);
    }
}

#[tokio::test]
async fn revisions_that_an_owner_omits_are_retired_in_its_own_buckets_alone() {
    let mut two = Two::start().await;
    let (hello, bucket) = hello(5, 1, &two.pods[0]);
    two.owners[0].sync_of("one", owns(bucket, 5), &[]).await;
    let emptied = ActivatorWord::Emptied { revision: hello.revision.clone() };
    two.owners[0].report("that it holds nothing", |word| (*word == emptied).then_some(())).await;
    assert_eq!(two.seen_after_one_more().await, [1, 1], "what still comes is served");
    let version = Version { epoch: Epoch(5), counter: 2 };
    two.owners[0].send(ActivatorOrder::Forget { revision: hello.revision.clone(), version }).await;
    two.owners[0].acknowledged(&hello.revision, version).await;
    assert_eq!(two.caller.to(OTHER_HOST).get("/").await.status, 200);
    assert_eq!(two.caller.get("/").await.status, 404);
    assert!(!two.owners[1].reports().iter().any(|word| matches!(word, ActivatorWord::Emptied { .. })));
}

#[tokio::test]
async fn a_late_owner_changes_nothing() {
    let mut two = Two::start().await;
    let (late, bucket) = hello(4, 99, &two.pods[1]);
    let mut stranger = late.clone();
    stranger.hosts = vec!["late.example.com".to_owned()];
    stranger.revision = (0..64)
        .map(|number| RevisionName::new("late", "service", &format!("r{number}")).unwrap())
        .find(|name| owns(bucket, 0).bucket_of(name) == bucket)
        .unwrap();
    let (revision, version) = (late.revision.clone(), Version { epoch: Epoch(4), counter: 100 });
    let mut owner = Autoscaler::dial(two.world.link_address).await;
    // It names one that is known, and one that is not.
    owner.sync_of("late", owns(bucket, 4), &[late, stranger]).await;
    owner.sync_of("late", owns(bucket, 4), &[]).await;
    owner.send(ActivatorOrder::Remove { revision: revision.clone(), version }).await;
    until("all of it was read", || two.world.metric("activator_stale_assignments_total") == 3.0).await;
    assert_eq!(two.seen_after_one_more().await, [1, 1]);
    assert_eq!(two.caller.to("late.example.com").get("/").await.status, 404);
    // Who is in force is told on.
    let (next, _) = hello(5, 2, &two.pods[0]);
    two.owners[0].assign(&next).await;
}

#[tokio::test]
async fn assignments_of_a_lost_owner_stay_in_force_until_the_next_owner_replaces_them() {
    let two = Two::start().await;
    let [lost, stays] = two.owners;
    drop(lost);
    until("its link is gone", || two.world.metric("activator_link_connected") == 1.0).await;
    assert_eq!(two.caller.get("/").await.status, 200);
    let mut next = Autoscaler::dial(two.world.link_address).await;
    let (moved, bucket) = hello(6, 1, &two.pods[1]);
    next.sync_of("next", owns(bucket, 6), std::slice::from_ref(&moved)).await;
    next.acknowledged(&moved.revision, moved.version).await;
    assert_eq!(two.caller.get("/").await.status, 200);
    assert_eq!(two.pods.each_ref().map(|pod| pod.seen().len()), [1, 1]);
    assert!(!heard_of(&stays).contains(&moved.revision));
}

#[tokio::test]
async fn a_host_is_unknown_only_once_every_bucket_was_told() {
    let (world, pod) = (World::start(), Pod::start());
    let mut one = Autoscaler::dial(world.link_address).await;
    let (hello, bucket) = hello(5, 1, &pod);
    one.sync_of("one", owns(bucket, 5), std::slice::from_ref(&hello)).await;
    one.acknowledged(&hello.revision, hello.version).await;
    let caller = Caller::http1(&world);
    let waiting = [caller.to(OTHER_HOST).start("/"), caller.to("nobody.example.com").start("/")];
    until("both wait", || world.metric("activator_waiting_requests") == 2.0).await;
    let mut two = Autoscaler::dial(world.link_address).await;
    let (other, bucket) = other(3, 1, &pod);
    two.sync_of("two", owns(bucket, 3), &[other]).await;
    let [known, unknown] = waiting;
    assert_eq!(known.await.unwrap().status, 200);
    assert_eq!(unknown.await.unwrap().status, 404);
}

#[tokio::test]
async fn a_new_link_of_an_owner_replaces_its_former_one_and_no_other() {
    let two = Two::start().await;
    let (hello, bucket) = hello(5, 1, &two.pods[0]);
    let mut again = Autoscaler::dial(two.world.link_address).await;
    again.sync_of("one", owns(bucket, 5), std::slice::from_ref(&hello)).await;
    again.acknowledged(&hello.revision, hello.version).await;
    two.owners[0].closed().await;
    assert_eq!(two.world.metric("activator_link_connected"), 2.0);
    assert_eq!(two.seen_after_one_more().await, [1, 1]);
}

/// Each knows the token, so each is an autoscaler; yet a fleet of them that never hangs up must not cost
/// without end.
#[tokio::test]
async fn no_more_than_32_links_stand_and_those_without_a_name_end_first() {
    let two = Two::start().await;
    let mut nameless = Vec::new();
    for _ in 0..31 {
        let mut link = Autoscaler::dial(two.world.link_address).await;
        link.send(ActivatorOrder::Heartbeat).await;
        link.report("the hello", |word| matches!(word, ActivatorWord::Hello(_)).then_some(())).await;
        nameless.push(link);
    }
    nameless[0].closed().await;
    assert_eq!(two.world.metric("activator_link_connected"), 32.0);
    assert!(two.owners.iter().all(|owner| !owner.is_closed()));
}
