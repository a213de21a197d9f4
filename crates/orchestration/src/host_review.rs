//! Which endpoints leave the slices because their hosts are dead?
//!
//! Looks at all suspected peers at once, for a dead node takes many with it and a cut takes all. Endpoints
//! are activators, and pods of revisions of ours. What the platform itself calls not ready, or on its way
//! out, is its affair and counts for nothing here.

use std::collections::BTreeSet;
use std::time::Duration;

use scaling::PodPhase;
use vocabulary::{PodId, ReplicaId, RevisionId, Timestamp};

use crate::deadlines::Deadline;
use crate::facts::{ActivatorLife, Subject};
use crate::host::{HostCensus, HostSigns, HostVerdict};
use crate::links::LinkEnd;
use crate::orchestrator_settings::ActivatorChoice;
use crate::orders::{Order, PodReach, ReasonCode};
use crate::outbox::Purpose;
use crate::pod_record::PodRecord;
use crate::registry::RevisionRecord;
use crate::state::ControlState;

/// How often suspected peers are looked at while it is undecided what is dead: each look costs a sort of all.
const REVIEW_EVERY: Duration = Duration::from_millis(100);
/// How long after a cut no endpoint is taken out: by then all links stand again, as slowly as they are
/// dialled.
const CUT_COUNTS: Duration = Duration::from_secs(5);
/// Cuts that lie closer together are one to people.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Judges at one point in time.
pub(crate) struct HostReview<'a> {
    pub(crate) state: &'a mut ControlState,
    pub(crate) now: Timestamp,
}

