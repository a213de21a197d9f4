//! Variables that only a queue-proxy reads: the probes of its app, the user agents that are not measured, and
//! the name under which the request log shows it.

use dataplane::probe::Probe;
use runtime::{EnvironmentReader, LoggedRevision};
use serde_json::Value;
use vocabulary::{IgnoredUserAgents, UserAgentsError, shown};

pub(super) fn logged_revision(reader: &EnvironmentReader<'_>) -> LoggedRevision {
    let text = |name| reader.text_or(name, "");
    let (namespace, pod) = (text("SERVING_NAMESPACE"), text("SERVING_POD"));
    // On a cluster a pod reports under NAMESPACE/NAME, which is unlike any other's; logs and traces are about
    // a pod as its users name it.
    let in_namespace = pod.strip_prefix(&namespace).and_then(|rest| rest.strip_prefix('/'));
    let pod_name = in_namespace.unwrap_or(&pod).to_owned();
    LoggedRevision {
        name: text("SERVING_REVISION"),
        namespace,
        service: text("SERVING_SERVICE"),
        configuration: text("SERVING_CONFIGURATION"),
        pod_name,
        pod_ip: text("SERVING_POD_IP"),
    }
}

/// User agents, with commas between them. Nothing is a value here: it means none, where leaving the variable
/// out means the default.
pub(super) fn ignored_user_agents(reader: &mut EnvironmentReader<'_>, name: &str) -> IgnoredUserAgents {
    let Some(text) = reader.written(name) else { return IgnoredUserAgents::default() };
    text.parse().unwrap_or_else(|error: UserAgentsError| {
        reader.refuse(name, &format!("is {}, which {error}", shown(text)));
        IgnoredUserAgents::default()
    })
}

/// The filter of the log: ours, else the level that Knative's controller writes, in the words of its logger.
pub(super) fn log_filter(reader: &mut EnvironmentReader<'_>) -> String {
    if let Some(filter) = reader.text("EBB_LOG") {
        return filter.to_owned();
    }
    let level = reader.text_or("SERVING_LOGGING_LEVEL", "info");
    let filter = match level.to_ascii_lowercase().as_str() {
        "debug" => "debug",
        "info" => "info",
        "warn" => "warn",
        "error" | "dpanic" | "panic" | "fatal" => "error",
        _ => {
            let flaw = format!("is {}; write debug, info, warn or error; info holds", shown(&level));
            reader.warn("SERVING_LOGGING_LEVEL", &flaw);
            "info"
        }
    };
    filter.to_owned()
}

/// A probe as JSON; empty means none.
pub(super) fn probe(reader: &mut EnvironmentReader<'_>, name: &str, app_port: u16) -> Option<Probe> {
    let probes = probes(reader, name, app_port);
    if probes.len() > 1 {
        reader.warn(name, &format!("has {} probes; only the first is run", probes.len()));
    }
    probes.into_iter().next()
}

/// Probes as JSON: one, or Knative's array with those of several containers, the app's own first; empty means
/// none.
pub(super) fn probes(reader: &mut EnvironmentReader<'_>, name: &str, app_port: u16) -> Vec<Probe> {
    let Some(text) = reader.text(name).filter(|text| !text.trim().is_empty()) else { return Vec::new() };
    let texts: Vec<String> = match serde_json::from_str(text) {
        Ok(Value::Array(several)) => several.iter().map(Value::to_string).collect(),
        Ok(_) | Err(_) => vec![text.to_owned()],
    };
    let mut probes = Vec::new();
    for text in &texts {
        match Probe::parse(text, app_port) {
            Ok(probe) => {
                if probe.is_weaker {
                    let flaw = "asks over HTTPS; only whether the port accepts connections is checked";
                    reader.warn(name, flaw);
                }
                probes.push(probe);
            }
            Err(problem) => reader.refuse(name, &problem.to_string()),
        }
    }
    probes
}
