//! What `ebb up` takes, and what `ebb install` takes for the `ebb up` that systemd runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use activator::Network;
use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use platform_local::{ForeignKinds, ManifestSource};
use runtime::{LogFormat, TrustedHost};

use super::images::ImageArguments;
use super::values::{
    TakeOverTarget, TokenGroup, activators, autoscalers, domain, duration, pod_limit, record_size,
    socket_address, take_over_target, token_group, user_name,
};

/// Which manifests, and how they are understood.
#[derive(Debug, Args)]
pub(crate) struct ManifestOptions {
    /// Manifests: Knative Services and, optionally, the ConfigMap config-autoscaler. A directory means all
    /// *.yaml, *.yml and *.json in it, "-" standard input.
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingOptions,
}

impl ManifestOptions {
    /// Reads standard input if it was named.
    pub(crate) fn source(&self) -> anyhow::Result<ManifestSource> {
        self.reading.source(&self.files)
    }
}

/// How manifests are read, whichever command reads them.
#[derive(Debug, Args)]
pub(crate) struct ReadingOptions {
    /// What follows NAME.NAMESPACE. in the hosts.
    #[arg(long, default_value = "example.com", value_parser = domain)]
    pub(crate) domain: String,
    /// Skip, with a warning, what ebb does not run: Deployments, other ConfigMaps and so on.
    #[arg(long)]
    pub(crate) ignore_foreign: bool,
    #[command(flatten)]
    pub(crate) images: ImageArguments,
}

