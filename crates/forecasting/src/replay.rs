//! Each rule played against the demand that came: how much would have been late, and what would it have cost.
//!
//! A pod that is asked for in one minute is ready a look-ahead later, and one that is not asked for any more
//! goes at once. So the pods that are ready are the fewest of those asked for since then. The count of class
//! kpa is played in the same way, by the rule that asks for nothing, and so is the forecast as it was in
//! force.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use crate::look_ahead::LOOK_AHEAD_MINUTES_MAX;
use crate::record::{HOUR_SUMS_MAX, HourRecord, amount_of};
use crate::rule::{RULES, RuleNumber};
use crate::short_number::ShortNumber;

/// The rules, and after them the forecast as it was in force.
pub(crate) const PLAYERS: usize = RULES + 1;
pub(crate) const IN_FORCE: usize = RULES;
/// Sums are kept for seven days.
const HOURS_KEPT: u64 = 7 * 24;
/// Room is made for so many hours at a time.
const HOURS_GROWN: usize = 24;
/// Sums are in seconds, of pods and of requests.
const SECONDS: u32 = 60;
/// So many minutes are remembered in any case, for a look-ahead that grows.
const RECENT_MIN: usize = 16;

/// A minute that has ended, as it was and as each player had it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlayedMinute {
    /// The hour since 1970 by local time.
    pub(crate) hour: u64,
    /// The mean demand; `None` if it was not observed.
    pub(crate) demand: Option<f64>,
    /// What class kpa asked for at its end.
    pub(crate) reactive: PodCount,
    /// The floor of each player.
    pub(crate) floors: [PodCount; PLAYERS],
    /// The most that a pod serves.
    pub(crate) total_per_pod: f64,
    /// The number of minutes until what is asked for is ready.
    pub(crate) look_ahead: usize,
}

/// What each player would have done in the last seven days, in whole hours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplayTotals {
    /// Request-seconds that were asked for.
    pub(crate) demand: f64,
    /// Pod-seconds that class kpa asked for.
    pub(crate) reactive: u64,
    /// Request-seconds that no ready pod took.
    pub(crate) late: [f64; PLAYERS],
    /// Pod-seconds beyond those of class kpa.
    pub(crate) extra: [u64; PLAYERS],
    /// Those of the forecast in force that the demand needed by the time when they were ready.
    pub(crate) used: u64,
}

/// The sums of an hour that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct HourSums {
    hour: u64,
    demand: ShortNumber,
    reactive: u32,
    late: [ShortNumber; PLAYERS],
    extra: [u32; PLAYERS],
    used: u32,
}

/// A minute whose pods may not be ready yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RecentMinute {
    wants: [PodCount; PLAYERS],
    demand: Option<f64>,
    reactive: PodCount,
}

/// What each player would have done, by hours of local time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RuleReplay {
    /// The last minutes, the latest last.
    recent: VecDeque<RecentMinute>,
    /// Copies share them until the next hour ends.
    ended: Arc<VecDeque<HourSums>>,
    open: OpenHour,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OpenHour {
    hour: u64,
    sums: ReplayTotals,
}

impl RuleReplay {
    /// Plays a minute. Minutes follow one another; after a gap comes [`Self::leave_gap`].
    pub(crate) fn play(&mut self, minute: &PlayedMinute) {
        self.open_hour(minute.hour);
        self.remember(minute);
        let Some(demand) = minute.demand else { return };
        let ready = self.ready(minute.look_ahead);
        let used = self.used_pods(minute);
        let sums = &mut self.open.sums;
        sums.used += pod_seconds(used);
        sums.demand += demand * f64::from(SECONDS);
        sums.reactive += pod_seconds(minute.reactive.value());
        for (player, ready) in ready.iter().enumerate() {
            let capacity = minute.total_per_pod * ready.as_f64();
            sums.late[player] += (demand - capacity).max(0.0) * f64::from(SECONDS);
            let extra = minute.floors[player].value().saturating_sub(minute.reactive.value());
            sums.extra[player] += pod_seconds(extra);
        }
    }

    /// Minutes were left out: nothing is known of what was asked for in them.
    pub(crate) fn leave_gap(&mut self) {
        self.recent.clear();
    }

