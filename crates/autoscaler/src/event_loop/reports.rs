//! What links say. A pod's words are about that pod alone, bounded by its limit; words of an ended link or about a stranger are ignored.

use platform::PlatformCommand;
use scaling::{Event, Reporter};
use vocabulary::{
    ActivatorHello, ActivatorWord, Concurrency, Load, PodHello, PodId, PodState, PodWord, PresentCount,
    ReplicaId, RevisionId, RevisionName, Sample, Timestamp,
};

use super::EventLoop;
use crate::links::{LinkEvent, LinkId};
use crate::registry::{Peer, Pod};

/// A queue-proxy holds at most its limit in the app and ten times that in its queue.
const HELD_PER_LIMIT_MAX: u32 = 11;

impl EventLoop {
    /// Takes in one word from a link.
    pub(super) fn link_said(&mut self, link: LinkId, event: LinkEvent) {
        let now = self.clock.now();
        let Some(peer) = self.registry.peer(link) else { return };
        match (peer, event) {
            (Peer::Pod(revision, pod), LinkEvent::PodUp(hello)) => self.pod_up(revision, pod, *hello, now),
            (Peer::Pod(revision, pod), LinkEvent::Pod(report)) => {
                self.pod_reported(revision, pod, report, now);
            }
            (Peer::Pod(revision, pod), LinkEvent::Lost) => {
                self.change_pod(revision, pod, |pod| {
                    pod.heard.is_linked = false;
                });
                self.tell(Event::LinkLost { reporter: Reporter::Pod(pod) }, now);
                self.tell_pod(revision, pod, now);
            }
            (Peer::Pod(revision, pod), LinkEvent::Blocked(reason)) => {
                self.change_pod(revision, pod, |pod| {
                    pod.heard.blocked = Some(reason);
                });
            }
            (Peer::Activator(activator), LinkEvent::ActivatorUp(hello)) => {
                self.activator_up(activator, *hello, now);
            }
            (Peer::Activator(activator), LinkEvent::Activator(report)) => {
                self.activator_reported(activator, report, now);
            }
            (Peer::Activator(activator), LinkEvent::Lost) => {
                self.tell(Event::LinkLost { reporter: Reporter::Activator(activator) }, now);
            }
            // Its own warning was logged; and a task speaks of its own kind of peer only.
            (Peer::Activator(_), LinkEvent::Blocked(_) | LinkEvent::PodUp(_) | LinkEvent::Pod(_))
            | (Peer::Pod(..), LinkEvent::ActivatorUp(_) | LinkEvent::Activator(_)) => {}
        }
    }

    fn pod_up(&mut self, revision: RevisionId, pod: PodId, hello: PodHello, now: Timestamp) {
        self.change_pod(revision, pod, |record| {
            record.heard.is_linked = true;
            record.heard.blocked = None;
            record.heard.container_concurrency = Some(hello.container_concurrency);
            record.heard_at = Some(now);
        });
        let limit = hello.container_concurrency;
        let history = hello
            .history
            .iter()
            .map(|sample| (revision, Sample { load: bounded(sample.load, limit), ..*sample }));
        let (boot, current_second, history) = (hello.boot, hello.current_second, history.collect());
        self.tell(
            Event::ReporterStarted { reporter: Reporter::Pod(pod), boot, current_second, history },
            now,
        );
        self.pod_state((revision, pod), hello.state, hello.detail, now);
    }

    fn pod_reported(&mut self, revision: RevisionId, pod: PodId, report: PodWord, now: Timestamp) {
        let reporter = Reporter::Pod(pod);
        let Some(record) = self.registry.pod_mut(revision, pod) else { return };
        record.heard_at = Some(now);
        let limit = record.heard.container_concurrency.unwrap_or_default();
        match report {
            // Its link's task lets only the first through, as `PodUp`.
            PodWord::Hello(_) | PodWord::SettingsAcknowledged(_) => {}
            PodWord::Load(Sample { second, load }) if load.is_zero() => {
                record.heard.load = load;
                self.tell(Event::ReporterHeard { reporter, second }, now);
            }
            PodWord::Load(sample) => {
                let sample = Sample { load: bounded(sample.load, limit), ..sample };
                record.heard.load = sample.load;
                self.unshown.insert(revision);
                self.tell(Event::LoadReported { reporter, revision, sample }, now);
            }
            PodWord::State { state, detail } => self.pod_state((revision, pod), state, detail, now),
            PodWord::Present(count) => {
                let count = bounded_count(count, limit);
                self.tell(Event::PresentReported { reporter, revision, count }, now);
            }
        }
    }

