//! Every revision that this replica owns: events in, commands out.
//!
//! Each revision has its own state ([`revision`]): what its reporters measured, its pods, the decider's memory, where it stands
//! between zero and one. An event touches one revision, or all of them where an activator reports for all. A revision is evaluated
//! every two seconds from its creation, and at once when demand grows; every other fact only runs the last answer through the bounds
//! and the scale-to-zero rules again (Knative: a reconcile), so that nothing waits for the next tick.
//!
//! Left out on purpose: who owns which revision, names, links and everything else that needs more than numbers and time.

mod beginning;
mod journal;
mod outcome;
mod pods;
mod revision;
mod routing;
mod schedule;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use vocabulary::{
    BootId, PodCount, PodId, PresentCount, ReplicaId, Reporter, RevisionId, Routing, Sample, Timestamp,
};

use self::beginning::Beginning;
use self::revision::Revision;
use self::schedule::Schedule;
use crate::config::ScalingSpec;
use crate::decision::{Decision, Sentence};

/// How often a revision is evaluated when nothing presses (Knative's tick, not configurable there either).
pub(crate) const TICK: Duration = Duration::from_secs(2);

/// Where a revision comes from that appears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevisionOrigin {
    /// It has just been made, and has never been ready: it starts with its initial scale, and has what it needs once that is reached.
    New,
    /// It was there before we were (a restart, another owner): what it has is kept until its windows are full again, since that may be what it needs.
    #[default]
    Found,
}

/// A fact, and (in [`Multiscaler::handle`]) when it became known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A revision appeared, its settings changed, or somebody (we or another) wrote its replica count.
    RevisionChanged {
        /// Which.
        revision: RevisionId,
        /// Its settings, resolved.
        spec: Arc<ScalingSpec>,
        /// The platform's replica count.
        wanted: PodCount,
        /// Looked at when the revision appears.
        origin: RevisionOrigin,
    },
    /// A revision is gone.
    RevisionRemoved {
        /// Which.
        revision: RevisionId,
    },
    /// The pods of a revision, all of them.
    PodsChanged {
        /// Whose.
        revision: RevisionId,
        /// In any order.
        pods: Vec<PodFact>,
    },
    /// One pod's readiness or phase changed; ignored unless it is among the pods of a revision.
    PodChanged {
        /// The pod as it now is.
        pod: PodFact,
    },
    /// A link came up: what the reporter remembers, at most 60 s. Its second numbers are anchored to our axis here.
    ReporterStarted {
        /// Who.
        reporter: Reporter,
        /// Of which of its lives.
        boot: BootId,
        /// The number of its second that runs now.
        current_second: u64,
        /// Its past seconds, oldest first; for an activator, each with the revision.
        history: Vec<(RevisionId, Sample)>,
    },
    /// A reporter's completed second, of one revision. A repeat of the same second replaces.
    LoadReported {
        /// Who.
        reporter: Reporter,
        /// Of which revision.
        revision: RevisionId,
        /// What it measured.
        sample: Sample,
    },
    /// A reporter said, for this second of its own, that it holds nothing of whatever it did not mention (a pod's heartbeat, the end of an
    /// activator's frame). It is heard.
    ReporterHeard {
        /// Who.
        reporter: Reporter,
        /// Which second.
        second: u64,
    },
    /// What a reporter holds right now, unasked.
    PresentReported {
        /// Who.
        reporter: Reporter,
        /// Of which revision.
        revision: RevisionId,
        /// How much.
        count: PresentCount,
    },
    /// A link is gone. The reporter's values stay; its silence counts from its last frame.
    LinkLost {
        /// Whose.
        reporter: Reporter,
    },
    /// The activators that exist.
    ActivatorsChanged {
        /// All of them.
        activators: Vec<ReplicaId>,
    },
    /// Whether every activator assigned to the revision (at least one) has acknowledged, in its present boot, an assignment that
    /// routes through it. This is Knative's activator probe, with our own facts.
    ///
    /// What was said before a [`Command::SetRouting`] that changed a known route no longer counts: say it again when it holds again.
    PathAcknowledged {
        /// Whose path.
        revision: RevisionId,
        /// Through activators and acknowledged by all.
        acknowledged: bool,
    },
    /// The route that an earlier owner of the revision left in force, where that can be known. Ignored once we ordered one.
    RoutingObserved {
        /// Whose.
        revision: RevisionId,
        /// What is in force.
        routing: Routing,
    },
}

/// One pod. Whether it is ready is for whoever hears both the platform and the pod's link to say: here it is a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFact {
    /// Which.
    pub pod: PodId,
    /// How far its life has come.
    pub phase: PodPhase,
    /// Whether it takes requests.
    pub is_ready: bool,
}

/// The phases of spec kpa §7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PodPhase {
    /// Not running yet.
    Pending,
    /// Runs.
    Running,
    /// On its way out; never counted as ready.
    Terminating,
}

