//! What came out of one call of the orchestrator, in few bytes.
//!
//! A hash stands for the commands, with all their numbers: links, orders and versions are counted from the
//! beginning of a process, so it is the same in a replay that begins where the process began. A replay that
//! begins in the middle gives other numbers and ticks at other instants; it is compared by the counts that
//! were decided, which stand beside the hash.
//!
//! The text of a command for programmers (`Debug`) is what is hashed. It names every field, so a field that
//! is added later is covered; keys, tokens and waiting pages, which no record has, show themselves as dots
//! there. It may change with the build, as decisions may: hashes are compared within one build.

use std::fmt::{self, Write as _};

use orchestration::{ControlCommand, Errand, LinkId, OrderId};
use vocabulary::{PodCount, RevisionName};

use crate::peers::PeerName;

/// The commands that came out of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandOutcome {
    /// The hash of all commands.
    pub(crate) commands: u64,
    /// How many decisions came out.
    pub(crate) decided: u32,
    /// The links that are kept from now on.
    pub(crate) opened: Vec<(LinkId, PeerName)>,
    /// The orders whose end will be told, each with the hash of its errand.
    pub(crate) orders: Vec<(OrderId, u64)>,
    /// The counts that were decided.
    pub(crate) counts: Vec<(RevisionName, PodCount)>,
}

impl CommandOutcome {
    /// The outcome of a call from which these commands came.
    pub(crate) fn of(commands: &[ControlCommand]) -> Self {
        let mut outcome = Self::default();
        let mut all = TextHash::default();
        for command in commands {
            all.add(command);
            outcome.note(command);
        }
        if !commands.is_empty() {
            outcome.commands = all.0;
        }
        outcome
    }

    /// Whether no command came out.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note(&mut self, command: &ControlCommand) {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => self.opened.push((*link, peer.into())),
            ControlCommand::Order(order) => {
                self.orders.push((order.id, errand_hash(&order.what.errand())));
            }
            ControlCommand::Publish { revision, decision } => {
                self.decided += 1;
                self.counts.extend(decision.wanted.map(|count| (revision.clone(), count)));
            }
            ControlCommand::CloseLink { .. }
            | ControlCommand::Sync { .. }
            | ControlCommand::Assign { .. }
            | ControlCommand::Unassign { .. }
            | ControlCommand::TellPod { .. }
            | ControlCommand::ReleaseActivator { .. }
            | ControlCommand::AskMetrics { .. } => {}
        }
    }
}

/// Of two orders with the same hash the later one takes the place of the earlier.
pub(crate) fn errand_hash(errand: &Errand) -> u64 {
    let mut hash = TextHash::default();
    hash.add(errand);
    hash.0
}

/// The hash FNV-1a of a text that is written bit by bit.
struct TextHash(u64);

impl Default for TextHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl TextHash {
    fn add(&mut self, value: &impl fmt::Debug) {
        write!(self, "{value:?};").expect("a hash takes every text");
    }
}

impl fmt::Write for TextHash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orchestration::{Fence, Order, PlatformOrder};
    use scaling::{Decision, Trigger};
    use vocabulary::{Bucket, Epoch, Timestamp};

    use super::*;

    fn name() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("three parts")
    }

    fn scale(id: u64, to: u32) -> ControlCommand {
        let what = Order::ScaleTo {
            revision: name(),
            from: PodCount::ZERO,
            to: PodCount::new(to),
            end_first: Vec::new(),
            because: Arc::new(Decision::empty(Trigger::Tick, Timestamp::ZERO)),
        };
        let fence = Fence { bucket: Bucket(0), epoch: Epoch(1) };
        ControlCommand::Order(PlatformOrder { id: OrderId(id), fence, what })
    }

    #[test]
    fn numbers_of_a_process_are_in_the_hash_of_commands_and_not_in_that_of_errands() {
        let (first, second) = (CommandOutcome::of(&[scale(1, 3)]), CommandOutcome::of(&[scale(2, 3)]));
        assert_ne!(first.commands, second.commands);
        assert_eq!(first.orders[0].1, second.orders[0].1, "both are about the count of one revision");
        assert_ne!(first.commands, CommandOutcome::of(&[scale(1, 4)]).commands);
    }

    #[test]
    fn a_call_without_commands_has_an_empty_outcome() {
        assert!(CommandOutcome::of(&[]).is_empty());
        let close = ControlCommand::CloseLink { link: LinkId(1) };
        assert!(!CommandOutcome::of(&[close]).is_empty());
    }

    #[test]
    fn decisions_are_counted_and_those_with_a_count_are_named() {
        let publish = |wanted| {
            let decision = Decision { wanted, ..Decision::empty(Trigger::Tick, Timestamp::ZERO) };
            ControlCommand::Publish { revision: name(), decision: Arc::new(decision) }
        };
        let outcome = CommandOutcome::of(&[publish(None), publish(Some(PodCount::ONE))]);
        assert_eq!((outcome.decided, outcome.counts), (2, vec![(name(), PodCount::ONE)]));
    }
}
