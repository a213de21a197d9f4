//! The demand of fifteen days by the minute, for a forecast: the mean and the maximum of each minute, a byte
//! each.
//!
//! Rules of a forecast read the values of the bytes ([`DemandCode`]).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use forecasting::{DemandMinutes, MinuteDemand, PastDemand};
use serde::{Deserialize, Serialize};
use settings::DemandMetric;
use vocabulary::DemandCode;

/// The minutes of a day, whose days are those of the axis.
const MINUTES: u64 = 24 * 60;
/// Two weeks, and the day that runs.
const DAYS_KEPT: u64 = 15;
/// The byte of a minute that was not observed.
const MISSING: u8 = DemandCode::MISSING.byte();

/// The minutes of one day: the mean, then the maximum.
type DayBytes = [[u8; 2]; 24 * 60];

/// The demand of a metric by the minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemandDays {
    metric: DemandMetric,
    bin: DemandBin,
    days: VecDeque<DemandDay>,
    /// What processors were used in the minute that has not ended; nothing where they are no demand.
    open_cpu: OpenCpuMinute,
}

/// The use of processors in the seconds of a minute in which it was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct OpenCpuMinute {
    seconds: f64,
    /// The sum of cores, each times its seconds.
    sum: f64,
    maximum: f64,
}

/// How long the minutes are that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DemandBin {
    /// A minute of the wall clock.
    Minute,
    /// A second: for tests whose forecast has minutes of a second.
    Second,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct DemandDay {
    day: u64,
    /// Copies share each day that no minute is added to.
    #[serde(
        serialize_with = "super::long_array::serialize",
        deserialize_with = "super::long_array::deserialize_shared"
    )]
    minutes: Arc<DayBytes>,
}

impl DemandDays {
    /// No minutes yet, of this metric and this length.
    pub(super) fn new(metric: impl Into<DemandMetric>, bin: DemandBin) -> Self {
        Self { metric: metric.into(), bin, days: VecDeque::new(), open_cpu: OpenCpuMinute::default() }
    }

    /// The demand of a metric by minutes of the wall clock, as it was measured elsewhere. Of more days than
    /// are kept the newest count.
    pub fn of(metric: impl Into<DemandMetric>, minutes: &DemandMinutes) -> Self {
        let mut days = Self::new(metric, DemandBin::Minute);
        for (minute, demand) in minutes.observed() {
            days.note(minute, demand);
        }
        days
    }

    /// The same in parts of one day each, with the number of the day since that of 1970, the oldest first.
    pub fn by_day(&self) -> impl Iterator<Item = (u64, Self)> {
        let part = |day: &DemandDay| {
            let days = VecDeque::from([day.clone()]);
            (day.day, Self { days, open_cpu: OpenCpuMinute::default(), ..*self })
        };
        self.days.iter().map(part)
    }

    /// Whether the minutes are those of the wall clock, and not the seconds that tests take for minutes.
    pub fn is_by_minute(&self) -> bool {
        self.bin == DemandBin::Minute
    }

    /// How long the minutes are.
    pub(crate) fn bin(&self) -> DemandBin {
        self.bin
    }

    /// The metric whose demand is kept.
    pub fn metric(&self) -> DemandMetric {
        self.metric
    }

    /// For so many seconds of the minute that runs all pods together used so many cores.
    pub(super) fn note_cpu(&mut self, cores: f64, seconds: u32) {
        if self.metric == DemandMetric::Cpu && self.is_by_minute() {
            let seconds = f64::from(seconds);
            self.open_cpu.seconds += seconds;
            self.open_cpu.sum += cores * seconds;
            self.open_cpu.maximum = self.open_cpu.maximum.max(cores);
        }
    }

    /// This minute has ended, in which processors were used as was noted.
    pub(super) fn end_cpu_minute(&mut self, minute: u64) {
        let OpenCpuMinute { seconds, sum, maximum } = std::mem::take(&mut self.open_cpu);
        if seconds > 0.0 {
            self.note(minute, MinuteDemand { mean: sum / seconds, maximum });
        }
    }

