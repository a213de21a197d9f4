//! Where does chance come from?
//!
//! Each entity has a stream of its own for each purpose (the gaps between arrivals at
//! `default/service/hello`, the start-up of its third pod). So a variant that starts more pods, or refuses a
//! request, changes no other draw: all variants meet the same arrivals, service times and start-ups.
//!
//! The generator and the functions are the same on every platform and in every version: the cipher of
//! `ChaCha8Rng` (from the crate that `rand` has its standard generator from), and `libm` for logarithms,
//! exponentials and the cosine. The key of a stream is, in little-endian order, the seed, the FNV-1a hash of
//! the entity, the FNV-1a hash of the purpose, and zeros, 64 bits each.

use std::f64::consts::TAU;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use vocabulary::fnv1a;

use crate::rounding::whole_part;

/// The bits of 1.0: with 52 random ones behind them they are a number from 1 to below 2.
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// From this mean on a Poisson number is taken for a normal one.
const NORMAL_FROM: f64 = 32.0;

/// The random numbers of one entity for one purpose.
#[derive(Debug)]
pub(crate) struct RandomStream {
    generator: ChaCha8Rng,
}

impl RandomStream {
    pub(crate) fn of(seed: u64, entity: &str, purpose: &str) -> Self {
        let mut key = [0_u8; 32];
        let parts = [seed, fnv1a(entity.bytes()), fnv1a(purpose.bytes())];
        for (place, part) in key.chunks_exact_mut(8).zip(parts) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        Self { generator: ChaCha8Rng::from_seed(key) }
    }

    /// A seed for a generator of another crate.
    pub(crate) fn seed(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 to below 1, of 2^52 that are equally likely.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from_bits(ONE | (self.generator.next_u64() >> 12)) - 1.0
    }

    pub(crate) fn uniform(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    /// A number below `count`, of which each is equally likely; 0 if there is none below it.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.generator.next_u64() % count).unwrap_or_default()
    }

    /// One of some values, of which there is at least one.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Whether something happens that has this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A span between two others, each equally likely.
    pub(crate) fn span(&mut self, least: Duration, most: Duration) -> Duration {
        span_of(self.uniform(least.as_secs_f64(), most.as_secs_f64()))
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        // `1 - unit` is never 0, whose logarithm is no number.
        -mean * libm::log(1.0 - self.unit())
    }

    /// A number of the standard normal distribution, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(TAU * self.unit())
    }

    /// A number whose logarithm is normal, with the standard deviation `sigma`.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }

    /// A number of the gamma distribution with the mean `shape`, which is above zero, and the scale 1: by
    /// Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * libm::pow(1.0 - self.unit(), 1.0 / shape);
        }
        let most_likely = shape - 1.0 / 3.0;
        let spread = 1.0 / libm::sqrt(9.0 * most_likely);
        loop {
            let normal = self.normal();
            let root = 1.0 + spread * normal;
            let cube = root * root * root;
            if cube <= 0.0 {
                continue;
            }
            let bound = 0.5 * normal * normal + most_likely * (1.0 - cube + libm::log(cube));
            if libm::log(1.0 - self.unit()) < bound {
                return most_likely * cube;
            }
        }
    }

    /// How many events fall into a time in which `mean` of them are expected. The gaps between events are
    /// drawn one by one, so that it is exact for every mean; a mean of a thousand takes a thousand draws.
    pub(crate) fn poisson(&mut self, mean: f64) -> u32 {
        let (mut count, mut passed) = (0, self.exponential(1.0));
        while passed <= mean {
            count += 1;
            passed += self.exponential(1.0);
        }
        count
    }

    /// How many events fall into a time in which `mean` of them are expected, by one draw: exact up to a mean
    /// of 32, and beyond by the normal distribution, whose number has the same mean and variance.
    pub(crate) fn poisson_at_once(&mut self, mean: f64) -> u32 {
        if mean > NORMAL_FROM {
            return whole_part(mean + libm::sqrt(mean) * self.normal() + 0.5);
        }
        let (drawn, mut count, mut chance) = (self.unit(), 0_u32, libm::exp(-mean));
        let mut reached = chance;
        // The chances add up to a little less than 1, so the draw may lie above all of them.
        while reached <= drawn && chance > 0.0 {
            count += 1;
            chance *= mean / f64::from(count);
            reached += chance;
        }
        count
    }
}

