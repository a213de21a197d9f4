//! A node loses its network, and with it an activator and half of the pods: to all others it is dead. It is
//! back before Kubernetes takes note, which is after 40 s.

use std::collections::BTreeSet;
use std::time::Duration;

use tests::bench::clock;
use tests::cluster::{
    Dials, PATIENCE, SYSTEM, TestNamespace, Workload, WorkloadPlan, component, in_namespace, kubectl,
};
use tests::eventually;

/// The one that dies. Services' addresses are reached through the other one.
const DEAD: &str = "n2";
const ALIVE: &str = "n1";
/// A connection is asked for in so long.
const EACH: Duration = Duration::from_millis(20);
/// After the death of a node, while the owner of the revision lives.
const FAIL_WITH_OWNER: Duration = Duration::from_secs(4);
/// After the death of the owner's node: a lease of 15 s, and the same again.
const FAIL_WITHOUT_OWNER: Duration = Duration::from_secs(20);

/// Two workloads with pods on both nodes: one that pods serve, and one that activators serve.
async fn workloads(namespace: &TestNamespace) -> [Workload; 2] {
    let plan = |name: &str, pods: &str, capacity: &str| {
        let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", pods);
        plan.annotated("autoscaling.knative.dev/target-burst-capacity", capacity)
    };
    let direct = plan("direct", "4", "0").create(namespace).await;
    let through = plan("through", "2", "-1").create(namespace).await;
    direct.has_pods(4).await;
    through.has_pods(2).await;
    direct.is_served_directly().await;
    through.is_served_through_activators().await;
    for workload in [&direct, &through] {
        assert_eq!(named_nodes(workload).await, BTreeSet::from([ALIVE, DEAD].map(str::to_owned)));
    }
    [direct, through]
}

/// The nodes of the addresses in a workload's slices.
async fn named_nodes(workload: &Workload) -> BTreeSet<String> {
    let endpoints = workload.slices().await.into_iter().flat_map(|slice| slice.endpoints);
    endpoints.filter_map(|endpoint| endpoint.node_name).collect()
}

/// Each node has an autoscaler and an activator. Pods of a node that was drained stay where they went, until
/// a rollout spreads them again.
async fn programs_are_spread(namespace: &TestNamespace) {
    for program in ["autoscaler", "activator"] {
        if namespace.nodes_of_program(program).await.len() < 2 {
            let deployment = format!("deployment/{program}");
            kubectl(&["-n", SYSTEM, "rollout", "restart", &deployment]).await;
            kubectl(&["-n", SYSTEM, "rollout", "status", &deployment, "--timeout=2m"]).await;
        }
        eventually("a rollout spreads a program over both nodes", PATIENCE, || async {
            let nodes = namespace.nodes_of_program(program).await;
            let is_spread = nodes.len() == 2 && nodes.values().all(|pods| pods.len() == 1);
            if is_spread { Ok(()) } else { Err(format!("{program}: {nodes:?}")) }
        })
        .await;
    }
}

/// The owner runs there from now on.
async fn owner_is_on(namespace: &TestNamespace, node: &str) {
    let owner = namespace.settled_owner().await;
    let nodes = namespace.nodes_of_program("autoscaler").await;
    if nodes.get(node).is_some_and(|pods| pods.contains(&owner.name)) {
        return;
    }
    namespace.stop_autoscaler(&owner.name).await;
    eventually("the other autoscaler decides", PATIENCE, || namespace.successor_of(&owner)).await;
    namespace.settled_owner().await;
    let (owner, nodes) = (namespace.owner().await, namespace.nodes_of_program("autoscaler").await);
    let name = owner.expect("one decides").name;
    assert!(nodes.get(node).is_some_and(|pods| pods.contains(&name)), "{name} decides, {nodes:?}");
}

