//! The state of the control loop, and what follows from any change of it, wherever that came from.

use std::sync::Arc;

use scaling::hpa::CountChange;
use scaling::{Event, Multiscaler};
use serde::{Deserialize, Serialize};
use settings::ClusterConfig;
use vocabulary::{PodCount, PodId, PodSettings, RevisionId, RevisionName, Routing, Timestamp};

use crate::activators::Activators;
use crate::deadlines::DeadlineBook;
use crate::events::ControlCommand;
use crate::facts::Subject;
use crate::host::HostWatch;
use crate::links::{LinkId, LinkTable};
use crate::orchestrator_settings::OrchestratorSettings;
use crate::order_outcome::OrderId;
use crate::orders::{Order, ReasonCode};
use crate::outbox::{CommandOutbox, Purpose};
use crate::ownership_record::OwnershipRecord;
use crate::pod_record::OwnPodSettings;
use crate::publication::{Publication, SnapshotSources};
use crate::registry::{Registry, RevisionRecord};
use crate::removals::RemovedRevisions;
use crate::unsettled::UnsettledWork;

/// Everything that is known, and the commands that wait to be taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ControlState {
    pub(crate) settings: OrchestratorSettings,
    pub(crate) multiscaler: Multiscaler,
    pub(crate) registry: Registry,
    pub(crate) activators: Activators,
    pub(crate) links: LinkTable,
    pub(crate) ownership: OwnershipRecord,
    #[serde(with = "settings::whole_form")]
    pub(crate) config: Arc<ClusterConfig>,
    pub(crate) unsettled: UnsettledWork,
    /// For readers alone, and written anew from the rest.
    #[serde(skip)]
    pub(crate) publication: Publication,
    pub(crate) removed: RemovedRevisions,
    pub(crate) deadlines: DeadlineBook,
    pub(crate) host_watch: HostWatch,
    pub(crate) outbox: CommandOutbox,
}

impl ControlState {
    pub(crate) fn new(settings: OrchestratorSettings) -> Self {
        Self {
            settings,
            multiscaler: Multiscaler::default(),
            registry: Registry::default(),
            activators: Activators::default(),
            links: LinkTable::default(),
            ownership: OwnershipRecord::default(),
            config: Arc::default(),
            unsettled: UnsettledWork::default(),
            publication: Publication::default(),
            removed: RemovedRevisions::default(),
            deadlines: DeadlineBook::default(),
            host_watch: HostWatch::default(),
            outbox: CommandOutbox::default(),
        }
    }

    /// Writes anew each part that a reader is to find changed.
    pub(crate) fn write_news(&mut self, now: Timestamp) {
        let (registry, multiscaler) = (&self.registry, &self.multiscaler);
        let ownership = self.ownership.present();
        self.publication.write_news(SnapshotSources { registry, multiscaler, ownership }, now);
    }

    /// Writes anew what was measured.
    pub(crate) fn write_measured(&mut self, now: Timestamp) {
        for id in self.multiscaler.take_changed() {
            self.publication.note_measured(id);
        }
        let (registry, multiscaler) = (&self.registry, &self.multiscaler);
        let ownership = self.ownership.present();
        self.publication.write_measured(SnapshotSources { registry, multiscaler, ownership }, now);
    }

    /// The count that a revision is to have: of one that is ours, what we ordered last or what another client
    /// wrote since, which the multiscaler knows; of any other, the count that the platform said.
    pub(crate) fn wanted(&self, id: RevisionId, record: &RevisionRecord) -> PodCount {
        self.multiscaler.wanted(id).unwrap_or(record.facts.wanted)
    }

    /// The assignment, the route or the pods of every revision may have to change.
    pub(crate) fn touch_all(&mut self) {
        self.unsettled.touch_all(self.registry.revisions.keys());
    }

    /// Tells the multiscaler a fact and does as it says.
    pub(crate) fn tell(&mut self, event: Event, now: Timestamp) {
        self.multiscaler.handle(event, now);
        self.perform_commands();
    }

    /// Tells the multiscaler how a pod is now.
    pub(crate) fn tell_pod(&mut self, revision: RevisionId, pod: PodId, now: Timestamp) {
        if let Some(record) = self.registry.pod_mut(revision, pod) {
            record.note_start(now);
            let pod = record.fact(pod);
            self.unsettled.touch(revision);
            self.tell(Event::PodChanged { pod }, now);
        }
    }

    /// Does all that the multiscaler says.
    pub(crate) fn perform_commands(&mut self) {
        while let Some(command) = self.multiscaler.next_command() {
            match command {
                scaling::Command::ScaleTo { revision, from, count, because } => {
                    self.scale(revision, CountChange { from, to: count }, because);
                }
                scaling::Command::SetRouting { revision, routing } => self.set_routing(revision, routing),
                scaling::Command::SetActivatorCount { revision, count } => {
                    if let Some(record) = self.registry.revisions.get_mut(&revision) {
                        record.activator_count = Some(count);
                        self.unsettled.touch(revision);
                    }
                }
                scaling::Command::SetSurgeThreshold { revision, threshold } => {
                    if let Some(record) = self.registry.revisions.get_mut(&revision) {
                        record.surge_threshold = threshold;
                        self.tell_pods_their_settings(revision);
                    }
                }
                scaling::Command::AskMetrics { revision, round, settings, metrics } => {
                    if let Some(record) = self.registry.revisions.get(&revision) {
                        let revision = record.facts.name.clone();
                        let ask = ControlCommand::AskMetrics { revision, round, settings, metrics };
                        self.outbox.push(ask);
                    }
                }
                scaling::Command::Warn { revision, warning, text } => {
                    self.tell_people_of_revision(revision, ReasonCode::Autoscaler(warning), text);
                }
                scaling::Command::ReportConnectionHold { revision, text } => {
                    self.tell_people_of_revision(revision, ReasonCode::AdoptedConnections, text);
                }
                scaling::Command::Publish { revision, decision } => {
                    if let Some(record) = self.registry.revisions.get(&revision) {
                        let revision_name = record.facts.name.clone();
                        self.publication.note_changed(revision);
                        self.outbox.push(ControlCommand::Publish { revision: revision_name, decision });
                    }
                }
            }
        }
    }

