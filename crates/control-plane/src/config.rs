//! What does the environment say? It is read once, and every problem is named at once.

use std::net::SocketAddr;

use runtime::{Environment, EnvironmentReader, TrustedHosts};
use vocabulary::{CheckedValue, Problem, ReplicaName};

/// The largest number of buckets. Each is a Lease that is renewed every five seconds, and a cluster needs no
/// more autoscalers than this.
const BUCKETS_MAX: usize = 16;

/// The settings of `ebb-autoscaler`, read once from its environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramConfig {
    pub(crate) name: ReplicaName,
    pub(crate) namespace: String,
    /// Into how many buckets revisions are hashed.
    pub(crate) buckets: u16,
    pub(crate) api: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) trusted: TrustedHosts,
    pub(crate) log: String,
}

impl ProgramConfig {
    /// Reads `POD_NAME` (or `HOSTNAME`), `POD_NAMESPACE`, `AUTOSCALER_BUCKETS`,
    /// `AUTOSCALER_{API,METRICS}_ADDRESS`, `EBB_TRUSTED_HOSTS` and `EBB_LOG`.
    pub(crate) fn read(environment: &Environment) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = EnvironmentReader::new(environment);
        let name =
            reader.required(&["POD_NAME", "HOSTNAME"], "the other autoscalers know this one by that name");
        let namespace = reader.required(
            &["POD_NAMESPACE"],
            "the activators, the Leases and the ConfigMaps of ebb are in that namespace",
        );
        let buckets = reader.number("AUTOSCALER_BUCKETS", 1, BUCKETS_MAX);
        let buckets = buckets.and_then(|buckets| u16::try_from(buckets).ok());
        let config = Self {
            name: ReplicaName::new(name),
            namespace: namespace.to_owned(),
            buckets: buckets.unwrap_or(1),
            api: reader.socket_address_or("AUTOSCALER_API_ADDRESS", "[::]:8080"),
            metrics: reader.socket_address_or("AUTOSCALER_METRICS_ADDRESS", "[::]:9091"),
            trusted: reader.trusted_hosts(),
            log: reader.text_or("EBB_LOG", "info"),
        };
        reader.finish(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ProgramConfig, Vec<String>> {
        let environment = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let read = ProgramConfig::read(&environment).map(|checked| checked.value);
        read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_name_and_a_namespace_are_enough() {
        let config = read(&[("HOSTNAME", "autoscaler-0"), ("POD_NAMESPACE", "ebb-system")]).expect("enough");
        assert_eq!((config.api.port(), config.metrics.port(), config.log.as_str()), (8080, 9091, "info"));
        assert_eq!(config.buckets, 1);
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let problems = read(&[("AUTOSCALER_API_ADDRESS", "8080")]).expect_err("three things are wrong");
        assert_eq!(
            problems,
            [
                "POD_NAME is not set; the other autoscalers know this one by that name",
                "POD_NAMESPACE is not set; the activators, the Leases and the ConfigMaps of ebb are in that namespace",
                "AUTOSCALER_API_ADDRESS is \"8080\"; write an address with a port, such as \"[::]:8080\"",
            ]
        );
    }
}
