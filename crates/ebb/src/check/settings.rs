//! Are the settings that stand in ebb's ConfigMaps in force?

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use runtime::{OBSERVABILITY_CONFIG_MAP, Observability};
use settings::{CONFIG_MAP_NAME, ClusterConfig};
use vocabulary::Findings;

use super::findings::{CheckFinding, CheckFindings};
use crate::cluster::Cluster;

/// What there is to say of a ConfigMap's data.
type SettingsCheck = fn(&BTreeMap<String, String>) -> Findings;

const CONFIG_MAPS: [(&str, SettingsCheck); 2] =
    [(CONFIG_MAP_NAME, scaling_findings), (OBSERVABILITY_CONFIG_MAP, Observability::findings)];

pub(super) async fn check(cluster: &Cluster, findings: &mut CheckFindings) {
    for (name, read) in CONFIG_MAPS {
        let what = format!("what ConfigMap {name} says is in force");
        findings.add(match cluster.system_api::<ConfigMap>().get_opt(name).await {
            Err(error) => CheckFinding::unknown(what, error.to_string()),
            Ok(None) => CheckFinding::remark(what, "it is not there, so the defaults are".to_owned()),
            Ok(Some(found)) => verdict(what, read(&found.data.unwrap_or_default())),
        });
    }
}

fn scaling_findings(data: &BTreeMap<String, String>) -> Findings {
    match ClusterConfig::parse(data) {
        Ok(checked) => Findings { problems: Vec::new(), warnings: checked.warnings },
        Err(problems) => Findings { problems, warnings: Vec::new() },
    }
}

fn verdict(what: String, found: Findings) -> CheckFinding {
    let lines = |problems: Vec<vocabulary::Problem>| {
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; ")
    };
    let Findings { problems, warnings } = found;
    match (problems.is_empty(), warnings.is_empty()) {
        (false, _) => CheckFinding::wrong(what, format!("{}; the last good settings are", lines(problems))),
        (true, false) => CheckFinding::remark(what, lines(warnings)),
        (true, true) => CheckFinding::well(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_refused_is_wrong_and_one_without_effect_a_remark() {
        let text = |name: &str, key: &str, value: &str| {
            let (_, read) = CONFIG_MAPS.iter().find(|(known, _)| *known == name).expect("it is one of ours");
            let mut findings = CheckFindings::default();
            findings.begin("settings");
            let data = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            findings.add(verdict("it is in force".to_owned(), read(&data)));
            findings.text()
        };
        let well = text(CONFIG_MAP_NAME, "stable-window", "30s");
        assert!(well.contains("ok       it is in force"), "{well}");
        let wrong = text(CONFIG_MAP_NAME, "stable-window", "soon");
        assert!(wrong.contains("WRONG    it is in force\n           key stable-window"), "{wrong}");
        let remark = text(OBSERVABILITY_CONFIG_MAP, "metrics-protocol", "grpc");
        assert!(remark.contains("remark   it is in force\n           metrics-protocol"), "{remark}");
    }
}
