//! Are rights that RBAC cannot limit any further narrowed by what the API server checks of each write? The
//! component `narrow-rights` does that, and is optional.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;

use super::findings::CheckFinding;
use crate::cluster::Cluster;

/// Each policy with what it narrows; its binding has the same name.
const POLICIES: [(&str, &str); 2] = [
    ("ebb-pods-patch", "the autoscaler changes nothing of a pod but its deletion cost"),
    ("ebb-webhooks-update", "the injector changes nothing of its webhooks but their caBundle"),
];

/// What is known of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PolicyState {
    InForce,
    /// The policy, or its binding, is not there.
    Missing,
}

/// One finding for each policy.
pub(super) async fn check(cluster: &Cluster) -> Vec<CheckFinding> {
    let mut findings = Vec::new();
    for (name, promise) in POLICIES {
        let what = format!("{promise} (ValidatingAdmissionPolicy {name})");
        findings.push(match state(cluster, name).await {
            Ok(state) => verdict(what, state),
            Err(error) => CheckFinding::unknown(what, error.to_string()),
        });
    }
    findings
}

/// An API server before 1.30 does not know the kind, and says so as it does of an object that is not there.
async fn state(cluster: &Cluster, name: &str) -> Result<PolicyState, kube::Error> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cluster.client.clone());
    let is_in_force = policies.get_opt(name).await?.is_some() && bindings.get_opt(name).await?.is_some();
    Ok(if is_in_force { PolicyState::InForce } else { PolicyState::Missing })
}

fn verdict(what: String, state: PolicyState) -> CheckFinding {
    match state {
        PolicyState::InForce => CheckFinding::well(what),
        PolicyState::Missing => CheckFinding::remark(
            what,
            "it is not there, so who takes that program over may do more; deploy/components/narrow-rights brings it (Kubernetes 1.30 or newer)".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicySpec;
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::check::findings::CheckFindings;

    const MANIFEST: &str = include_str!("../../../../deploy/components/narrow-rights/policies.yaml");

    #[test]
    fn a_policy_that_is_missing_is_a_remark_that_says_which_component_brings_it() {
        let mut findings = CheckFindings::default();
        findings.begin("ebb itself");
        findings.add(verdict("narrow".to_owned(), PolicyState::InForce));
        findings.add(verdict("narrow".to_owned(), PolicyState::Missing));
        let text = findings.text();
        assert!(findings.is_well(), "ebb works without it");
        assert!(
            text.contains("ok       narrow") && text.contains("deploy/components/narrow-rights"),
            "{text}"
        );
    }

    #[test]
    fn the_component_has_each_policy_with_a_binding_and_refuses_what_it_cannot_judge() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFEST).expect("YAML");
        let named = |kind: &str| -> Vec<(&str, &Value)> {
            let ours = documents.iter().filter(|document| document["kind"] == kind);
            ours.filter_map(|document| Some((document["metadata"]["name"].as_str()?, &document["spec"])))
                .collect()
        };
        let policies = named("ValidatingAdmissionPolicy");
        let bindings = named("ValidatingAdmissionPolicyBinding");
        assert_eq!((policies.len(), bindings.len()), (POLICIES.len(), POLICIES.len()));
        for ((name, _), ((policy, spec), (binding, bound))) in
            POLICIES.into_iter().zip(policies.into_iter().zip(bindings))
        {
            assert_eq!((policy, binding, bound["policyName"].as_str()), (name, name, Some(name)));
            assert_eq!(bound["validationActions"], serde_json::json!(["Deny"]));
            let spec = ValidatingAdmissionPolicySpec::deserialize(spec).expect("a policy");
            assert_eq!(spec.failure_policy.as_deref(), Some("Fail"));
            assert!(spec.validations.is_some_and(|validations| !validations.is_empty()), "{name}");
        }
    }
}
