//! A Service that is applied together with its workload.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::PostParams;
use serde_json::json;
use tests::bench::clock;
use tests::cluster::{Dials, TestNamespace, WorkloadPlan, in_namespace_alone};

/// kube-proxy gathers changes for so long.
const KUBE_PROXY_GATHERS: Duration = Duration::from_millis(100);
/// From the existence of a Service until no connection to it fails, beyond what kube-proxy takes: a
/// Lease and a slice.
const SERVED_WITHIN: Duration = Duration::from_millis(50);
const TRIES: u32 = 10;
/// A connection in so long.
const EACH: Duration = Duration::from_millis(10);
/// Longer than any pod takes to start.
const WATCHED_FOR: Duration = Duration::from_secs(3);

/// A Service that leads to `pod` by a slice of its own from the beginning: what Kubernetes alone takes.
async fn create_plain(namespace: &TestNamespace, name: &str, pod: SocketAddr) -> SocketAddr {
    let service = json!({
        "metadata": {"name": name},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": pod.port()}]},
    });
    let service: Service = serde_json::from_value(service).expect("a Service");
    let made = namespace.api::<Service>().create(&PostParams::default(), &service).await;
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": pod.port()}],
        "endpoints": [{"addresses": [pod.ip()], "conditions": {"ready": true}}],
    });
    let slice: EndpointSlice = serde_json::from_value(slice).expect("a slice");
    namespace.api().create(&PostParams::default(), &slice).await.expect("a slice is made");
    let address = made.expect("a Service is made").spec.and_then(|spec| spec.cluster_ip);
    SocketAddr::new(address.and_then(|address| address.parse().ok()).expect("an address"), 80)
}

/// How long after `began` the last connection failed; zero if none did.
async fn last_failure(began: Duration, address: SocketAddr) -> Duration {
    let dials = Dials::made(address, EACH, began + WATCHED_FOR).await;
    dials.last_failure().unwrap_or_default().saturating_sub(began)
}

/// How much later than it is promised connections to each of ten new Services were taken: within 150 ms, or
/// 50 ms behind a Service of Kubernetes alone that was made beside it, where that took longer. A busy machine
/// makes kube-proxy late as well.
async fn lateness_of_ten(namespace: &TestNamespace, series: &str, pod: SocketAddr) -> Vec<Duration> {
    let mut late = Vec::new();
    for number in 0..TRIES {
        // Before either object is there: what is measured is a little more than what is promised.
        let began = clock::now();
        let ours = async {
            let workload = WorkloadPlan::new(&format!("{series}{number}")).create(namespace).await;
            last_failure(began, workload.at(80)).await
        };
        let kubernetes = async {
            let address = create_plain(namespace, &format!("plain-{series}{number}"), pod).await;
            last_failure(began, address).await
        };
        let (ours, kubernetes) = tokio::join!(ours, kubernetes);
        println!("last failures: {ours:?}, of Kubernetes alone {kubernetes:?}");
        late.push(ours.saturating_sub(kubernetes.max(KUBE_PROXY_GATHERS) + SERVED_WITHIN));
    }
    late
}

/// All ten of a series are in time. A slice that comes just behind a round of kube-proxy's waits for the next
/// one, which is chance: such a series is taken once more. No try of either is later than that round, which
/// takes some time itself.
#[test]
fn connections_to_a_new_service_are_taken_as_soon_as_kube_proxy_can_and_never_fail_afterwards() {
    in_namespace_alone("newcomers", async |namespace| {
        let served = WorkloadPlan::new("served").served_by_kubernetes().not_injected();
        let served = served.create(&namespace).await;
        served.takes_connections().await;
        let pod = SocketAddr::new(served.pod_addresses().await[0], 8080);
        for series in ["first", "second"] {
            let late = lateness_of_ten(&namespace, series, pod).await;
            let in_next_round = KUBE_PROXY_GATHERS + SERVED_WITHIN;
            assert!(late.iter().all(|late| *late <= in_next_round), "{series}: {late:?}");
            if late.iter().all(Duration::is_zero) {
                return;
            }
        }
        panic!("a try of each series was late");
    });
}
