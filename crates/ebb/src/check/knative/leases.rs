//! Who holds Knative's Leases, and can ebb hold them beside Knative's programs?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use settings::LeaderElection;
use vocabulary::knative_lease;

use crate::check::findings::CheckFinding;
use crate::cluster::knative_leases;

pub(crate) const CONFIG_MAP: &str = "config-leader-election";
pub(crate) const SETTINGS_ARE_READ: &str = "config-leader-election can be kept";
pub(crate) const EACH_IS_HELD: &str = "each bucket of revisions has an autoscaler";

/// ebb's Leases last this long (`LEASE` of the crate `cluster`). A candidate of Knative's that waits for less
/// would take a Lease that is held.
const LASTS_MIN: Duration = Duration::from_secs(15);

/// The verdict about the settings.
pub(crate) fn of_settings(data: &BTreeMap<String, String>) -> CheckFinding {
    let what = SETTINGS_ARE_READ.to_owned();
    match LeaderElection::read(data) {
        Err(problems) => CheckFinding::wrong(what, problems.join("; ")),
        Ok(read) if read.times.lasts < LASTS_MIN => CheckFinding::wrong(
            what,
            format!(
                "lease-duration is {:?}, and ebb's Leases last {LASTS_MIN:?}; write that or more",
                read.times.lasts
            ),
        ),
        Ok(_) => CheckFinding::well(what),
    }
}

/// The verdict about the holders, by the number of buckets that the settings name. A Lease that has run out
/// has no holder any more. `now` is the time since 1970.
pub(crate) fn of_holders(data: &BTreeMap<String, String>, leases: &[Lease], now: Duration) -> CheckFinding {
    let count = LeaderElection::read(data).unwrap_or_default().buckets.value();
    let wanted: BTreeSet<String> = (0..count).map(|bucket| knative_lease(bucket, count)).collect();
    let run_out = knative_leases::run_out(leases, now);
    let (held, dead): (BTreeMap<_, _>, BTreeMap<_, _>) =
        knative_leases::held(leases).into_iter().partition(|(name, _)| !run_out.contains(name));
    let free = wanted.iter().filter(|name| !held.contains_key(name.as_str()));
    let free: Vec<String> = free
        .map(|name| match dead.get(name.as_str()) {
            Some(holder) => format!("{name} ({holder} held it, and has not renewed it in time)"),
            None => name.clone(),
        })
        .collect();
    let others = held.iter().filter(|(name, _)| !wanted.contains(**name));
    let others: Vec<String> = others.map(|(name, holder)| format!("{name} by {holder}")).collect();
    if !free.is_empty() {
        let why = format!("nobody holds {}: no count of its revisions changes", free.join(", "));
        return CheckFinding::wrong(EACH_IS_HELD.to_owned(), why);
    }
    if !others.is_empty() {
        let why = format!(
            "Leases of another number of buckets are held: {}; if that pod runs, two autoscalers decide: change `buckets` only with all of them stopped",
            others.join(", ")
        );
        return CheckFinding::remark(EACH_IS_HELD.to_owned(), why);
    }
    let holders: BTreeSet<&str> = held.values().map(|holder| knative_leases::pod_of(holder)).collect();
    let holders: Vec<&str> = holders.into_iter().collect();
    CheckFinding::well(format!("{EACH_IS_HELD}: {}", holders.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::findings::tests::text_of;

    fn lease(name: &str, holder: &str) -> Lease {
        let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": holder}});
        serde_json::from_value(lease).expect("a Lease")
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_bucket_needs_a_holder() {
        let two = map(&[("buckets", "2")]);
        let first = lease("autoscaler-bucket-00-of-02", "autoscaler-a_10.0.0.1");
        let free = lease("autoscaler-bucket-01-of-02", "");
        let second = lease("autoscaler-bucket-01-of-02", "autoscaler-b_10.0.0.2");
        let now = Duration::from_secs(1_795_780_800);
        let well = text_of(of_holders(&two, &[first.clone(), second.clone(), lease("webhook", "w")], now));
        assert!(well.contains("has an autoscaler: autoscaler-a, autoscaler-b"), "{well}");
        let wrong = text_of(of_holders(&two, &[first.clone(), free], now));
        assert!(wrong.contains("nobody holds autoscaler-bucket-01-of-02"), "{wrong}");
        let former = lease("autoscaler-bucket-00-of-01", "autoscaler-old_10.0.0.9");
        let remark = text_of(of_holders(&two, &[first, second, former], now));
        assert!(remark.contains("remark") && remark.contains("by autoscaler-old_10.0.0.9"), "{remark}");
    }

    #[test]
    fn a_dead_holder_holds_nothing() {
        let two = map(&[("buckets", "2")]);
        let renewed = |name: &str, holder: &str, at: &str| -> Lease {
            let spec = json!({"holderIdentity": holder, "renewTime": at, "leaseDurationSeconds": 15});
            serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a Lease")
        };
        let (noon, morning) = ("2026-11-27T12:00:00.000000Z", "2026-11-27T08:00:00.000000Z");
        let now = Duration::from_secs(1_795_780_800);
        let first = renewed("autoscaler-bucket-00-of-02", "autoscaler-a_10.0.0.1", noon);
        let dead = renewed("autoscaler-bucket-01-of-02", "autoscaler-b_10.0.0.2", morning);
        let wrong = text_of(of_holders(&two, &[first.clone(), dead], now));
        let expected = "nobody holds autoscaler-bucket-01-of-02 (autoscaler-b_10.0.0.2 held it";
        assert!(wrong.contains("WRONG") && wrong.contains(expected), "{wrong}");
        // One of another number of buckets is no danger then.
        let second = renewed("autoscaler-bucket-01-of-02", "autoscaler-b_10.0.0.2", noon);
        let former = renewed("autoscaler-bucket-00-of-01", "autoscaler-old_10.0.0.9", morning);
        let well = text_of(of_holders(&two, &[first, second, former], now));
        assert!(well.contains("ok ") && !well.contains("autoscaler-old"), "{well}");
    }

    #[test]
    fn settings_that_cannot_be_kept_are_named() {
        assert!(text_of(of_settings(&map(&[]))).contains("ok "));
        let short = text_of(of_settings(&map(&[("lease-duration", "5s")])));
        assert!(short.contains("WRONG") && short.contains("lease-duration is 5s"), "{short}");
        assert!(text_of(of_settings(&map(&[("buckets", "11")]))).contains("buckets is \"11\""));
    }
}
