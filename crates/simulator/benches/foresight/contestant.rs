//! The ways to foresee demand that are compared.

use crate::foreseen::ForeseenDemand;

/// One way to decide how many pods there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contestant {
    /// Class kpa, which foresees nothing.
    Kpa,
    /// Class ahpa of this project.
    Ahpa,
    /// The rules of class ahpa beside the count of class kpa, chosen each hour as the product does it, and
    /// each midnight.
    EachHour,
    EachMidnight,
    /// The demand of the day before.
    Yesterday,
    /// The quantile 0.95 of seven days.
    SevenDays,
    /// The slope of the last minutes.
    LastSlope,
    /// A decomposition into season and trend by the library augurs.
    Mstl,
    /// The greatest `min-scale` that costs no more than class ahpa.
    FixedMinScale,
    /// The demand that will be.
    Oracle,
}

impl Contestant {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 10] = [
        Self::Kpa,
        Self::Ahpa,
        Self::EachHour,
        Self::EachMidnight,
        Self::Yesterday,
        Self::SevenDays,
        Self::LastSlope,
        Self::Mstl,
        Self::FixedMinScale,
        Self::Oracle,
    ];
    /// Those without which no goal is judged.
    pub(crate) const CLASSES: [Self; 2] = [Self::Kpa, Self::Ahpa];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kpa => "kpa",
            Self::Ahpa => "ahpa",
            Self::EachHour => "rules-each-hour",
            Self::EachMidnight => "rules-at-midnight",
            Self::Yesterday => "yesterday",
            Self::SevenDays => "q95-of-7-days",
            Self::LastSlope => "last-slope",
            Self::Mstl => "augurs-mstl",
            Self::FixedMinScale => "fixed-min-scale",
            Self::Oracle => "oracle",
        }
    }

    /// The floors above the count of class kpa; `None` where they do not follow from the demand alone.
    pub(crate) fn floors(self, demand: &ForeseenDemand<'_>) -> Option<Vec<u32>> {
        match self {
            Self::Yesterday => Some(demand.yesterday()),
            Self::SevenDays => Some(demand.seven_days()),
            Self::LastSlope => Some(demand.last_slope()),
            Self::Mstl => Some(demand.decomposed()),
            Self::Oracle => Some(demand.oracle()),
            Self::Kpa | Self::Ahpa | Self::EachHour | Self::EachMidnight | Self::FixedMinScale => None,
        }
    }
}
