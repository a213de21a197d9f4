//! What the loop orders: counts from the platform, assignments from activators, settings from queue-proxies.

use std::sync::Arc;
use std::time::Duration;

use platform::PlatformCommand;
use scaling::{Command, Decision, Event};
use vocabulary::{PodCount, PodId, RevisionId, Routing, Timestamp};

use super::{EventLoop, Linking};
use crate::assigner;
use crate::registry::{Leaving, Revision};

/// A leaving pod waits no longer for acknowledgements.
const RELEASE_AFTER_MAX: Duration = Duration::from_secs(5);

impl EventLoop {
    /// Does all that the multiscaler says.
    pub(super) fn perform_commands(&mut self, now: Timestamp) {
        while let Some(command) = self.multiscaler.next_command() {
            match command {
                Command::ScaleTo { revision, count, because } => self.scale(revision, count, &because),
                Command::SetRouting { revision, routing } => self.route(revision, routing),
                // All activators serve every revision until there are many of them.
                Command::SetActivatorCount { .. } => {}
                Command::SetSurgeThreshold { revision, threshold } => {
                    if let Some(record) = self.registry.revisions.get_mut(&revision) {
                        record.surge_threshold = threshold;
                        self.tell_pods_their_settings(revision);
                    }
                }
                Command::Publish { revision, decision } => self.publish(revision, &decision, now),
            }
        }
    }

    fn scale(&mut self, id: RevisionId, count: PodCount, because: &Decision) {
        let Some(revision) = self.registry.revisions.get_mut(&id) else { return };
        revision.wanted = count;
        self.touched.insert(id);
        let ready = because.inputs.map(|inputs| inputs.ready_pods.value());
        let reason = because.reasons.last().map(|reason| reason.text.to_string()).unwrap_or_default();
        tracing::info!(revision = %revision.facts.name, desired = count.value(), ready, reason, "scaling");
        self.platform.execute(PlatformCommand::ScaleTo {
            revision: revision.facts.name.clone(),
            count,
            end_first: victims(revision, count),
        });
    }

    fn route(&mut self, id: RevisionId, routing: Routing) {
        let Some(revision) = self.registry.revisions.get_mut(&id) else { return };
        if revision.routing() != routing {
            tracing::info!(revision = %revision.facts.name, ?routing, "request path");
            // The multiscaler forgets it too: what was acknowledged is another path.
            revision.path_acknowledged = false;
        }
        revision.routing = Some(routing);
        self.touched.insert(id);
        self.tell_pods_their_settings(id);
    }

    fn publish(&mut self, id: RevisionId, decision: &Decision, now: Timestamp) {
        let Some(revision) = self.registry.revisions.get(&id) else { return };
        let name = &revision.facts.name;
        self.metrics.decided(name, decision);
        if let Some(status) = self.multiscaler.status(id, now) {
            self.metrics.show(name, &status);
        }
        self.unshown.insert(id);
        for reason in &decision.reasons {
            tracing::debug!(revision = %name, stage = ?reason.stage, reason = reason.text.to_string(), "decision");
        }
    }

    /// Hop keys, routing and surge threshold, as they now are; links send them only if they are news.
    pub(super) fn tell_pods_their_settings(&self, id: RevisionId) {
        let Some(revision) = self.registry.revisions.get(&id) else { return };
        for link in revision.pods.values().filter_map(|pod| pod.link.as_ref()) {
            link.tell(revision.settings());
        }
    }

    /// Rebuilds what activators hear of a revision, and sends it if it is news.
    pub(super) fn reassign(&mut self, id: RevisionId, now: Timestamp) {
        let Some(revision) = self.registry.revisions.get_mut(&id) else { return };
        let pods = revision.pods_by_name();
        let next =
            assigner::assignment(&revision.facts, revision.wanted, revision.routing(), pods.iter().copied());
        if let Some((assignment, urgency)) =
            assigner::revise(revision.assignment.as_deref(), next, &mut self.versions)
        {
            revision.through_since = match assignment.routing {
                Routing::Direct => None,
                Routing::ThroughActivator => revision.through_since.or(Some(assignment.version)),
            };
            revision.assignment = Some(Arc::clone(&assignment));
            for activator in self.registry.activators.values() {
                activator.outbox.assign(Arc::clone(&assignment), urgency, now);
            }
        }
        self.await_releases(id, now);
        self.act_on_acknowledgements(id, now);
    }

