//! The command line: which commands there are, and what each takes.

mod annotation_names;
mod api;
mod cluster;
mod cluster_install;
mod images;
mod part;
mod plugin;
mod replaying;
mod running;
mod serving;
pub(crate) mod simulation;
mod values;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use autoscaler::api_types::LedgerRange;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use api::{ApiOptions, OutputFormat};
pub(crate) use cluster::{
    AdoptOptions, AutoscalerArguments, AutoscalerPlace, CheckOptions, ClusterOptions, DashboardOptions,
    EBBS_SYSTEM, KNATIVES_SYSTEM, RecordCommand, RecordSaveOptions, ReleaseOptions,
};
pub(crate) use cluster_install::{ClusterInstallOptions, EbbImages};
pub(crate) use images::ImageArguments;
pub(crate) use part::Part;
pub(crate) use replaying::{RecordMoment, ReplayOptions};
pub(crate) use running::RunOptions;
pub(crate) use serving::{
    InstallOptions, LogStyle, ManifestOptions, ReadingOptions, RecordOptions, TlsMode, TlsOptions, UpOptions,
};
pub(crate) use simulation::{
    LengthOptions, ScenarioOptions, SimulateArguments, SimulateOptions, SimulationOrder, VariantOption,
    WaitObjective, WaitQuantile,
};
pub(crate) use values::{GatewayName, TakeOverTarget, TokenGroup};
use values::{duration, gateway_name, positive_duration, utc_instant};

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
        if let Some(command) = CliCommand::of_pod_process(&arguments) {
            return Self { command };
        }
        let name = arguments.first().map(Path::new).and_then(Path::file_stem);
        if name != Some(OsStr::new(plugin::PLUGIN)) {
            return Self::of(&Self::command().get_matches_from(arguments));
        }
        let matches = plugin::matches(plugin::command(Self::command()), arguments);
        let matches = matches.unwrap_or_else(|error| error.exit());
        if let Some((plugin::INSTALL, own)) = matches.subcommand() {
            let options = ClusterInstallOptions::from_arg_matches(own).unwrap_or_else(|error| error.exit());
            return Self { command: CliCommand::ClusterInstall(Box::new(options)) };
        }
        let mut cli = Self::of(&matches);
        match &mut cli.command {
            CliCommand::Get(options) => options.target.place.cluster.is_meant = true,
            CliCommand::Explain(options) => options.target.place.cluster.is_meant = true,
            CliCommand::Forecast(options) => options.target.place.cluster.is_meant = true,
            CliCommand::Ledger(options) => options.target.place.cluster.is_meant = true,
            CliCommand::Dashboard(options) => options.place.cluster.is_meant = true,
            CliCommand::Shadow(ShadowCommand::Report(options)) => {
                options.target.place.cluster.is_meant = true;
            }
            CliCommand::Logs(options) => options.target.place.cluster.is_meant = true,
            CliCommand::Lint(options) => options.is_of_cluster = true,
            CliCommand::Record(RecordCommand::Save(options)) => options.place.cluster.is_meant = true,
            CliCommand::Adopt(_)
            | CliCommand::Release(_)
            | CliCommand::Check(_)
            | CliCommand::Up(_)
            | CliCommand::Run(_)
            | CliCommand::Names(_)
            | CliCommand::Restart(_)
            | CliCommand::Rollback(_)
            | CliCommand::Token(_)
            | CliCommand::Delete(_)
            | CliCommand::Autoscale(_)
            | CliCommand::Import(_)
            | CliCommand::Inject(_)
            | CliCommand::Simulate(_)
            | CliCommand::Replay(_)
            | CliCommand::Install(_)
            | CliCommand::ClusterInstall(_)
            | CliCommand::Completion(_)
            | CliCommand::Man(_)
            | CliCommand::Schema
            | CliCommand::SampleApp
            | CliCommand::Pod(_)
            | CliCommand::QueueProxy(_) => {}
        }
        cli
    }

    fn of(matches: &ArgMatches) -> Self {
        let mut cli = Self::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
        if let (CliCommand::Install(options), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
            options.note_given(matches);
        }
        cli
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run Knative Services on this machine, scaled with their traffic.
    Up(Box<UpOptions>),
    /// Run one app without a manifest, scaled with its traffic, at a free port of this machine.
    Run(Box<RunOptions>),
    /// Show each revision: how many pods it has and why, and what serves it.
    Get(GetOptions),
    /// Show why a revision has the number of pods it has, and why not zero.
    Explain(ExplainOptions),
    /// Show what is expected of a revision in the next 24 hours, and the last 7 days with and without
    /// prediction (docs/tasks/predict.md).
    Forecast(ForecastOptions),
    /// Show what the pods of each revision came to, and what another min-scale would have cost
    /// (docs/tasks/cost.md).
    Ledger(LedgerOptions),
    /// Show everything live in a browser: load, pods, decisions, cold starts, costs and problems
    /// (docs/tasks/dashboard.md).
    Dashboard(Box<DashboardOptions>),
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
    /// Let new pods take over from those of a Service, or rebuild a part of a running `ebb up` from nothing
    /// while pods and traffic live on.
    Restart(RestartOptions),
    /// Let pods of the template before the last edit take over from those of a Service.
    Rollback(RollbackOptions),
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
    /// Print manifests of Kubernetes with the queue-proxies that their pods ask for
    /// (docs/operate/workloads.md).
    Inject(InjectOptions),
    /// Simulate a load and show waits, pods and changes, with these settings or with others
    /// (docs/tasks/simulate.md).
    Simulate(Box<SimulateArguments>),
    /// Decide again what a run decided that `ebb up --record` recorded, with its settings or with others
    /// (docs/tasks/replay.md).
    Replay(ReplayOptions),
    /// Copy the record of a running autoscaler, of a cluster or of an `ebb up --record`
    /// (docs/tasks/replay.md).
    #[command(subcommand)]
    Record(RecordCommand),
    /// Look at what is decided in shadow and not done.
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// Let systemd run `ebb up`: writes a service with its sockets, and says what to run next.
    Install(Box<InstallOptions>),
    /// The command `install` of the plugin of `kubectl`, which has its own options.
    #[command(skip)]
    ClusterInstall(Box<ClusterInstallOptions>),
    /// Print what makes a shell complete the commands of ebb.
    Completion(CompletionOptions),
    /// Print the manual page, or write those of every command.
    Man(ManOptions),
    /// Print the JSON Schema of manifests, by which editors complete and check them.
    Schema,
    /// A small web app to try ebb with: GET /?sleep=MS&prime=N&bloat=MB.
    SampleApp,
    /// The names of all revisions, for shells that complete them.
    #[command(hide = true)]
    Names(ApiOptions),
    /// One pod; started by `ebb up`.
    #[command(hide = true)]
    Pod(PodOptions),
    /// The proxy beside one app; started by `ebb pod`.
    #[command(hide = true)]
    QueueProxy(PodOptions),
}

