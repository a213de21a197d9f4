//! What the queue-proxy is told by its environment.
//!
//! Knative's variables keep their names and meaning; ours begin with `EBB_`. Everything is read once, from a
//! map, and every problem is reported at once. Variables of Knative's that steer what is not built yet are
//! accepted with a warning, so that an existing pod template works as it is.

mod place;
mod ports;
mod reading;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use dataplane::probe::{ContainerNetwork, Probe};
pub use place::QueueProxyPlace;
pub(crate) use ports::PortPair;
pub use ports::Ports;
use runtime::{Environment, EnvironmentReader, LoggedRevision, RequestReporting, TrustedHosts};
use vocabulary::{
    AppProtocol, CheckedValue, IgnoredUserAgents, LateTimeout, LinkToken, PodName, Problem, RequestTimeouts,
};

/// The longest wait of a drain for the owner's word that no route leads to the pod: longer than a lease (15
/// s), so that a new owner can say it. With the time that nodes need to hear of it, it makes up
/// [`vocabulary::DRAIN_ACCEPTS_MAX`].
pub(crate) const DRAIN_LINGER_MAX: Duration = Duration::from_secs(30);

/// The effective configuration of a queue-proxy, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Whose queue-proxy this one stands for, of which defaults of the others follow.
    pub place: QueueProxyPlace,
    /// `SERVING_POD`: the name under which the pod reports; in Knative's place with its namespace.
    pub pod: PodName,
    /// `SERVING_NAMESPACE`, `SERVING_REVISION`: for logs and metrics.
    pub namespace: String,
    /// `SERVING_REVISION`: the name of the revision, for logs and metrics.
    pub revision: String,
    /// `CONTAINER_CONCURRENCY`: how many requests the app may have at once; 0 means no limit.
    pub container_concurrency: u32,
    /// `REVISION_TIMEOUT_SECONDS`, `REVISION_RESPONSE_START_TIMEOUT_SECONDS`,
    /// `REVISION_IDLE_TIMEOUT_SECONDS`; 0 means no limit.
    pub timeouts: RequestTimeouts,
    /// `USER_PORT`: where the app listens, on either loopback address.
    pub app_port: u16,
    /// `EBB_APP_PROTOCOL`: the protocol of the app at that port: `http1`, `h2c`, or nothing if that is not
    /// known.
    pub app_protocol: AppProtocol,
    /// The ports on which the queue-proxy listens.
    pub ports: Ports,
    /// `EBB_MORE_PORTS`: more ports of the app, with ours before them (`8100:9090,8101:9091`). They share the
    /// app's limits.
    pub more_ports: Vec<PortPair>,
    /// The address of our listeners: `EBB_BIND`, else loopback when ports are announced, else every
    /// interface. The link's is loopback where it has no token.
    pub bind: IpAddr,
    /// `EBB_LINK_TOKEN`: what proves that a caller is the autoscaler. When ports are announced and none is
    /// given, a random one is announced with them.
    pub link_token: Option<LinkToken>,
    /// `EBB_LINK_CA`, in Knative's place else `ROOT_CA`: the authority's certificates, in PEM: a caller with
    /// an autoscaler's certificate of this authority is the autoscaler. Comes before a token.
    pub link_ca: Option<String>,
    /// The probes that we run.
    pub probes: AppProbes,
    /// `EBB_ANNOUNCE`: whether the ports are written to standard output once bound.
    pub announce: PortAudience,
    /// `EBB_USAGE`: the source of the app's usage of CPU and memory.
    pub usage: AppUsageSource,
    /// How long a drain may take: by the timeouts, and by `EBB_DRAIN_LIMIT` (300 s) where a request has none;
    /// in Knative's place no longer than the pod has less `app_grace`.
    pub drain_limit: Duration,
    /// `EBB_DRAIN_LINGER`: how long a drain waits for the owner's word that no route leads here any more;
    /// until then new connections are accepted. 30 s, which is the most, or 0 when ports are announced (then
    /// no route leads here when the drain begins).
    pub drain_linger: Duration,
    /// `EBB_APP_GRACE`: how long the app may take to end once its requests have; 30 s, as Kubernetes gives a
    /// pod that says nothing. In Knative's place a quarter of the pod's grace period, at most 10 s.
    pub app_grace: Duration,
    /// `EBB_NODE_ADDRESSES`: those of the pod's node, from which kubelet's connections come.
    pub node_addresses: Vec<IpAddr>,
    /// `EBB_TRUSTED_HOSTS`: names under which the admin port may be asked, besides addresses, `localhost` and
    /// `*.svc`.
    pub trusted: TrustedHosts,
    /// `EBB_SHADOWING_HEADERS`: the treatment of a client's headers that the app could take for ours.
    pub shadowing_headers: ShadowingHeaders,
    /// `EBB_IGNORE_USER_AGENTS`: the user agents whose requests are passed on and not measured; an empty
    /// value means none.
    pub ignored_user_agents: IgnoredUserAgents,
    /// `EBB_LOG`, else `SERVING_LOGGING_LEVEL`: which log lines are written, as a filter of `tracing`.
    pub log: String,
    /// `OBSERVABILITY_CONFIG`: the settings of the request log and of traces.
    pub reporting: RequestReporting,
    /// `OBSERVABILITY_CONFIG`: whether probes have lines there.
    pub logged_probes: LoggedProbes,
    /// `SERVING_REVISION`, `SERVING_NAMESPACE`, `SERVING_SERVICE`, `SERVING_CONFIGURATION`, `SERVING_POD`,
    /// `SERVING_POD_IP`: the names of the revision and the pod in each line of the request log.
    pub logged_as: LoggedRevision,
}

