//! How activators of `ebb up` start: each accepts from the same listening sockets.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use activator::{
    Activator, ActivatorConfig, ActivatorPlace, Limits, Listeners, TlsListener, TrustedForwarders,
};
use anyhow::Context;
use dataplane::ConnectionBudget;
use orchestration::{ActivatorFacts, ActivatorLife};
use platform_local::FrontDoor;
use runtime::{Clock, LogFormat, RequestReporting};
use tokio::sync::watch;
use vocabulary::{LinkAddress, ReplicaName};

use super::activators::{AnnouncedActivators, RunningActivator};

/// More threads than this would take requests from each other without serving them sooner.
const WORKERS_MAX: usize = 8;

/// The sockets at which clients come in. All activators accept there.
pub(crate) struct Entrances {
    /// The addresses of the sockets below.
    pub(crate) front_door: FrontDoor,
    pub(crate) requests: TcpListener,
    /// For those that speak TLS, if somewhere they do.
    pub(crate) tls: Option<TlsListener>,
}

/// Makes activators that accept from the same listening sockets.
pub(super) struct ActivatorStarter {
    pub(super) entrances: Entrances,
    pub(super) clock: Clock,
    pub(super) metrics: activator::ActivatorMetrics,
    /// Shared by all of them: their clients take descriptors of one process.
    pub(super) connections: Arc<ConnectionBudget>,
    /// Of each; what connections hold unread is bounded for all of them together.
    pub(super) limits: Limits,
    /// What they tell about each request.
    pub(super) reporting: watch::Receiver<Arc<RequestReporting>>,
    pub(super) log_format: LogFormat,
    pub(super) forwarders: TrustedForwarders,
    /// How many accept at once; they share the machine's cores.
    pub(super) at_once: usize,
    pub(super) started: u64,
}

impl ActivatorStarter {
    /// Starts and announces as many activators as accept at once.
    pub(super) fn start_all(
        &mut self,
        activators: &AnnouncedActivators,
    ) -> anyhow::Result<Vec<RunningActivator>> {
        (0..self.at_once).map(|_| self.start().inspect(|activator| activators.add(activator))).collect()
    }

    pub(super) fn start(&mut self) -> anyhow::Result<RunningActivator> {
        let link =
            runtime::listen((Ipv4Addr::LOCALHOST, 0).into()).context("listening for the activator's link")?;
        self.started += 1;
        let name = ReplicaName::new(&format!("activator-{}", self.started));
        let link_token = Some(runtime::new_link_token());
        let address = LinkAddress { token: link_token, ..link.local_addr()?.into() };
        let facts = ActivatorFacts { name, link: address, life: ActivatorLife::Ready };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(WORKERS_MAX);
        let config = ActivatorConfig {
            name: facts.name.clone(),
            workers: cores.div_ceil(self.at_once),
            limits: self.limits,
            connections: Arc::clone(&self.connections),
            clock: self.clock,
            metrics: self.metrics.clone(),
            reporting: self.reporting.clone(),
            log_format: self.log_format,
            forwarders: self.forwarders.clone(),
            place: ActivatorPlace::Ebb,
        };
        let Entrances { requests, tls, front_door: _ } = &self.entrances;
        let requests = requests.try_clone().context("lending the listening socket")?;
        let tls =
            tls.as_ref().map(TlsListener::try_clone).transpose().context("lending the socket for TLS")?;
        let listeners =
            Listeners { requests, more_requests: None, tls, link, link_access: link_token.into() };
        Ok(RunningActivator {
            activator: Activator::start(config, listeners).context("starting the activator")?,
            facts,
        })
    }
}
