//! What waits to be said to links and to the platform, and which orders have not ended?

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use vocabulary::{PodId, RevisionId};

use crate::events::ControlCommand;
use crate::order_outcome::{OrderId, OrderOutcome};
use crate::orders::{Fence, Order, PlatformOrder};

/// The commands that wait to be taken, and the orders whose end matters to us.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CommandOutbox {
    /// Taken after each event, so a keyframe has none.
    #[serde(skip)]
    commands: VecDeque<ControlCommand>,
    /// How many orders were given.
    given: u64,
    under_way: BTreeMap<OrderId, Purpose>,
}

/// What an order was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    Scale(RevisionId),
    Route(RevisionId),
    Release(RevisionId, PodId),
    /// Nothing waits for its end.
    Notice,
}

impl CommandOutbox {
    pub(crate) fn push(&mut self, command: ControlCommand) {
        self.commands.push_back(command);
    }

    /// The command that has waited longest.
    pub(crate) fn take_next(&mut self) -> Option<ControlCommand> {
        self.commands.pop_front()
    }

    /// Gives the platform an order by the right of `fence`.
    pub(crate) fn order(&mut self, fence: Fence, what: Order, purpose: Purpose) -> OrderId {
        self.given += 1;
        let id = OrderId(self.given);
        if purpose != Purpose::Notice {
            self.under_way.insert(id, purpose);
        }
        self.push(ControlCommand::Order(PlatformOrder { id, fence, what }));
        id
    }

    /// What an outcome is about; forgets the order if that is its end.
    pub(crate) fn order_ended(&mut self, order: OrderId, outcome: &OrderOutcome) -> Option<Purpose> {
        match outcome {
            OrderOutcome::Retrying(_) => self.under_way.get(&order).copied(),
            OrderOutcome::Done
            | OrderOutcome::Superseded
            | OrderOutcome::Conflict { .. }
            | OrderOutcome::Gone
            | OrderOutcome::NotOwner
            | OrderOutcome::Refused(_)
            | OrderOutcome::Forbidden(_) => self.under_way.remove(&order),
        }
    }

    /// A revision is gone or not ours any more, and its id may be given to another.
    pub(crate) fn forget_orders(&mut self, revision: RevisionId) {
        self.under_way.retain(|_, purpose| match *purpose {
            Purpose::Scale(of) | Purpose::Route(of) | Purpose::Release(of, _) => of != revision,
            Purpose::Notice => false,
        });
    }
}
