//! A control loop out of which other commands come than it gave.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{
    ControlCommand, ControlEvent, Fence, LinkId, Order, OrderId, PlatformFact, PlatformOrder, ReleaseProof,
    Unassignment, Urgency,
};
use vocabulary::{Assignment, Epoch, Ownership, PodCount, PodName, ReplicaName, RevisionName, Version};

use super::planted_defect::CommandDefect;

/// The defect, and what it remembers.
#[derive(Debug)]
pub(crate) struct DefectiveCommands {
    defect: CommandDefect,
    seen: u64,
    invented: u64,
    ownership: Ownership,
    /// What each activator was told last of a revision, by its link.
    told: BTreeMap<AssignedTo, Arc<Assignment>>,
    released: Vec<PodName>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AssignedTo {
    activator: LinkId,
    revision: RevisionName,
}

impl DefectiveCommands {
    pub(crate) fn new(defect: CommandDefect) -> Self {
        Self {
            defect,
            seen: 0,
            invented: 0,
            ownership: Ownership::default(),
            told: BTreeMap::new(),
            released: Vec::new(),
        }
    }

    /// An event was taken in. Returns the commands that nothing has given.
    pub(crate) fn note_event(&mut self, event: &ControlEvent) -> Vec<ControlCommand> {
        if self.defect != CommandDefect::PodEndedEarly {
            return Vec::new();
        }
        if let ControlEvent::Platform(PlatformFact::OwnershipChanged(ownership)) = event {
            self.ownership = ownership.clone();
        }
        let ControlEvent::Platform(PlatformFact::PodsChanged { revision, pods }) = event else {
            return Vec::new();
        };
        let bucket = self.ownership.bucket_of(revision);
        let Some(epoch) = self.ownership.epoch_of(revision) else { return Vec::new() };
        let leaving: Vec<PodName> = pods
            .iter()
            .filter(|pod| pod.leaving && !self.released.contains(&pod.name))
            .map(|pod| pod.name.clone())
            .collect();
        self.released.extend(leaving.iter().cloned());
        let order = |pod: PodName| {
            self.invented += 1;
            ControlCommand::Order(PlatformOrder {
                id: OrderId(u64::MAX - self.invented),
                fence: Fence { bucket, epoch },
                what: Order::ReleasePod { pod, proof: ReleaseProof::Acknowledged },
            })
        };
        leaving.into_iter().map(order).collect()
    }

    /// What comes out instead of a command.
    pub(crate) fn give(&mut self, command: ControlCommand) -> Vec<ControlCommand> {
        match command {
            ControlCommand::Order(order) => {
                self.order(order).into_iter().map(ControlCommand::Order).collect()
            }
            ControlCommand::Assign { activator, assignment, urgency } => {
                self.assign(activator, assignment, urgency)
            }
            ControlCommand::Sync { activator, ownership, assignments } => {
                let is_emptied = self.defect == CommandDefect::SyncEmptied;
                let assignments = if is_emptied { Vec::new() } else { assignments };
                vec![ControlCommand::Sync { activator, ownership, assignments }]
            }
            ControlCommand::TellPod { pod, settings } => {
                let times = if self.defect == CommandDefect::PodSettingsRepeated { 2 } else { 1 };
                vec![ControlCommand::TellPod { pod, settings }; times]
            }
            ControlCommand::OpenLink { .. }
            | ControlCommand::CloseLink { .. }
            | ControlCommand::Unassign { .. }
            | ControlCommand::ReleaseActivator { .. }
            | ControlCommand::AskMetrics { .. }
            | ControlCommand::Publish { .. } => vec![command],
        }
    }

