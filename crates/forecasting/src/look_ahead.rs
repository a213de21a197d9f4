//! How early a pod has to be asked for: as long as nearly all starts of this workload took.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::ScaleUpForward;

use crate::quantile::Quantile;

/// The starts that are remembered.
const STARTS_KEPT: usize = 50;
/// Fewer starts than this tell nothing of nearly all.
const STARTS_MIN: usize = 5;
const NEARLY_ALL: Quantile = Quantile::percent(95);
/// The most minutes that a look-ahead has: an hour, and the margin.
pub(crate) const LOOK_AHEAD_MINUTES_MAX: usize = 61;

/// How long the minutes of a forecast are. Tests on real processes have shorter ones, and with them shorter
/// hours and days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastPace {
    minute: Duration,
    /// What is added to the time that starts took.
    margin: Duration,
    /// The time that a start takes as long as too few were seen.
    unknown_start: Duration,
    /// How many whole minutes have begun since, when the end of a minute is told.
    told_late: u32,
}

/// How long before demand comes a pod for it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookAhead {
    /// The time that a start takes, with a margin.
    pub time: Duration,
    /// The minutes of this time, rounded up.
    minutes: usize,
}

/// The times that the last starts of a workload took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTimes {
    recent: VecDeque<Duration>,
}

impl ForecastPace {
    /// Minutes of sixty seconds, as clocks have them.
    pub const USUAL: Self = Self {
        minute: Duration::from_secs(60),
        margin: Duration::from_secs(10),
        unknown_start: Duration::from_secs(60),
        told_late: 0,
    };

    /// The pace with minutes of another length, at least a second. The other times are shortened with them,
    /// the margin to tenths of a second.
    pub fn with_minute(minute: Duration) -> Self {
        let minute = minute.max(Duration::from_secs(1));
        let tenth = Duration::from_millis(100);
        let tenths = (minute / 6).as_nanos().div_ceil(tenth.as_nanos());
        let margin = tenth * u32::try_from(tenths).unwrap_or(u32::MAX);
        Self { minute, margin, unknown_start: minute, told_late: 0 }
    }

    /// The same where a minute is told of so long after its end. What is asked for then is as much later, so
    /// that demand has to be foreseen as much earlier.
    #[must_use]
    pub fn told_after(self, delay: Duration) -> Self {
        let minutes = delay.as_nanos() / self.minute.as_nanos();
        Self { told_late: u32::try_from(minutes).unwrap_or(u32::MAX), ..self }
    }

    /// How many whole minutes have begun since, when the end of a minute is told.
    pub const fn told_late(self) -> u32 {
        self.told_late
    }

    /// The length of a minute of the forecast.
    pub const fn minute(self) -> Duration {
        self.minute
    }

    /// The number of the minute that a moment after the beginning of 1970 lies in.
    pub fn minute_at(self, since_epoch: Duration) -> u64 {
        u64::try_from(since_epoch.as_nanos() / self.minute.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl StartTimes {
    /// Notes the time from "a pod was asked for" to "it is ready".
    pub fn note(&mut self, took: Duration) {
        if self.recent.len() == STARTS_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(took);
    }

    /// The milliseconds that the remembered starts took, the oldest first.
    pub fn millis(&self) -> Vec<u64> {
        self.recent.iter().map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)).collect()
    }

    /// The time that nearly all of the last starts took; `None` while too few were seen.
    pub fn usual(&self) -> Option<Duration> {
        if self.recent.len() < STARTS_MIN {
            return None;
        }
        let mut sorted: Vec<Duration> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        NEARLY_ALL.of(&sorted)
    }

    /// The look-ahead that follows from these starts, or from what a person set.
    pub fn look_ahead(&self, forward: ScaleUpForward, pace: ForecastPace) -> LookAhead {
        let start = match forward {
            ScaleUpForward::Measured => self.usual().unwrap_or(pace.unknown_start),
            ScaleUpForward::Fixed(start) => start,
        };
        let late = pace.minute.saturating_mul(pace.told_late);
        LookAhead::new(start.saturating_add(pace.margin).saturating_add(late), pace)
    }
}

impl LookAhead {
    fn new(time: Duration, pace: ForecastPace) -> Self {
        let minutes = usize::try_from(time.as_nanos().div_ceil(pace.minute.as_nanos()));
        Self {
            time,
            minutes: minutes.map_or(LOOK_AHEAD_MINUTES_MAX, |count| count.min(LOOK_AHEAD_MINUTES_MAX)),
        }
    }

    /// A look-ahead of whole minutes of sixty seconds, at most an hour and a minute.
    pub fn of_minutes(minutes: u32) -> Self {
        Self::new(Duration::from_secs(60) * minutes, ForecastPace::USUAL)
    }

    /// Whole minutes, rounded up: how many minutes pass until what is asked for now is ready.
    pub const fn minutes(self) -> usize {
        self.minutes
    }

    /// The number of minutes, with the one that begins now, whose demand decides what is asked for now.
    pub const fn horizon(self) -> usize {
        self.minutes + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(starts: &[u64], minutes: usize) {
        let mut times = StartTimes::default();
        for start in starts {
            times.note(Duration::from_secs(*start));
        }
        let look_ahead = times.look_ahead(ScaleUpForward::Measured, ForecastPace::USUAL);
        assert_eq!((look_ahead.minutes(), look_ahead.horizon()), (minutes, minutes + 1));
    }

    #[test]
    fn a_start_takes_a_minute_until_five_were_seen() {
        check(&[], 2);
        check(&[1, 1, 1, 1], 2);
        check(&[1, 1, 1, 1, 1], 1);
        check(&[50; 5], 1);
        check(&[51; 5], 2);
        check(&[110; 5], 2);
        check(&[111; 5], 3);
    }

    #[test]
    fn nearly_all_of_the_last_fifty_starts_decide() {
        let mut starts = vec![5; 50];
        starts[48] = 300;
        starts[49] = 300;
        check(&starts, 1);
        starts[47] = 300;
        check(&starts, 6);
        starts.extend([5; 50]);
        check(&starts, 1);
    }

    #[test]
    fn a_person_may_say_how_long_a_start_takes() {
        let times = StartTimes::default();
        let look_ahead = |seconds| {
            let forward = ScaleUpForward::Fixed(Duration::from_secs(seconds));
            times.look_ahead(forward, ForecastPace::USUAL)
        };
        assert_eq!(look_ahead(120).time, Duration::from_secs(130));
        assert_eq!(look_ahead(120).minutes(), 3);
        assert_eq!(look_ahead(3600).minutes(), LOOK_AHEAD_MINUTES_MAX);
        assert_eq!(look_ahead(100_000).minutes(), LOOK_AHEAD_MINUTES_MAX);
    }

    #[test]
    fn a_faster_pace_shortens_every_time() {
        let pace = ForecastPace::with_minute(Duration::from_secs(1));
        assert_eq!(pace.margin, Duration::from_millis(200));
        assert_eq!(pace.unknown_start, Duration::from_secs(1));
        assert_eq!(ForecastPace::with_minute(Duration::from_secs(60)), ForecastPace::USUAL);
        assert_eq!(StartTimes::default().look_ahead(ScaleUpForward::Measured, pace).minutes(), 2);
        assert_eq!(pace.minute_at(Duration::from_millis(7999)), 7);
        let told_after = |pace: ForecastPace| pace.told_after(Duration::from_secs(4));
        assert_eq!(StartTimes::default().look_ahead(ScaleUpForward::Measured, told_after(pace)).minutes(), 6);
        assert_eq!(told_after(ForecastPace::USUAL), ForecastPace::USUAL);
    }
}
