//! `kubectl ebb check --knative` on this installation, and with a setting that stands in the way.

use tests::cluster::{KNATIVE_SYSTEM, PATIENCE, TestNamespace, ebb, text};
use tests::eventually;

use crate::app::{in_knative, write_setting};

async fn checked(namespace: &TestNamespace, is_well: bool, expected: &[&str]) -> Result<(), String> {
    let output = ebb(namespace, &["check", "--knative"]).await;
    let said = text(&output);
    let is_said = expected.iter().all(|line| said.contains(line));
    if is_said && output.status.success() == is_well { Ok(()) } else { Err(said) }
}

#[test]
fn a_good_installation_is_well_and_a_setting_in_the_way_is_named() {
    in_knative("knative-check", async |namespace| {
        let well = [
            "ok       the cluster serves podautoscalers.autoscaling.internal.knative.dev in version v1alpha1",
            "ok       Knative 1.23.0 is 1.21 or newer",
            "ok       the autoscaler is ebb's, beside Knative's activators",
            "ok       each bucket of revisions has an autoscaler: autoscaler-",
            &format!("ok       service account ebb-autoscaler in {KNATIVE_SYSTEM} may do what it must"),
        ];
        eventually("all is well", PATIENCE, || checked(&namespace, true, &well)).await;
        write_setting(&namespace, "config-network", "system-internal-tls", Some("Enabled")).await;
        let wrong = ["WRONG    config-network asks for nothing", "system-internal-tls is \"Enabled\""];
        eventually("the setting is named", PATIENCE, || checked(&namespace, false, &wrong)).await;
        write_setting(&namespace, "config-network", "system-internal-tls", Some("Disabled")).await;
    });
}
