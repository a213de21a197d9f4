//! Series of the shapes that real demand has: days, weeks, hours, flash crowds, a walk without a period,
//! timers and rare requests. They are the same on every machine.

use std::f64::consts::TAU;

use crate::series::DemandSeries;
use crate::split_mix::SplitMix;

const WARM: u32 = 22;
const APPS: u32 = 100;
const WARM_DAYS: u32 = 14;
const SPARSE_DAYS: u32 = 28;
const MINUTES: u32 = 1_440;
const BINS_OF_DAY: u32 = 288;

/// Draws numbers in 0 … 1.
struct Draws(SplitMix);

impl Draws {
    fn of(seed: u32) -> Self {
        Self(SplitMix(u64::from(seed)))
    }

    fn next(&mut self) -> f64 {
        let [first, second, third, fourth, ..] = self.0.draw().to_be_bytes();
        f64::from(u32::from_be_bytes([first, second, third, fourth])) / f64::from(u32::MAX)
    }
}

/// Series by minutes: three of four have a period.
pub(crate) fn warm() -> Vec<DemandSeries> {
    let series =
        |number| DemandSeries { name: format!("generated-{number:02}"), values: warm_values(number) };
    (0..WARM).map(series).collect()
}

fn warm_values(number: u32) -> Vec<f64> {
    let mut draws = Draws::of(number);
    let (noise, hourly, weekend) = (0.02 + 0.08 * draws.next(), draws.next(), 0.3 + 0.7 * draws.next());
    let (phase, mut walk, mut crowd) = (draws.next(), 0.0_f64, 0.0_f64);
    let mut values = Vec::new();
    for minute in 0..WARM_DAYS * MINUTES {
        let day = f64::from(minute % MINUTES) / f64::from(MINUTES);
        let of_week = if (minute / MINUTES) % 7 >= 5 { weekend } else { 1.0 };
        let daily = of_week * (0.55 - 0.45 * libm::cos(TAU * (day + phase)));
        let steps = if minute % 60 < 8 { 0.4 * hourly } else { 0.0 };
        walk = (walk + 0.01 * (draws.next() - 0.5)).clamp(-0.4, 0.4);
        crowd = if draws.next() < 0.000_2 { 1.0 } else { crowd * 0.97 };
        let shape = match number % 4 {
            0 => daily,
            1 => daily + steps,
            2 => daily + crowd,
            _ => 0.5 + walk + crowd / 2.0,
        };
        values.push((shape * (1.0 + noise * (2.0 * draws.next() - 1.0))).max(0.0));
    }
    values
}

/// Numbers of requests in five minutes, with long rests.
pub(crate) fn sparse() -> Vec<DemandSeries> {
    let series = |number: u32| {
        let mut draws = Draws::of(1_000 + number);
        let chance = 0.1 + 0.3 * f64::from(number);
        let bins = 0..SPARSE_DAYS * BINS_OF_DAY;
        let values =
            bins.map(|_| if draws.next() < chance { 1.0 + (3.0 * draws.next()).floor() } else { 0.0 });
        DemandSeries { name: format!("generated-sparse-{number}"), values: values.collect() }
    };
    (0..2).map(series).collect()
}

/// Apps of a day: half are timers, half have requests at random.
pub(crate) fn apps() -> Vec<DemandSeries> {
    let app = |number: u32| {
        let mut draws = Draws::of(2_000 + number);
        let every = 3 + number * 2;
        let is_busy = |minute: u32, drawn: f64| {
            if number.is_multiple_of(2) {
                minute.is_multiple_of(every)
            } else {
                drawn < 1.0 / f64::from(every)
            }
        };
        let minutes = 0..MINUTES;
        let values = minutes.map(|minute| if is_busy(minute, draws.next()) { 1.0 } else { 0.0 }).collect();
        DemandSeries { name: format!("generated-app-{number:02}"), values }
    };
    (0..APPS).map(app).collect()
}
