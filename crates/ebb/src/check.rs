//! `ebb check`: what of a cluster is well, and how to mend what is not.
//!
//! Everything is read with the rights of the person that runs the command. A finding for which these do not
//! suffice is unknown, not well.

mod adopted;
mod certificates;
mod findings;
mod installation;
mod narrowed;
mod permissions;
mod revoked;
mod settings;

use std::process::ExitCode;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use crate::check::findings::{CheckFinding, CheckFindings};
use crate::cli::CheckOptions;
use crate::cluster::Cluster;
use crate::output;

/// Older API servers lack what ebb stands on.
const MINOR_MIN: u32 = 29;
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

/// Ends with 1 if something is wrong.
pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let cluster = Cluster::find(&options.cluster).await?;
        let mut findings = CheckFindings::default();
        findings.begin("cluster");
        if version(&cluster, &mut findings).await {
            findings.begin("your rights");
            rights(&cluster, &mut findings).await;
            findings.begin("ebb itself");
            installation::check(&cluster, &mut findings).await;
            findings.begin("settings");
            settings::check(&cluster, &mut findings).await;
            findings.begin("what is adopted");
            adopted::check(&cluster, options.cluster.namespace.as_deref(), &mut findings).await;
        }
        output::print_shown(findings.text().trim_end())?;
        Ok(if findings.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Whether the API server answers; notes whether its version is new enough.
async fn version(cluster: &Cluster, findings: &mut CheckFindings) -> bool {
    let context = &cluster.context;
    match cluster.client.apiserver_version().await {
        Err(error) => {
            let advice = format!("{error}; does `kubectl --context {context} version` answer?");
            findings.add(CheckFinding::wrong(format!("the API server of context {context} answers"), advice));
            false
        }
        Ok(version) => {
            let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
            let is_new = digits.parse::<u32>().is_ok_and(|minor| version.major != "1" || minor >= MINOR_MIN);
            let what = format!("Kubernetes {} is 1.{MINOR_MIN} or newer", version.git_version);
            findings.add(CheckFinding::of(is_new, what, || "upgrade the cluster".to_owned()));
            true
        }
    }
}

async fn rights(cluster: &Cluster, findings: &mut CheckFindings) {
    for (group, resource, verb, place) in RIGHTS {
        let namespace = match place {
            RightPlace::Workloads => &cluster.namespace,
            RightPlace::System => &cluster.system,
        };
        let what = format!("you may {verb} {resource} in {namespace}");
        findings.add(match may(cluster, namespace, (group, resource, verb)).await {
            Ok(is_allowed) => CheckFinding::of(is_allowed, what, || {
                let purpose = match place {
                    RightPlace::Workloads => "ebb adopt and ebb release need it",
                    RightPlace::System => "ebb get, explain, adopt and release need it",
                };
                format!("{purpose}; ask an administrator of the cluster for a Role with that verb")
            }),
            Err(error) => CheckFinding::unknown(what, error.to_string()),
        });
    }
}

async fn may(
    cluster: &Cluster,
    namespace: &str,
    (group, resource, verb): (&str, &str, &str),
) -> Result<bool, kube::Error> {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        namespace: Some(namespace.to_owned()),
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
