//! `ebb-activator`: the activator as a program of its own, configured by its environment.

use std::cell::Cell;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use dataplane::{Drain, MemoryBudget, PageService, serve_pages};
use link::LinkAccess;
use runtime::{
    Clock, Environment, EnvironmentReader, LogFormat, MetricsRegistry, MountedSettings,
    OBSERVABILITY_CONFIG_MAP, Observability, PageLimits, PageListener, PagePlaces, RequestReporting,
    StopRequests, TrustedHosts, cluster_domain, run_program, vital,
};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use vocabulary::{CheckedValue, DRAIN_ACCEPTS_MAX, Findings, LinkToken, Problem, ReplicaName};

use crate::activator::Activator;
use crate::config::{ActivatorConfig, Limits, Listeners};
use crate::forwarders::TrustedForwarders;
use crate::internal_tls;
use crate::link_certificates;
use crate::metrics::ActivatorMetrics;
use crate::pages::{ActivatorAdminPages, ActivatorMetricsPages};
use crate::place::ActivatorPlace;

/// How long held requests may take in a drain: Knative's termination grace period for activators.
const DRAIN_PATIENCE: Duration = Duration::from_mins(10);

/// How long it waits for the owners' word that no route names it any more: longer than a bucket may be
/// without an owner.
const RELEASE_MAX: Duration = Duration::from_secs(30);
/// How long it accepts connections after that word: as long as a node may take to hear of a change of
/// addresses.
const RELEASED_LINGER: Duration = DRAIN_ACCEPTS_MAX.saturating_sub(RELEASE_MAX);
/// The wait for that word in an installed Knative, where its controller takes an activator out of the path:
/// as long as Knative's own activator takes requests after TERM.
const RELEASE_MAX_OF_KNATIVE: Duration = Duration::from_secs(45);

/// What proves that a caller on the link is the autoscaler.
#[derive(Debug, PartialEq, Eq)]
enum LinkProof {
    /// Nothing, so only this machine reaches it.
    None,
    Token(LinkToken),
    /// Its certificate; ours and the authority's lie in this folder.
    Certificate(PathBuf),
}

/// The configuration of the process, as its environment variables say it.
#[derive(Debug, PartialEq)]
struct ActivatorEnvironment {
    name: ReplicaName,
    requests: SocketAddr,
    /// Where requests come too, in the place of Knative's activators.
    more_requests: Option<SocketAddr>,
    place: ActivatorPlace,
    /// Where `config-network` of an installed Knative lies.
    network: Option<PathBuf>,
    link: SocketAddr,
    link_proof: LinkProof,
    admin: SocketAddr,
    metrics: SocketAddr,
    workers: usize,
    trusted: TrustedHosts,
    log: String,
    reporting: ReportingSource,
}

/// The source of the settings of the request log and of traces.
#[derive(Debug, PartialEq)]
enum ReportingSource {
    /// `OBSERVABILITY_CONFIG` of the environment. It does not change while the process runs.
    Fixed(Box<RequestReporting>),
    /// The ConfigMap `config-observability`, which lies in this folder.
    Mounted(PathBuf),
}

impl ReportingSource {
    /// The revision's settings, and each later change of them.
    fn follow(self, place: &ActivatorPlace) -> watch::Receiver<Arc<RequestReporting>> {
        let folder = match self {
            Self::Fixed(reporting) => return watch::channel(Arc::from(reporting)).1,
            Self::Mounted(folder) => folder,
        };
        let mounted = if place.is_knatives() {
            MountedSettings::new(OBSERVABILITY_CONFIG_MAP, folder, |data| {
                reporting_of(Observability::parse_beside_others(data))
            })
        } else {
            MountedSettings::new(OBSERVABILITY_CONFIG_MAP, folder, |data| {
                reporting_of(Observability::parse(data))
            })
        };
        let (reporting, following) = mounted.follow();
        tokio::task::spawn_local(vital("the settings of the request log and of traces", following));
        reporting
    }
}

/// What is told about each request, by settings that were read.
fn reporting_of(
    read: Result<CheckedValue<Observability>, Findings>,
) -> Result<Arc<RequestReporting>, Vec<Problem>> {
    let checked = read.map_err(|findings| findings.problems)?;
    let reporting = checked.value.reporting();
    Ok(Arc::new(reporting.expect("it was read, and refused if it was not understood")))
}

