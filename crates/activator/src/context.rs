//! What all revisions and threads of one activator share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rand::TryRng;
use runtime::{Clock, LogFormat, RequestReporting};
use throttling::ReporterSeconds;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vocabulary::{BootId, ReplicaName, RevisionName, Timestamp};

use crate::agenda::Agenda;
use crate::assigned_revision::AssignedRevision;
use crate::config::{ActivatorConfig, Limits};
use crate::forwarders::TrustedForwarders;
use crate::metrics::ActivatorMetrics;
use crate::quota::Quota;

/// The shared part of an activator.
pub(crate) struct Context {
    pub(crate) name: ReplicaName,
    pub(crate) boot: BootId,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) metrics: ActivatorMetrics,
    /// The settings of the request log and of traces.
    pub(crate) reporting: watch::Receiver<Arc<RequestReporting>>,
    /// The format of the lines of the request log.
    pub(crate) log_format: LogFormat,
    pub(crate) forwarders: TrustedForwarders,
    pub(crate) seconds: ReporterSeconds,
    /// The first second that is not closed yet.
    open_second: AtomicU64,
    /// Revisions whose queue moves on by time alone (a pod that rested, a retry that the budget covers).
    pub(crate) pacing: Agenda,
    /// Revisions that hold more than the autoscaler knows.
    pub(crate) presence: Agenda,
    /// Retired revisions that held something and do no more.
    pub(crate) emptied: Agenda,
    /// Revisions with something to report this second.
    pub(crate) active: Mutex<BTreeMap<RevisionName, Arc<AssignedRevision>>>,
    /// Whether another activator takes over: the autoscaler then hears at once of requests that end here, as
    /// it hears of requests that begin there. Read by each request, so it is no more than a flag.
    is_leaving: AtomicBool,
    /// Cancelled when the activator is leaving, for tasks that wait for that.
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
            boot: BootId(random_number()),
            clock: config.clock,
            limits: config.limits,
            metrics: config.metrics,
            reporting: config.reporting,
            log_format: config.log_format,
            forwarders: config.forwarders,
            // Seconds begin when the process's do: one activator that takes over from another in the same
            // process then reports the same seconds, and no request is counted in two of them.
            seconds: ReporterSeconds::since(Timestamp::from_secs(config.clock.now().whole_secs())),
            open_second: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            leaving: CancellationToken::new(),
            released: CancellationToken::new(),
            pacing: Agenda::default(),
            presence: Agenda::default(),
            emptied: Agenda::default(),
            active: Mutex::default(),
            waiting_places,
            replay_bytes,
        }
    }

    /// The activator is on its way out.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.leaving.cancel();
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// The first second that is not closed yet.
    pub(crate) fn open_second(&self) -> u64 {
        self.open_second.load(Ordering::Relaxed)
    }

    /// What begins to be measured from now on belongs to that second, or to later ones.
    pub(crate) fn begin_second(&self, second: u64) {
        self.open_second.store(second, Ordering::Relaxed);
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
