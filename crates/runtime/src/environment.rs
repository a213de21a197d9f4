//! Takes a program's settings out of its environment, one after the other, and collects what is wrong with
//! them.
//!
//! A variable that is set to nothing counts as not set, except where nothing is a legal value: manifests
//! write one to mean the other. Kubernetes sets variables of its own in every pod, about each Service of the
//! namespace and named after it ([service links]): those of one that is called as our variables begin are not
//! ours. What a program reads and what each of its variables means is said where the
//! program is.
//!
//! [service links]: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use vocabulary::{CheckedValue, Findings, Problem, did_you_mean, format_duration, parse_duration, shown};

use crate::browsers::TrustedHosts;
use crate::observability::{Observability, RequestReporting};
use crate::traces::{TracingProblem, TracingSettings};

/// The environment, or a test's idea of it.
pub type Environment = BTreeMap<String, String>;

/// An environment being read; see the module.
#[derive(Debug)]
pub struct EnvironmentReader<'e> {
    environment: &'e Environment,
    findings: Findings,
}

impl<'e> EnvironmentReader<'e> {
    /// Nothing of it was read yet.
    pub fn new(environment: &'e Environment) -> Self {
        Self { environment, findings: Findings::default() }
    }

    /// The value that was made of it, or everything that is wrong with it.
    pub fn finish<Value>(self, value: Value) -> Result<CheckedValue<Value>, Vec<Problem>> {
        self.findings.finish(value)
    }

    /// Refuses a variable; `flaw` continues the sentence that names it.
    pub fn refuse(&mut self, name: &str, flaw: &str) {
        self.findings.refuse_place(name, flaw);
    }

    /// Says a word about a variable that is accepted; `flaw` continues the sentence that names it.
    pub fn warn(&mut self, name: &str, flaw: &str) {
        self.findings.warn(name, flaw);
    }

    fn refuse_value(&mut self, name: &str, text: &str, flaw: &str) {
        self.findings.refuse(name, &shown(text), flaw);
    }

    /// Misspelt variables would otherwise be silently without effect.
    pub fn refuse_unknown(&mut self, prefix: &str, known: &[&str]) {
        for name in self.environment.keys() {
            if name.starts_with(prefix) && !known.contains(&name.as_str()) && !self.is_service_link(name) {
                let hint = did_you_mean(name, known.iter().copied());
                self.findings.refuse_place(name, &format!("is unknown{hint}"));
            }
        }
    }