    /// Notes the demand of a minute. Of a minute that comes twice, as when a clock is put back, the greater
    /// values stay.
    pub(super) fn note(&mut self, minute: u64, demand: MinuteDemand) {
        self.note_bytes(minute, [demand.mean, demand.maximum].map(|demand| DemandCode::of(demand).byte()));
    }

    fn note_bytes(&mut self, minute: u64, codes: [u8; 2]) {
        if codes.contains(&MISSING) {
            return;
        }
        let Some(day) = self.day_mut(minute / MINUTES) else { return };
        let bytes = &mut Arc::make_mut(&mut day.minutes)[place_in_day(minute)];
        for (known, byte) in bytes.iter_mut().zip(codes) {
            *known = if *known == MISSING { byte } else { byte.max(*known) };
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.days.capacity() * size_of::<DemandDay>() + self.days.len() * size_of::<DayBytes>()
    }

    /// Each day with its bytes, the oldest first.
    pub(super) fn days(&self) -> impl Iterator<Item = (u64, &DayBytes)> {
        self.days.iter().map(|day| (day.day, &*day.minutes))
    }

    /// Takes in minutes that were written later. Of a minute that both have the greater values stay.
    pub(super) fn extend(&mut self, later: &Self) {
        for (day, minutes) in later.days() {
            let first = day.saturating_mul(MINUTES);
            for (minute, bytes) in (first..).zip(minutes) {
                self.note_bytes(minute, *bytes);
            }
        }
    }

    /// The minutes of both, which may be of the same days and of days before these. Of a minute that both
    /// have the greater values stay.
    pub(super) fn merged_with(&self, other: &Self) -> Self {
        let days: BTreeSet<u64> = self.days().chain(other.days()).map(|(day, _)| day).collect();
        let mut merged = Self::new(self.metric, self.bin);
        for day in days {
            // Days are begun in their order, since none is put before another.
            merged.day_mut(day);
        }
        merged.extend(self);
        merged.extend(other);
        merged.open_cpu = self.open_cpu;
        merged
    }

    /// The first minute since 1970 whose demand is known.
    pub fn first_minute(&self) -> Option<u64> {
        self.days.iter().find_map(|day| {
            let place = day.minutes.iter().position(|bytes| *bytes != [MISSING; 2])?;
            Some(day.day.saturating_mul(MINUTES).saturating_add(u64::try_from(place).unwrap_or(0)))
        })
    }

    /// Takes in a day that was written elsewhere, from one of its minutes on; later days must follow. `None`
    /// where it cannot be one.
    pub(super) fn restore_day(&mut self, day: u64, from: u16, bytes: &[u8]) -> Option<()> {
        if self.days.back().is_some_and(|last| last.day >= day) || self.days.len() > 15 {
            return None;
        }
        let (pairs, rest) = bytes.as_chunks::<2>();
        let before = std::iter::repeat_n([MISSING; 2], usize::from(from));
        let minutes: Vec<[u8; 2]> = before.chain(pairs.iter().copied()).collect();
        let minutes: Box<DayBytes> = minutes.try_into().ok().filter(|_| rest.is_empty())?;
        self.days.push_back(DemandDay { day, minutes: Arc::from(minutes) });
        Some(())
    }

    /// The day of a minute that is to be noted; `None` for one that is too old.
    fn day_mut(&mut self, day: u64) -> Option<&mut DemandDay> {
        if self.days.back().is_none_or(|last| last.day < day) {
            while self.days.pop_front_if(|oldest| oldest.day + DAYS_KEPT < day).is_some() {}
            self.days.push_back(DemandDay { day, minutes: Arc::new([[MISSING; 2]; 24 * 60]) });
        }
        self.days.iter_mut().find(|known| known.day == day)
    }
}

impl PastDemand for DemandDays {
    fn minute(&self, minute: u64) -> Option<MinuteDemand> {
        let day = self.days.iter().find(|day| day.day == minute / MINUTES)?;
        let [mean, maximum] =
            day.minutes[place_in_day(minute)].map(|byte| DemandCode::from_byte(byte).demand());
        Some(MinuteDemand { mean: mean?, maximum: maximum? })
    }
}

fn place_in_day(minute: u64) -> usize {
    usize::try_from(minute % MINUTES).expect("a day has 1,440 minutes")
}

#[cfg(test)]
mod tests {
    use settings::Metric;

