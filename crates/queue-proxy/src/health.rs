//! Whether the app takes requests, and whether it is alive.
//!
//! The app is not asked on demand: one loop asks it, and every caller gets the last answer at once.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::iter;
use std::rc::Rc;
use std::time::Duration;

use dataplane::probe::{Check, Probe, ProbePace};
use futures_util::future::join_all;
use runtime::Clock;
use thiserror::Error;
use tokio::sync::Notify;
use tracing::{debug, info, warn};
use vocabulary::PodState;

use crate::config::AppProbes;

/// How long kubelet's question waits for an app that has not been ready yet. Kubelet asks as soon as the
/// container runs, waits a second for the answer, and then asks once a second, and in Knative's place once in
/// ten: an app that gets ready in between would count as unready until the next time.
pub(crate) const START_EXPECTED_WITHIN: Duration = Duration::from_millis(800);

/// What is known of the app.
pub(crate) struct Health {
    state: Cell<PodState>,
    /// Whether the app takes requests, also while the pod drains: it is still sent some then.
    is_app_ready: Cell<bool>,
    detail: RefCell<String>,
    /// Grows with every change, so that a listener misses none.
    version: Cell<u64>,
    changed: Notify,
}

/// Why the app is given up. This process ends, and with it the pod.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppFailure {
    /// The app ran, and its liveness probe fails.
    #[error("the liveness probe failed {failures} times in a row, at last with: {last}")]
    Liveness {
        /// The number of failures in a row.
        failures: u32,
        /// The last answer of the probe, for people.
        last: String,
    },
    /// The app did not start in time.
    #[error("the startup probe did not pass within {limit:?}, at last with: {last}")]
    Startup {
        /// The time that the app had to start.
        limit: Duration,
        /// The last answer of the probe, for people.
        last: String,
    },
}

