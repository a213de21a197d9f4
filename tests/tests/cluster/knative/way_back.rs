//! Knative's manifest alone undoes ebb's part, and an upgrade of it brings ebb along: the contract's §7.4.

use tests::cluster::{KNATIVE_SYSTEM, kubectl};

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};
use crate::installing::{apply, folder, restoring_ebb_on_failure};

/// The file of the next release in the place of the present one, until it is dropped.
struct NextRelease {
    file: String,
    present: String,
}

impl NextRelease {
    fn begin() -> Self {
        let file = format!("{}/serving-core.yaml", folder("release"));
        let present = std::fs::read_to_string(&file).expect("the release's file is there");
        std::fs::write(&file, present.replace("1.23.0", "1.23.1")).expect("it can be written");
        Self { file, present }
    }
}

impl Drop for NextRelease {
    fn drop(&mut self) {
        // The tests after this one say so if it fails.
        let _ = std::fs::write(&self.file, &self.present);
    }
}

/// One `apply` of the same overlay over the next release brings that, with ebb's programs in place.
async fn upgraded_underneath() {
    let next = NextRelease::begin();
    apply("overlay", &["autoscaler", "activator"]).await;
    let shown =
        r"jsonpath={.metadata.labels.app\.kubernetes\.io/version} {.spec.template.spec.containers[0].image}";
    let found = kubectl(&["-n", KNATIVE_SYSTEM, "get", "deployment/autoscaler", "-o", shown]).await;
    kubectl(&["diff", "-k", &folder("overlay")]).await;
    drop(next);
    apply("overlay", &["autoscaler", "activator"]).await;
    assert_eq!(found, "1.23.1 ebb:test");
}

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
    upgraded_underneath().await;
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
