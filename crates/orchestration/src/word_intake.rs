//! What links say. A pod's words are about that pod alone, bounded by its limit; words of a closed link or
//! about a stranger are ignored.

use std::collections::BTreeSet;
use std::time::Duration;

use scaling::Event;
use vocabulary::{
    ActivatorHello, ActivatorWord, AdoptedConnections, Concurrency, Load, PodHello, PodId, PodState, PodWord,
    PresentCount, ReplicaId, Reporter, RevisionId, RevisionName, Sample, Timestamp, Version,
};

use crate::activators::{ActivatorReach, ActivatorRecord, HoldingState};
use crate::deadlines::Deadline;
use crate::events::{ControlCommand, LinkNews, Unassignment};
use crate::fact_intake::FactIntake;
use crate::facts::Subject;
use crate::host_review::HostReview;
use crate::links::{LinkEnd, LinkId};
use crate::orders::{Order, ReasonCode};
use crate::outbox::Purpose;
use crate::pod_record::PodRecord;
use crate::readiness::{HeardLateBytes, LinkCondition, REFUSAL_COUNTS};
use crate::state::ControlState;

/// A queue-proxy holds at most its limit in the app and ten times that in its queue.
const HELD_PER_LIMIT_MAX: u32 = 11;

/// Takes in words at one point in time.
pub(crate) struct WordIntake<'a> {
    pub(crate) state: &'a mut ControlState,
    pub(crate) now: Timestamp,
}