    /// Ends the hour that is open, if it is not this one.
    pub(crate) fn open_hour(&mut self, hour: u64) {
        if self.open.hour == hour {
            return;
        }
        let oldest = hour.saturating_sub(HOURS_KEPT);
        let kept = Arc::make_mut(&mut self.ended);
        kept.retain(|sums| (oldest..=hour).contains(&sums.hour));
        let ended = std::mem::replace(&mut self.open, OpenHour { hour, sums: ReplayTotals::default() });
        if ended.hour >= oldest && ended.sums != ReplayTotals::default() {
            // A clock that is put back again and again ends the same hours more than once.
            while kept.len() >= HOUR_SUMS_MAX {
                kept.pop_front();
            }
            if kept.len() == kept.capacity() {
                kept.reserve_exact(HOURS_GROWN);
            }
            kept.push_back(ended.into_sums());
        }
    }

    /// The sums of the hours that have ended.
    pub(crate) fn totals(&self) -> ReplayTotals {
        let mut totals = ReplayTotals::default();
        for hour in self.ended.iter() {
            totals.demand += hour.demand.value();
            totals.reactive += u64::from(hour.reactive);
            totals.used += u64::from(hour.used);
            for player in 0..PLAYERS {
                totals.late[player] += hour.late[player].value();
                totals.extra[player] += u64::from(hour.extra[player]);
            }
        }
        totals
    }

    /// The hours that have ended, as they are written down.
    pub(crate) fn hours(&self) -> Vec<HourRecord> {
        self.ended.iter().map(HourSums::record).collect()
    }

    /// The hour that runs, as it is written down; `None` before the first minute.
    pub(crate) fn open(&self) -> Option<HourRecord> {
        (self.open.sums != ReplayTotals::default()).then(|| self.open.record())
    }

    /// Goes on from hours that were written down. Those that no hour can have are left out.
    pub(crate) fn restore(&mut self, hours: &[HourRecord], open: Option<&HourRecord>) {
        let read = hours.iter().filter_map(OpenHour::read).map(OpenHour::into_sums);
        let mut ended: VecDeque<HourSums> = read.collect();
        while ended.len() > HOUR_SUMS_MAX {
            ended.pop_front();
        }
        self.recent.clear();
        self.ended = Arc::new(ended);
        self.open = open.and_then(OpenHour::read).unwrap_or_default();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<RecentMinute>() + self.ended.capacity() * size_of::<HourSums>()
    }

    fn remember(&mut self, minute: &PlayedMinute) {
        let kept = minute.look_ahead.clamp(RECENT_MIN - 1, LOOK_AHEAD_MINUTES_MAX);
        while self.recent.len() > kept {
            self.recent.pop_front();
        }
        let wants = minute.floors.map(|floor| floor.max(minute.reactive));
        self.recent.push_back(RecentMinute { wants, demand: minute.demand, reactive: minute.reactive });
    }

    /// The pods of each player that are ready: the fewest of those asked for within the look-ahead.
    fn ready(&self, look_ahead: usize) -> [PodCount; PLAYERS] {
        let mut ready = [PodCount::MAX; PLAYERS];
        for minute in self.recent.iter().rev().take(look_ahead + 1) {
            for (ready, want) in ready.iter_mut().zip(&minute.wants) {
                *ready = (*want).min(*ready);
            }
        }
        ready
    }

    /// The extra pods of the forecast in force, a look-ahead ago, that the demand since then needed.
    fn used_pods(&self, latest: &PlayedMinute) -> u32 {
        let since = || self.recent.iter().rev().take(latest.look_ahead + 1);
        let Some(paid) = since().nth(latest.look_ahead) else { return 0 };
        let greatest = since().filter_map(|minute| minute.demand).fold(0.0, f64::max);
        let needed = PodCount::ceil_from(greatest / latest.total_per_pod);
        paid.wants[IN_FORCE].min(needed).value().saturating_sub(paid.reactive.value())
    }
}

impl HourSums {
    fn record(&self) -> HourRecord {
        HourRecord {
            hour: self.hour,
            demand: self.demand.value().to_bits(),
            reactive: self.reactive.into(),
            used: self.used.into(),
            late: self.late.iter().map(|late| late.value().to_bits()).collect(),
            extra: self.extra.iter().map(|extra| u64::from(*extra)).collect(),
        }
    }
}

impl OpenHour {
    fn record(&self) -> HourRecord {
        let Self { hour, sums } = self;
        HourRecord {
            hour: *hour,
            demand: sums.demand.to_bits(),
            reactive: sums.reactive,
            used: sums.used,
            late: sums.late.iter().map(|late| late.to_bits()).collect(),
            extra: sums.extra.to_vec(),
        }
    }