/// Cuts the node's cable for so long, and returns when the last connection to each workload failed.
async fn lose_node(workloads: &[Workload; 2], time: Duration) -> [Option<Duration>; 2] {
    let until = clock::now() + Duration::from_secs(1) + time;
    let [direct, through] = workloads;
    let dials = [direct, through].map(|workload| tokio::spawn(Dials::made(workload.at(80), EACH, until)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    component("stop", &format!("{DEAD}/network")).await;
    let dead = clock::now();
    let [to_pods, to_activators] = dials;
    let dialled = [to_pods.await.expect("it ends"), to_activators.await.expect("it ends")];
    let named = [named_nodes(direct).await, named_nodes(through).await];
    component("start", &format!("{DEAD}/network")).await;
    assert_eq!(named, [(); 2].map(|()| BTreeSet::from([ALIVE.to_owned()])), "the dead node's have left");
    for dials in &dialled {
        println!("failures after the node's death: {}", dials.failures(dead));
    }
    dialled.map(|dials| dials.last_failure().map(|failed| failed.saturating_sub(dead)))
}

/// All is as it was before.
async fn node_is_back(workloads: &[Workload; 2]) {
    for workload in workloads {
        eventually("the endpoints of both nodes are named again", PATIENCE, || async {
            let nodes = named_nodes(workload).await;
            if nodes.len() == 2 { Ok(()) } else { Err(format!("{nodes:?}")) }
        })
        .await;
        workload.load().with_own_connections().burst(20).await.assert_all_answered();
    }
    for deployment in ["autoscaler", "activator", "injector"] {
        let deployment = format!("deployment/{deployment}");
        kubectl(&["-n", SYSTEM, "rollout", "status", &deployment, "--timeout=2m"]).await;
    }
}

fn assert_within(failures: [Option<Duration>; 2], most: Duration) {
    println!("last failure after the node's death, to pods and to activators: {failures:?}");
    for failure in failures {
        let failure = failure.expect("half of the connections go to the dead node at first");
        assert!(failure <= most, "{failures:?}");
    }
}

#[test]
fn new_connections_fail_for_4_s_after_a_node_of_an_activator_and_of_pods_dies() {
    in_namespace("node-loss", async |namespace| {
        programs_are_spread(&namespace).await;
        owner_is_on(&namespace, ALIVE).await;
        let workloads = workloads(&namespace).await;
        let failures = lose_node(&workloads, Duration::from_secs(12)).await;
        assert_within(failures, FAIL_WITH_OWNER);
        node_is_back(&workloads).await;
    });
}

#[test]
fn new_connections_fail_for_20_s_after_the_node_of_the_owner_dies() {
    in_namespace("owner-loss", async |namespace| {
        programs_are_spread(&namespace).await;
        owner_is_on(&namespace, DEAD).await;
        let workloads = workloads(&namespace).await;
        let failures = lose_node(&workloads, Duration::from_secs(28)).await;
        assert_within(failures, FAIL_WITHOUT_OWNER);
        node_is_back(&workloads).await;
    });
}

#[test]
fn a_program_that_stalls_for_4_s_leaves_no_slice() {
    in_namespace("stall", async |namespace| {
        programs_are_spread(&namespace).await;
        let workloads = workloads(&namespace).await;
        let [direct, through] = &workloads;
        let addresses = async || {
            let all = [direct.served_by().await, through.served_by().await];
            all.map(|addresses| addresses.into_iter().collect::<BTreeSet<_>>())
        };
        let before = addresses().await;
        let activators = namespace.nodes_of_program("activator").await;
        let activator = activators.values().flatten().next().expect("there is one").clone();
        let pod = direct.pod_names().await.swap_remove(0);
        let activator = namespace.freeze_program(&activator).await;
        let queue_proxy = tests::cluster::process_of(&pod, "ebb-queue-proxy").freeze();
        let until = clock::now() + Duration::from_secs(4);
        while clock::now() < until {
            assert_eq!(addresses().await, before);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop((activator, queue_proxy));
        // A link that broke meanwhile stands again, and what was suspected is forgotten.
        let until = clock::now() + Duration::from_secs(4);
        while clock::now() < until {
            assert_eq!(addresses().await, before);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}