    /// A pod's word on itself: the platform, the multiscaler and the activators go by it.
    fn pod_state(&mut self, pod: (RevisionId, PodId), state: PodState, detail: String, now: Timestamp) {
        let (revision, pod) = pod;
        let Some(record) = self.registry.pod_mut(revision, pod) else { return };
        let name = record.facts.name.clone();
        if record.heard.state != Some(state) {
            tracing::debug!(pod = %name, ?state, detail, "pod state");
        }
        record.heard.state = Some(state);
        record.heard.detail.clone_from(&detail);
        self.touched.insert(revision);
        self.platform.execute(PlatformCommand::NotePodState { pod: name, state, detail });
        self.tell_pod(revision, pod, now);
    }

    /// Tells the multiscaler how a pod is now.
    pub(super) fn tell_pod(&mut self, revision: RevisionId, pod: PodId, now: Timestamp) {
        if let Some(record) = self.registry.pod_mut(revision, pod) {
            let pod = record.fact(pod);
            self.tell(Event::PodChanged { pod }, now);
        }
    }

    fn change_pod(&mut self, revision: RevisionId, pod: PodId, change: impl FnOnce(&mut Pod)) {
        if let Some(record) = self.registry.pod_mut(revision, pod) {
            change(record);
            self.touched.insert(revision);
        }
    }

    fn activator_up(&mut self, activator: ReplicaId, hello: ActivatorHello, now: Timestamp) {
        self.acknowledgements.activator_started(activator, hello.boot);
        for (name, routing) in &hello.routings {
            let Some(revision) = self.registry.revision_id(name) else { continue };
            let Some(record) = self.registry.revisions.get_mut(&revision) else { continue };
            if record.routing.is_none() {
                record.routing = Some(*routing);
                self.touched.insert(revision);
                self.tell(Event::RoutingObserved { revision, routing: *routing }, now);
            }
        }
        let seconds =
            hello.history.iter().flat_map(|(second, loads)| loads.iter().map(move |load| (*second, load)));
        let history = seconds.filter_map(|(second, load)| {
            Some((self.registry.revision_id(&load.revision)?, Sample { second, load: load.load }))
        });
        let history = history.collect();
        let reporter = Reporter::Activator(activator);
        let (boot, current_second) = (hello.boot, hello.current_second);
        self.tell(Event::ReporterStarted { reporter, boot, current_second, history }, now);
        for (name, count) in hello.present {
            self.activator_holds(reporter, &name, count, now);
        }
        self.unsynced.insert(activator);
    }

    fn activator_reported(&mut self, activator: ReplicaId, report: ActivatorWord, now: Timestamp) {
        let reporter = Reporter::Activator(activator);
        match report {
            // Its link's task lets only the first through, as `ActivatorUp`.
            ActivatorWord::Hello(_) | ActivatorWord::Emptied { .. } | ActivatorWord::Draining => {}
            ActivatorWord::Loads { second, loads } => {
                for load in loads {
                    let Some(revision) = self.registry.revision_id(&load.revision) else { continue };
                    let sample = Sample { second, load: load.load };
                    self.unshown.insert(revision);
                    self.tell(Event::LoadReported { reporter, revision, sample }, now);
                }
                self.tell(Event::ReporterHeard { reporter, second }, now);
            }
            ActivatorWord::Present { revision, count, oldest_wait: _ } => {
                self.activator_holds(reporter, &revision, count, now);
            }
            ActivatorWord::Acknowledged { revision, version } => {
                let Some(revision) = self.registry.revision_id(&revision) else { return };
                self.acknowledgements.acknowledged(activator, revision, version);
                self.act_on_acknowledgements(revision, now);
            }
        }
    }

    fn activator_holds(
        &mut self,
        reporter: Reporter,
        name: &RevisionName,
        count: PresentCount,
        now: Timestamp,
    ) {
        if let Some(revision) = self.registry.revision_id(name) {
            self.tell(Event::PresentReported { reporter, revision, count }, now);
        }
    }
}

/// A pod cannot hold more than its limit and its queue allow; one that says so is believed only that far. Rates have no such bound.
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
