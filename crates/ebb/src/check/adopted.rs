//! Is each Service that names a workload served as its people want, and each workload scaled?

use autoscaler::api_types::{RevisionList, RevisionSummary};

use super::findings::{CheckFinding, CheckFindings};
use crate::adopt::problems;
use crate::cluster::Cluster;
use crate::cluster::problem::ProblemSubject;
use crate::cluster::service::{ServiceName, SliceWriters, selector};

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
        findings.add(service_finding(cluster, &list, name).await);
    }
    for revision in
        list.revisions.iter().filter(|one| namespace.is_none_or(|named| one.name.namespace() == named))
    {
        findings.add(workload_finding(revision));
    }
    for finding in remaining_problems(&list, namespace, &services.names) {
        findings.add(finding);
    }
    if list.revisions.is_empty() {
        findings.add(CheckFinding::well(format!("no workload is, of {} Services", services.among)));
    }
}

/// The problems that the autoscaler tells of workloads, and of Services without a workload. Problems of the
/// settings are left out: they belong to no object, and the settings are checked by themselves.
fn remaining_problems(
    list: &RevisionList,
    namespace: Option<&str>,
    shown: &[ServiceName],
) -> Vec<CheckFinding> {
    let subjects = list.problems.iter().filter_map(|problem| ProblemSubject::of(problem));
    let named = subjects.filter(|one| namespace.is_none_or(|named| one.namespace == named));
    let is_shown = |one: &ProblemSubject<'_>| {
        let is_it = |name: &ServiceName| name.namespace == one.namespace && name.name == one.name;
        one.kind == "Service" && shown.iter().any(is_it)
    };
    let rest = named.filter(|one| !is_shown(one));
    let finding = |one: ProblemSubject<'_>| {
        let what = format!("{}/{} in {} is as ebb wants it", one.kind, one.name, one.namespace);
        CheckFinding::remark(what, one.text.to_owned())
    };
    rest.map(finding).collect()
}

async fn service_finding(cluster: &Cluster, list: &RevisionList, name: &ServiceName) -> CheckFinding {
    let read = tokio::join!(cluster.slice_writers(name), cluster.find_service(name));
    match read {
        (Ok(writers), Ok(service)) => {
            let has_selector = service.is_some_and(|service| !selector(&service).is_empty());
            served(name, &problems(list, name), ServiceState { writers, has_selector })
        }
        (Err(error), _) | (_, Err(error)) => {
            CheckFinding::unknown(checked_sentence(name), format!("{error:#}"))
        }
    }
}

/// What is seen of a Service that names a workload.
#[derive(Clone, Copy, Debug)]
struct ServiceState {
    writers: SliceWriters,
    has_selector: bool,
}

/// The sentence that is true of a Service in order.
fn checked_sentence(name: &ServiceName) -> String {
    format!("{name} is served through ebb")
}

fn served(name: &ServiceName, against: &[String], state: ServiceState) -> CheckFinding {
    let what = checked_sentence(name);
    let ServiceName { namespace, name: service } = name;
    let is_ours_alone = state.writers == SliceWriters::OURS_ALONE;
    match (is_ours_alone, against.is_empty()) {
        (true, true) => CheckFinding::well(what),
        (true, false) => CheckFinding::remark(what, against.join("; ")),
        (false, _) if state.has_selector => CheckFinding::wrong(
            what,
            format!(
                "it has a selector, as after its old manifest was applied; `kubectl ebb adopt service/{service} -n {namespace}` takes the selector away again, and with `selector: null` in the manifest it stays away (docs/tasks/gitops.md)"
            ),
        ),
        (false, false) => CheckFinding::wrong(what, against.join("; ")),
        (false, true) => CheckFinding::wrong(
            what,
            format!(
                "ebb's endpoints do not stand alone; `kubectl -n {namespace} describe service/{service}` shows why"
            ),
        ),
    }
}

fn workload_finding(revision: &RevisionSummary) -> CheckFinding {
    let what = format!(
        "{} has the pods that it wants ({} of {})",
        revision.name, revision.ready_pods, revision.wanted
    );
    match &revision.why_not_ready {
        None => CheckFinding::well(what),
        Some(why) => CheckFinding::remark(what, why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::API_VERSION;

    use super::*;
    use crate::check::findings::tests::text_of;

    #[test]
    fn an_old_manifest_that_brought_the_selector_back_is_told_with_the_cure() {
        let name = ServiceName { namespace: "shop".to_owned(), name: "hello".to_owned() };
        let of = |writers, has_selector, against: &[&str]| {
            let against: Vec<String> = against.iter().map(|&text| text.to_owned()).collect();
            text_of(served(&name, &against, ServiceState { writers, has_selector }))
        };
        let given_back = of(SliceWriters::KUBERNETES_ALONE, true, &["it has a selector"]);
        assert!(given_back.contains("WRONG    service/hello in shop is served through ebb"), "{given_back}");
        assert!(given_back.contains("`kubectl ebb adopt service/hello -n shop`"), "{given_back}");
        assert!(of(SliceWriters::KUBERNETES_ALONE, false, &[]).contains("describe service/hello` shows why"));
        assert!(of(SliceWriters::KUBERNETES_ALONE, false, &["it is headless"]).contains("it is headless"));
        assert!(of(SliceWriters::OURS_ALONE, false, &["a word"]).contains("remark   service/hello"));
        assert!(of(SliceWriters::OURS_ALONE, false, &[]).contains("ok       service/hello"));
    }

    #[test]
    fn problems_of_workloads_name_their_object() {
        let problems = [
            "deployment shop/hello: annotation ebb.dev/paused is \"true\"",
            "deployment other/hello: it is elsewhere",
            "Service shop/hello: its own finding says it",
            "Service shop/former: it has no selector",
            "key stable-window of ConfigMap config-autoscaler is \"soon\"",
        ];
        let list = RevisionList {
            version: API_VERSION,
            snapshot: 0,
            revisions: Vec::new(),
            problems: problems.map(str::to_owned).into(),
            unanswered: Vec::new(),
            links: Vec::new(),
        };
        let shown = [ServiceName { namespace: "shop".to_owned(), name: "hello".to_owned() }];
        let mut findings = CheckFindings::default();
        findings.begin("what is adopted");
        for finding in remaining_problems(&list, Some("shop"), &shown) {
            findings.add(finding);
        }
        let text = findings.text();
        let paused =
            "remark   deployment/hello in shop is as ebb wants it\n           annotation ebb.dev/paused";
        let former = "remark   Service/former in shop is as ebb wants it\n           it has no selector";
        assert!(text.contains(paused) && text.contains(former), "{text}");
        assert!(!text.contains("elsewhere") && !text.contains("own finding"), "{text}");
    }
}
