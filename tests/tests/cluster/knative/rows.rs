//! The rows of the contract's §2.3 that no ordinary life passes through.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::core::DynamicObject;
use serde_json::json;
use tests::cluster::{PATIENCE, TestNamespace};
use tests::eventually;
use tests::knative::PlayedKind;

use crate::app::{KnativeApp, KnativeAppPlan, controller_step, in_knative, written_condition};
use crate::status_watch::{StatusWatch, says_all};

/// Waits for status, reason and message of a condition of the `PodAutoscaler`.
async fn says(app: &KnativeApp, revision: &str, condition: &str, words: [&str; 3]) {
    eventually(&format!("{condition} is {words:?}"), PATIENCE, || async {
        let autoscaler = app.object(PlayedKind::PodAutoscaler, revision).await;
        let is_it = written_condition(&autoscaler, condition).is_some_and(|found| says_all(found, words));
        if is_it { Ok(()) } else { Err(autoscaler["status"].to_string()) }
    })
    .await;
}

/// Rows `SKSReady` Unknown `NotReady`, with both of its messages. Deciding goes on meanwhile.
#[test]
fn a_controller_that_stands_still_keeps_the_revision_unready_and_fails_nothing() {
    in_knative("knative-still", async |namespace| {
        let revision = KnativeApp::revision(1);
        controller_step(&namespace, "services", Some("still")).await;
        controller_step(&namespace, "endpoints", Some("still")).await;
        let app = KnativeAppPlan::default().apply(&namespace).await;
        let watch = StatusWatch::begin(&app, &revision);
        says(&app, &revision, "SKSReady", ["Unknown", "NotReady", "No Private Service Name"]).await;

        controller_step(&namespace, "services", None).await;
        says(&app, &revision, "SKSReady", ["Unknown", "NotReady", "K8s Service is not ready"]).await;

        controller_step(&namespace, "endpoints", None).await;
        app.is_ready(1).await;
        app.reaches(PlayedKind::PodAutoscaler, &revision, "SKSReady", ["True", ""]).await;
        watch.end().assert_well_formed();
    });
}

/// Row Active False `TimedOut`: the first start has the progress deadline and 30 s. The controller fails the
/// revision by it.
#[test]
fn a_start_that_never_ends_times_out_and_fails_the_revision() {
    in_knative("knative-stuck", async |namespace| {
        let plan = KnativeAppPlan::default().arg("--start-delay-ms").arg("600000");
        let app = plan.annotated("serving.knative.dev/progress-deadline", "5s").apply(&namespace).await;
        let revision = KnativeApp::revision(1);
        let watch = StatusWatch::begin(&app, &revision);
        let queued = "Requests to the target are being buffered as resources are provisioned.";
        says(&app, &revision, "Active", ["Unknown", "Queued", queued]).await;
        app.has_count(&revision, |count| count == 0).await;
        let failed = ["False", "ProgressDeadlineExceeded"];
        app.reaches(PlayedKind::Revision, &revision, "Ready", failed).await;
        // The next handling says `NoTraffic`, so nothing but a watch sees this one for sure.
        let words = ["False", "TimedOut", "The target could not be activated."];
        watch.end().assert_said("Active", words);
    });
}

/// The row Active False `NotOwned` of the table.
#[test]
fn a_serverless_service_of_another_owner_is_left_alone() {
    in_knative("knative-foreign", async |namespace| {
        let revision = KnativeApp::revision(1);
        let foreign = json!({
            "apiVersion": "networking.internal.knative.dev/v1alpha1", "kind": "ServerlessService",
            "metadata": {"name": revision},
            "spec": {
                "mode": "Serve", "protocolType": "http1", "numActivators": 7,
                "objectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
            },
        });
        let foreign: DynamicObject = serde_json::from_value(foreign).expect("an object");
        let api = namespace.api_of(&PlayedKind::ServerlessService.resource());
        api.create(&PostParams::default(), &foreign).await.expect("it is made");
        let app = KnativeAppPlan::default().apply(&namespace).await;
        let message = format!("There is an existing ServerlessService \"{revision}\" that we do not own.");
        says(&app, &revision, "Active", ["False", "NotOwned", &message]).await;
        let left = app.object(PlayedKind::ServerlessService, &revision).await;
        assert_eq!(left["spec"]["numActivators"], 7, "{left}");
        assert_eq!(app.condition(PlayedKind::Revision, &revision, "Ready").await[0], "Unknown");
    });
}

async fn pods(namespace: &TestNamespace) -> usize {
    namespace.api::<Pod>().list(&ListParams::default()).await.expect("pods can be listed").items.len()
}

/// Row need 0: inactive and initialized at once, without any pod; the first request makes one.
#[test]
fn a_revision_that_begins_at_zero_is_initialized_without_a_pod() {
    in_knative("knative-none", async |namespace| {
        let app = KnativeAppPlan::default().scaled("initial-scale", "0").apply(&namespace).await;
        let revision = KnativeApp::revision(1);
        let watch = StatusWatch::begin(&app, &revision);
        app.is_ready(1).await;
        app.reaches(PlayedKind::PodAutoscaler, &revision, "Active", ["False", "NoTraffic"]).await;
        assert_eq!(pods(&namespace).await, 0);
        watch.end().assert_well_formed();
        app.is_served_by_activators(&revision).await;
        app.load(&revision).await.one().await.assert_all_answered();
    });
}

/// `need` is the initial scale until it is achieved once, and does not hold pods afterwards.
#[test]
fn an_initial_scale_of_two_needs_two_pods_once() {
    in_knative("knative-two", async |namespace| {
        let app = KnativeAppPlan::default().scaled("initial-scale", "2").apply(&namespace).await;
        let revision = KnativeApp::revision(1);
        app.is_ready(1).await;
        let read = app.object(PlayedKind::Revision, &revision).await;
        assert_eq!(read["status"]["actualReplicas"], 2, "{}", read["status"]);
        app.has_count(&revision, |count| count == 0).await;
    });
}
