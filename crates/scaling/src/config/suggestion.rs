//! What somebody who wrote an unknown key probably meant.

use super::keys::{ANNOTATION_PREFIXES, CONFIG_MAP_NAME, annotation, config_map};

/// Below this likeness (0 … 1) a suggestion misleads more than it helps.
const LIKENESS_MIN: f64 = 0.55;

/// What to do about an annotation under one of our prefixes that nobody reads.
pub(super) fn for_annotation(written: &str) -> String {
    let suffix = suffix(written);
    let known = annotation::ALL.iter().map(|key| key.name);
    match nearest(suffix, known) {
        // Ours of that name is for class hpa alone.
        _ if suffix == config_map::STABLE_WINDOW.name => format!("write {}", annotation::WINDOW.name),
        Some((key, likeness)) if likeness > 0.999 => format!("write {key}"),
        _ if config_map::ALL.iter().any(|key| key.name == suffix) => format!(
            "{suffix} applies to all revisions alike: remove it here and set it in ConfigMap {CONFIG_MAP_NAME}"
        ),
        Some((key, _)) => format!("did you mean {key}?"),
        None => "remove it; docs/configuration.md lists those that exist".to_owned(),
    }
}

/// What to do about a key of the ConfigMap that nobody reads.
pub(super) fn for_config_map(written: &str) -> String {
    match nearest(suffix(written), config_map::ALL.iter().map(|key| key.name)) {
        Some((key, likeness)) if likeness > 0.999 => format!("write {key}"),
        Some((key, _)) => format!("did you mean {key}?"),
        None => "remove it; docs/configuration.md lists those that exist".to_owned(),
    }
}

/// The known annotation that one outside our prefixes was probably meant to be: `autoscaling.knative.de/min-scale`.
pub(super) fn misspelt_prefix(written: &str) -> Option<&'static str> {
    // The distance between `ebb.dev` and another seven-letter domain is too small to mean anything, so only the long prefix is tried.
    let [prefix, _] = ANNOTATION_PREFIXES;
    let (domain, name) = written.split_once('/')?;
    let alike = strsim::normalized_damerau_levenshtein(domain, prefix.trim_end_matches('/')) > 0.85;
    let meant = annotation::ALL.iter().find(|key| suffix(key.name) == kebab(name))?;
    alike.then_some(meant.name)
}

/// The most similar of the known keys, compared without prefix, and how similar it is.
fn nearest(written: &str, known: impl Iterator<Item = &'static str>) -> Option<(&'static str, f64)> {
    let written = kebab(written);
    known
        .map(|key| (key, strsim::normalized_damerau_levenshtein(&written, suffix(key))))
        .filter(|(_, likeness)| *likeness >= LIKENESS_MIN)
        .max_by(|(_, left), (_, right)| left.total_cmp(right))
}

fn suffix(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, suffix)| suffix)
}

/// `minScale` and `min_scale` as `min-scale`. Cut at a length that no key reaches: likeness costs the product of both lengths.
fn kebab(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars().take(100) {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.push(if letter == '_' { '-' } else { letter.to_ascii_lowercase() });
    }
    words
}
