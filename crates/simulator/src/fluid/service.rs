//! The fluid of one Service: what arrives, waits and runs, second by second.

mod beginnings;

use std::collections::VecDeque;
use std::time::Duration;

use super::capacity::{CapacityClock, ReadySlots, SecondCapacity, chance_of_waiting};
use super::occupancy::{OccupancyProfile, RunningWork};
use super::second_arrivals::{ArrivalGroup, ClientRoom, SecondArrivals};
use super::surge::{FollowedRequests, RestingQueue, RisenLevel, RisingLevels, SurgeThreshold};
use crate::random::{RandomStream, span_of};
use crate::rounding::whole_part;
use crate::scenario::{Scenario, ServiceScenario};
use crate::shared_cores::CoreCount;
use crate::tally::{ServiceTally, WaitCause};
use crate::world_event::FluidSurge;

/// The most requests that wait at the activator for one revision, as documented.
const QUEUE_MAX: f64 = 10_000.0;
/// A shorter wait is a rounding error.
const LEAST_WAIT: f64 = 1e-9;
/// What is held by a backlog is looked at so many times in a second.
const LOOKS: u32 = 20;
/// The part of a second in which the looks lie: the last one sees almost all that arrives.
const LOOKED_AT: f64 = 0.995;
/// The waits by chance of a second are drawn for so many of its requests, each standing for as many others.
const WAITS_DRAWN: u32 = 4;

/// What was measured in the second that ended last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeasuredSecond {
    /// Requests in pods, on average over the second.
    pub(crate) running: f64,
    /// Requests at the activator that wait, on average over the second.
    pub(crate) waiting: f64,
    pub(crate) arrived: u32,
    /// Requests that wait at the end of the second.
    pub(crate) queued: u32,
    pub(crate) oldest_wait: Duration,
    /// The ready pods at the end of the second.
    pub(crate) pods: u32,
}

/// One Service whose requests are a fluid. Times are seconds since the load began.
#[derive(Debug)]
pub(crate) struct FluidService {
    arrivals: SecondArrivals,
    profile: OccupancyProfile,
    /// The cores of each pod, which limit what runs as slots do; the rest waits in its pod.
    cores: Option<CoreCount>,
    /// How long a request may take in all.
    limit: Option<f64>,
    capacity: CapacityClock,
    begins: f64,
    open: Vec<ArrivalGroup>,
    backlog: VecDeque<WaitingGroup>,
    waiting: f64,
    running: RunningWork,
    /// Until when all slots together are booked.
    booked: f64,
    /// The slots by which the last second was overdrawn, because requests begin as a whole.
    debt: f64,
    /// The part of a request by which waits by chance are not counted yet.
    rest_of_waits: f64,
    waits: RandomStream,
    threshold: SurgeThreshold,
    followed: FollowedRequests,
    peaks: RandomStream,
    measured: MeasuredSecond,
}

/// A group of the backlog.
#[derive(Clone, Copy, Debug)]
struct WaitingGroup {
    group: ArrivalGroup,
    /// Whether the report counts the group among those that had to wait.
    is_counted: bool,
}

impl FluidService {
    pub(crate) fn new(service: &ServiceScenario, scenario: &Scenario, profile: OccupancyProfile) -> Self {
        let name = &service.facts.name;
        Self {
            arrivals: SecondArrivals::new(service, scenario, &profile),
            profile,
            cores: scenario.cores.get(name).copied(),
            limit: service.facts.timeouts.request.map(|limit| limit.as_secs_f64()),
            capacity: CapacityClock::new(),
            begins: 0.0,
            open: Vec::new(),
            backlog: VecDeque::new(),
            waiting: 0.0,
            running: RunningWork::default(),
            booked: 0.0,
            debt: 0.0,
            rest_of_waits: 0.0,
            waits: RandomStream::of(scenario.seed, name.as_str(), "fluid-waits"),
            threshold: SurgeThreshold::of(service, scenario),
            followed: FollowedRequests::default(),
            peaks: RandomStream::of(scenario.seed, name.as_str(), "fluid-peaks"),
            measured: MeasuredSecond::default(),
        }
    }

    /// The activator knows other pods from now on, each with so many slots; 0 means no limit.
    pub(crate) fn set_pods(&mut self, pods: u32, slots_of_each: u32, now: f64) {
        let of_each = if slots_of_each == 0 { f64::INFINITY } else { f64::from(slots_of_each) };
        let of_each = self.cores.map_or(of_each, |cores| of_each.min(cores.value()));
        let slots = if pods == 0 { 0.0 } else { f64::from(pods) * of_each };
        // The work that is booked stays the same, and other slots take another time for it.
        let before = self.capacity.present().slots;
        if self.booked > now && before.is_finite() && slots > 0.0 {
            self.booked = now + (self.booked - now) * before / slots;
        }
        self.capacity.set(ReadySlots { pods, slots }, now);
    }

