//! Probes: from the manifest to the JSON that the queue-proxy reads.

use serde_json::{Map, Value as Json, json};

use crate::manifest::fields::{Fields, Refusal, Report};
use crate::manifest::yaml::{Node, Value};

/// Which of a container's three probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    /// `readinessProbe`.
    Readiness,
    /// `livenessProbe`.
    Liveness,
    /// `startupProbe`.
    Startup,
}

/// The container's declared port, by which probes may mean the app's port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppPort<'n> {
    /// Its number; 8080 where none is declared, as Knative has it.
    pub(crate) number: u32,
    /// Its name, if it has one.
    pub(crate) name: Option<&'n str>,
}

/// The largest number that Kubernetes' 32-bit fields hold.
const MOST_SECONDS: u32 = i32::MAX as u32;

const REFUSED: &[Refusal] =
    &[("terminationGracePeriodSeconds", "a failed liveness probe ends the pod as its other failures do")];

/// Reads one probe. `None` means there is none, or that it was refused.
pub(crate) fn read(
    container: &mut Fields<'_>,
    kind: ProbeKind,
    app: AppPort<'_>,
    report: &mut Report,
) -> Option<Json> {
    let name = match kind {
        ProbeKind::Readiness => "readinessProbe",
        ProbeKind::Liveness => "livenessProbe",
        ProbeKind::Startup => "startupProbe",
    };
    let mut fields = container.mapping(name, report)?;
    let mut probe = Map::new();
    let handlers = [
        ("httpGet", fields.mapping("httpGet", report).map(|http| http_get(http, app, report))),
        ("tcpSocket", fields.mapping("tcpSocket", report).map(|tcp| tcp_socket(tcp, app, report))),
        ("grpc", fields.mapping("grpc", report).map(|grpc| grpc_check(grpc, app, report))),
        ("exec", fields.mapping("exec", report).map(|exec| exec_command(exec, report))),
    ];
    let written: Vec<&str> = handlers
        .iter()
        .map(|(handler, _)| *handler)
        .filter(|handler| fields.take(handler).is_some())
        .collect();
    let path = container.path_of(name);
    match written.as_slice() {
        [_] => {}
        // Knative's rule for the one probe that every container has.
        [] if kind == ProbeKind::Readiness => {
            probe.insert("tcpSocket".to_owned(), json!({"host": "127.0.0.1"}));
        }
        [] => report
            .refuse(fields.place, format!("{path} has no handler; give it httpGet, tcpSocket, exec or grpc")),
        several => report
            .refuse(fields.place, format!("{path} has several handlers ({}); keep one", several.join(", "))),
    }
    probe.extend(handlers.into_iter().filter_map(|(handler, value)| Some((handler.to_owned(), value?))));
    timing(&mut fields, kind, &mut probe, report);
    fields.finish(REFUSED, report);
    Some(Json::Object(probe))
}

/// What a container without a readiness probe gets: its port must accept a connection.
pub(crate) fn default_readiness() -> Json {
    json!({"tcpSocket": {"host": "127.0.0.1"}, "successThreshold": 1})
}

fn timing(fields: &mut Fields<'_>, kind: ProbeKind, probe: &mut Map<String, Json>, report: &mut Report) {
    let least_period = u32::from(kind != ProbeKind::Readiness);
    let most_successes = if kind == ProbeKind::Readiness { MOST_SECONDS } else { 1 };
    let period_place = fields.take("periodSeconds").map(|node| node.place);
    let period = fields.integer("periodSeconds", least_period..=MOST_SECONDS, report);
    let timeout = fields.integer("timeoutSeconds", 1..=MOST_SECONDS, report);
    let failures = fields.integer("failureThreshold", 1..=MOST_SECONDS, report);
    let successes = fields.integer("successThreshold", 1..=most_successes, report);
    let delay = fields.integer("initialDelaySeconds", 0..=MOST_SECONDS, report);
    if period == Some(0) && (timeout.is_some() || failures.is_some()) {
        let path = fields.path_of("periodSeconds");
        report.refuse(
            period_place,
            format!(
                "{path} is 0 (probe as fast as is sensible), which leaves no meaning to \
                 timeoutSeconds and failureThreshold; remove those or the 0"
            ),
        );
    }
    for (name, value) in [
        ("initialDelaySeconds", delay),
        ("periodSeconds", period),
        ("timeoutSeconds", timeout),
        ("successThreshold", Some(successes.unwrap_or(1))),
        ("failureThreshold", failures),
    ] {
        if let Some(value) = value {
            probe.insert(name.to_owned(), json!(value));
        }
    }
}

