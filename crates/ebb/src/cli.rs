//! The command line.

mod cluster;
mod values;

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use activator::Network;
use anyhow::Context as _;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use platform_local::{ForeignKinds, ManifestSource};
use runtime::TrustedHost;

pub(crate) use cluster::{AdoptOptions, AutoscalerArguments, CheckOptions, ClusterOptions, ReleaseOptions};
pub(crate) use values::TokenGroup;
use values::{
    activators, autoscalers, domain, duration, pod_limit, socket_address, token_group, user_name, whose_place,
};

/// Scales ordinary workloads with their traffic, down to zero and back, and loses no request on the way.
#[derive(Debug, Parser)]
#[command(name = "ebb", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl Cli {
    /// As this name was called. The plugin of `kubectl` (`kubectl ebb`) means a cluster where nothing else is
    /// said.
    pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Self {
        let arguments: Vec<OsString> = arguments.collect();
        let name = arguments.first().map(Path::new).and_then(Path::file_stem);
        if name != Some(OsStr::new(PLUGIN)) {
            return Self::parse_from(arguments);
        }
        let matches = Self::command().bin_name("kubectl ebb").get_matches_from(arguments);
        let mut cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        match &mut cli.command {
            CliCommand::Get(options) => options.asking.cluster.is_meant = true,
            CliCommand::Explain(options) => options.asking.cluster.is_meant = true,
            CliCommand::Shadow(ShadowCommand::Report(options)) => options.asking.cluster.is_meant = true,
            CliCommand::Adopt(_)
            | CliCommand::Release(_)
            | CliCommand::Check(_)
            | CliCommand::Up(_)
            | CliCommand::Logs(_)
            | CliCommand::Lint(_)
            | CliCommand::Restart(_)
            | CliCommand::Token(_)
            | CliCommand::Delete(_)
            | CliCommand::Autoscale(_)
            | CliCommand::Import(_)
            | CliCommand::Inject(_)
            | CliCommand::Install(_)
            | CliCommand::Completion(_)
            | CliCommand::Man(_)
            | CliCommand::SampleApp
            | CliCommand::Pod(_)
            | CliCommand::QueueProxy(_) => {}
        }
        cli
    }
}

/// Under this name `kubectl` finds us.
const PLUGIN: &str = "kubectl-ebb";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run Knative Services on this machine, scaled with their traffic.
    Up(Box<UpOptions>),
    /// Show each revision: how many pods, why, who serves.
    Get(GetOptions),
    /// Show why a revision has the number of pods it has, and why not zero.
    Explain(ExplainOptions),
    /// Show what the pods of a revision printed lately.
    Logs(LogsOptions),
    /// Let a Service of a cluster be served through ebb, without losing a request.
    Adopt(AdoptOptions),
    /// Give Services of a cluster back to Kubernetes, without losing a request.
    Release(ReleaseOptions),
    /// Check a cluster: what of ebb is well there, and how to mend what is not.
    Check(CheckOptions),
    /// Check manifests and configuration without running them.
    Lint(LintOptions),
    /// Rebuild a part of a running `ebb up` from nothing while pods and traffic live on.
    Restart(RestartOptions),
    /// Show in which file a running `ebb up` keeps the token of its API. Commands read it themselves.
    Token(TokenOptions),
    /// Remove a Service from a running `ebb up`: its pods drain. It stays removed until its file is next
    /// written.
    Delete(DeleteOptions),
    /// Print what makes a Service or workload scale by CPU, as `kubectl autoscale` would.
    Autoscale(AutoscaleOptions),
    /// Print the annotations that mean what another autoscaler's document says (HPA, KEDA, Knative), and what
    /// has no equivalent.
    Import(ImportOptions),
    /// Print manifests of Kubernetes with the queue-proxies that their pods ask for (docs/kubernetes.md).
    Inject(InjectOptions),
    /// Look at what is decided in shadow and not done.
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// Let systemd run `ebb up`: writes a service with its sockets, and says what to run next.
    Install(InstallOptions),
    /// Print what makes a shell complete the commands of ebb.
    Completion(CompletionOptions),
    /// Print the manual page, or write those of every command.
    Man(ManOptions),
    /// A small web app to try ebb with: GET /?sleep=MS&prime=N&bloat=MB.
    SampleApp,
    /// One pod; started by `ebb up`.
    #[command(hide = true)]
    Pod(PodOptions),
    /// The proxy beside one app; started by `ebb pod`.
    #[command(hide = true)]
    QueueProxy(PodOptions),
}

/// What lists of processes show of a pod's processes.
#[derive(Debug, Args)]
pub(crate) struct PodOptions {
    /// Whose process it is; for people.
    pub(crate) pod: Option<String>,
}

/// Which manifests, and how they are understood.
#[derive(Debug, Args)]
pub(crate) struct ManifestOptions {
    /// Manifests: Knative Services and, optionally, the ConfigMap config-autoscaler. A directory means all
    /// *.yaml, *.yml and *.json in it, "-" standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// What follows NAME.NAMESPACE. in the hosts.
    #[arg(long, default_value = "example.com", value_parser = domain)]
    pub(crate) domain: String,
    /// Skip, with a warning, what ebb does not run: Deployments, other ConfigMaps and so on.
    #[arg(long)]
    pub(crate) ignore_foreign: bool,
}

