//! Takes values out of an environment and keeps a list of what is wrong with it.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use dataplane::probe::Probe;
use runtime::{LoggedRevision, Observability, RequestReporting, TracingProblem, TracingSettings};
use serde_json::Value;
use vocabulary::{format_duration, nearest, parse_duration};

use super::{Config, Environment, Findings, LoggedProbes};

/// An environment being read.
pub(super) struct Reading<'e> {
    environment: &'e Environment,
    findings: Findings,
}

impl<'e> Reading<'e> {
    pub(super) fn new(environment: &'e Environment) -> Self {
        Self { environment, findings: Findings::default() }
    }

    /// The configuration and its warnings, unless there is a problem.
    pub(super) fn finish(self, config: Config) -> Result<(Config, Vec<String>), Findings> {
        if self.findings.problems.is_empty() {
            Ok((config, self.findings.warnings))
        } else {
            Err(self.findings)
        }
    }

    pub(super) fn problem(&mut self, problem: String) {
        self.findings.problems.push(problem);
    }

    /// Misspelt variables would otherwise be silently without effect.
    pub(super) fn refuse_unknown(&mut self, prefix: &str, known: &[&str]) {
        for name in self.environment.keys() {
            if name.starts_with(prefix) && !known.contains(&name.as_str()) {
                let likely = nearest(name, known.iter().copied());
                let hint = likely.map_or(String::new(), |likely| format!("; did you mean {}?", likely.name));
                self.findings.problems.push(format!("{name} is unknown{hint}"));
            }
        }
    }

    pub(super) fn warn_if_used(&mut self, name: &str, nothing: &[&str]) {
        if let Some(value) = self.text(name)
            && !nothing.contains(&value)
        {
            self.findings.warnings.push(format!("{name} has no effect yet"));
        }
    }

