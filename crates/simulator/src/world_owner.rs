//! The owner of all revisions: the control loop as it is, and the far ends of its links.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlCommand, ControlEvent, LinkId, Orchestrator, OrchestratorSettings};
use throttling::LinkNumber;
use vocabulary::{PodSettings, Timestamp};

use crate::call_log::CallLog;
use crate::look_plan::LookPlan;
use crate::world_event::PodNumber;

/// More rounds than a control loop needs that comes to rest.
const ROUNDS_MAX: usize = 1_000;
/// When a control loop that does not come to rest is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The other end of a link of the owner.
#[derive(Clone, Debug)]
pub(crate) enum LinkFarEnd {
    Pod { pod: PodNumber, first: Arc<PodSettings> },
    Activator,
}

/// The control loop with its links.
#[derive(Debug)]
pub(crate) struct WorldOwner {
    orchestrator: Orchestrator,
    pub(crate) links: BTreeMap<LinkId, LinkFarEnd>,
    look: LookPlan,
    pub(crate) calls: CallLog,
}

impl WorldOwner {
    pub(crate) fn new(calls: CallLog) -> Self {
        Self {
            orchestrator: Orchestrator::new(OrchestratorSettings::default()),
            links: BTreeMap::new(),
            look: LookPlan::new(),
            calls,
        }
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
        let found = links.find(|(_, far_end)| matches!(far_end, LinkFarEnd::Activator));
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
