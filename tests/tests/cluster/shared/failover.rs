//! The autoscaler that decides is killed, freezes or leaves: another one follows, counts and routes stay as
//! they are, and no request is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use tests::client::Tally;
use tests::cluster::{PATIENCE, TestNamespace, Workload, WorkloadPlan, in_namespace_alone};
use tests::eventually;
use tokio::task::JoinHandle;

/// A lease, which its holder may have renewed a moment before, and a second to notice.
const FOLLOWED_AFTER_KILL: Duration = Duration::from_secs(16);
/// The holder gives the lease up itself.
const FOLLOWED_AFTER_LEAVING: Duration = Duration::from_secs(2);
/// Several decisions and a renewal of the lease: who has anything to write by then has written it.
const SEVERAL_DECISIONS: Duration = Duration::from_secs(8);

/// Two pods, whatever its load, and activators before them (capacity -1) or not (0).
fn steady_plan(name: &str, capacity: &str) -> WorkloadPlan {
    let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", "2");
    plan.annotated("autoscaling.knative.dev/target-burst-capacity", capacity)
}

/// One whose pods serve, and one that activators serve.
async fn steady_workloads(namespace: &TestNamespace) -> (Workload, Workload) {
    let (direct, through) = tokio::join!(
        steady_plan("direct", "0").create(namespace),
        steady_plan("through", "-1").create(namespace),
    );
    tokio::join!(direct.has_pods(2), through.has_pods(2));
    tokio::join!(direct.is_served_directly(), through.is_served_through_activators());
    (direct, through)
}

fn traffic(workload: &Workload, time: Duration) -> JoinHandle<Tally> {
    let load = workload.load().path("/?sleep=50").with_own_connections();
    tokio::spawn(async move { load.steady(20, time).await })
}

/// What must not change while no autoscaler decides, nor when another begins to.
#[derive(Debug, PartialEq)]
struct Surroundings {
    count: i32,
    pods: Vec<String>,
    serving: Vec<String>,
}

impl Surroundings {
    async fn of(workload: &Workload) -> Self {
        let (mut pods, mut serving) = (workload.pod_names().await, workload.served_by().await);
        pods.sort();
        serving.sort();
        Self { count: workload.count().await, pods, serving }
    }
}

