//! How do requests arrive at one Service of a fleet, as a public cloud has fleets?
//!
//! The rates of Services differ by eight decades, from a request a day to a thousand a second, and their
//! logarithms are normal. By what the requests are made, and so how they come, is drawn from a table. Rates
//! and shares are those of Azure Functions in 2019 (Shahrad et al., "Serverless in the Wild", ATC 2020): 45
//! of 100 apps have at most one request an hour and 81 at most one a minute, from which the median and the
//! deviation follow; a share of the table is that of the functions with such a trigger.

use std::f64::consts::LN_10;

use vocabulary::RequestRate;

use crate::load_shape::LoadShape;
use crate::random::{RandomStream, span_of};
use crate::rate_curve::{DAY, RateCurve};

/// Half of all Services have at most so many requests a day.
const MEDIAN_PER_DAY: f64 = 40.0;
/// One standard deviation of the rate, in decades.
const DECADES: f64 = 1.77;
/// The ends of the eight decades.
const LEAST_PER_DAY: f64 = 1.0;
const MOST_PER_DAY: f64 = 1e8;

/// By what the requests for a Service are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FleetTrigger {
    /// People and their programs: more by day than by night.
    Http,
    /// A timer: one request at a fixed interval.
    Timer,
    /// Messages in a queue: bursts.
    Queue,
    /// Events of storage and of other Services: groups at random times.
    Event,
}

/// The share of Services with each trigger.
const TRIGGERS: [(FleetTrigger, f64); 4] = [
    (FleetTrigger::Http, 0.55),
    (FleetTrigger::Timer, 0.16),
    (FleetTrigger::Queue, 0.15),
    (FleetTrigger::Event, 0.14),
];

/// A day's peak and trough, as parts of its mean.
const PEAK: f64 = 1.6;
const TROUGH: f64 = 0.4;
/// In a burst requests come so many times as often as on average, and between bursts none come.
const BURST: f64 = 20.0;
const BURST_SECONDS: f64 = 60.0;
/// The mean number of requests in a group.
const GROUP: u32 = 3;

/// The load of one Service of the fleet, which follows from the seed and the name of the Service. Its mean
/// rate is at most `most`.
pub(crate) fn member_load(seed: u64, entity: &str, most: Option<RequestRate>) -> LoadShape {
    let mut draws = RandomStream::of(seed, entity, "fleet");
    let per_day = draws.log_normal(MEDIAN_PER_DAY, DECADES * LN_10).clamp(LEAST_PER_DAY, MOST_PER_DAY);
    let rate = (per_day / DAY).min(most.map_or(f64::INFINITY, RequestRate::value));
    match trigger_at(draws.unit()) {
        FleetTrigger::Http => {
            LoadShape::Curve(RateCurve::Cycle { peak: PEAK * rate, trough: TROUGH * rate, period: DAY })
        }
        FleetTrigger::Timer => LoadShape::Timer { every: span_of(1.0 / rate), requests: 1 },
        FleetTrigger::Queue => LoadShape::Bursty {
            rate: RequestRate::ZERO,
            burst: RequestRate::clamped(BURST * rate),
            every: span_of(BURST_SECONDS * (BURST - 1.0)),
            length: span_of(BURST_SECONDS),
        },
        FleetTrigger::Event => LoadShape::Sparse { every: span_of(f64::from(GROUP) / rate), requests: GROUP },
    }
}

/// The trigger at a place of the table, from 0 to 1.
fn trigger_at(place: f64) -> FleetTrigger {
    let mut left = place;
    for (trigger, share) in TRIGGERS {
        if left < share {
            return trigger;
        }
        left -= share;
    }
    FleetTrigger::Event
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SERVICES: u32 = 4_000;

    /// The mean rate of a load in requests per day.
    fn per_day(load: &LoadShape) -> f64 {
        let of = |every: &Duration, requests: f64| requests / every.as_secs_f64() * DAY;
        match load {
            LoadShape::Curve(RateCurve::Cycle { peak, trough, .. }) => f64::midpoint(*peak, *trough) * DAY,
            LoadShape::Timer { every, requests } | LoadShape::Sparse { every, requests } => {
                of(every, f64::from(*requests))
            }
            LoadShape::Bursty { burst, .. } => burst.value() / BURST * DAY,
            LoadShape::Curve(_)
            | LoadShape::Fleet { .. }
            | LoadShape::Clients { .. }
            | LoadShape::File(_)
            | LoadShape::Measured(_) => {
                panic!("{load:?} is none of the table")
            }
        }
    }

    fn fleet(most: Option<RequestRate>) -> Vec<LoadShape> {
        (0..SERVICES).map(|number| member_load(7, &format!("default/service/{number}"), most)).collect()
    }

    /// The tolerances are four standard deviations of a share of so many Services.
    #[test]
    fn a_fleet_has_the_shares_of_rates_and_triggers_that_were_measured() {
        let fleet = fleet(None);
        let share = |name: &str, is_part: &dyn Fn(&LoadShape) -> bool, expected: f64| {
            let count = u32::try_from(fleet.iter().filter(|load| is_part(load)).count()).expect("few");
            let found = f64::from(count) / f64::from(SERVICES);
            assert!((found - expected).abs() < 0.032, "{name}: {found} of all, not {expected}");
        };
        share("at most one an hour", &|load| per_day(load) <= 24.0, 0.45);
        share("at most one a minute", &|load| per_day(load) <= 1_440.0, 0.81);
        share("by timers", &|load| matches!(load, LoadShape::Timer { .. }), 0.16);
        share("by people", &|load| matches!(load, LoadShape::Curve(_)), 0.55);
        let (least, most) = fleet
            .iter()
            .map(per_day)
            .fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
        assert!(least >= 0.999 && most <= 1.001e8 && most / least > 1e6, "from {least} to {most} a day");
    }

    #[test]
    fn a_bound_holds_for_each_and_a_name_has_the_same_load_again() {
        let most = RequestRate::new(0.01).expect("a rate");
        assert!(fleet(Some(most)).iter().all(|load| per_day(load) <= 864.001));
        assert_eq!(fleet(None), fleet(None));
    }
}
