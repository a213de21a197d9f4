//! What the environment says, read once, every problem at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use runtime::{TrustedHosts, read_address};
use vocabulary::ReplicaName;

/// What `ebb-autoscaler` needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramConfig {
    pub(crate) name: ReplicaName,
    pub(crate) namespace: String,
    pub(crate) api: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) trusted: TrustedHosts,
    pub(crate) log: String,
}

impl ProgramConfig {
    /// Reads `POD_NAME` (or `HOSTNAME`), `POD_NAMESPACE`, `AUTOSCALER_{API,METRICS}_ADDRESS`, `EBB_TRUSTED_HOSTS` and `EBB_LOG`.
    pub(crate) fn read(environment: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let text = |key: &str| environment.get(key).filter(|text| !text.is_empty());
        let name = text("POD_NAME").or_else(|| text("HOSTNAME")).cloned().unwrap_or_else(|| {
            problems.push("POD_NAME is not set; by it this autoscaler is known among the others".to_owned());
            String::new()
        });
        let namespace = text("POD_NAMESPACE").cloned().unwrap_or_else(|| {
            problems.push(
                "POD_NAMESPACE is not set; its activators, lease and configuration are there".to_owned(),
            );
            String::new()
        });
        let mut address = |key, default| read_address(environment, key, default, &mut problems);
        let api = address("AUTOSCALER_API_ADDRESS", "0.0.0.0:8080");
        let metrics = address("AUTOSCALER_METRICS_ADDRESS", "0.0.0.0:9091");
        let trusted = text("EBB_TRUSTED_HOSTS").map_or("", String::as_str);
        let trusted = trusted.parse().unwrap_or_else(|error| {
            problems.push(format!("EBB_TRUSTED_HOSTS: {error}"));
            TrustedHosts::default()
        });
        let log = text("EBB_LOG").cloned().unwrap_or_else(|| "info".to_owned());
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { name: ReplicaName::new(&name), namespace, api, metrics, trusted, log })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ProgramConfig, Vec<String>> {
        ProgramConfig::read(&pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn a_name_and_a_namespace_are_enough() {
        let config = read(&[("HOSTNAME", "autoscaler-0"), ("POD_NAMESPACE", "ebb-system")]).expect("enough");
        assert_eq!((config.api.port(), config.metrics.port(), config.log.as_str()), (8080, 9091, "info"));
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let problems = read(&[("AUTOSCALER_API_ADDRESS", "8080")]).expect_err("three things are wrong");
        assert_eq!(
            problems,
            [
                "POD_NAME is not set; by it this autoscaler is known among the others",
                "POD_NAMESPACE is not set; its activators, lease and configuration are there",
                "AUTOSCALER_API_ADDRESS is \"8080\"; write an address with a port, such as \"0.0.0.0:8080\"",
            ]
        );
    }
}
