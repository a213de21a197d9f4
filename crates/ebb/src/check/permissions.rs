//! May ebb's own programs do what they must? The rights are those of the manifests that this executable was
//! built with, so that one of another version says what the cluster's lacks.

use futures_util::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;

use super::findings::CheckFinding;
use crate::cluster::Cluster;

/// The programs of an installation by itself, with the place of their rights.
const MANIFESTS: [ProgramManifest; 2] = [
    ProgramManifest {
        account: "autoscaler",
        manifest: include_str!("../../../../deploy/base/autoscaler-rights.yaml"),
        applied_by: "kubectl ebb install",
    },
    ProgramManifest {
        account: "injector",
        manifest: include_str!("../../../../deploy/base/injector.yaml"),
        applied_by: "kubectl ebb install",
    },
];

/// A program by its service account, and where its rights are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramManifest {
    /// The name of the service account, in the namespace of the programs.
    pub(super) account: &'static str,
    /// The text of the manifest with its roles.
    pub(super) manifest: &'static str,
    /// The command by which a person gives the rights again.
    pub(super) applied_by: &'static str,
}

/// Something that a program must be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProgramRight {
    verb: String,
    group: String,
    /// The resource, with its subresource behind a slash.
    resource: String,
    /// `None` for all of them.
    name: Option<String>,
    place: ProgramPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramPlace {
    Everywhere,
    /// In the namespace of ebb's own programs.
    System,
}

impl std::fmt::Display for ProgramRight {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(to, ".{}", self.group)?;
        }
        self.name.iter().try_for_each(|name| write!(to, " {name}"))
    }
}

/// One finding for each program.
pub(super) async fn check(cluster: &Cluster) -> Vec<CheckFinding> {
    join_all(MANIFESTS.map(|program| of_program(cluster, program))).await
}

/// Whether the service account of a program has all rights of its manifest.
pub(super) async fn of_program(cluster: &Cluster, program: ProgramManifest) -> CheckFinding {
    let what = format!("service account {} in {} may do what it must", program.account, cluster.system);
    let rights = rights(program.manifest);
    let answers = join_all(rights.iter().map(|right| may(cluster, program.account, right))).await;
    match answers.into_iter().collect::<Result<Vec<bool>, kube::Error>>() {
        Err(error) => CheckFinding::unknown(what, error.to_string()),
        Ok(answers) => verdict(what, program.applied_by, rights.iter().zip(answers)),
    }
}

fn verdict<'r>(
    what: String,
    applied_by: &str,
    answers: impl Iterator<Item = (&'r ProgramRight, bool)>,
) -> CheckFinding {
    let missing = answers.filter(|(_, is_allowed)| !is_allowed).map(|(right, _)| right.to_string());
    let missing: Vec<String> = missing.collect();
    CheckFinding::of(missing.is_empty(), what, || {
        format!(
            "it may not {}, as after an older manifest was applied; `{applied_by}` of this version gives it its roles again",
            missing.join(", ")
        )
    })
}

/// What the roles of a manifest give.
fn rights(manifest: &str) -> Vec<ProgramRight> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(manifest).expect("what this executable was built with is YAML");
    let mut rights = Vec::new();
    for document in documents {
        let place = match document["kind"].as_str() {
            // One that gathers others' rules, which Kubernetes writes, has none of its own.
            Some("ClusterRole") if document["rules"].is_null() => continue,
            Some("ClusterRole") => ProgramPlace::Everywhere,
            Some("Role") => ProgramPlace::System,
            Some(_) | None => continue,
        };
        let rules: Vec<PolicyRule> = serde_json::from_value(document["rules"].clone())
            .expect("roles that this executable was built with have rules");
        rights.extend(rules.iter().flat_map(|rule| of_rule(rule, place)));
    }
    rights
}

/// Each that one rule gives.
fn of_rule(rule: &PolicyRule, place: ProgramPlace) -> Vec<ProgramRight> {
    let names: Vec<Option<String>> = match rule.resource_names.as_deref().unwrap_or_default() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for verb in &rule.verbs {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.extend(names.iter().map(|name| ProgramRight {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    place,
                }));
            }
        }
    }
    rights
}

async fn may(cluster: &Cluster, program: &str, right: &ProgramRight) -> Result<bool, kube::Error> {
    let system = &cluster.system;
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource.as_str(), None),
    };
    let attributes = ResourceAttributes {
        group: Some(right.group.clone()),
        name: right.name.clone(),
        namespace: (right.place == ProgramPlace::System).then(|| system.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(right.verb.clone()),
        ..ResourceAttributes::default()
    };
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{system}")];
    let spec = SubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        user: Some(format!("system:serviceaccount:{system}:{program}")),
        groups: Some([groups.as_slice(), &["system:authenticated".to_owned()]].concat()),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(cluster.client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::findings::CheckFindings;

    fn all(program: &str) -> Vec<ProgramRight> {
        let found = MANIFESTS.iter().find(|one| one.account == program).expect("there is one");
        rights(found.manifest)
    }

    #[test]
    fn rights_that_are_asked_for_are_those_of_the_manifests() {
        let has = |program: &str, text: &str, place: ProgramPlace| {
            all(program).iter().any(|right| right.to_string() == text && right.place == place)
        };
        assert!(has("autoscaler", "patch deployments/scale.apps", ProgramPlace::Everywhere));
        assert!(has("autoscaler", "list *.custom.metrics.k8s.io", ProgramPlace::Everywhere));
        assert!(has("autoscaler", "update secrets ebb-ca", ProgramPlace::System));
        let webhooks = "update validatingwebhookconfigurations.admissionregistration.k8s.io ebb-injector";
        assert!(has("injector", webhooks, ProgramPlace::Everywhere));
    }

    #[test]
    fn in_knatives_place_a_program_writes_two_kinds_of_knatives_and_counts() {
        let given = rights(include_str!("../../../../deploy/knative/autoscaler/rights.yaml"));
        let writes = ["create", "update", "patch", "delete"];
        let of = |place: ProgramPlace| -> Vec<String> {
            let placed = given.iter().filter(|right| right.place == place);
            placed.filter(|right| writes.contains(&right.verb.as_str())).map(ToString::to_string).collect()
        };
        let everywhere = [
            "patch podautoscalers/status.autoscaling.internal.knative.dev",
            "create serverlessservices.networking.internal.knative.dev",
            "update serverlessservices.networking.internal.knative.dev",
            "patch deployments/scale.apps",
            "create events.events.k8s.io",
            "patch events.events.k8s.io",
        ];
        assert_eq!(of(ProgramPlace::Everywhere), everywhere);
        let system = of(ProgramPlace::System);
        assert!(system.iter().any(|right| right == "update leases.coordination.k8s.io"), "{system:?}");
    }

    #[test]
    fn a_right_that_is_missing_is_named() {
        let all = all("injector");
        let text = |allowed: bool| {
            let mut findings = CheckFindings::default();
            findings.begin("ebb itself");
            let answers = all.iter().map(|right| (right, allowed));
            findings.add(verdict("it may".to_owned(), "kubectl ebb install", answers));
            findings.text()
        };
        assert!(text(true).contains("ok       it may"), "{}", text(true));
        let refused = text(false);
        assert!(refused.contains("WRONG    it may\n           it may not get mutatingwebhook"), "{refused}");
    }
}