/// One whose pods serve, and one that activators serve.
struct ServedWorkloads<'w> {
    direct: (&'w Workload, Surroundings),
    through: (&'w Workload, Surroundings),
}

impl<'w> ServedWorkloads<'w> {
    async fn note(direct: &'w Workload, through: &'w Workload) -> Self {
        let (direct_now, through_now) = tokio::join!(Surroundings::of(direct), Surroundings::of(through));
        Self { direct: (direct, direct_now), through: (through, through_now) }
    }

    /// Looks at them until the traffic ends.
    async fn stay_as_they_are(&self, traffic: &JoinHandle<Tally>) {
        while !traffic.is_finished() {
            for (workload, before) in [&self.direct, &self.through] {
                assert_eq!(Surroundings::of(workload).await, *before);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

#[test]
fn an_owner_that_is_killed_is_followed_and_a_rollout_meanwhile_loses_no_request() {
    in_namespace_alone("killed", async |namespace| {
        let (direct, through, rolled) = tokio::join!(
            steady_plan("direct", "0").create(&namespace),
            steady_plan("through", "-1").create(&namespace),
            steady_plan("rolled", "0").create(&namespace),
        );
        tokio::join!(direct.has_pods(2), through.has_pods(2), rolled.has_pods(2));
        tokio::join!(
            direct.is_served_directly(),
            through.is_served_through_activators(),
            rolled.is_served_directly()
        );
        let former_pods = rolled.pod_names().await;
        let former = namespace.settled_owner().await;
        let served = ServedWorkloads::note(&direct, &through).await;
        let time = Duration::from_secs(26);
        let loads = [traffic(&direct, time), traffic(&through, time), traffic(&rolled, time)];

        let failing_over = async {
            namespace.kill_autoscaler(&former.name).await;
            let (successor, ()) = tokio::join!(
                eventually("another autoscaler decides", FOLLOWED_AFTER_KILL, || async {
                    namespace.successor_of(&former).await
                }),
                async {
                    // In the middle of the time in which no autoscaler decides.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    rolled.restart().await;
                }
            );
            eventually("the Service leads to the new pods alone", PATIENCE, || async {
                let serving = rolled.served_by().await;
                let is_so = serving.len() == 2 && serving.iter().all(|pod| !former_pods.contains(pod));
                if is_so { Ok(()) } else { Err(format!("{serving:?}")) }
            })
            .await;
            successor
        };
        let (successor, ()) = tokio::join!(failing_over, served.stay_as_they_are(&loads[0]));
        for load in loads {
            load.await.expect("the client does not panic").assert_all_answered();
        }
        let present = namespace.owner().await;
        assert_eq!(present, Some(successor), "one change is enough");
    });
}

/// Its pod stays, and who comes back in it has its name.
#[test]
fn an_owner_whose_process_alone_is_killed_is_followed_and_no_request_is_lost() {
    in_namespace_alone("process", async |namespace| {
        let (direct, through) = steady_workloads(&namespace).await;
        let former = namespace.settled_owner().await;
        let served = ServedWorkloads::note(&direct, &through).await;
        let time = Duration::from_secs(20);
        let loads = [traffic(&direct, time), traffic(&through, time)];
        let following = async {
            namespace.kill_process_of_autoscaler(&former.name).await;
            eventually("somebody decides again", FOLLOWED_AFTER_KILL, || async {
                namespace.decider_after(&former).await
            })
            .await;
        };
        tokio::join!(following, served.stay_as_they_are(&loads[0]));
        for load in loads {
            load.await.expect("the client does not panic").assert_all_answered();
        }
        // And decides indeed.
        for workload in [&direct, &through] {
            workload.annotate("autoscaling.knative.dev/min-scale", Some("3")).await;
        }
        tokio::join!(direct.has_pods(3), through.has_pods(3));
        namespace.settled_owner().await;
    });
}

#[test]
fn an_owner_that_leaves_is_followed_within_two_seconds_and_no_request_is_lost() {
    in_namespace_alone("leaves", async |namespace| {
        let (direct, through) = steady_workloads(&namespace).await;
        let former = namespace.settled_owner().await;
        let served = ServedWorkloads::note(&direct, &through).await;
        let time = Duration::from_secs(6);
        let loads = [traffic(&direct, time), traffic(&through, time)];
        let leaving = async {
            namespace.stop_autoscaler(&former.name).await;
            eventually("another autoscaler decides", FOLLOWED_AFTER_LEAVING, || async {
                namespace.successor_of(&former).await
            })
            .await;
        };
        tokio::join!(leaving, served.stay_as_they_are(&loads[0]));
        through.is_served_through_activators().await;
        for load in loads {
            load.await.expect("the client does not panic").assert_all_answered();
        }
        // And decides indeed.
        direct.annotate("autoscaling.knative.dev/min-scale", Some("3")).await;
        direct.has_pods(3).await;
    });
}

/// Which version each of its slices has, and how often what is wanted of it was changed. Its status is
/// Kubernetes' own.
async fn versions(workloads: [&Workload; 2]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for workload in workloads {
        for slice in workload.slices().await {
            let metadata = slice.metadata;
            versions.insert(
                format!("slice {}", metadata.name.unwrap_or_default()),
                metadata.resource_version.unwrap_or_default(),
            );
        }
        let generation = workload.generation().await;
        versions.insert(format!("workload {:?}", workload.address), generation.to_string());
    }
    versions
}

async fn new_workload_is_served(namespace: &TestNamespace) -> Workload {
    let late = steady_plan("late", "0").create(namespace).await;
    late.has_pods(2).await;
    late.is_served_directly().await;
    late
}

#[test]
fn an_owner_that_freezes_past_its_lease_writes_nothing_when_it_wakes_and_follows() {
    in_namespace_alone("frozen", async |namespace| {
        let plan = steady_plan("hello", "0").annotated("autoscaling.knative.dev/target", "2");
        let hello = plan.create(&namespace).await;
        hello.has_pods(2).await;
        hello.is_served_directly().await;
        let former = namespace.settled_owner().await;
        let frozen = namespace.freeze_program(&former.name).await;
        // Ten at once, where each pod is meant to take two: it would call for more pods. It is told so on its
        // links, and hears it all when it wakes.
        let load = hello.load().path("/?sleep=500").with_own_connections();
        let crowd = load.steady(20, Duration::from_secs(8));
        let following = eventually("another autoscaler decides", FOLLOWED_AFTER_KILL, || async {
            namespace.successor_of(&former).await
        });
        let (tally, successor) = tokio::join!(crowd, following);
        tally.assert_all_answered();
        // Of this one it knows nothing.
        let late = new_workload_is_served(&namespace).await;
        hello.has_pods(2).await;
        hello.is_served_directly().await;

        let before = versions([&hello, &late]).await;
        drop(frozen);
        eventually("it answers again", PATIENCE, || async {
            let is_ready = namespace.system_pod_is_ready(&former.name).await;
            if is_ready { Ok(()) } else { Err("it does not".to_owned()) }
        })
        .await;
        tokio::time::sleep(SEVERAL_DECISIONS).await;
        assert_eq!(versions([&hello, &late]).await, before);
        assert_eq!(namespace.owner().await.as_ref(), Some(&successor));

        // It is as good as any other.
        namespace.stop_autoscaler(&successor.name).await;
        let next = eventually("it decides again", FOLLOWED_AFTER_LEAVING, || async {
            namespace.successor_of(&successor).await
        })
        .await;
        assert_eq!(next.name, former.name);
        late.annotate("autoscaling.knative.dev/min-scale", Some("3")).await;
        late.has_pods(3).await;
        late.load().burst(5).await.assert_all_answered();
    });
}