impl WordIntake<'_> {
    pub(crate) fn pod_spoke(&mut self, link: LinkId, word: PodWord) {
        let Some(LinkEnd::Pod(revision, pod)) = self.state.links.end_of(link) else { return };
        match word {
            PodWord::Hello(hello) => self.pod_up(revision, pod, hello),
            PodWord::Load { .. }
            | PodWord::State { .. }
            | PodWord::Present(_)
            | PodWord::SettingsAcknowledged(_)
            | PodWord::Adopted(_) => self.pod_reported(revision, pod, word),
        }
    }

    pub(crate) fn activator_spoke(&mut self, link: LinkId, word: ActivatorWord) {
        let Some(LinkEnd::Activator(activator)) = self.state.links.end_of(link) else { return };
        let record = self.state.activators.get_mut(activator);
        if record.is_some_and(|record| record.host.heard(self.now)) {
            self.state.touch_all();
        }
        match word {
            ActivatorWord::Hello(hello) => self.activator_up(activator, hello),
            ActivatorWord::Loads { second, loads } => {
                let reporter = Reporter::Activator(activator);
                for load in loads {
                    let Some(revision) = self.ours(&load.revision) else { continue };
                    self.note_wait(activator, revision, load.oldest_wait);
                    let sample = Sample { second, load: load.load };
                    self.state.publication.note_measured(revision);
                    self.state.tell(Event::LoadReported { reporter, revision, sample }, self.now);
                }
                // After the loads: it speaks for all revisions that the frame did not name.
                self.state.tell(Event::ReporterHeard { reporter, second }, self.now);
            }
            ActivatorWord::Present { revision, count, oldest_wait } => {
                if let Some(revision) = self.ours(&revision) {
                    self.note_wait(activator, revision, oldest_wait);
                    self.activator_holds(activator, revision, count);
                }
            }
            ActivatorWord::Acknowledged { revision, version } => {
                self.acknowledged(activator, &revision, version);
            }
            ActivatorWord::Emptied { revision } => self.emptied(activator, &revision),
            ActivatorWord::Draining => {
                if let Some(record) = self.state.activators.get_mut(activator) {
                    record.is_draining = true;
                }
                self.state.publication.note_other();
                // For each revision that it serves another must be chosen, and each route must lose its name
                // before it may go.
                self.state.touch_all();
            }
        }
    }

    pub(crate) fn link_changed(&mut self, link: LinkId, news: LinkNews) {
        let Some(end) = self.state.links.end_of(link) else { return };
        match (end, news) {
            (end, LinkNews::Unreachable { since }) => {
                HostReview { state: self.state, now: self.now }.suspect(end, since);
            }
            (LinkEnd::Pod(revision, pod), news) => self.pod_link_changed(revision, pod, news),
            (LinkEnd::Activator(activator), news) => self.activator_link_changed(activator, &news),
        }
    }

    fn pod_link_changed(&mut self, revision: RevisionId, pod: PodId, news: LinkNews) {
        let Some(record) = self.state.registry.pod_mut(revision, pod) else { return };
        match news {
            LinkNews::Lost => {
                // Where no process listened, only a hello says that one does.
                if record.heard.connection == LinkCondition::Up {
                    record.heard.connection = LinkCondition::Down;
                }
                self.state.tell(Event::LinkLost { reporter: Reporter::Pod(pod) }, self.now);
            }
            LinkNews::Refused => {
                record.heard.connection = LinkCondition::Refused;
                let has_drained = record.facts.leaving && record.heard.state == Some(PodState::Draining);
                let at = self.now + REFUSAL_COUNTS;
                self.state.deadlines.plan(at, Deadline::Refusal(revision, pod));
                if has_drained {
                    self.note_drained(revision, pod);
                }
            }
            LinkNews::Blocked(reason) => {
                let name = record.facts.name.clone();
                record.heard.blocked = Some(reason.clone());
                self.tell_of_block(revision, name, &reason);
            }
            LinkNews::Accepting => record.heard.host.accepted(self.now),
            LinkNews::Unreachable { .. } => {}
        }
        self.state.tell_pod(revision, pod, self.now);
    }

    fn note_drained(&mut self, revision: RevisionId, pod: PodId) {
        let Some(record) = self.state.registry.pod_mut(revision, pod) else { return };
        let pod = record.facts.name.clone();
        let Some(record) = self.state.registry.noted(revision) else { return };
        let owner = record.facts.name.clone();
        let order = Order::NoteDrained { revision: owner.clone(), pod };
        self.state.order(&owner, order, Purpose::Notice);
    }

    fn tell_of_block(&mut self, revision: RevisionId, pod: vocabulary::PodName, reason: &str) {
        let Some(record) = self.state.registry.noted(revision) else { return };
        let name = record.facts.name.clone();
        let text = format!(
            "no link to pod {pod} for a minute: {reason}; the load and the state of the pod are unknown"
        );
        self.state.tell_people(&name, Subject::Pod(pod), ReasonCode::LinkBlocked, text);
    }

    fn activator_link_changed(&mut self, activator: ReplicaId, news: &LinkNews) {
        let Some(record) = self.state.activators.get_mut(activator) else { return };
        self.state.publication.note_other();
        match news {
            LinkNews::Lost => {
                // There is no link to tell it on; its next hello asks for everything again.
                self.state.unsettled.cancel_sync(activator);
                // Where no process listened, only a hello says that one does.
                if record.reach != ActivatorReach::Refused {
                    record.reach = ActivatorReach::Down;
                }
                self.state.tell(Event::LinkLost { reporter: Reporter::Activator(activator) }, self.now);
            }
            LinkNews::Refused => {
                self.state.unsettled.cancel_sync(activator);
                record.reach = ActivatorReach::Refused;
                self.state.touch_all();
            }
            // Its link's task has warned of it; an activator that no dial reaches is an operator's affair.
            LinkNews::Blocked(_) | LinkNews::Unreachable { .. } => {}
            // Its link may stand.
            LinkNews::Accepting => record.host.accepted(self.now),
        }
    }

    fn pod_up(&mut self, revision: RevisionId, pod: PodId, hello: PodHello) {
        let Some(record) = self.state.registry.heard_pod_mut(revision, pod, self.now) else { return };
        record.heard.connection = LinkCondition::Up;
        record.heard.blocked = None;
        record.heard.host.heard(self.now);
        // What a scrape brings names no limit.
        if record.facts.link.is_none_or(|link| link.channel.is_link()) {
            record.heard.container_concurrency = Some(hello.container_concurrency);
        }
        let limit = hello.container_concurrency;
        let history = hello
            .history
            .iter()
            .map(|sample| (revision, Sample { load: bounded(sample.load, limit), ..*sample }));
        let (boot, current_second, history) = (hello.boot, hello.current_second, history.collect());
        let reporter = Reporter::Pod(pod);
        self.state.tell(Event::ReporterStarted { reporter, boot, current_second, history }, self.now);
        self.pod_state(revision, pod, hello.state, hello.detail);
    }

    fn pod_reported(&mut self, revision: RevisionId, pod: PodId, word: PodWord) {
        let reporter = Reporter::Pod(pod);
        let Some(record) = self.state.registry.heard_pod_mut(revision, pod, self.now) else { return };
        let was_trusted = record.heard.host.is_trusted();
        if record.heard.host.heard(self.now) {
            self.state.unsettled.touch(revision);
        }
        if !was_trusted {
            self.state.publication.note_changed(revision);
        }
        let limit = record.heard.container_concurrency.unwrap_or_default();
        match word {
            // The first word of a link, and taken in as that.
            PodWord::Hello(_) => {}
            PodWord::Load { sample, usage, late_bytes } => {
                let late_bytes = late_bytes.map(|late| HeardLateBytes::new(late, self.now));
                let sample = Sample { load: bounded(sample.load, limit), ..sample };
                // A pod at rest says the same every time.
                let is_news = (record.heard.late_bytes, record.heard.load) != (late_bytes, sample.load);
                record.heard.late_bytes = late_bytes;
                record.heard.load = sample.load;
                // Before the load, so that a decision that follows from the load knows it.
                if let Some(usage) = usage {
                    self.state.tell(Event::UsageReported { pod, usage }, self.now);
                }
                self.state.tell(second_of(reporter, revision, sample), self.now);
                if is_news || !sample.load.is_zero() {
                    self.state.publication.note_measured(revision);
                }
            }
            PodWord::State { state, detail } => self.pod_state(revision, pod, state, detail),
            PodWord::Present(count) => {
                let count = bounded_count(count, limit);
                self.state.publication.note_measured(revision);
                self.state.tell(Event::PresentReported { reporter, revision, count }, self.now);
            }
            PodWord::SettingsAcknowledged(version) => record.heard.settings = Some(version),
            PodWord::Adopted(connections) => self.adopted_connections(revision, pod, connections),
        }
    }

    /// Connections past the queue-proxy hold the count. That they cannot be seen is told once.
    fn adopted_connections(&mut self, revision: RevisionId, pod: PodId, connections: AdoptedConnections) {
        let Some(PodRecord { facts, heard, .. }) = self.state.registry.pod_mut(revision, pod) else { return };
        let is_news = matches!(connections, AdoptedConnections::Unreadable { .. })
            && !matches!(heard.adopted, Some(AdoptedConnections::Unreadable { .. }));
        heard.adopted = Some(connections);
        let pod_name = facts.name.clone();
        if is_news {
            let text = format!(
                "the kernel shows the connections of pod {pod_name} neither by sock_diag nor in /proc/self/net/tcp: clients that connected before the adoption count as there for the stable window, and are not seen after that"
            );
            self.state.tell_people_of_revision(revision, ReasonCode::ConnectionsUnreadable, text);
        }
        self.state.publication.note_measured(revision);
        self.state.tell(Event::AdoptedConnectionsReported { pod, connections }, self.now);
    }

    /// A pod's word on itself: the platform, the multiscaler and the activators go by it.
    fn pod_state(&mut self, revision: RevisionId, pod: PodId, state: PodState, detail: String) {
        let Some(PodRecord { facts, heard, .. }) = self.state.registry.pod_mut(revision, pod) else { return };
        let name = facts.name.clone();
        heard.state = Some(state);
        heard.detail.clone_from(&detail);
        let Some(record) = self.state.registry.noted(revision) else { return };
        let owner = record.facts.name.clone();
        // Before the multiscaler hears of it, so that the platform takes in the state before the orders that
        // follow from it.
        self.state.order(&owner, Order::NotePodState { pod: name, state, detail }, Purpose::Notice);
        self.state.tell_pod(revision, pod, self.now);
    }

    fn activator_up(&mut self, activator: ReplicaId, hello: ActivatorHello) {
        let known: BTreeSet<RevisionId> =
            hello.routings.iter().filter_map(|(name, _)| self.state.registry.revision_id(name)).collect();
        let is_new_life =
            self.state.activators.get(activator).is_some_and(|record| record.boot != Some(hello.boot));
        self.state.activators.started(activator, hello.boot, &known);
        if is_new_life {
            let is_named = |name: &RevisionName| hello.routings.iter().any(|(routed, _)| routed == name);
            self.state.removed.activator_started(activator, is_named);
        }
        for (name, routing) in &hello.routings {
            if let Some(revision) = self.ours(name) {
                FactIntake { state: self.state, now: self.now }.routing_found(revision, *routing);
            }
        }
        let seconds =
            hello.history.iter().flat_map(|(second, loads)| loads.iter().map(move |load| (*second, load)));
        let history = seconds.filter_map(|(second, load)| {
            Some((self.ours(&load.revision)?, Sample { second, load: load.load }))
        });
        let history = history.collect();
        let reporter = Reporter::Activator(activator);
        let (boot, current_second) = (hello.boot, hello.current_second);
        self.state.tell(Event::ReporterStarted { reporter, boot, current_second, history }, self.now);
        for (name, count) in hello.present {
            if let Some(revision) = self.ours(&name) {
                self.activator_holds(activator, revision, count);
            }
        }
        if self.state.activators.get(activator).is_some_and(ActivatorRecord::acknowledges) {
            self.state.unsettled.request_sync(activator);
        }
        self.state.publication.note_other();
        self.state.touch_all();
    }

    /// Something came to an activator that had said that it held nothing: it says so again once that is over.
    fn note_refilled(&mut self, activator: ReplicaId, revision: RevisionId) {
        let Some(record) = self.state.activators.get_mut(activator) else { return };
        let Some(holding) = record.holdings.get_mut(&revision) else { return };
        if let HoldingState::Emptied { forget_at } = holding.standing {
            holding.standing = HoldingState::Retired;
            if let Some(at) = forget_at {
                self.state.deadlines.cancel(at, Deadline::Forget(revision, activator));
            }
        }
    }

    fn activator_holds(&mut self, activator: ReplicaId, revision: RevisionId, count: PresentCount) {
        if count.in_flight > 0 {
            self.note_refilled(activator, revision);
        }
        let reporter = Reporter::Activator(activator);
        self.state.publication.note_measured(revision);
        self.state.tell(Event::PresentReported { reporter, revision, count }, self.now);
    }

    fn note_wait(&mut self, activator: ReplicaId, revision: RevisionId, waited: Duration) {
        if let Some(record) = self.state.registry.revisions.get_mut(&revision) {
            record.oldest_waits.insert(activator, (waited, self.now));
        }
    }

    fn acknowledged(&mut self, activator: ReplicaId, name: &RevisionName, version: Version) {
        self.state.removed.acknowledged(name, activator, version);
        let Some(revision) = self.ours(name) else { return };
        self.state.activators.acknowledged(activator, revision, version);
        self.state.unsettled.note_proven(revision);
    }

    /// A retired revision holds nothing there any more. An unknown one may be forgotten at once.
    fn emptied(&mut self, activator: ReplicaId, name: &RevisionName) {
        let Some(record) = self.state.activators.get_mut(activator) else { return };
        if let Some(revision) = self.state.registry.revision_id(name) {
            if let Some(holding) = record.holdings.get_mut(&revision)
                && holding.standing == HoldingState::Retired
            {
                holding.standing = HoldingState::Emptied { forget_at: None };
                self.state.unsettled.note_proven(revision);
            }
            return;
        }
        let (link, epoch) = (record.link, self.state.ownership.epoch_of(name));
        // Before the platform has said everything, an unknown name may be a revision that we have yet to hear
        // of.
        let Some(epoch) = epoch.filter(|_| self.state.registry.is_platform_synced) else { return };
        let version = self.state.ownership.next_version(epoch);
        let (revision, how) = (name.clone(), Unassignment::Forgotten);
        self.state.outbox.push(ControlCommand::Unassign { activator: link, revision, version, how });
    }

    /// A revision of ours, by its name.
    fn ours(&self, name: &RevisionName) -> Option<RevisionId> {
        let (id, record) = self.state.registry.named(name)?;
        record.epoch.is_some().then_some(id)
    }
}