    /// Knative's settings of what is told about each request. A protocol of traces that is not ours is no reason to serve nobody: it may be meant for others.
    pub(super) fn observability(&mut self, name: &str) -> (RequestReporting, LoggedProbes) {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else { return Default::default() };
        let mut settings: Observability = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(error) => {
                self.problem(format!("{name} is not understood: {error}; write a JSON object"));
                return Default::default();
            }
        };
        if let Err(problem @ TracingProblem::Protocol(_)) = settings.tracing.plan() {
            self.findings.warnings.push(format!("{name}: tracing.protocol {problem}; there are no traces"));
            settings.tracing = TracingSettings::default();
        }
        let probes = if settings.enable_probe_request_log { LoggedProbes::All } else { LoggedProbes::None };
        let reporting = settings.reporting().unwrap_or_else(|problem| {
            self.problem(format!("{name}: {problem}"));
            RequestReporting::default()
        });
        (reporting, probes)
    }

    pub(super) fn logged_revision(&self) -> LoggedRevision {
        let text = |name| self.text(name).unwrap_or_default().to_owned();
        LoggedRevision {
            name: text("SERVING_REVISION"),
            namespace: text("SERVING_NAMESPACE"),
            service: text("SERVING_SERVICE"),
            configuration: text("SERVING_CONFIGURATION"),
            pod_name: text("SERVING_POD"),
            pod_ip: text("SERVING_POD_IP"),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'e str> {
        self.environment.get(name).map(String::as_str)
    }

    pub(super) fn required_text(&mut self, name: &str) -> &'e str {
        let text = self.text(name);
        if text.is_none() {
            self.problem(format!("{name} is missing"));
        }
        text.unwrap_or_default()
    }

    /// A whole number that must be there. Negative ones mean none, as in Knative.
    pub(super) fn required_count(&mut self, name: &str) -> u32 {
        let text = self.required_text(name);
        self.count(name, text).unwrap_or_default()
    }

    /// Whole seconds; 0 means no limit.
    pub(super) fn seconds(&mut self, name: &str) -> Option<Duration> {
        let text = self.text(name).filter(|text| !text.is_empty())?;
        let seconds = self.count(name, text)?;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    pub(super) fn required_seconds(&mut self, name: &str) -> Option<Duration> {
        self.required_text(name);
        self.seconds(name)
    }

    fn count(&mut self, name: &str, text: &str) -> Option<u32> {
        match (text.parse::<i64>(), self.environment.contains_key(name)) {
            (Ok(count), _) => Some(u32::try_from(count.max(0)).unwrap_or(u32::MAX)),
            (Err(_), true) => {
                self.problem(format!("{name} is {text:?}, which is not a whole number"));
                None
            }
            // It is missing, which was said already.
            (Err(_), false) => None,
        }
    }

    /// A port that must be there and cannot be "any".
    pub(super) fn required_port(&mut self, name: &str) -> u16 {
        let port = self.required_port_or_any(name);
        if port == 0 && self.text(name).is_some_and(|text| text.parse::<u16>().is_ok()) {
            self.problem(format!("{name} is 0; write the port from 1 to 65535 that the app listens on"));
        }
        port
    }

    pub(super) fn required_port_or_any(&mut self, name: &str) -> u16 {
        if self.text(name).is_none() {
            self.problem(format!("{name} is missing"));
        }
        self.port_or(name, 0)
    }

    pub(super) fn port_or(&mut self, name: &str, default: u16) -> u16 {
        self.parsed(name, "a port from 0 to 65535").unwrap_or(default)
    }

    pub(super) fn address_or(&mut self, name: &str, default: IpAddr) -> IpAddr {
        self.parsed(name, "an IP address").unwrap_or(default)
    }

    /// A value whose errors say all that may be said; empty means none.
    pub(super) fn checked<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name).filter(|text| !text.is_empty())?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(format!("{name} {error}"));
                None
            }
        }
    }

    /// Values with commas between them; empty means none.
    pub(super) fn list<T: FromStr<Err: Display>>(&mut self, name: &str) -> Vec<T> {
        let parts = self.text(name).unwrap_or_default().split(',').map(str::trim);
        let mut values = Vec::new();
        for part in parts.filter(|part| !part.is_empty()) {
            match part.parse() {
                Ok(value) => values.push(value),
                Err(error) => self.problem(format!("{name}: {part:?} {error}")),
            }
        }
        values
    }

    fn parsed<T: FromStr>(&mut self, name: &str, what: &str) -> Option<T> {
        let text = self.text(name)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.problem(format!("{name} is {text:?}, which is not {what}"));
        }
        parsed
    }

    pub(super) fn duration_or(&mut self, name: &str, default: Duration) -> Duration {
        let Some(text) = self.text(name) else { return default };
        match parse_duration(text) {
            Ok(duration) => duration,
            Err(error) => {
                self.problem(format!("{name} is {text:?}, which {error}"));
                default
            }
        }
    }

    pub(super) fn duration_up_to(&mut self, name: &str, default: Duration, most: Duration) -> Duration {
        let duration = self.duration_or(name, default);
        if duration <= most {
            return duration;
        }
        let [written, most] = [duration, most].map(format_duration);
        self.problem(format!("{name} is {written}; write a duration from 0s to {most}"));
        default
    }

    /// A probe as JSON; empty means none. Of Knative's array for several containers the first is run.
    pub(super) fn probe(&mut self, name: &str, app_port: u16) -> Option<Probe> {
        let text = self.text(name).filter(|text| !text.trim().is_empty())?;
        let texts: Vec<String> = match serde_json::from_str(text) {
            Ok(Value::Array(several)) => several.iter().map(Value::to_string).collect(),
            Ok(_) | Err(_) => vec![text.to_owned()],
        };
        if texts.len() > 1 {
            self.findings.warnings.push(format!("{name} has {} probes; only the first is run", texts.len()));
        }
        let mut probes = Vec::new();
        for text in &texts {
            match Probe::parse(text, app_port) {
                Ok(probe) => {
                    if probe.is_weaker {
                        self.findings.warnings.push(format!(
                            "{name} asks over HTTPS; only whether the port accepts connections is checked"
                        ));
                    }
                    probes.push(probe);
                }
                Err(problem) => self.problem(format!("{name} {problem}")),
            }
        }
        probes.into_iter().next()
    }
}
