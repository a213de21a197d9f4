//! How long are ebb's certificates good for, and were they renewed when they were to be?

use std::time::{Duration, SystemTime};

use dataplane::CertificateValidity;
use k8s_openapi::api::core::v1::Secret;
use vocabulary::{AUTHORITY_SECRET, TLS_CHAIN};

use super::findings::CheckFinding;
use crate::cluster::Cluster;

/// In which the autoscaler keeps what it makes.
const SECRETS: [&str; 4] = [AUTHORITY_SECRET, "ebb-autoscaler-tls", "ebb-activator-tls", "ebb-injector-tls"];
/// An autoscaler looks once a minute, and again after a failure; what is due for longer is not renewed.
const RENEWAL_DELAY: Duration = Duration::from_mins(10);
const DAY: Duration = Duration::from_hours(24);

/// One finding each; of those that are missing none.
pub(super) async fn check(cluster: &Cluster) -> Vec<CheckFinding> {
    let mut findings = Vec::new();
    for name in SECRETS {
        let what = format!("the certificate in Secret {name} is good");
        let data = match cluster.system_api::<Secret>().get_opt(name).await {
            Err(error) => {
                findings.push(CheckFinding::unknown(what, error.to_string()));
                continue;
            }
            Ok(None) => continue,
            Ok(Some(secret)) => secret.data.unwrap_or_default(),
        };
        let validity = data.get(TLS_CHAIN).and_then(|chain| CertificateValidity::of_pem(&chain.0));
        findings.push(verdict(what, validity, &cluster.system, runtime::wall_time()));
    }
    findings
}

fn verdict(
    what: String,
    validity: Option<CertificateValidity>,
    system: &str,
    now: SystemTime,
) -> CheckFinding {
    let logs =
        format!("the autoscaler looks after it; `kubectl -n {system} logs deployment/autoscaler` says more");
    let Some(CertificateValidity { from, until }) = validity else {
        return CheckFinding::wrong(what, format!("it holds none under {TLS_CHAIN}; {logs}"));
    };
    if now < from {
        return CheckFinding::wrong(
            what,
            "it is not valid yet: the clocks of this machine and the cluster's differ; set them".to_owned(),
        );
    }
    let Some(left) = until.duration_since(now).ok().filter(|left| !left.is_zero()) else {
        return CheckFinding::wrong(
            what,
            format!("it has expired, and the programs that check it refuse it; {logs}"),
        );
    };
    let what = format!("{what} for {}", in_words(left));
    let due = from + until.duration_since(from).unwrap_or_default() * 2 / 3;
    if due + RENEWAL_DELAY < now {
        return CheckFinding::remark(what, format!("it should have been renewed by now; {logs}"));
    }
    CheckFinding::well(what)
}

fn in_words(left: Duration) -> String {
    let (days, hours) = (left.as_secs() / DAY.as_secs(), left.as_secs() / 3600);
    match (days, hours) {
        (2.., _) => format!("{days} days"),
        (_, 2..) => format!("{hours} hours"),
        _ => format!("{} minutes", left.as_secs() / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::check::findings::CheckFindings;

    fn text(now: SystemTime, validity: Option<CertificateValidity>) -> String {
        let mut findings = CheckFindings::default();
        findings.begin("ebb itself");
        findings.add(verdict("it is good".to_owned(), validity, "ebb-system", now));
        findings.text()
    }

    #[test]
    fn a_certificate_is_told_by_what_is_left_of_its_time() {
        let after = |days: f64| UNIX_EPOCH + DAY.mul_f64(days);
        for (days, expected) in [
            (0.0, "ok       it is good for 30 days"),
            (19.9, "ok       it is good for 10 days"),
            (20.1, "remark   it is good for 9 days\n           it should have been renewed by now"),
            (29.5, "remark   it is good for 12 hours"),
            (30.0, "WRONG    it is good\n           it has expired"),
        ] {
            let said = text(after(days), Some(CertificateValidity { from: after(0.0), until: after(30.0) }));
            assert!(said.contains(expected), "after {days} days: {said}");
        }
        let later = CertificateValidity { from: after(1.0), until: after(2.0) };
        assert!(
            text(UNIX_EPOCH, Some(later)).contains("WRONG    it is good\n           it is not valid yet")
        );
        assert!(
            text(UNIX_EPOCH, None).contains("WRONG    it is good\n           it holds none under tls.crt")
        );
    }
}
