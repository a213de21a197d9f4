//! The life of one queue-proxy: bind, serve, drain, end.

mod link_port;
mod parts;

use std::io::Write;
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use dataplane::{AsyncBreaker, Drain, MemoryBudget, Tracer, UpstreamLimits, Upstreams};
use link::LinkAccess;
use runtime::{Clock, LogFormat, LoggedRevision, PagePlaces, RequestLog, StopRequests, descriptor_limit};
use throttling::{Breaker, BreakerLimits};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};
use vocabulary::{AppProtocol, BootId, QueueProxyAnnouncement};

use crate::adopted::AdoptedClients;
use crate::app_life::AppLife;
use crate::config::{AppUsageSource, Config, PortAudience, PortPair};
use crate::health::{AppFailure, Health};
use crate::link::LinkServer;
use crate::load::LoadBook;
use crate::metrics::QueueProxyMetrics;
use crate::own_peers::OwnPeers;
use crate::pages::PAGE_LIMITS;
use crate::settings::OwnerSettings;
use crate::stack::{PodStack, app::AppEnd, logging::RequestLogging};
use crate::usage;
use link_port::LinkPort;
use parts::{LocalTask, PodPages, ProxyParts};

/// How many requests may wait for each one that runs (Knative's number).
const DEPTH_PER_SLOT: u32 = 10;

/// How long the end of this process, and so of its pod, waits for a collector that does not take the last
/// traces.
const TRACES_LAST_MAX: Duration = Duration::from_secs(1);

/// Why a queue-proxy ended; each reason has an exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It was asked to stop and finished what it held, or its time for that was up.
    Drained,
    /// It was asked a second time.
    Hurried,
    /// The app is beyond help.
    Unhealthy(AppFailure),
}

/// A queue-proxy whose ports are bound and that serves nothing yet.
pub struct BoundProxy {
    config: Config,
    clock: Clock,
    requests: TcpListener,
    /// The listeners for further ports of the app.
    more: Vec<(PortPair, TcpListener)>,
    admin: TcpListener,
    link: LinkPort,
    stat: Option<TcpListener>,
    metrics: Option<TcpListener>,
    /// The pod and its node, whose connections are not those of clients.
    own_peers: Rc<OwnPeers>,
}

/// Binds all ports of the configuration. Fails if one cannot be had, but for the port of metrics, and in
/// Knative's place that of the link.
pub fn bind(config: Config, clock: Clock) -> anyhow::Result<BoundProxy> {
    let listen = |port, what| {
        runtime::listen(SocketAddr::new(config.bind, port)).with_context(|| format!("port {port} ({what})"))
    };
    // Metrics are worth a port, and not an app that cannot be reached: a container of the pod may use this
    // port without having declared it.
    let metrics = listen(config.ports.metrics, "metrics")
        .inspect_err(|error| error!("{error:#}; metrics are not served"))
        .ok();
    let more = config.more_ports.iter().map(|&pair| Ok((pair, listen(pair.requests, "requests")?)));
    Ok(BoundProxy {
        more: more.collect::<anyhow::Result<_>>()?,
        requests: listen(config.ports.requests, "requests")?,
        admin: listen(config.ports.admin, "admin")?,
        link: LinkPort::bind(&config)?,
        stat: config.ports.stat.map(|port| listen(port, "stat")).transpose()?,
        metrics,
        own_peers: Rc::new(OwnPeers::of_pod(&config.node_addresses)),
        config,
        clock,
    })
}

impl BoundProxy {
    /// The ports that were bound, and the token of the link.
    pub fn announcement(&self) -> QueueProxyAnnouncement {
        let port = |listener: &TcpListener| {
            listener.local_addr().map(|address| address.port()).expect("a bound socket has an address")
        };
        QueueProxyAnnouncement {
            requests: port(&self.requests),
            admin: port(&self.admin),
            link: self.link.number(),
            stat: self.stat.as_ref().map_or(0, port),
            metrics: self.metrics.as_ref().map_or(0, port),
            link_token: self.link.token,
        }
    }

