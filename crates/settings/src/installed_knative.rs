//! What do Knative's own ConfigMaps say that an autoscaler goes by? (Contract §4.1, §4.6, §5.6.)

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{KNATIVE_BUCKETS_MAX, parse_duration};

use crate::resolve::PROGRESS_DEADLINE_DEFAULT;

/// How many buckets Knative's autoscalers share: 1 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCount(u16);

impl Default for BucketCount {
    fn default() -> Self {
        Self(1)
    }
}

impl BucketCount {
    /// A count of 1 to 10; `None` for any other number.
    pub fn new(count: u16) -> Option<Self> {
        (1..=KNATIVE_BUCKETS_MAX).contains(&count).then_some(Self(count))
    }

    /// The number of buckets, 1 to 10.
    pub fn value(self) -> u16 {
        self.0
    }
}

/// How long Leases last, as `config-leader-election` says it for all of Knative's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a holder may go without renewing (`lease-duration`).
    pub lasts: Duration,
    /// How long a holder tries to renew until it gives up (`renew-deadline`).
    pub renew_deadline: Duration,
    /// The pause between two tries (`retry-period`).
    pub retry: Duration,
}

impl Default for LeaseTimes {
    /// The defaults of Knative's own configuration.
    fn default() -> Self {
        Self {
            lasts: Duration::from_secs(60),
            renew_deadline: Duration::from_secs(40),
            retry: Duration::from_secs(10),
        }
    }
}

/// `config-leader-election`, which is read once at start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderElection {
    /// How many buckets the replicas share.
    pub buckets: BucketCount,
    /// How long Leases last, and when they are renewed.
    pub times: LeaseTimes,
}

impl LeaderElection {
    /// Reads the ConfigMap; old camelCase keys count where the present one is absent.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut read = |key: &str, old: &str, unset: Duration| {
            let Some(text) = data.get(key).or_else(|| data.get(old)) else { return unset };
            duration(text).unwrap_or_else(|| {
                problems.push(format!(
                    "config-leader-election: {key} is {text:?}, which is no duration above zero; write one such as \"15s\""
                ));
                unset
            })
        };
        let unset = LeaseTimes::default();
        let times = LeaseTimes {
            lasts: read("lease-duration", "leaseDuration", unset.lasts),
            renew_deadline: read("renew-deadline", "renewDeadline", unset.renew_deadline),
            retry: read("retry-period", "retryPeriod", unset.retry),
        };
        let mut buckets = BucketCount::default();
        if let Some(text) = data.get("buckets") {
            match text.trim().parse().ok().and_then(BucketCount::new) {
                Some(count) => buckets = count,
                None => problems.push(format!(
                    "config-leader-election: buckets is {text:?}, which is not a whole number from 1 to 10; write one, with all autoscalers stopped"
                )),
            }
        }
        if problems.is_empty() { Ok(Self { buckets, times }) } else { Err(problems) }
    }
}

/// How long a pod may take to get ready: `config-deployment`, for revisions whose annotation does not say
/// it. A value that cannot be read leaves the default, for Knative's webhook judges it.
pub fn progress_deadline_of(config_deployment: &BTreeMap<String, String>) -> Duration {
    let text =
        config_deployment.get("progress-deadline").or_else(|| config_deployment.get("progressDeadline"));
    text.and_then(|text| duration(text)).unwrap_or(PROGRESS_DEADLINE_DEFAULT)
}

fn duration(text: &str) -> Option<Duration> {
    parse_duration(text.trim()).ok().filter(|duration| *duration > Duration::ZERO)
}

/// A setting of `config-network` under which ebb's programs cannot stand in Knative's place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRefusal {
    /// The key of the setting.
    pub key: &'static str,
    /// The sentence for people, with the remedy.
    pub text: String,
}