    fn order(&mut self, mut order: PlatformOrder) -> Option<PlatformOrder> {
        let is_count = matches!(order.what, Order::ScaleTo { .. });
        let is_route = matches!(order.what, Order::Route { .. });
        match self.defect {
            CommandDefect::CountTooHigh => change_count(&mut order.what, |count| count + 1),
            CommandDefect::CountTooLow => change_count(&mut order.what, |count| count.saturating_sub(1)),
            CommandDefect::CountOutOfStep => {
                if let Order::ScaleTo { to, .. } = &mut order.what {
                    *to = PodCount::new(to.value() + 1);
                }
            }
            CommandDefect::CountLost if is_count => {
                self.seen += 1;
                return (!self.seen.is_multiple_of(2)).then_some(order);
            }
            CommandDefect::ProofInvented => {
                if let Order::ReleasePod { proof, .. } = &mut order.what {
                    *proof = ReleaseProof::Acknowledged;
                }
            }
            CommandDefect::FenceInvented => order.fence.epoch = Epoch(order.fence.epoch.0 + 1),
            CommandDefect::RouteLost if is_route => return None,
            CommandDefect::RouteToStranger => {
                if let Order::Route { activators, .. } = &mut order.what {
                    activators.push(ReplicaName::new("activator-z"));
                }
            }
            CommandDefect::CountLost
            | CommandDefect::RouteLost
            | CommandDefect::PodEndedEarly
            | CommandDefect::VersionReused
            | CommandDefect::VersionFromStart
            | CommandDefect::EpochOfFormerOwner
            | CommandDefect::AssignmentLost
            | CommandDefect::AssignmentStale
            | CommandDefect::RemovalInvented
            | CommandDefect::PodSettingsRepeated
            | CommandDefect::SyncEmptied => {}
        }
        Some(order)
    }

    fn assign(
        &mut self,
        activator: LinkId,
        mut assignment: Arc<Assignment>,
        urgency: Urgency,
    ) -> Vec<ControlCommand> {
        self.seen += 1;
        let place = AssignedTo { activator, revision: assignment.revision.clone() };
        let before = self.told.insert(place, Arc::clone(&assignment));
        let of_this = assignment.version;
        match self.defect {
            CommandDefect::VersionReused => {
                let version = before.map_or(of_this, |before| before.version);
                Arc::make_mut(&mut assignment).version = version;
            }
            CommandDefect::VersionFromStart => {
                Arc::make_mut(&mut assignment).version = Version { counter: 1, ..of_this };
            }
            CommandDefect::EpochOfFormerOwner => {
                let epoch = Epoch(of_this.epoch.0.saturating_sub(1));
                Arc::make_mut(&mut assignment).version = Version { epoch, ..of_this };
            }
            CommandDefect::AssignmentLost if self.seen.is_multiple_of(3) => return Vec::new(),
            CommandDefect::AssignmentStale => {
                if let Some(before) = before {
                    Arc::make_mut(&mut assignment).pods.clone_from(&before.pods);
                }
            }
            CommandDefect::RemovalInvented if self.seen.is_multiple_of(40) => {
                let (revision, how) = (assignment.revision.clone(), Unassignment::Removed);
                return vec![ControlCommand::Unassign { activator, revision, version: of_this, how }];
            }
            CommandDefect::AssignmentLost
            | CommandDefect::RemovalInvented
            | CommandDefect::CountTooHigh
            | CommandDefect::CountTooLow
            | CommandDefect::CountOutOfStep
            | CommandDefect::CountLost
            | CommandDefect::PodEndedEarly
            | CommandDefect::ProofInvented
            | CommandDefect::FenceInvented
            | CommandDefect::RouteLost
            | CommandDefect::RouteToStranger
            | CommandDefect::PodSettingsRepeated
            | CommandDefect::SyncEmptied => {}
        }
        vec![ControlCommand::Assign { activator, assignment, urgency }]
    }
}

/// Changes a count and the decision that it follows from.
fn change_count(order: &mut Order, change: impl Fn(u32) -> u32) {
    if let Order::ScaleTo { to, because, .. } = order {
        *to = PodCount::new(change(to.value()));
        Arc::make_mut(because).wanted = Some(*to);
    }
}
