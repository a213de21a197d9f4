//! Pods end under load, whatever their apps do when they are to: no request is lost.

use std::time::Duration;

use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;

/// Deletes the only pod of an app that takes a second for each request, under load.
async fn is_ended_without_loss(namespace: TestNamespace, name: &str, hook: Option<Value>, args: &[&str]) {
    let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", "1").app_args(args);
    let is_kept = hook.as_ref().is_some_and(|hook| hook.get("sleep").is_none());
    let plan = match hook {
        Some(hook) => plan.app_field("lifecycle", json!({"preStop": hook})),
        None => plan,
    };
    let app = plan.create(&namespace).await;
    app.has_pods(1).await;
    if is_kept {
        app.has_event("KeptHook").await;
    }
    let load = app.load().path("/?sleep=1000");
    let traffic = tokio::spawn(async move { load.steady(10, Duration::from_secs(20)).await });
    // As many as there will be at once are under way.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let deleted = app.delete_a_pod().await;
    let tally = traffic.await.expect("the client does not panic");
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{name}: {:?}", tally.outcomes);
    eventually(&format!("{deleted} is gone"), PATIENCE, || async {
        let present = app.pod_names().await;
        if present.contains(&deleted) { Err(format!("{present:?}")) } else { Ok(()) }
    })
    .await;
}

#[test]
fn a_pod_without_a_hook_or_with_one_that_sleeps_ends_when_its_requests_have() {
    in_namespace("replaced", async |namespace| {
        let sleep = json!({"sleep": {"seconds": 1}});
        tokio::join!(
            is_ended_without_loss(namespace.clone(), "none", None, &[]),
            is_ended_without_loss(namespace.clone(), "sleep", Some(sleep), &[]),
        );
    });
}

/// Hooks of the app's own that do something are kept: the app is told to end when they have. These take as
/// long as a drain.
#[test]
fn a_pod_whose_app_has_a_hook_of_its_own_keeps_it_and_loses_nothing() {
    in_namespace("kept", async |namespace| {
        let exec = json!({"exec": {"command": ["test-app", "--pause-ms", "12000"]}});
        let http = json!({"httpGet": {"path": "/?sleep=12000", "port": 8080}});
        tokio::join!(
            is_ended_without_loss(namespace.clone(), "exec", Some(exec), &[]),
            is_ended_without_loss(namespace.clone(), "http", Some(http), &[]),
        );
    });
}

#[test]
fn an_app_that_ignores_term_is_killed_when_its_requests_have_ended() {
    in_namespace("ignores", async |namespace| {
        is_ended_without_loss(namespace, "ignores", None, &["--ignore-term"]).await;
    });
}