/// What the edge must do. Drain every command before the next event.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write the replica count.
    ScaleTo {
        /// Of which revision.
        revision: RevisionId,
        /// To this.
        count: PodCount,
        /// The decision that this follows from.
        because: Arc<Decision>,
    },
    /// Put the activators into the request path, or take them out.
    SetRouting {
        /// Of which revision.
        revision: RevisionId,
        /// To this.
        routing: Routing,
    },
    /// How many activators should serve the revision.
    SetActivatorCount {
        /// Which revision.
        revision: RevisionId,
        /// At most this many; all if fewer exist.
        count: PodCount,
    },
    /// From which in-flight-plus-queued count on a pod must report at once; `None` turns that off.
    SetSurgeThreshold {
        /// The pods of this revision.
        revision: RevisionId,
        /// Requests.
        threshold: Option<u32>,
    },
    /// A decision was made: log it, count it, show it.
    Publish {
        /// Of which revision.
        revision: RevisionId,
        /// The decision.
        decision: Arc<Decision>,
    },
}

/// Where a revision stands, for people and metrics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RevisionStatus {
    /// What the platform is asked for.
    pub wanted: PodCount,
    /// What the decider wants before bounds; `None` before the first valid decision.
    pub desired: Option<PodCount>,
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Pods that run or start but are not ready.
    pub not_ready_pods: PodCount,
    /// Of them, those not running yet.
    pub pending_pods: PodCount,
    /// Pods on their way out.
    pub terminating_pods: PodCount,
    /// Stable or panic.
    pub panicking: bool,
    /// The stable window's average now.
    pub stable_value: Option<f64>,
    /// The panic window's average now.
    pub panic_value: Option<f64>,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// Who is in the path.
    pub routing: Routing,
    /// Requests that wait, over all reporters.
    pub waiting: u32,
    /// Knative's Active condition: `active`, `activating`, `inactive`.
    pub activity: &'static str,
    /// The last sentence of the last decision that changed something; `None` before the first.
    pub last_reason: Option<Sentence>,
    /// Why the count is not zero, in one sentence; `None` when it is.
    pub why_not_zero: Option<Sentence>,
}

/// Every revision that this replica owns.
#[derive(Debug, Default)]
pub struct Multiscaler {
    revisions: BTreeMap<RevisionId, Revision>,
    /// Whose each pod is.
    owners: BTreeMap<PodId, RevisionId>,
    activators: BTreeMap<ReplicaId, Option<ActivatorClock>>,
    schedule: Schedule,
    commands: VecDeque<Command>,
}

/// Where an activator's seconds lie on our axis, for revisions that appear after its link came up.
#[derive(Clone, Copy, Debug)]
struct ActivatorClock {
    boot: BootId,
    second: u64,
    at: Timestamp,
}

impl ActivatorClock {
    fn second_at(self, now: Timestamp) -> u64 {
        self.second.saturating_add(now.saturating_since(self.at).as_secs())
    }
}

impl Multiscaler {
    /// How many decisions each revision remembers.
    pub const DECISIONS_KEPT: usize = 20;

