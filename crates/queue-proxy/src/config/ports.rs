//! The ports of a queue-proxy, and pairs of them with ports of the app.

use std::str::FromStr;

/// Ports; 0 means any that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// `QUEUE_SERVING_PORT`: requests of clients and activators.
    pub requests: u16,
    /// `EBB_ADMIN_PORT`, 8022: health, readiness and the hook that waits for the drain.
    pub admin: u16,
    /// `EBB_LINK_PORT`, 8024: the autoscaler's link.
    pub link: u16,
    /// `EBB_STAT_PORT`, 9090: Knative's measurements; `off` where no autoscaler of Knative's asks for them.
    pub stat: Option<u16>,
    /// `EBB_METRICS_PORT`, 9091: the page for Prometheus.
    pub metrics: u16,
}

/// A port of the queue-proxy and the port of the app behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// The port at which the queue-proxy takes requests.
    pub requests: u16,
    /// The port of the app to which they go.
    pub app: u16,
}

impl FromStr for PortPair {
    type Err = PortPairError;

    fn from_str(text: &str) -> Result<Self, PortPairError> {
        let port = |text: &str| text.trim().parse().ok().filter(|port: &u16| *port > 0);
        let pair = text.split_once(':').and_then(|(requests, app)| port(requests).zip(port(app)));
        pair.map(|(requests, app)| Self { requests, app }).ok_or(PortPairError)
    }
}

/// The text is no pair of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no pair of ports; write \"8100:9090\", ours and the app's, with commas between several")]
pub struct PortPairError;
