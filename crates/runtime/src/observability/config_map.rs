//! The ConfigMap `config-observability`, as Knative's users keep it: what is told about each request.
//!
//! The caller finds the ConfigMap (in a file, in a folder that Kubernetes mounts, in a question of an API
//! server) and hands over its data. The keys and their meaning are defined here alone.
//!
//! The settings that Knative before 1.19 kept in `config-tracing` are in this ConfigMap since; for the older
//! one there is a text with what to write instead.

use std::collections::BTreeMap;

use vocabulary::{CheckedValue, Findings, Problem, did_you_mean, shown};

use crate::observability::Observability;
use crate::traces::{TRACING_PROTOCOL, TracingProblem};

/// The name of the ConfigMap.
pub const OBSERVABILITY_CONFIG_MAP: &str = "config-observability";

/// The ConfigMap in which Knative before 1.19 kept its settings for Zipkin.
pub const OLDER_TRACING_CONFIG_MAP: &str = "config-tracing";

const ENABLE: &str = "logging.enable-request-log";
const TEMPLATE: &str = "logging.request-log-template";
const ENABLE_PROBES: &str = "logging.enable-probe-request-log";
const TRACING: &str = "tracing-protocol";
const ENDPOINT: &str = "tracing-endpoint";
const SAMPLING: &str = "tracing-sampling-rate";
const READ: [&str; 6] = [ENABLE, TEMPLATE, ENABLE_PROBES, TRACING, ENDPOINT, SAMPLING];

/// Knative's keys that mean nothing here: metrics are served and not sent, logs are collected by the
/// operator's tools, and profiles are taken from outside.
const WITHOUT_EFFECT: [&str; 8] = [
    "metrics-protocol",
    "metrics-endpoint",
    "metrics-export-interval",
    "request-metrics-protocol",
    "request-metrics-endpoint",
    "request-metrics-export-interval",
    "runtime-profiling",
    "runtime-export-interval",
];

/// Prefixes of further keys without effect, as Knative before 1.19 names them.
const OLDER_PREFIXES: [&str; 4] =
    ["metrics.", "profiling.", "logging.enable-var-log", "logging.revision-url"];

impl Observability {
    /// Reads the data of the ConfigMap `config-observability`. Fails with all that is wrong with it, and with
    /// what else there is to say. The key of each finding stands in the data, if any does that it is about.
    pub fn parse(data: &BTreeMap<String, String>) -> Result<CheckedValue<Self>, Findings> {
        Self::parse_with(data, false)
    }

    /// The same of an installed Knative's ConfigMap, in which other programs may have keys of their own: one
    /// that is unknown is a warning.
    pub fn parse_beside_others(data: &BTreeMap<String, String>) -> Result<CheckedValue<Self>, Findings> {
        Self::parse_with(data, true)
    }

    fn parse_with(
        data: &BTreeMap<String, String>,
        has_keys_of_others: bool,
    ) -> Result<CheckedValue<Self>, Findings> {
        let (settings, findings) = (Self::default(), Findings::default());
        let mut reading = ObservabilityReading { data, settings, findings, has_keys_of_others };
        for (key, value) in data {
            reading.read_key(key, value);
        }
        reading.check_tracing();
        let ObservabilityReading { settings, findings, .. } = reading;
        if findings.problems.is_empty() {
            Ok(CheckedValue { value: settings, warnings: findings.warnings })
        } else {
            Err(findings)
        }
    }

    /// All that is to be said of that data.
    pub fn findings(data: &BTreeMap<String, String>) -> Findings {
        match Self::parse(data) {
            Ok(checked) => Findings { problems: Vec::new(), warnings: checked.warnings },
            Err(findings) => findings,
        }
    }

    /// The same in sentences for people, each of which names the ConfigMap.
    pub fn messages(data: &BTreeMap<String, String>) -> Vec<String> {
        let Findings { problems, warnings } = Self::findings(data);
        let findings = problems.into_iter().chain(warnings);
        findings.map(|problem| format!("ConfigMap {OBSERVABILITY_CONFIG_MAP}: {problem}")).collect()
    }
}

/// The text for users of the older ConfigMap: what to write instead.
pub fn instead_of_older_tracing() -> String {
    format!(
        "the ConfigMap {OLDER_TRACING_CONFIG_MAP} is of Knative before 1.19 and has no effect: Zipkin's protocol is \
         not spoken; write {TRACING}: \"{TRACING_PROTOCOL}\", {ENDPOINT}: \"http://HOST:4318/v1/traces\" and \
         {SAMPLING} (the former sample-rate) in the ConfigMap {OBSERVABILITY_CONFIG_MAP}, where HOST runs a collector \
         of OpenTelemetry, which can send them on to Zipkin"
    )
}

