//! The activator's end as it is, with a defect around it if one was planted.

use std::collections::VecDeque;
use std::sync::Arc;

use throttling::{
    ActivatorCommand, ActivatorEvent, ActivatorIdentity, ActivatorRevision, ActivatorRevisions, LinkNumber,
    QueueLimits, RequestRefusal, RequestWay, Ticket,
};
use vocabulary::{ActivatorWord, RevisionName, Timestamp, Version};

use super::planted_defect::{ActivatorDefect, PlantedDefect};

/// Few enough that worlds reach them.
const LIMITS: QueueLimits = QueueLimits { per_revision: 100, in_all: 150 };
/// Of so many grants one is another one than was given.
const ONE_OF: u64 = 30;

/// The end of the protocol at an activator: events in, commands and words out.
#[derive(Debug)]
pub(crate) struct ActivatorCore {
    end: ActivatorRevisions,
    defect: Option<ActivatorDefect>,
    grants: u64,
    /// The greatest version that was assigned.
    greatest: Version,
    given: VecDeque<ActivatorCommand>,
}

impl ActivatorCore {
    pub(crate) fn new(
        identity: ActivatorIdentity,
        seed: u64,
        defect: Option<PlantedDefect>,
        now: Timestamp,
    ) -> Self {
        let defect = match defect {
            Some(PlantedDefect::Activator(defect)) => Some(defect),
            Some(PlantedDefect::Hearing(_) | PlantedDefect::Command(_)) | None => None,
        };
        Self {
            end: ActivatorRevisions::new(identity, LIMITS, (), seed, now),
            defect,
            grants: 0,
            greatest: Version::default(),
            given: VecDeque::new(),
        }
    }

    pub(crate) fn handle(&mut self, mut event: ActivatorEvent, now: Timestamp) {
        if self.defect == Some(ActivatorDefect::LateOwnerObeyed)
            && let ActivatorEvent::Assigned { assignment, .. } = &mut event
        {
            let version = assignment.version;
            if version < self.greatest {
                let counter = self.greatest.counter + 1;
                Arc::make_mut(assignment).version = Version { counter, ..self.greatest };
            }
            self.greatest = self.greatest.max(assignment.version);
        }
        self.end.handle(event, now);
    }

    pub(crate) fn next_command(&mut self) -> Option<ActivatorCommand> {
        if let Some(given) = self.given.pop_front() {
            return Some(given);
        }
        let command = self.end.next_command()?;
        let Some(defect) = self.defect else { return Some(command) };
        let ActivatorCommand::Grant { revision, dispatch } = &command else { return Some(command) };
        self.grants += 1;
        if !self.grants.is_multiple_of(ONE_OF) {
            return Some(command);
        }
        match defect {
            ActivatorDefect::GrantRepeated => self.given.push_back(command.clone()),
            ActivatorDefect::GrantLost => return self.next_command(),
            ActivatorDefect::RefusalInvented => {
                let (revision, ticket) = (revision.clone(), dispatch.ticket);
                let refusal = RequestRefusal::Gone;
                return Some(ActivatorCommand::Refuse { revision, ticket, refusal });
            }
            ActivatorDefect::AcknowledgedAhead
            | ActivatorDefect::EmptyInvented
            | ActivatorDefect::LateOwnerObeyed
            | ActivatorDefect::SecondRepeated => {}
        }
        Some(command)
    }

    pub(crate) fn next_words(&mut self, link: LinkNumber, now: Timestamp) -> Vec<ActivatorWord> {
        let mut words = self.end.next_words(link, now);
        match self.defect {
            Some(ActivatorDefect::AcknowledgedAhead) => {
                for word in &mut words {
                    if let ActivatorWord::Acknowledged { version, .. } = word {
                        version.counter += 1;
                    }
                }
            }
            Some(ActivatorDefect::EmptyInvented) => {
                let present = words.iter().find_map(|word| match word {
                    ActivatorWord::Present { revision, .. } => Some(revision.clone()),
                    ActivatorWord::Hello(_)
                    | ActivatorWord::Loads { .. }
                    | ActivatorWord::Acknowledged { .. }
                    | ActivatorWord::Emptied { .. }
                    | ActivatorWord::Draining => None,
                });
                words.extend(present.map(|revision| ActivatorWord::Emptied { revision }));
            }
            Some(ActivatorDefect::SecondRepeated) => {
                if let Some(seconds @ ActivatorWord::Loads { .. }) = words.last() {
                    let seconds = seconds.clone();
                    words.push(seconds);
                }
            }
            Some(
                ActivatorDefect::GrantRepeated
                | ActivatorDefect::GrantLost
                | ActivatorDefect::RefusalInvented
                | ActivatorDefect::LateOwnerObeyed,
            )
            | None => {}
        }
        words
    }

    /// A revision that the activator knows.
    pub(crate) fn revision(&self, name: &RevisionName) -> Option<&ActivatorRevision> {
        self.end.cell(name)
    }

    /// The version of an assignment that is in force.
    pub(crate) fn version_of(&self, name: &RevisionName) -> Option<Version> {
        self.end.cell(name).map(|known| known.assignment().version)
    }

    pub(crate) fn draw_ticket(&mut self, name: &RevisionName) -> Option<Ticket> {
        self.end.draw_ticket(name)
    }

    /// Where a request goes; `None` if its revision is not known.
    pub(crate) fn way_of_request(&mut self, name: &RevisionName, now: Timestamp) -> Option<RequestWay> {
        self.end.way_of_request(name, now)
    }
}
