//! What all revisions and threads of one activator share.

use std::sync::Arc;

use rand::TryRng;
use runtime::{Clock, LogFormat, RequestReporting};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vocabulary::ReplicaName;

use crate::agenda::Agenda;
use crate::config::{ActivatorConfig, Limits};
use crate::forwarders::TrustedForwarders;
use crate::metrics::ActivatorMetrics;
use crate::place::ActivatorPlace;
use crate::quota::Quota;

/// The shared part of an activator.
pub(crate) struct Context {
    pub(crate) name: ReplicaName,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) metrics: ActivatorMetrics,
    /// The settings of the request log and of traces.
    pub(crate) reporting: watch::Receiver<Arc<RequestReporting>>,
    /// The format of the lines of the request log.
    pub(crate) log_format: LogFormat,
    pub(crate) forwarders: TrustedForwarders,
    pub(crate) place: ActivatorPlace,
    /// Revisions at which the thread of the links is to look.
    pub(crate) agenda: Agenda,
    /// Cancelled when the activator is leaving: another activator takes over.
    pub(crate) leaving: CancellationToken,
    /// The owners of all buckets have said that no route names this activator any more.
    pub(crate) released: CancellationToken,
    waiting_places: Quota,
    replay_bytes: Quota,
}

impl Context {
    pub(crate) fn new(config: ActivatorConfig) -> Self {
        let waiting_places = Quota::new(usize::try_from(config.limits.waiting_in_all).unwrap_or(usize::MAX));
        let replay_bytes = Quota::new(config.limits.replay_bytes_in_all);
        Self {
            name: config.name,
            clock: config.clock,
            limits: config.limits,
            metrics: config.metrics,
            reporting: config.reporting,
            log_format: config.log_format,
            forwarders: config.forwarders,
            place: config.place,
            agenda: Agenda::default(),
            leaving: CancellationToken::new(),
            released: CancellationToken::new(),
            waiting_places,
            replay_bytes,
        }
    }

    /// Takes one of the places for waiting requests; gives it back on drop. `None` if all are taken.
    pub(crate) fn take_waiting_place(self: &Arc<Self>) -> Option<WaitingPlace> {
        if !self.waiting_places.take(1) {
            return None;
        }
        self.metrics.waiting_requests.inc();
        Some(WaitingPlace(Arc::clone(self)))
    }

    /// Reserves memory for a body that may have to be sent again; `false` if all of it is taken.
    pub(crate) fn reserve_replay(&self, bytes: usize) -> bool {
        let is_reserved = self.replay_bytes.take(bytes);
        if is_reserved {
            self.metrics.replay_bytes.inc_by(as_gauge(bytes));
        }
        is_reserved
    }

    /// Gives back what was reserved.
    pub(crate) fn release_replay(&self, bytes: usize) {
        self.replay_bytes.give_back(bytes);
        self.metrics.replay_bytes.dec_by(as_gauge(bytes));
    }
}

/// One of the places for waiting requests.
pub(crate) struct WaitingPlace(Arc<Context>);

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.waiting_places.give_back(1);
        self.0.metrics.waiting_requests.dec();
    }
}

/// From the operating system: ids must differ between lives of the process, and seeds may as well.
pub(crate) fn random_number() -> u64 {
    rand::rngs::SysRng.try_next_u64().expect("the operating system has random numbers")
}

fn as_gauge(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