/// The judge of a pod's readiness once the probes here pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadinessJudge {
    /// The queue-proxy: the pod is reported ready as soon as the probes pass.
    #[default]
    QueueProxy,
    /// The platform, which asks more than we do: a command, another container.
    Platform,
}

/// The probes of the app that the queue-proxy runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppProbes {
    /// `SERVING_READINESS_PROBE`; without one the app is always ready.
    pub readiness: Probe,
    /// Those of further containers, where that is an array: the pod is ready while each of all passes.
    pub more_readiness: Vec<Probe>,
    /// `EBB_LIVENESS_PROBE`: when it fails, this process ends and the pod with it.
    pub liveness: Option<Probe>,
    /// `EBB_READINESS_JUDGE`: the judge of the pod's readiness once these probes pass.
    pub judge: ReadinessJudge,
    /// `EBB_STARTUP_PROBE`: the other two wait for it.
    pub startup: Option<Probe>,
}

/// The reader of the announcement of the bound ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAudience {
    /// No reader: the configuration fixes the ports.
    No,
    /// One line of JSON on standard output.
    Stdout,
}

/// The source of the app's usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppUsageSource {
    /// No source; on a cluster the metrics server knows the usage.
    Unmeasured,
    /// The parent process, which writes lines to standard input.
    Stdin,
}

/// The treatment of a client's headers such as `X_Forwarded_For` or `K_Original_Host`: in an app that sees
/// headers as CGI names them they cannot be told from those with `-`, which only our proxies set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowingHeaders {
    /// The queue-proxy removes these headers.
    Drop,
    /// The app sees them: it needs them, and tells the two apart.
    Keep,
}

/// Whether probes of our own hops have lines in the request log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoggedProbes {
    /// No probe has a line.
    #[default]
    None,
    /// Each probe has a line, as any other request.
    All,
}

/// Variables of Knative's that ask for what is not built yet, with the values that ask for nothing. Others of
/// Knative's that are not read here name this pod in places that need no name here, or ask for what happens
/// anyway (`ENABLE_HTTP_FULL_DUPLEX`, L43; `ENABLE_MULTI_CONTAINER_PROBES`, as the probes' form says).
const NOT_BUILT: &[(&str, &[&str])] = &[
    ("ENABLE_HTTP2_AUTO_DETECTION", &["", "false"]),
    ("QUEUE_PROXY_TLS_MIN_VERSION", &[""]),
    ("QUEUE_PROXY_TLS_MAX_VERSION", &[""]),
    ("QUEUE_PROXY_TLS_CIPHER_SUITES", &[""]),
    ("QUEUE_PROXY_TLS_CURVE_PREFERENCES", &[""]),
    ("OTEL_SERVICE_NAME", &[""]),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", &[""]),
    ("OTEL_METRIC_EXPORT_INTERVAL", &[""]),
    ("OTEL_TRACES_SAMPLER", &[""]),
    ("OTEL_TRACES_SAMPLER_ARG", &[""]),
    ("METRICS_PROMETHEUS_HOST", &[""]),
    ("METRICS_PROMETHEUS_PORT", &[""]),
];

/// Ours, and those of other programs of ours that may be inherited.
const OURS: &[&str] = &[
    "EBB_ADMIN_PORT",
    "EBB_APP_NETWORK",
    "EBB_APP_PROTOCOL",
    "EBB_LINK_CA",
    "EBB_LINK_PORT",
    "EBB_LINK_TOKEN",
    "EBB_STAT_PORT",
    "EBB_METRICS_PORT",
    "EBB_MORE_PORTS",
    "EBB_NODE_ADDRESSES",
    "EBB_ANNOUNCE",
    "EBB_APP_GRACE",
    "EBB_USAGE",
    "EBB_BIND",
    "EBB_DRAIN_LIMIT",
    "EBB_DRAIN_LINGER",
    "EBB_IGNORE_USER_AGENTS",
    "EBB_LIVENESS_PROBE",
    "EBB_READINESS_JUDGE",
    "EBB_STARTUP_PROBE",
    "EBB_TRUSTED_HOSTS",
    "EBB_SHADOWING_HEADERS",
    "EBB_LOG",
    "EBB_API",
];

