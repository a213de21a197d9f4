//! The ConfigMap `config-observability`, as Knative's users keep it: what is told about each request.

use runtime::Observability;

use crate::manifest::fields::{Fields, Report, did_you_mean};
use crate::manifest::yaml::{Key, Node};

/// What it is called.
pub(crate) const OBSERVABILITY_NAME: &str = "config-observability";

const ENABLE: &str = "logging.enable-request-log";
const TEMPLATE: &str = "logging.request-log-template";
const ENABLE_PROBES: &str = "logging.enable-probe-request-log";
const TRACING: &str = "tracing-protocol";
const READ: [&str; 4] = [ENABLE, TEMPLATE, ENABLE_PROBES, TRACING];

/// Knative's keys that mean nothing here: metrics are served and not sent, logs are collected by whoever runs `ebb up`, and profiles are taken from outside.
const WITHOUT_EFFECT: [&str; 10] = [
    "metrics-protocol",
    "metrics-endpoint",
    "metrics-export-interval",
    "request-metrics-protocol",
    "request-metrics-endpoint",
    "request-metrics-export-interval",
    "runtime-profiling",
    "runtime-export-interval",
    "tracing-endpoint",
    "tracing-sampling-rate",
];

/// The same, as versions of Knative before 1.19 name them.
const OLDER_PREFIXES: [&str; 4] =
    ["metrics.", "profiling.", "logging.enable-var-log", "logging.revision-url"];

/// Reads it. `None` if anything in it was refused.
pub(crate) fn read(document: &Node, report: &mut Report) -> Option<Observability> {
    let refused_before = report.troubles.len();
    let mut fields = Fields::of(document, "", report)?;
    fields.ignore(&["apiVersion", "kind", "immutable", "metadata"]);
    let data = fields.text_map("data", report);
    fields.finish(&[("binaryData", "write the settings under data")], report);
    let mut settings = Observability::default();
    for (key, value) in data {
        read_key(&mut settings, key, value, report);
    }
    (report.troubles.len() == refused_before).then_some(settings)
}

fn read_key(settings: &mut Observability, key: &Key, value: &str, report: &mut Report) {
    match key.text.as_str() {
        ENABLE => settings.enable_request_log = switch(key, value, report),
        ENABLE_PROBES => settings.enable_probe_request_log = switch(key, value, report),
        TEMPLATE => {
            value.clone_into(&mut settings.request_log_template);
            // Whether it is used or not: who turns the log on later should not meet what is wrong with it only then.
            let checked = Observability { enable_request_log: true, ..settings.clone() };
            if let Err(problem) = checked.request_log() {
                report.refuse(key.place, format!("{TEMPLATE} {problem}"));
            }
        }
        TRACING if ["", "none"].contains(&value) => {}
        TRACING => report.warn(key.place, format!("{TRACING} is {value:?}, which has no effect yet")),
        "_example" => {}
        other
            if WITHOUT_EFFECT.contains(&other) || OLDER_PREFIXES.iter().any(|old| other.starts_with(old)) =>
        {
            report.warn(key.place, format!("{other} has no effect: every program serves its metrics itself"));
        }
        other => {
            let near = did_you_mean(other, READ.into_iter().chain(WITHOUT_EFFECT));
            report.refuse(key.place, format!("unknown key {other} in {OBSERVABILITY_NAME}{near}"));
        }
    }
}

fn switch(key: &Key, value: &str, report: &mut Report) -> bool {
    let is_on = value.eq_ignore_ascii_case("true");
    if !is_on && !value.eq_ignore_ascii_case("false") {
        report.refuse(key.place, format!("{} is {value:?}; write \"true\" or \"false\"", key.text));
    }
    is_on
}
