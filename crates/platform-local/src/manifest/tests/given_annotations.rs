//! Annotations that come with the source of manifests, in place of those in the files.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::PodCount;

use super::*;

/// The Services of these files when a caller gives these annotations.
fn loaded_with(files: &Files, annotations: &[(&str, &str)]) -> Result<LoadedManifest, Vec<String>> {
    let given: BTreeMap<String, String> = annotations
        .iter()
        .map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), (*value).to_owned()))
        .collect();
    load(&files.source().with_annotations(given)).map_err(|findings| files.messages(&findings.problems))
}

fn settings_of(loaded: LoadedManifest) -> settings::RevisionSettings {
    loaded.services.into_values().next().expect("one Service").service.settings
}

#[test]
fn given_annotations_come_before_those_of_the_file_and_are_checked_with_them() {
    let annotated = in_template(
        "metadata: {annotations: {autoscaling.knative.dev/window: 2m, autoscaling.knative.dev/min-scale: \"3\"}}",
    );
    let files = Files::with(&[&annotated]);
    let settings = settings_of(loaded_with(&files, &[("window", "30s")]).expect("good annotations"));
    assert_eq!(settings.stable_window, Some(Duration::from_secs(30)));
    assert_eq!(settings.min_scale, Some(PodCount::new(3)));
    let messages = loaded_with(&files, &[("max-scale", "2")]).expect_err("3 is above 2");
    assert!(messages[0].contains("min-scale"), "{messages:?}");
}

#[test]
fn given_annotations_apply_to_a_template_without_metadata() {
    let files = Files::with(&[MINIMAL]);
    let settings = settings_of(loaded_with(&files, &[("window", "30s")]).expect("good annotations"));
    assert_eq!(settings.stable_window, Some(Duration::from_secs(30)));
    let messages = loaded_with(&files, &[("window", "5")]).expect_err("it has no unit");
    assert!(messages[0].contains("has no unit"), "{messages:?}");
}