struct ObservabilityReading<'d> {
    data: &'d BTreeMap<String, String>,
    settings: Observability,
    findings: Findings,
    /// Whether a key that no program of ours knows may be another program's, and is not misspelt.
    has_keys_of_others: bool,
}

impl ObservabilityReading<'_> {
    fn read_key(&mut self, key: &str, value: &str) {
        match key {
            ENABLE => self.settings.enable_request_log = self.switch(key, value),
            ENABLE_PROBES => self.settings.enable_probe_request_log = self.switch(key, value),
            TEMPLATE => {
                value.clone_into(&mut self.settings.request_log_template);
                // Whether it is used or not: a person who turns the log on later should not meet what is
                // wrong with it only then.
                let checked = Observability { enable_request_log: true, ..self.settings.clone() };
                if let Err(problem) = checked.request_log() {
                    self.findings.refuse_place(key, &problem);
                }
            }
            TRACING => value.clone_into(&mut self.settings.tracing.protocol),
            ENDPOINT => value.clone_into(&mut self.settings.tracing.endpoint),
            SAMPLING => match value.parse() {
                Ok(rate) => self.settings.tracing.sampling_rate = rate,
                Err(_) => self.findings.refuse_place(
                    key,
                    &format!(
                        "is {}; write a number from 0 to 1, such as \"0.1\" for a tenth of the requests",
                        shown(value)
                    ),
                ),
            },
            "_example" => {}
            other
                if WITHOUT_EFFECT.contains(&other)
                    || OLDER_PREFIXES.iter().any(|old| other.starts_with(old)) =>
            {
                self.findings.warn(key, "has no effect: every program serves its metrics itself");
            }
            other => {
                let near = did_you_mean(other, READ.into_iter().chain(WITHOUT_EFFECT));
                let message = format!("unknown key {other} in {OBSERVABILITY_CONFIG_MAP}{near}");
                let Findings { problems, warnings } = &mut self.findings;
                let found = if self.has_keys_of_others { warnings } else { problems };
                found.push(Problem { key: key.to_owned(), message });
            }
        }
    }

    /// Checks the keys about traces together.
    fn check_tracing(&mut self) {
        match self.settings.tracing.plan() {
            Ok(Some(plan)) if plan.sampling.is_zero() => {
                let message = format!(
                    "{SAMPLING} is 0, as when it is not written: only requests whose client asks for it have traces; write \"1\" for all"
                );
                self.findings.warnings.push(Problem { key: self.written(SAMPLING), message });
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                if !self.settings.tracing.endpoint.is_empty() {
                    let flaw = format!("has no effect without {TRACING}: {TRACING_PROTOCOL}");
                    self.findings.warn(ENDPOINT, &flaw);
                }
            }
            Err(problem) => {
                let key = match problem {
                    TracingProblem::Protocol(_) => TRACING,
                    TracingProblem::Endpoint(_) => ENDPOINT,
                    TracingProblem::SamplingRate(_) => SAMPLING,
                };
                let message = format!("{key} {problem}");
                self.findings.problems.push(Problem { key: self.written(key), message });
            }
        }
    }

    /// The key, or the one that asks for it: there are no traces without a protocol.
    fn written(&self, key: &'static str) -> String {
        if self.data.contains_key(key) { key } else { TRACING }.to_owned()
    }

    fn switch(&mut self, key: &str, value: &str) -> bool {
        let is_on = value.eq_ignore_ascii_case("true");
        if !is_on && !value.eq_ignore_ascii_case("false") {
            self.findings.refuse_place(key, &format!("is {}; write \"true\" or \"false\"", shown(value)));
        }
        is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TracingSettings;

    const SHIPPED: &str = include_str!("../../../../deploy/base/config-observability.yaml");
    const REFERENCE: &str = include_str!("../../../../docs/reference/config-observability.md");

    fn parse(pairs: &[(&str, &str)]) -> Result<CheckedValue<Observability>, Findings> {
        let data = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Observability::parse(&data)
    }

    /// The lines, each after the key where it stands.
    fn lines(problems: &[Problem]) -> Vec<String> {
        problems.iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect()
    }

    #[test]
    fn nothing_that_is_written_sets_nothing() {
        let checked = parse(&[("_example", "tracing-protocol: http/protobuf")]).expect("it is sound");
        assert_eq!((checked.value, checked.warnings), (Observability::default(), vec![]));
    }

    #[test]
    fn beside_other_programs_an_unknown_key_is_a_warning_and_the_rest_is_read() {
        let data = [("vendor.example.com-key", "x"), (ENABLE, "true")];
        let data = data.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
        let checked = Observability::parse_beside_others(&data).expect("the rest is sound");
        assert!(checked.value.enable_request_log);
        assert_eq!(checked.warnings.len(), 1, "{:?}", checked.warnings);
        assert!(Observability::parse(&data).is_err());
    }

    #[test]
    fn every_key_has_its_place_in_the_settings() {
        let checked = parse(&[
            (ENABLE, "True"),
            (TEMPLATE, "{{.Request.Method}}\n"),
            (ENABLE_PROBES, "true"),
            (TRACING, TRACING_PROTOCOL),
            (ENDPOINT, "collector"),
            (SAMPLING, "0.1"),
        ]);
        let expected = Observability {
            enable_request_log: true,
            request_log_template: "{{.Request.Method}}\n".to_owned(),
            enable_probe_request_log: true,
            tracing: TracingSettings {
                protocol: TRACING_PROTOCOL.to_owned(),
                endpoint: "collector".to_owned(),
                sampling_rate: 0.1,
            },
        };
        assert_eq!(checked, Ok(CheckedValue { value: expected, warnings: vec![] }));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_and_what_has_no_effect_too() {
        let refused = parse(&[
            (ENABLE, "yes"),
            (TEMPLATE, "{{.Request.Foo}}"),
            (TRACING, TRACING_PROTOCOL),
            (SAMPLING, "all"),
            ("tracing-samplingrate", "1"),
            ("metrics-protocol", "grpc"),
            ("metrics.backend-destination", "prometheus"),
        ]);
        let Findings { problems, warnings } = refused.expect_err("five things are wrong");
        let beginnings = [
            "logging.enable-request-log: logging.enable-request-log is \"yes\"; write \"true\" or \"false\"",
            "logging.request-log-template: logging.request-log-template column 1: {{.Request.Foo}}",
            "tracing-sampling-rate: tracing-sampling-rate is \"all\"; write a number from 0 to 1",
            "tracing-samplingrate: unknown key tracing-samplingrate in config-observability; did you mean tracing-sampling-rate?",
            // Where the key stands that asks for it.
            "tracing-protocol: tracing-endpoint is missing; write the collector's URL",
        ];
        let found = lines(&problems);
        assert_eq!(found.len(), beginnings.len(), "{found:#?}");
        for (found, beginning) in found.iter().zip(beginnings) {
            assert!(found.starts_with(beginning), "{found}");
        }
        let nothing = "has no effect: every program serves its metrics itself";
        assert_eq!(
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [format!("metrics-protocol {nothing}"), format!("metrics.backend-destination {nothing}")]
        );
    }

    #[test]
    fn the_shipped_config_map_documents_every_key_with_its_default_and_sets_none() {
        let shipped: serde_json::Value = serde_saphyr::from_str(SHIPPED).expect("it is YAML");
        assert_eq!(
            (&shipped["kind"], &shipped["metadata"]["name"], &shipped["metadata"]["namespace"]),
            (&"ConfigMap".into(), &OBSERVABILITY_CONFIG_MAP.into(), &"ebb-system".into())
        );
        let data = shipped["data"].as_object().expect("a mapping");
        assert_eq!(data.keys().collect::<Vec<_>>(), ["_example"]);
        let example: BTreeMap<String, String> =
            serde_saphyr::from_str(data["_example"].as_str().expect("a text")).expect("YAML of strings");
        let documented: Vec<&str> = example.keys().map(String::as_str).collect();
        let mut known = READ;
        known.sort_unstable();
        assert_eq!(documented, known);
        let checked = Observability::parse(&example).expect("the example is sound");
        let none = TracingSettings { protocol: "none".to_owned(), ..TracingSettings::default() };
        let expected = Observability { tracing: none, ..Observability::default() };
        assert_eq!((checked.value, checked.warnings), (expected, vec![]));
    }

    #[test]
    fn the_reference_has_a_row_for_each_key_and_no_other() {
        let tables = REFERENCE.split("\n\n").filter(|part| part.starts_with("| Key |"));
        let rows = tables.flat_map(str::lines);
        let mut documented: Vec<&str> =
            rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0)).collect();
        documented.sort_unstable();
        let mut known = READ;
        known.sort_unstable();
        assert_eq!(documented, known, "docs/reference/config-observability.md is on the left");
    }
}
