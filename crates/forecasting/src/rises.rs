//! How much demand rose in past periods, from the same minute on.
//!
//! A rise is told from the level: a day that is busier as a whole than the days before it expects the rise of
//! those days on top of its own demand.

use serde::{Deserialize, Serialize};

use crate::minute_view::MinuteView;
use crate::quantile::Quantile;
use crate::rule::RulePeriod;

/// The rises of past periods and the demand that they are added to.
#[derive(Clone, Debug)]
pub(crate) struct Rises {
    /// The demand of the minutes before this one.
    base: f64,
    days: Vec<f64>,
    weeks: Vec<f64>,
    hours: Vec<f64>,
}

/// A rise that some part of the periods did not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedRise {
    /// The mean demand of the last three minutes.
    pub base: f64,
    /// By how much more is expected; negative where demand fell.
    pub rise: f64,
    /// The number of past periods that were looked at.
    pub periods: usize,
    /// The number of those that rose by no more.
    pub periods_within: usize,
}

impl Rises {
    /// The rises that are known when a minute begins; `None` if the present demand is not.
    pub(crate) fn before(view: &MinuteView<'_>) -> Option<Self> {
        let base = view.base_before(view.minute)?;
        let of = |period| rises_of(view, period);
        Some(Self {
            base,
            days: of(RulePeriod::Day),
            weeks: of(RulePeriod::Week),
            hours: of(RulePeriod::Hour),
        })
    }

    /// The rise that this part of the periods did not exceed; `None` where too few periods are known.
    pub(crate) fn expected(&self, period: RulePeriod, quantile: Quantile) -> Option<ExpectedRise> {
        let sorted = match period {
            RulePeriod::Day => &self.days,
            RulePeriod::Week => &self.weeks,
            RulePeriod::Hour => &self.hours,
        };
        let rise = quantile.of(sorted).filter(|_| sorted.len() >= period.known_min())?;
        let periods_within = sorted.iter().filter(|other| **other <= rise).count();
        Some(ExpectedRise { base: self.base, rise, periods: sorted.len(), periods_within })
    }
}

fn rises_of(view: &MinuteView<'_>, period: RulePeriod) -> Vec<f64> {
    let rise = |periods| {
        let start = view.periods_before(view.minute, period, periods)?;
        Some(view.greatest_from(start)? - view.base_before(start)?)
    };
    let mut rises: Vec<f64> = (1..=period.count()).filter_map(rise).collect();
    rises.sort_unstable_by(f64::total_cmp);
    rises
}
