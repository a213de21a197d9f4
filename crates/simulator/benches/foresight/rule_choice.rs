//! What do the rules of class ahpa ask for, if the one in force is chosen each hour or each midnight?
//!
//! The forecaster of the product is told each minute what came, and what class kpa asked for. Budget, cap and
//! look-ahead are those of the table; the two ways differ in nothing but when a rule is chosen.

use std::time::Duration;

use forecasting::{
    BudgetShare, ChoiceTimes, DemandMinutes, EndedMinute, FloorCap, ForecastPace, ForecastSettings,
    Forecaster, LookAhead, MinuteDemand, PodCapacity, ZoneOffsets,
};
use vocabulary::{Percentage, PodCount, Timestamp};

use crate::foreseen::{TARGET, TOTAL};

const SECONDS: usize = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// The first Monday of 1970, as a minute since the beginning of that year.
const FIRST: u64 = 4 * 24 * 60;

/// What a person sets, and what a pod takes to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleTerms {
    pub(crate) choice: ChoiceTimes,
    /// The budget of prediction, in percent.
    pub(crate) budget: u32,
    /// The minutes that matter to a pod that is asked for now.
    pub(crate) horizon: usize,
}

/// The floors that bind when each minute begins. `kpa` has the count of class kpa in each second.
pub(crate) fn floors(demand: &[f64], kpa: &[u32], terms: &RuleTerms) -> Vec<u32> {
    let settings = ForecastSettings {
        capacity: PodCapacity::new(TARGET, TOTAL).expect("both are more than zero"),
        budget: BudgetShare::of(Percentage::clamped(f64::from(terms.budget))),
        cap: FloorCap::USUAL,
        choice: terms.choice,
        pace: ForecastPace::USUAL,
    };
    let minutes = u32::try_from(terms.horizon.saturating_sub(1)).expect("some minutes");
    let (look_ahead, zone) = (LookAhead::of_minutes(minutes), ZoneOffsets::default());
    let mut forecaster = Forecaster::new(settings, Timestamp::ZERO);
    let mut past = DemandMinutes::beginning_at(FIRST);
    let (mut now, mut reactive) = (Timestamp::ZERO, PodCount::ZERO);
    let mut floors = Vec::with_capacity(demand.len());
    for (demand, seconds) in demand.iter().zip(kpa.chunks(SECONDS)) {
        let minute = past.next_minute();
        floors.push(forecaster.decide(now, minute, reactive).floor.value());
        past.push(Some(MinuteDemand { mean: *demand, maximum: *demand }));
        reactive = PodCount::new(seconds.last().copied().unwrap_or_default());
        forecaster.end_minute(&EndedMinute { minute, reactive, past: &past, zone: &zone, look_ahead });
        now += MINUTE;
    }
    floors
}
