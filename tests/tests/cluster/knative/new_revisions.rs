//! Live changes of a revision, and a new revision that takes over: the contract's §1.2 and §2.1.

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};

const MIN_SCALE: &str = "autoscaling.knative.dev/min-scale";

#[test]
fn an_unreachable_revision_goes_to_zero_against_its_min_scale() {
    in_knative("knative-next", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("min-scale", "1");
        let app = plan.clone().apply(&namespace).await;
        app.is_ready(1).await;
        let (first, second) = (KnativeApp::revision(1), KnativeApp::revision(2));
        // A live edit of a revision's annotation arrives as a change of its autoscaler.
        app.annotate(&first, MIN_SCALE, "2").await;
        app.has_count(&first, |count| count == 2).await;

        app.change(&plan.arg("--finish")).await;
        app.is_ready(2).await;
        app.has_count(&first, |count| count == 0).await;
        app.load(&second).await.one().await.assert_all_answered();
        assert_eq!(app.count(&second).await, 1, "a reachable revision keeps its min-scale");
    });
}
