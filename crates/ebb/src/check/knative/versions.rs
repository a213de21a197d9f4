//! Is this Knative one that ebb knows? Its kinds carry no promise (v1alpha1), so versions are checked.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use settings::{KNATIVE_MINOR_MIN, KNATIVE_MINOR_TESTED, KNATIVE_VERSION_LABEL, KnativeRelease};

use crate::check::findings::CheckFinding;

/// The kinds that ebb reads or writes, or that its commands show, each in one version.
pub(crate) const KINDS: [(&str, &str); 4] = [
    ("podautoscalers.autoscaling.internal.knative.dev", "v1alpha1"),
    ("serverlessservices.networking.internal.knative.dev", "v1alpha1"),
    ("services.serving.knative.dev", "v1"),
    ("revisions.serving.knative.dev", "v1"),
];

pub(crate) fn kind_is_served(name: &str, version: &str) -> String {
    format!("the cluster serves {name} in version {version}")
}

/// The verdict about one kind.
pub(crate) fn of_kind(name: &str, version: &str, found: Option<&CustomResourceDefinition>) -> CheckFinding {
    let what = kind_is_served(name, version);
    let Some(found) = found else {
        let advice = "the kind is not there: install Knative Serving (its serving-crds.yaml comes first)";
        return CheckFinding::wrong(what, advice.to_owned());
    };
    let is_served = found.spec.versions.iter().any(|one| one.served && one.name == version);
    CheckFinding::of(is_served, what, || {
        let others = found.spec.versions.iter().filter(|one| one.served);
        let others: Vec<&str> = others.map(|one| one.name.as_str()).collect();
        format!("it serves {} alone; this ebb is older or newer than the installation", others.join(", "))
    })
}

/// The verdict about the release that the controller says it is of.
pub(crate) fn of_release(controller: Option<&Deployment>) -> CheckFinding {
    let labels = controller.and_then(|found| found.metadata.labels.as_ref());
    let label = labels.and_then(|labels| labels.get(KNATIVE_VERSION_LABEL));
    let text = label.map(String::as_str).unwrap_or_default();
    let what = format!("Knative {text} is 1.{KNATIVE_MINOR_MIN} or newer");
    match KnativeRelease::of(text) {
        KnativeRelease::TooOld => CheckFinding::wrong(what, "upgrade Knative before ebb comes in".to_owned()),
        KnativeRelease::Known => CheckFinding::well(what),
        KnativeRelease::Untested => CheckFinding::remark(
            what,
            format!(
                "ebb was tested with Knative up to 1.{KNATIVE_MINOR_TESTED} (docs/operate/knative.md has the table); try this one on a cluster of tests first"
            ),
        ),
        KnativeRelease::Unsaid => {
            let why = format!("deployment/controller says {text:?} in {KNATIVE_VERSION_LABEL}");
            CheckFinding::unknown(format!("Knative is 1.{KNATIVE_MINOR_MIN} or newer"), why)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::findings::tests::text_of;

    #[test]
    fn old_releases_are_refused_and_newer_ones_are_a_remark() {
        let of = |version: &str| {
            let controller = json!({"metadata": {"labels": {KNATIVE_VERSION_LABEL: version}}});
            text_of(of_release(Some(&serde_json::from_value(controller).expect("a Deployment"))))
        };
        for (version, expected) in [
            ("1.20.4", "WRONG    Knative 1.20.4 is"),
            ("1.21.0", "ok       Knative 1.21.0 is"),
            ("v1.23.1", "ok       Knative v1.23.1 is"),
            ("1.24.0", "remark   Knative 1.24.0 is"),
            ("20261101-abc", "unknown  Knative is 1.21 or newer"),
        ] {
            assert!(of(version).contains(expected), "{version}: {}", of(version));
        }
        assert!(text_of(of_release(None)).contains("unknown"), "without a controller no version is known");
    }

    #[test]
    fn a_kind_has_to_be_served_in_the_version_that_ebb_knows() {
        let (name, version) = KINDS[0];
        let kind = |served: &str| {
            let scope = json!({
                "group": "g", "names": {"kind": "K", "plural": "k"}, "scope": "Namespaced",
                "versions": [{"name": served, "served": true, "storage": true}],
            });
            serde_json::from_value::<CustomResourceDefinition>(json!({"metadata": {}, "spec": scope}))
                .expect("a definition")
        };
        assert!(
            text_of(of_kind(name, version, Some(&kind("v1alpha1")))).contains("ok       the cluster serves")
        );
        assert!(text_of(of_kind(name, version, Some(&kind("v1")))).contains("it serves v1 alone"));
        assert!(text_of(of_kind(name, version, None)).contains("install Knative Serving"));
    }
}