    /// A second begins. Returns what the activator will hold in it that the owner is to hear at once.
    pub(crate) fn begin_second(&mut self, begins: f64) -> Vec<FluidSurge> {
        self.begins = begins;
        let present = self.capacity.present();
        let running = self.running.in_second(0);
        let room = ClientRoom { waiting: self.waiting, running, slots: present.slots };
        self.arrivals.draw(begins, room, &mut self.open);
        let mut levels = RisingLevels::new(self.threshold.level(present.pods).unwrap_or(u32::MAX));
        if self.arrivals.are_followed() {
            self.followed.arrive(&self.open, &mut levels);
        }
        let rate = self.arrivals.rate(begins);
        let queue =
            rate.map(|rate| RestingQueue { rate, offered: rate * self.profile.mean(), slots: present.slots });
        let is_overloaded = queue.is_some_and(|queue| !queue.is_at_rest());
        if present.pods == 0 || !self.backlog.is_empty() || is_overloaded {
            levels = self.levels_of_backlog(present);
        } else if let (Some(queue), Some(from)) = (queue, self.threshold.level(present.pods)) {
            let at = begins + self.peaks.unit();
            if let Some(peak) = queue.draw_peak(from, &mut self.peaks) {
                levels.reach(at, peak);
            }
        }
        let surge_of = |level: RisenLevel| FluidSurge {
            at: level.at,
            held: level.held,
            waiting: whole_part(f64::from(level.held) - present.slots),
            pods: present.pods,
        };
        levels.into_levels().into_iter().map(surge_of).collect()
    }

    /// What is held while requests wait: those that wait already and that arrive, and as many that run as
    /// there are slots, each of which is over after a service time.
    fn levels_of_backlog(&self, present: ReadySlots) -> RisingLevels {
        let mut levels = RisingLevels::new(self.threshold.level(present.pods).unwrap_or(u32::MAX));
        let slots = if present.slots.is_finite() { present.slots } else { 0.0 };
        let ends_a_second = if self.profile.mean() > 0.0 { slots / self.profile.mean() } else { 0.0 };
        // A backlog that begins in this second finds slots that are free.
        let taken = if self.backlog.is_empty() { self.measured.running.min(slots) } else { slots };
        let first = self.open.first().map(|first| first.at).filter(|_| self.backlog.is_empty());
        let steps = (1..=LOOKS).map(|look| self.begins + LOOKED_AT * f64::from(look) / f64::from(LOOKS));
        for at in first.into_iter().chain(steps) {
            let arrived: f64 = self.open.iter().map(|group| group.arrived_by(at)).sum();
            let held = self.waiting + taken + arrived - (at - self.begins) * ends_a_second;
            // Requests are whole: one that has arrived is there, whatever the rest of a division is.
            levels.reach(at, whole_part(held + LEAST_WAIT));
        }
        levels
    }

    /// The ready pods as the activator knows them now.
    pub(crate) fn pods(&self) -> u32 {
        self.capacity.present().pods
    }

    pub(crate) fn measured(&self) -> &MeasuredSecond {
        &self.measured
    }

    /// The open second ends, and is measured.
    pub(crate) fn close_second(&mut self, tally: &mut ServiceTally) {
        let ends = self.begins + 1.0;
        let capacity = self.capacity.close_second(ends);
        let arrived = self.take_in(tally);
        let beginnings = self.begin_requests(&capacity, tally);
        self.count_those_left(&capacity, tally);
        let waits_of_chance = self.wait_by_chance(&capacity, beginnings.prompt, tally);
        self.refuse(ends, tally);
        let left: f64 = self.backlog.iter().map(|left| self.waited_in_second(&left.group, ends)).sum();
        let (running, waiting) = (self.running.in_second(0), beginnings.waited + left + waits_of_chance);
        let oldest = self.backlog.front().map_or(0.0, |oldest| ends - oldest.group.at);
        let in_pods = if self.waits_in_pods(&capacity) { waiting } else { 0.0 };
        self.measured = MeasuredSecond {
            running: running + in_pods,
            waiting: waiting - in_pods,
            arrived,
            queued: if in_pods > 0.0 { 0 } else { whole_part(self.waiting) },
            oldest_wait: if in_pods > 0.0 { Duration::ZERO } else { span_of(oldest) },
            pods: self.capacity.present().pods,
        };
        tally.add_idle(span_of(capacity.pods * capacity.share_idle(running + in_pods)));
        self.running.close_second();
    }

    /// What arrived in the open second joins the backlog.
    fn take_in(&mut self, tally: &mut ServiceTally) -> u32 {
        let mut arrived = 0_u32;
        for group in self.open.drain(..) {
            arrived = arrived.saturating_add(group.requests);
            self.waiting += f64::from(group.requests);
            self.backlog.push_back(WaitingGroup { group, is_counted: false });
        }
        tally.requests += u64::from(arrived);
        arrived
    }

