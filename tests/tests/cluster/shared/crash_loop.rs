//! Workloads whose pods fail: clients are told so instead of waiting for ever, and a workload that is mended
//! serves again.

use std::time::Duration;

use serde_json::json;
use tests::bench::clock;
use tests::client::{Outcome, whole_answer};
use tests::cluster::{PATIENCE, Workload, WorkloadPlan, in_namespace, succeeds};
use tests::eventually;

/// Kubelet's back-off before the third failure is 10 s, and before the fourth 20 s.
const THIRD_FAILURE_WITHIN: Duration = Duration::from_secs(90);
/// Longer than the windows and the grace period before zero.
const AT_REST_AFTER: Duration = Duration::from_secs(50);

/// The answer to a request that is refused, in so long.
async fn refusal(app: &Workload, within: Duration) -> String {
    let answer = tokio::time::timeout(within, whole_answer(app.at(80), app.name(), "/")).await;
    let answer = answer.expect("the request is answered in time").expect("nothing cuts it off");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("ebb-error: no-ready-pod"), "{answer}");
    answer
}

async fn has_event_of_both(app: &Workload, reason: &str) {
    eventually(&format!("Events {reason} of both"), PATIENCE, || async {
        let events = app.events().await;
        let told = events.iter().filter(|event| event.reason.as_deref() == Some(reason));
        let kinds: Vec<_> = told.filter_map(|event| event.regarding.as_ref()?.kind.clone()).collect();
        let both = ["Deployment", "Service"].iter().all(|kind| kinds.iter().any(|told| told == kind));
        if both { Ok(()) } else { Err(format!("{kinds:?}")) }
    })
    .await;
}

#[test]
fn a_request_to_an_app_that_only_crashes_is_refused_with_its_third_failure_and_not_before() {
    in_namespace("crash-loop", async |namespace| {
        let plan = WorkloadPlan::new("crashes").app_args(&["--exit", "3"]);
        let app = plan.app_field("terminationMessagePolicy", json!("FallbackToLogsOnError"));
        let app = app.create(&namespace).await;
        app.takes_connections().await;
        // Before the third failure the request waits, and people read why.
        let explained = eventually("explain tells of a failure before the third", PATIENCE, || async {
            let said = succeeds(&namespace, &["explain", app.name(), "-o", "json"]).await;
            let texts = ["exit code 3 (Error)", "from the third on requests are refused"];
            if texts.iter().all(|text| said.contains(*text)) { Ok(()) } else { Err(said) }
        });
        let (answer, ()) = tokio::join!(refusal(&app, THIRD_FAILURE_WITHIN), explained);
        assert!(app.app_restarts().await >= 2, "{answer}");
        for text in ["has failed 3 times or more", "container app ended with exit code 3 (Error)"] {
            assert!(answer.contains(text), "{text:?} is missing in {answer}");
        }
        has_event_of_both(&app, "CrashLoop").await;
        // While requests come, one pod is wanted, and never a second one.
        let begun = clock::now();
        while clock::since(begun) < AT_REST_AFTER {
            let tally = app.load().paced(10, Duration::from_millis(100)).await;
            let refused = Outcome::Refused(504, "no-ready-pod".to_owned());
            assert_eq!(tally.outcomes.get(&refused), Some(&10), "{:?}", tally.outcomes);
            assert_eq!(app.count().await, 1);
        }
        app.set_app_args(&["--bind", "0.0.0.0"]).await;
        eventually("an answer", PATIENCE, || async {
            let tally = app.load().one().await;
            if tally.answered() == 1 { Ok(()) } else { Err(format!("{:?}", tally.outcomes)) }
        })
        .await;
        app.load().burst(5).await.assert_all_answered();
    });
}

#[test]
fn a_request_to_a_workload_whose_image_has_no_name_is_refused_after_half_a_minute() {
    in_namespace("no-image", async |namespace| {
        let app =
            WorkloadPlan::new("imageless").app_field("image", json!("NO NAME")).create(&namespace).await;
        app.takes_connections().await;
        let answer = refusal(&app, THIRD_FAILURE_WITHIN).await;
        assert!(answer.contains("InvalidImageName"), "{answer}");
        has_event_of_both(&app, "ContainerNotStartable").await;
    });
}