/// A second without anything is a heartbeat.
fn second_of(reporter: Reporter, revision: RevisionId, sample: Sample) -> Event {
    if sample.load.is_zero() {
        Event::ReporterHeard { reporter, second: sample.second }
    } else {
        Event::LoadReported { reporter, revision, sample }
    }
}

/// A pod cannot hold more than its limit and its queue allow; one that says so is believed only that far.
/// Rates have no such bound.
fn bounded(load: Load, limit: u32) -> Load {
    if limit == 0 {
        return load;
    }
    let most = f64::from(limit) * f64::from(HELD_PER_LIMIT_MAX);
    let at_most = |concurrency: Concurrency| Concurrency::clamped(concurrency.value().min(most));
    Load {
        concurrency: at_most(load.concurrency),
        proxied_concurrency: at_most(load.proxied_concurrency),
        queued: load.queued.min(limit.saturating_mul(HELD_PER_LIMIT_MAX)),
        ..load
    }
}

fn bounded_count(count: PresentCount, limit: u32) -> PresentCount {
    if limit == 0 {
        return count;
    }
    let most = limit.saturating_mul(HELD_PER_LIMIT_MAX);
    PresentCount { in_flight: count.in_flight.min(most), waiting: count.waiting.min(most) }
}

#[cfg(test)]
mod tests {
    use vocabulary::RequestRate;

    use super::*;

    #[test]
    fn a_pod_is_believed_up_to_eleven_times_its_limit() {
        let load = Load {
            concurrency: Concurrency::clamped(1e6),
            proxied_concurrency: Concurrency::clamped(5.0),
            request_rate: RequestRate::clamped(1e6),
            proxied_request_rate: RequestRate::ZERO,
            queued: u32::MAX,
        };
        let believed = bounded(load, 10);
        assert_eq!((believed.concurrency.value(), believed.proxied_concurrency.value()), (110.0, 5.0));
        assert_eq!((believed.request_rate, believed.queued), (load.request_rate, 110));
        assert_eq!(bounded(load, 0), load, "without a limit nothing is known to be too much");
        let count = PresentCount { in_flight: 500, waiting: 7 };
        assert_eq!(bounded_count(count, 10), PresentCount { in_flight: 110, waiting: 7 });
    }
}
