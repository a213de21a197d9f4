//! Each port of a Service is its own, by whatever name it is called: through activators, direct, renamed, and
//! after it was another Service's.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tests::bench::clock;
use tests::client::{Outcome, Unanswered, whole_answer};
use tests::cluster::{PATIENCE, Workload, WorkloadPlan, in_namespace};
use tests::eventually;
use tokio::net::TcpStream;

/// How much later than the API server a node knows of a slice, at most: twice what `node-files` sets for
/// kube-proxy, and its work.
const NODE_HEARS_WITHIN: Duration = Duration::from_millis(300);

/// What a request by that name was answered: the status, the app's port, and its pod.
async fn ask(target: SocketAddr, host: &str) -> (u16, String, String) {
    let answer = tokio::time::timeout(PATIENCE, whole_answer(target, host, "/")).await;
    let answer = answer.expect("an answer in time").expect("an answer");
    let header = |name: &str| {
        let mut lines = answer.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, header("x-port").unwrap_or_default(), header("x-pod").unwrap_or_default())
}

async fn has_port_named(workload: &Workload, name: &str) {
    eventually(&format!("its slices name a port {name}"), PATIENCE, || async {
        let slices = workload.slices().await;
        let ports = slices.into_iter().filter(|slice| !slice.endpoints.is_empty());
        let names: Vec<_> =
            ports.flat_map(|slice| slice.ports.unwrap_or_default()).filter_map(|port| port.name).collect();
        if names.iter().any(|found| found == name) { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}

#[test]
fn each_port_of_a_service_leads_to_its_own_by_any_name() {
    in_namespace("ports", async |namespace| {
        let plan = WorkloadPlan::new("hello").port("more", 81, json!("more"));
        let hello = plan.create(&namespace).await;
        hello.has_pods(0).await;
        // Held by activators until there is a pod, then direct.
        for what in ["from zero", "again"] {
            for (port, app) in [(81, "9090"), (80, "8080")] {
                for host in ["hello", "shop.example.com", "10.0.0.1:1234"] {
                    let (status, at, pod) = ask(hello.at(port), host).await;
                    assert_eq!((status, at.as_str()), (200, app), "{what}, {host}");
                    assert!(pod.starts_with("hello-"), "{pod}");
                }
            }
            hello.has_pods(1).await;
        }
        assert_eq!(hello.activator_ports().await.len(), 2);
    });
}

#[test]
fn two_services_of_one_workload_have_ports_of_their_own() {
    in_namespace("two", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        let other = WorkloadPlan::new("other").port("more", 81, json!(9090));
        let other = other.create_service_of(&namespace, &hello).await;
        hello.has_pods(0).await;
        let (one, two) = (hello.activator_ports().await, other.activator_ports().await);
        assert_eq!((one.len(), two.len()), (1, 2));
        assert!(one.iter().all(|port| !two.contains(port)), "{one:?} {two:?}");
        assert_eq!(ask(other.at(81), "other").await.1, "9090");
        assert_eq!(ask(hello.at(80), "hello").await.1, "8080");
    });
}

#[test]
fn a_port_that_is_renamed_added_and_removed_under_load_loses_nothing() {
    in_namespace("renamed", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        let before = hello.activator_ports().await;
        let load = hello.load();
        let traffic = tokio::spawn(async move { load.steady(40, Duration::from_secs(12)).await });
        let renamed_after = clock::now();
        hello.set_service_ports(&[("web".to_owned(), 80, json!("http"))]).await;
        has_port_named(&hello, "web").await;
        let renamed_by = clock::now() + NODE_HEARS_WITHIN;
        assert_eq!(hello.activator_ports().await, before, "requests may be on their way there");
        hello
            .set_service_ports(&[
                ("web".to_owned(), 80, json!("http")),
                ("added".to_owned(), 81, json!("more")),
            ])
            .await;
        has_port_named(&hello, "added").await;
        let added = hello.load_at(81).steady(20, Duration::from_secs(1)).await;
        added.assert_none_lost();
        assert!(added.answered() > 0, "{:?}", added.outcomes);
        hello.set_service_ports(&[("web".to_owned(), 80, json!("http"))]).await;
        let mut tally = traffic.await.expect("the client does not panic");
        // Until the slices have the new name too, a node takes the port for one without endpoints.
        let by_the_node = |request: &Unanswered| {
            request.outcome == Outcome::ConnectionRefused
                && (renamed_after..renamed_by).contains(&request.begun)
        };
        tally.sent -= tally.unanswered.iter().filter(|&request| by_the_node(request)).count();
        tally.assert_nothing_missing();
    });
}

/// The queue-proxy's usual numbers are the app's: it listens elsewhere, and is called and probed there.
#[test]
fn a_pod_whose_app_has_the_queue_proxys_ports_serves_and_ends_without_loss() {
    in_namespace("moved", async |namespace| {
        let listens = json!([{"name": "PORT", "value": "8080,8012,8022,8024,19091"}]);
        let mut ports = vec![json!({"name": "http", "containerPort": 8080})];
        ports.extend([8012, 8022, 8024, 19091].map(|port| json!({"containerPort": port})));
        let plan = WorkloadPlan::new("moved")
            .app_field("env", listens)
            .app_field("ports", json!(ports))
            .template_annotated("ebb.dev/plain-ports", "8012,8022,8024,19091");
        let moved = plan.create(&namespace).await;
        // Without its link it would be kept for want of news.
        moved.has_pods(0).await;
        moved.load().burst(5).await.assert_all_answered();
        let load = moved.load().path("/?sleep=500");
        let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(12)).await });
        tokio::time::sleep(Duration::from_secs(2)).await;
        moved.delete_a_pod().await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
        moved.has_pods(0).await;
    });
}

