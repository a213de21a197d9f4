//! What a person says about prediction, and of which local time a day is meant.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Whether a forecast raises the count of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionSwitch {
    /// Pods are asked for before demand rises.
    Auto,
    /// What prediction would do is decided and shown, and nothing is done.
    Observe,
    /// No demand is remembered and nothing is expected.
    #[default]
    Off,
}

impl PredictionSwitch {
    /// Every word that can be written.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Observe, Self::Off];

    /// The word as it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Observe => "observe",
            Self::Off => "off",
        }
    }

    /// The switch of a word; `None` for a word of none.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|switch| switch.word() == word)
    }
}

/// The look-ahead that a person sets, or the one that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleUpForward {
    /// The time that nearly all of the last starts took.
    #[default]
    Measured,
    /// A start is taken to last so long.
    Fixed(Duration),
}

/// The name of a zone of local time, as the IANA database has it: `Europe/Berlin`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimeZoneName(Box<str>);

impl TimeZoneName {
    /// A name that the database has. Whether it has the name is for the reader of settings to know.
    pub fn new(name: &str) -> Self {
        Self(Box::from(name))
    }

    /// Whether the zone is that of the minutes themselves, of which nothing has to be looked up.
    pub fn is_utc(&self) -> bool {
        &*self.0 == "UTC"
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for TimeZoneName {
    /// The zone of the minutes themselves, UTC.
    fn default() -> Self {
        Self::new("UTC")
    }
}

impl fmt::Display for TimeZoneName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_is_read_by_its_own_word() {
        for switch in PredictionSwitch::ALL {
            assert_eq!(PredictionSwitch::of_word(switch.word()), Some(switch));
        }
        assert_eq!(PredictionSwitch::of_word("Auto"), None);
    }

    #[test]
    fn a_zone_that_is_not_named_is_utc() {
        assert!(TimeZoneName::default().is_utc() && !TimeZoneName::new("Europe/Berlin").is_utc());
        assert_eq!(TimeZoneName::new("Europe/Berlin").to_string(), "Europe/Berlin");
    }
}
