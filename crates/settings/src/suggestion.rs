//! The known key that an unknown key probably stands for.

use vocabulary::{likeness, nearest};

use super::keys::{
    ANNOTATION_PREFIXES, CONFIG_MAP_NAME, PROGRESS_DEADLINE_ANNOTATION, annotation, config_map, injection,
    pod_limit,
};

/// The remedy for an annotation under one of our prefixes that is not read.
pub(super) fn for_annotation(written: &str) -> String {
    // The injector reads these annotations itself, and passes them to no other reader.
    if injection::ALL.iter().any(|key| key.name == written) {
        return "it means something on the pod template of a workload on a cluster only: remove it"
            .to_owned();
    }
    if pod_limit::ALL.iter().any(|key| key.name == written) {
        return "on a cluster it stands on the pod template, whose pods it limits; remove it anywhere else"
            .to_owned();
    }
    let written = suffix(written);
    // Compared without their prefixes, which would make everything alike.
    let mut keys = annotation::ALL.iter().chain(injection::ALL);
    let likely = nearest(written, keys.clone().map(|key| suffix(key.name)));
    let meant = likely.and_then(|likely| {
        let key = keys.find(|key| suffix(key.name) == likely.name)?;
        Some((key.name, likely.is_same_words))
    });
    match meant {
        // Ours of that name is for class hpa alone.
        _ if written == config_map::STABLE_WINDOW.name => format!("write {}", annotation::WINDOW.name),
        Some((key, true)) => format!("write {key}"),
        _ if config_map::ALL.iter().any(|key| key.name == written) => format!(
            "{written} applies to all revisions alike: remove it here and set it in ConfigMap {CONFIG_MAP_NAME}"
        ),
        Some((key, false)) => format!("did you mean {key}?"),
        None => "remove it; docs/reference/annotations.md lists those that exist".to_owned(),
    }
}

/// The remedy for a key of the ConfigMap that is not read.
pub(super) fn for_config_map(written: &str) -> String {
    match nearest(suffix(written), config_map::ALL.iter().map(|key| key.name)) {
        Some(likely) if likely.is_same_words => format!("write {}", likely.name),
        Some(likely) => format!("did you mean {}?", likely.name),
        None => "remove it; docs/reference/config-autoscaler.md lists those that exist".to_owned(),
    }
}

/// The known annotation that one outside our prefixes was probably meant to be:
/// `autoscaling.knative.de/min-scale`.
pub(super) fn misspelt_prefix(written: &str) -> Option<&'static str> {
    // The distance between `ebb.dev` and another seven-letter domain is too small to mean anything, so only
    // the long prefix is tried.
    let [prefix, _] = ANNOTATION_PREFIXES;
    let (domain, name) = written.split_once('/')?;
    let is_alike = likeness(domain, prefix.trim_end_matches('/')) > 0.85;
    let meant = annotation::ALL.iter().find(|key| likeness(suffix(key.name), name) >= 1.0)?;
    is_alike.then_some(meant.name)
}

/// The annotation that one under Knative's other prefix was probably meant to be:
/// `serving.knative.dev/min-scale` is `autoscaling.knative.dev/min-scale`.
pub(super) fn misplaced_under_serving(written: &str) -> Option<&'static str> {
    let (prefix, deadline) = PROGRESS_DEADLINE_ANNOTATION.split_once('/')?;
    let name = written.strip_prefix(prefix)?.strip_prefix('/')?;
    let is_of_scaling = annotation::ALL.iter().find(|key| likeness(suffix(key.name), name) >= 1.0);
    let is_nearly_deadline = name != deadline && likeness(name, deadline) > 0.8;
    is_of_scaling.map(|key| key.name).or(is_nearly_deadline.then_some(PROGRESS_DEADLINE_ANNOTATION))
}

fn suffix(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, suffix)| suffix)
}
