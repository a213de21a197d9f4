//! Knative's manifest alone undoes ebb's part, and an upgrade of it brings ebb along: the contract's §7.4.

use tests::cluster::kubectl;

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};
use crate::installing::{apply, folder, restoring_ebb_on_failure};

/// The way back and in again. Without an autoscaler that takes their connections the activators do not stay
/// ready.
async fn there_and_back(app: KnativeApp) {
    let revision = KnativeApp::revision(1);
    let load = app.load(&revision).await;
    apply("release", &["autoscaler"]).await;
    // It ends with an error where anything differs.
    kubectl(&["diff", "-k", &folder("release")]).await;
    load.one().await.assert_all_answered();

    apply("overlay", &["autoscaler", "activator"]).await;
    kubectl(&["diff", "-k", &folder("overlay")]).await;
    load.with_own_connections().one().await.assert_all_answered();
    app.annotate(&revision, "autoscaling.knative.dev/min-scale", "2").await;
    app.has_count(&revision, |count| count == 2).await;
}

#[test]
fn knatives_manifest_takes_ebb_away_without_a_trace_and_ebb_comes_in_again() {
    in_knative("knative-back", async |namespace| {
        let app = KnativeAppPlan::default().scaled("min-scale", "1").apply(&namespace).await;
        app.is_ready(1).await;
        restoring_ebb_on_failure(there_and_back(app)).await;
    });
}
