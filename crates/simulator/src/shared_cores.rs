//! How far has the work in a pod come whose cores are too few for it?
//!
//! Requests that run in one pod share its cores evenly: each has full speed while there are no more requests
//! than cores, and otherwise the speed of its part. The clock of a pod counts the work that a request has had
//! which was there all the time; so a request is done when the clock has gone on by its work, however many
//! others came and went meanwhile, and the request that is done next is the one with the least reading.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::Timestamp;

use crate::look_plan::LookPlan;
use crate::random::span_of;
use crate::world_event::SeatedRequest;

/// The least and the greatest number of cores that a pod may be said to have.
const CORES_LEAST: f64 = 0.01;
const CORES_MOST: f64 = 1_024.0;
/// A look that finds nothing done comes again later, and never at the same time.
const LEAST_STEP: Duration = Duration::from_nanos(1);

/// How many requests one pod works on at full speed; fractions as those of a limit of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreCount(f64);

impl CoreCount {
    /// Reads a number of cores; an error says what is wrong with the text and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let cores = text.trim().parse::<f64>().ok();
        let cores = cores.filter(|cores| (CORES_LEAST..=CORES_MOST).contains(cores)).map(Self);
        cores.ok_or_else(|| {
            format!(
                "is no number of cores; write a number from {CORES_LEAST} to {CORES_MOST}, such as 2 or 0.5"
            )
        })
    }

    /// The number of cores, above zero.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The part of full speed at which each of so many requests runs.
    pub(crate) fn speed_of_each(self, requests: usize) -> f64 {
        let requests = f64::from(u32::try_from(requests.max(1)).unwrap_or(u32::MAX));
        (self.0 / requests).min(1.0)
    }
}

/// The requests that run in one pod.
#[derive(Debug)]
pub(crate) struct SharedCores {
    cores: CoreCount,
    /// How much work a request has had by now that was there all the time.
    clock: Duration,
    read_at: Timestamp,
    /// By the reading of the clock at which each is done, and then by the order of their beginning.
    running: BTreeMap<WorkEnd, SeatedRequest>,
    begun: u64,
    look: LookPlan,
}

/// When the work for a request ends, by the clock of its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WorkEnd {
    reading: Duration,
    number: u64,
}

impl SharedCores {
    /// The cores of a pod that works on nothing.
    pub(crate) fn new(cores: CoreCount, now: Timestamp) -> Self {
        Self {
            cores,
            clock: Duration::ZERO,
            read_at: now,
            running: BTreeMap::new(),
            begun: 0,
            look: LookPlan::new(),
        }
    }

    pub(crate) fn begin(&mut self, seated: SeatedRequest, now: Timestamp) {
        self.advance(now);
        let reading = self.clock.saturating_add(seated.request.service_time);
        self.running.insert(WorkEnd { reading, number: self.begun }, seated);
        self.begun += 1;
    }

    /// A request whose work is done by now, and which runs no more.
    pub(crate) fn take_done(&mut self, now: Timestamp) -> Option<SeatedRequest> {
        self.advance(now);
        let first = self.running.first_entry()?;
        if first.key().reading > self.clock {
            return None;
        }
        Some(first.remove())
    }

    /// The requests that ran in the pod when it was killed.
    pub(crate) fn into_running(self) -> impl Iterator<Item = SeatedRequest> {
        self.running.into_values()
    }

    /// When to look for a request that is done, if no look before that is planned; the look is planned from
    /// now on. A request that begins later makes it too early, and then it is planned again.
    pub(crate) fn plan_look(&mut self, now: Timestamp) -> Option<Timestamp> {
        let (next, _) = self.running.first_key_value()?;
        let left = next.reading.saturating_sub(self.clock).as_secs_f64();
        let takes = span_of(left / self.speed_of_each()).max(LEAST_STEP);
        self.look.plan(now + takes)
    }