    /// Takes in a fact.
    pub fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::RevisionChanged { revision, spec, wanted, origin } => {
                if self.revisions.contains_key(&revision) {
                    self.with(revision, |revision, commands| revision.changed(spec, wanted, now, commands));
                } else {
                    self.revision_appeared(
                        Revision::new(revision, spec, Beginning { wanted, origin, now }),
                        now,
                    );
                }
            }
            Event::RevisionRemoved { revision } => self.revision_removed(revision),
            Event::PodsChanged { revision, pods } => self.pods_changed(revision, &pods, now),
            Event::PodChanged { pod } => {
                self.with_owner(pod.pod, |revision, commands| revision.pod_changed(pod, now, commands));
            }
            Event::ReporterStarted { reporter, boot, current_second, history } => {
                self.reporter_started(
                    reporter,
                    ActivatorClock { boot, second: current_second, at: now },
                    &history,
                );
            }
            Event::LoadReported { reporter, revision, sample } => {
                self.with(revision, |revision, commands| {
                    revision.load_reported(reporter, sample, now, commands);
                });
            }
            Event::ReporterHeard { reporter, second } => self.reporter_heard(reporter, second, now),
            Event::PresentReported { reporter, revision, count } => {
                self.with(revision, |revision, commands| {
                    revision.present_reported(reporter, count, now, commands);
                });
            }
            Event::LinkLost { reporter } => self.link_lost(reporter, now),
            Event::ActivatorsChanged { activators } => self.activators_changed(&activators),
            Event::PathAcknowledged { revision, acknowledged } => {
                self.with(revision, |revision, commands| {
                    revision.path_acknowledged(acknowledged, now, commands);
                });
            }
            Event::RoutingObserved { revision, routing } => {
                self.with(revision, |revision, _| revision.routing_observed(routing, now));
            }
        }
    }

    /// Does what is due at `now` (ticks, deadlines).
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(id) = self.schedule.due(now) {
            let revision = self.revisions.get_mut(&id).expect("what is gone has no deadline");
            revision.advance(now, &mut self.commands);
            self.schedule.plan(id, revision.deadline());
        }
    }

    /// The next order, if any.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`Multiscaler::advance`] must be called at the latest; `None` if nothing is planned.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.schedule.first()
    }

    /// Where a revision stands.
    pub fn status(&self, revision: RevisionId, now: Timestamp) -> Option<RevisionStatus> {
        self.revisions.get(&revision).map(|revision| revision.status(now))
    }

    /// The decisions of a revision that changed something, and after them the latest one; oldest first, at most
    /// [`Self::DECISIONS_KEPT`].
    pub fn decisions(&self, revision: RevisionId) -> impl Iterator<Item = &Decision> {
        self.revisions.get(&revision).into_iter().flat_map(Revision::decisions)
    }

    /// Lets one revision do something, and moves its deadline if that changed.
    fn with(&mut self, id: RevisionId, act: impl FnOnce(&mut Revision, &mut VecDeque<Command>)) {
        if let Some(revision) = self.revisions.get_mut(&id) {
            let before = revision.deadline();
            act(revision, &mut self.commands);
            let after = revision.deadline();
            if after != before {
                self.schedule.plan(id, after);
            }
        }
    }

    fn with_owner(&mut self, pod: PodId, act: impl FnOnce(&mut Revision, &mut VecDeque<Command>)) {
        if let Some(&owner) = self.owners.get(&pod) {
            self.with(owner, act);
        }
    }

    fn revision_appeared(&mut self, mut revision: Revision, now: Timestamp) {
        for (&activator, clock) in &self.activators {
            if let Some(clock) = clock {
                let reporter = Reporter::Activator(activator);
                revision.reporter_started(reporter, clock.boot, clock.second_at(now), now);
            }
        }
        revision.created(now, &mut self.commands);
        self.schedule.plan(revision.id(), revision.deadline());
        self.revisions.insert(revision.id(), revision);
    }

    fn revision_removed(&mut self, id: RevisionId) {
        if self.revisions.remove(&id).is_some() {
            self.schedule.remove(id);
            self.owners.retain(|_, &mut owner| owner != id);
        }
    }

    fn pods_changed(&mut self, id: RevisionId, pods: &[PodFact], now: Timestamp) {
        let Some(revision) = self.revisions.get(&id) else { return };
        for pod in revision.pod_ids() {
            self.owners.remove(&pod);
        }
        for fact in pods {
            self.owners.insert(fact.pod, id);
        }
        self.with(id, |revision, commands| revision.pods_changed(pods, now, commands));
    }

    fn reporter_started(
        &mut self,
        reporter: Reporter,
        clock: ActivatorClock,
        history: &[(RevisionId, Sample)],
    ) {
        let now = clock.at;
        let start =
            |revision: &mut Revision| revision.reporter_started(reporter, clock.boot, clock.second, now);
        match reporter {
            Reporter::Activator(activator) => {
                self.activators.insert(activator, Some(clock));
                self.revisions.values_mut().for_each(start);
            }
            Reporter::Pod(pod) => self.with_owner(pod, |revision, _| start(revision)),
        }
        for &(id, sample) in history {
            if let Some(revision) = self.revisions.get_mut(&id) {
                revision.history(reporter, sample, now);
            }
        }
    }

    fn reporter_heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        match reporter {
            Reporter::Activator(_) => {
                self.revisions
                    .values_mut()
                    .for_each(|revision| revision.reporter_heard(reporter, second, now));
            }
            Reporter::Pod(pod) => {
                self.with_owner(pod, |revision, _| revision.reporter_heard(reporter, second, now));
            }
        }
    }

    fn link_lost(&mut self, reporter: Reporter, now: Timestamp) {
        match reporter {
            Reporter::Activator(activator) => {
                if let Some(clock) = self.activators.get_mut(&activator) {
                    *clock = None;
                }
                self.revisions.values_mut().for_each(|revision| revision.reporter_lost(reporter, now));
            }
            Reporter::Pod(pod) => {
                self.with_owner(pod, |revision, _| revision.reporter_lost(reporter, now));
            }
        }
    }

    fn activators_changed(&mut self, activators: &[ReplicaId]) {
        let present: BTreeSet<ReplicaId> = activators.iter().copied().collect();
        for &gone in self.activators.keys().filter(|activator| !present.contains(activator)) {
            for revision in self.revisions.values_mut() {
                revision.reporter_removed(Reporter::Activator(gone));
            }
        }
        self.activators.retain(|activator, _| present.contains(activator));
        for activator in present {
            self.activators.entry(activator).or_default();
        }
    }
}

#[cfg(test)]
mod tests;
