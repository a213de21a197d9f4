//! `ebb check --knative`: may ebb's programs stand in the place of Knative's in this installation, and do
//! they stand there well?
//!
//! It is step 0 of the roll-over: nothing is changed. Afterwards it says which program is whose, for a
//! mixture that is not supported shows nowhere else.

mod leases;
mod programs;
mod queue_proxies;
mod versions;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use vocabulary::AUTHORITY_SECRET;

use self::programs::{InstalledProgram, ProgramMaker};
use super::findings::{CheckFinding, CheckFindings};
use super::own_rights;
use super::permissions::{self, ProgramManifest};
use crate::cluster::Cluster;
use crate::utc_time;

/// The keys of a ConfigMap with their values; none where there is no such ConfigMap.
type ConfigMapRead = Result<BTreeMap<String, String>, kube::Error>;

/// The rights of ebb's autoscaler in this place.
const AUTOSCALER: ProgramManifest = ProgramManifest {
    account: "ebb-autoscaler",
    manifest: include_str!("../../../../deploy/knative/autoscaler/rights.yaml"),
    applied_by: "kubectl apply -k deploy/knative/autoscaler",
};
/// The rights in the whole cluster of a person that applies the manifests: group, resource, verb.
const CLUSTER_RIGHTS: [(&str, &str, &str); 2] = [
    ("rbac.authorization.k8s.io", "clusterroles", "create"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "create"),
];
/// The same person's rights in the namespace of Knative's programs.
const SYSTEM_RIGHTS: [(&str, &str, &str); 5] = [
    ("rbac.authorization.k8s.io", "roles", "create"),
    ("rbac.authorization.k8s.io", "rolebindings", "create"),
    ("", "serviceaccounts", "create"),
    ("apps", "deployments", "patch"),
    ("coordination.k8s.io", "leases", "list"),
];

/// All findings; `cluster.system` is the namespace of Knative's programs.
pub(super) async fn check(cluster: &Cluster, findings: &mut CheckFindings) {
    findings.begin("Knative");
    for (name, version) in versions::KINDS {
        findings.add(kind(cluster, name, version).await);
    }
    let controller = deployment(cluster, "controller").await;
    findings.add(match &controller {
        Ok(found) => versions::of_release(found.as_ref()),
        Err(error) => CheckFinding::unknown("Knative's version is known".to_owned(), error.to_string()),
    });
    findings.add(programs::kept("controller", "no revision is made, and no route changes", &controller));
    let webhook = deployment(cluster, "webhook").await;
    findings.add(programs::kept("webhook", "no ServerlessService can be written", &webhook));
    findings.begin("its settings");
    let election = config_map(cluster, leases::CONFIG_MAP).await;
    for finding in settings(cluster, &election).await {
        findings.add(finding);
    }
    findings.add(authority(cluster).await);
    findings.begin("who decides");
    deciders(cluster, &election, findings).await;
}

/// Whether the kind is there in the version that ebb reads and writes.
async fn kind(cluster: &Cluster, name: &str, version: &str) -> CheckFinding {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    match api.get_opt(name).await {
        Ok(found) => versions::of_kind(name, version, found.as_ref()),
        Err(error) => CheckFinding::unknown(versions::kind_is_served(name, version), error.to_string()),
    }
}

async fn deployment(cluster: &Cluster, name: &str) -> Result<Option<Deployment>, kube::Error> {
    cluster.system_api::<Deployment>().get_opt(name).await
}

async fn config_map(cluster: &Cluster, name: &str) -> ConfigMapRead {
    let found = cluster.system_api::<ConfigMap>().get_opt(name).await?;
    Ok(found.and_then(|map| map.data).unwrap_or_default())
}

