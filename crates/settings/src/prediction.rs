//! What is written about pods before demand: a switch, two limits of what it may cost, how long a start
//! takes, the local time of days, and a schedule.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{CountSchedule, Percentage, PredictionSwitch, ScaleUpForward, TimeZoneName, did_you_mean};

use super::count_schedule::read_count_schedule;
use super::keys::{SettingKey, config_map as keys};
use super::limits;
use super::numbers;
use super::reader::SettingsReader;

/// Every name of the IANA database that can be written, one a line.
const ZONE_NAMES: &str = include_str!("zone_names.txt");
const BUDGET_WORDS: &str = "a percentage from 0% to 100%, such as \"10%\"";
const MEASURED: &str = "auto";

/// The ConfigMap's part of prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionDefaults {
    /// `prediction`: the switch of revisions of class kpa that name none.
    pub switch: PredictionSwitch,
    /// `prediction-budget`: the part of class kpa's pod-seconds that may be added; 0 … 100 %.
    pub budget: Percentage,
    /// `cold-start-worth`: the pod-time that one avoided cold start may cost; 0 … 24 h.
    pub cold_start_worth: Duration,
    /// `scale-up-forward`: how long a start is taken to last.
    pub scale_up_forward: ScaleUpForward,
    /// `time-zone`: the local time by which days and schedules go.
    pub time_zone: TimeZoneName,
    /// `prediction-bin`: the length of a minute of prediction, 60 s; or 1 s, with which its hours and days
    /// are as much shorter, for tests.
    pub bin: Duration,
}

impl Default for PredictionDefaults {
    fn default() -> Self {
        Self {
            switch: PredictionSwitch::Off,
            budget: Percentage::clamped(10.0),
            cold_start_worth: Duration::from_mins(20),
            scale_up_forward: ScaleUpForward::Measured,
            time_zone: TimeZoneName::default(),
            bin: Duration::from_secs(60),
        }
    }
}

impl PredictionDefaults {
    /// Reads the keys of the ConfigMap.
    pub(super) fn of_cluster(reader: &mut SettingsReader<'_>) -> Self {
        let default = Self::default();
        Self {
            switch: reader.prediction_switch(&keys::PREDICTION).unwrap_or(default.switch),
            budget: reader.prediction_budget(&keys::PREDICTION_BUDGET).unwrap_or(default.budget),
            cold_start_worth: reader
                .duration(&keys::COLD_START_WORTH, &limits::COLD_START_WORTH)
                .unwrap_or(default.cold_start_worth),
            scale_up_forward: reader
                .scale_up_forward(&keys::SCALE_UP_FORWARD)
                .unwrap_or(default.scale_up_forward),
            time_zone: reader.time_zone(&keys::TIME_ZONE).unwrap_or(default.time_zone),
            bin: reader.duration(&keys::PREDICTION_BIN, &limits::PREDICTION_BIN).unwrap_or(default.bin),
        }
    }
}

impl SettingsReader<'_> {
    /// Reads whether a forecast raises the count.
    pub(super) fn prediction_switch(&mut self, key: &SettingKey) -> Option<PredictionSwitch> {
        let entry = self.entry(key)?;
        let switch = PredictionSwitch::of_word(entry.value.trim());
        if switch.is_none() {
            self.refuse(entry, "is none of them; write \"auto\", \"observe\" or \"off\"");
        }
        switch
    }

    /// Reads a part of class kpa's pod-seconds, with its sign: `10` might be meant as a number of pods.
    pub(super) fn prediction_budget(&mut self, key: &SettingKey) -> Option<Percentage> {
        let entry = self.entry(key)?;
        let Some(number) = entry.value.strip_suffix('%') else {
            self.refuse(entry, &format!("has no % at its end; write {BUDGET_WORDS}"));
            return None;
        };
        match numbers::float(number.trim_end()) {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Some(Percentage::clamped(percent)),
            Ok(_) => {
                self.refuse(entry, &format!("is out of range; write {BUDGET_WORDS}"));
                None
            }
            Err(error) => {
                self.refuse(entry, &format!("{error}; write {BUDGET_WORDS}"));
                None
            }
        }
    }

    /// Reads how long a start is taken to last.
    pub(super) fn scale_up_forward(&mut self, key: &SettingKey) -> Option<ScaleUpForward> {
        if self.entry(key)?.value.trim() == MEASURED {
            return Some(ScaleUpForward::Measured);
        }
        self.duration(key, &limits::SCALE_UP_FORWARD).map(ScaleUpForward::Fixed)
    }

    /// Reads the name of a zone that the IANA database has.
    pub(super) fn time_zone(&mut self, key: &SettingKey) -> Option<TimeZoneName> {
        let entry = self.entry(key)?;
        let name = entry.value.trim();
        if ZONE_NAMES.lines().any(|known| known == name) {
            return Some(TimeZoneName::new(name));
        }
        // Of six hundred names those are compared that begin alike: the first letter is rarely wrong.
        let begins_alike = |known: &&str| {
            let [first, other] = [name, *known].map(|name| name.chars().next());
            first.zip(other).is_some_and(|(first, other)| first.eq_ignore_ascii_case(&other))
        };
        let likely = did_you_mean(name, ZONE_NAMES.lines().filter(begins_alike));
        let flaw = format!(
            "is no time zone that is known; write a name of the IANA database, such as \"Europe/Berlin\"{likely}"
        );
        self.refuse(entry, &flaw);
        None
    }

    /// Reads the lines of a schedule. What is wrong with one of them belongs to the key.
    pub(super) fn schedule(&mut self, key: &SettingKey) -> Option<Arc<CountSchedule>> {
        let entry = self.entry(key)?;
        match read_count_schedule(&self.place_of(entry.key), entry.value) {
            Ok(schedule) => Some(Arc::new(schedule)),
            Err(problems) => {
                self.refuse_all_of(key, problems);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_names_are_sorted_and_have_utc() {
        let names: Vec<&str> = ZONE_NAMES.lines().collect();
        assert!(names.is_sorted() && names.contains(&"UTC") && names.contains(&"Europe/Berlin"));
    }
}
