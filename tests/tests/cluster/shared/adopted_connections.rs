//! Clients that keep their connections while their Service changes hands: they are served past ebb from then
//! on, and neither scaling nor a rollout cuts them.

mod kept_clients;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tests::cluster::{PATIENCE, TestNamespace, Workload, WorkloadPlan, in_namespace, process_of, succeeds};
use tests::eventually;

use self::kept_clients::{ClientKind, KeptClients};
use crate::handover::is_injected;

/// Ten windows of six seconds, in which clients that are not measured are no load.
const TEN_WINDOWS: Duration = Duration::from_secs(60);

/// Longer than a node takes to hear of an adoption, and than queue-proxies take members.
const ADOPTION_IS_KNOWN: Duration = Duration::from_secs(10);

/// The network of a pod: a client there has an address of its own, as a client on a node has not.
async fn network_of_clients(namespace: &TestNamespace) -> PathBuf {
    let plan = WorkloadPlan::new("client").annotated("autoscaling.knative.dev/min-scale", "1");
    let client = plan.create(namespace).await;
    client.has_pods(1).await;
    process_of(&client.pod_names().await[0], "test-app").network()
}

/// An app of which ebb knows nothing yet.
fn plain_plan(name: &str) -> WorkloadPlan {
    let plan = WorkloadPlan::new(name).not_injected().served_by_kubernetes();
    plan.template_annotated("ebb.dev/drain-limit", "60s")
}

/// Waits until a pod is ready that is none of these.
async fn has_another_pod(workload: &Workload, former: &[String]) {
    eventually("a pod of the new template is there", PATIENCE, || async {
        let present = workload.pod_uids().await;
        let ready = workload.ready_containers().await;
        let is_there = present.iter().any(|pod| !former.contains(pod));
        if is_there && ready.iter().all(|ready| *ready > 0) {
            Ok(())
        } else {
            Err(format!("{present:?} {ready:?}"))
        }
    })
    .await;
}

/// Waits until none of these pods is left.
async fn former_pods_are_gone(workload: &Workload, former: &[String]) {
    eventually("the former pods are gone", PATIENCE * 2, || async {
        let present = workload.pod_uids().await;
        if present.iter().any(|pod| former.contains(pod)) { Err(format!("{present:?}")) } else { Ok(()) }
    })
    .await;
}

#[test]
fn clients_that_connected_between_rollout_and_adopt_are_cut_neither_by_scaling_nor_by_a_rollout() {
    in_namespace("kept", async |namespace| {
        let network = network_of_clients(&namespace).await;
        let hello = plain_plan("hello").create(&namespace).await;
        hello.has_pods(1).await;
        hello.label_template().await;
        is_injected(&hello, 1).await;
        let clients = KeptClients::connect(&ClientKind::ALL, &network, hello.at(80)).await;
        let pods = hello.pod_uids().await;
        succeeds(&namespace, &["adopt", "service/hello"]).await;
        hello.has_event("AdoptedConnections").await;
        let said = succeeds(&namespace, &["explain", "hello"]).await;
        assert!(said.contains("4 connections from before the adoption past ebb"), "{said}");
        tokio::time::sleep(TEN_WINDOWS).await;
        assert_eq!((hello.count().await, hello.pod_uids().await), (1, pods.clone()), "nothing was scaled");

        hello.restart().await;
        has_another_pod(&hello, &pods).await;
        // Longer than a connection rests before a drain ends.
        tokio::time::sleep(Duration::from_secs(20)).await;
        let present = hello.pod_uids().await;
        assert!(pods.iter().all(|pod| present.contains(pod)), "{present:?}: clients use the former one");
        assert_eq!(clients.end().await, [], "none was cut");
        former_pods_are_gone(&hello, &pods).await;
        hello.has_pods(0).await;
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn a_scraper_that_reconnects_after_the_adoption_keeps_no_pod_awake() {
    in_namespace("scraped", async |namespace| {
        let network = network_of_clients(&namespace).await;
        let hello = WorkloadPlan::new("hello").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        let app = SocketAddr::new(hello.pod_addresses().await[0], 8080);
        let scraper = KeptClients::connect(&[ClientKind::Http1], &network, app).await;
        succeeds(&namespace, &["adopt", "service/hello"]).await;
        hello.has_event("AdoptedConnections").await;
        tokio::time::sleep(ADOPTION_IS_KNOWN).await;
        assert_eq!(hello.count().await, 1, "its connection is from before");
        assert_eq!(scraper.end().await, []);
        let again = KeptClients::connect(&[ClientKind::Http1], &network, app).await;
        hello.has_pods(0).await;
        again.end().await;
    });
}

#[test]
fn adopted_before_it_is_injected_a_workload_loses_no_client_until_its_rollout_and_then_as_many_as_without_ebb()
 {
    in_namespace("other-order", async |namespace| {
        let network = network_of_clients(&namespace).await;
        let [hello, plain] = ["hello", "plain"].map(|name| plain_plan(name).create(&namespace));
        let (hello, plain) = tokio::join!(hello, plain);
        hello.has_pods(1).await;
        plain.has_pods(1).await;
        let clients = KeptClients::connect(&ClientKind::ALL, &network, hello.at(80)).await;
        let pods = hello.pod_uids().await;
        succeeds(&namespace, &["adopt", "service/hello"]).await;
        tokio::time::sleep(TEN_WINDOWS).await;
        assert_eq!(hello.pod_uids().await, pods, "its count is not lowered without a queue-proxy");
        assert_eq!(clients.end().await, [], "none was cut before the rollout");

        // The rollout that brings queue-proxies is that of a workload without one.
        let of_hello = KeptClients::connect(&ClientKind::ALL, &network, hello.at(80)).await;
        let of_plain = KeptClients::connect(&ClientKind::ALL, &network, plain.at(80)).await;
        let plain_pods = plain.pod_uids().await;
        hello.label_template().await;
        plain.restart().await;
        former_pods_are_gone(&hello, &pods).await;
        former_pods_are_gone(&plain, &plain_pods).await;
        let (cut, cut_without) = (of_hello.end().await, of_plain.end().await);
        assert_eq!(cut.len(), cut_without.len(), "{cut:?}; without ebb: {cut_without:?}");
    });
}