    /// The hour of a record; `None` where it has not as many players as there are.
    fn read(record: &HourRecord) -> Option<Self> {
        let late: [u64; PLAYERS] = record.late.as_slice().try_into().ok()?;
        // So many pod-seconds are none that an hour can have, and their sum must not overflow.
        let seconds = |seconds: u64| seconds.min(u32::MAX.into());
        let extra: [u64; PLAYERS] = record.extra.as_slice().try_into().ok()?;
        let sums = ReplayTotals {
            demand: amount_of(record.demand),
            reactive: seconds(record.reactive),
            late: late.map(amount_of),
            extra: extra.map(seconds),
            used: seconds(record.used),
        };
        Some(Self { hour: record.hour, sums })
    }

    fn into_sums(self) -> HourSums {
        let Self { hour, sums } = self;
        HourSums {
            hour,
            demand: ShortNumber::of(sums.demand),
            reactive: saturated(sums.reactive),
            late: sums.late.map(ShortNumber::of),
            extra: sums.extra.map(saturated),
            used: saturated(sums.used),
        }
    }
}

impl ReplayTotals {
    /// Request-seconds that were late with class kpa.
    pub(crate) fn late_without(&self) -> f64 {
        self.late[RuleNumber::NONE.place()]
    }
}

fn pod_seconds(pods: u32) -> u64 {
    u64::from(pods) * u64::from(SECONDS)
}

fn saturated(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(hour: u64, demand: f64, reactive: u32) -> PlayedMinute {
        PlayedMinute {
            hour,
            demand: Some(demand),
            reactive: PodCount::new(reactive),
            floors: [PodCount::ZERO; PLAYERS],
            total_per_pod: 10.0,
            look_ahead: 2,
        }
    }

    #[test]
    fn f8_a_pod_is_ready_once_it_was_asked_for_throughout_the_look_ahead() {
        let mut replay = RuleReplay::default();
        let ready = [1, 1, 4, 4, 4].map(|want| {
            replay.play(&minute(0, 0.0, want));
            replay.ready(2)[RuleNumber::NONE.place()].value()
        });
        assert_eq!(ready, [1, 1, 1, 1, 4]);
    }

    #[test]
    fn a_floor_in_time_saves_what_was_late_and_costs_its_pods_until_class_kpa_follows() {
        let mut replay = RuleReplay::default();
        let kpa = RuleNumber::NONE.place();
        for (demand, reactive, floor) in [(8.0, 1, 0), (8.0, 1, 3), (8.0, 1, 3), (28.0, 4, 3), (28.0, 4, 0)] {
            let mut minute = minute(0, demand, reactive);
            minute.floors[0] = PodCount::new(floor);
            minute.floors[IN_FORCE] = PodCount::new(floor);
            replay.play(&minute);
        }
        replay.open_hour(1);
        let totals = replay.totals();
        // Of 28 requests one pod took 10, in two minutes, without a forecast. With it three pods were ready.
        assert_eq!([totals.late[kpa], totals.late[0]], [2.0 * 18.0 * 60.0, 0.0]);
        assert_eq!([totals.extra[kpa], totals.extra[0], totals.reactive], [0, 2 * 2 * 60, 11 * 60]);
        assert_eq!(totals.used, 2 * 2 * 60, "each was needed a look-ahead later");
        assert_eq!(totals.demand, 80.0 * 60.0);
    }

    #[test]
    fn pods_that_demand_needed_by_the_time_they_were_ready_are_used() {
        let mut replay = RuleReplay::default();
        for demand in [8.0, 8.0, 8.0, 25.0] {
            let mut minute = minute(0, demand, 1);
            minute.floors[IN_FORCE] = PodCount::new(4);
            replay.play(&minute);
        }
        replay.open_hour(1);
        let totals = replay.totals();
        assert_eq!((totals.used, totals.extra[IN_FORCE]), (2 * 60, 4 * 3 * 60));
    }

    #[test]
    fn sums_are_those_of_seven_days_and_of_minutes_that_were_observed() {
        let mut replay = RuleReplay::default();
        for hour in 0..400 {
            replay.play(&minute(hour, 25.0, 2));
            replay.play(&PlayedMinute { demand: None, ..minute(hour, 0.0, 2) });
        }
        replay.open_hour(400);
        let totals = replay.totals();
        assert_eq!(totals.reactive, 7 * 24 * 2 * 60);
        assert!((totals.late_without() - 7.0 * 24.0 * 5.0 * 60.0).abs() < 1.0, "{}", totals.late_without());
        assert!(replay.heap_bytes() < 50_000, "{} bytes", replay.heap_bytes());
    }

    #[test]
    fn a_gap_forgets_what_was_asked_for_before() {
        let mut replay = RuleReplay::default();
        replay.play(&minute(0, 0.0, 1));
        replay.leave_gap();
        replay.play(&minute(0, 30.0, 4));
        replay.open_hour(1);
        assert_eq!(replay.totals().late_without(), 0.0);
    }
}