impl ActivatorEnvironment {
    /// Reads `POD_NAME` (or `HOSTNAME`), `ACTIVATOR_{REQUESTS,LINK,ADMIN,METRICS}_ADDRESS`,
    /// `ACTIVATOR_LINK_TLS`, `ACTIVATOR_LINK_TOKEN`, `ACTIVATOR_WORKERS`, `ACTIVATOR_OBSERVABILITY`,
    /// `OBSERVABILITY_CONFIG`, `EBB_TRUSTED_HOSTS`, `EBB_LOG` and `EBB_PROFILE`; in Knative's place
    /// `ACTIVATOR_H2C_ADDRESS`, `ACTIVATOR_NETWORK` and `CLUSTER_DOMAIN` too. Returns every problem at once.
    fn read(environment: &Environment) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = EnvironmentReader::new(environment);
        let name =
            reader.required(&["POD_NAME", "HOSTNAME"], "the autoscalers know this activator by the name");
        let requests = reader.socket_address_or("ACTIVATOR_REQUESTS_ADDRESS", "[::]:8012");
        let has_proof =
            ["ACTIVATOR_LINK_TOKEN", "ACTIVATOR_LINK_TLS"].iter().any(|name| reader.text(name).is_some());
        let link = if has_proof { "[::]:8024" } else { "127.0.0.1:8024" };
        let link = reader.socket_address_or("ACTIVATOR_LINK_ADDRESS", link);
        let is_knatives = reader.choice("EBB_PROFILE", &[("ebb", false), ("knative", true)]);
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let config = Self {
            name: ReplicaName::new(name),
            requests,
            more_requests: is_knatives
                .then(|| reader.socket_address_or("ACTIVATOR_H2C_ADDRESS", "[::]:8013")),
            place: if is_knatives {
                let domain = cluster_domain(reader.text("CLUSTER_DOMAIN")).to_lowercase();
                ActivatorPlace::Knative { domain }
            } else {
                ActivatorPlace::Ebb
            },
            network: reader.text("ACTIVATOR_NETWORK").filter(|_| is_knatives).map(PathBuf::from),
            link,
            admin: reader.socket_address_or("ACTIVATOR_ADMIN_ADDRESS", "[::]:8022"),
            metrics: reader.socket_address_or("ACTIVATOR_METRICS_ADDRESS", "[::]:9091"),
            link_proof: read_link_proof(&mut reader, link),
            workers: reader.number("ACTIVATOR_WORKERS", 1, 1024).unwrap_or_else(cores),
            trusted: reader.trusted_hosts(),
            reporting: match reader.text("ACTIVATOR_OBSERVABILITY") {
                Some(folder) => ReportingSource::Mounted(folder.into()),
                None => ReportingSource::Fixed(reader.observability("OBSERVABILITY_CONFIG").1.into()),
            },
            log: reader.text_or("EBB_LOG", "info"),
        };
        reader.finish(config)
    }
}

/// Without a proof every caller of the link could take over every host, so then only this machine reaches it.
fn read_link_proof(reader: &mut EnvironmentReader<'_>, link: SocketAddr) -> LinkProof {
    if let Some(folder) = reader.text("ACTIVATOR_LINK_TLS") {
        return LinkProof::Certificate(folder.into());
    }
    let is_written = reader.text("ACTIVATOR_LINK_TOKEN").is_some();
    if let Some(token) = reader.checked("ACTIVATOR_LINK_TOKEN") {
        return LinkProof::Token(token);
    }
    if !is_written && !link.ip().to_canonical().is_loopback() {
        let flaw = format!(
            "is \"{link}\", where strangers could take the link; set ACTIVATOR_LINK_TLS or \
             ACTIVATOR_LINK_TOKEN, or write \"127.0.0.1:8024\""
        );
        reader.refuse("ACTIVATOR_LINK_ADDRESS", &flaw);
    }
    LinkProof::None
}

/// What `ebb-activator` does: serve until asked to stop, then drain.
pub fn main_from_env() -> ExitCode {
    run_program(ActivatorEnvironment::read, |config| &config.log, run)
}

fn run(config: ActivatorEnvironment) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(dataplane::IO_EVENTS_PER_TICK)
        .build_local(LocalOptions::default())?;
    runtime.block_on(serve(config))
}

