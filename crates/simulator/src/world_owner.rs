//! The owner of all revisions: the control loop as it is, and its links. Its process can be killed; the next
//! one knows nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlCommand, ControlEvent, LinkId, Orchestrator, OrchestratorSettings};
use throttling::LinkNumber;
use vocabulary::{Epoch, PodSettings, Timestamp};

use crate::call_log::CallLog;
use crate::link_disturbance::LinkGroup;
use crate::look_plan::LookPlan;
use crate::ordered_way::OrderedWay;
use crate::world_event::{DialNumber, PodNumber, ServiceNumber};

/// More rounds than a control loop needs that comes to rest.
const ROUNDS_MAX: usize = 1_000;
/// When a control loop that does not come to rest is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The other end of a link of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkFarEnd {
    Pod { pod: PodNumber, service: ServiceNumber },
    Activator,
}

impl LinkFarEnd {
    pub(crate) fn group(self) -> LinkGroup {
        match self {
            Self::Pod { service, .. } => LinkGroup::PodsOf(service),
            Self::Activator => LinkGroup::Activator,
        }
    }
}

/// Whether words can leave on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkStanding {
    /// The link was just ordered, and stands before a word that leaves now arrives.
    Dialled,
    Stands,
    /// The link was lost and is dialled again.
    Lost,
}

/// A link that the owner keeps.
#[derive(Debug)]
pub(crate) struct KeptLink {
    pub(crate) far_end: LinkFarEnd,
    /// The settings with which the next dial of a pod begins.
    pub(crate) first: Option<Arc<PodSettings>>,
    /// The settings that the pod was told since, if it was.
    told: Option<Arc<PodSettings>>,
    pub(crate) dial: DialNumber,
    pub(crate) standing: LinkStanding,
    pub(crate) to_owner: OrderedWay,
    pub(crate) to_far_end: OrderedWay,
}

impl KeptLink {
    /// Keeps settings for the next dial; on this one they are told by a word of their own.
    pub(crate) fn tell(&mut self, settings: Arc<PodSettings>) {
        match self.standing {
            LinkStanding::Lost => self.first = Some(settings),
            LinkStanding::Dialled | LinkStanding::Stands => self.told = Some(settings),
        }
    }

    /// The link does not stand any more, or not yet: the next dial begins with the settings told so far.
    fn turn_lost(&mut self) {
        self.standing = LinkStanding::Lost;
        if let Some(told) = self.told.take() {
            self.first = Some(told);
        }
    }
}

/// The control loop with its links.
#[derive(Debug)]
pub(crate) struct WorldOwner {
    orchestrator: Orchestrator,
    pub(crate) links: BTreeMap<LinkId, KeptLink>,
    look: LookPlan,
    pub(crate) calls: CallLog,
    /// Whether no process of the owner is there.
    is_down: bool,
    /// The epoch of the process that is there, or was there last.
    epoch: u64,
    dials: u64,
    /// The dials whose links were lost, with the words that were under way on them.
    lost_dials: BTreeSet<DialNumber>,
}

