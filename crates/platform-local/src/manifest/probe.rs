//! Probes, as a manifest writes them.

use vocabulary::{HttpQuestion, ProbeQuestion, ProbeScheme, ProbeSpec, ProbeTiming, is_own_host, shown};

use crate::manifest::fields::{ManifestFields, RefusedField, Report};
use crate::manifest::yaml::{YamlNode, YamlValue};

/// Which of a container's three probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    Readiness,
    Liveness,
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

const REFUSED: &[RefusedField] =
    &[("terminationGracePeriodSeconds", "a failed liveness probe ends the pod as its other failures do")];

/// Reads one probe. `None` means there is none, or that it was refused.
pub(crate) fn read(
    container: &mut ManifestFields<'_>,
    kind: ProbeKind,
    app: AppPort<'_>,
    report: &mut Report,
) -> Option<ProbeSpec> {
    let name = match kind {
        ProbeKind::Readiness => "readinessProbe",
        ProbeKind::Liveness => "livenessProbe",
        ProbeKind::Startup => "startupProbe",
    };
    let mut fields = container.mapping(name, report)?;
    let questions = [
        ("httpGet", fields.mapping("httpGet", report).map(|http| http_get(http, app, report))),
        ("tcpSocket", fields.mapping("tcpSocket", report).map(|tcp| tcp_socket(tcp, app, report))),
        ("grpc", fields.mapping("grpc", report).map(|grpc| grpc_check(grpc, app, report))),
        ("exec", fields.mapping("exec", report).map(|exec| exec_command(exec, report))),
    ];
    let written: Vec<&str> = questions
        .iter()
        .map(|(handler, _)| *handler)
        .filter(|handler| fields.take(handler).is_some())
        .collect();
    let path = container.path_of(name);
    let mut question = questions.into_iter().find_map(|(_, question)| question);
    match written.as_slice() {
        [_] => {}
        // Knative's rule for the one probe that every container has.
        [] if kind == ProbeKind::Readiness => question = Some(default_readiness().question),
        [] => report
            .refuse(fields.place, format!("{path} has no handler; give it httpGet, tcpSocket, exec or grpc")),
        several => report
            .refuse(fields.place, format!("{path} has several handlers ({}); keep one", several.join(", "))),
    }
    let timing = timing(&mut fields, kind, report);
    fields.finish(REFUSED, report);
    Some(ProbeSpec { question: question?, timing })
}

/// What a container without a readiness probe gets: its port must accept a connection.
pub(crate) fn default_readiness() -> ProbeSpec {
    ProbeSpec::of_connection(None)
}

fn timing(fields: &mut ManifestFields<'_>, kind: ProbeKind, report: &mut Report) -> ProbeTiming {
    let least_period = u32::from(kind != ProbeKind::Readiness);
    let most_successes = if kind == ProbeKind::Readiness { MOST_SECONDS } else { 1 };
    let period_place = fields.take("periodSeconds").map(|node| node.place);
    let timing = ProbeTiming {
        period_seconds: fields.integer("periodSeconds", least_period..=MOST_SECONDS, report),
        timeout_seconds: fields.integer("timeoutSeconds", 1..=MOST_SECONDS, report),
        failure_threshold: fields.integer("failureThreshold", 1..=MOST_SECONDS, report),
        success_threshold: Some(fields.integer("successThreshold", 1..=most_successes, report).unwrap_or(1)),
        initial_delay_seconds: fields.integer("initialDelaySeconds", 0..=MOST_SECONDS, report),
    };
    let is_paced = timing.timeout_seconds.is_some() || timing.failure_threshold.is_some();
    if timing.period_seconds == Some(0) && is_paced {
        let path = fields.path_of("periodSeconds");
        report.refuse(
            period_place,
            format!(
                "{path} is 0 (probe as fast as is sensible), which leaves no meaning to \
                 timeoutSeconds and failureThreshold; remove those or the 0"
            ),
        );
    }
    timing
}

fn http_get(mut http: ManifestFields<'_>, app: AppPort<'_>, report: &mut Report) -> ProbeQuestion {
    host(&mut http, report);
    let port = port(&mut http, app, report);
    let path = http.text("path", report).map(str::to_owned);
    let place = http.take("scheme").map(|node| node.place);
    let scheme = match http.text("scheme", report).unwrap_or("HTTP") {
        "HTTP" => ProbeScheme::Http,
        "HTTPS" => ProbeScheme::Https,
        other => {
            report.refuse(place, format!("{} is {other:?}; write HTTP or HTTPS", http.path_of("scheme")));
            ProbeScheme::Http
        }
    };
    let headers = http.list("httpHeaders", report).unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(path, item)| header(item, path, report)).collect();
    http.finish(&[], report);
    ProbeQuestion::Http(HttpQuestion { port, path, scheme, headers })
}

fn header(item: &YamlNode, path: String, report: &mut Report) -> Option<(String, String)> {
    let mut fields = ManifestFields::of(item, path, report)?;
    let name = fields.text("name", report).map(str::to_owned);
    let value = fields.text("value", report).unwrap_or_default().to_owned();
    if name.is_none() {
        report.refuse(fields.place, format!("{} is missing", fields.path_of("name")));
    }
    fields.finish(&[], report);
    Some((name?, value))
}

fn tcp_socket(mut tcp: ManifestFields<'_>, app: AppPort<'_>, report: &mut Report) -> ProbeQuestion {
    host(&mut tcp, report);
    let port = port(&mut tcp, app, report);
    tcp.finish(&[], report);
    ProbeQuestion::Tcp { port }
}

fn grpc_check(mut grpc: ManifestFields<'_>, app: AppPort<'_>, report: &mut Report) -> ProbeQuestion {
    let port = port(&mut grpc, app, report);
    let service = grpc.text("service", report).map(str::to_owned);
    grpc.finish(&[], report);
    ProbeQuestion::Grpc { port, service }
}

fn exec_command(mut exec: ManifestFields<'_>, report: &mut Report) -> ProbeQuestion {
    let command = exec.texts("command", report).unwrap_or_default();
    if command.is_empty() {
        report.refuse(exec.place, format!("{} is missing or empty", exec.path_of("command")));
    }
    exec.finish(&[], report);
    ProbeQuestion::Exec { command }
}

/// A probe asks the app itself; another host would prove nothing about it.
fn host(fields: &mut ManifestFields<'_>, report: &mut Report) {
    let Some(place) = fields.take("host").map(|node| node.place) else { return };
    match fields.text("host", report) {
        Some(other) if !is_own_host(other) => {
            let path = fields.path_of("host");
            let other = shown(other);
            report.refuse(place, format!("{path} is {other}; the app is on this machine, remove the host"));
        }
        Some(_) | None => {}
    }
}

/// Leaves the port out where the app's own is meant.
fn port(fields: &mut ManifestFields<'_>, app: AppPort<'_>, report: &mut Report) -> Option<u16> {
    let node = fields.take("port")?;
    if let YamlValue::Text(name) = &node.value {
        if app.name != Some(name.as_str()) {
            let path = fields.path_of("port");
            report.refuse(
                node.place,
                format!("{path} is {}, but no container port has that name", shown(name)),
            );
        }
        return None;
    }
    let number = fields.integer("port", 0..=65535, report)?;
    u16::try_from(number).ok().filter(|port| *port != 0 && u32::from(*port) != app.number)
}
