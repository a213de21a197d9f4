//! Do ebb's own programs run, have they what they must have, and does one of the autoscalers decide?

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use vocabulary::{AUTHORITY_SECRET, TLS_ROOTS};

use autoscaler::api_types::{LinkTallyView, LinksView, RevisionList};

use super::findings::{CheckFinding, CheckFindings};
use super::start_failures::{AUTOSCALER, PROGRAMS, StartFailures};
use super::{certificates, deployed, narrowed, permissions, revoked};
use crate::cluster::Cluster;

/// What the programs make and share.
const SECRETS: [&str; 6] = [
    "ebb-links",
    "ebb-slices",
    AUTHORITY_SECRET,
    "ebb-autoscaler-tls",
    "ebb-activator-tls",
    "ebb-injector-tls",
];
/// By which the API server calls the injector.
const WEBHOOK: &str = "ebb-injector";
/// The Service of the injector, and its Deployment.
const INJECTOR_SERVICE: &str = "injector";

/// What follows from a program that does not start is folded.
pub(super) async fn check(cluster: &Cluster, failures: &StartFailures, findings: &mut CheckFindings) {
    for (program, without) in PROGRAMS {
        let found = cluster.system_api::<Deployment>().get_opt(program).await;
        if let Ok(Some(found)) = &found {
            for finding in deployed::check(program, found) {
                findings.add(finding);
            }
        }
        failures.add(program, deployment(cluster, program, without, found), findings);
    }
    for remark in failures.remarks() {
        findings.add(remark);
    }
    for secret in SECRETS {
        failures.add(AUTOSCALER, present_secret(cluster, secret).await, findings);
    }
    for finding in certificates::check(cluster).await {
        failures.add(AUTOSCALER, finding, findings);
    }
    if let Some(finding) = revoked::check(cluster).await {
        findings.add(finding);
    }
    for finding in permissions::check(cluster).await {
        findings.add(finding);
    }
    for finding in narrowed::check(cluster).await {
        findings.add(finding);
    }
    for kind in [WebhookKind::Mutating, WebhookKind::Validating] {
        failures.add(INJECTOR_SERVICE, webhook(cluster, kind).await, findings);
    }
    failures.add(INJECTOR_SERVICE, injector_endpoints(cluster).await, findings);
    owner(cluster, failures, findings).await;
}

fn deployment(
    cluster: &Cluster,
    name: &str,
    without: &str,
    found: Result<Option<Deployment>, kube::Error>,
) -> CheckFinding {
    let system = &cluster.system;
    let what = format!("all pods of deployment/{name} in {system} are ready");
    let found = match found {
        Err(error) => return CheckFinding::unknown(what, error.to_string()),
        Ok(found) => found,
    };
    let Some(found) = found else {
        let advice = format!("it is not there ({without}); `kubectl ebb install` installs it");
        return CheckFinding::wrong(what, advice);
    };
    let wanted = found.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or_default();
    let advice = format!("`kubectl -n {system} describe deployment/{name}` and its pods' logs say why");
    match ready {
        0 => CheckFinding::wrong(what, format!("none of {wanted} is ({without}); {advice}")),
        _ if ready < wanted => CheckFinding::remark(what, format!("{ready} of {wanted} are; {advice}")),
        _ => CheckFinding::well(what),
    }
}

async fn present_secret(cluster: &Cluster, name: &str) -> CheckFinding {
    let what = format!("Secret {name} is there");
    match cluster.system_api::<Secret>().get_metadata_opt(name).await {
        Err(error) => CheckFinding::unknown(what, error.to_string()),
        Ok(Some(_)) => CheckFinding::well(what),
        Ok(None) => CheckFinding::wrong(
            what,
            format!(
                "the autoscaler makes it when it starts; `kubectl -n {} logs deployment/autoscaler` says why it did not",
                cluster.system
            ),
        ),
    }
}

/// For what the API server calls the injector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WebhookKind {
    Mutating,
    Validating,
}

impl WebhookKind {
    /// Its name, and what is amiss without it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Mutating => ("mutating", "pods get no queue-proxy"),
            Self::Validating => ("validating", "what is wrong with annotations and settings is not refused"),
        }
    }

    /// The authorities by which the API server trusts the injector; `None` if there is no such webhook.
    async fn bundles(self, cluster: &Cluster) -> Result<Option<Vec<String>>, kube::Error> {
        let client = cluster.client.clone();
        let configs: Option<Vec<_>> = match self {
            Self::Mutating => {
                let api: Api<MutatingWebhookConfiguration> = Api::all(client);
                let found = api.get_opt(WEBHOOK).await?;
                found.map(|found| found.webhooks.into_iter().flatten().map(|one| one.client_config).collect())
            }
            Self::Validating => {
                let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
                let found = api.get_opt(WEBHOOK).await?;
                found.map(|found| found.webhooks.into_iter().flatten().map(|one| one.client_config).collect())
            }
        };
        let bundle = |config: WebhookClientConfig| text(&config.ca_bundle.unwrap_or_default());
        Ok(configs.map(|configs| configs.into_iter().map(bundle).collect()))
    }
}

