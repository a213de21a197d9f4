//! The contestants of a hop, and the app behind them: each a process on its cores that forwards from a port
//! of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::memory_group::MemoryGroup;
use super::process::Process;
use super::{api, executables};
use crate::ports::unused_port;
use crate::queue_proxy;

/// How long a program may take to serve.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server and where it takes requests.
#[derive(Debug)]
pub struct Server {
    /// The process of the running proxy.
    pub process: Process,
    /// HTTP/1.1, or HTTP/2 where that was asked for.
    pub port: u16,
    /// Its admin pages; only a queue-proxy has some.
    pub admin: Option<u16>,
}

/// Which version of HTTP is spoken on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// HTTP/1.1 over plain TCP connections.
    Http1,
    /// HTTP/2 without TLS, with prior knowledge.
    H2c,
}

impl Protocol {
    /// As ports are named for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::H2c => "h2c",
        }
    }
}

/// The app: answers at once, costs next to nothing, speaks both protocols on ports of its own.
#[derive(Debug)]
pub struct App {
    /// The process of the running app.
    pub process: Process,
    /// The port that takes HTTP/1.1 requests.
    pub http1: u16,
    /// The port that takes HTTP/2 requests.
    pub h2c: u16,
}

impl App {
    /// Starts the app and waits until it listens.
    pub fn start(folder: &Path, cores: &[usize]) -> anyhow::Result<Self> {
        let mut command = Command::new(executables::bench_app()?);
        command.args(["--http1", "0", "--h2c", "0"]);
        let mut process = Process::start(command, "bench-app", folder, cores)?;
        let ports: Value = serde_json::from_str(&process.first_line()?)?;
        Ok(Self { http1: port(&ports, "http1")?, h2c: port(&ports, "h2c")?, process })
    }

    /// A number that it counts: `held`, `served`.
    pub fn count(&self, what: &str) -> anyhow::Result<f64> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.http1));
        Ok(api::get(address, "localhost", &format!("/{what}"))?.trim().parse()?)
    }

    /// Where it takes requests of this protocol.
    pub fn target(&self, protocol: Protocol) -> Target {
        let port = match protocol {
            Protocol::Http1 => self.http1,
            Protocol::H2c => self.h2c,
        };
        Target { protocol, port }
    }
}

/// Where a contestant forwards to; the client speaks the same protocol.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The protocol on both sides of the proxy.
    pub protocol: Protocol,
    /// The port at which the app listens.
    pub port: u16,
}

fn port(ports: &Value, name: &str) -> anyhow::Result<u16> {
    let port = ports[name].as_u64().and_then(|port| u16::try_from(port).ok());
    port.with_context(|| format!("{ports} has no port {name}"))
}

/// Starts `ebb queue-proxy` before an app, on any free ports.
pub fn queue_proxy(ebb: &Path, target: Target, limit: u32, place: Place<'_>) -> anyhow::Result<Server> {
    let name = format!("queue-proxy-{}-{limit}", target.port);
    queue_proxy_named(&name, ebb, target, limit, place)
}

/// The same under a name that tells its log from those of others before the same app.
pub fn queue_proxy_named(
    name: &str,
    ebb: &Path,
    target: Target,
    limit: u32,
    place: Place<'_>,
) -> anyhow::Result<Server> {
    start_queue_proxy(Command::new(ebb), name, target, limit, place)
}

/// The same without a limit of requests, in a memory group as its container is.
pub fn queue_proxy_in_group(
    ebb: &Path,
    group: &MemoryGroup,
    target: Target,
    place: Place<'_>,
) -> anyhow::Result<Server> {
    let name = format!("queue-proxy-in-group-{}", target.port);
    start_queue_proxy(group.command(ebb), &name, target, 0, place)
}

fn start_queue_proxy(
    mut ebb: Command,
    name: &str,
    target: Target,
    limit: u32,
    place: Place<'_>,
) -> anyhow::Result<Server> {
    ebb.arg("queue-proxy").env_clear().envs(queue_proxy_environment(target.port, limit));
    ebb.env("EBB_APP_PROTOCOL", target.protocol.name());
    let mut process = Process::start(ebb, name, place.folder, place.cores)?;
    let ports: Value = serde_json::from_str(&process.first_line()?)?;
    let admin = Some(port(&ports, "admin")?);
    serves(Server { port: port(&ports, "requests")?, admin, process }, target.protocol)
}

/// What a queue-proxy is told, as `ebb pod` would.
pub fn queue_proxy_environment(app_port: u16, limit: u32) -> BTreeMap<String, String> {
    let mut environment = queue_proxy::environment(app_port);
    let probe = format!(r#"{{"tcpSocket":{{"host":"127.0.0.1","port":{app_port}}}}}"#);
    let changes = [
        ("SERVING_POD", "bench-pod"),
        ("SERVING_NAMESPACE", "default"),
        ("SERVING_REVISION", "bench"),
        ("SERVING_CONFIGURATION", "bench"),
        ("SERVING_POD_IP", "127.0.0.1"),
        ("SERVING_LOGGING_CONFIG", ""),
        ("SERVING_LOGGING_LEVEL", ""),
        ("QUEUE_SERVING_TLS_PORT", "0"),
        ("EBB_ANNOUNCE", "stdout"),
        ("CONTAINER_CONCURRENCY", &limit.to_string()),
        ("SERVING_READINESS_PROBE", &probe),
    ];
    environment.extend(changes.map(|(name, value)| (name.to_owned(), value.to_owned())));
    environment
}

/// Where a contestant runs and keeps its files.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The folder for the configuration and the logs.
    pub folder: &'a Path,
    /// The cores on which the proxy runs.
    pub cores: &'a [usize],
}