    /// The new ones among those that have not begun are counted as waiting. They stand behind all others.
    fn count_those_left(&mut self, capacity: &SecondCapacity, tally: &mut ServiceTally) {
        let mut place = self.backlog.len();
        while let Some(before) = place.checked_sub(1).filter(|&before| !self.backlog[before].is_counted) {
            place = before;
            self.backlog[place].is_counted = true;
            let group = self.backlog[place].group;
            self.count_wait(cause_of_wait(group.at, capacity), group.requests, tally);
        }
    }

    /// Even where slots are free on average, some requests find none: as many as Erlang's formula says, for a
    /// time that is exponential. Returns how many wait so, on average over the second.
    fn wait_by_chance(&mut self, capacity: &SecondCapacity, prompt: u32, tally: &mut ServiceTally) -> f64 {
        let slots = capacity.slots;
        // By the rate, where that is known: the number in one second is random, and the formula knows that.
        let rate = self.arrivals.rate(self.begins);
        let offered = rate.map_or(self.running.in_second(0), |rate| rate * self.profile.mean());
        let servers = whole_part(slots + 0.5);
        // Where all slots are taken the backlog says how long requests wait.
        if prompt == 0 || !slots.is_finite() || offered >= 0.99 * f64::from(servers) {
            note_waits(Duration::ZERO, prompt, tally);
            return 0.0;
        }
        let chance = chance_of_waiting(servers, offered);
        let exact = f64::from(prompt) * chance + self.rest_of_waits;
        let waiting = whole_part(exact).min(prompt);
        self.rest_of_waits = exact - f64::from(waiting);
        note_waits(Duration::ZERO, prompt - waiting, tally);
        let free = f64::from(servers) - offered;
        let spread = f64::midpoint(1.0, self.profile.variation() * self.profile.variation());
        let mean = self.profile.mean() * spread / free;
        let drawn = waiting.min(WAITS_DRAWN);
        for place in 0..drawn {
            let others = waiting / drawn + u32::from(place < waiting % drawn);
            let wait = self.waits.exponential(mean);
            self.note_end_of_wait(WaitCause::NoFreeSlot, wait, others, tally);
        }
        self.count_wait(WaitCause::NoFreeSlot, waiting, tally);
        chance * offered / free * spread
    }

    /// Refuses what waited for longer than it may, and what finds the queue full.
    fn refuse(&mut self, ends: f64, tally: &mut ServiceTally) {
        let limit = self.limit.unwrap_or(f64::INFINITY);
        while let Some(oldest) = self.backlog.front().filter(|oldest| oldest.group.at + limit <= ends) {
            let requests = oldest.group.requests;
            tally.refused += u64::from(requests);
            self.take_from_backlog(requests);
        }
        while self.waiting > QUEUE_MAX {
            let surplus = whole_part(libm::ceil(self.waiting - QUEUE_MAX));
            let Some(newest) = self.backlog.back_mut() else { return };
            let refused = newest.group.requests.min(surplus);
            newest.group.requests -= refused;
            self.waiting -= f64::from(refused);
            tally.refused += u64::from(refused);
            if newest.group.requests == 0 {
                self.backlog.pop_back();
            }
        }
    }

    /// The part of the open second in which the requests of a group have waited, summed, until then.
    fn waited_in_second(&self, group: &ArrivalGroup, until: f64) -> f64 {
        f64::from(group.requests) * (until - group.at.max(self.begins)).max(0.0)
    }

    /// Whether it is the cores that are lacking: then requests wait in their pods.
    fn waits_in_pods(&self, capacity: &SecondCapacity) -> bool {
        self.cores.is_some() && capacity.ready_from.is_some()
    }

    fn count_wait(&self, cause: WaitCause, requests: u32, tally: &mut ServiceTally) {
        if !self.is_slowness(cause) {
            tally.note_waits(cause, requests);
        }
    }

    fn note_end_of_wait(&self, cause: WaitCause, waited: f64, requests: u32, tally: &mut ServiceTally) {
        let waited = if self.is_slowness(cause) { Duration::ZERO } else { span_of(waited) };
        note_waits(waited, requests, tally);
    }

    /// A request that shares cores with others is slow, and does not wait.
    fn is_slowness(&self, cause: WaitCause) -> bool {
        self.cores.is_some() && cause == WaitCause::NoFreeSlot
    }
}

fn note_waits(waited: Duration, requests: u32, tally: &mut ServiceTally) {
    tally.waits.add_many(waited, u64::from(requests));
}

fn cause_of_wait(arrived: f64, capacity: &SecondCapacity) -> WaitCause {
    if capacity.ready_from.is_none_or(|ready_from| ready_from > arrived) {
        WaitCause::NoReadyPod
    } else {
        WaitCause::NoFreeSlot
    }
}
