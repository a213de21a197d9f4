//! Is the app ready, and is it alive? One check, as the kubelet would do it.
//!
//! The kubelet's rules are followed where Knative's own prober differs: a `Host` header is honoured, a
//! redirect is followed only within the app, and no certificate is verified. The app is asked on both
//! loopback addresses, because some apps listen on one only.
//!
//! How often to ask is [`ProbePace`]'s business: fast while a request may be waiting for the app to come up.

mod check;
mod pace;
mod parse;

use std::time::Duration;

use runtime::Clock;
use vocabulary::AppProtocol;

use crate::upstream::Protocol;
use check::Prober;

pub use check::{Check, HttpCheck, ProbeFailure};
pub use pace::ProbePace;
pub use parse::UnreadableProbe;

/// What to ask, and what the answers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What the app is asked, and on which port.
    pub check: Check,
    /// How long after the start of the app it is asked first.
    pub initial_delay: Duration,
    /// How often it is asked once it was answered; `None` is Knative's "as fast as is sensible".
    pub period: Option<Duration>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// How many good answers in a row make it pass.
    pub success_threshold: u32,
    /// How many bad answers in a row make it fail.
    pub failure_threshold: u32,
    /// Whether the check asks for less than its specification says (see [`Probe::parse`]).
    pub is_weaker: bool,
    /// Whether a container engine runs the app. A command is then started by the engine, which takes a tenth
    /// of a second of a core.
    pub is_run_by_engine: bool,
}

/// How an app is reached that a container engine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerNetwork {
    /// No engine runs the app: it is a process, or a container of the same pod.
    #[default]
    None,
    /// The app is in a network of its own, and the engine forwards its port.
    Bridge,
    /// The app is in the network of this machine.
    Host,
}

impl Probe {
    /// Passes always: for pods without a probe.
    pub fn none() -> Self {
        Self {
            check: Check::None,
            initial_delay: Duration::ZERO,
            period: None,
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
            is_weaker: false,
            is_run_by_engine: false,
        }
    }

    /// The same probe of an app in such a network, of which `port` is the one that takes requests.
    #[must_use]
    pub fn in_network(mut self, port: u16, network: ContainerNetwork) -> Self {
        self.is_run_by_engine = network != ContainerNetwork::None;
        if network == ContainerNetwork::Bridge && self.check == (Check::Tcp { port }) {
            self.check = Check::ForwardedTcp { port };
        }
        self
    }

    /// The same probe of an app that speaks `protocol` on `port`: an app that speaks HTTP/2 alone understands
    /// no other question.
    #[must_use]
    pub fn of_app(mut self, port: u16, protocol: AppProtocol) -> Self {
        if let Check::Http(http) = &mut self.check
            && http.port == port
            && protocol == AppProtocol::H2c
        {
            http.protocol = Protocol::Http2;
        }
        self
    }

    /// Asks the app once. Must run where local tasks can be spawned.
    pub async fn ask(&self, clock: Clock) -> Result<(), ProbeFailure> {
        let limit = self.timeout;
        let prober = Prober { clock, timeout: limit };
        // One limit over everything, connecting to both addresses and following redirects included, as the
        // kubelet counts it.
        match tokio::time::timeout(limit, prober.ask(&self.check)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(ProbeFailure(format!("no answer within {limit:?}"))),
        }
    }

    /// Whether each question starts a process, which is too costly to do a thousand times a second.
    fn is_costly(&self) -> bool {
        matches!(self.check, Check::Exec { .. })
    }
}

#[cfg(test)]
mod tests;
