//! What each rule expects when a minute begins, and the floor that follows.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use crate::capacity::PodCapacity;
use crate::minute_view::MinuteView;
use crate::profiles::{GreatestProfile, LevelWindow, NearProfiles};
use crate::rises::{ExpectedRise, Rises};
use crate::rule::{PodShare, ProfileScale, RULES, Rule, RuleNumber};

/// What a rule goes by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExpectationBasis {
    /// How much demand rose in past periods.
    Rise(ExpectedRise),
    /// The demand that past periods had.
    Profile {
        /// The demand of those periods.
        past: f64,
        /// How many times as much is expected now.
        level: f64,
    },
}

/// The demand that a rule expects within the look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedDemand {
    /// The greatest demand that is expected.
    pub demand: f64,
    /// What the expectation goes by.
    pub basis: ExpectationBasis,
    share: PodShare,
}

/// The expectation of each rule for one minute.
pub(crate) type Expectations = [Option<ExpectedDemand>; RULES];

/// What rules remember from one minute to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RuleMemory {
    profiles: NearProfiles,
    level: LevelWindow,
}

/// The past of a minute, as rules ask for it.
struct RuleInputs {
    rises: Option<Rises>,
    profile: GreatestProfile,
    level: f64,
}

impl ExpectedDemand {
    /// The least number of pods for this demand.
    pub fn floor(&self, capacity: PodCapacity) -> PodCount {
        capacity.pods_for(self.demand, self.share)
    }

    /// The demand that one pod is taken to serve.
    pub fn load_per_pod(&self, capacity: PodCapacity) -> f64 {
        capacity.of(self.share)
    }
}

impl RuleMemory {
    /// What each rule expects when a minute begins. Each minute has to be asked for in its turn; others begin
    /// with [`Self::forget`].
    pub(crate) fn expectations(&mut self, view: &MinuteView<'_>) -> Expectations {
        self.level.advance(view);
        let inputs = RuleInputs {
            rises: Rises::before(view),
            profile: self.profiles.advance(view),
            level: self.level.level(),
        };
        let mut expected = [None; RULES];
        for number in RuleNumber::all() {
            expected[number.place()] = inputs.expected(number.rule());
        }
        expected
    }

    /// Forgets what was remembered: minutes were left out, or the past is another one now.
    pub(crate) fn forget(&mut self) {
        self.profiles.forget();
        self.level.forget();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.profiles.heap_bytes() + self.level.heap_bytes()
    }
}

impl RuleInputs {
    fn expected(&self, rule: Rule) -> Option<ExpectedDemand> {
        match rule {
            Rule::Rise { period, quantile, share } => {
                let rise = self.rises.as_ref()?.expected(period, quantile)?;
                let demand = rise.base + rise.rise;
                Some(ExpectedDemand { demand, basis: ExpectationBasis::Rise(rise), share })
            }
            Rule::Profile { period, quantile, scale, share } => {
                let past = self.profile.quantile(period, quantile)?;
                let level = match scale {
                    ProfileScale::Past => 1.0,
                    ProfileScale::Level => self.level,
                };
                let basis = ExpectationBasis::Profile { past, level };
                Some(ExpectedDemand { demand: past * level, basis, share })
            }
            Rule::None => None,
        }
    }
}
