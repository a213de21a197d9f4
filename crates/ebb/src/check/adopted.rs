//! Is each Service that names a workload served as its people want, and each workload scaled?

use autoscaler::api_types::{RevisionList, RevisionSummary};

use super::findings::{CheckFinding, CheckFindings};
use crate::adopt::problems;
use crate::cluster::Cluster;
use crate::cluster::service::ServiceName;

/// `namespace` limits what is looked at.
pub(super) async fn check(cluster: &Cluster, namespace: Option<&str>, findings: &mut CheckFindings) {
    let services = match cluster.services_that_name_a_workload(namespace).await {
        Ok(services) => services,
        Err(error) => return findings.add(CheckFinding::unknown("Services".to_owned(), error.to_string())),
    };
    let list = match cluster.get::<RevisionList>("/v1/revisions").await {
        Ok(list) => list,
        Err(error) => {
            return findings.add(CheckFinding::unknown("workloads".to_owned(), format!("{error:#}")));
        }
    };
    for name in &services.names {
        findings.add(one_service(cluster, &list, name).await);
    }
    for revision in
        list.revisions.iter().filter(|one| namespace.is_none_or(|named| one.name.namespace() == named))
    {
        findings.add(workload(revision));
    }
    if list.revisions.is_empty() {
        findings.add(CheckFinding::well(format!("no workload is, of {} Services", services.among)));
    }
}

async fn one_service(cluster: &Cluster, list: &RevisionList, name: &ServiceName) -> CheckFinding {
    let what = format!("{name} is served through ebb");
    let against = problems(list, name);
    let writers = match cluster.slice_writers(name).await {
        Ok(writers) => writers,
        Err(error) => return CheckFinding::unknown(what, format!("{error:#}")),
    };
    match (writers.is_ours_there && !writers.is_kubernetes_there, against.is_empty()) {
        (true, true) => CheckFinding::well(what),
        (true, false) => CheckFinding::remark(what, against.join("; ")),
        (false, false) => CheckFinding::wrong(what, against.join("; ")),
        (false, true) => CheckFinding::wrong(
            what,
            format!(
                "ebb's endpoints do not stand alone; `kubectl -n {} describe service/{}` shows why",
                name.namespace, name.name
            ),
        ),
    }
}

fn workload(revision: &RevisionSummary) -> CheckFinding {
    let what = format!(
        "{} has the pods that it wants ({} of {})",
        revision.name, revision.ready_pods, revision.wanted
    );
    match &revision.why_not_ready {
        None => CheckFinding::well(what),
        Some(why) => CheckFinding::remark(what, why.clone()),
    }
}