impl Health {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            state: Cell::new(PodState::Starting),
            is_app_ready: Cell::new(false),
            detail: RefCell::default(),
            version: Cell::new(0),
            changed: Notify::new(),
        })
    }

    pub(crate) fn state(&self) -> PodState {
        self.state.get()
    }

    /// Why the app is not ready, as a text for people.
    pub(crate) fn detail(&self) -> String {
        self.detail.borrow().clone()
    }

    /// Whether the app passes its probe; a pod that drains has not lost that.
    pub(crate) fn is_app_ready(&self) -> bool {
        self.is_app_ready.get()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.get()
    }

    /// Waits until state or detail has changed since `version`.
    pub(crate) async fn newer_than(&self, version: u64) {
        while self.version.get() <= version {
            self.changed.notified().await;
        }
    }

    /// Waits until the app has been ready once, or the pod leaves, but no longer than so.
    pub(crate) async fn started(&self, at_most: Duration, clock: Clock) {
        let started = async {
            while self.state() == PodState::Starting {
                self.newer_than(self.version()).await;
            }
        };
        // Cancelling loses nothing: both only wait.
        tokio::select! {
            () = started => {}
            () = clock.sleep_until(clock.now() + at_most) => {}
        }
    }

    /// Marks the pod as draining. That is final, whatever the app answers.
    pub(crate) fn set_draining(&self) {
        self.set(PodState::Draining, String::new());
    }

    fn set(&self, state: PodState, detail: String) {
        if state != PodState::Draining {
            self.is_app_ready.set(state == PodState::Ready);
        }
        // The app is still asked while the pod drains, and its answers must not bring the pod back.
        let is_leaving = self.state.get() == PodState::Draining && state != PodState::Draining;
        if is_leaving || (self.state.get() == state && *self.detail.borrow() == detail) {
            return;
        }
        if self.state.get() != state {
            // Every pod drains once, and the program that scales it tells of that. The other states come from
            // the app and are news.
            if state == PodState::Draining {
                debug!("the pod is draining");
            } else if detail.is_empty() {
                info!("the pod is {}", state_in_words(state));
            } else {
                info!(detail, "the pod is {}", state_in_words(state));
            }
        }
        self.state.set(state);
        self.detail.replace(detail);
        // A number and not only a wake-up: a link that comes later compares it with what it has told.
        self.version.set(self.version.get() + 1);
        self.changed.notify_waiters();
    }

    /// Probes the app until it is given up.
    pub(crate) async fn watch(&self, probes: &AppProbes, clock: Clock) -> AppFailure {
        if let Some(startup) = &probes.startup
            && let Err(unhealthy) = self.start(startup, clock).await
        {
            return unhealthy;
        }
        let liveness = async {
            match &probes.liveness {
                Some(liveness) => self.watch_liveness(liveness, clock).await,
                None => std::future::pending().await,
            }
        };
        // The cancelled side is not needed any more: the process ends. A probe that is broken off does no
        // harm then.
        tokio::select! {
            unhealthy = liveness => unhealthy,
            never = self.follow_readiness(probes, clock) => match never {},
        }
    }

    /// Kubernetes counts failures per period; we ask more often, so the same patience is a time here.
    async fn start(&self, probe: &Probe, clock: Clock) -> Result<(), AppFailure> {
        let limit =
            probe.initial_delay + probe.period.unwrap_or(Duration::from_secs(1)) * probe.failure_threshold;
        let deadline = clock.now() + limit;
        let mut pace = ProbePace::new(probe);
        loop {
            let Err(failure) = probe.ask(clock).await else { return Ok(()) };
            if clock.now() >= deadline {
                return Err(AppFailure::Startup { limit, last: failure.0 });
            }
            self.set(PodState::Starting, format!("startup probe: {failure}"));
            clock.sleep_until(clock.now() + pace.while_unready()).await;
        }
    }

    async fn watch_liveness(&self, probe: &Probe, clock: Clock) -> AppFailure {
        clock.sleep_until(clock.now() + probe.initial_delay).await;
        let period = probe.period.unwrap_or(Duration::from_secs(1));
        let mut failures = 0;
        loop {
            match probe.ask(clock).await {
                Ok(()) => failures = 0,
                Err(failure) => {
                    failures += 1;
                    warn!(%failure, failures, of = probe.failure_threshold, "the liveness probe failed");
                    if failures >= probe.failure_threshold {
                        return AppFailure::Liveness { failures, last: failure.0 };
                    }
                }
            }
            clock.sleep_until(clock.now() + period).await;
        }
    }

    /// Follows every readiness probe. The app is ready while each of them passes.
    async fn follow_readiness(&self, probes: &AppProbes, clock: Clock) -> Infallible {
        let followed: Vec<(&Probe, Cell<bool>)> = iter::once(&probes.readiness)
            .chain(&probes.more_readiness)
            .map(|probe| (probe, Cell::new(probe.check == Check::None)))
            .collect();
        let passes_all = || followed.iter().all(|(_, passes)| passes.get());
        if passes_all() {
            self.set(PodState::Ready, String::new());
        }
        let each = followed.iter().map(|(probe, passes)| self.follow(probe, passes, &passes_all, clock));
        join_all(each).await;
        std::future::pending().await
    }

    /// Follows one probe, and notes in `passes` whether it passes.
    async fn follow(&self, probe: &Probe, passes: &Cell<bool>, passes_all: &dyn Fn() -> bool, clock: Clock) {
        if probe.check == Check::None {
            return;
        }
        let mut pace = ProbePace::new(probe);
        // Only the answers that contradict the present state are counted.
        let mut contradictions = 0;
        loop {
            let answer = probe.ask(clock).await;
            contradictions = if answer.is_ok() == passes.get() { 0 } else { contradictions + 1 };
            match answer {
                Ok(()) if !passes.get() && contradictions >= probe.success_threshold => {
                    contradictions = 0;
                    passes.set(true);
                    if passes_all() {
                        self.set(PodState::Ready, String::new());
                    }
                }
                Err(failure) if passes.get() && contradictions >= probe.failure_threshold => {
                    contradictions = 0;
                    passes.set(false);
                    let was_ready = self.is_app_ready();
                    let state = if was_ready { PodState::Unready } else { self.state.get() };
                    self.set(state, format!("readiness probe: {failure}"));
                }
                Err(failure) if !passes.get() => {
                    self.set(self.state.get(), format!("readiness probe: {failure}"));
                }
                Ok(()) | Err(_) => {}
            }
            let wait = if passes.get() { pace.while_ready() } else { pace.while_unready() };
            clock.sleep_until(clock.now() + wait).await;
        }
    }
}

fn state_in_words(state: PodState) -> &'static str {
    match state {
        PodState::Unheard | PodState::Starting => "starting",
        PodState::Ready => "ready",
        PodState::Unready => "not ready",
        PodState::Draining => "draining",
    }
}

#[cfg(test)]
mod tests;
