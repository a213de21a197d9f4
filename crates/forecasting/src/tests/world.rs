//! A revision in a made-up world of minutes: class kpa follows demand at the end of each minute, pods start
//! in the time of the look-ahead, and the forecaster is asked when each minute begins.

use vocabulary::{Percentage, PodCount, Timestamp};

use crate::{
    BudgetShare, ChoiceTimes, DemandMinutes, EndedMinute, FloorCap, ForecastPace, ForecastSettings,
    Forecaster, LookAhead, MinuteDemand, PodCapacity, ZoneOffsets,
};

/// A Monday, at midnight by UTC.
pub(super) const FIRST: u64 = 20_003 * DAY;
pub(super) const DAY: u64 = 24 * 60;
const TARGET: f64 = 7.0;
const TOTAL: f64 = 10.0;

/// What happened in one minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorldMinute {
    /// Request-seconds that no ready pod took, with the forecast and without.
    pub(super) late_with: f64,
    pub(super) late_without: f64,
    pub(super) extra: u32,
    pub(super) reactive: u32,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) forecaster: Forecaster,
    pub(super) zone: ZoneOffsets,
    pub(super) minutes: Vec<WorldMinute>,
    record: DemandMinutes,
    look_ahead: LookAhead,
    /// What was asked for with the forecast, and by class kpa alone, minute by minute.
    asked: Vec<[PodCount; 2]>,
    reactive: PodCount,
}

impl World {
    /// Pods take three minutes to start; a forecast may add a tenth.
    pub(super) fn new() -> Self {
        let settings = ForecastSettings {
            capacity: PodCapacity::new(TARGET, TOTAL).expect("both are more than zero"),
            budget: BudgetShare::of(Percentage::clamped(10.0)),
            cap: FloorCap::USUAL,
            choice: ChoiceTimes::EachHour,
            pace: ForecastPace::USUAL,
        };
        Self {
            forecaster: Forecaster::new(settings, Timestamp::ZERO),
            zone: ZoneOffsets::default(),
            minutes: Vec::new(),
            record: DemandMinutes::beginning_at(FIRST),
            look_ahead: LookAhead::of_minutes(4),
            asked: Vec::new(),
            reactive: PodCount::ZERO,
        }
    }

    /// Lets days pass. `demand` tells that of a minute since 1970 by UTC; `None` if nothing observed it.
    pub(super) fn run_days(&mut self, days: u64, demand: impl Fn(u64) -> Option<f64>) {
        for _ in 0..days * DAY {
            let minute = self.record.next_minute();
            self.run_minute(minute, demand(minute));
        }
    }

    fn run_minute(&mut self, minute: u64, demand: Option<f64>) {
        let now = Timestamp::from_secs((minute - FIRST) * 60);
        let floor = self.forecaster.decide(now, minute, self.reactive).floor;
        let extra = floor.value().saturating_sub(self.reactive.value());
        let reactive_before = self.reactive.value();
        self.record.push(demand.map(|demand| MinuteDemand { mean: demand, maximum: demand }));
        if let Some(demand) = demand {
            self.reactive = PodCount::ceil_from(demand / TARGET);
        }
        self.asked.push([self.reactive.max(floor), self.reactive]);
        let recent = self.asked.iter().rev().take(self.look_ahead.horizon());
        let ready = recent.fold([PodCount::MAX; 2], |[with, without], [asked, reactive]| {
            [with.min(*asked), without.min(*reactive)]
        });
        let late = ready.map(|ready| (demand.unwrap_or(0.0) - TOTAL * ready.as_f64()).max(0.0) * 60.0);
        let [late_with, late_without] = late;
        self.minutes.push(WorldMinute { late_with, late_without, extra, reactive: reactive_before });
        self.forecaster.end_minute(&EndedMinute {
            minute,
            reactive: self.reactive,
            past: &self.record,
            zone: &self.zone,
            look_ahead: self.look_ahead,
        });
    }

    /// The part of what was late without a forecast that still was with it, over the last days.
    pub(super) fn late_share(&self, days: u64) -> f64 {
        let last = || self.last(days);
        let without: f64 = last().map(|minute| minute.late_without).sum();
        assert!(without > 0.0, "something was late without a forecast");
        last().map(|minute| minute.late_with).sum::<f64>() / without
    }

    /// The extra pod-minutes of the last days, as a part of those of class kpa.
    pub(super) fn extra_share(&self, days: u64) -> f64 {
        let [extra, reactive] = self.last(days).fold([0.0, 0.0], |[extra, reactive], minute| {
            [extra + f64::from(minute.extra), reactive + f64::from(minute.reactive)]
        });
        if reactive > 0.0 { extra / reactive } else { extra }
    }

    /// Fails unless the extra pod-minutes of any 24 hours were within a tenth of those of class kpa in the 24
    /// hours that ended when the last of them was spent.
    #[track_caller]
    pub(super) fn check_budget(&self) {
        let day = usize::try_from(DAY).expect("1,440");
        let mut sums = [0_u64; 2];
        for (place, minute) in self.minutes.iter().enumerate() {
            sums[0] += u64::from(minute.extra);
            sums[1] += u64::from(minute.reactive);
            if let Some(oldest) = place.checked_sub(day).and_then(|place| self.minutes.get(place)) {
                sums[0] -= u64::from(oldest.extra);
                sums[1] -= u64::from(oldest.reactive);
            }
            let [extra, reactive] = sums;
            assert!(minute.extra == 0 || extra * 10 <= reactive, "minute {place}: {extra} of {reactive}");
        }
    }

    fn last(&self, days: u64) -> impl Iterator<Item = &WorldMinute> {
        let count = usize::try_from(days * DAY).expect("some days");
        self.minutes.iter().skip(self.minutes.len().saturating_sub(count))
    }
}
