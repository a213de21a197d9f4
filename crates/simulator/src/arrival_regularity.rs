//! How regular are arrivals of which only the count of each second is known?
//!
//! A renewal process whose gaps have the gamma distribution of some shape has counts whose variance is their
//! mean divided by the shape: shape 1 is the Poisson process, a great shape a clock, and a small one comes in
//! groups. So the shape of the gaps follows from how much the counts of neighbouring seconds differ.

use crate::random::RandomStream;
use crate::rounding::real;

/// Of fewer neighbours nothing is concluded.
const PAIRS_LEAST: usize = 5;
/// Where fewer requests arrive in a second, their places in it matter little, and counts say little of them.
const MEAN_LEAST: f64 = 3.0;
/// The mean of the smallest four fifths of the squares of standard normal numbers: a fifth is left out, so
/// that a load that changes does not seem to be irregular.
const KEPT_SQUARE: f64 = 0.44;
/// Variances of so many times the mean count as those of random arrivals: sixty counts say no more.
const RANDOM: std::ops::RangeInclusive<f64> = 0.4..=2.5;
/// Beyond these nothing changes that a count of pods would show.
const DISPERSION_LEAST: f64 = 0.01;
const DISPERSION_MAX: f64 = 10.0;

/// The shape of the gaps between arrivals of which so many come in each second.
pub(crate) fn gap_shape(counts: &[u32]) -> f64 {
    let (mut squares, mut sum) = (Vec::new(), 0.0);
    for pair in counts.windows(2) {
        // A pause is no part of the process.
        if pair[0] > 0 && pair[1] > 0 {
            let (before, after) = (f64::from(pair[0]), f64::from(pair[1]));
            squares.push((after - before) * (after - before));
            sum += f64::midpoint(before, after);
        }
    }
    let mean = sum / real(squares.len().max(1) as u64);
    if squares.len() < PAIRS_LEAST || mean < MEAN_LEAST {
        return 1.0;
    }
    squares.sort_unstable_by(f64::total_cmp);
    squares.truncate(squares.len() * 4 / 5);
    let kept = squares.iter().sum::<f64>() / real(squares.len() as u64);
    // The difference of two counts has twice their variance.
    let dispersion = kept / (KEPT_SQUARE * 2.0 * mean);
    if RANDOM.contains(&dispersion) { 1.0 } else { 1.0 / dispersion.clamp(DISPERSION_LEAST, DISPERSION_MAX) }
}

/// Where so many arrivals lie in a span of the length 1, with gaps of this shape, in no order.
pub(crate) fn spread(random: &mut RandomStream, count: usize, shape: f64) -> Vec<f64> {
    if shape == 1.0 {
        return (0..count).map(|_| random.unit()).collect();
    }
    // The gap that the beginning of the span falls into is a longer one, and is cut: what is left of it has
    // the mean (1 + 1/shape) / 2 of a whole gap. So does that at the end.
    let cut_gap = f64::midpoint(shape, 1.0);
    let mut passed = 0.0;
    let mut arrivals = Vec::with_capacity(count);
    for place in 0..count {
        passed += random.gamma(if place == 0 { cut_gap } else { shape });
        arrivals.push(passed);
    }
    let all = (passed + random.gamma(cut_gap)).max(f64::MIN_POSITIVE);
    arrivals.into_iter().map(|at| at / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_counts_have_random_gaps_and_a_clock_has_none() {
        let mut random = RandomStream::of(7, "hello", "counts");
        let mut minute = || gap_shape(&(0..60).map(|_| random.poisson(20.0)).collect::<Vec<u32>>());
        let shapes: Vec<f64> = (0..20).map(|_| minute()).collect();
        assert!(shapes.iter().filter(|shape| **shape == 1.0).count() >= 18, "{shapes:?}");
        assert_eq!(gap_shape(&[20; 60]), 100.0);
        let step: Vec<u32> = [vec![5; 8], vec![18], vec![42, 43, 42, 43, 42, 43, 42, 43, 42]].concat();
        assert!(gap_shape(&step) > 10.0, "{}", gap_shape(&step));
        let groups: Vec<u32> = (0..60).map(|second| if second % 3 == 0 { 90 } else { 1 }).collect();
        assert!(gap_shape(&groups) < 1.0, "{}", gap_shape(&groups));
    }

    #[test]
    fn of_few_counts_nothing_is_concluded() {
        let groups = [0, 21, 0, 0, 21, 0, 0, 21, 0, 0, 21, 0, 0, 21];
        let cases: [&[u32]; 4] = [&[], &[50; 4], &[1; 60], &groups];
        for counts in cases {
            assert_eq!(gap_shape(counts), 1.0, "{counts:?}");
        }
    }

    #[test]
    fn arrivals_lie_in_their_span_with_about_equal_gaps_where_these_are_regular() {
        let mut random = RandomStream::of(7, "hello", "arrivals");
        for shape in [0.3, 1.0, 100.0] {
            let arrivals = spread(&mut random, 1_000, shape);
            assert!(arrivals.len() == 1_000 && arrivals.iter().all(|at| (0.0..=1.0).contains(at)));
        }
        let regular = spread(&mut random, 50, 100.0);
        let gaps: Vec<f64> = regular.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (0.01..0.03).contains(gap)), "{gaps:?}");
        assert_eq!(spread(&mut random, 0, 100.0), Vec::<f64>::new());
    }
}
