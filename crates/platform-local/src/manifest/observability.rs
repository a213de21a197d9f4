//! The ConfigMap `config-observability`, as Knative's users keep it: what is told about each request.
//!
//! What Knative before 1.19 kept in `config-tracing` is said here since; that one is answered with what to write instead.

use runtime::{Observability, TRACING_PROTOCOL, TracingProblem};

use crate::manifest::fields::{Fields, Report, did_you_mean};
use crate::manifest::yaml::{Key, Node};

/// What it is called.
pub(crate) const OBSERVABILITY_NAME: &str = "config-observability";

/// Where Knative before 1.19 kept what it told Zipkin.
pub(crate) const OLDER_TRACING_NAME: &str = "config-tracing";

const ENABLE: &str = "logging.enable-request-log";
const TEMPLATE: &str = "logging.request-log-template";
const ENABLE_PROBES: &str = "logging.enable-probe-request-log";
const TRACING: &str = "tracing-protocol";
const ENDPOINT: &str = "tracing-endpoint";
const SAMPLING: &str = "tracing-sampling-rate";
const READ: [&str; 6] = [ENABLE, TEMPLATE, ENABLE_PROBES, TRACING, ENDPOINT, SAMPLING];

/// Knative's keys that mean nothing here: metrics are served and not sent, logs are collected by whoever runs `ebb up`, and profiles are taken from outside.
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
    for &(key, value) in &data {
        read_key(&mut settings, key, value, report);
    }
    check_tracing(&settings, &data, report);
    (report.troubles.len() == refused_before).then_some(settings)
}

/// What to write instead of the older ConfigMap.
pub(crate) fn instead_of_older_tracing() -> String {
    format!(
        "the ConfigMap {OLDER_TRACING_NAME} is of Knative before 1.19 and has no effect: traces go to collectors of OpenTelemetry; write {TRACING}: {TRACING_PROTOCOL}, \
         {ENDPOINT} and {SAMPLING} (the former sample-rate) in the ConfigMap {OBSERVABILITY_NAME}"
    )
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
        TRACING => value.clone_into(&mut settings.tracing.protocol),
        ENDPOINT => value.clone_into(&mut settings.tracing.endpoint),
        SAMPLING => match value.parse() {
            Ok(rate) => settings.tracing.sampling_rate = rate,
            Err(_) => report.refuse(
                key.place,
                format!("{SAMPLING} is {value:?}; write a number from 0 to 1, such as \"0.1\" for a tenth of the requests"),
            ),
        },
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

/// What the keys about traces mean together.
fn check_tracing(settings: &Observability, data: &[(&Key, &str)], report: &mut Report) {
    let place_of = |name: &str| data.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.place);
    let protocol = place_of(TRACING);
    match settings.tracing.plan() {
        Ok(Some(plan)) if plan.sampling.is_zero() => report.warn(
            place_of(SAMPLING).or(protocol),
            format!("{SAMPLING} is 0, as when it is not written: only requests whose client asks for it have traces; write \"1\" for all"),
        ),
        Ok(Some(_)) => {}
        Ok(None) => {
            if let Some(place) = place_of(ENDPOINT).filter(|_| !settings.tracing.endpoint.is_empty()) {
                report.warn(place, format!("{ENDPOINT} has no effect without {TRACING}: {TRACING_PROTOCOL}"));
            }
        }
        Err(problem) => {
            let key = match problem {
                TracingProblem::Protocol(_) => TRACING,
                TracingProblem::Endpoint(_) => ENDPOINT,
                TracingProblem::SamplingRate(_) => SAMPLING,
            };
            report.refuse(place_of(key).or(protocol), format!("{key} {problem}"));
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