    use super::*;

    const MINUTE: u64 = 500 * MINUTES;

    fn demand(mean: f64, maximum: f64) -> MinuteDemand {
        MinuteDemand { mean, maximum }
    }

    fn value_of(byte: u8) -> f64 {
        DemandCode::from_byte(byte).demand().expect("a minute that was observed")
    }

    #[test]
    fn a_minute_that_comes_twice_keeps_the_greater_and_others_are_missing() {
        let mut days = DemandDays::new(Metric::Rps, DemandBin::Minute);
        days.note(MINUTE, demand(value_of(101), value_of(121)));
        days.note(MINUTE, demand(value_of(91), value_of(131)));
        assert_eq!(days.minute(MINUTE), Some(demand(value_of(101), value_of(131))));
        assert_eq!([days.minute(MINUTE + 1), days.minute(MINUTE - 1)], [None, None]);
        days.note(MINUTE + 1, demand(0.0, 0.0));
        assert_eq!(days.minute(MINUTE + 1), Some(demand(0.0, 0.0)));
    }

    #[test]
    fn days_of_two_are_merged_in_any_order() {
        let code = value_of(101);
        let of = |minutes: &[u64]| {
            let mut days = DemandDays::new(Metric::Rps, DemandBin::Minute);
            for minute in minutes {
                days.note(*minute, demand(code, code));
            }
            days
        };
        let (one, other) = (of(&[MINUTE, MINUTE + 2 * MINUTES]), of(&[MINUTE - MINUTES, MINUTE + MINUTES]));
        let all = of(&[MINUTE - MINUTES, MINUTE, MINUTE + MINUTES, MINUTE + 2 * MINUTES]);
        assert_eq!((one.merged_with(&other), other.merged_with(&one)), (all.clone(), all));
        let (old, new) = (of(&[MINUTE]), of(&[MINUTE + 40 * MINUTES]));
        assert_eq!(old.merged_with(&new), new);
    }

    #[test]
    fn a_minute_of_processors_is_that_of_the_seconds_in_which_their_use_was_known() {
        let mut days = DemandDays::new(DemandMetric::Cpu, DemandBin::Minute);
        let (low, high) = (value_of(101), value_of(121));
        days.note_cpu(low, 15);
        days.note_cpu(high, 15);
        days.end_cpu_minute(MINUTE);
        days.end_cpu_minute(MINUTE + 1);
        let known = days.minute(MINUTE).expect("half of it was known");
        assert_eq!(known.maximum, high);
        assert!((known.mean / f64::midpoint(low, high) - 1.0).abs() < 0.03, "{known:?}");
        assert_eq!(days.minute(MINUTE + 1), None, "nothing was known of it");
        let mut requests = DemandDays::new(Metric::Rps, DemandBin::Minute);
        requests.note_cpu(low, 15);
        assert_eq!(requests, DemandDays::new(Metric::Rps, DemandBin::Minute));
    }

    #[test]
    fn minutes_of_a_second_are_kept_as_others_are() {
        let mut days = DemandDays::new(Metric::Rps, DemandBin::Second);
        days.note(7, demand(value_of(101), value_of(121)));
        assert_eq!(days.minute(7), Some(demand(value_of(101), value_of(121))));
        assert_ne!(days, DemandDays { bin: DemandBin::Minute, ..days.clone() });
    }

    #[test]
    fn fifteen_days_and_the_present_one_are_kept() {
        let mut days = DemandDays::new(Metric::Concurrency, DemandBin::Minute);
        for day in 0..40 {
            days.note(MINUTE + day * MINUTES, demand(1.0, 1.0));
        }
        assert_eq!(days.days().count(), 16);
        assert!(days.minute(MINUTE + 24 * MINUTES).is_some() && days.minute(MINUTE + 23 * MINUTES).is_none());
        assert!(days.heap_bytes() < 50_000, "{} bytes", days.heap_bytes());
    }
}
