//! A minute of a forecast: what a revision for which prediction is asked costs beside its decisions.

use std::hint::black_box;
use std::time::Duration;

use forecasting::{
    BudgetShare, ChoiceTimes, EndedMinute, FloorCap, ForecastPace, ForecastSettings, Forecaster, LookAhead,
    MinuteDemand, PastDemand, PodCapacity, ZoneOffsets,
};
use vocabulary::{Percentage, PodCount, Timestamp};

const MINUTES_OF_DAY: u64 = 24 * 60;
/// A minute far enough from the beginning of 1970 to have fifteen days before it.
const FIRST: u64 = 20_000 * MINUTES_OF_DAY;
/// As many minutes have ended before the first repetition: rules were chosen twice.
const SETTLED: u64 = 2 * 60;
/// A pod takes four minutes to start, so the greatest of five is looked for.
const LOOK_AHEAD_MINUTES: u32 = 4;

/// The same demand on each day, known for ever.
#[derive(Debug)]
struct DailyWave(Vec<MinuteDemand>);

impl PastDemand for DailyWave {
    fn minute(&self, minute: u64) -> Option<MinuteDemand> {
        self.0.get(usize::try_from(minute % MINUTES_OF_DAY).ok()?).copied()
    }
}

pub(crate) struct Minutes {
    forecaster: Forecaster,
    past: DailyWave,
    zone: ZoneOffsets,
    minute: u64,
}

impl Minutes {
    pub(crate) fn new() -> Self {
        let settings = ForecastSettings {
            capacity: PodCapacity::new(7.0, 10.0).expect("both are more than zero"),
            budget: BudgetShare::of(Percentage::clamped(10.0)),
            cap: FloorCap::USUAL,
            choice: ChoiceTimes::EachHour,
            pace: ForecastPace::USUAL,
        };
        // Up and down again, twelve times a day, by steps of one request in flight.
        let demand = |minute: u32| f64::from(5 + (minute % 120).min(120 - minute % 120));
        let demand = |minute| MinuteDemand { mean: demand(minute), maximum: demand(minute) + 1.0 };
        let mut minutes = Self {
            forecaster: Forecaster::new(settings, Timestamp::ZERO),
            past: DailyWave((0..1440).map(demand).collect()),
            zone: ZoneOffsets::default(),
            minute: FIRST,
        };
        (0..SETTLED).for_each(|_| minutes.once());
        minutes
    }

    /// A minute ends, and the next one has a floor.
    pub(crate) fn once(&mut self) {
        let reactive = PodCount::new(5);
        self.forecaster.end_minute(&EndedMinute {
            minute: self.minute,
            reactive,
            past: &self.past,
            zone: &self.zone,
            look_ahead: LookAhead::of_minutes(LOOK_AHEAD_MINUTES),
        });
        self.minute += 1;
        let now = Timestamp::ZERO + Duration::from_mins(self.minute - FIRST);
        black_box(self.forecaster.decide(now, self.minute, reactive));
    }
}