/// HAProxy with one thread and keep-alive on both sides, under a name of its own.
pub fn haproxy(name: &str, target: Target, place: Place<'_>) -> anyhow::Result<Server> {
    let routing = format!("  default_backend app0\n{}", haproxy_backend(0, target));
    start_haproxy(name, &routing, target.protocol, place)
}

/// The same for HTTP/1.1 with many apps, chosen by Host.
pub fn haproxy_by_host(name: &str, routes: &[(String, u16)], place: Place<'_>) -> anyhow::Result<Server> {
    let file = place.folder.join(format!("{name}.map"));
    let mut map = String::new();
    let mut routing = format!("  use_backend %[req.hdr(host),lower,map({})]\n", file.display());
    for (index, (host, port)) in routes.iter().enumerate() {
        let _ = writeln!(map, "{host} app{index}");
        routing.push_str(&haproxy_backend(index, Target { protocol: Protocol::Http1, port: *port }));
    }
    fs::write(&file, map)?;
    start_haproxy(name, &routing, Protocol::Http1, place)
}

fn proto(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http1 => "",
        Protocol::H2c => " proto h2",
    }
}

fn haproxy_backend(index: usize, target: Target) -> String {
    format!(
        "backend app{index}\n  http-reuse always\n  server app 127.0.0.1:{}{}\n",
        target.port,
        proto(target.protocol)
    )
}

fn start_haproxy(name: &str, routing: &str, protocol: Protocol, place: Place<'_>) -> anyhow::Result<Server> {
    let port = unused_port();
    let proto = proto(protocol);
    let text = format!(
        "global\n  nbthread 1\n  maxconn 9000\ndefaults\n  mode http\n  option http-keep-alive\n  timeout connect 5s\n  timeout client 300s\n  \
         timeout server 300s\n  timeout http-keep-alive 300s\nfrontend requests\n  bind 127.0.0.1:{port}{proto}\n{routing}"
    );
    let file = place.folder.join(format!("{name}.cfg"));
    fs::write(&file, text)?;
    let mut command = Command::new("/usr/sbin/haproxy");
    command.arg("-db").arg("-f").arg(file);
    let process = Process::start(command, name, place.folder, place.cores)?;
    serves(Server { process, port, admin: None }, protocol)
}

/// nginx with one worker and keep-alive on both sides.
pub fn nginx(app_port: u16, place: Place<'_>) -> anyhow::Result<Server> {
    let port = unused_port();
    let folder = place.folder.display();
    let text = format!(
        "daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;\n\
         events {{ worker_connections 8192; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; client_max_body_size 0;\n\
         client_body_temp_path {folder}/nginx-body; proxy_temp_path {folder}/nginx-proxy; fastcgi_temp_path {folder}/nginx-fastcgi;\n\
         uwsgi_temp_path {folder}/nginx-uwsgi; scgi_temp_path {folder}/nginx-scgi;\n\
         upstream app {{ server 127.0.0.1:{app_port}; keepalive 1024; keepalive_requests 1000000000; }}\n\
         server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n"
    );
    let file = place.folder.join("nginx.conf");
    fs::write(&file, text)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-e").arg("stderr").arg("-c").arg(file);
    let process = Process::start(command, "nginx", place.folder, place.cores)?;
    serves(Server { process, port, admin: None }, Protocol::Http1)
}

/// The smallest proxy of hyper, with one thread and keep-alive on both sides.
pub fn hyper(target: Target, place: Place<'_>) -> anyhow::Result<Server> {
    let mut command = Command::new(executables::hyper_proxy()?);
    command.args(["--to", &target.port.to_string()]);
    match target.protocol {
        Protocol::Http1 => {}
        Protocol::H2c => {
            command.arg("--h2c");
        }
    }
    let name = format!("hyper-{:?}", target.protocol);
    let mut process = Process::start(command, &name, place.folder, place.cores)?;
    let ports: Value = serde_json::from_str(&process.first_line()?)?;
    serves(Server { port: port(&ports, "requests")?, admin: None, process }, target.protocol)
}

/// Waits until a server answers, or, where we do not speak its protocol, listens. What it answers is not
/// looked at: it may need another Host.
fn serves(mut server: Server, protocol: Protocol) -> anyhow::Result<Server> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    api::until(PATIENCE, || {
        server.process.check_alive()?;
        let mut stream = TcpStream::connect(address)?;
        if protocol == Protocol::Http1 {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            stream.read_exact(&mut [0; 12])?;
        }
        Ok(())
    })
    .with_context(|| format!("a contestant does not serve:\n{}", server.process.log()))?;
    Ok(server)
}
