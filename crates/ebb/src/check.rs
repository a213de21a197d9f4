//! `ebb check`: what of a cluster is well, and how to mend what is not.
//!
//! Everything is read with the rights of the person that runs the command. A finding for which these do not
//! suffice is unknown, not well.

mod adopted;
mod certificates;
mod deployed;
mod findings;
mod installation;
mod knative;
mod narrowed;
mod own_rights;
mod permissions;
mod revoked;
mod settings;
mod start_failures;

use std::process::ExitCode;

use crate::check::findings::{CheckFinding, CheckFindings};
use crate::check::start_failures::{AUTOSCALER, StartFailures};
use crate::cli::CheckOptions;
use crate::cluster::Cluster;
use crate::output;

/// Older API servers lack what ebb stands on.
const MINOR_MIN: u32 = 29;

/// Ends with 1 if something is wrong.
pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let mut cluster = Cluster::find(&options.cluster).await?;
        let mut findings = CheckFindings::default();
        findings.begin("cluster");
        if version(&cluster, &mut findings).await {
            match &options.knative {
                Some(system) => {
                    cluster.system.clone_from(system);
                    knative::check(&cluster, &mut findings).await;
                }
                None => installed_by_itself(&cluster, options, &mut findings).await,
            }
        }
        output::print_shown(findings.text().trim_end())?;
        Ok(if findings.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// All findings of an installation without Knative. Why ebb does not start comes first.
async fn installed_by_itself(cluster: &Cluster, options: &CheckOptions, findings: &mut CheckFindings) {
    let failures = StartFailures::find(cluster).await;
    if failures.has_cause() {
        findings.begin("why ebb does not start");
        for cause in failures.causes() {
            findings.add(cause);
        }
    }
    findings.begin("your rights");
    own_rights::check(cluster, findings).await;
    findings.begin("ebb itself");
    installation::check(cluster, &failures, findings).await;
    findings.begin("settings");
    settings::check(cluster, findings).await;
    findings.begin("what is adopted");
    if failures.keeps_from_starting(AUTOSCALER) {
        let unknown = CheckFinding::unknown("workloads".to_owned(), "no autoscaler answers".to_owned());
        return findings.fold(unknown);
    }
    adopted::check(cluster, options.cluster.namespace.as_deref(), findings).await;
}

/// Whether the API server answers; notes whether its version is new enough.
async fn version(cluster: &Cluster, findings: &mut CheckFindings) -> bool {
    let context = &cluster.context;
    match cluster.client.apiserver_version().await {
        Err(error) => {
            let advice = format!("{error}; does `kubectl --context {context} version` answer?");
            findings.add(CheckFinding::wrong(format!("the API server of context {context} answers"), advice));
            false
        }
        Ok(version) => {
            let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
            let is_new = digits.parse::<u32>().is_ok_and(|minor| version.major != "1" || minor >= MINOR_MIN);
            let what = format!("Kubernetes {} is 1.{MINOR_MIN} or newer", version.git_version);
            findings.add(CheckFinding::of(is_new, what, || "upgrade the cluster".to_owned()));
            true
        }
    }
}