/// The span of so many seconds; the longest span for what is no number of seconds.
pub(crate) fn span_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    /// The mean and the variance of many draws.
    fn moments(mut draw: impl FnMut(&mut RandomStream) -> f64) -> (f64, f64) {
        let mut random = RandomStream::of(7, "entity", "purpose");
        let draws: Vec<f64> = (0..DRAWS).map(|_| draw(&mut random)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
        let variance = draws.iter().map(|draw| (draw - mean) * (draw - mean)).sum::<f64>() / f64::from(DRAWS);
        (mean, variance)
    }

    /// Each expected value is known; the tolerances are five standard errors of so many draws, rounded up.
    #[test]
    fn samplers_have_the_moments_of_their_distributions() {
        let close =
            |name: &str, (mean, variance): (f64, f64), expected: (f64, f64), tolerance: (f64, f64)| {
                assert!((mean - expected.0).abs() < tolerance.0, "{name}: mean {mean}, not {}", expected.0);
                assert!(
                    (variance - expected.1).abs() < tolerance.1,
                    "{name}: variance {variance}, not {}",
                    expected.1
                );
            };
        close("uniform", moments(|random| random.uniform(2.0, 5.0)), (3.5, 0.75), (0.01, 0.01));
        close("exponential", moments(|random| random.exponential(2.0)), (2.0, 4.0), (0.025, 0.15));
        close("normal", moments(RandomStream::normal), (0.0, 1.0), (0.012, 0.02));
        // The mean is exp(sigma²/2), the variance (exp(sigma²) - 1) exp(sigma²).
        let expected = (libm::exp(0.125), (libm::exp(0.25) - 1.0) * libm::exp(0.25));
        close("log-normal", moments(|random| random.log_normal(1.0, 0.5)), expected, (0.01, 0.02));
        for shape in [0.4, 1.0, 6.0] {
            // The fourth central moment of a gamma number is 3 shape² + 6 shape.
            let of_mean = 5.0 * libm::sqrt(shape / f64::from(DRAWS));
            let of_variance = 5.0 * libm::sqrt((2.0 * shape * shape + 6.0 * shape) / f64::from(DRAWS));
            let tolerance = (of_mean, of_variance);
            close("gamma", moments(|random| random.gamma(shape)), (shape, shape), tolerance);
        }
        for mean in [0.1, 3.0, 20.0] {
            let tolerance = (0.012 * libm::sqrt(mean) + 0.001, 0.02 * mean + 0.004);
            close("poisson", moments(|random| f64::from(random.poisson(mean))), (mean, mean), tolerance);
            let at_once = moments(|random| f64::from(random.poisson_at_once(mean)));
            close("poisson at once", at_once, (mean, mean), tolerance);
        }
    }

    #[test]
    fn a_great_poisson_number_has_its_mean_and_variance() {
        let (mean, variance) = moments(|random| f64::from(random.poisson_at_once(500.0)));
        assert!((mean - 500.0).abs() < 0.25 && (variance - 500.0).abs() < 8.0, "{mean}, {variance}");
        let mut random = RandomStream::of(7, "a", "b");
        assert!((0..1_000).all(|_| random.poisson_at_once(0.0) == 0));
    }

    #[test]
    fn a_unit_is_never_1_and_fills_its_range() {
        let mut random = RandomStream::of(1, "a", "b");
        let draws: Vec<f64> = (0..DRAWS).map(|_| random.unit()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        for tenth in 0..10 {
            let (least, most) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let count = draws.iter().filter(|draw| (least..most).contains(*draw)).count();
            assert!((19_000..21_000).contains(&count), "{count} of {DRAWS} from {least} to {most}");
        }
    }

    #[test]
    fn streams_differ_by_seed_entity_and_purpose_and_repeat() {
        let first = |seed, entity: &str, purpose: &str| RandomStream::of(seed, entity, purpose).seed();
        assert_eq!(first(7, "hello", "arrivals"), first(7, "hello", "arrivals"));
        let others =
            [first(8, "hello", "arrivals"), first(7, "hallo", "arrivals"), first(7, "hello", "start-up")];
        for other in others {
            assert_ne!(first(7, "hello", "arrivals"), other);
        }
    }

    #[test]
    fn an_index_is_below_its_count_and_a_span_between_its_ends() {
        let mut random = RandomStream::of(3, "a", "b");
        let seen: std::collections::BTreeSet<usize> = (0..1_000).map(|_| random.index(5)).collect();
        assert!(seen.into_iter().eq(0..5));
        assert_eq!((random.index(0), random.pick(&[7])), (0, 7));
        let (least, most) = (Duration::from_secs(2), Duration::from_secs(3));
        assert!((0..1_000).all(|_| (least..=most).contains(&random.span(least, most))));
        let happened = (0..1_000).filter(|_| random.happens(0.3)).count();
        assert!((200..400).contains(&happened), "{happened} of 1,000");
    }

    #[test]
    fn a_span_of_no_number_of_seconds_is_the_longest() {
        assert_eq!(span_of(1.5), Duration::from_millis(1500));
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(span_of(seconds), Duration::MAX);
        }
    }
}
