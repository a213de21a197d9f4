//! Bounds of a pod count that a person sets for times of the week.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::PodCount;

const MINUTES_OF_DAY: u32 = 24 * 60;
const MINUTES_OF_WEEK: u32 = 7 * MINUTES_OF_DAY;

/// A minute of the week, counted from Monday 00:00, by local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeekMinute(u32);

impl WeekMinute {
    /// The minute of the week that is a minute since 1970, both by local time.
    pub fn of_local(minute: u64) -> Self {
        // The first day of 1970 was a Thursday.
        let since_monday = (minute % u64::from(MINUTES_OF_WEEK)) + 3 * u64::from(MINUTES_OF_DAY);
        let minute = since_monday % u64::from(MINUTES_OF_WEEK);
        Self(u32::try_from(minute).expect("a week has 10,080 minutes"))
    }

    /// The minute of a day, with 0 for Monday.
    pub fn of_day(day: u32, minute: u32) -> Self {
        Self((day % 7 * MINUTES_OF_DAY + minute) % MINUTES_OF_WEEK)
    }
}

/// Days of the week, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weekdays(u8);

impl Weekdays {
    /// All seven days of the week.
    pub const EVERY: Self = Self(0b111_1111);

    /// The days from the first to the last one, with 0 for Monday; Friday to Monday goes over the weekend.
    pub fn between(first: u32, last: u32) -> Self {
        let length = (last % 7 + 7 - first % 7) % 7;
        Self((0..=length).fold(0, |days, step| days | (1 << ((first + step) % 7))))
    }

    /// The days of both sets.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    fn days(self) -> impl Iterator<Item = u32> {
        (0..7).filter(move |day| self.0 & (1 << day) != 0)
    }
}

/// Bounds that hold from one minute of certain days to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleLine {
    /// The days on which the time begins.
    pub days: Weekdays,
    /// The minute of the day with which the time begins, 0 … 1,439.
    pub from: u32,
    /// The minute of the day before which the time ends, 0 … 1,440. One that is not after the first is of the
    /// next day.
    pub to: u32,
    /// The least number of pods.
    pub min: Option<PodCount>,
    /// The greatest number of pods.
    pub max: Option<PodCount>,
}

impl ScheduleLine {
    fn length(self) -> u32 {
        if self.to > self.from { self.to - self.from } else { self.to + MINUTES_OF_DAY - self.from }
    }

    fn starts(self) -> impl Iterator<Item = WeekMinute> {
        self.days.days().map(move |day| WeekMinute::of_day(day, self.from))
    }

    fn holds_at(self, minute: WeekMinute) -> bool {
        self.starts().any(|start| (minute.0 + MINUTES_OF_WEEK - start.0) % MINUTES_OF_WEEK < self.length())
    }
}

/// The bounds of all lines that hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledBounds {
    /// The greatest of the lines' least numbers of pods; zero without one.
    pub min: PodCount,
    /// The least of the lines' greatest numbers of pods.
    pub max: Option<PodCount>,
}

/// Two lines hold at the same time, and one asks for more pods than the other allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line {} asks for at least {min} pods while line {} allows at most {max}", .asking + 1, .allowing + 1)]
pub struct ScheduleContradiction {
    /// The place of the line with the least number of pods, from 0.
    pub asking: usize,
    /// The place of the line with the greatest number of pods, from 0.
    pub allowing: usize,
    /// The number of pods that the one asks for.
    pub min: PodCount,
    /// The number of pods that the other allows.
    pub max: PodCount,
}

/// Lines of bounds that never contradict each other. Several may hold at a time: the greatest of their least
/// numbers and the least of their greatest ones win.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountSchedule {
    lines: Vec<ScheduleLine>,
}

impl CountSchedule {
    /// Refuses lines that contradict each other.
    pub fn new(lines: Vec<ScheduleLine>) -> Result<Self, ScheduleContradiction> {
        // The lines that hold change where one begins, and of two that meet the later one begins within the
        // other.
        let mut starts = lines.iter().flat_map(|line| line.starts());
        let contradiction = starts.find_map(|start| contradiction_at(&lines, start));
        match contradiction {
            Some(contradiction) => Err(contradiction),
            None => Ok(Self { lines }),
        }
    }