impl ReadingOptions {
    /// Reads standard input if it is among the files.
    pub(crate) fn source(&self, files: &[PathBuf]) -> anyhow::Result<ManifestSource> {
        let foreign = if self.ignore_foreign { ForeignKinds::Skipped } else { ForeignKinds::Refused };
        let source =
            ManifestSource::new(files.to_vec(), &self.domain, foreign).context("reading standard input")?;
        Ok(source.with_images(self.images.settings()))
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
    /// A group, by name or number, that may read the file with the API's token, besides this user, who must
    /// be in it. The token allows to restart, delete and read logs.
    #[arg(long, value_name = "GROUP", value_parser = token_group)]
    pub(crate) token_group: Option<TokenGroup>,
    /// Take the place of the `ebb up` of this user whose API is at the same address: its listening sockets,
    /// its pods as they run, and all that it knows of them. That one goes on answering the requests that it
    /// holds, and ends. Where none runs, this is an ordinary start. With API: take the place of the one whose
    /// API is there, whatever --api says.
    #[arg(long, value_name = "API", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = take_over_target)]
    pub(crate) take_over: Option<TakeOverTarget>,
    #[command(flatten)]
    pub(crate) operation: OperationOptions,
}

/// How `ebb up` works, besides which manifests and addresses are its own. The service that `ebb install`
/// writes is given the same words.
#[derive(Debug, Args)]
pub(crate) struct OperationOptions {
    /// A name under which the API may be asked, besides addresses, localhost and *.svc: ebb.example.com, or
    /// *.example.com for all below. Requests under other names, and from web pages of other origins, are
    /// refused.
    #[arg(long, value_name = "NAME", env = "EBB_TRUSTED_HOSTS", value_delimiter = ',')]
    pub(crate) trusted_host: Vec<TrustedHost>,
    /// What is logged: a level (error, warn, info, debug, trace), also per part, such as
    /// "info,autoscaler=debug".
    #[arg(long, value_name = "FILTER", env = "EBB_LOG", default_value = "info")]
    pub(crate) log: String,
    /// The form of log lines and of lines that pods print.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogStyle,
    /// Clients, by address or network, whose Forwarded and X-Forwarded-* headers reach the apps, such as a
    /// proxy in front. Headers of other clients are replaced by what ebb knows of the connection.
    /// `0.0.0.0/0,::/0` are all.
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
    /// How many autoscalers decide. For the tests alone, which run what a cluster has on one machine: several
    /// in one process share its one thread, and none of them outlives the others.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = autoscalers, hide = true)]
    pub(crate) autoscalers: usize,
    /// How long an app's line may wait until standard output is read, before it is dropped and counted ("0s":
    /// drops at once). Without this, apps wait for a file or pipe, and not at all for a terminal.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) log_patience: Option<Duration>,
    /// Where the API's token and the histories of Services are kept, over restarts. Without this, the folder
    /// that systemd made (`$STATE_DIRECTORY`), else `$XDG_STATE_HOME/ebb` or `~/.local/state/ebb`.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) recording: RecordOptions,
}

/// Whether the run is recorded, for `ebb replay`.
#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// Write down in this folder what the autoscaler is told and a check number of what it decides, for `ebb
    /// replay`. Nothing of a request is written, and no key or token.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) record: Option<PathBuf>,
    /// How large the record may grow, such as 256Mi; its oldest part is removed then.
    #[arg(long, value_name = "SIZE", default_value = "256Mi", requires = "record", value_parser = record_size)]
    pub(crate) record_size: u64,
    /// Write hashes in the place of the names of Services, pods, hosts and replicas and of addresses, for a
    /// record that is given away. Texts of settings stay as they are.
    #[arg(long, requires = "record")]
    pub(crate) anonymous: bool,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogStyle {
    /// One line of text for people.
    Text,
    /// One JSON object per line.
    Json,
}

impl LogStyle {
    /// The same for the logs of this process and for the lines of pods.
    pub(crate) fn format(self) -> LogFormat {
        match self {
            Self::Text => LogFormat::Text,
            Self::Json => LogFormat::Json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Manifests, as of `ebb up`: best a directory, in which files can come and go. Not needed with
    /// --uninstall.
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present_any = ["uninstall", "for_package"], num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// The address at which requests are taken.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = socket_address)]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// The address at which the API answers.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", value_parser = socket_address)]
    pub(crate) api: SocketAddr,
    /// A group that may read the file with the API's token, as of `ebb up`. With --system it takes --run-as.
    #[arg(long, value_name = "GROUP", value_parser = token_group)]
    pub(crate) token_group: Option<TokenGroup>,
    #[command(flatten)]
    pub(crate) reading: ReadingOptions,
    #[command(flatten)]
    pub(crate) operation: OperationOptions,
    /// The words of the command line that say `reading` and `operation`.
    #[arg(skip)]
    pub(crate) given_to_up: Vec<String>,
    /// As whom ebb and its apps run, with --system. Without this, as a user that systemd makes up, which may
    /// write below /var/lib/ebb alone.
    #[arg(long, value_name = "USER", requires = "system", value_parser = user_name)]
    pub(crate) run_as: Option<String>,
    /// Where a copy of this executable is put, with --system, if it is in a folder of a person or in one that
    /// is emptied, or if the service's user may not run it. Without this, /usr/local/bin.
    #[arg(long, value_name = "DIRECTORY", requires = "system")]
    pub(crate) executable_directory: Option<PathBuf>,
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
    #[arg(long, hide = true, requires = "system", requires = "unit_directory")]
    pub(crate) for_package: bool,
    /// The options on the command line that say nothing about what a package brings.
    #[arg(skip)]
    pub(crate) given_beside_package: Vec<String>,
}

/// The options, by id, that say something about what a package brings.
const OF_PACKAGE: [&str; 5] = ["for_package", "system", "unit_directory", "listen", "api"];

impl InstallOptions {
    /// Remembers what the command line gives: the words that the service gives `ebb up`, and the options that
    /// `--for-package` leaves no place for.
    pub(super) fn note_given(&mut self, matches: &ArgMatches) {
        self.given_to_up =
            [given_words::<ReadingOptions>(matches), given_words::<OperationOptions>(matches)].concat();
        let beside = given::<Self>(matches).into_iter();
        let beside = beside.filter(|option| !OF_PACKAGE.contains(&option.get_id().as_str()));
        self.given_beside_package = beside.map(|option| format!("--{}", long_name(&option))).collect();
    }
}

/// Which of the two managers of systemd runs the service.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ScopeOptions {
    /// For this user: apps run as this user does.
    #[arg(long)]
    pub(crate) user: bool,
    /// For the machine: apps run as a user that systemd makes up, or as --run-as says.
    #[arg(long)]
    pub(crate) system: bool,
}

/// The options of one kind that a command line gives. What the environment or a default says is left out.
fn given<Options: Args>(matches: &ArgMatches) -> Vec<Arg> {
    let all = Options::augment_args(Command::new("options"));
    let is_given =
        |option: &&Arg| matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    all.get_arguments().filter(is_given).cloned().collect()
}

fn long_name(option: &Arg) -> &str {
    option.get_long().expect("each option has a long name")
}

/// The same, as another command line gives them.
fn given_words<Options: Args>(matches: &ArgMatches) -> Vec<String> {
    let mut words = Vec::new();
    for option in given::<Options>(matches) {
        let name = long_name(&option);
        if option.get_action().takes_values() {
            let values = matches.get_raw(option.get_id().as_str()).into_iter().flatten();
            words.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
        } else {
            words.push(format!("--{name}"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::{Cli, CliCommand};

    fn long_names(command: &str) -> Vec<String> {
        let all = Cli::command();
        let options = all.find_subcommand(command).expect("it is a command").get_arguments();
        options.filter_map(|option| option.get_long().map(str::to_owned)).collect()
    }

    #[test]
    fn a_service_takes_every_option_of_up_but_a_take_over() {
        let of_service = long_names("install");
        let missing: Vec<String> =
            long_names("up").into_iter().filter(|name| !of_service.contains(name)).collect();
        // `systemctl reload` is one.
        assert_eq!(missing, ["take-over"]);
    }

    #[test]
    fn the_number_of_autoscalers_is_taken_and_shown_to_nobody() {
        let CliCommand::Up(up) =
            Cli::read(["ebb", "up", "-f", "manifests", "--autoscalers", "3"].into_iter().map(Into::into))
                .command
        else {
            panic!("it is `up`")
        };
        assert_eq!(up.operation.autoscalers, 3);
        for command in ["up", "install"] {
            let mut all = Cli::command();
            let help =
                all.find_subcommand_mut(command).expect("it is a command").render_long_help().to_string();
            assert!(help.contains("--activators") && !help.contains("--autoscalers"), "{help}");
        }
        let pages = crate::manual::pages().expect("pages are made in memory");
        assert!(pages.iter().any(|(_, page)| page.contains("activators")));
        assert!(pages.iter().all(|(_, page)| !page.contains("\\-autoscalers")), "{pages:?}");
    }

    #[test]
    fn up_understands_the_words_that_a_service_is_given_as_the_person_meant_them() {
        let read = |words: &[&str]| Cli::read(words.iter().map(Into::into)).command;
        let written = [
            "--trust-forwarded",
            "10.0.0.0/8,192.0.2.7",
            "--trusted-host=a.example",
            "--trusted-host=*.b.example",
            "--domain",
            "Example.org",
            "--ignore-foreign",
            "--images=off",
            "--images-network",
            "host",
            "--shadow",
            "--log",
            "info,autoscaler=debug",
            "--log-format",
            "json",
            "--activators=2",
            "--autoscalers=3",
            "--max-pods",
            "7",
            "--log-patience",
            "0s",
        ];
        let install = [&["ebb", "install", "--user", "-f", "manifests"][..], &written].concat();
        let CliCommand::Install(install) = read(&install) else { panic!("it is `install`") };
        let given: Vec<&str> = install.given_to_up.iter().map(String::as_str).collect();
        for words in [&given[..], &written] {
            let CliCommand::Up(up) = read(&[&["ebb", "up", "-f", "manifests"][..], words].concat()) else {
                panic!("it is `up`")
            };
            assert_eq!(format!("{:?}", up.operation), format!("{:?}", install.operation), "{words:?}");
            assert_eq!(format!("{:?}", up.manifests.reading), format!("{:?}", install.reading), "{words:?}");
        }
        let CliCommand::Install(none) = read(&["ebb", "install", "--user", "-f", "manifests"]) else {
            panic!("it is `install`")
        };
        assert!(none.given_to_up.is_empty(), "what is a default or in the environment is not written down");
    }
}