impl CliCommand {
    /// The command of a process that starts with each pod, as `ebb up` and `ebb pod` call it; `None` of all
    /// other arguments, which clap reads. Its tree of every command and option is thousands of allocations:
    /// each wake would wait for them twice, and both processes would keep their pages.
    fn of_pod_process(arguments: &[OsString]) -> Option<Self> {
        let [_, command, pod] = arguments else { return None };
        let pod = pod.to_str().filter(|pod| !pod.starts_with('-'))?;
        let options = PodOptions { pod: Some(pod.to_owned()) };
        match command.to_str()? {
            "pod" => Some(Self::Pod(options)),
            "queue-proxy" => Some(Self::QueueProxy(options)),
            _ => None,
        }
    }
}

/// The argument by which a list of processes shows the pod of a process.
#[derive(Debug, Args)]
pub(crate) struct PodOptions {
    /// The pod of the process, as NAMESPACE/POD, for people.
    pub(crate) pod: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    /// How often, since when and why it differs from the count that there is.
    Report(ShadowReportOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShadowReportOptions {
    #[command(flatten)]
    pub(crate) target: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AutoscaleOptions {
    /// The name of the Service or workload.
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
    /// What to import; a directory means all *.yaml, *.yml and *.json in it, "-" standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// What is printed: annotations, or of a Knative Service whole objects for a cluster.
    #[arg(long, value_name = "FORM", default_value = "annotations")]
    pub(crate) to: ImportTarget,
    /// With --to kubernetes: the Gateway to which an `HTTPRoute` leads the Service's host.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = gateway_name)]
    pub(crate) gateway: Option<GatewayName>,
}

/// The form in which `ebb import` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportTarget {
    /// Annotations that mean the same.
    Annotations,
    /// A Deployment, a Service and, with --gateway, an `HTTPRoute`.
    Kubernetes,
}

#[derive(Debug, Args)]
pub(crate) struct InjectOptions {
    /// Manifests; "-" is standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// The image of the queue-proxy, as the cluster's nodes pull it.
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
    pub(crate) target: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    #[command(flatten)]
    pub(crate) target: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ForecastOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    #[command(flatten)]
    pub(crate) past: PastFileOptions,
    #[command(flatten)]
    pub(crate) target: AutoscalerArguments,
}

/// The past demand of a revision as a file.
#[derive(Debug, Args)]
pub(crate) struct PastFileOptions {
    /// Take in the past of the revision from this file, whose lines are those of a load of `ebb simulate`:
    /// requests, or counts by the bin (docs/tasks/predict.md). Of a cluster it takes the right to open a
    /// port-forward.
    #[arg(long, value_name = "FILE", conflicts_with = "export")]
    pub(crate) import: Option<String>,
    /// Print the demand that is remembered, in the form that --import reads and `ebb simulate` serves.
    #[arg(long)]
    pub(crate) export: bool,
    /// When the file begins, by UTC: 2026-11-27T00:00. A line `# begins TIME` of the file says the same.
    #[arg(long, value_name = "TIME", requires = "import", value_parser = utc_instant)]
    pub(crate) begins: Option<Duration>,
    /// The span that each line counts; without it each line is one request. The same as `# bin 1m`.
    #[arg(long, value_name = "DURATION", requires = "import", value_parser = duration)]
    pub(crate) bin: Option<Duration>,
    /// How long a request takes, for a revision that is scaled by requests in flight. The same as
    /// `# service-time 100ms`, which --export writes.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) service_time: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerOptions {
    /// Only this revision, in full: namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: Option<String>,
    /// How far back: days such as 7d, or a duration such as 36h, up to 35d. Whole hours are counted.
    #[arg(long, value_name = "TIME", default_value = LedgerRange::DEFAULT_TEXT,
        value_parser = LedgerRange::parse)]
    pub(crate) since: LedgerRange,
    #[command(flatten)]
    pub(crate) target: AutoscalerArguments,
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
    pub(crate) target: AutoscalerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LintOptions {
    #[command(flatten)]
    pub(crate) manifests: ManifestOptions,
    /// Whether the files are manifests of a cluster: `kubectl ebb lint`.
    #[arg(skip)]
    pub(crate) is_of_cluster: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionOptions {
    /// The shell that is to complete commands.
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
    /// The Service whose pods are replaced, as namespace/kind/name or any unambiguous suffix of it; or the
    /// part that is rebuilt: autoscaler or activator. A Service of such a name is service/autoscaler.
    #[arg(value_name = "SERVICE|autoscaler|activator")]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackOptions {
    /// namespace/kind/name, or any unambiguous suffix of it.
    pub(crate) revision: String,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_reference_has_a_row_for_each_command_and_no_other() {
        let manual = include_str!("../../../docs/reference/commands.md");
        let rows = manual.lines().filter_map(|line| line.strip_prefix("| `ebb ")?.split([' ', '`']).next());
        let documented: BTreeSet<&str> = rows.collect();
        let command = Cli::command();
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
        let commands: BTreeSet<&str> = commands.map(clap::Command::get_name).collect();
        assert_eq!(documented, commands, "docs/reference/commands.md is on the left");
    }

    fn read(arguments: &[&str]) -> Cli {
        Cli::read(arguments.iter().map(OsString::from))
    }

    #[test]
    fn processes_of_pods_are_known_without_the_tree_of_commands() {
        let known = |arguments: &[&str]| {
            CliCommand::of_pod_process(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
        };
        for command in ["pod", "queue-proxy"] {
            let arguments = ["ebb", command, "default/hello-1"];
            let by_clap = Cli::of(&Cli::command().get_matches_from(arguments)).command;
            let known = known(&arguments).expect("a process of a pod");
            assert_eq!(format!("{known:?}"), format!("{by_clap:?}"));
        }
        let others: [&[&str]; 5] = [
            &["ebb"],
            &["ebb", "pod"],
            &["ebb", "pod", "--help"],
            &["ebb", "get", "hello"],
            &["ebb", "queue-proxy", "default/hello-1", "--version"],
        ];
        for arguments in others {
            assert!(known(arguments).is_none(), "{arguments:?} is clap's");
        }
    }

    #[test]
    fn a_cluster_is_meant_by_its_options_and_by_the_plugins_name() {
        let is_given = |arguments: &[&str]| {
            let CliCommand::Get(options) = read(arguments).command else { panic!("it is `get`") };
            options.target.place.cluster.is_given()
        };
        assert!(!is_given(&["ebb", "get"]) && !is_given(&["/usr/bin/ebb", "get", "-A"]));
        assert!(is_given(&["ebb", "get", "-n", "shop"]) && is_given(&["ebb", "get", "--context", "test"]));
        assert!(is_given(&["/usr/bin/kubectl-ebb", "get"]));
        let logs = read(&["kubectl-ebb", "logs", "hello", "-f"]).command;
        let CliCommand::Logs(logs) = logs else { panic!("it is `logs`") };
        assert!(logs.target.place.cluster.is_given() && logs.follow);
        let lint = read(&["kubectl-ebb", "lint", "-f", "x"]).command;
        let CliCommand::Lint(lint) = lint else { panic!("it is `lint`") };
        assert!(lint.is_of_cluster);
        let CliCommand::ClusterInstall(install) = read(&["kubectl-ebb", "install"]).command else {
            panic!("it is of a cluster")
        };
        assert!(!install.dry_run && install.images(None).is_ok());
        let CliCommand::Ledger(options) = read(&["kubectl-ebb", "ledger"]).command else { panic!("ledger") };
        assert!(
            options.target.place.cluster.is_given() && options.since.since() == Duration::from_hours(168)
        );
    }
}
