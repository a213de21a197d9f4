//! `ebb-activator`: the activator as a program of its own, configured by its environment.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use dataplane::{
    ClosedIdleConnections, ConnectionBudget, Drain, MemoryBudget, PAGE_CONNECTIONS_MAX, ServerLimits, Service,
};
use link::LinkAccess;
use runtime::{
    Clock, Colours, LogFormat, MetricsRegistry, Observability, RequestReporting, StopRequests, TrustedHosts,
    read_address, run_program, start_logs, vital,
};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use vocabulary::{DRAIN_ACCEPTS_MAX, LinkToken, ReplicaName};

use crate::link_certificates;
use crate::pages::{AdminPages, MetricsPages};
use crate::{Activator, ActivatorConfig, Limits, Listeners, Metrics};

/// How long held requests may take in a drain: Knative's termination grace period for activators.
const DRAIN_PATIENCE: Duration = Duration::from_mins(10);

/// How long it waits for the owners' word that no route names it any more: longer than a bucket may be without an owner.
const RELEASE_MAX: Duration = Duration::from_secs(30);
/// How long it accepts connections after that word: as long as a node may take to hear of a change of addresses.
const RELEASED_LINGER: Duration = DRAIN_ACCEPTS_MAX.saturating_sub(RELEASE_MAX);

/// What proves that a caller on the link is the autoscaler.
#[derive(Debug, PartialEq, Eq)]
enum LinkProof {
    /// Nothing, so only this machine reaches it.
    None,
    Token(LinkToken),
    /// Its certificate; ours and the authority's lie in this folder.
    Certificate(PathBuf),
}

/// What the environment says.
#[derive(Debug, PartialEq)]
struct ProgramConfig {
    name: ReplicaName,
    requests: SocketAddr,
    link: SocketAddr,
    link_proof: LinkProof,
    admin: SocketAddr,
    metrics: SocketAddr,
    workers: usize,
    trusted: TrustedHosts,
    log: String,
    reporting: RequestReporting,
}

impl ProgramConfig {
    /// Reads `POD_NAME` (or `HOSTNAME`), `ACTIVATOR_{REQUESTS,LINK,ADMIN,METRICS}_ADDRESS`, `ACTIVATOR_LINK_TLS`, `ACTIVATOR_LINK_TOKEN`,
    /// `ACTIVATOR_WORKERS`, `OBSERVABILITY_CONFIG`, `EBB_TRUSTED_HOSTS` and `EBB_LOG`.
    /// Returns every problem at once.
    fn read(environment: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let name = ["POD_NAME", "HOSTNAME"]
            .iter()
            .find_map(|key| environment.get(*key))
            .filter(|name| !name.is_empty());
        if name.is_none() {
            problems.push("POD_NAME is not set; it names this activator among the others".to_owned());
        }
        let mut address = |key, default| read_address(environment, key, default, &mut problems);
        let requests = address("ACTIVATOR_REQUESTS_ADDRESS", "0.0.0.0:8012");
        let is_set = |key: &str| environment.get(key).is_some_and(|text| !text.is_empty());
        let has_proof = is_set("ACTIVATOR_LINK_TOKEN") || is_set("ACTIVATOR_LINK_TLS");
        let link =
            address("ACTIVATOR_LINK_ADDRESS", if has_proof { "0.0.0.0:8024" } else { "127.0.0.1:8024" });
        let admin = address("ACTIVATOR_ADMIN_ADDRESS", "0.0.0.0:8022");
        let metrics = address("ACTIVATOR_METRICS_ADDRESS", "0.0.0.0:9091");
        let link_proof = read_link_proof(environment, link, &mut problems);
        let workers = match environment.get("ACTIVATOR_WORKERS").map(|text| (text, text.parse::<usize>())) {
            None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            Some((_, Ok(workers @ 1..=1024))) => workers,
            Some((text, _)) => {
                problems.push(format!("ACTIVATOR_WORKERS is {text:?}; write a number from 1 to 1024"));
                1
            }
        };
        let trusted = environment.get("EBB_TRUSTED_HOSTS").map_or("", String::as_str);
        let trusted = trusted.parse().unwrap_or_else(|error| {
            problems.push(format!("EBB_TRUSTED_HOSTS: {error}"));
            TrustedHosts::default()
        });
        let reporting = read_reporting(environment).unwrap_or_else(|problem| {
            problems.push(format!("OBSERVABILITY_CONFIG{problem}"));
            RequestReporting::default()
        });
        let log = environment.get("EBB_LOG").cloned().unwrap_or_else(|| "info".to_owned());
        match name {
            Some(name) if problems.is_empty() => Ok(Self {
                name: ReplicaName::new(name),
                requests,
                link,
                link_proof,
                admin,
                metrics,
                workers,
                trusted,
                log,
                reporting,
            }),
            Some(_) | None => Err(problems),
        }
    }
}

