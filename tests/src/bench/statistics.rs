//! Medians, extremes and ratios: what several rounds say together.

use serde::Serialize;

/// What was measured again and again, one value per round (or per event), in the order of the rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// A set of samples without any value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value to the samples.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value that `thousandths` of a thousand do not exceed (nearest rank); `NaN` of nothing.
    pub fn quantile(&self, thousandths: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * thousandths).div_ceil(1000);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The middle one; of an even number, the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            length if length % 2 == 1 => sorted[length / 2],
            length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
        }
    }

    /// The smallest value of the samples.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The largest value of the samples.
    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Round by round, divided by the other's value.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        self.pairwise(other, |mine, theirs| mine / theirs)
    }

    /// Round by round, less the other's value.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        self.pairwise(other, |mine, theirs| mine - theirs)
    }

    /// The mean of those of each round, of which each had as many: one value for a round.
    #[must_use]
    pub fn by_rounds(&self, rounds: usize) -> Self {
        let each = self.0.len() / rounds.max(1);
        assert_eq!(each * rounds, self.0.len(), "each round has as many");
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.iter().map(|_| 1.0).sum::<f64>();
        Self(self.0.chunks(each.max(1)).map(mean).collect())
    }

    fn pairwise(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        assert_eq!(self.0.len(), other.0.len(), "contestants take part in the same rounds");
        Self(self.0.iter().zip(&other.0).map(|(&mine, &theirs)| of(mine, theirs)).collect())
    }

    /// How well the median of as many differences of two alike contestants is known, if these are such
    /// differences (nothing but noise around 0): in 95 of 100 such runs it is at most so far from 0. The
    /// standard error of a median, 1.2533 σ / √n, with σ from the median absolute deviation (× 1.4826), which
    /// a few wild rounds do not move.
    pub fn uncertainty_of_median(&self) -> f64 {
        let deviation = Self(self.0.iter().map(|difference| difference.abs()).collect()).median();
        let count: f64 = self.0.iter().map(|_| 1.0).sum();
        1.96 * 1.2533 * 1.4826 * deviation / count.sqrt()
    }

    /// `median [least … most]`, or the one value there is.
    pub fn summary(&self, digits: usize) -> String {
        if let [only] = self.0[..] {
            return format!("{only:.digits$}");
        }
        format!("{:.digits$} [{:.digits$} … {:.digits$}]", self.median(), self.least(), self.most())
    }
}

/// The same things, beginning with another one each round, so that none always follows the same neighbour's
/// heat.
pub fn rotated<Item>(items: &[Item], round: usize) -> impl Iterator<Item = &Item> {
    let start = round % items.len().max(1);
    items[start..].iter().chain(&items[..start])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles_are_nearest_ranks() {
        let samples = Samples(vec![5.0, 1.0, 4.0, 2.0]);
        assert_eq!(samples.median(), 3.0);
        assert_eq!(samples.quantile(500), 2.0);
        assert_eq!(samples.quantile(990), 5.0);
        assert_eq!(Samples(vec![7.0]).quantile(10), 7.0);
        assert!(Samples::new().median().is_nan());
    }

    #[test]
    fn several_of_a_round_are_one() {
        assert_eq!(Samples(vec![1.0, 3.0, 10.0, 20.0]).by_rounds(2).0, [2.0, 15.0]);
        assert_eq!(Samples(vec![1.0, 3.0]).by_rounds(2).0, [1.0, 3.0]);
        assert!(Samples::new().by_rounds(0).0.is_empty());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let ratios = Samples(vec![2.0, 30.0]).over(&Samples(vec![1.0, 10.0]));
        assert_eq!(ratios.0, [2.0, 3.0]);
    }

    #[test]
    fn wild_rounds_do_not_move_what_is_known_of_a_median() {
        let calm = Samples(vec![1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
        let wild = Samples(vec![1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 900.0]);
        assert!((calm.uncertainty_of_median() - 1.2139).abs() < 1e-3, "{}", calm.uncertainty_of_median());
        assert_eq!(calm.uncertainty_of_median(), wild.uncertainty_of_median());
    }

    #[test]
    fn every_round_begins_with_another() {
        assert_eq!(rotated(&['a', 'b', 'c'], 4).copied().collect::<Vec<_>>(), ['b', 'c', 'a']);
    }
}