/// The settings under which ebb's programs cannot stand there.
async fn settings(cluster: &Cluster, election: &ConfigMapRead) -> [CheckFinding; 2] {
    let network = "config-network asks for nothing that ebb refuses".to_owned();
    let network = match config_map(cluster, "config-network").await {
        Err(error) => CheckFinding::unknown(network, error.to_string()),
        Ok(data) => {
            let refusals = settings::network_refusals(&data).into_iter().map(|refusal| refusal.text);
            let refusals: Vec<String> = refusals.collect();
            CheckFinding::of(refusals.is_empty(), network, || refusals.join("; "))
        }
    };
    let election = match election {
        Err(error) => CheckFinding::unknown(leases::SETTINGS_ARE_READ.to_owned(), error.to_string()),
        Ok(data) => leases::of_settings(data),
    };
    [network, election]
}

/// Whether queue-proxies that are told of an authority are told of the autoscaler's.
async fn authority(cluster: &Cluster) -> CheckFinding {
    let unknown = |error: kube::Error| {
        CheckFinding::unknown(queue_proxies::KNOW_THE_AUTHORITY.to_owned(), error.to_string())
    };
    let settings = match config_map(cluster, "config-deployment").await {
        Err(error) => return unknown(error),
        Ok(settings) => settings,
    };
    let Some(told) = queue_proxies::told_of(&settings) else { return queue_proxies::told_of_none() };
    match cluster.system_api::<Secret>().get_opt(AUTHORITY_SECRET).await {
        Err(error) => unknown(error),
        Ok(secret) => {
            let data = secret.and_then(|secret| secret.data).unwrap_or_default();
            let known = data.get("ca.crt").map(|text| String::from_utf8_lossy(&text.0)).unwrap_or_default();
            queue_proxies::verdict(told, &known)
        }
    }
}

/// Which programs are whose, who holds the Leases, and whether ebb's autoscaler may do what it must.
async fn deciders(cluster: &Cluster, election: &ConfigMapRead, findings: &mut CheckFindings) {
    let found = (deployment(cluster, "autoscaler").await, deployment(cluster, "activator").await);
    let (autoscaler, activator) = match found {
        (Ok(autoscaler), Ok(activator)) => {
            (InstalledProgram::read(autoscaler.as_ref()), InstalledProgram::read(activator.as_ref()))
        }
        (Err(error), _) | (_, Err(error)) => {
            let what = "autoscaler and activator are known".to_owned();
            return findings.add(CheckFinding::unknown(what, error.to_string()));
        }
    };
    findings.add(programs::election_form(cluster.system_api::<StatefulSet>().get_opt("autoscaler").await));
    findings.add(programs::mixture(autoscaler, activator));
    findings.add(lease_holders(cluster, election).await);
    if autoscaler.maker == Some(ProgramMaker::Ebb) {
        findings.add(permissions::of_program(cluster, AUTOSCALER).await);
    } else {
        person(cluster, findings).await;
    }
    findings.add(match deployment(cluster, "autoscaler-hpa").await {
        Ok(found) => programs::class_hpa(found.is_some()),
        Err(error) => CheckFinding::unknown("autoscaler-hpa is known".to_owned(), error.to_string()),
    });
}

async fn lease_holders(cluster: &Cluster, election: &ConfigMapRead) -> CheckFinding {
    let found = match cluster.system_api::<Lease>().list(&ListParams::default()).await {
        Err(error) => return CheckFinding::unknown(leases::EACH_IS_HELD.to_owned(), error.to_string()),
        Ok(found) => found.items,
    };
    match election {
        Err(error) => CheckFinding::unknown(leases::EACH_IS_HELD.to_owned(), error.to_string()),
        Ok(data) => leases::of_holders(data, &found, utc_time::now()),
    }
}

/// Whether the person that runs the command may apply the manifests.
async fn person(cluster: &Cluster, findings: &mut CheckFindings) {
    let of_cluster = CLUSTER_RIGHTS.map(|right| (None::<&str>, right));
    let of_system = SYSTEM_RIGHTS.map(|right| (Some(cluster.system.as_str()), right));
    for (namespace, right) in of_cluster.into_iter().chain(of_system) {
        let finding = own_rights::of_right(cluster, namespace, right, || {
            format!("`{}` needs it; ask an administrator of the cluster", AUTOSCALER.applied_by)
        });
        findings.add(finding.await);
    }
}
