//! Can ebb take the place of an installed Knative's autoscaler, and how many buckets are there? (Contract
//! §4.1, §4.6, §5.6.) Asked once, at start.

use std::collections::BTreeMap;

use cluster::{Failure, Installation, LEASE};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use settings::{
    KNATIVE_MINOR_MIN, KNATIVE_MINOR_TESTED, KNATIVE_VERSION_LABEL, KnativeRelease, LeaderElection,
    network_refusals,
};
use thiserror::Error;

use crate::requests::{ANSWER_WITHIN, within_time};

const LEADER_ELECTION: &str = "config-leader-election";
const NETWORK: &str = "config-network";

/// What an autoscaler in the place of Knative's has to know of itself and of the cluster.
#[derive(Clone, Debug)]
pub struct KnativePlace {
    /// The address of this autoscaler's pod, which stands in the Leases that it holds.
    pub address: String,
    /// The cluster's domain, such as `cluster.local`.
    pub domain: String,
}

/// Why the place of Knative's autoscaler cannot be taken.
#[derive(Debug, Error)]
pub enum KnativeRefusal {
    /// A ConfigMap of Knative's was asked for, and not given.
    #[error("ConfigMap {name} of namespace {namespace} could not be read: {why}")]
    Unread {
        /// The name of the ConfigMap.
        name: &'static str,
        /// The namespace of Knative's programs.
        namespace: String,
        /// What the API server said.
        why: String,
    },
    /// Knative is configured as ebb cannot serve it, in sentences with what to do.
    #[error("ebb cannot stand in Knative's place: {}", .0.join("; "))]
    Configured(Vec<String>),
}

/// The installation, as Knative's own ConfigMaps say it. For a ConfigMap that is not there the defaults hold.
pub(crate) async fn installation(
    client: Client,
    namespace: &str,
    place: &KnativePlace,
) -> Result<Installation, KnativeRefusal> {
    let network = config_map(client.clone(), namespace, NETWORK).await?;
    let election = config_map(client, namespace, LEADER_ELECTION).await?.data.unwrap_or_default();
    let version = network.metadata.labels.unwrap_or_default().remove(KNATIVE_VERSION_LABEL);
    decide(version.as_deref(), &network.data.unwrap_or_default(), &election, &place.domain)
}

fn decide(
    version: Option<&str>,
    network: &BTreeMap<String, String>,
    election: &BTreeMap<String, String>,
    domain: &str,
) -> Result<Installation, KnativeRefusal> {
    let mut problems: Vec<String> = version.and_then(refusal_of_release).into_iter().collect();
    problems.extend(network_refusals(network).into_iter().map(|refusal| refusal.text));
    let election = LeaderElection::read(election).unwrap_or_else(|more| {
        problems.extend(more);
        LeaderElection::default()
    });
    let lasts = election.times.lasts;
    if lasts < LEASE {
        // A candidate of Knative's would take a Lease that ebb still goes by.
        problems.push(format!(
            "{LEADER_ELECTION}: lease-duration is {} s, and ebb's Leases last {} s; write that or more",
            lasts.as_secs(),
            LEASE.as_secs()
        ));
    }
    if problems.is_empty() {
        Ok(Installation::Knative { buckets: election.buckets, domain: domain.to_owned() })
    } else {
        Err(KnativeRefusal::Configured(problems))
    }
}

/// Why ebb does not stand beside this release of Knative's, if so. One that is newer than what was tested may
/// work, and is a warning.
fn refusal_of_release(version: &str) -> Option<String> {
    match KnativeRelease::of(version) {
        KnativeRelease::TooOld => Some(format!(
            "Knative {version} is older than 1.{KNATIVE_MINOR_MIN}; upgrade Knative before ebb comes in"
        )),
        KnativeRelease::Untested => {
            tracing::warn!(
                version,
                tested = KNATIVE_MINOR_TESTED,
                "Knative is newer than each release that ebb was tested with; docs/operate/knative.md has the table"
            );
            None
        }
        KnativeRelease::Known | KnativeRelease::Unsaid => None,
    }
}

/// A ConfigMap of Knative's; an empty one where there is none.
async fn config_map(
    client: Client,
    namespace: &str,
    name: &'static str,
) -> Result<ConfigMap, KnativeRefusal> {
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    match within_time(ANSWER_WITHIN, api.get(name)).await {
        Ok(map) => Ok(map),
        Err(Failure::Gone(_)) => Ok(ConfigMap::default()),
        Err(failure) => Err(KnativeRefusal::Unread {
            name,
            namespace: namespace.to_owned(),
            why: failure.words().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_number_of_buckets_is_knatives() {
        let installation = |pairs: &[(&str, &str)]| {
            decide(None, &map(&[]), &map(pairs), "cluster.local").expect("it can be taken")
        };
        assert_eq!(installation(&[]).buckets(), 1);
        assert_eq!(installation(&[("buckets", "10"), ("lease-duration", "15s")]).buckets(), 10);
    }

    #[test]
    fn everything_that_stands_in_the_way_is_named_at_once() {
        let network = map(&[("system-internal-tls", "Enabled"), ("mesh-compatibility-mode", "enabled")]);
        let election = map(&[("lease-duration", "10s")]);
        let old = Some("1.20.4");
        let refused = decide(old, &network, &election, "cluster.local").expect_err("four things are wrong");
        let text = refused.to_string();
        for part in ["1.20.4 is older than 1.21", "internal-tls", "ClusterIP", "lease-duration is 10 s"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_release_that_was_not_tested_or_says_no_version_is_not_refused() {
        for version in [None, Some("1.24.0"), Some("v1.23.1"), Some("20261101-abc")] {
            assert!(decide(version, &map(&[]), &map(&[]), "cluster.local").is_ok(), "{version:?}");
        }
    }
}
