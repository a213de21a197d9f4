//! Single settings of a pod template, for programs that make pods and read nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{IgnoredUserAgents, Problem};

use crate::keys::{PROGRESS_DEADLINE_ANNOTATION, SettingKey, annotation as keys};
use crate::limits;
use crate::reader::{SettingsPlace, SettingsReader};

/// The user agents whose requests are not measured, where the annotations of a template say so.
pub fn ignored_user_agents(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<IgnoredUserAgents>, Problem> {
    let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
    let agents = reader.user_agents(&keys::IGNORE_USER_AGENTS);
    the_only_problem(reader, agents)
}

/// How long requests without a timeout may take in a drain, where the annotations of a template say so.
pub fn drain_limit(annotations: &BTreeMap<String, String>) -> Result<Option<Duration>, Problem> {
    let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
    let limit = reader.duration(&keys::DRAIN_LIMIT, &limits::DRAIN_LIMIT);
    the_only_problem(reader, limit)
}

/// How long a pod may take to get ready, where the annotations say so ([`PROGRESS_DEADLINE_ANNOTATION`]). An
/// empty text says nothing, as in Knative.
pub fn progress_deadline(annotations: &BTreeMap<String, String>) -> Result<Option<Duration>, Problem> {
    const KEY: SettingKey = SettingKey { name: PROGRESS_DEADLINE_ANNOTATION, old: None };
    let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
    if reader.entry(&KEY).is_some_and(|entry| entry.value.is_empty()) {
        return Ok(None);
    }
    let deadline = reader.duration(&KEY, &limits::WHOLE_SECONDS);
    the_only_problem(reader, deadline)
}

/// Of a reader that has read one setting.
fn the_only_problem<Value>(reader: SettingsReader<'_>, value: Value) -> Result<Value, Problem> {
    match reader.finish(value) {
        Ok(checked) => Ok(checked.value),
        Err(mut problems) => Err(problems.remove(0)),
    }
}
