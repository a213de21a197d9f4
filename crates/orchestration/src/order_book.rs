//! Which orders are under way?

use std::collections::BTreeMap;

use vocabulary::{PodId, RevisionId};

use crate::order_outcome::{OrderId, OrderOutcome};

/// Orders whose end matters to us.
#[derive(Debug, Default)]
pub(crate) struct OrderBook {
    given: u64,
    under_way: BTreeMap<OrderId, Purpose>,
}

/// What an order was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Scale(RevisionId),
    Route(RevisionId),
    Release(RevisionId, PodId),
    /// Nothing waits for its end.
    Notice,
}

impl OrderBook {
    pub(crate) fn give(&mut self, purpose: Purpose) -> OrderId {
        self.given += 1;
        let order = OrderId(self.given);
        if purpose != Purpose::Notice {
            self.under_way.insert(order, purpose);
        }
        order
    }

    /// What an outcome is about; forgets the order if that is its end.
    pub(crate) fn ended(&mut self, order: OrderId, outcome: &OrderOutcome) -> Option<Purpose> {
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
    pub(crate) fn forget(&mut self, revision: RevisionId) {
        self.under_way.retain(|_, purpose| match *purpose {
            Purpose::Scale(of) | Purpose::Route(of) | Purpose::Release(of, _) => of != revision,
            Purpose::Notice => false,
        });
    }
}