    /// The bounds that hold in a minute.
    pub fn bounds_at(&self, minute: WeekMinute) -> ScheduledBounds {
        let holding = self.lines.iter().filter(|line| line.holds_at(minute));
        holding.fold(ScheduledBounds::default(), |bounds, line| ScheduledBounds {
            min: bounds.min.max(line.min.unwrap_or_default()),
            max: bounds.max.into_iter().chain(line.max).min(),
        })
    }

    /// The lines, as they were written.
    pub fn lines(&self) -> &[ScheduleLine] {
        &self.lines
    }
}

fn contradiction_at(lines: &[ScheduleLine], minute: WeekMinute) -> Option<ScheduleContradiction> {
    let holding = || lines.iter().enumerate().filter(move |(_, line)| line.holds_at(minute));
    let (asking, min) =
        holding().filter_map(|(at, line)| Some((at, line.min?))).max_by_key(|(_, min)| *min)?;
    let (allowing, max) =
        holding().filter_map(|(at, line)| Some((at, line.max?))).min_by_key(|(_, max)| *max)?;
    (min > max).then_some(ScheduleContradiction { asking, allowing, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONDAY_TO_FRIDAY: [u32; 2] = [0, 4];

    fn line([first, last]: [u32; 2], [from, to]: [u32; 2], [min, max]: [u32; 2]) -> ScheduleLine {
        ScheduleLine {
            days: Weekdays::between(first, last),
            from: from * 60,
            to: to * 60,
            min: Some(PodCount::new(min)),
            max: Some(PodCount::new(max)),
        }
    }

    #[track_caller]
    fn check(schedule: &CountSchedule, [day, hour]: [u32; 2], min: u32, max: Option<u32>) {
        let bounds = schedule.bounds_at(WeekMinute::of_day(day, hour * 60));
        assert_eq!(bounds, ScheduledBounds { min: PodCount::new(min), max: max.map(PodCount::new) });
    }

    #[test]
    fn the_narrowest_of_the_lines_that_hold_wins() {
        let lines = vec![line(MONDAY_TO_FRIDAY, [7, 10], [5, 20]), line([1, 1], [9, 12], [8, 30])];
        let schedule = CountSchedule::new(lines).expect("8 is not more than 20");
        check(&schedule, [0, 6], 0, None);
        check(&schedule, [0, 7], 5, Some(20));
        check(&schedule, [1, 9], 8, Some(20));
        check(&schedule, [1, 10], 8, Some(30));
        check(&schedule, [1, 12], 0, None);
        check(&schedule, [5, 8], 0, None);
    }

    #[test]
    fn a_time_past_midnight_belongs_to_the_day_on_which_it_begins() {
        let schedule = CountSchedule::new(vec![line([6, 6], [22, 6], [2, 4])]).expect("one line");
        check(&schedule, [6, 21], 0, None);
        check(&schedule, [6, 23], 2, Some(4));
        check(&schedule, [0, 5], 2, Some(4));
        check(&schedule, [0, 6], 0, None);
        check(&schedule, [6, 5], 0, None);
    }

    #[test]
    fn lines_that_contradict_each_other_are_refused() {
        let lines = vec![line(MONDAY_TO_FRIDAY, [7, 10], [5, 6]), line([4, 4], [9, 12], [8, 30])];
        let refusal = CountSchedule::new(lines).expect_err("8 is more than 6");
        assert_eq!(refusal.to_string(), "line 2 asks for at least 8 pods while line 1 allows at most 6");
        assert!(
            CountSchedule::new(vec![line([4, 0], [23, 2], [8, 7])]).is_err(),
            "a line may contradict itself"
        );
    }

    #[test]
    fn days_of_the_week_go_over_its_end() {
        assert_eq!(Weekdays::between(4, 0), Weekdays(0b111_0001));
        assert_eq!(Weekdays::between(2, 2).and(Weekdays::between(3, 3)), Weekdays::between(2, 3));
        assert_eq!(Weekdays::between(0, 6), Weekdays::EVERY);
        // 2026-11-27, a Friday, 03:20 local time.
        assert_eq!(WeekMinute::of_local(20_784 * 1440 + 200), WeekMinute::of_day(4, 200));
    }
}
