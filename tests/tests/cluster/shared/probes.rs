//! Probes of every kind: from zero to ready no request comes to an app that is not, and a pod whose app fails
//! its liveness probe serves again.

use std::time::Duration;

use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;

/// Until the app listens. A request before that would be refused.
const START_DELAY_MS: &str = "1500";

/// A command that fails until the app listens.
fn command() -> Value {
    json!({"exec": {"command": ["test-app", "--connects-to", "8080"]}, "periodSeconds": 1})
}

/// Many attempts: the app takes its time.
fn patient(mut probe: Value) -> Value {
    probe["periodSeconds"] = json!(1);
    probe["failureThreshold"] = json!(60);
    probe
}

async fn serves_from_zero(namespace: &TestNamespace, name: &str, fields: Vec<(&str, Value)>) {
    let mut plan = WorkloadPlan::new(name).app_args(&["--start-delay-ms", START_DELAY_MS]);
    for (field, value) in fields {
        plan = plan.app_field(field, value);
    }
    let app = plan.create(namespace).await;
    app.has_pods(0).await;
    app.load().burst(5).await.assert_all_answered();
    let steady = app.load().path("/?sleep=20").steady(10, Duration::from_secs(3)).await;
    steady.assert_all_answered();
    assert_eq!(app.app_restarts().await, 0, "{name}");
}

#[test]
fn an_app_with_a_readiness_probe_of_any_kind_serves_from_zero() {
    in_namespace("readiness", async |namespace| {
        let http = json!({"httpGet": {"path": "/ready", "port": "http"}});
        let tcp = json!({"tcpSocket": {"port": 8080}});
        let grpc = json!({"grpc": {"port": 8080}});
        tokio::join!(
            serves_from_zero(&namespace, "http", vec![("readinessProbe", http)]),
            serves_from_zero(&namespace, "tcp", vec![("readinessProbe", tcp)]),
            serves_from_zero(&namespace, "grpc", vec![("readinessProbe", grpc)]),
            serves_from_zero(&namespace, "exec", vec![("readinessProbe", command())]),
        );
    });
}

#[test]
fn an_app_with_a_startup_or_a_liveness_probe_serves_from_zero() {
    in_namespace("startup", async |namespace| {
        let startup = patient(json!({"httpGet": {"path": "/ready", "port": 8080}}));
        let liveness = patient(json!({"tcpSocket": {"port": 8080}}));
        // Liveness is asked once the app has started, so one failure may be enough to end it.
        let strict = json!({"grpc": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1});
        let both = vec![("startupProbe", patient(command())), ("livenessProbe", strict)];
        tokio::join!(
            serves_from_zero(&namespace, "startup", vec![("startupProbe", startup)]),
            serves_from_zero(&namespace, "liveness", vec![("livenessProbe", liveness)]),
            serves_from_zero(&namespace, "both", both),
        );
    });
}

/// The one that is ready last has a probe of its own, and so has what runs beside it from before.
#[test]
fn a_pod_with_init_containers_and_others_beside_its_app_serves_and_ends_without_loss() {
    in_namespace("company", async |namespace| {
        let with = |name: &str, args: &[&str], more: Value| {
            let args: Vec<&str> = ["--bind", "0.0.0.0"].iter().chain(args).copied().collect();
            let mut container = json!({"name": name, "image": "test-app:test", "args": args});
            let (Value::Object(map), Value::Object(more)) = (&mut container, more) else { unreachable!() };
            map.extend(more);
            container
        };
        let at = |port: u16| json!([{"name": "PORT", "value": port.to_string()}]);
        let listens = |port: u16| json!({"tcpSocket": {"port": port}, "periodSeconds": 1});
        let before = with("before", &["--pause-ms", "200"], json!({}));
        let proxy = with(
            "proxy",
            &[],
            json!({"restartPolicy": "Always", "env": at(5432), "ports": [{"containerPort": 5432}], "startupProbe": patient(listens(5432))}),
        );
        let mesh = with(
            "mesh",
            &["--start-delay-ms", "3000"],
            json!({"env": at(15021), "readinessProbe": listens(15021)}),
        );
        let plan = WorkloadPlan::new("company").pod_field("initContainers", json!([before, proxy]));
        let app = plan.container(mesh).through_webhook().create(&namespace).await;
        app.has_pods(0).await;
        app.load().burst(5).await.assert_all_answered();
        let load = app.load().path("/?sleep=500");
        let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(15)).await });
        tokio::time::sleep(Duration::from_secs(2)).await;
        let deleted = app.delete_a_pod().await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
        app.has_lost(&deleted).await;
    });
}

#[test]
fn an_app_that_fails_its_liveness_probe_is_started_anew_and_no_request_is_lost() {
    in_namespace("liveness", async |namespace| {
        let liveness =
            json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1});
        // Kubelet ends the container while requests come, so what becomes of those that have begun is the
        // app's affair.
        let plan = WorkloadPlan::new("fails").app_args(&["--finish"]).app_field("livenessProbe", liveness);
        let app =
            plan.annotated("autoscaling.knative.dev/target-burst-capacity", "-1").create(&namespace).await;
        app.has_pods(0).await;
        app.load().path("/fail-probes").one().await.assert_all_answered();
        let load = app.load().path("/?sleep=20").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(18)).await });
        eventually("kubelet starts it anew", PATIENCE, || async {
            let restarts = app.app_restarts().await;
            if restarts == 1 { Ok(()) } else { Err(format!("{restarts} restarts")) }
        })
        .await;
        traffic.await.expect("the client does not panic").assert_nothing_missing();
        app.load().burst(5).await.assert_all_answered();
        assert_eq!(app.app_restarts().await, 1, "once is enough");
    });
}
