//! Clients that wait for each answer ask for the pods that they need, and for no more while the path changes
//! under them.

use std::time::Duration;

use tests::{ConfigMap, Ebb, Service};

/// A count that was raised stays so for a whole stable window, so no look misses one.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const CLIENTS: usize = 20;
const DOCUMENT: &str = "{minReplicas: 1, maxReplicas: 20, metrics: [\
    {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 5}}}]}";

/// One pod has room for a burst of five, and serves directly until more than that come.
fn service(name: &str) -> Service {
    Service::new(name).scaling("target-burst-capacity", "5")
}

fn with_target(service: Service) -> Service {
    service.scaling("target", "5").scaling("target-utilization-percentage", "100").scaling("min-scale", "1")
}

/// Meets pods that serve directly with all clients at once, and watches what is wanted.
async fn check(ebb: &Ebb, name: &str) {
    ebb.until(name, "a pod that serves directly", |revision| {
        revision.ready() == 1 && revision.field("routing") == "direct"
    })
    .await;
    let load = ebb.load(name).path("/?sleep=300");
    let traffic = tokio::spawn(async move { load.closed_loop(CLIENTS, Duration::from_secs(12)).await });
    let (mut most, mut has_changed_path) = (0, false);
    while !traffic.is_finished() {
        let revision = ebb.revision(name).await.expect("ebb answers");
        most = most.max(revision.wanted());
        has_changed_path |= revision.field("routing") == "through_activator";
        assert!(most <= 5, "{name}: {most} pods were wanted:\n{}", revision.decisions());
        tokio::time::sleep(LOOK_EVERY).await;
    }
    traffic.await.expect("the client does not panic").assert_all_answered();
    assert!(has_changed_path, "{name}: the burst found room");
    assert!(most >= 4, "{name}: only {most} pods were wanted");
}

#[tokio::test]
async fn twenty_clients_that_bring_an_activator_into_the_path_want_at_most_one_pod_too_many() {
    let services = [
        with_target(service("crowd")),
        with_target(service("short-windows")).scaling("window", "6s"),
        service("class-hpa").annotation("ebb.dev/hpa", DOCUMENT),
    ];
    let ebb = Ebb::up(&services, &ConfigMap::default().set("routing-dwell", "0s")).await;
    for name in ["crowd", "short-windows", "class-hpa"] {
        check(&ebb, name).await;
    }
}