#[test]
fn a_port_that_nobody_declared_is_served_direct_and_keeps_the_count() {
    in_namespace("undeclared", async |namespace| {
        let plan = WorkloadPlan::new("hello").port("bare", 82, json!(7070));
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        has_port_named(&hello, "bare").await;
        hello.takes_connections_at(82).await;
        assert_eq!(ask(hello.at(82), "hello").await.1, "7070");
        let tally = hello.load().steady(2, Duration::from_secs(20)).await;
        tally.assert_none_lost();
        // Three stable windows, and no request had come: it would have gone.
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(hello.count().await, 1);
        // Without that port it goes.
        hello.set_service_ports(&[("http".to_owned(), 80, json!(8080))]).await;
        hello.has_pods(0).await;
    });
}

#[test]
fn a_foreign_name_or_a_former_port_never_leads_to_another_services_pods() {
    in_namespace("mine", async |namespace| {
        let mine = WorkloadPlan::new("mine").create(&namespace).await;
        let others = WorkloadPlan::new("others").create(&namespace).await;
        mine.has_pods(0).await;
        // The other one's name at my Service is mine, and at no other port of an activator any Service's.
        let theirs = format!("others.{}.svc.cluster.local", namespace.name);
        assert!(ask(mine.address, &theirs).await.2.starts_with("mine-"));
        let activators = namespace.activators().await;
        for &activator in &activators {
            assert_eq!(ask(SocketAddr::new(activator, 8012), &theirs).await.0, 404);
        }
        let [former] = others.activator_ports().await[..] else { panic!("it has one port") };
        others.delete().await;
        for &activator in &activators {
            eventually("nobody listens at a port whose Service is gone", PATIENCE, || async {
                match TcpStream::connect((activator, former)).await {
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        let later = WorkloadPlan::new("later").create(&namespace).await;
        let ports = later.activator_ports().await;
        assert!(!ports.contains(&former), "{ports:?}");
        later.takes_connections().await;
        later.load().one().await.assert_all_answered();
        for activator in activators {
            TcpStream::connect((activator, former)).await.expect_err("nobody has it yet");
        }
    });
}