impl Config {
    /// Reads an environment. Warnings come with the configuration, problems instead of it.
    pub fn read(environment: &Environment) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = EnvironmentReader::new(environment);
        reader.refuse_unknown("EBB_", OURS);
        for (name, nothing) in NOT_BUILT {
            if reader.written(name).is_some_and(|value| !nothing.contains(&value)) {
                reader.warn(name, "has no effect yet");
            }
        }
        let config = Self::from_reader(&mut reader);
        reader.finish(config)
    }

    fn from_reader(reader: &mut EnvironmentReader<'_>) -> Self {
        let place = QueueProxyPlace::read(reader);
        let announce =
            reader.choice("EBB_ANNOUNCE", &[("", PortAudience::No), ("stdout", PortAudience::Stdout)]);
        let app_port = reader.required_port("USER_PORT");
        let requests = reader.required_port_or_any("QUEUE_SERVING_PORT");
        let app_protocol = place.app_protocol(reader.checked("EBB_APP_PROTOCOL"), requests);
        let (bind, linger) = match announce {
            PortAudience::No => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), DRAIN_LINGER_MAX),
            PortAudience::Stdout => (IpAddr::V4(Ipv4Addr::LOCALHOST), Duration::ZERO),
        };
        let timeouts = RequestTimeouts {
            request: reader.required_seconds("REVISION_TIMEOUT_SECONDS"),
            response_start: reader.seconds("REVISION_RESPONSE_START_TIMEOUT_SECONDS"),
            idle: reader.seconds("REVISION_IDLE_TIMEOUT_SECONDS"),
            // The owner says it, of whose link nothing is known yet.
            late: LateTimeout::default(),
        };
        let (observability, reporting) = place.observability(reader);
        let logged_probes =
            if observability.enable_probe_request_log { LoggedProbes::All } else { LoggedProbes::None };
        let app_grace = reader.duration_or("EBB_APP_GRACE", place.app_grace(timeouts));
        let namespace = reader.text_or("SERVING_NAMESPACE", "");
        Self {
            place,
            pod: place.pod_name(&namespace, reader.required_text("SERVING_POD")),
            namespace,
            revision: reader.text_or("SERVING_REVISION", ""),
            container_concurrency: reader.required_count("CONTAINER_CONCURRENCY"),
            timeouts,
            app_port,
            app_protocol,
            ports: Ports {
                requests,
                admin: reader.port_or("EBB_ADMIN_PORT", 8022),
                link: reader.port_or("EBB_LINK_PORT", 8024),
                stat: reader.port_or_off("EBB_STAT_PORT", 9090),
                metrics: reader.port_or("EBB_METRICS_PORT", 9091),
            },
            more_ports: reader.list("EBB_MORE_PORTS"),
            bind: reader.parsed("EBB_BIND", "an IP address").unwrap_or(bind),
            link_token: reader.checked("EBB_LINK_TOKEN"),
            link_ca: place.link_ca(reader),
            probes: AppProbes::from_reader(reader, app_port, app_protocol),
            announce,
            usage: reader
                .choice("EBB_USAGE", &[("", AppUsageSource::Unmeasured), ("stdin", AppUsageSource::Stdin)]),
            drain_limit: place.drain_limit(reader, timeouts, app_grace),
            drain_linger: reader.duration_up_to("EBB_DRAIN_LINGER", linger, DRAIN_LINGER_MAX),
            app_grace,
            node_addresses: reader.list("EBB_NODE_ADDRESSES"),
            trusted: reader.trusted_hosts(),
            shadowing_headers: reader.choice(
                "EBB_SHADOWING_HEADERS",
                &[("drop", ShadowingHeaders::Drop), ("keep", ShadowingHeaders::Keep)],
            ),
            ignored_user_agents: reading::ignored_user_agents(reader, "EBB_IGNORE_USER_AGENTS"),
            reporting,
            logged_probes,
            logged_as: reading::logged_revision(reader),
            log: reading::log_filter(reader),
        }
    }
}

impl AppProbes {
    fn from_reader(reader: &mut EnvironmentReader<'_>, app_port: u16, app_protocol: AppProtocol) -> Self {
        let networks = [
            ("", ContainerNetwork::None),
            ("bridge", ContainerNetwork::Bridge),
            ("host", ContainerNetwork::Host),
        ];
        let network = reader.choice("EBB_APP_NETWORK", &networks);
        let as_app_speaks = |probe: Probe| probe.of_app(app_port, app_protocol).in_network(app_port, network);
        let readiness = reading::probes(reader, "SERVING_READINESS_PROBE", app_port);
        let mut readiness = readiness.into_iter().map(as_app_speaks);
        Self {
            readiness: readiness.next().unwrap_or_else(Probe::none),
            more_readiness: readiness.collect(),
            liveness: reading::probe(reader, "EBB_LIVENESS_PROBE", app_port).map(as_app_speaks),
            startup: reading::probe(reader, "EBB_STARTUP_PROBE", app_port).map(as_app_speaks),
            judge: reader.choice(
                "EBB_READINESS_JUDGE",
                &[("queue-proxy", ReadinessJudge::QueueProxy), ("platform", ReadinessJudge::Platform)],
            ),
        }
    }
}

#[cfg(test)]
mod tests;
