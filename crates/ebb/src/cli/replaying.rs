//! What `ebb replay` takes: a record, a moment of it, and settings in the place of the recorded ones.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use recording::SettingsChanges;
use settings::{CONFIG_MAP_NAME, config_map_keys};
use vocabulary::{did_you_mean, shown};

use super::annotation_names::{annotation_named, annotation_value, short_names};
use crate::utc_time::{instant, time_of_day};

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The folder that `ebb up --record` was given, or the folder in it of one autoscaler.
    #[arg(value_name = "DIRECTORY")]
    pub(crate) record: PathBuf,
    /// Stop at this time of UTC: 12:03:20, on the day on which the record begins, or
    /// 2026-11-27T12:03:20.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<RecordMoment>,
    /// Show the last decisions about this revision: namespace/kind/name, or the end of it.
    #[arg(long, value_name = "NAME")]
    pub(crate) explain: Option<String>,
    /// Decide with another setting, such as window=30s, and show when counts differ first: an annotation for
    /// every revision, or a key of the ConfigMap config-autoscaler.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) with: Vec<ChangedSetting>,
}

impl ReplayOptions {
    /// All settings that are changed.
    pub(crate) fn changes(&self) -> SettingsChanges {
        let mut changes = SettingsChanges::default();
        for ChangedSetting { place, key, value } in &self.with {
            let settings = match place {
                ChangedPlace::Annotation => &mut changes.annotations,
                ChangedPlace::ConfigMap => &mut changes.config_map,
            };
            settings.insert((*key).to_owned(), value.clone());
        }
        changes
    }
}

/// A moment of a record, as a person says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordMoment {
    /// So long after midnight, on the day on which the record begins or on the next one.
    TimeOfDay(Duration),
    /// So long after the beginning of 1970.
    Instant(Duration),
}

/// One setting in the place of the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedSetting {
    place: ChangedPlace,
    key: &'static str,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangedPlace {
    Annotation,
    ConfigMap,
}

fn setting(text: &str) -> Result<ChangedSetting, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{} is no setting; write KEY=VALUE, such as window=30s", shown(text)))?;
    let (key, value) = (key.trim(), value.trim().to_owned());
    if let Some(name) = annotation_named(key) {
        let value = annotation_value(name, &value);
        return Ok(ChangedSetting { place: ChangedPlace::Annotation, key: name, value });
    }
    // Several keys of the ConfigMap have the name of an annotation; with its own name in front each is meant.
    let own = key.strip_prefix(CONFIG_MAP_NAME).and_then(|rest| rest.strip_prefix('/')).unwrap_or(key);
    if let Some(name) = config_map_keys().find(|&name| name == own) {
        return Ok(ChangedSetting { place: ChangedPlace::ConfigMap, key: name, value });
    }
    let near = did_you_mean(key, short_names().chain(config_map_keys()));
    Err(format!(
        "{} is neither an annotation nor a key of ConfigMap {CONFIG_MAP_NAME}; docs/reference/annotations.md and docs/reference/config-autoscaler.md list them{near}",
        shown(key)
    ))
}

fn moment(text: &str) -> Result<RecordMoment, String> {
    let advice = || "write a time of UTC, such as 12:03:20 or 2026-11-27T12:03:20".to_owned();
    let of_day = time_of_day(text.trim_end_matches('Z')).map(RecordMoment::TimeOfDay);
    of_day.or_else(|| instant(text).map(RecordMoment::Instant)).ok_or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_of_day_or_of_a_date() {
        let of_day = Duration::from_secs(12 * 3_600 + 3 * 60 + 20);
        assert_eq!(moment("12:03:20"), Ok(RecordMoment::TimeOfDay(of_day)));
        assert_eq!(moment("12:03"), Ok(RecordMoment::TimeOfDay(Duration::from_secs(12 * 3_600 + 3 * 60))));
        let at = Duration::from_secs(1_795_737_600) + of_day;
        assert_eq!(moment("2026-11-27T12:03:20Z"), Ok(RecordMoment::Instant(at)));
        for text in ["", "12", "24:00:00", "12:60", "12:03:20:1", "2026-13-01T00:00:00", "yesterday"] {
            assert!(moment(text).is_err_and(|advice| advice.contains("12:03:20")), "{text}");
        }
    }

    #[test]
    fn a_setting_is_an_annotation_or_a_key_of_the_config_map() {
        let read = |text| setting(text).expect("a setting");
        assert_eq!(read("window=30s").key, "autoscaling.knative.dev/window");
        assert_eq!(read("min-scale=1").place, ChangedPlace::Annotation);
        assert_eq!(read("class=ahpa").value, "ahpa.autoscaling.knative.dev");
        let key = read("config-autoscaler/min-scale=1");
        assert_eq!((key.place, key.key), (ChangedPlace::ConfigMap, "min-scale"));
        assert_eq!(read("max-scale-up-rate=2").place, ChangedPlace::ConfigMap);
        for (text, expected) in
            [("window", "is no setting; write KEY=VALUE"), ("windw=30s", "did you mean window?")]
        {
            let error = setting(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
