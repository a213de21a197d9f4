//! What the injector's environment says.

use std::net::SocketAddr;
use std::path::PathBuf;

use runtime::{Environment, EnvironmentReader, TrustedHosts};
use vocabulary::{CheckedValue, Problem};

/// The settings of `ebb-injector`, read once from its environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InjectorConfig {
    pub(super) address: SocketAddr,
    pub(super) metrics: SocketAddr,
    /// A folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub(super) certificates: PathBuf,
    /// A file with the authority of the API server's own certificate, if it shows one.
    pub(super) callers: Option<PathBuf>,
    /// A folder with a file for each key of `config-autoscaler`.
    pub(super) settings: Option<PathBuf>,
    /// A folder with a file for each key of `config-observability`.
    pub(super) observability: Option<PathBuf>,
    /// The image of the queue-proxy that pods are given.
    pub(super) image: String,
    /// Names under which the page of metrics may be asked.
    pub(super) trusted: TrustedHosts,
    pub(super) log: String,
}

impl InjectorConfig {
    /// Reads `INJECTOR_ADDRESS`, `INJECTOR_METRICS_ADDRESS`, `INJECTOR_TLS`, `INJECTOR_CLIENT_CA`,
    /// `INJECTOR_CONFIG`, `INJECTOR_OBSERVABILITY`, `QUEUE_PROXY_IMAGE`, `EBB_TRUSTED_HOSTS` and `EBB_LOG`.
    pub(super) fn read(environment: &Environment) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = EnvironmentReader::new(environment);
        let address = reader.socket_address_or("INJECTOR_ADDRESS", "[::]:8443");
        let metrics = reader.socket_address_or("INJECTOR_METRICS_ADDRESS", "[::]:9091");
        let certificates =
            reader.required(&["INJECTOR_TLS"], "it names the folder of the webhook's certificates").into();
        let callers = reader.text("INJECTOR_CLIENT_CA").map(PathBuf::from);
        let settings = reader.text("INJECTOR_CONFIG").map(PathBuf::from);
        let observability = reader.text("INJECTOR_OBSERVABILITY").map(PathBuf::from);
        let image = reader.required(&["QUEUE_PROXY_IMAGE"], "it names the image that pods get").to_owned();
        let trusted = reader.trusted_hosts();
        let log = reader.text_or("EBB_LOG", "info");
        reader.finish(Self {
            address,
            metrics,
            certificates,
            callers,
            settings,
            observability,
            image,
            trusted,
            log,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_named_at_once() {
        let environment = Environment::from([("INJECTOR_ADDRESS".to_owned(), "8443".to_owned())]);
        let problems = InjectorConfig::read(&environment).expect_err("three things are wrong");
        let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["INJECTOR_ADDRESS", "INJECTOR_TLS", "QUEUE_PROXY_IMAGE"]);
    }
}
