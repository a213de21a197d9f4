//! How do recorded texts become settings again?
//!
//! By the readers that read them first, so a record of an older program means what its texts mean now. Facts
//! of a revision may be older than the configuration beside them: an annotation that was accepted stays in
//! force when a limit of the ConfigMap falls below it. So recorded annotations are read without the limits of
//! the ConfigMap. A setting that is changed for a replay ([`SettingsChanges`]) has to keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

use settings::{CONFIG_MAP_NAME, Class, ClusterConfig, RevisionSettings};
use vocabulary::{HeadSizeLimit, PodCount, Problem, RevisionName};

use crate::frame_fault::FrameFault;

/// Settings that a replay puts in the place of the recorded ones, by their whole keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChanges {
    /// Annotations, which every revision gets.
    pub annotations: BTreeMap<String, String>,
    /// Keys of the ConfigMap `config-autoscaler`.
    pub config_map: BTreeMap<String, String>,
}

impl SettingsChanges {
    /// Whether all settings stay as they were recorded.
    pub fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.config_map.is_empty()
    }
}

/// Reads settings out of a record, under the configuration that was read last.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsRereader {
    config: Arc<ClusterConfig>,
    changes: SettingsChanges,
}

impl SettingsRereader {
    pub(crate) fn new(changes: SettingsChanges) -> Self {
        Self { config: Arc::default(), changes }
    }

    /// The configuration, which the annotations that come next are read under.
    pub(crate) fn read_config(
        &mut self,
        mut texts: BTreeMap<String, String>,
    ) -> Result<Arc<ClusterConfig>, FrameFault> {
        texts.extend(self.changes.config_map.clone());
        let owner = format!("ConfigMap {CONFIG_MAP_NAME}");
        let checked = ClusterConfig::parse(&texts).map_err(|problems| refused(owner, &problems))?;
        self.config = Arc::new(checked.value);
        Ok(Arc::clone(&self.config))
    }

    /// The settings of one revision.
    pub(crate) fn read_annotations(
        &self,
        revision: &RevisionName,
        texts: &BTreeMap<String, String>,
    ) -> Result<RevisionSettings, FrameFault> {
        let owner = || revision.to_string();
        if self.changes.annotations.is_empty() {
            return self.read_without_limits(texts).map_err(|problems| refused(owner(), &problems));
        }
        let changed: BTreeMap<String, String> = texts
            .iter()
            .chain(&self.changes.annotations)
            .map(|(key, text)| (key.clone(), text.clone()))
            .collect();
        match RevisionSettings::read(&changed, &self.config, None) {
            Ok(checked) => Ok(checked.value),
            // What was refused already is not refused because of the change.
            Err(_) if RevisionSettings::read(texts, &self.config, None).is_err() => {
                self.read_without_limits(&changed).map_err(|problems| refused(owner(), &problems))
            }
            Err(problems) => Err(refused(owner(), &problems)),
        }
    }

    /// The settings, whatever the ConfigMap allows by now. Where no annotation names a class, that of the
    /// ConfigMap may have been another one when the annotations were accepted.
    fn read_without_limits(
        &self,
        texts: &BTreeMap<String, String>,
    ) -> Result<RevisionSettings, Vec<Problem>> {
        let read = |class: &Class| {
            let config = ClusterConfig {
                pod_autoscaler_class: class.clone(),
                allow_zero_initial_scale: true,
                max_scale_limit: PodCount::ZERO,
                head_size_limit: HeadSizeLimit::MAX,
                ..ClusterConfig::default()
            };
            RevisionSettings::read(texts, &config, None).map(|checked| checked.value)
        };
        let present = read(&self.config.pod_autoscaler_class);
        present.or_else(|problems| read(&Class::Kpa).or_else(|_| read(&Class::Hpa)).map_err(|_| problems))
    }
}

fn refused(owner: String, problems: &[Problem]) -> FrameFault {
    let problems = problems.iter().map(|problem| problem.message.clone()).collect();
    FrameFault::SettingsRefused { owner, problems }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    fn revision() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("three parts")
    }

    #[test]
    fn an_annotation_outlives_the_limit_that_it_was_accepted_under_and_a_change_does_not() {
        const MAX_SCALE: &str = "autoscaling.knative.dev/max-scale";
        let limit = texts(&[("max-scale-limit", "10"), ("max-scale", "10")]);
        let mut recorded = SettingsRereader::default();
        recorded.read_config(limit.clone()).expect("a sound ConfigMap");
        let read = recorded.read_annotations(&revision(), &texts(&[(MAX_SCALE, "50")]));
        assert_eq!(read.map(|settings| settings.max_scale), Ok(Some(PodCount::new(50))));

        let changes =
            SettingsChanges { annotations: texts(&[(MAX_SCALE, "50")]), ..SettingsChanges::default() };
        let mut with_limit = SettingsRereader::new(changes);
        with_limit.read_config(limit).expect("a sound ConfigMap");
        let fault =
            with_limit.read_annotations(&revision(), &texts(&[(MAX_SCALE, "5")])).expect_err("50 of 10");
        assert!(fault.to_string().contains("is above max-scale-limit"), "{fault}");
        assert!(
            fault.to_string().starts_with("the settings of default/service/hello are refused"),
            "{fault}"
        );
    }

    #[test]
    fn a_changed_key_of_the_config_map_takes_the_place_of_the_recorded_one() {
        let changes =
            SettingsChanges { config_map: texts(&[("stable-window", "30s")]), ..SettingsChanges::default() };
        let config = SettingsRereader::new(changes).read_config(texts(&[("stable-window", "90s")]));
        assert_eq!(config.map(|config| config.stable_window.as_secs()), Ok(30));
        let changes =
            SettingsChanges { config_map: texts(&[("stable-window", "1")]), ..SettingsChanges::default() };
        assert!(SettingsRereader::new(changes).read_config(BTreeMap::new()).is_err());
    }
}
