//! Floors that other ways to foresee demand would have asked for, minute by minute.
//!
//! Each knows the minutes before the one that begins, and what a pod takes to start. All but the oracle aim
//! at the target of a pod, as class kpa does.

use augurs_core::{Fit, Predict};
use augurs_mstl::MSTLModel;
use vocabulary::PodCount;

use crate::quantile;
use crate::series::MINUTES_OF_DAY;

/// What a pod is meant to serve, and the most that it serves.
pub(crate) const TARGET: f64 = 7.0;
pub(crate) const TOTAL: f64 = 10.0;

const DAYS: usize = 7;
/// The minutes before and after the same one of another day that are looked at.
const WIDTH: usize = 2;
/// The decomposition goes by means of so many minutes: its cost grows with the square of a day.
const COARSE: usize = 5;
const COARSE_DAY: usize = MINUTES_OF_DAY / COARSE;

/// A demand, and how many minutes from one on matter to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeseenDemand<'a> {
    pub(crate) demand: &'a [f64],
    pub(crate) horizon: usize,
}

impl ForeseenDemand<'_> {
    /// As it was a day ago.
    pub(crate) fn yesterday(&self) -> Vec<u32> {
        self.floors(|minute| Some(self.greatest(self.demand, minute.checked_sub(MINUTES_OF_DAY)?)))
    }

    /// Less than which 95 of 100 minutes of the last seven days were, at that time.
    pub(crate) fn seven_days(&self) -> Vec<u32> {
        let profile: Vec<f64> = (0..self.demand.len() + self.horizon).map(|at| self.profile(at)).collect();
        self.floors(|minute| Some(self.greatest(&profile, minute)))
    }

    /// As it goes on if it rises as it did.
    pub(crate) fn last_slope(&self) -> Vec<u32> {
        self.floors(|minute| {
            let last = *self.demand.get(minute.checked_sub(1)?)?;
            let before = *self.demand.get(minute.checked_sub(1 + self.horizon)?)?;
            Some(last + (last - before))
        })
    }

    /// Season and trend of seven days, decomposed anew at each midnight.
    pub(crate) fn decomposed(&self) -> Vec<u32> {
        let mut expected = vec![0.0; DAYS * MINUTES_OF_DAY];
        let mut midnight = expected.len();
        while midnight < self.demand.len() {
            let coarse = next_day(&self.demand[midnight - DAYS * MINUTES_OF_DAY..midnight]);
            expected.extend((0..MINUTES_OF_DAY).map(|minute| coarse[minute / COARSE]));
            midnight += MINUTES_OF_DAY;
        }
        self.floors(|minute| Some(self.greatest(&expected, minute)))
    }

    /// As it will be. It asks for as many pods as take the demand, and no spare room.
    pub(crate) fn oracle(&self) -> Vec<u32> {
        let minutes = 0..self.demand.len();
        minutes
            .map(|minute| PodCount::ceil_from(self.greatest(self.demand, minute) / TOTAL).value())
            .collect()
    }

    fn floors(&self, expected: impl Fn(usize) -> Option<f64>) -> Vec<u32> {
        let floor = |minute| PodCount::ceil_from(expected(minute).unwrap_or_default() / TARGET).value();
        (0..self.demand.len()).map(floor).collect()
    }

    /// The greatest value in as many minutes as matter.
    fn greatest(&self, values: &[f64], minute: usize) -> f64 {
        let until = (minute + self.horizon).min(values.len());
        values.get(minute..until).unwrap_or_default().iter().copied().fold(0.0, f64::max)
    }

    fn profile(&self, minute: usize) -> f64 {
        let mut pool = Vec::with_capacity(DAYS * (2 * WIDTH + 1));
        for day in 1..=DAYS {
            let Some(same) = minute.checked_sub(day * MINUTES_OF_DAY) else { break };
            let near = same.saturating_sub(WIDTH)..(same + WIDTH + 1).min(self.demand.len());
            pool.extend_from_slice(self.demand.get(near).unwrap_or_default());
        }
        quantile::of_hundred(&mut pool, 95)
    }
}

/// The day that follows from these days, by coarse minutes; nothing where they cannot be decomposed.
fn next_day(days: &[f64]) -> Vec<f64> {
    let coarse: Vec<f64> = days.chunks(COARSE).map(mean).collect();
    let fitted = MSTLModel::naive(vec![COARSE_DAY]).fit(&coarse);
    let forecast = fitted.and_then(|fitted| fitted.predict(COARSE_DAY, None));
    match forecast {
        Ok(forecast) => forecast.point,
        Err(problem) => {
            println!("a day is not foreseen by MSTL: {problem}");
            vec![0.0; COARSE_DAY]
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    values.iter().sum::<f64>() / f64::from(count.max(1))
}
