//! When does a part of the world look at its deadline?
//!
//! Deadlines move with every event. A look is an event of its own, which stays in the queue when a sooner one
//! is planned: of all looks only the one that was planned last counts, and the others come to nothing.
//! Without that rule each of them would plan a successor, and their number would only grow.

use vocabulary::Timestamp;

/// The next look of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookPlan {
    /// [`Timestamp::MAX`] if none is planned.
    next: Timestamp,
}

impl LookPlan {
    pub(crate) fn new() -> Self {
        Self { next: Timestamp::MAX }
    }

    /// Plans a look at that time, which is returned if the look is to be put into the queue. `None` if one is
    /// planned that comes no later.
    pub(crate) fn plan(&mut self, at: Timestamp) -> Option<Timestamp> {
        if at >= self.next {
            return None;
        }
        self.next = at;
        Some(at)
    }

    /// A look comes out of the queue. Returns whether it counts; then no other is planned any more.
    pub(crate) fn comes(&mut self, now: Timestamp) -> bool {
        let is_planned = self.next <= now;
        if is_planned {
            self.next = Timestamp::MAX;
        }
        is_planned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_a_sooner_one_replaced_comes_to_nothing() {
        let at = Timestamp::from_secs;
        let mut plan = LookPlan::new();
        assert_eq!(plan.plan(at(10)), Some(at(10)));
        assert_eq!(plan.plan(at(12)), None);
        assert_eq!(plan.plan(at(3)), Some(at(3)));
        assert!(plan.comes(at(3)));
        assert_eq!(plan.plan(at(20)), Some(at(20)));
        assert!(!plan.comes(at(10)), "the first look was replaced");
        assert_eq!(plan.plan(at(20)), None);
        assert!(plan.comes(at(20)) && !plan.comes(at(20)));
    }
}
