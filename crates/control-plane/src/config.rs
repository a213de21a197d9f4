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
    /// Given in the place of an installed Knative's autoscaler.
    pub(crate) knative: Option<KnativeConfig>,
}

/// The settings that an autoscaler needs in Knative's place alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KnativeConfig {
    /// The address of this autoscaler's pod.
    pub(crate) address: String,
    /// The cluster's domain, if the environment says it.
    pub(crate) domain: Option<String>,
    /// Where activators of Knative's push their load.
    pub(crate) stats: SocketAddr,
}

/// In which installation the autoscaler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramProfile {
    Ebb,
    Knative,
}

impl KnativeConfig {
    fn read(reader: &mut EnvironmentReader<'_>) -> Self {
        if reader.text("STATEFUL_CONTROLLER_ORDINAL").is_some() {
            let flaw = "is set: autoscalers of a StatefulSet agree by no Lease, and ebb goes by Leases alone; run the autoscaler as a Deployment";
            reader.refuse("STATEFUL_CONTROLLER_ORDINAL", flaw);
        }
        if reader.text("AUTOSCALER_BUCKETS").is_some() {
            let flaw = "has no effect in Knative's place, where config-leader-election says it; remove it";
            reader.warn("AUTOSCALER_BUCKETS", flaw);
        }
        let why = "Knative's programs know the holder of a Lease by its name and address";
        Self {
            address: reader.required(&["POD_IP"], why).to_owned(),
            domain: reader.text("CLUSTER_DOMAIN").map(str::to_owned),
            stats: reader.socket_address_or("AUTOSCALER_STATS_ADDRESS", "[::]:8080"),
        }
    }
}

impl ProgramConfig {
    /// Reads `POD_NAME` (or `HOSTNAME`), `POD_NAMESPACE`, `AUTOSCALER_BUCKETS`,
    /// `AUTOSCALER_{API,METRICS}_ADDRESS`, `EBB_TRUSTED_HOSTS`, `EBB_LOG` and `EBB_PROFILE`; in Knative's
    /// place `SYSTEM_NAMESPACE`, `POD_IP`, `CLUSTER_DOMAIN` and `AUTOSCALER_STATS_ADDRESS` too.
    pub(crate) fn read(environment: &Environment) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = EnvironmentReader::new(environment);
        let name =
            reader.required(&["POD_NAME", "HOSTNAME"], "the other autoscalers know this one by that name");
        let profile = reader
            .choice("EBB_PROFILE", &[("ebb", ProgramProfile::Ebb), ("knative", ProgramProfile::Knative)]);
        // Knative's port of stats is that of ebb's API elsewhere, and its programs know its namespace by
        // another variable.
        let (namespaces, api): (&[&str], _) = match profile {
            ProgramProfile::Ebb => (&["POD_NAMESPACE"], "[::]:8080"),
            ProgramProfile::Knative => (&["POD_NAMESPACE", "SYSTEM_NAMESPACE"], "[::]:8081"),
        };
        let namespace = reader.required(
            namespaces,
            "the activators, the Leases and the ConfigMaps of ebb are in that namespace",
        );
        let buckets = reader.number("AUTOSCALER_BUCKETS", 1, BUCKETS_MAX);
        let buckets = buckets.and_then(|buckets| u16::try_from(buckets).ok());
        let config = Self {
            name: ReplicaName::new(name),
            namespace: namespace.to_owned(),
            buckets: buckets.unwrap_or(1),
            api: reader.socket_address_or("AUTOSCALER_API_ADDRESS", api),
            metrics: reader.socket_address_or("AUTOSCALER_METRICS_ADDRESS", "[::]:9091"),
            trusted: reader.trusted_hosts(),
            log: reader.text_or("EBB_LOG", "info"),
            knative: (profile == ProgramProfile::Knative).then(|| KnativeConfig::read(&mut reader)),
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
    fn in_knatives_place_the_port_of_stats_is_knatives_and_the_api_moves() {
        let given = [
            ("POD_NAME", "autoscaler-7d9f-x2x"),
            ("POD_IP", "10.0.0.7"),
            ("SYSTEM_NAMESPACE", "knative-serving"),
            ("EBB_PROFILE", "knative"),
        ];
        let config = read(&given).expect("enough");
        let knative = config.knative.expect("it stands in Knative's place");
        assert_eq!(
            (knative.address.as_str(), knative.stats.port(), knative.domain),
            ("10.0.0.7", 8080, None)
        );
        assert_eq!((config.api.port(), config.namespace.as_str()), (8081, "knative-serving"));
        let more = [given.as_slice(), &[("STATEFUL_CONTROLLER_ORDINAL", "autoscaler-0")]].concat();
        let problems = read(&more).expect_err("it is refused by name");
        assert!(problems[0].contains("run the autoscaler as a Deployment"), "{problems:?}");
        let unknown = read(&[("HOSTNAME", "a"), ("POD_NAMESPACE", "b"), ("EBB_PROFILE", "istio")]);
        assert!(unknown.expect_err("no such profile")[0].contains("EBB_PROFILE"));
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
