//! How many requests can run in a second, and how many of them have to wait for chance alone?

/// The ready pods of a Service, as the activator knows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadySlots {
    pub(crate) pods: u32,
    /// The requests that may run in all of them at once; infinite without a limit.
    pub(crate) slots: f64,
}

impl ReadySlots {
    pub(crate) const NONE: Self = Self { pods: 0, slots: 0.0 };
}

/// What there was of pods and slots in a second. Times are seconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SecondCapacity {
    /// The slots on average over the second.
    pub(crate) slots: f64,
    /// The slots at its end.
    pub(crate) slots_at_end: f64,
    /// The ready pods on average over the second.
    pub(crate) pods: f64,
    /// When the first pod was ready; `None` if none was.
    pub(crate) ready_from: Option<f64>,
}

impl SecondCapacity {
    /// The share of ready pods that hold no request while so many run, if requests choose their pods at
    /// random.
    pub(crate) fn share_idle(&self, running: f64) -> f64 {
        if self.pods <= 0.0 {
            return 0.0;
        }
        let of_each = running / self.pods;
        let slots = self.slots / self.pods;
        if slots.is_finite() && slots >= 1.0 {
            libm::pow((1.0 - of_each / slots).max(0.0), slots)
        } else {
            libm::exp(-of_each)
        }
    }
}

/// Adds up capacity over a second.
#[derive(Clone, Debug)]
pub(crate) struct CapacityClock {
    present: ReadySlots,
    since: f64,
    slots: f64,
    pods: f64,
    ready_from: Option<f64>,
}

impl CapacityClock {
    pub(crate) fn new() -> Self {
        Self { present: ReadySlots::NONE, since: 0.0, slots: 0.0, pods: 0.0, ready_from: None }
    }

    /// From now on there are other pods.
    pub(crate) fn set(&mut self, capacity: ReadySlots, now: f64) {
        self.advance(now);
        self.present = capacity;
        if capacity.pods > 0 && self.ready_from.is_none() {
            self.ready_from = Some(now);
        }
    }

    pub(crate) fn present(&self) -> ReadySlots {
        self.present
    }

    /// The second ends that began at the last end.
    pub(crate) fn close_second(&mut self, end: f64) -> SecondCapacity {
        self.advance(end);
        let second = SecondCapacity {
            slots: self.slots,
            slots_at_end: self.present.slots,
            pods: self.pods,
            ready_from: self.ready_from,
        };
        (self.slots, self.pods) = (0.0, 0.0);
        self.ready_from = (self.present.pods > 0).then_some(end);
        second
    }

    fn advance(&mut self, now: f64) {
        let passed = (now - self.since).max(0.0);
        // No pods have no slots, even if each had infinitely many; and infinitely many for no time are none.
        if self.present.pods > 0 && passed > 0.0 {
            self.slots += self.present.slots * passed;
            self.pods += f64::from(self.present.pods) * passed;
        }
        self.since = self.since.max(now);
    }
}

/// The chance that a request has to wait, by Erlang's formula for servers that share one queue. `offered` is
/// the number of servers that are busy on average, and below their number.
pub(crate) fn chance_of_waiting(servers: u32, offered: f64) -> f64 {
    if offered <= 0.0 {
        return 0.0;
    }
    // The inverse of Erlang's B by its recursion.
    let mut inverse = 1.0;
    for server in 1..=servers {
        inverse = 1.0 + inverse * f64::from(server) / offered;
    }
    let blocked = 1.0 / inverse;
    let free = 1.0 - offered / f64::from(servers);
    blocked / (1.0 - (1.0 - blocked) * (1.0 - free))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_added_up_over_its_second() {
        let mut clock = CapacityClock::new();
        clock.set(ReadySlots { pods: 2, slots: 20.0 }, 0.5);
        clock.set(ReadySlots { pods: 4, slots: 40.0 }, 0.75);
        let second = clock.close_second(1.0);
        let expected = SecondCapacity { slots: 15.0, slots_at_end: 40.0, pods: 1.5, ready_from: Some(0.5) };
        assert_eq!(second, expected);
        assert_eq!(clock.close_second(2.0).ready_from, Some(1.0));
        clock.set(ReadySlots::NONE, 2.0);
        assert_eq!(clock.close_second(3.0).slots, 0.0);
        assert_eq!(clock.close_second(4.0).ready_from, None);
    }

    #[test]
    fn slots_without_a_limit_are_infinite_and_those_of_no_pod_are_none() {
        let mut clock = CapacityClock::new();
        clock.set(ReadySlots { pods: 0, slots: f64::INFINITY }, 0.0);
        assert_eq!(clock.close_second(1.0).slots, 0.0);
        clock.set(ReadySlots { pods: 1, slots: f64::INFINITY }, 1.5);
        assert_eq!(clock.close_second(2.0).slots, f64::INFINITY);
    }

    #[test]
    fn the_chance_of_waiting_has_its_known_values() {
        assert!((chance_of_waiting(1, 0.7) - 0.7).abs() < 1e-12);
        assert!((chance_of_waiting(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((chance_of_waiting(5, 4.0) - 0.554).abs() < 0.001);
        assert_eq!(chance_of_waiting(5, 0.0), 0.0);
    }
}
