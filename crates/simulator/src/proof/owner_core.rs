//! The control loop as it is, with a defect around it if one was planted.

use std::collections::VecDeque;

use orchestration::{ControlCommand, ControlEvent, Orchestrator, OrchestratorSettings};
use vocabulary::Timestamp;

use super::command_defect::DefectiveCommands;
use super::hearing_defect::DefectiveHearing;
use super::planted_defect::PlantedDefect;
use crate::call_log::{CallLog, OwnerCall};

/// A control loop: events in, commands out.
#[derive(Debug)]
pub(crate) struct OwnerCore {
    orchestrator: Orchestrator,
    hearing: Option<DefectiveHearing>,
    commands: Option<DefectiveCommands>,
    /// Commands of a defect that come out before those of the control loop.
    given: VecDeque<ControlCommand>,
    /// The calls of the control loop: behind a defect of hearing, and before a defect of commands.
    calls: CallLog,
}

impl OwnerCore {
    pub(crate) fn new(defect: Option<PlantedDefect>, calls: CallLog) -> Self {
        let (mut hearing, mut commands) = (None, None);
        match defect {
            Some(PlantedDefect::Hearing(defect)) => hearing = Some(DefectiveHearing::new(defect)),
            Some(PlantedDefect::Command(defect)) => commands = Some(DefectiveCommands::new(defect)),
            Some(PlantedDefect::Activator(_)) | None => {}
        }
        let orchestrator = Orchestrator::new(OrchestratorSettings::default());
        Self { orchestrator, hearing, commands, given: VecDeque::new(), calls }
    }

    /// Takes out all calls that were kept.
    pub(crate) fn take_calls(&mut self) -> Vec<OwnerCall> {
        self.calls.take()
    }

    pub(crate) fn handle(&mut self, event: ControlEvent, now: Timestamp) {
        let event = match &mut self.hearing {
            Some(hearing) => hearing.hear(event, now),
            None => event,
        };
        if let Some(commands) = &mut self.commands {
            self.given.extend(commands.note_event(&event));
        }
        self.calls.begin(now, Some(&event));
        self.orchestrator.handle(event, now);
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        if let Some(hearing) = &mut self.hearing {
            for event in hearing.take_invented(now) {
                self.calls.begin(now, Some(&event));
                self.orchestrator.handle(event, now);
            }
        }
        self.calls.begin(now, None);
        self.orchestrator.advance(now);
    }

    pub(crate) fn next_command(&mut self) -> Option<ControlCommand> {
        while self.given.is_empty() {
            let command = self.orchestrator.next_command()?;
            self.calls.command(&command);
            if let Some(hearing) = &mut self.hearing {
                hearing.note_command(&command);
            }
            match &mut self.commands {
                Some(commands) => self.given.extend(commands.give(command)),
                None => return Some(command),
            }
        }
        self.given.pop_front()
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        if self.hearing.as_ref().is_some_and(DefectiveHearing::has_invented) {
            return Some(Timestamp::ZERO);
        }
        self.orchestrator.next_deadline()
    }
}
