//! Which orders wait until a platform takes them?
//!
//! One order waits for each errand of each seat, so the number of waiting orders is bounded by the number of
//! pods and revisions. A later order of the same errand takes the place of the waiting one, by the rule that
//! orders have for that ([`orchestration::Order::supersede`]); the replaced order ends as superseded. An
//! order never replaces the order of another seat: the other autoscaler alone may own the revision.

use std::collections::BTreeMap;

use orchestration::{Errand, OrderId, PlatformOrder};

/// The orders that wait for a platform, and those that were replaced meanwhile.
#[derive(Debug)]
pub struct OrderDesk<SeatKey> {
    /// States of pods come first, so that the orders after them go by these states.
    waiting: BTreeMap<(Errand, SeatKey), PlatformOrder>,
    replaced: Vec<(SeatKey, OrderId)>,
}

impl<SeatKey> Default for OrderDesk<SeatKey> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), replaced: Vec::new() }
    }
}

impl<SeatKey: Copy + Ord> OrderDesk<SeatKey> {
    /// An autoscaler gives an order from its seat.
    pub fn put(&mut self, seat: SeatKey, mut order: PlatformOrder) {
        let subject = (order.what.errand(), seat);
        if let Some(replaced) = self.waiting.remove(&subject) {
            order.what.supersede(&replaced.what);
            self.replaced.push((seat, replaced.id));
        }
        self.waiting.insert(subject, order);
    }

    /// The orders that were replaced, in the order in which they were; to be told before the orders that wait
    /// are carried out.
    pub fn take_replaced(&mut self) -> Vec<(SeatKey, OrderId)> {
        std::mem::take(&mut self.replaced)
    }

    /// The orders that wait, in the order in which they are to be carried out.
    pub fn into_orders(self) -> impl Iterator<Item = (SeatKey, PlatformOrder)> {
        self.waiting.into_iter().map(|((_, seat), order)| (seat, order))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orchestration::{Fence, Order, ReleaseProof};
    use scaling::{Decision, Trigger};
    use vocabulary::{Bucket, Epoch, PodCount, PodName, RevisionName, Timestamp};

    use super::*;

    const FENCE: Fence = Fence { bucket: Bucket(0), epoch: Epoch(1) };

    fn release(id: u64, pod: &str) -> PlatformOrder {
        let what = Order::ReleasePod { pod: PodName::new(pod), proof: ReleaseProof::Acknowledged };
        PlatformOrder { id: OrderId(id), fence: FENCE, what }
    }

    fn scale(id: u64, from: u32, to: u32) -> PlatformOrder {
        let what = Order::ScaleTo {
            revision: RevisionName::new("default", "deployment", "hello").expect("a name"),
            from: PodCount::new(from),
            to: PodCount::new(to),
            end_first: Vec::new(),
            because: Arc::new(Decision::empty(Trigger::Tick, Timestamp::ZERO)),
        };
        PlatformOrder { id: OrderId(id), fence: FENCE, what }
    }

    fn counts(desk: OrderDesk<u64>) -> Vec<(u64, u32, u32)> {
        let counts = desk.into_orders().filter_map(|(seat, order)| match order.what {
            Order::ScaleTo { from, to, .. } => Some((seat, from.value(), to.value())),
            Order::Route { .. }
            | Order::ReleasePod { .. }
            | Order::NoteDrained { .. }
            | Order::ReleaseEntrance { .. }
            | Order::NotePodState { .. }
            | Order::NotePodReach { .. }
            | Order::Tell { .. } => None,
        });
        counts.collect()
    }

    #[test]
    fn the_latest_order_of_an_errand_waits_and_the_replaced_order_is_known() {
        let mut desk = OrderDesk::default();
        for (id, pod) in [(1, "a"), (2, "b"), (3, "a")] {
            desk.put(1_u64, release(id, pod));
        }
        // The order of another autoscaler, which may own the revision or not.
        desk.put(2, release(1, "a"));
        assert_eq!(desk.take_replaced(), [(1, OrderId(1))]);
        assert!(desk.take_replaced().is_empty(), "each is told once");
        let left: Vec<_> = desk.into_orders().map(|(seat, order)| (seat, order.id.0)).collect();
        assert_eq!(left, [(1, 3), (2, 1), (1, 2)]);
    }

    #[test]
    fn a_count_is_written_over_the_count_that_the_replaced_order_would_have_found() {
        for (first, second, expected) in [
            ((2, 5), (5, 8), (2, 8)),
            ((2, 5), (5, 2), (2, 2)),
            // Another client wrote 3 since, and the second order knows that.
            ((2, 5), (3, 8), (3, 8)),
        ] {
            let mut desk = OrderDesk::default();
            desk.put(1_u64, scale(1, first.0, first.1));
            desk.put(1, scale(2, second.0, second.1));
            assert_eq!(counts(desk), [(1, expected.0, expected.1)], "{first:?}, then {second:?}");
        }
        let mut desk = OrderDesk::default();
        desk.put(1_u64, scale(1, 2, 5));
        desk.put(2, scale(1, 5, 8));
        assert_eq!(counts(desk), [(1, 2, 5), (2, 5, 8)], "each of its own seat");
    }
}