    /// Announces the bound ports on standard output, if the configuration asks for that. A failure is only
    /// logged.
    pub fn announce(&self) {
        let announcement = self.announcement();
        debug!(?announcement, "listening");
        if self.config.announce == PortAudience::Stdout {
            let line = serde_json::to_string(&announcement).expect("numbers and a text are JSON");
            let mut stdout = std::io::stdout();
            if let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
                warn!(%error, "cannot announce the ports");
            }
        }
    }

    /// Serves until `stop` is asked for and the drain is done, or the app is beyond help. Must run where
    /// local tasks can be spawned.
    pub async fn run(self, mut stop: StopRequests) -> ProcessEnd {
        let leaving = CancellationToken::new();
        let running = self.run_until(leaving.clone());
        tokio::pin!(running);
        let mut requests = 0;
        loop {
            // The work is pinned outside and goes on, and a signal without a waiting task is kept.
            tokio::select! {
                ended = &mut running => return ended,
                request = stop.next() => {
                    requests += 1;
                    debug!(?request, "asked to stop");
                    leaving.cancel();
                    if requests > 1 {
                        return ProcessEnd::Hurried;
                    }
                }
            }
        }
    }

    /// Serves until `leaving` is cancelled and the drain is done, or the app is beyond help. Must run where
    /// local tasks can be spawned.
    pub async fn run_until(self, leaving: CancellationToken) -> ProcessEnd {
        let metrics = QueueProxyMetrics::new(self.config.container_concurrency);
        metrics.note_link_port(self.link.open.is_some());
        let settings = Rc::new(OwnerSettings::new());
        let memory = MemoryBudget::of_process(runtime::memory_limit());
        let limits = UpstreamLimits { memory, ..UpstreamLimits::default() };
        let parts = ProxyParts {
            upstreams: Upstreams::counting_late_bytes(self.clock, limits, metrics.late_bytes()),
            adopted: Rc::new(self.adopted(&settings)),
            load: Rc::new(LoadBook::new(self.clock)),
            usage: Rc::default(),
            life: Rc::new(AppLife::new(self.config.announce, self.config.usage)),
            health: Health::new(),
            settings,
            drain: Drain::within(metrics.connection_budget(descriptor_limit())),
            tracer: self.tracer(&metrics),
            metrics,
            pages: PodPages { drain: Drain::new(), places: PagePlaces::new(PAGE_LIMITS, self.clock) },
            memory,
            leaving,
            left: CancellationToken::new(),
        };
        let linked = self.link.open.as_ref().map(|open| self.linked(&parts, open.access.clone()));
        let stacks = self.stacks(&parts);
        let Self { config, clock, requests, more, admin, link, stat, metrics, own_peers, .. } = self;
        // The small servers end last, with the process: what they tell matters most at the end.
        let _admin = parts.serve_beside(admin, parts.admin_pages(clock, config.trusted.clone(), own_peers));
        let _stat = stat.map(|stat| parts.serve_beside(stat, parts.stat_pages(&config)));
        let _metrics = metrics.map(|metrics| parts.serve_beside(metrics, parts.metrics_pages(&config)));
        let listeners = iter::once(requests).chain(more.into_iter().map(|(_, listener)| listener));
        let _requests: Vec<LocalTask> = listeners
            .zip(stacks)
            .map(|(listener, stack)| LocalTask::of_server(listener, stack, &parts.drain, parts.memory))
            .collect();
        let _link = linked.zip(link.open).map(|(linked, open)| LocalTask::of_link(linked, open.listener));
        let adopted = Rc::clone(&parts.adopted);
        let _adopted = LocalTask::new(async move { adopted.run().await });
        let load = Rc::clone(&parts.load);
        let _seconds = LocalTask::new(async move { load.run().await });
        let (usage, life) = (Rc::clone(&parts.usage), Rc::clone(&parts.life));
        let _traces =
            config.reporting.traces.is_some().then(|| LocalTask::new(parts.tracer.clone().deliver()));
        let _usage =
            (config.usage == AppUsageSource::Stdin).then(|| LocalTask::new(usage::read_stdin(usage, life)));
        // The cancelled side is not needed any more: the process ends, and its exit code says why.
        let ended = tokio::select! {
            unhealthy = parts.health.watch(&config.probes, clock) => ProcessEnd::Unhealthy(unhealthy),
            () = parts.run_drain(&config, clock) => ProcessEnd::Drained,
        };
        parts.tracer.flush(TRACES_LAST_MAX).await;
        ended
    }

    /// One stack for each port of the app, in the order of the listeners. All share one breaker and one load
    /// book: their requests run in one app.
    fn stacks(&self, parts: &ProxyParts) -> Vec<Rc<PodStack>> {
        let Config { container_concurrency, timeouts, app_port, app_protocol, .. } = self.config;
        let breaker = (container_concurrency > 0).then(|| {
            let depth = container_concurrency.saturating_mul(DEPTH_PER_SLOT);
            let (capacity_max, capacity) = (container_concurrency, container_concurrency);
            let limits = BreakerLimits { depth, capacity_max, capacity };
            AsyncBreaker::new(Breaker::new(limits).expect("depth and capacity are above zero"))
        });
        let logging = self.logging(parts).map(Rc::new);
        let more = self.more.iter().map(|(pair, _)| (pair.app, AppProtocol::Unsaid));
        let app_ports = iter::once((app_port, app_protocol)).chain(more);
        let stacks = app_ports.map(|(port, protocol)| {
            Rc::new(PodStack {
                place: self.config.place,
                pod: self.config.pod.clone(),
                clock: self.clock,
                timeouts,
                container_concurrency,
                shadowing: self.config.shadowing_headers,
                ignored_user_agents: self.config.ignored_user_agents.clone(),
                breaker: breaker.clone(),
                load: Rc::clone(&parts.load),
                health: Rc::clone(&parts.health),
                settings: Rc::clone(&parts.settings),
                metrics: Rc::clone(&parts.metrics),
                drain: parts.drain.clone(),
                app: AppEnd::new(parts.upstreams.clone(), port, protocol),
                life: Rc::clone(&parts.life),
                logging: logging.clone(),
                tracer: parts.tracer.clone(),
            })
        });
        stacks.collect()
    }

    /// The tracer, with the resource attributes that Knative's queue-proxy sends.
    fn tracer(&self, metrics: &QueueProxyMetrics) -> Tracer {
        let LoggedRevision { name, namespace, service, configuration, pod_name, pod_ip: _ } =
            &self.config.logged_as;
        let program = [
            ("service.name", "queue-proxy"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", pod_name),
            ("k8s.namespace.name", namespace),
            ("k8s.pod.name", pod_name),
            ("kn.service.name", service),
            ("kn.configuration.name", configuration),
            ("kn.revision.name", name),
        ];
        let tracer = Tracer::new(self.clock, &program, metrics.spans());
        tracer.follow(self.config.reporting.traces.as_ref());
        tracer
    }

    fn logging(&self, parts: &ProxyParts) -> Option<RequestLogging> {
        let Config { reporting, logged_probes, logged_as, .. } = &self.config;
        let template = reporting.log.clone()?;
        let log =
            RequestLog::new(template, logged_as.clone(), LogFormat::Text, parts.metrics.dropped_log_lines());
        Some(RequestLogging::new(log, *logged_probes, self.clock))
    }

    fn linked(&self, parts: &ProxyParts, access: LinkAccess) -> LinkServer {
        LinkServer {
            access,
            refused: parts.metrics.refused_links(),
            pod: self.config.pod.clone(),
            boot: BootId(random_number()),
            container_concurrency: self.config.container_concurrency,
            timeouts: self.config.timeouts,
            clock: self.clock,
            load: Rc::clone(&parts.load),
            usage: Rc::clone(&parts.usage),
            health: Rc::clone(&parts.health),
            judge: self.config.probes.judge,
            settings: Rc::clone(&parts.settings),
            adopted: Rc::clone(&parts.adopted),
            upstreams: parts.upstreams.clone(),
        }
    }

    fn adopted(&self, settings: &Rc<OwnerSettings>) -> AdoptedClients {
        let more = self.more.iter().map(|(pair, _)| pair.app);
        let ports = iter::once(self.config.app_port).chain(more).collect();
        AdoptedClients::new(self.clock, ports, Rc::clone(&self.own_peers), Rc::clone(settings))
    }
}

/// A number that no other start of this process is likely to draw.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests;