    /// Whether Kubernetes says with it where a Service is: each Service has one named `NAME_SERVICE_HOST`,
    /// and several beside it.
    fn is_service_link(&self, name: &str) -> bool {
        let is_service = |stem: &str| self.environment.contains_key(&format!("{stem}_SERVICE_HOST"));
        let ends = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].into_iter();
        // `_SERVICE_PORT_HTTP`, `_PORT_80_TCP_ADDR`
        let stems = ends.flat_map(|end| name.match_indices(end).map(|(at, end)| (at, at + end.len())));
        stems
            .filter(|(_, end)| name[*end..].is_empty() || name[*end..].starts_with('_'))
            .any(|(at, _)| is_service(&name[..at]))
    }

    /// The value of a variable, which may be empty; `None` if it is not set, or set by Kubernetes for a
    /// Service.
    pub fn written(&self, name: &str) -> Option<&'e str> {
        let written = self.environment.get(name)?;
        // A Service called `ebb-metrics` makes an `EBB_METRICS_PORT` where the pod says nothing of that name.
        let is_of_kubernetes = written.contains("://") && self.is_service_link(name);
        (!is_of_kubernetes).then_some(written)
    }

    /// The value of a variable; `None` if it is not set or empty.
    pub fn text(&self, name: &str) -> Option<&'e str> {
        self.written(name).filter(|text| !text.is_empty())
    }

    /// The value of a variable, or `default` if it is not set or empty.
    pub fn text_or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or(default).to_owned()
    }

    /// The first of several variables that is set; `why` says what it is needed for.
    pub fn required(&mut self, names: &[&str], why: &str) -> &'e str {
        let text = names.iter().find_map(|name| self.text(name));
        if text.is_none()
            && let Some(first) = names.first()
        {
            self.refuse(first, &format!("is not set; {why}"));
        }
        text.unwrap_or_default()
    }

    /// The value of a variable, which may be empty; a problem if it is not set.
    pub fn required_text(&mut self, name: &str) -> &'e str {
        let text = self.written(name);
        if text.is_none() {
            self.refuse(name, "is missing");
        }
        text.unwrap_or_default()
    }

    /// The choice that a variable names; the first choice if it is not set or empty.
    pub fn choice<Choice: Copy>(&mut self, name: &str, choices: &[(&str, Choice)]) -> Choice {
        let (_, default) = *choices.first().expect("a choice has something to choose");
        let Some(text) = self.text(name) else { return default };
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let words: Vec<String> =
                choices.iter().filter(|(word, _)| !word.is_empty()).map(|(word, _)| shown(word)).collect();
            self.refuse(name, &format!("is {}; write {} or leave it out", shown(text), words.join(", ")));
        }
        chosen.map_or(default, |(_, choice)| *choice)
    }

    /// A whole number that must be there. Negative ones mean none, as in Knative.
    pub fn required_count(&mut self, name: &str) -> u32 {
        self.required_text(name);
        self.count(name).unwrap_or_default()
    }

    /// Whole seconds; 0 means no limit.
    pub fn seconds(&mut self, name: &str) -> Option<Duration> {
        self.text(name)?;
        self.count(name).filter(|&seconds| seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Whole seconds that must be there.
    pub fn required_seconds(&mut self, name: &str) -> Option<Duration> {
        self.required_text(name);
        self.seconds(name)
    }

    fn count(&mut self, name: &str) -> Option<u32> {
        let text = self.written(name)?;
        let count = text.parse::<i64>().ok();
        if count.is_none() {
            self.refuse_value(name, text, "is not a whole number");
        }
        count.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    }

    /// A number within bounds, both included; `None` where nothing is written.
    pub fn number(&mut self, name: &str, least: usize, most: usize) -> Option<usize> {
        let text = self.written(name)?;
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.refuse(name, &format!("is {}; write a number from {least} to {most}", shown(text)));
        }
        number
    }

    /// A port that must be there and cannot be "any".
    pub fn required_port(&mut self, name: &str) -> u16 {
        let port = self.required_port_or_any(name);
        if port == 0 && self.written(name).is_some_and(|text| text.parse::<u16>().is_ok()) {
            self.refuse(name, "is 0; write the port from 1 to 65535 that the app listens on");
        }
        port
    }

    /// A port that must be there; 0 means any.
    pub fn required_port_or_any(&mut self, name: &str) -> u16 {
        self.required_text(name);
        self.port_or(name, 0)
    }

    /// A port, or else a default; 0 means any.
    pub fn port_or(&mut self, name: &str, default: u16) -> u16 {
        self.parsed(name, "a port from 0 to 65535").unwrap_or(default)
    }

    /// A port, or else a default; 0 means any, `off` none at all.
    pub fn port_or_off(&mut self, name: &str, default: u16) -> Option<u16> {
        if self.written(name) == Some("off") {
            return None;
        }
        Some(self.parsed(name, "a port from 0 to 65535, or \"off\"").unwrap_or(default))
    }

    /// A value of which nothing can be said but that it is none.
    pub fn parsed<Value: FromStr>(&mut self, name: &str, what: &str) -> Option<Value> {
        let text = self.written(name)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.refuse_value(name, text, &format!("is not {what}"));
        }
        parsed
    }

    /// An address with a port, or else a default.
    pub fn socket_address_or(&mut self, name: &str, default: &str) -> SocketAddr {
        let text = self.written(name).unwrap_or(default);
        text.parse().unwrap_or_else(|_| {
            let flaw = format!("is {}; write an address with a port, such as {default:?}", shown(text));
            self.refuse(name, &flaw);
            SocketAddr::from(([127, 0, 0, 1], 0))
        })
    }

    /// A value whose errors say all that may be said: of a secret, not what is written.
    pub fn checked<Value: FromStr<Err: Display>>(&mut self, name: &str) -> Option<Value> {
        match self.text(name)?.parse::<Value>() {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(name, &error.to_string());
                None
            }
        }
    }

    /// `EBB_TRUSTED_HOSTS`: names under which every program's pages may be asked.
    pub fn trusted_hosts(&mut self) -> TrustedHosts {
        self.checked("EBB_TRUSTED_HOSTS").unwrap_or_default()
    }

    /// Values with commas between them.
    pub fn list<Value: FromStr<Err: Display>>(&mut self, name: &str) -> Vec<Value> {
        let parts = self.text(name).unwrap_or_default().split(',').map(str::trim);
        let mut values = Vec::new();
        for part in parts.filter(|part| !part.is_empty()) {
            match part.parse::<Value>() {
                Ok(value) => values.push(value),
                Err(error) => self.refuse(&format!("{name}: {}", shown(part)), &error.to_string()),
            }
        }
        values
    }

    /// A duration, or else a default.
    pub fn duration_or(&mut self, name: &str, default: Duration) -> Duration {
        let Some(text) = self.written(name) else { return default };
        parse_duration(text).unwrap_or_else(|error| {
            self.refuse_value(name, text, &error.to_string());
            default
        })
    }

    /// A duration with a bound, or else a default.
    pub fn duration_up_to(&mut self, name: &str, default: Duration, most: Duration) -> Duration {
        let duration = self.duration_or(name, default);
        if duration <= most {
            return duration;
        }
        let [written, most] = [duration, most].map(format_duration);
        self.refuse(name, &format!("is {written}; write a duration from 0s to {most}"));
        default
    }

    /// Knative's settings of what is told about each request (`OBSERVABILITY_CONFIG`, a JSON object), and
    /// what they mean. A protocol of traces that is not ours is no reason not to start: it may be meant for
    /// others.
    pub fn observability(&mut self, name: &str) -> (Observability, RequestReporting) {
        let Some(text) = self.text(name) else { return Default::default() };
        let mut settings: Observability = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(error) => {
                self.refuse(name, &format!("is not understood: {error}; write a JSON object"));
                return Default::default();
            }
        };
        if let Err(problem @ TracingProblem::Protocol(_)) = settings.tracing.plan() {
            self.warn(&format!("{name}: tracing.protocol"), &format!("{problem}; there are no traces"));
            settings.tracing = TracingSettings::default();
        }
        let reporting = settings.reporting().unwrap_or_else(|problem| {
            self.refuse(&format!("{name}:"), &problem.to_string());
            RequestReporting::default()
        });
        (settings, reporting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// What is wrong with one variable, as a reader finds it.
    fn problem_of<Value>(text: &str, read: impl FnOnce(&mut EnvironmentReader<'_>) -> Value) -> String {
        let environment = environment(&[("X", text)]);
        let mut reader = EnvironmentReader::new(&environment);
        read(&mut reader);
        let problems = reader.finish(()).expect_err(text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    }

    #[test]
    fn variables_that_kubernetes_sets_for_a_service_are_not_read() {
        let links = |service: &str| {
            [
                ("SERVICE_HOST", "10.96.0.7"),
                ("SERVICE_PORT", "80"),
                ("SERVICE_PORT_HTTP", "80"),
                ("PORT", "tcp://10.96.0.7:80"),
                ("PORT_80_TCP", "tcp://10.96.0.7:80"),
                ("PORT_80_TCP_PROTO", "tcp"),
                ("PORT_80_TCP_PORT", "80"),
                ("PORT_80_TCP_ADDR", "10.96.0.7"),
            ]
            .map(|(name, value)| (format!("{service}_{name}"), value.to_owned()))
        };
        let services = ["EBB", "EBB_METRICS", "EBB_0", "EBB_SERVICE_PORT"];
        let mut environment: Environment = services.into_iter().flat_map(links).collect();
        let mut reader = EnvironmentReader::new(&environment);
        reader.refuse_unknown("EBB_", &["EBB_METRICS_PORT"]);
        assert_eq!(reader.port_or("EBB_METRICS_PORT", 9095), 9095);
        reader.finish(()).expect("nothing is ours");
        // What the pod itself says is stronger, in Kubernetes too.
        environment.insert("EBB_METRICS_PORT".to_owned(), "9000".to_owned());
        // No Service has such a name, so these variables are mistakes of a user.
        let mistakes = ["EBB_STAT_PORT_80_TCP", "EBB_PORTS", "EBB_X_SERVICE_PORT"];
        environment.extend(mistakes.map(|name| (name.to_owned(), "1".to_owned())));
        let mut reader = EnvironmentReader::new(&environment);
        reader.refuse_unknown("EBB_", &["EBB_METRICS_PORT"]);
        assert_eq!(reader.port_or("EBB_METRICS_PORT", 9095), 9000);
        let problems = reader.finish(()).expect_err("three keys are unknown");
        let named: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(named, ["EBB_PORTS", "EBB_STAT_PORT_80_TCP", "EBB_X_SERVICE_PORT"]);
    }

    #[test]
    fn a_value_that_is_none_is_shown_beside_what_is_allowed() {
        let choices = [("", 0), ("one", 1), ("two", 2)];
        for (text, expected) in [
            (
                problem_of("x", |reader| reader.port_or("X", 1)),
                "X is \"x\", which is not a port from 0 to 65535",
            ),
            (problem_of("x", |reader| reader.required_count("X")), "X is \"x\", which is not a whole number"),
            (problem_of("0", |reader| reader.number("X", 1, 4)), "X is \"0\"; write a number from 1 to 4"),
            (
                problem_of("x", |reader| reader.choice("X", &choices)),
                "X is \"x\"; write \"one\", \"two\" or leave it out",
            ),
            (
                problem_of("5", |reader| reader.duration_or("X", Duration::ZERO)),
                "X is \"5\", which has no unit; write \"5s\"",
            ),
            (
                problem_of("80", |reader| reader.socket_address_or("X", "0.0.0.0:80")),
                "X is \"80\"; write an address with a port, such as \"0.0.0.0:80\"",
            ),
            (
                problem_of("", |reader| reader.required(&["X", "Y"], "it names us").len()),
                "X is not set; it names us",
            ),
            (problem_of("1", |reader| reader.refuse_unknown("X", &["XX"])), "X is unknown"),
        ] {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn nothing_is_as_good_as_not_written_where_it_is_no_value() {
        let environment = environment(&[("X", "")]);
        let mut reader = EnvironmentReader::new(&environment);
        assert_eq!(reader.text_or("X", "default"), "default");
        assert_eq!(reader.choice("X", &[("one", 1), ("two", 2)]), 1);
        assert_eq!((reader.seconds("X"), reader.list::<u16>("X")), (None, vec![]));
        assert_eq!(reader.observability("X"), Default::default());
        assert_eq!(reader.finish(()).map(|checked| checked.warnings), Ok(vec![]));
    }

    /// A program of ours that starts with settings for others' collectors works.
    #[test]
    fn a_protocol_of_traces_that_is_not_ours_is_a_warning() {
        let environment = environment(&[("X", r#"{"enableRequestLog":true,"tracing":{"protocol":"grpc"}}"#)]);
        let mut reader = EnvironmentReader::new(&environment);
        let (_, reporting) = reader.observability("X");
        assert!(reporting.traces.is_none() && reporting.log.is_some(), "{reporting:?}");
        let warnings = reader.finish(()).expect("only a warning").warnings;
        assert!(warnings[0].message.starts_with("X: tracing.protocol is \"grpc\"; write"), "{warnings:?}");
    }
}