async fn serve(config: ActivatorEnvironment) -> anyhow::Result<()> {
    if let Some(why) = config.network.as_deref().and_then(internal_tls::refusal) {
        anyhow::bail!("this activator cannot stand in Knative's place: {why}");
    }
    let mut stop_requests = StopRequests::listen()?;
    let (clock, registry) = (Clock::start(), MetricsRegistry::default());
    let (requests, link) = (bind(config.requests)?, bind(config.link)?);
    let link_access = match config.link_proof {
        LinkProof::None => LinkAccess::Open,
        LinkProof::Token(token) => LinkAccess::Token(token),
        LinkProof::Certificate(folder) => LinkAccess::Tls(link_certificates::keep(folder)?),
    };
    let more_requests = config.more_requests.map(bind).transpose()?;
    let listeners = Listeners { requests, more_requests, tls: None, link, link_access };
    let release_max = if config.place == ActivatorPlace::Ebb { RELEASE_MAX } else { RELEASE_MAX_OF_KNATIVE };
    let metrics = ActivatorMetrics::register(&registry);
    let memory = MemoryBudget::of_process(runtime::memory_limit());
    let activator_config = ActivatorConfig {
        name: config.name,
        workers: config.workers,
        limits: Limits { unread_memory: memory, ..Limits::default() },
        clock,
        connections: metrics.connection_budget(runtime::raise_descriptor_limit().told().present),
        metrics,
        reporting: config.reporting.follow(&config.place),
        log_format: LogFormat::Text,
        forwarders: TrustedForwarders::AllClients,
        place: config.place,
    };
    let activator = Activator::start(activator_config, listeners).context("starting the activator")?;
    let is_ready = Rc::new(Cell::new(false));
    let places = PagePlaces::new(PageLimits::STANDARD, clock);
    let trusted = config.trusted;
    let admin = ActivatorAdminPages { is_ready: Rc::clone(&is_ready), trusted: trusted.clone() };
    serve_beside(PageListener::new(bind(config.admin)?, &places)?, admin, memory);
    let metrics = ActivatorMetricsPages { registry, trusted };
    serve_beside(PageListener::new(bind(config.metrics)?, &places)?, metrics, memory);
    // Both are cancelled without loss: being synced is a state, and a signal without a waiting task is kept.
    tokio::select! {
        () = async { activator.synced().await; is_ready.set(true); std::future::pending().await } => {}
        _ = stop_requests.next() => {}
    }
    tracing::info!("draining");
    let draining = async {
        // An activator that never was synced is in no route.
        if is_ready.get() {
            activator.leave();
            leave_routes(&is_ready, activator.released(), release_max).await;
        }
        is_ready.set(false);
        activator.drained(DRAIN_PATIENCE).await;
    };
    // Cancelling the drain is what a second signal asks for.
    tokio::select! {
        () = draining => Ok(()),
        _ = stop_requests.next() => anyhow::bail!("asked twice to stop; the requests that are held are cut off"),
    }
}

/// Returns once no client is sent to this activator any more, as far as can be known. Until then the
/// activator is ready: a load balancer that asks for readiness must not be faster than the routes, and one
/// without a ready activator loses requests.
async fn leave_routes(is_ready: &Cell<bool>, released: impl Future<Output = ()>, release_max: Duration) {
    // Cancelling loses nothing: both only wait.
    tokio::select! {
        () = released => tokio::time::sleep(RELEASED_LINGER).await,
        () = tokio::time::sleep(release_max) => {
            tracing::warn!("not every owner has said in time that no route names this activator; the activator accepts no more connections");
        }
    }
    is_ready.set(false);
}

