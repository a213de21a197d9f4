//! Several autoscalers decide, each about a part of all workloads.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tests::cluster::{PATIENCE, PluginDashboard, TestNamespace, Workload, WorkloadPlan, in_namespace};
use tests::eventually;
use vocabulary::Bucket;

/// A lease, which its holder may have renewed a moment before, and a second to notice.
const FOLLOWED_AFTER_KILL: Duration = Duration::from_secs(16);

/// The names that `ebb get` prints.
async fn listed(namespace: &TestNamespace) -> BTreeSet<String> {
    let mut command = tokio::process::Command::new(tests::ebb::executable());
    command.args(["get", "-o", "json", "-n", &namespace.name]).env("KUBECONFIG", &namespace.kubeconfig);
    let output = command.env_remove("EBB_API").output().await.expect("the executable runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let list: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said} {output:?}"));
    assert_eq!(list["unanswered"], Value::Array(Vec::new()), "{said}");
    let revisions = list["revisions"].as_array().expect("a list").iter();
    revisions.filter_map(|revision| Some(revision["name"].as_str()?.rsplit_once('/')?.1.to_owned())).collect()
}

/// The names in the first event of the dashboard's stream, which has all revisions of all autoscalers.
async fn shown(dashboard: &PluginDashboard, namespace: &TestNamespace) -> BTreeSet<String> {
    let event = dashboard.asked("/v1/stream", "\n\n").await;
    let data = event.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event has data");
    let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {event}"));
    assert_eq!(event["unanswered"], Value::Array(Vec::new()), "{event}");
    let names = event["revisions"].as_array().expect("a list").iter();
    let names = names.filter_map(|revision| revision["name"].as_str()?.split_once('/'));
    let own = names.filter(|(of, _)| *of == namespace.name);
    own.filter_map(|(_, name)| Some(name.rsplit_once('/')?.1.to_owned())).collect()
}

fn revision(namespace: &TestNamespace, workload: &Workload) -> String {
    format!("/v1/revisions/{}/deployment/{}", namespace.name, workload.name())
}

#[test]
fn two_autoscalers_have_a_bucket_each_and_one_that_is_killed_is_followed_by_the_other() {
    in_namespace("buckets", async |namespace| {
        let before = WorkloadPlan::new("before").annotated("autoscaling.knative.dev/min-scale", "1");
        let before = before.create(&namespace).await;
        before.has_pods(1).await;
        // One of them is in another bucket afterwards.
        let [kept, moved] = namespace.plans_in_each_bucket("rests");
        let (kept, moved) = (kept.create(&namespace).await, moved.create(&namespace).await);
        tokio::join!(kept.has_pods(0), moved.has_pods(0));
        let load = before.load().path("/?sleep=50").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(60)).await });

        // The number changes while both versions run: the new ones wait until the old ones have gone.
        namespace.set_buckets(2).await;
        // The autoscaler that has both at first gives one to the other.
        let owners_of_two = eventually("each has one", PATIENCE, || async {
            let owners = namespace.bucket_owners().await;
            let distinct: BTreeSet<_> = owners.values().collect();
            if distinct.len() == 2 { Ok(owners) } else { Err(format!("{owners:?}")) }
        })
        .await;

        for workload in [&kept, &moved] {
            workload.load().one().await.assert_all_answered();
        }

        let [first, second] = namespace.plans_in_each_bucket("hello");
        let (first, second) = (first.create(&namespace).await, second.create(&namespace).await);
        tokio::join!(first.has_pods(0), second.has_pods(0));
        for (number, workload) in [(0, &first), (1, &second)] {
            workload.load().burst(5).await.assert_all_answered();
            let ports = workload.activator_ports().await;
            assert!(!ports.is_empty() && ports.iter().all(|port| port % 2 == number), "{number}: {ports:?}");
        }
        assert_eq!(listed(&namespace).await.len(), 5);
        let dashboard = PluginDashboard::open(&namespace).await;
        assert_eq!(shown(&dashboard, &namespace).await, listed(&namespace).await);
        tokio::join!(first.has_pods(0), second.has_pods(0));

        // The killed one had one of them, and the other autoscaler has the other.
        let killed = owners_of_two[&Bucket(1)].clone();
        namespace.kill_autoscaler(&killed).await;
        eventually("another one decides about the second bucket", FOLLOWED_AFTER_KILL, || async {
            let owner = namespace.bucket_owners().await.remove(&Bucket(1));
            if owner.as_ref().is_some_and(|owner| *owner != killed) {
                Ok(())
            } else {
                Err(format!("{owner:?}"))
            }
        })
        .await;
        let (first_load, second_load) = (first.load(), second.load());
        let (of_first, of_second) = tokio::join!(first_load.burst(5), second_load.burst(5));
        of_first.assert_all_answered();
        of_second.assert_all_answered();
        traffic.await.expect("the client does not panic").assert_all_answered();
        // The dashboard that was open before asks the next owner.
        for workload in [&first, &second] {
            dashboard.asked(&revision(&namespace, workload), "\"decisions\"").await;
        }
        assert_eq!(shown(&dashboard, &namespace).await, listed(&namespace).await, "one fleet again");

        // And back, for the next one.
        namespace.set_buckets(1).await;
        first.has_pods(0).await;
        for workload in [&first, &second, &kept, &moved] {
            workload.load().one().await.assert_all_answered();
        }
    });
}