impl ManifestOptions {
    /// Reads standard input if it was named.
    pub(crate) fn source(&self) -> anyhow::Result<ManifestSource> {
        let foreign = if self.ignore_foreign { ForeignKinds::Skipped } else { ForeignKinds::Refused };
        ManifestSource::new(self.files.clone(), &self.domain, foreign).context("reading standard input")
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    #[command(flatten)]
    pub(crate) manifests: ManifestOptions,
    /// Where requests are taken; port 0 chooses a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = socket_address)]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// Where the API answers; port 0 chooses a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", value_parser = socket_address)]
    pub(crate) api: SocketAddr,
    /// A name under which the API may be asked, besides addresses, localhost and *.svc: ebb.example.com, or
    /// *.example.com for all below. Requests under other names, and from web pages of other origins, are
    /// refused.
    #[arg(long, value_name = "NAME", env = "EBB_TRUSTED_HOSTS", value_delimiter = ',')]
    pub(crate) trusted_host: Vec<TrustedHost>,
    /// A group, by name or number, that may read the file with the API's token, besides this user, who must
    /// be in it. The token allows to restart, delete and read logs.
    #[arg(long, value_name = "GROUP", value_parser = token_group)]
    pub(crate) token_group: Option<TokenGroup>,
    /// Take the place of the `ebb up` of this user whose API is at the same address: its listening sockets,
    /// its pods as they run, and all that it knows of them. It goes on answering what it holds, and ends.
    /// Where nobody runs, this is an ordinary start. With API: of the one whose API is there, whatever --api
    /// says.
    #[arg(long, value_name = "API", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = whose_place)]
    pub(crate) take_over: Option<WhosePlace>,
    /// What is logged: a level (error, warn, info, debug, trace), also per part, such as
    /// "info,autoscaler=debug".
    #[arg(long, value_name = "FILTER", env = "EBB_LOG", default_value = "info")]
    pub(crate) log: String,
    /// How log lines look.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogStyle,
    /// Clients, by address or network, whose Forwarded and X-Forwarded-* headers apps get to see, such as a
    /// proxy in front. Those of other clients are replaced by what is known here. `0.0.0.0/0,::/0` are all.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', default_values = ["127.0.0.0/8", "::1/128"])]
    pub(crate) trust_forwarded: Vec<Network>,
    /// Decide about every Service, and do nothing of it: `ebb shadow report` says what would have been done.
    #[arg(long)]
    pub(crate) shadow: bool,
    /// How many activators take requests, behind the one address: as a cluster has several, each with its
    /// share of the slots.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = activators)]
    pub(crate) activators: usize,
    /// How many pods may have processes at once; further ones wait. Without this, as many as the machine's
    /// memory holds at 48 MiB each.
    #[arg(long, value_name = "N", value_parser = pod_limit)]
    pub(crate) max_pods: Option<usize>,
    /// How many autoscalers decide: they divide the revisions among them, and one that stops or hangs for 15
    /// s is replaced by another.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = autoscalers)]
    pub(crate) autoscalers: usize,
    /// How long an app's line may wait until somebody reads standard output, before it is dropped and counted
    /// ("0s": drops at once). Without this, apps wait for a file or pipe, and not at all for a terminal.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) log_patience: Option<Duration>,
}

/// TLS where requests are taken.
#[derive(Debug, Args)]
pub(crate) struct TlsOptions {
    /// Take requests over TLS too, with this certificate: a chain in PEM, the server's own first. Several,
    /// each with its --tls-key in the same order, serve several names. The files are read again when they
    /// change.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Vec<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Vec<PathBuf>,
    /// "dev": take requests over TLS too, with a self-made certificate for localhost and the Services' hosts;
    /// clients have to be told to trust it.
    #[arg(long, value_name = "MODE", conflicts_with_all = ["tls_cert", "tls_key"])]
    pub(crate) tls: Option<TlsMode>,
    /// Where requests are taken over TLS; port 0 chooses a free one. Without this, at port 8443 of the
    /// address of --listen.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub(crate) tls_listen: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsMode {
    /// A certificate made on this machine, for this machine.
    Dev,
}

/// Whose place another `ebb up` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhosePlace {
    /// Of the one whose API is where ours is to be.
    SameApi,
    /// Of the one whose API is there.
    ApiAt(SocketAddr),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogStyle {
    /// One readable line.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    /// How often, since when and why it differs from the count that there is.
    Report(ShadowReportOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShadowReportOptions {
    #[command(flatten)]
    pub(crate) asking: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AutoscaleOptions {
    /// The Service or workload.
    pub(crate) name: String,
    /// The least number of pods.
    #[arg(long, value_name = "PODS", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub(crate) min: u32,
    /// The largest number of pods.
    #[arg(long, value_name = "PODS", value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub(crate) max: u32,
    /// The CPU use to aim at, in percent of what the pods request.
    #[arg(long, value_name = "PERCENT", default_value = "80", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpu_percent: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// What to import; "-" is standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InjectOptions {
    /// Manifests; "-" is standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// The queue-proxy's image.
    #[arg(long, default_value = "ebb-queue-proxy")]
    pub(crate) image: String,
    /// The authority's certificates, by which a queue-proxy knows the autoscaler: `ca.crt` of the Secret
    /// `ebb-ca`.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: PathBuf,
    /// The ConfigMap `config-autoscaler` of the cluster, with what applies where a template says nothing, and
    /// `config-observability`, in one file or in one each; without them every key has its default.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GetOptions {
    /// Only this revision: namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: Option<String>,
    /// Show again every second, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) asking: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    #[command(flatten)]
    pub(crate) asking: AutoscalerArguments,
}

/// What every command that asks a running `ebb up` takes.
#[derive(Debug, Args)]
pub(crate) struct ApiArguments {
    /// How to show it.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

/// Which `ebb up` is meant.
#[derive(Debug, Args)]
pub(crate) struct ApiOptions {
    /// The API of the running `ebb up`.
    #[arg(long = "api", value_name = "URL", env = "EBB_API", default_value = "http://127.0.0.1:9000")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) credentials: CredentialOptions,
}

/// By what an API knows the user of a command.
#[derive(Debug, Args)]
pub(crate) struct CredentialOptions {
    /// The file with the token of the API, where that is on another machine. Without this, the one that the
    /// API of this machine names.
    #[arg(long, value_name = "FILE", env = "EBB_TOKEN_FILE", hide_short_help = true)]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people; what does not fit the terminal's width is left out.
    Table,
    /// For people with room: every column, nothing cut.
    Wide,
    /// For programs.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct LogsOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    /// Show further lines as they are printed, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show those of the pod that ended last.
    #[arg(short, long, conflicts_with = "follow")]
    pub(crate) previous: bool,
    /// Show those that are not older, such as 10s, 5m or 1h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// Show lines as they were printed, with whatever controls a terminal: colours, and what an app likes.
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) asking: ApiArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LintOptions {
    #[command(flatten)]
    pub(crate) manifests: ManifestOptions,
}

#[derive(Debug, Args)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    pub(crate) whose: ScopeOptions,
    /// Manifests, as of `ebb up`: best a directory, in which files can come and go. Not needed with
    /// --uninstall.
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present_any = ["uninstall", "for_package"], num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Where requests are taken.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = socket_address)]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// Where the API answers.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", value_parser = socket_address)]
    pub(crate) api: SocketAddr,
    /// A group that may read the file with the API's token, as of `ebb up`. With --system it takes --run-as.
    #[arg(long, value_name = "GROUP", value_parser = token_group)]
    pub(crate) token_group: Option<TokenGroup>,
    /// As whom ebb and its apps run, with --system. Without this, as a user that systemd makes up, which may
    /// write below /var/lib/ebb alone.
    #[arg(long, value_name = "USER", requires = "system", value_parser = user_name)]
    pub(crate) run_as: Option<String>,
    /// Where units are written, instead of where systemd looks for those that a person writes.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) unit_directory: Option<PathBuf>,
    /// Below which manual pages and shells' completions are written, instead of where these are looked for.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) manual_directory: Option<PathBuf>,
    /// Show what would be written or removed, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove what an earlier `ebb install` wrote.
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// Write what a package of ebb brings, for /usr/bin/ebb and manifests in /etc/ebb; `cargo xtask dist`
    /// does.
    #[arg(long, hide = true, requires = "system", requires = "unit_directory", conflicts_with_all = ["files", "uninstall", "token_group"])]
    pub(crate) for_package: bool,
}

/// Whose systemd is meant.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ScopeOptions {
    /// For this user: apps run as this user does.
    #[arg(long)]
    pub(crate) user: bool,
    /// For the machine.
    #[arg(long)]
    pub(crate) system: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionOptions {
    /// Which shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Write the pages of all commands there.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// Make another one: the former one is refused from then on.
    #[arg(long)]
    pub(crate) rotate: bool,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RestartOptions {
    /// Which part.
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The control loop; counts and traffic stay as they are meanwhile.
    Autoscaler,
    /// The proxy before the pods; the new one is ready before the old one stops.
    Activator,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    fn read(arguments: &[&str]) -> Cli {
        Cli::read(arguments.iter().map(OsString::from))
    }

    #[test]
    fn a_cluster_is_meant_by_its_options_and_by_the_plugins_name() {
        let is_given = |arguments: &[&str]| {
            let CliCommand::Get(options) = read(arguments).command else { panic!("it is `get`") };
            options.asking.cluster.is_given()
        };
        assert!(!is_given(&["ebb", "get"]) && !is_given(&["/usr/bin/ebb", "get", "-A"]));
        assert!(is_given(&["ebb", "get", "-n", "shop"]) && is_given(&["ebb", "get", "--context", "test"]));
        assert!(is_given(&["/usr/bin/kubectl-ebb", "get"]));
    }
}