/// Ends with the process, after everything else.
fn serve_beside(door: PageListener, pages: impl PageService, memory: &'static MemoryBudget) {
    let serving = serve_pages(door, Rc::new(pages), Drain::new(), memory);
    tokio::task::spawn_local(vital("a page of the activator", serving));
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    runtime::listen(address).with_context(|| format!("listening on {address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ActivatorEnvironment, Vec<String>> {
        let environment = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let read = ActivatorEnvironment::read(&environment).map(|checked| checked.value);
        read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_problem_of_the_environment_is_named_at_once() {
        let wrong = [("ACTIVATOR_LINK_ADDRESS", "8024"), ("ACTIVATOR_WORKERS", "none")];
        let problems = read(&wrong).expect_err("three things are wrong");
        assert_eq!(
            problems,
            [
                "POD_NAME is not set; the autoscalers know this activator by the name",
                "ACTIVATOR_LINK_ADDRESS is \"8024\"; write an address with a port, such as \"127.0.0.1:8024\"",
                "ACTIVATOR_WORKERS is \"none\"; write a number from 1 to 1024",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_ready_for_5_s_after_the_word_that_no_route_names_it_and_for_30_s_without_that() {
        let seconds = |count| tokio::time::sleep(Duration::from_secs(count));
        for (word_after, expected) in [(Some(0), 5), (Some(12), 17), (None, 30)] {
            let is_ready = Cell::new(true);
            let released = async {
                match word_after {
                    Some(after) => seconds(after).await,
                    None => std::future::pending().await,
                }
            };
            let clock = Clock::start();
            let begun = clock.now();
            let looking = async {
                seconds(expected - 1).await;
                assert!(is_ready.get(), "{word_after:?}");
            };
            tokio::join!(leave_routes(&is_ready, released, RELEASE_MAX), looking);
            let took = clock.now().saturating_since(begun);
            assert_eq!(took, Duration::from_secs(expected), "{word_after:?}");
            assert!(!is_ready.get());
        }
    }

    #[test]
    fn the_ports_are_the_documented_ones() {
        let config = read(&[("HOSTNAME", "activator-0")]).expect("a name is enough");
        let ports =
            [config.requests, config.link, config.admin, config.metrics].map(|address| address.port());
        assert_eq!(ports, [8012, 8024, 8022, 9091]);
    }

    #[test]
    fn in_knatives_place_requests_come_at_two_ports_and_the_domain_is_the_clusters() {
        let name = ("POD_NAME", "activator-0");
        let given = [name, ("EBB_PROFILE", "knative"), ("CLUSTER_DOMAIN", "Corp.Example")];
        let config = read(&given).expect("enough");
        let ports = [Some(config.requests), config.more_requests].map(|address| address.map(|at| at.port()));
        assert_eq!(ports, [Some(8012), Some(8013)]);
        assert_eq!(config.place, ActivatorPlace::Knative { domain: "corp.example".to_owned() });
        let network = ("ACTIVATOR_NETWORK", "/etc/ebb/config-network");
        let named = read(&[&given[..], &[network]].concat()).expect("legal");
        assert_eq!(named.network.as_deref(), Some(std::path::Path::new("/etc/ebb/config-network")));
        let own = read(&[name, network]).expect("enough");
        assert_eq!((own.more_requests, own.place, own.network), (None, ActivatorPlace::Ebb, None));
    }

    #[test]
    fn without_a_token_the_link_is_for_this_machine_alone() {
        let read = |pairs: &[(&str, &str)]| read(&[&[("HOSTNAME", "activator-0")], pairs].concat());
        let link = |pairs: &[(&str, &str)]| read(pairs).expect("legal").link.ip().to_string();
        let token = ("ACTIVATOR_LINK_TOKEN", "000102030405060708090a0b0c0d0e0f");
        assert_eq!(link(&[]), "127.0.0.1");
        assert_eq!(link(&[token]), "::");
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

    #[tokio::test(start_paused = true)]
    async fn an_edit_of_the_mounted_settings_is_followed_and_a_broken_one_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |key: &str, value: &str| {
            std::fs::write(folder.path().join(key), value).expect("it can be written");
        };
        write("tracing-endpoint", "collector");
        let path = folder.path().display().to_string();
        // What is mounted comes before what is fixed.
        let config = read(&[
            ("HOSTNAME", "activator-0"),
            ("ACTIVATOR_OBSERVABILITY", &path),
            ("OBSERVABILITY_CONFIG", r#"{"enableRequestLog":true}"#),
        ]);
        let source = config.expect("legal").reporting;
        let following = async {
            let mut reporting = source.follow(&ActivatorPlace::Ebb);
            assert_eq!(**reporting.borrow_and_update(), RequestReporting::default());
            write("tracing-protocol", "http/protobuf");
            reporting.changed().await.expect("it is followed");
            assert!(reporting.borrow_and_update().traces.is_some());
            write("logging.enable-request-log", "perhaps");
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert_eq!(reporting.has_changed().ok(), Some(false), "the last good settings stay");
            write("logging.enable-request-log", "true");
            reporting.changed().await.expect("it is followed");
            assert!(reporting.borrow().log.is_some() && reporting.borrow().traces.is_some());
        };
        tokio::task::LocalSet::new().run_until(following).await;
    }

    #[test]
    fn without_mounted_settings_the_environment_says_what_is_told_about_requests() {
        let name = ("HOSTNAME", "activator-0");
        let fixed = |pairs: &[(&str, &str)]| match read(pairs).expect("legal").reporting {
            ReportingSource::Fixed(reporting) => *reporting,
            ReportingSource::Mounted(folder) => panic!("{}", folder.display()),
        };
        assert_eq!(fixed(&[name]), RequestReporting::default());
        let log = ("OBSERVABILITY_CONFIG", r#"{"enableRequestLog":true}"#);
        assert!(fixed(&[name, log]).log.is_some());
    }
}
