//! The last pod goes once activators provably answer: the contract's §4.4 and §4.5.

use std::time::Duration;

use tests::cluster::PATIENCE;
use tests::knative::PlayedKind;
use tests::{asked_until, eventually};

use crate::app::{KnativeApp, KnativeAppPlan, controller_step, in_knative};

/// Longer than the stable window and the grace period of the settings together.
const LONG_ENOUGH: Duration = Duration::from_secs(18);

#[test]
fn the_last_pod_stays_while_the_controller_has_not_put_activators_in_its_place() {
    in_knative("knative-path", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("target-burst-capacity", "0");
        let app = plan.apply(&namespace).await;
        let revision = KnativeApp::revision(1);
        app.is_ready(1).await;
        app.is_served_by_pods(&revision).await;

        controller_step(&namespace, "endpoints", Some("still")).await;
        eventually("ebb asks for activators", PATIENCE, || async {
            let serverless = app.object(PlayedKind::ServerlessService, &revision).await;
            let is_asked = serverless["spec"]["mode"] == "Proxy";
            if is_asked { Ok(()) } else { Err(serverless["spec"].to_string()) }
        })
        .await;
        // What must not happen cannot be waited for; the time is longer than all waits of the settings.
        let ended = asked_until(LONG_ENOUGH, || async {
            let count = app.count(&revision).await;
            if count == 0 { Ok(()) } else { Err(format!("{count} pods are wanted")) }
        })
        .await;
        assert!(ended.is_err(), "requests still reach the last pod, and it was ended");

        controller_step(&namespace, "endpoints", None).await;
        app.has_count(&revision, |count| count == 0).await;
        app.load(&revision).await.one().await.assert_all_answered();
    });
}
