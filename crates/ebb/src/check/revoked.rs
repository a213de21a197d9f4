//! Which pods still trust an authority that was revoked? The holder of its key commands them, until they are
//! replaced.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use vocabulary::{AUTHORITY_SECRET, INJECT_LABEL, QUEUE_PROXY, TLS_REVOKED};

use super::findings::CheckFinding;
use crate::cluster::Cluster;

/// The queue-proxy's variable that holds the authorities by which it knows autoscalers.
const LINK_AUTHORITIES: &str = "EBB_LINK_CA";
/// What begins a certificate in PEM.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// Pods that are asked for at once.
const PAGE: u32 = 500;
/// The most pods that a finding names; of further ones it gives the number.
const NAMED_MAX: usize = 20;

/// `None` where no authority was revoked, or the last one that was has ended.
pub(super) async fn check(cluster: &Cluster) -> Option<CheckFinding> {
    let what = "no pod goes by a revoked authority".to_owned();
    let data = match cluster.system_api::<Secret>().get_opt(AUTHORITY_SECRET).await {
        Err(error) => return Some(CheckFinding::unknown(what, error.to_string())),
        Ok(secret) => secret.and_then(|secret| secret.data).unwrap_or_default(),
    };
    let revoked = data.get(TLS_REVOKED).map(|text| String::from_utf8_lossy(&text.0).into_owned());
    let revoked = revoked.filter(|revoked| !revoked.is_empty())?;
    Some(match pods_that_know(cluster, &revoked).await {
        Err(error) => CheckFinding::unknown(what, error.to_string()),
        Ok(pods) => verdict(what, &pods),
    })
}

async fn pods_that_know(cluster: &Cluster, revoked: &str) -> Result<Vec<String>, kube::Error> {
    let api: Api<Pod> = Api::all(cluster.client.clone());
    let mut parameters = ListParams::default().labels(&format!("{INJECT_LABEL}=true")).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&parameters).await?;
        found.extend(page.items.iter().filter(|pod| knows(pod, revoked)).map(name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn name(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

/// Whether one of these stands among the authorities of its queue-proxy.
fn knows(pod: &Pod, revoked: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let sidecars = containers.filter(|container| container.name == QUEUE_PROXY);
    let mut variables = sidecars.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| {
        let known = variable.value.as_deref().unwrap_or_default();
        variable.name == LINK_AUTHORITIES
            && certificates(revoked).any(|revoked| certificates(known).any(|known| known == revoked))
    })
}

fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    pem.split(BEGIN).map(str::trim).filter(|part| !part.is_empty())
}

fn verdict(what: String, pods: &[String]) -> CheckFinding {
    if pods.is_empty() {
        return CheckFinding::well(what);
    }
    let named = pods.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match pods.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let advice = format!(
        "who has the revoked key commands {named}{more} until they are replaced: `kubectl rollout restart` their workloads (where `ebb inject` wrote the template, run it again first)"
    );
    CheckFinding::wrong(what, advice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::findings::CheckFindings;

    fn pod(name: &str, authorities: &str) -> Pod {
        let env = json!([{"name": "OTHER", "value": "A"}, {"name": LINK_AUTHORITIES, "value": authorities}]);
        let containers = json!([{"name": "app"}, {"name": QUEUE_PROXY, "env": env}]);
        let pod =
            json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"containers": containers}});
        serde_json::from_value(pod).expect("a Pod")
    }

    fn pem(name: &str) -> String {
        format!("{BEGIN}\n{name}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn pods_that_go_by_a_revoked_authority_are_named_and_wrong() {
        let revoked = pem("A") + &pem("B");
        for (authorities, expected) in [
            (pem("A"), true),
            (pem("C") + &pem("B"), true),
            (pem("C"), false),
            (pem("AB"), false),
            (String::new(), false),
            // Some editors take the last line's end away.
            (pem("B").trim_end().to_owned(), true),
        ] {
            assert_eq!(knows(&pod("a", &authorities), &revoked), expected, "{authorities}");
        }
        let mut findings = CheckFindings::default();
        findings.begin("ebb itself");
        findings.add(verdict("none".to_owned(), &[]));
        assert!(findings.is_well());
        let many: Vec<String> = (0..22).map(|number| format!("shop/p{number}")).collect();
        findings.add(verdict("none".to_owned(), &many));
        let text = findings.text();
        assert!(
            !findings.is_well() && text.contains("shop/p0, shop/p1, ") && text.contains("and 2 more"),
            "{text}"
        );
    }
}