    fn scale(&mut self, id: RevisionId, change: CountChange, because: Arc<scaling::Decision>) {
        let Some(record) = self.registry.noted_mut(id) else { return };
        let CountChange { from, to } = change;
        record.asked.ordered(change, because.at);
        // The trouble was about a count that is not wanted any more.
        record.scale_trouble = None;
        let (revision, end_first) = (record.facts.name.clone(), record.pods_to_end_first(to));
        self.unsettled.touch(id);
        let name = revision.clone();
        self.order(&name, Order::ScaleTo { revision, from, to, end_first, because }, Purpose::Scale(id));
    }

    fn set_routing(&mut self, id: RevisionId, routing: Routing) {
        let Some(record) = self.registry.noted_mut(id) else { return };
        if record.routing() != routing {
            // The multiscaler forgets it too: what was acknowledged is another path.
            record.is_path_acknowledged = false;
        }
        record.routing = Some(routing);
        self.unsettled.touch(id);
        self.tell_pods_their_settings(id);
    }

    /// Has people told something that is of no revision, if any bucket is ours.
    pub(crate) fn tell_people_of_ours(&mut self, about: Subject, reason: ReasonCode, text: String) {
        if let Some(fence) = self.ownership.any_fence() {
            self.outbox.order(fence, Order::Tell { about, reason, text }, Purpose::Notice);
        }
    }

    /// Gives an order about something of a revision's, if that is ours.
    pub(crate) fn order(
        &mut self,
        revision: &RevisionName,
        what: Order,
        purpose: Purpose,
    ) -> Option<OrderId> {
        let fence = self.ownership.fence_of(revision)?;
        Some(self.outbox.order(fence, what, purpose))
    }

    /// Has people told something about a revision.
    pub(crate) fn tell_people_of_revision(&mut self, id: RevisionId, reason: ReasonCode, text: String) {
        let Some(record) = self.registry.noted(id) else { return };
        let name = record.facts.name.clone();
        self.tell_people(&name, Subject::Revision(name.clone()), reason, text);
    }

    /// Has people told something about a part of a revision.
    pub(crate) fn tell_people(
        &mut self,
        revision: &RevisionName,
        about: Subject,
        reason: ReasonCode,
        text: String,
    ) {
        self.order(revision, Order::Tell { about, reason, text }, Purpose::Notice);
    }

    /// Hop keys, routing, surge threshold and the limit of heads, as they now are, if they are news.
    pub(crate) fn tell_pods_their_settings(&mut self, id: RevisionId) {
        let Some(record) = self.registry.noted_mut(id) else { return };
        let Some(epoch) = record.epoch else { return };
        let next = record.pod_settings(&self.config);
        let is_known = record
            .settings
            .as_ref()
            .is_some_and(|known| PodSettings { version: known.version, ..next.clone() } == **known);
        if is_known {
            return;
        }
        let settings = Arc::new(PodSettings { version: self.ownership.next_version(epoch), ..next });
        record.settings = Some(Arc::clone(&settings));
        for pod in record.pods.values() {
            if let Some(link) = pod.link {
                let settings = pod.own_settings().within(&settings);
                self.outbox.push(ControlCommand::TellPod { pod: link.id, settings });
            }
        }
    }

    /// A pod's departure went a step further, or a Service that led to it was adopted.
    pub(crate) fn tell_pod_its_own_settings(&mut self, revision: RevisionId, pod: PodId) {
        let Some(record) = self.registry.noted(revision) else { return };
        let (Some(epoch), Some(settings)) = (record.epoch, &record.settings) else { return };
        let Some((link, own)) = record.pods.get(&pod).and_then(|pod| Some((pod.link?, pod.own_settings())))
        else {
            return;
        };
        if own == OwnPodSettings::default() {
            return;
        }
        // A version of this pod's own, which the record does not keep: to the other pods nothing is new.
        let version = self.ownership.next_version(epoch);
        let OwnPodSettings { departure, adoption } = own;
        let own = PodSettings { version, departure, adoption, ..PodSettings::clone(settings) };
        let settings = Arc::new(own);
        self.outbox.push(ControlCommand::TellPod { pod: link.id, settings });
    }

    /// The settings that a pod is told first on a new link.
    pub(crate) fn first_settings(&mut self, revision: RevisionId, own: OwnPodSettings) -> Arc<PodSettings> {
        self.tell_pods_their_settings(revision);
        let record = self.registry.revisions.get(&revision);
        let settings = record.and_then(|record| record.settings.clone()).unwrap_or_default();
        own.within(&settings)
    }

    pub(crate) fn end_link(&mut self, link: LinkId) {
        self.links.close(link);
        self.outbox.push(ControlCommand::CloseLink { link });
    }
}
