//! Quantiles without interpolation: a quantile is one of the values.

/// A quantile in whole percent, 1 … 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile(u8);

/// A value of which some count more than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedValue {
    /// The value itself, which is a number.
    pub value: f64,
    /// How much the value counts, more than zero.
    pub weight: f64,
}

impl Quantile {
    /// The median, which half of the values do not exceed.
    pub const MEDIAN: Self = Self(50);

    /// The quantile of this many percent.
    pub const fn percent(percent: u8) -> Self {
        assert!(percent >= 1 && percent <= 100, "a quantile has 1 to 100 percent");
        Self(percent)
    }

    /// The quantile as a fraction: 0.8 for 80 %.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// The least of these values, which are in order, that has at least this part of all at or below it.
    pub fn of<Value: Copy>(self, sorted: &[Value]) -> Option<Value> {
        // Whole numbers: 0.95 of 20 values are 19 of them, whatever a product of doubles says.
        let rank = (sorted.len() * usize::from(self.0)).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }

    /// The same where values count by their weights.
    pub fn of_weighted(self, values: &[WeightedValue]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(|one, other| one.value.total_cmp(&other.value));
        let wanted = self.fraction() * sorted.iter().map(|value| value.weight).sum::<f64>();
        let mut passed = 0.0;
        let reached = sorted.iter().find(|value| {
            passed += value.weight;
            passed >= wanted
        });
        // A sum may fall short of itself by the last digit.
        reached.or(sorted.last()).map(|value| value.value)
    }

    /// The average distance of a forecast from what came, where too little weighs as this quantile and too
    /// much as the rest (pinball loss). The least for the quantile itself.
    pub fn loss(self, came: f64, forecast: f64) -> f64 {
        let (above, below) = (f64::from(self.0), f64::from(100 - self.0));
        let missed = came - forecast;
        if missed >= 0.0 { above * missed / 100.0 } else { below * -missed / 100.0 }
    }
}