    /// Pods that are to leave wait for the assignment that says so to be acknowledged.
    fn await_releases(&mut self, id: RevisionId, now: Timestamp) {
        let Some(revision) = self.registry.revisions.get_mut(&id) else { return };
        let version = revision.assignment.as_ref().map(|assignment| assignment.version).unwrap_or_default();
        for (&pod, record) in &mut revision.pods {
            match (record.facts.leaving, record.leaving) {
                (true, Leaving::No) => {
                    let at_the_latest = now + RELEASE_AFTER_MAX;
                    record.leaving = Leaving::Since { version, at_the_latest };
                    self.releases.insert((at_the_latest, id, pod));
                }
                (false, Leaving::Since { at_the_latest, .. }) => {
                    record.leaving = Leaving::No;
                    self.releases.remove(&(at_the_latest, id, pod));
                }
                (false, Leaving::Released) => record.leaving = Leaving::No,
                (true, Leaving::Since { .. } | Leaving::Released) | (false, Leaving::No) => {}
            }
        }
    }

    /// What acknowledgements allow: pods may end, and the last one may if the path is proven.
    pub(super) fn act_on_acknowledgements(&mut self, id: RevisionId, now: Timestamp) {
        // Before the platform has said everything, the activators that exist are not known.
        if self.linking == Linking::Nobody {
            return;
        }
        let Some(revision) = self.registry.revisions.get(&id) else { return };
        let acknowledged = revision.pods.iter().filter_map(|(&pod, record)| match record.leaving {
            Leaving::Since { version, at_the_latest } if self.acknowledgements.all_have(id, version) => {
                Some((at_the_latest, pod))
            }
            Leaving::Since { .. } | Leaving::No | Leaving::Released => None,
        });
        for (at, pod) in acknowledged.collect::<Vec<_>>() {
            self.release(at, id, pod);
        }
        self.tell_path(id, now);
    }

    /// Knative's activator probe, with our own facts: every activator, and at least one, acts upon a version that routes through it.
    fn tell_path(&mut self, id: RevisionId, now: Timestamp) {
        let Some(revision) = self.registry.revisions.get_mut(&id) else { return };
        let is_through = revision.routing() == Routing::ThroughActivator;
        let acknowledged = (revision.through_since).is_some_and(|since| {
            is_through && !self.acknowledgements.is_empty() && self.acknowledgements.all_have(id, since)
        });
        if revision.path_acknowledged != acknowledged {
            revision.path_acknowledged = acknowledged;
            self.tell(Event::PathAcknowledged { revision: id, acknowledged }, now);
        }
    }

    /// Releases the pods whose acknowledgement took too long.
    pub(super) fn release_at_the_latest(&mut self, now: Timestamp) {
        while let Some(&(at, id, pod)) = self.releases.first() {
            if at > now {
                return;
            }
            self.release(at, id, pod);
            if let Some(record) = self.registry.pod_mut(id, pod) {
                let waited = RELEASE_AFTER_MAX.as_secs();
                tracing::warn!(pod = %record.facts.name, waited, "released without the acknowledgement of every activator");
            }
        }
    }

    fn release(&mut self, at: Timestamp, id: RevisionId, pod: PodId) {
        self.releases.remove(&(at, id, pod));
        if let Some(record) = self.registry.pod_mut(id, pod) {
            record.leaving = Leaving::Released;
            self.platform.execute(PlatformCommand::ReleasePod(record.facts.name.clone()));
        }
    }
}

/// Which pods to end first if some must end; nobody in particular if the revision does not care.
fn victims(revision: &Revision, count: PodCount) -> Vec<vocabulary::PodName> {
    if !revision.spec.idle_first_scale_down {
        return Vec::new();
    }
    let surplus = revision.staying().as_usize().saturating_sub(count.as_usize());
    assigner::end_first(revision.pods_by_name().into_iter(), surplus)
}