    /// A look comes. Returns whether it counts.
    pub(crate) fn look_comes(&mut self, now: Timestamp) -> bool {
        self.look.comes(now)
    }

    fn speed_of_each(&self) -> f64 {
        self.cores.speed_of_each(self.running.len())
    }

    fn advance(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.read_at).as_secs_f64();
        self.clock = self.clock.saturating_add(span_of(passed * self.speed_of_each()));
        self.read_at = self.read_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use throttling::DirectPick;
    use vocabulary::PodId;

    use super::*;
    use crate::world_event::{PodNumber, ServiceNumber, SimulatedRequest, SimulatedSeat};

    fn request(work: Duration) -> SeatedRequest {
        let request = SimulatedRequest {
            service: ServiceNumber(0),
            client: None,
            arrived: Timestamp::ZERO,
            service_time: work,
            queued_since: Timestamp::ZERO,
            waited: Duration::ZERO,
        };
        let pick = DirectPick { pod: PodId(0), address: PodNumber(1).address(), is_trial: false };
        SeatedRequest { request, seat: SimulatedSeat::Direct(pick) }
    }

    /// When each request ends that begins at the time before it and has the work behind it, in milliseconds.
    fn ends(cores: &str, requests: &[(u64, u64)]) -> Vec<u64> {
        let cores = CoreCount::parse(cores).expect("a number");
        let mut shared = SharedCores::new(cores, Timestamp::ZERO);
        let (mut begin, mut ends) = (requests.iter().peekable(), Vec::new());
        for millisecond in 0..20_000 {
            let now = Timestamp::from_millis(millisecond);
            while shared.take_done(now).is_some() {
                ends.push(millisecond);
            }
            while let Some((_, work)) = begin.next_if(|(at, _)| *at == millisecond) {
                shared.begin(request(Duration::from_millis(*work)), now);
            }
        }
        ends
    }

    #[test]
    fn requests_share_the_cores_evenly_and_are_slower_by_that_alone() {
        assert_eq!(ends("2", &[(0, 1_000), (0, 1_000)]), [1_000, 1_000]);
        assert_eq!(ends("1", &[(0, 1_000), (0, 1_000)]), [2_000, 2_000]);
        assert_eq!(ends("0.5", &[(0, 1_000)]), [2_000]);
        // From 500 ms on both run at half speed; the short one is done first, and the other one has the core.
        assert_eq!(ends("1", &[(0, 1_000), (500, 200)]), [900, 1_200]);
    }

    #[test]
    fn looks_find_every_end_to_the_nanosecond() {
        let mut shared = SharedCores::new(CoreCount::parse("1").expect("a number"), Timestamp::ZERO);
        for work in [7, 11, 13] {
            shared.begin(request(Duration::from_nanos(1_000_000 * work + 1)), Timestamp::ZERO);
        }
        let (mut now, mut ends, mut looks) = (Timestamp::ZERO, Vec::new(), 0);
        while let Some(at) = shared.plan_look(now) {
            (now, looks) = (at, looks + 1);
            assert!(shared.look_comes(now));
            while shared.take_done(now).is_some() {
                ends.push(now.as_nanos());
            }
        }
        // Three share until the first is done, then two, then one runs alone.
        for (found, expected) in ends.iter().zip([21_000_003, 29_000_003, 31_000_003]) {
            assert!(found.abs_diff(expected) < 10, "{ends:?}");
        }
        assert!(ends.len() == 3 && looks < 20, "{looks} looks");
    }

    #[test]
    fn a_number_of_cores_has_its_range() {
        assert_eq!(CoreCount::parse(" 0.5 ").map(CoreCount::value), Ok(0.5));
        for text in ["0", "-1", "two", "NaN", "inf", "2000", ""] {
            let error = CoreCount::parse(text).expect_err(text);
            assert!(error.contains("write a number from 0.01 to 1024"), "{text}: {error}");
        }
    }
}
