//! Which requests of the backlog begin in a second, and when?

use std::time::Duration;

use super::{FluidService, LEAST_WAIT, WaitingGroup, cause_of_wait, note_waits};
use crate::fluid::capacity::SecondCapacity;
use crate::fluid::second_arrivals::{ArrivalGroup, GroupWork};
use crate::rounding::whole_part;
use crate::tally::ServiceTally;

/// Slots that there are for a moment of a second are divided by no less than this.
const LEAST_SLOTS: f64 = 1e-6;

/// Time in slots, in the open second and in the next one.
#[derive(Clone, Copy, Debug)]
struct SlotTime {
    now: f64,
    after: f64,
}

/// Requests of one group that begin together.
#[derive(Clone, Copy, Debug)]
struct BegunRequests {
    arrived: f64,
    start: f64,
    count: u32,
    work: GroupWork,
    /// Whether the report counts them among those that had to wait.
    is_counted: bool,
}

/// What begins in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginnings {
    /// Seconds that the requests that began have waited within this second, summed.
    pub(super) waited: f64,
    /// Requests that began without a wait, of those that are not followed one by one.
    pub(super) prompt: u32,
}

impl FluidService {
    /// Lets requests begin in the order of their arrival, as far as slots go.
    ///
    /// Two bounds hold. In each second the slots that requests occupy are no more than there are. And within
    /// it all slots together are booked one after the other, as if they were one that is as many times as
    /// fast; a request begins by its own work before its booking ends, so that as many begin at once as there
    /// are slots, and the next ones when the first are done.
    pub(super) fn begin_requests(
        &mut self,
        capacity: &SecondCapacity,
        tally: &mut ServiceTally,
    ) -> Beginnings {
        let mut beginnings = Beginnings::default();
        let Some(ready_from) = capacity.ready_from else { return beginnings };
        let ends = self.begins + 1.0;
        let slots = capacity.slots_at_end.max(capacity.slots).max(LEAST_SLOTS);
        let whole = capacity.slots - self.running.in_second(0) - self.debt;
        let mut room = SlotTime { now: whole, after: capacity.slots_at_end - self.running.in_second(1) };
        self.booked = self.booked.max(ready_from);
        while let Some(&WaitingGroup { group, is_counted }) = self.backlog.front() {
            let work = self.work_of(&group);
            let most = group.requests.min(whole_part(libm::ceil(slots)).max(1));
            let booked = self.booked.max(group.middle_of(most)) + f64::from(most) * work / slots;
            let start = group.middle_of(most).max(ready_from).max(booked - work);
            if room.now <= 0.0 || room.after <= 0.0 || start >= ends {
                break;
            }
            let each = self.slot_time_of(&group, ends - start);
            let fitting = quotient(room.now, each.now).min(quotient(room.after, each.after));
            let count = whole_part(libm::ceil(fitting)).clamp(1, most);
            let requests = f64::from(count);
            room =
                SlotTime { now: room.now - each.now * requests, after: room.after - each.after * requests };
            self.booked = booked - (f64::from(most) - requests) * work / slots;
            self.run(&group, ends - start, requests);
            self.take_from_backlog(count);
            let (arrived, work) = (group.middle_of(count), group.work);
            let begun = BegunRequests { arrived, start, count, work, is_counted };
            self.note_begun(&begun, capacity, &mut beginnings, tally);
        }
        self.debt = (-room.now).min(whole - room.now).max(0.0);
        beginnings
    }

    fn run(&mut self, group: &ArrivalGroup, left: f64, requests: f64) {
        match group.work {
            GroupWork::Known(work) => self.running.begin_alike(left, work, requests),
            GroupWork::Typical(scale) => self.running.begin_many(&self.profile, requests * scale),
        }
    }

    fn work_of(&self, group: &ArrivalGroup) -> f64 {
        match group.work {
            GroupWork::Known(work) => work,
            GroupWork::Typical(scale) => scale * self.profile.mean(),
        }
    }

    /// How much of a slot a request of a group takes, on average, if it begins when this part of the open
    /// second is left.
    fn slot_time_of(&self, group: &ArrivalGroup, left: f64) -> SlotTime {
        match group.work {
            GroupWork::Known(work) => SlotTime { now: work.min(left), after: (work - left).clamp(0.0, 1.0) },
            GroupWork::Typical(scale) => {
                SlotTime { now: scale * self.profile.in_second(0), after: scale * self.profile.in_second(1) }
            }
        }
    }

    fn note_begun(
        &self,
        begun: &BegunRequests,
        capacity: &SecondCapacity,
        beginnings: &mut Beginnings,
        tally: &mut ServiceTally,
    ) {
        let BegunRequests { arrived, start, count, work, is_counted } = *begun;
        let waited = start - arrived;
        if waited <= LEAST_WAIT {
            match work {
                GroupWork::Known(_) => note_waits(Duration::ZERO, count, tally),
                GroupWork::Typical(_) => beginnings.prompt = beginnings.prompt.saturating_add(count),
            }
            return;
        }
        let cause = cause_of_wait(arrived, capacity);
        beginnings.waited += f64::from(count) * (start - arrived.max(self.begins));
        self.note_end_of_wait(cause, waited, count, tally);
        if !is_counted {
            self.count_wait(cause, count, tally);
        }
    }

    pub(super) fn take_from_backlog(&mut self, count: u32) {
        self.waiting -= f64::from(count);
        if let Some(front) = self.backlog.front_mut() {
            front.group.take(count);
            if front.group.requests == 0 {
                self.backlog.pop_front();
            }
        }
    }
}

/// How often a number goes into another; without end if it is nothing.
fn quotient(whole: f64, part: f64) -> f64 {
    if part > 0.0 { whole / part } else { f64::INFINITY }
}
