//! Which keys are ours, where others' may stand too? (Contract §4.1, D7.)
//!
//! In an installed Knative the webhook lets unknown keys pass, and installations carry those of vendors. A
//! configuration that is refused at start would forbid every scale-down; so an unknown key is a warning
//! here, and the rest is read as everywhere.

use std::collections::BTreeMap;

use settings::{is_unknown_annotation, is_unknown_config_key};
use vocabulary::LateTimeout;

/// What is read, and what is said about the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownKeys {
    /// The entries that are to be read.
    pub known: BTreeMap<String, String>,
    /// One sentence for each key that is not known.
    pub warnings: Vec<String>,
}

/// The entries of `config-autoscaler` whose keys are known.
pub fn known_config(data: &BTreeMap<String, String>) -> KnownKeys {
    split(data, "config-autoscaler: key", is_unknown_config_key)
}

/// The key by which people choose the end of a response that has begun when the time of its request is up.
const LATE_TIMEOUT: &str = "late-timeout";

/// What `config-autoscaler` says of late responses, and its other entries. The key is one of this place
/// alone: elsewhere a late response always ends in a reset, and the key is unknown.
pub fn late_timeout(data: &BTreeMap<String, String>) -> (LateTimeout, KnownKeys) {
    let mut keys = KnownKeys { known: data.clone(), warnings: Vec::new() };
    let Some(word) = keys.known.remove(LATE_TIMEOUT) else { return (LateTimeout::default(), keys) };
    let choice = LateTimeout::read(&word).unwrap_or_else(|| {
        keys.warnings.push(format!(
            "config-autoscaler: {LATE_TIMEOUT} is {word:?}, so late responses end in a reset; write \"reset\" or \"append\""
        ));
        LateTimeout::default()
    });
    (choice, keys)
}

/// The annotations that are known, and all that are under no prefix of ours.
pub fn known_annotations(annotations: &BTreeMap<String, String>) -> KnownKeys {
    split(annotations, "annotation", is_unknown_annotation)
}

fn split(entries: &BTreeMap<String, String>, place: &str, is_unknown: fn(&str) -> bool) -> KnownKeys {
    let mut keys = KnownKeys::default();
    for (key, value) in entries {
        if is_unknown(key) {
            let warning = format!(
                "{place} {key} is not known to ebb and has no effect; remove it, unless another program reads it"
            );
            keys.warnings.push(warning);
        } else {
            keys.known.insert(key.clone(), value.clone());
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use settings::{ClusterConfig, RevisionSettings};

    use super::*;

    /// The data of a ConfigMap, or annotations, with these entries.
    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_unknown_key_of_config_autoscaler_is_a_warning_and_the_rest_is_read() {
        let data = map(&[
            ("_example", "…"),
            ("stable-window", "30s"),
            ("vendor-switch", "on"),
            ("surge-evaluation", "false"),
        ]);
        assert!(ClusterConfig::parse(&data).is_err(), "elsewhere it is refused");
        let keys = known_config(&data);
        assert!(ClusterConfig::parse(&keys.known).is_ok() && keys.known.contains_key("surge-evaluation"));
        assert!(
            keys.warnings.len() == 1 && keys.warnings[0].contains("vendor-switch"),
            "{:?}",
            keys.warnings
        );
    }

    #[test]
    fn the_end_of_late_responses_is_a_reset_unless_a_person_wants_knatives() {
        let read = |pairs: &[(&str, &str)]| {
            let (choice, keys) = late_timeout(&map(pairs));
            (choice, keys.known.len(), keys.warnings.len())
        };
        assert_eq!(read(&[("stable-window", "30s")]), (LateTimeout::Reset, 1, 0));
        assert_eq!(read(&[("late-timeout", "append"), ("x", "y")]), (LateTimeout::Append, 1, 0));
        assert_eq!(read(&[("late-timeout", "reset")]), (LateTimeout::Reset, 0, 0));
        assert_eq!(read(&[("late-timeout", "Append")]), (LateTimeout::Reset, 0, 1));
        let elsewhere = ClusterConfig::parse(&map(&[("late-timeout", "append")]));
        assert!(elsewhere.is_err(), "it is a key of this place alone");
    }

    #[test]
    fn an_unknown_annotation_of_an_autoscaler_is_a_warning_and_the_rest_is_read() {
        let annotations = map(&[
            ("autoscaling.knative.dev/min-scale", "2"),
            ("autoscaling.knative.dev/minScale", "2"),
            ("autoscaling.knative.dev/vendor", "x"),
            ("serving.knative.dev/creator", "somebody"),
        ]);
        let keys = known_annotations(&annotations);
        assert_eq!(keys.warnings.len(), 1, "{:?}", keys.warnings);
        assert!(keys.known.contains_key("serving.knative.dev/creator"));
        let only =
            map(&[("autoscaling.knative.dev/min-scale", "2"), ("autoscaling.knative.dev/vendor", "x")]);
        let cluster = ClusterConfig::default();
        assert!(RevisionSettings::read(&only, &cluster, None).is_err(), "elsewhere it is refused");
        assert!(RevisionSettings::read(&known_annotations(&only).known, &cluster, None).is_ok());
    }
}