/// Each setting with its old name if it has one, the value that is refused, and why.
const REFUSED: [(&str, Option<&str>, &str, &str); 3] = [
    (
        "system-internal-tls",
        Some("internal-encryption"),
        "enabled",
        "ebb does not speak TLS between ingress, activator and pods yet",
    ),
    (
        "mesh-compatibility-mode",
        None,
        "enabled",
        "it asks for ClusterIP routing, and ebb sends requests to the addresses of pods",
    ),
    ("enable-mesh-pod-addressability", None, "true", "ebb names no pod by the private Service yet"),
];

/// The settings of `config-network` that are refused, by name.
pub fn network_refusals(config_network: &BTreeMap<String, String>) -> Vec<ProfileRefusal> {
    let refusals = REFUSED.iter().filter_map(|(key, old, refused, why)| {
        let text = config_network.get(*key).or_else(|| config_network.get((*old)?))?;
        let is_refused =
            text.eq_ignore_ascii_case(refused) || (old.is_some() && text.eq_ignore_ascii_case("true"));
        is_refused.then(|| ProfileRefusal {
            key,
            text: format!(
                "config-network: {key} is {text:?}: {why}; keep Knative's own programs, or turn it off"
            ),
        })
    });
    refusals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_count_of_buckets_is_one_to_ten() {
        assert_eq!([0, 11].map(BucketCount::new), [None, None]);
        assert_eq!(BucketCount::new(10).map(BucketCount::value), Some(10));
        assert_eq!(BucketCount::default().value(), 1);
    }

    #[test]
    fn leader_election_has_knatives_defaults_and_both_spellings() {
        let read = |pairs: &[(&str, &str)]| LeaderElection::read(&map(pairs)).expect("all is well");
        assert_eq!(read(&[]), LeaderElection::default());
        assert_eq!(read(&[("leaseDuration", "15s")]).times.lasts, Duration::from_secs(15));
        let tests = read(&[
            ("buckets", "10"),
            ("lease-duration", "15s"),
            ("renew-deadline", "10s"),
            ("retry-period", "2s"),
            ("leaseDuration", "1h"),
        ]);
        assert_eq!((tests.buckets.value(), tests.times.lasts), (10, Duration::from_secs(15)));
        assert_eq!(
            (tests.times.renew_deadline, tests.times.retry),
            (Duration::from_secs(10), Duration::from_secs(2))
        );
    }

    #[test]
    fn every_problem_of_leader_election_is_told_at_once() {
        let refused = LeaderElection::read(&map(&[("buckets", "11"), ("lease-duration", "soon")]));
        let problems = refused.expect_err("two things are wrong").join("\n");
        assert!(
            problems.contains("buckets is \"11\"") && problems.contains("lease-duration is \"soon\""),
            "{problems}"
        );
    }

    #[test]
    fn the_progress_deadline_of_the_cluster_has_an_old_name() {
        let read = |pairs: &[(&str, &str)]| progress_deadline_of(&map(pairs));
        assert_eq!(read(&[]), Duration::from_secs(600));
        assert_eq!(
            read(&[("progress-deadline", "120s"), ("progressDeadline", "1s")]),
            Duration::from_secs(120)
        );
        assert_eq!(read(&[("progressDeadline", "90s")]), Duration::from_secs(90));
        assert_eq!(read(&[("progress-deadline", "soon")]), Duration::from_secs(600));
    }

    #[test]
    fn system_tls_and_meshes_are_refused_by_name() {
        let keys = |pairs: &[(&str, &str)]| -> Vec<&str> {
            network_refusals(&map(pairs)).into_iter().map(|refusal| refusal.key).collect()
        };
        assert_eq!(keys(&[("system-internal-tls", "Enabled")]), ["system-internal-tls"]);
        assert_eq!(keys(&[("internal-encryption", "true")]), ["system-internal-tls"]);
        assert_eq!(
            keys(&[("mesh-compatibility-mode", "enabled"), ("enable-mesh-pod-addressability", "true")]),
            ["mesh-compatibility-mode", "enable-mesh-pod-addressability"]
        );
        let accepted = [("mesh-compatibility-mode", "auto"), ("system-internal-tls", "Disabled")];
        assert_eq!(keys(&accepted), Vec::<&str>::new());
    }
}