/// What is told about each request: the same text that queue-proxies have.
fn read_reporting(environment: &BTreeMap<String, String>) -> Result<RequestReporting, String> {
    let text = environment.get("OBSERVABILITY_CONFIG").filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(RequestReporting::default()) };
    let settings: Observability = serde_json::from_str(text)
        .map_err(|error| format!(" is not understood: {error}; write a JSON object"))?;
    settings.reporting().map_err(|problem| format!(": {problem}"))
}

/// Without proof whoever reaches the link could take over every host, so then only this machine may.
fn read_link_proof(
    environment: &BTreeMap<String, String>,
    link: SocketAddr,
    problems: &mut Vec<String>,
) -> LinkProof {
    let text = |key: &str| environment.get(key).filter(|text| !text.is_empty());
    if let Some(folder) = text("ACTIVATOR_LINK_TLS") {
        return LinkProof::Certificate(folder.into());
    }
    match text("ACTIVATOR_LINK_TOKEN") {
        Some(text) => match text.parse() {
            Ok(token) => return LinkProof::Token(token),
            Err(error) => problems.push(format!("ACTIVATOR_LINK_TOKEN {error}")),
        },
        None if !link.ip().to_canonical().is_loopback() => problems.push(format!(
            "ACTIVATOR_LINK_ADDRESS is \"{link}\", where strangers could take the link; set ACTIVATOR_LINK_TLS or ACTIVATOR_LINK_TOKEN, or write \"127.0.0.1:8024\""
        )),
        None => {}
    }
    LinkProof::None
}

/// What `ebb-activator` does: serve until asked to stop, then drain.
pub fn main_from_env() -> ExitCode {
    run_program(ProgramConfig::read, run)
}

fn run(config: ProgramConfig) -> anyhow::Result<()> {
    start_logs(LogFormat::Text, &config.log, Colours::Off)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(dataplane::IO_EVENTS_PER_TICK)
        .build_local(LocalOptions::default())?;
    runtime.block_on(serve(config))
}

async fn serve(config: ProgramConfig) -> anyhow::Result<()> {
    let mut stop_requests = StopRequests::listen()?;
    let registry = MetricsRegistry::default();
    let (requests, link) = (bind(config.requests)?, bind(config.link)?);
    let link_access = match config.link_proof {
        LinkProof::None => LinkAccess::Anybody,
        LinkProof::Token(token) => LinkAccess::Token(token),
        LinkProof::Certificate(folder) => LinkAccess::Tls(link_certificates::keep(folder)?),
    };
    let listeners = Listeners { requests, tls: None, link, link_access };
    let metrics = Metrics::register(&registry);
    let memory = MemoryBudget::of_process(runtime::memory_limit());
    let activator_config = ActivatorConfig {
        name: config.name,
        workers: config.workers,
        limits: Limits { unread_memory: memory, ..Limits::default() },
        clock: Clock::start(),
        connections: metrics.connection_budget(runtime::raise_descriptor_limit().present),
        metrics,
        reporting: watch::channel(Arc::new(config.reporting)).1,
        log_format: LogFormat::Text,
    };
    let activator = Activator::start(activator_config, listeners).context("starting the activator")?;
    let is_ready = Rc::new(Cell::new(false));
    let pages = ConnectionBudget::of_connections(PAGE_CONNECTIONS_MAX, ClosedIdleConnections::default());
    let beside = Drain::within(pages);
    let admin = AdminPages { is_ready: Rc::clone(&is_ready), trusted: config.trusted };
    serve_pages(bind(config.admin)?, admin, &beside, memory);
    serve_pages(bind(config.metrics)?, MetricsPages(registry), &beside, memory);
    // Both are cancelled without loss: being synced is a state, and a signal that nobody waited for is kept.
    tokio::select! {
        () = async { activator.synced().await; is_ready.set(true); std::future::pending().await } => {}
        _ = stop_requests.next() => {}
    }
    tracing::info!("draining");
    let draining = async {
        // Who was never told everything is in nobody's route.
        if is_ready.get() {
            activator.leave();
            left_alone(&activator).await;
        }
        is_ready.set(false);
        activator.drained(DRAIN_PATIENCE).await;
    };
    // Cancelling the drain is what a second signal asks for.
    tokio::select! {
        () = draining => Ok(()),
        _ = stop_requests.next() => anyhow::bail!("asked twice to stop; what was held is cut off"),
    }
}

