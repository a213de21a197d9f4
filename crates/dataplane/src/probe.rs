//! Is the app ready, and is it alive? One check, as the kubelet would do it.
//!
//! The kubelet's rules are followed where Knative's own prober differs: a `Host` header is honoured, a
//! redirect is followed only within the app, and nobody verifies a certificate. The app is asked on both
//! loopback addresses, because some apps listen on one only.
//!
//! How often to ask is [`ProbePace`]'s business: fast while a request may be waiting for the app to come up.

mod check;
mod pace;
mod parse;

use std::time::Duration;

use runtime::Clock;
use thiserror::Error;
use vocabulary::AppProtocol;

use crate::upstream::Protocol;
pub use pace::ProbePace;
pub use parse::UnreadableProbe;

/// What to ask, and what the answers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The question.
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
    /// It was meant to ask for more than it does.
    pub is_weaker: bool,
}

/// The kinds of question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nobody asks: always passes.
    None,
    /// The port accepts a connection.
    Tcp {
        /// On the loopback interface.
        port: u16,
    },
    /// A request is answered with a status from 200 to 399.
    Http(HttpCheck),
    /// The gRPC health service says that it serves.
    Grpc {
        /// On the loopback interface.
        port: u16,
        /// Which service is asked about; empty means the server.
        service: String,
    },
    /// A command ends with status 0.
    Exec {
        /// Program and arguments.
        command: Vec<String>,
    },
}

/// An HTTP request and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// On the loopback interface.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Headers to add, `Host` included.
    pub headers: Vec<(String, String)>,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// Why a check did not pass, for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ProbeFailure(pub String);

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
        }
    }

    /// The same, of an app that speaks this on this port: one that speaks HTTP/2 alone understands no other
    /// question.
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

    /// Asks once. Must run where local tasks can be spawned.
    pub async fn ask(&self, clock: Clock) -> Result<(), ProbeFailure> {
        let limit = self.timeout;
        let prober = check::Prober { clock, timeout: limit };
        // One limit over everything, connecting to both addresses and following redirects included, as the
        // kubelet counts it.
        match tokio::time::timeout(limit, prober.ask(&self.check)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(ProbeFailure(format!("no answer within {limit:?}"))),
        }
    }

    /// Whether each question starts a process, which nobody wants to do a thousand times a second.
    pub fn is_costly(&self) -> bool {
        matches!(self.check, Check::Exec { .. })
    }
}

#[cfg(test)]
mod tests;
