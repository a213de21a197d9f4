//! How many requests may a pod on a cluster have at once, and how long may they take? The annotations of its
//! template say so. Its queue-proxy is started with it, so it changes by rollout.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{Problem, RequestTimeouts};

use super::keys::pod_limit;
use super::limits;
use super::reader::{SettingsPlace, SettingsReader};

/// Limits of a pod's requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// `ebb.dev/container-concurrency`: 0 … 1000; 0 means no limit.
    pub container_concurrency: u32,
    /// `ebb.dev/timeout`, `ebb.dev/response-start-timeout` and `ebb.dev/idle-timeout`: whole seconds; 0 s
    /// means no limit.
    pub timeouts: RequestTimeouts,
}

impl RequestLimits {
    /// Reads them from the annotations of a template. What is wrong limits nothing, and is told.
    pub fn read(annotations: &BTreeMap<String, String>) -> (Self, Vec<Problem>) {
        let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
        let concurrency = reader.count(&pod_limit::CONCURRENCY, &limits::CONTAINER_CONCURRENCY);
        let mut timeout = |key| {
            let written = reader.duration(key, &limits::WHOLE_SECONDS);
            written.filter(|timeout| *timeout > Duration::ZERO)
        };
        let timeouts = RequestTimeouts {
            request: timeout(&pod_limit::TIMEOUT),
            response_start: timeout(&pod_limit::RESPONSE_START_TIMEOUT),
            idle: timeout(&pod_limit::IDLE_TIMEOUT),
            ..RequestTimeouts::default()
        };
        let limits = Self { container_concurrency: concurrency.unwrap_or_default().value(), timeouts };
        (limits, reader.finish(()).err().unwrap_or_default())
    }

    /// Whether an annotation is one of them.
    pub fn is_key(annotation: &str) -> bool {
        pod_limit::ALL.iter().any(|key| key.name == annotation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &[(&str, &str)]) -> (RequestLimits, Vec<String>) {
        let written = written.iter().map(|(key, value)| (format!("ebb.dev/{key}"), (*value).to_owned()));
        let (limits, problems) = RequestLimits::read(&written.collect());
        (limits, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn nothing_and_zero_limit_nothing() {
        let zeros = [
            ("container-concurrency", "0"),
            ("timeout", "0s"),
            ("response-start-timeout", "0s"),
            ("idle-timeout", "0s"),
        ];
        assert_eq!((read(&[]), read(&zeros)), (Default::default(), Default::default()));
    }

    #[test]
    fn valid_limits_apply_and_every_problem_names_place_value_and_remedy() {
        let (limits, problems) = read(&[
            ("container-concurrency", "1001"),
            ("timeout", "90s"),
            ("response-start-timeout", "1500ms"),
            ("idle-timeout", "soon"),
        ]);
        let request = Some(Duration::from_secs(90));
        assert_eq!(limits.timeouts, RequestTimeouts { request, ..RequestTimeouts::default() });
        assert_eq!(limits.container_concurrency, 0);
        let told = problems.join("\n");
        for words in [
            r#"annotation ebb.dev/container-concurrency is "1001""#,
            "a whole number from 0 to 1000, where 0 means no limit",
            r#"annotation ebb.dev/response-start-timeout is "1500ms""#,
            "in whole seconds",
            "annotation ebb.dev/idle-timeout",
            "soon",
        ] {
            assert!(told.contains(words), "{words} is missing in:\n{told}");
        }
    }

    #[test]
    fn the_largest_values_are_taken() {
        let (limits, problems) = read(&[("container-concurrency", "1000"), ("idle-timeout", "24h")]);
        assert_eq!((limits.container_concurrency, problems), (1000, Vec::<String>::new()));
        assert_eq!(limits.timeouts.idle, Some(Duration::from_hours(24)));
    }

    #[test]
    fn keys_of_request_limits_are_known() {
        for (key, is_one) in [("ebb.dev/timeout", true), ("ebb.dev/drain-limit", false), ("timeout", false)] {
            assert_eq!(RequestLimits::is_key(key), is_one, "{key}");
        }
    }
}