impl WorldOwner {
    pub(crate) fn new(calls: CallLog) -> Self {
        Self {
            orchestrator: Orchestrator::new(OrchestratorSettings::default()),
            links: BTreeMap::new(),
            look: LookPlan::new(),
            calls,
            is_down: true,
            epoch: 0,
            dials: 0,
            lost_dials: BTreeSet::new(),
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    /// A process begins, in an epoch of its own.
    pub(crate) fn begin(&mut self) -> Epoch {
        self.is_down = false;
        self.epoch += 1;
        Epoch(self.epoch)
    }

    /// The process is killed, with all that it knew. Its links were lost before.
    pub(crate) fn end(&mut self) {
        self.orchestrator = Orchestrator::new(OrchestratorSettings::default());
        self.links.clear();
        self.look = LookPlan::new();
        self.is_down = true;
    }

    /// Keeps a link, which is dialled from now on.
    pub(crate) fn keep(&mut self, link: LinkId, far_end: LinkFarEnd, first: Option<Arc<PodSettings>>) {
        let dial = self.next_dial();
        let (to_owner, to_far_end) = (OrderedWay::default(), OrderedWay::default());
        let standing = LinkStanding::Dialled;
        let kept = KeptLink { far_end, first, told: None, dial, standing, to_owner, to_far_end };
        self.links.insert(link, kept);
    }

    /// A link that was lost is dialled again.
    pub(crate) fn dial_again(&mut self, link: LinkId) -> DialNumber {
        let dial = self.next_dial();
        if let Some(kept) = self.links.get_mut(&link) {
            kept.dial = dial;
        }
        dial
    }

    /// A link that was dialled cannot be had: what has left on that dial is lost. Returns the next dial.
    pub(crate) fn dial_in_vain(&mut self, link: LinkId) -> DialNumber {
        if let Some(kept) = self.links.get_mut(&link) {
            kept.turn_lost();
            self.lost_dials.insert(kept.dial);
        }
        self.dial_again(link)
    }

    /// A link is lost. Returns its far end, which notices; `None` if the link did not stand.
    pub(crate) fn lose(&mut self, link: LinkId) -> Option<LinkFarEnd> {
        let kept = self.links.get_mut(&link).filter(|kept| kept.standing == LinkStanding::Stands)?;
        kept.turn_lost();
        self.lost_dials.insert(kept.dial);
        Some(kept.far_end)
    }

    /// Whether a word that was under way is lost with its link.
    pub(crate) fn is_lost(&self, dial: DialNumber) -> bool {
        self.lost_dials.contains(&dial)
    }

    /// The links of a group that stand.
    pub(crate) fn standing_links(&self, group: LinkGroup) -> Vec<LinkId> {
        let standing = self
            .links
            .iter()
            .filter(|(_, kept)| kept.standing == LinkStanding::Stands && kept.far_end.group() == group);
        standing.map(|(&link, _)| link).collect()
    }

    fn next_dial(&mut self) -> DialNumber {
        self.dials += 1;
        DialNumber(self.dials)
    }

    /// Takes in an event. What follows is asked for by [`WorldOwner::settle`].
    pub(crate) fn hear(&mut self, event: ControlEvent, now: Timestamp) -> Vec<ControlCommand> {
        self.calls.begin(now, Some(&event));
        self.orchestrator.handle(event, now);
        self.commands()
    }

    /// Does what is due by now, until nothing is.
    pub(crate) fn settle(&mut self, now: Timestamp) -> Vec<ControlCommand> {
        let (mut commands, mut rounds) = (Vec::new(), 0);
        while rounds < ROUNDS_MAX && self.orchestrator.next_deadline().is_some_and(|due| due <= now) {
            self.calls.begin(now, None);
            self.orchestrator.advance(now);
            commands.extend(self.commands());
            rounds += 1;
        }
        debug_assert!(rounds < ROUNDS_MAX, "the control loop does not come to rest");
        commands
    }

    /// When to look at the deadline again, if no look before that is planned; the look is planned from now
    /// on. A deadline that [`WorldOwner::settle`] left behind is looked at a moment later.
    pub(crate) fn plan_look(&mut self, now: Timestamp) -> Option<Timestamp> {
        let deadline = self.orchestrator.next_deadline()?;
        let at = if deadline > now { deadline } else { now + LOOK_AGAIN };
        self.look.plan(at)
    }

    /// A look at the deadline comes. Returns whether it counts.
    pub(crate) fn look_comes(&mut self, now: Timestamp) -> bool {
        self.look.comes(now)
    }

    /// The link over which the activator speaks, once it was ordered.
    pub(crate) fn link_of_activator(&self) -> Option<LinkNumber> {
        let mut links = self.links.iter();
        let found = links.find(|(_, kept)| kept.far_end == LinkFarEnd::Activator);
        found.map(|(link, _)| LinkNumber(link.0))
    }

    fn commands(&mut self) -> Vec<ControlCommand> {
        let mut commands = Vec::new();
        while let Some(command) = self.orchestrator.next_command() {
            self.calls.command(&command);
            commands.push(command);
        }
        commands
    }
}

#[cfg(test)]
impl WorldOwner {
    /// The ledger of a revision over all hours that are kept.
    pub(crate) fn ledger(
        &mut self,
        name: &vocabulary::RevisionName,
        now: Timestamp,
    ) -> Option<scaling::RevisionLedger> {
        self.orchestrator.sweep(now);
        self.orchestrator.snapshot(now).view(name, now)?.ledger(Duration::MAX)
    }
}