impl HostReview<'_> {
    /// Two looks beside a link failed.
    pub(crate) fn suspect(&mut self, end: LinkEnd, since: Timestamp) {
        // No slice is ours to write there: on one machine no host dies alone, and in an installed Knative the
        // controller goes by readiness.
        match self.state.settings.choice {
            ActivatorChoice::All | ActivatorChoice::AllOfWhichSomeShare => return,
            ActivatorChoice::AsManyAsNeeded => {}
        }
        if let Some(signs) = self.signs_mut(end) {
            signs.suspect(since);
            self.note_standing(end);
            self.plan(self.now);
        }
    }

    /// Judges all that are suspected.
    pub(crate) fn review(&mut self) {
        self.state.host_watch.due = None;
        let suspects = self.suspects();
        let census = HostCensus::new(self.endpoints());
        let verdicts: Vec<(LinkEnd, HostVerdict)> =
            suspects.iter().map(|&(end, since)| (end, census.verdict(since, self.now))).collect();
        let has = |wanted: HostVerdict| verdicts.iter().any(|(_, verdict)| *verdict == wanted);
        if has(HostVerdict::CutOff) {
            self.note_cut_off();
        }
        let is_cut_off =
            self.state.host_watch.cut_off_at.is_some_and(|at| self.now.saturating_since(at) < CUT_COUNTS);
        if is_cut_off {
            // A dead host is told again, by looks of its own that are made after the cut.
            for (end, _) in suspects {
                self.signs_mut(end).into_iter().for_each(HostSigns::trust);
                self.note_standing(end);
            }
            return;
        }
        for &(end, verdict) in &verdicts {
            if verdict == HostVerdict::Lost {
                self.lose(end);
            }
        }
        if has(HostVerdict::Undecided) {
            self.plan(self.now + REVIEW_EVERY);
        }
    }

    fn plan(&mut self, at: Timestamp) {
        if self.state.host_watch.due.is_none() {
            self.state.host_watch.due = Some(at);
            self.state.deadlines.plan(at, Deadline::HostReview);
        }
    }

    fn signs_mut(&mut self, end: LinkEnd) -> Option<&mut HostSigns> {
        match end {
            LinkEnd::Pod(revision, pod) => Some(&mut self.state.registry.pod_mut(revision, pod)?.heard.host),
            LinkEnd::Activator(activator) => Some(&mut self.state.activators.get_mut(activator)?.host),
        }
    }

    /// Readers are told of a link to a suspected peer that it is down.
    fn note_standing(&mut self, end: LinkEnd) {
        match end {
            LinkEnd::Pod(revision, _) => self.state.publication.note_changed(revision),
            LinkEnd::Activator(_) => self.state.publication.note_other(),
        }
    }

    /// The suspected endpoints, and since when each gives no sign.
    fn suspects(&self) -> Vec<(LinkEnd, Timestamp)> {
        let activators = self
            .activators()
            .filter_map(|(id, signs)| Some((LinkEnd::Activator(id), signs.suspected_since()?)));
        let pods = self.pods().filter_map(|(revision, pod, signs)| {
            Some((LinkEnd::Pod(revision, pod), signs.suspected_since()?))
        });
        activators.chain(pods).collect()
    }

    fn endpoints(&self) -> impl Iterator<Item = HostSigns> {
        self.activators().map(|(_, signs)| signs).chain(self.pods().map(|(_, _, signs)| signs))
    }

    /// Activators that may serve. One that was never linked counts once it is suspected: it is ready, so its
    /// port was open, and another owner may have put it into slices.
    fn activators(&self) -> impl Iterator<Item = (ReplicaId, HostSigns)> {
        let serving = self.state.activators.iter().filter(|(_, record)| {
            record.facts.life == ActivatorLife::Ready
                && !record.is_draining
                && (record.host.was_linked() || record.host.is_suspected())
        });
        serving.map(|(id, record)| (id, record.host))
    }

    fn pods(&self) -> impl Iterator<Item = (RevisionId, PodId, HostSigns)> {
        let revisions = self.state.registry.revisions.iter().filter(|(_, record)| record.epoch.is_some());
        revisions.flat_map(|(&id, record)| {
            let pods = record.pods.iter().filter(|(_, pod)| is_endpoint(record, pod));
            pods.map(move |(&pod, of)| (id, pod, of.heard.host))
        })
    }

    fn lose(&mut self, end: LinkEnd) {
        match end {
            LinkEnd::Activator(activator) => {
                // Never the last one: without another the slices would name none, or the same again.
                let others = self.state.activators.ids().into_iter().filter(|other| *other != activator);
                let has_others = others.into_iter().any(|other| self.state.activators.lives(other));
                if let Some(record) = self.state.activators.get_mut(activator).filter(|_| has_others) {
                    record.host.lose();
                    self.state.touch_all();
                }
            }
            LinkEnd::Pod(revision, pod) => {
                if let Some(record) = self.state.registry.pod_mut(revision, pod) {
                    record.heard.host.lose();
                    self.state.unsettled.touch(revision);
                }
            }
        }
    }

    fn note_cut_off(&mut self) {
        let watch = &mut self.state.host_watch;
        watch.cut_off_at = Some(self.now);
        if watch.told_at.replace(self.now).is_some_and(|at| self.now.saturating_since(at) < TOLD_EVERY) {
            return;
        }
        let endpoints: Vec<HostSigns> = self.endpoints().collect();
        let silent =
            endpoints.iter().filter(|signs| self.now.saturating_since(signs.alive_at()) > CUT_COUNTS / 2);
        let text = format!(
            "{} of {} linked activators and pods look dead at once, so this autoscaler takes itself to be cut off from them; it takes none out of the slices",
            silent.count(),
            endpoints.len(),
        );
        if let Some(about) = self.subject() {
            self.state.tell_people_of_ours(about, ReasonCode::CutOff, text);
        }
    }

    /// What people are told of a cut about: an activator, as all revisions share them, else a pod.
    fn subject(&self) -> Option<Subject> {
        let activator = self.state.activators.iter().next().map(|(_, record)| record.facts.name.clone());
        let pod = || {
            let (revision, pod, _) = self.pods().next()?;
            let record = self.state.registry.revisions.get(&revision)?.pods.get(&pod)?;
            Some(Subject::Pod(record.facts.name.clone()))
        };
        activator.map(Subject::Activator).or_else(pod)
    }

    /// Tells the platform which pods of a revision leave its slices, and which come back.
    pub(crate) fn order_reach(&mut self, id: RevisionId) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        if record.epoch.is_none() {
            return;
        }
        let out = unreachable(record);
        let name = record.facts.name.clone();
        let changed = record.pods.iter_mut().filter(|(pod, of)| of.is_out != out.contains(pod));
        let changed: Vec<_> = changed
            .map(|(&pod, of)| {
                of.is_out = !of.is_out;
                let reach = if of.is_out { PodReach::Unreachable } else { PodReach::Reachable };
                (pod, Order::NotePodReach { pod: of.facts.name.clone(), reach })
            })
            .collect();
        for (pod, order) in changed {
            self.state.order(&name, order, Purpose::Notice);
            self.state.tell_pod(id, pod, self.now);
        }
    }
}

/// Whether a pod may be named by slices, and something is known of its host. Where links to the pods of a
/// revision never stood, a network policy may forbid them all; so one that was never linked counts only
/// beside one that is.
fn is_endpoint(record: &RevisionRecord, pod: &PodRecord) -> bool {
    let stays = pod.facts.phase == PodPhase::Running && !pod.facts.leaving;
    let is_known = || {
        pod.heard.host.was_linked()
            || (pod.heard.host.is_suspected()
                && pod.facts.platform_ready == Some(true)
                && record.pods.values().any(PodRecord::is_linked))
    };
    stays && pod.facts.platform_ready != Some(false) && is_known()
}

/// The pods that no client reaches; of those that are ready never the last one.
fn unreachable(record: &RevisionRecord) -> BTreeSet<PodId> {
    let lost = record.pods.iter().filter(|(_, pod)| pod.heard.host.is_lost());
    let mut out: BTreeSet<PodId> = lost.map(|(&pod, _)| pod).collect();
    let ready = record.pods.iter().filter(|(_, pod)| pod.takes_requests());
    if ready.clone().all(|(pod, _)| out.contains(pod)) {
        // The one that was heard last: if all of them come back, that one is the first.
        let newest = ready.max_by_key(|(_, pod)| (pod.heard.host.alive_at(), &pod.facts.name));
        if let Some((pod, _)) = newest {
            out.remove(pod);
        }
    }
    out
}
