//! One Service from apply to zero and back, beside Knative's activators: contract §1.2, §2.3, §4.4, §7.3.

use std::time::Duration;

use serde_json::Value;
use tests::cluster::succeeds;
use tests::knative::PlayedKind;

use crate::app::{KnativeApp, KnativeAppPlan, NAME, in_knative};
use crate::status_watch::{StatusWatch, assert_passes};

/// A client's request that takes long enough to be in flight with others.
const SLOW: &str = "/?sleep=300";
const CLIENTS: usize = 20;
const LOAD: Duration = Duration::from_secs(12);
const TRUE: [&str; 2] = ["True", ""];
const NO_TRAFFIC: [&str; 2] = ["False", "NoTraffic"];
const QUEUED: [&str; 2] = ["Unknown", "Queued"];

/// The whole life of a revision whose requests go one way; `is_direct` says which way while pods are there.
async fn live(app: &KnativeApp, is_direct: bool) {
    let revision = KnativeApp::revision(1);
    let watch = StatusWatch::begin(app, &revision);
    app.is_ready(1).await;
    assert_ready(app, &revision).await;
    if is_direct {
        app.is_served_by_pods(&revision).await;
    } else {
        app.is_served_by_activators(&revision).await;
    }

    let load = app.load(&revision).await;
    // Ten in flight for each pod, of which 70 % are aimed at.
    let slow = load.clone().path(SLOW);
    let (loaded, ()) =
        tokio::join!(slow.closed_loop(CLIENTS, LOAD), app.has_count(&revision, |count| count >= 3));
    loaded.assert_nothing_missing();

    // By the same commands as for a Deployment.
    let shown = succeeds(&app.namespace, &["get"]).await;
    assert!(shown.contains(&revision), "{shown}");
    for name in [revision.as_str(), NAME] {
        let explained = succeeds(&app.namespace, &["explain", name]).await;
        assert!(explained.contains(&format!("revision/{revision}")), "{name}: {explained}");
    }

    rest_at_zero(app, &revision).await;
    let woken = load.clone().with_own_connections().one().await;
    woken.assert_all_answered();
    app.reaches(PlayedKind::PodAutoscaler, &revision, "Active", TRUE).await;
    rest_at_zero(app, &revision).await;

    let seen = watch.end();
    seen.assert_well_formed();
    let active = seen.course_of("Active");
    assert_passes(&active, &[QUEUED, TRUE, NO_TRAFFIC, QUEUED, TRUE, NO_TRAFFIC]);
    assert_passes(&seen.course_of("Ready"), &[TRUE, NO_TRAFFIC, QUEUED, TRUE, NO_TRAFFIC]);
    assert_eq!(seen.course_of("ScaleTargetInitialized").last(), Some(&TRUE.map(str::to_owned)));
}

/// A ready revision: names and counts stand there in the moment of readiness, in one write.
async fn assert_ready(app: &KnativeApp, revision: &str) {
    let autoscaler = app.object(PlayedKind::PodAutoscaler, revision).await;
    let serverless = app.object(PlayedKind::ServerlessService, revision).await;
    let status = &autoscaler["status"];
    assert_eq!(status["serviceName"], serverless["status"]["serviceName"], "{status}");
    assert_eq!(status["metricsServiceName"], serverless["status"]["privateServiceName"], "{status}");
    assert!(autoscaler.pointer("/metadata/finalizers").is_none_or(Value::is_null), "{autoscaler}");
    let owners = &serverless["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["uid"], autoscaler["metadata"]["uid"], "{owners}");
    assert_eq!([&owners[0]["controller"], &owners[0]["blockOwnerDeletion"]], [true, true], "{owners}");
    let target = &serverless["spec"]["objectRef"];
    assert_eq!(*target, autoscaler["spec"]["scaleTargetRef"], "{target}");
    let read = app.object(PlayedKind::Revision, revision).await;
    assert_eq!(read["status"]["actualReplicas"], 1, "{}", read["status"]);
}

/// At zero the autoscaler says `NoTraffic`, the activators answer, and revision and Service stay ready.
async fn rest_at_zero(app: &KnativeApp, revision: &str) {
    app.has_count(revision, |count| count == 0).await;
    for condition in ["Active", "Ready"] {
        app.reaches(PlayedKind::PodAutoscaler, revision, condition, NO_TRAFFIC).await;
    }
    app.is_served_by_activators(revision).await;
    let serverless = app.object(PlayedKind::ServerlessService, revision).await;
    assert_eq!(serverless["spec"]["mode"], "Proxy", "{}", serverless["spec"]);
    assert_eq!(app.condition(PlayedKind::Revision, revision, "Ready").await, TRUE);
    assert_eq!(app.service_condition().await, TRUE);
}

#[test]
fn a_service_behind_activators_lives_from_apply_to_zero_and_back() {
    in_knative("knative-life", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("target", "10").scaled("target-burst-capacity", "-1");
        live(&plan.apply(&namespace).await, false).await;
    });
}

/// Between clients and pods no activator sees the load: Knative's queue-proxies are asked for it.
#[test]
fn a_service_that_clients_reach_directly_lives_from_apply_to_zero_and_back() {
    in_knative("knative-direct", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("target", "10").scaled("target-burst-capacity", "0");
        live(&plan.apply(&namespace).await, true).await;
    });
}

/// Class hpa is another controller's: nothing of such a revision is written.
#[test]
fn a_pod_autoscaler_of_another_class_is_not_written() {
    in_knative("knative-class", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("class", "hpa.autoscaling.knative.dev");
        plan.scaled("metric", "cpu").apply(&namespace).await;
        namespace
            .beside("knative-own", async |other| {
                // By the time that this one is ready, the other would have been written.
                KnativeAppPlan::default().apply(&other).await.is_ready(1).await;
            })
            .await;
        let app = KnativeApp { namespace, name: NAME.to_owned() };
        let revision = KnativeApp::revision(1);
        let autoscaler = app.object(PlayedKind::PodAutoscaler, &revision).await;
        assert!(autoscaler.is_object() && autoscaler.get("status").is_none(), "{autoscaler}");
        assert_eq!(app.object(PlayedKind::ServerlessService, &revision).await, Value::Null);
    });
}
