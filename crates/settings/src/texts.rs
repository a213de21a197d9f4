//! The texts from which settings were read, for a record of a run: a record that held the settings themselves
//! could not be read by a later program.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::keys::SettingKey;

/// The texts of one place (annotations, ConfigMap) under the keys that ebb reads; all other texts of the
/// place are left out. Cheap to clone. Settings that no reader made have none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SettingsTexts(Arc<BTreeMap<String, String>>);

/// Texts are no part of what settings mean: settings that two spellings gave are the same settings.
impl PartialEq for SettingsTexts {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl SettingsTexts {
    /// The texts under these keys, in either of their spellings.
    pub(super) fn of<'k>(
        values: &BTreeMap<String, String>,
        keys: impl IntoIterator<Item = &'k SettingKey>,
    ) -> Self {
        let spellings = keys.into_iter().flat_map(|key| [Some(key.name), key.old]).flatten();
        let written = spellings.filter_map(|name| values.get_key_value(name));
        Self(Arc::new(written.map(|(key, text)| (key.clone(), text.clone())).collect()))
    }

    /// Each key with its text, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, text)| (key.as_str(), text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::annotation;
    use super::*;

    #[test]
    fn texts_of_other_programs_are_left_out_and_both_spellings_are_kept() {
        let written = [
            ("autoscaling.knative.dev/minScale", "2"),
            ("autoscaling.knative.dev/target", "7"),
            ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ];
        let values = written.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        let texts = SettingsTexts::of(&values, annotation::ALL);
        assert_eq!(texts.iter().collect::<Vec<_>>(), written[..2]);
        assert_eq!(texts, SettingsTexts::default(), "texts are no part of the meaning");
    }
}
