//! At which rate do requests arrive, as a function of time alone?
//!
//! Times are seconds since the load began. For the drawing of arrivals a curve is cut into stretches, in each
//! of which its rate stays below a bound.

use std::f64::consts::TAU;

/// The seconds of a day.
pub(crate) const DAY: f64 = 86_400.0;
/// A week begins on Monday at midnight; its last two days are the weekend.
const DAYS_OF_WEEK: f64 = 7.0;
const FIRST_DAY_OF_WEEKEND: f64 = 5.0;
/// A cycle is cut into so many stretches: hours of a day.
const STRETCHES: f64 = 24.0;
/// By this part of its height a cycle may lie above both ends of a stretch, because the top of the curve may
/// lie a rounding error inside of it.
const MARGIN: f64 = 0.001;

/// A rate in requests per second over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateCurve {
    /// The same rate at all times.
    Constant {
        /// Requests per second, above zero.
        rate: f64,
    },
    /// One rate, and from a moment on another one.
    Step {
        /// Requests per second before the step.
        from: f64,
        /// Requests per second after it.
        to: f64,
        /// The time of the step.
        at: f64,
    },
    /// A rate that changes evenly, and then stays.
    Ramp {
        /// Requests per second at the beginning.
        from: f64,
        /// Requests per second at the end, and from then on.
        to: f64,
        /// How long the change takes.
        over: f64,
    },
    /// From the trough to the peak and back, as a cosine.
    Cycle {
        /// The greatest rate, half a period after the beginning.
        peak: f64,
        /// The least rate, at the beginning.
        trough: f64,
        /// The length of one cycle.
        period: f64,
    },
    /// A daily cycle with other peaks on the last two days of each week.
    Week {
        /// The greatest rate of the first five days.
        peak: f64,
        /// The rate at midnight of each day.
        trough: f64,
        /// The greatest rate of the last two days.
        weekend: f64,
    },
}

/// A time in which the rate of a curve does not exceed a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateStretch {
    pub(crate) most: f64,
    pub(crate) until: f64,
}

impl RateCurve {
    pub(crate) fn rate_at(&self, time: f64) -> f64 {
        match *self {
            Self::Constant { rate } => rate,
            Self::Step { from, to, at } => {
                if time < at {
                    from
                } else {
                    to
                }
            }
            Self::Ramp { from, to, over } => from + (to - from) * (time / over).min(1.0),
            Self::Cycle { peak, trough, period } => cycle(peak, trough, time / period),
            Self::Week { peak, trough, weekend } => {
                cycle(peak_of_day(peak, weekend, time), trough, time / DAY)
            }
        }
    }

    /// The greatest rate of all times.
    pub(crate) fn most(&self) -> f64 {
        match *self {
            Self::Constant { rate } => rate,
            Self::Step { from, to, .. } | Self::Ramp { from, to, .. } => from.max(to),
            Self::Cycle { peak, trough, .. } => peak.max(trough),
            Self::Week { peak, trough, weekend } => peak.max(trough).max(weekend),
        }
    }

    /// The stretch that a time lies in, from that time on.
    pub(crate) fn stretch_at(&self, time: f64) -> RateStretch {
        match *self {
            Self::Constant { rate } => RateStretch { most: rate, until: f64::INFINITY },
            Self::Step { from, to, at } | Self::Ramp { from, to, over: at } if time < at => {
                let most = if matches!(self, Self::Step { .. }) { from } else { from.max(to) };
                RateStretch { most, until: at }
            }
            Self::Step { to, .. } | Self::Ramp { to, .. } => RateStretch { most: to, until: f64::INFINITY },
            Self::Cycle { peak, trough, period } => self.part_of_cycle(time, period, (peak - trough).abs()),
            Self::Week { peak, trough, weekend } => {
                let height = (peak_of_day(peak, weekend, time) - trough).abs();
                self.part_of_cycle(time, DAY, height)
            }
        }
    }

    /// Rates rise or fall throughout a part of a cycle, so the greatest is at one of its ends.
    fn part_of_cycle(&self, time: f64, period: f64, height: f64) -> RateStretch {
        let length = period / STRETCHES;
        let until = (libm::floor(time / length) + 1.0) * length;
        // A time that is itself an end may round to the stretch before, which has no length.
        let until = if until > time { until } else { until + length };
        // The last moment before the end: at the end itself another day may have begun.
        let most = self.rate_at(time).max(self.rate_at(until.next_down())) + MARGIN * height;
        RateStretch { most, until }
    }
}

/// The rate of a cycle; its beginning is 0, its end 1.
fn cycle(peak: f64, trough: f64, part: f64) -> f64 {
    trough + (peak - trough) * (1.0 - libm::cos(TAU * part)) / 2.0
}

fn peak_of_day(peak: f64, weekend: f64, time: f64) -> f64 {
    let day = libm::fmod(libm::floor(time / DAY), DAYS_OF_WEEK);
    if day < FIRST_DAY_OF_WEEKEND { peak } else { weekend }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: RateCurve = RateCurve::Week { peak: 200.0, trough: 10.0, weekend: 50.0 };

    #[test]
    fn curves_have_their_rates() {
        let step = RateCurve::Step { from: 1.0, to: 9.0, at: 60.0 };
        let ramp = RateCurve::Ramp { from: 2.0, to: 10.0, over: 40.0 };
        let day = RateCurve::Cycle { peak: 200.0, trough: 10.0, period: DAY };
        for (curve, time, rate) in [
            (RateCurve::Constant { rate: 5.0 }, 1e6, 5.0),
            (step, 59.9, 1.0),
            (step, 60.0, 9.0),
            (ramp, 0.0, 2.0),
            (ramp, 10.0, 4.0),
            (ramp, 99.0, 10.0),
            (day, 0.0, 10.0),
            (day, DAY / 2.0, 200.0),
            (day, DAY / 4.0, 105.0),
            (WEEK, DAY / 2.0, 200.0),
            (WEEK, 5.5 * DAY, 50.0),
            (WEEK, 7.5 * DAY, 200.0),
        ] {
            let found = curve.rate_at(time);
            assert!((found - rate).abs() < 1e-9, "{curve:?} at {time}: {found}, not {rate}");
        }
    }

    #[test]
    fn no_rate_exceeds_the_bound_of_its_stretch_and_stretches_go_on() {
        let curves = [
            RateCurve::Step { from: 9.0, to: 1.0, at: 60.0 },
            RateCurve::Ramp { from: 10.0, to: 2.0, over: 40.0 },
            RateCurve::Cycle { peak: 200.0, trough: 10.0, period: 7.0 },
            WEEK,
            RateCurve::Week { peak: 200.0, trough: 100.0, weekend: 0.0 },
        ];
        for curve in curves {
            let mut time = 0.0;
            for _ in 0..400 {
                let stretch = curve.stretch_at(time);
                assert!(stretch.until > time, "{curve:?} stands still at {time}");
                let end = stretch.until.min(time + 100.0);
                for part in 0..50 {
                    let inside = time + (end - time) * f64::from(part) / 50.0;
                    assert!(curve.rate_at(inside) <= stretch.most, "{curve:?} at {inside}: {stretch:?}");
                }
                if stretch.until.is_infinite() {
                    break;
                }
                time = stretch.until;
            }
        }
    }
}