fn http_get(mut http: Fields<'_>, app: AppPort<'_>, report: &mut Report) -> Json {
    let mut handler = Map::new();
    host(&mut http, report);
    handler.insert("host".to_owned(), json!("127.0.0.1"));
    port(&mut http, app, &mut handler, report);
    if let Some(path) = http.text("path", report) {
        handler.insert("path".to_owned(), json!(path));
    }
    let place = http.take("scheme").map(|node| node.place);
    let scheme = http.text("scheme", report).unwrap_or("HTTP");
    if !["HTTP", "HTTPS"].contains(&scheme) {
        report.refuse(place, format!("{} is {scheme:?}; write HTTP or HTTPS", http.path_of("scheme")));
    }
    handler.insert("scheme".to_owned(), json!(scheme));
    let headers: Vec<Json> = http
        .list("httpHeaders", report)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(path, item)| header(item, path, report))
        .collect();
    if !headers.is_empty() {
        handler.insert("httpHeaders".to_owned(), Json::Array(headers));
    }
    http.finish(&[], report);
    Json::Object(handler)
}

fn header(item: &Node, path: String, report: &mut Report) -> Option<Json> {
    let mut fields = Fields::of(item, path, report)?;
    let name = fields.text("name", report).map(str::to_owned);
    let value = fields.text("value", report).unwrap_or_default().to_owned();
    if name.is_none() {
        report.refuse(fields.place, format!("{} is missing", fields.path_of("name")));
    }
    fields.finish(&[], report);
    Some(json!({"name": name?, "value": value}))
}

fn tcp_socket(mut tcp: Fields<'_>, app: AppPort<'_>, report: &mut Report) -> Json {
    let mut handler = Map::new();
    host(&mut tcp, report);
    handler.insert("host".to_owned(), json!("127.0.0.1"));
    port(&mut tcp, app, &mut handler, report);
    tcp.finish(&[], report);
    Json::Object(handler)
}

fn grpc_check(mut grpc: Fields<'_>, app: AppPort<'_>, report: &mut Report) -> Json {
    let mut handler = Map::new();
    port(&mut grpc, app, &mut handler, report);
    if let Some(service) = grpc.text("service", report) {
        handler.insert("service".to_owned(), json!(service));
    }
    grpc.finish(&[], report);
    Json::Object(handler)
}

fn exec_command(mut exec: Fields<'_>, report: &mut Report) -> Json {
    let command = exec.texts("command", report).unwrap_or_default();
    if command.is_empty() {
        report.refuse(exec.place, format!("{} is missing or empty", exec.path_of("command")));
    }
    exec.finish(&[], report);
    json!({"command": command})
}

/// A probe asks the app itself; another host would prove nothing about it.
fn host(fields: &mut Fields<'_>, report: &mut Report) {
    let Some(place) = fields.take("host").map(|node| node.place) else { return };
    match fields.text("host", report) {
        None | Some("" | "localhost" | "127.0.0.1") => {}
        Some(other) => {
            let path = fields.path_of("host");
            report.refuse(place, format!("{path} is {other:?}; the app is on this machine, remove the host"));
        }
    }
}

/// Leaves the port out where the app's own is meant.
fn port(fields: &mut Fields<'_>, app: AppPort<'_>, handler: &mut Map<String, Json>, report: &mut Report) {
    let Some(node) = fields.take("port") else { return };
    if let Value::Text(name) = &node.value {
        if app.name != Some(name.as_str()) {
            let path = fields.path_of("port");
            report.refuse(node.place, format!("{path} is {name:?}, but no container port has that name"));
        }
        return;
    }
    match fields.integer("port", 0..=65535, report) {
        None | Some(0) => {}
        Some(number) if number == app.number => {}
        Some(number) => {
            handler.insert("port".to_owned(), json!(number));
        }
    }
}
