//! Several autoscalers decide, each about a part of all workloads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace, kubectl};
use tests::eventually;
use vocabulary::{Bucket, Ownership, RevisionName, bucket_of_lease};

/// A lease, which its holder may have renewed a moment before, and a second to notice.
const FOLLOWED_AFTER_KILL: Duration = Duration::from_secs(16);

/// Rolls autoscalers out that hash workloads to so many buckets, and waits until each of these has an owner.
async fn set_buckets(namespace: &TestNamespace, count: u16) -> BTreeMap<Bucket, String> {
    let variable = format!("AUTOSCALER_BUCKETS={count}");
    kubectl(&["-n", SYSTEM, "set", "env", "deployment/autoscaler", &variable]).await;
    kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/autoscaler", "--timeout=90s"]).await;
    namespace.settled_owner().await;
    eventually("each bucket has an owner", PATIENCE, || async {
        let owners = owners(namespace).await;
        if owners.len() == usize::from(count) { Ok(owners) } else { Err(format!("{owners:?}")) }
    })
    .await
}

/// Who decides about which bucket.
async fn owners(namespace: &TestNamespace) -> BTreeMap<Bucket, String> {
    let leases: Api<Lease> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let leases = leases.list(&ListParams::default()).await.expect("leases can be listed").items;
    let owners = leases.into_iter().filter_map(|lease| {
        let bucket = bucket_of_lease(&lease.metadata.name?)?;
        let holder = lease.spec?.holder_identity.filter(|holder| !holder.is_empty())?;
        Some((bucket, holder))
    });
    owners.collect()
}

fn bucket_of(namespace: &TestNamespace, name: &str) -> Bucket {
    let revision = RevisionName::new(&namespace.name, "deployment", name).expect("a name");
    Ownership { epochs: BTreeMap::new(), buckets: 2 }.bucket_of(&revision)
}

/// A workload in each of two buckets, whose names begin with `prefix`.
async fn one_in_each(namespace: &TestNamespace, prefix: &str, min_scale: &str) -> [Workload; 2] {
    let name_in = |bucket: u16| {
        let mut names = (0..).map(|number| format!("{prefix}-{number}"));
        names.find(|name| bucket_of(namespace, name) == Bucket(bucket)).expect("half of them are")
    };
    let make = async |bucket| {
        let plan =
            WorkloadPlan::new(&name_in(bucket)).annotated("autoscaling.knative.dev/min-scale", min_scale);
        plan.create(namespace).await
    };
    [make(0).await, make(1).await]
}

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

#[test]
fn two_autoscalers_have_a_bucket_each_and_one_that_is_killed_is_followed_by_the_other() {
    in_namespace("buckets", async |namespace| {
        let before = WorkloadPlan::new("before").annotated("autoscaling.knative.dev/min-scale", "1");
        let before = before.create(&namespace).await;
        before.has_pods(1).await;
        let load = before.load().path("/?sleep=50").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(60)).await });

        // The number changes while both versions run: the new ones wait until the old ones have gone.
        let owners_of_two = set_buckets(&namespace, 2).await;
        let distinct: BTreeSet<_> = owners_of_two.values().cloned().collect();
        assert_eq!(distinct.len(), 2, "{owners_of_two:?}");

        let [first, second] = one_in_each(&namespace, "hello", "0").await;
        tokio::join!(first.has_pods(0), second.has_pods(0));
        for (number, workload) in [(0, &first), (1, &second)] {
            workload.load().burst(5).await.assert_all_answered();
            let ports = workload.activator_ports().await;
            assert!(!ports.is_empty() && ports.iter().all(|port| port % 2 == number), "{number}: {ports:?}");
        }
        assert_eq!(listed(&namespace).await.len(), 3);
        tokio::join!(first.has_pods(0), second.has_pods(0));

        // Whoever is killed had one of them, and the other autoscaler has the other.
        let killed = owners_of_two[&Bucket(1)].clone();
        namespace.kill_autoscaler(&killed).await;
        eventually("another one decides about the second bucket", FOLLOWED_AFTER_KILL, || async {
            let owner = owners(&namespace).await.remove(&Bucket(1));
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

        // And back, for whoever comes next.
        set_buckets(&namespace, 1).await;
        first.has_pods(0).await;
        second.load().one().await.assert_all_answered();
    });
}