/// The API server trusts the injector only by the certificate that stands there.
async fn webhook(cluster: &Cluster, kind: WebhookKind) -> CheckFinding {
    let (word, without) = kind.words();
    let what = format!("{word} webhook {WEBHOOK} trusts ebb's authority");
    let bundles = match kind.bundles(cluster).await {
        Err(error) => return CheckFinding::unknown(what, error.to_string()),
        Ok(found) => found,
    };
    let Some(bundles) = bundles else {
        let advice = format!("it is not there, so {without}; `kubectl ebb install` makes it");
        return CheckFinding::wrong(what, advice);
    };
    if bundles.is_empty() || bundles.iter().any(String::is_empty) {
        let advice = format!(
            "it has no caBundle; the injector writes it: `kubectl -n {} logs deployment/injector`",
            cluster.system
        );
        return CheckFinding::wrong(what, advice);
    }
    let authority = match cluster.system_api::<Secret>().get_opt(AUTHORITY_SECRET).await {
        Err(error) => return CheckFinding::unknown(what, error.to_string()),
        Ok(secret) => secret.and_then(|secret| secret.data).unwrap_or_default(),
    };
    let present = authority_of(&authority);
    let is_known = present.is_none_or(|present| bundles.iter().all(|bundle| bundle.contains(present.trim())));
    CheckFinding::of(is_known, what, || {
        format!(
            "its caBundle is of another authority; restart the injector: `kubectl -n {} rollout restart deployment/injector`",
            cluster.system
        )
    })
}

/// The newest certificate of the authority, which comes first.
fn authority_of(data: &BTreeMap<String, ByteString>) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let all = text(data.get(TLS_ROOTS)?);
    let end = all.find(END)? + END.len();
    Some(all[..end].to_owned())
}

fn text(bytes: &ByteString) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}

async fn injector_endpoints(cluster: &Cluster) -> CheckFinding {
    let what = "the webhook's Service leads to a ready injector".to_owned();
    let selected = ListParams::default().labels(&format!("kubernetes.io/service-name={INJECTOR_SERVICE}"));
    let slices = match cluster.system_api::<EndpointSlice>().list(&selected).await {
        Err(error) => return CheckFinding::unknown(what, error.to_string()),
        Ok(slices) => slices.items,
    };
    let mut endpoints = slices.into_iter().flat_map(|slice| slice.endpoints);
    let is_served = endpoints
        .any(|endpoint| endpoint.conditions.and_then(|conditions| conditions.ready).unwrap_or_default());
    CheckFinding::of(is_served, what, || {
        format!(
            "until one is, no pod with the label ebb.dev/inject can be made; `kubectl -n {} get pods`",
            cluster.system
        )
    })
}

/// Whether an autoscaler decides and answers, and hears all its pods and activators.
async fn owner(cluster: &Cluster, failures: &StartFailures, findings: &mut CheckFindings) {
    let what = "an autoscaler decides, and answers".to_owned();
    let list = match cluster.get::<RevisionList>("/v1/revisions").await {
        Err(error) => {
            return failures.add(AUTOSCALER, CheckFinding::wrong(what, format!("{error:#}")), findings);
        }
        Ok(list) => list,
    };
    findings.add(if list.unanswered.is_empty() {
        CheckFinding::well(what)
    } else {
        CheckFinding::remark(what, format!("{} does not", list.unanswered.join(", ")))
    });
    for links in &list.links {
        let [of_activators, of_pods] = linked(links);
        failures.add("activator", of_activators, findings);
        findings.add(of_pods);
    }
}

/// A pod that has just started is linked in a moment, so one that is not is worth a word and no more.
fn linked(links: &LinksView) -> [CheckFinding; 2] {
    let what = |tally: &LinkTallyView, kind: &str| {
        format!("{} is linked to {} of {} {kind}", links.autoscaler, tally.up, tally.expected)
    };
    let advice = |tally: &LinkTallyView| {
        format!(
            "not to {}; port 8024 of each must be open to it, its node must live, and `kubectl logs` of it and of the autoscaler says why",
            tally.down.join(", ")
        )
    };
    let (activators, pods) = (&links.to_activators, &links.to_pods);
    let of_activators = match (activators.expected, activators.up) {
        (expected, up) if up == expected => CheckFinding::well(what(activators, "activators")),
        // No activator holds requests, and no count goes to zero.
        (_, 0) => CheckFinding::wrong(what(activators, "activators"), advice(activators)),
        _ => CheckFinding::remark(what(activators, "activators"), advice(activators)),
    };
    let of_pods = if pods.up == pods.expected {
        CheckFinding::well(what(pods, "pods"))
    } else {
        CheckFinding::remark(what(pods, "pods"), advice(pods))
    };
    [of_activators, of_pods]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_down_is_told_with_whose_it_is() {
        let tally = |expected, down: &[&str]| {
            let down: Vec<String> = down.iter().map(|&name| name.to_owned()).collect();
            LinkTallyView { expected, up: expected - down.len(), down }
        };
        for (activators, pods, expected) in [
            (
                tally(2, &[]),
                tally(1, &[]),
                "ok       a is linked to 2 of 2 activators\n  ok       a is linked to 1 of 1 pods",
            ),
            (
                tally(2, &["b"]),
                tally(0, &[]),
                "remark   a is linked to 1 of 2 activators\n           not to b; ",
            ),
            (
                tally(1, &["b"]),
                tally(0, &[]),
                "WRONG    a is linked to 0 of 1 activators\n           not to b; ",
            ),
            (
                tally(0, &[]),
                tally(3, &["p", "q"]),
                "remark   a is linked to 1 of 3 pods\n           not to p, q; ",
            ),
        ] {
            let mut findings = CheckFindings::default();
            findings.begin("ebb itself");
            let links = LinksView { autoscaler: "a".to_owned(), to_activators: activators, to_pods: pods };
            for finding in linked(&links) {
                findings.add(finding);
            }
            assert!(findings.text().contains(expected), "{}", findings.text());
        }
    }
}
