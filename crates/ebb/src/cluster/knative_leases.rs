//! Who holds the Leases of an installed Knative's autoscalers? Their names tell the number of buckets, their
//! holders the pod and its address.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

/// The part of the names that all Leases of autoscalers have.
const PREFIX: &str = "autoscaler-bucket-";
/// How far the clock of a person's machine may be from that of the cluster.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(60);

/// The Leases of buckets that have a holder, each with the holder.
pub(crate) fn held(leases: &[Lease]) -> BTreeMap<&str, &str> {
    let held = named(leases).filter_map(|(name, lease)| {
        let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
        (!holder.is_empty()).then_some((name, holder))
    });
    held.collect()
}

/// The Leases of buckets that have run out: their holders died, or do not reach the cluster any more. `now`
/// is the time since 1970.
pub(crate) fn run_out(leases: &[Lease], now: Duration) -> BTreeSet<&str> {
    named(leases).filter(|(_, lease)| has_run_out(lease, now) == Some(true)).map(|(name, _)| name).collect()
}

/// `None` where a Lease does not say when it was renewed, or how long it lasts.
fn has_run_out(lease: &Lease, now: Duration) -> Option<bool> {
    let spec = lease.spec.as_ref()?;
    let renewed = u64::try_from(spec.renew_time.as_ref()?.0.as_second()).ok()?;
    let lasts = u64::try_from(spec.lease_duration_seconds?).ok()?;
    let ends = Duration::from_secs(renewed.saturating_add(lasts));
    Some(ends.saturating_add(CLOCKS_APART_MAX) < now)
}

/// The pod of a holder `POD_ADDRESS`, as Knative's programs write it.
pub(crate) fn pod_of(holder: &str) -> &str {
    holder.rsplit_once('_').map_or(holder, |(pod, _)| pod)
}

/// The autoscalers that hold Leases, and the buckets without one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeaseHolders {
    pub(crate) pods: BTreeSet<String>,
    /// The names of Leases of the same number of buckets that no pod holds.
    pub(crate) vacant: Vec<String>,
}

/// The holders; none where no Lease of an autoscaler is held.
pub(crate) fn holders(leases: &[Lease]) -> LeaseHolders {
    let held = held(leases);
    // Leases of another number of buckets are left over from another time.
    let counts: BTreeSet<&str> = held.keys().filter_map(|name| count_in(name)).collect();
    let is_vacant =
        |name: &str| !held.contains_key(name) && count_in(name).is_some_and(|count| counts.contains(count));
    LeaseHolders {
        pods: held.values().map(|holder| pod_of(holder).to_owned()).collect(),
        vacant: named(leases)
            .map(|(name, _)| name)
            .filter(|name| is_vacant(name))
            .map(str::to_owned)
            .collect(),
    }
}

fn named(leases: &[Lease]) -> impl Iterator<Item = (&str, &Lease)> {
    leases.iter().filter_map(|lease| {
        let name = lease.metadata.name.as_deref()?;
        name.starts_with(PREFIX).then_some((name, lease))
    })
}

/// The number of buckets that a name tells, as its text.
fn count_in(name: &str) -> Option<&str> {
    Some(name.rsplit_once("-of-")?.1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(name: &str, holder: &str) -> Lease {
        let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": holder}});
        serde_json::from_value(lease).expect("a Lease")
    }

    #[test]
    fn a_lease_runs_out_a_minute_after_its_time() {
        let renewed = json!({
            "metadata": {"name": "autoscaler-bucket-00-of-01"},
            "spec": {
                "holderIdentity": "autoscaler-a_10.0.0.1",
                "renewTime": "2026-11-27T12:00:00.000000Z",
                "leaseDurationSeconds": 15,
            },
        });
        let leases = [serde_json::from_value::<Lease>(renewed).expect("a Lease")];
        let noon = 1_795_780_800;
        for (seconds, expected) in [(0, 0), (75, 0), (76, 1), (86_400, 1)] {
            let found = run_out(&leases, Duration::from_secs(noon + seconds));
            assert_eq!(found.len(), expected, "{seconds} s after it was renewed");
        }
        // One that does not say so counts as held.
        assert!(run_out(&[lease("autoscaler-bucket-00-of-01", "a")], Duration::MAX).is_empty());
    }

    #[test]
    fn holders_are_pods_and_vacant_buckets_are_those_of_the_same_number() {
        let leases = [
            lease("autoscaler-bucket-00-of-02", "autoscaler-a_10.0.0.1"),
            lease("autoscaler-bucket-01-of-02", ""),
            lease("autoscaler-bucket-00-of-01", ""),
            lease("ebb-autoscaler", "other"),
        ];
        let found = holders(&leases);
        assert_eq!(found.pods, ["autoscaler-a".to_owned()].into());
        assert_eq!(found.vacant, ["autoscaler-bucket-01-of-02"]);
        assert!(holders(&leases[1..]).pods.is_empty(), "nobody decides");
    }
}
