//! May the person that runs the command do what commands of ebb do with that person's rights?

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::findings::{CheckFinding, CheckFindings};
use crate::cluster::Cluster;

/// What commands of ebb do with a person's rights: group, resource, verb, and whether in ebb's own namespace.
const RIGHTS: [(&str, &str, &str, RightPlace); 8] = [
    ("", "services", "get", RightPlace::Workloads),
    ("", "services", "list", RightPlace::Workloads),
    ("", "services", "patch", RightPlace::Workloads),
    ("discovery.k8s.io", "endpointslices", "list", RightPlace::Workloads),
    ("apps", "deployments", "list", RightPlace::Workloads),
    ("apps", "statefulsets", "list", RightPlace::Workloads),
    ("coordination.k8s.io", "leases", "get", RightPlace::System),
    ("", "pods/portforward", "create", RightPlace::System),
];

/// Where a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RightPlace {
    Workloads,
    System,
}

/// One finding for each right that commands of ebb use.
pub(super) async fn check(cluster: &Cluster, findings: &mut CheckFindings) {
    for (group, resource, verb, place) in RIGHTS {
        let (namespace, purpose) = match place {
            RightPlace::Workloads => (&cluster.namespace, "ebb adopt and ebb release need it"),
            RightPlace::System => (&cluster.system, "ebb get, explain, adopt and release need it"),
        };
        let right = (group, resource, verb);
        let finding = of_right(cluster, Some(namespace.as_str()), right, || {
            format!("{purpose}; ask an administrator of the cluster for a Role with that verb")
        });
        findings.add(finding.await);
    }
}

/// The finding about one right of the person: group, resource with its subresource, verb. Without a namespace
/// it is a right in the whole cluster.
pub(super) async fn of_right(
    cluster: &Cluster,
    namespace: Option<&str>,
    right: (&str, &str, &str),
    advice: impl FnOnce() -> String,
) -> CheckFinding {
    let (_, resource, verb) = right;
    let place = namespace.unwrap_or("the whole cluster");
    let what = format!("you may {verb} {resource} in {place}");
    match may(cluster, namespace, right).await {
        Ok(is_allowed) => CheckFinding::of(is_allowed, what, advice),
        Err(error) => CheckFinding::unknown(what, error.to_string()),
    }
}

async fn may(
    cluster: &Cluster,
    namespace: Option<&str>,
    (group, resource, verb): (&str, &str, &str),
) -> Result<bool, kube::Error> {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        namespace: namespace.map(str::to_owned),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec =
        SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