/// Returns once nobody is sent here any more, as far as anybody can tell.
async fn left_alone(activator: &Activator) {
    // Whoever is cancelled only waited.
    tokio::select! {
        () = activator.released() => tokio::time::sleep(RELEASED_LINGER).await,
        () = tokio::time::sleep(RELEASE_MAX) => {
            tracing::warn!("not every owner has said in time that no route names this activator; it accepts nothing more");
        }
    }
}

/// Ends with the process, after everything else.
fn serve_pages<S: Service>(listener: TcpListener, service: S, beside: &Drain, memory: &'static MemoryBudget) {
    let (drain, limits) = (beside.clone(), ServerLimits { memory, ..ServerLimits::default() });
    tokio::task::spawn_local(vital("a page of the activator", async move {
        if let Err(error) = dataplane::serve(listener, Rc::new(service), drain, limits).await {
            tracing::error!(%error, "a listener could not be served");
        }
    }));
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    runtime::listen(address).with_context(|| format!("listening on {address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn every_problem_of_the_environment_is_named_at_once() {
        let wrong = [("ACTIVATOR_LINK_ADDRESS", "8024"), ("ACTIVATOR_WORKERS", "none")];
        let problems = ProgramConfig::read(&environment(&wrong)).expect_err("three things are wrong");
        assert_eq!(
            problems,
            [
                "POD_NAME is not set; it names this activator among the others",
                "ACTIVATOR_LINK_ADDRESS is \"8024\"; write an address with a port, such as \"127.0.0.1:8024\"",
                "ACTIVATOR_WORKERS is \"none\"; write a number from 1 to 1024",
            ]
        );
    }

    #[test]
    fn the_ports_are_the_documented_ones() {
        let config =
            ProgramConfig::read(&environment(&[("HOSTNAME", "activator-0")])).expect("a name is enough");
        let ports =
            [config.requests, config.link, config.admin, config.metrics].map(|address| address.port());
        assert_eq!(ports, [8012, 8024, 8022, 9091]);
    }

    #[test]
    fn without_a_token_the_link_is_for_this_machine_alone() {
        let read = |pairs: &[(&str, &str)]| {
            ProgramConfig::read(&environment(&[&[("HOSTNAME", "activator-0")], pairs].concat()))
        };
        let link = |pairs: &[(&str, &str)]| read(pairs).expect("legal").link.ip().to_string();
        let token = ("ACTIVATOR_LINK_TOKEN", "000102030405060708090a0b0c0d0e0f");
        assert_eq!(link(&[]), "127.0.0.1");
        assert_eq!(link(&[token]), "0.0.0.0");
        assert_eq!(link(&[("ACTIVATOR_LINK_ADDRESS", "[::1]:7")]), "::1");
        assert_eq!(link(&[token, ("ACTIVATOR_LINK_ADDRESS", "10.0.0.1:7")]), "10.0.0.1");
        let problems = read(&[("ACTIVATOR_LINK_ADDRESS", "10.0.0.1:7")]).expect_err("strangers reach it");
        assert_eq!(
            problems,
            [
                "ACTIVATOR_LINK_ADDRESS is \"10.0.0.1:7\", where strangers could take the link; set ACTIVATOR_LINK_TLS or \
              ACTIVATOR_LINK_TOKEN, or write \"127.0.0.1:8024\""
            ]
        );
        let problems = read(&[("ACTIVATOR_LINK_TOKEN", "secret")]).expect_err("no token");
        assert!(problems[0].starts_with("ACTIVATOR_LINK_TOKEN is not a token; write 32"), "{problems:?}");
    }
}
