//! Which commands has the plugin of `kubectl`? Those that know a cluster, or its manifests. The others are
//! about this machine: they do not appear, and `kubectl ebb up` says which command is meant.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args as _, Command};

use super::cluster_install::ClusterInstallOptions;

/// Under this name `kubectl` finds us.
pub(super) const PLUGIN: &str = "kubectl-ebb";
/// The command that installs ebb in a cluster here, and a service of systemd elsewhere.
pub(super) const INSTALL: &str = "install";
/// The name by which a person calls the plugin.
const CALLED: &str = "kubectl ebb";
/// The commands that are about this machine alone, or that read no more than files of ebb's own.
const OF_THIS_MACHINE: [&str; 12] = [
    "up",
    "run",
    "restart",
    "rollback",
    "delete",
    "token",
    "simulate",
    "replay",
    "completion",
    "man",
    "schema",
    "sample-app",
];

/// The command line of the plugin.
pub(super) fn command(whole: Command) -> Command {
    let install = ClusterInstallOptions::augment_args(Command::new(INSTALL));
    let install = install.about("Install ebb in the cluster, or bring it to this version");
    let named = whole.bin_name(CALLED).mut_subcommand(INSTALL, |_| install);
    OF_THIS_MACHINE.into_iter().fold(named, |command, name| {
        // Whatever follows is taken, so that the command itself is refused, and not one of its arguments.
        let rest = Arg::new("rest").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        let unknown = Command::new(name).hide(true).disable_help_flag(true).disable_version_flag(true);
        command.mut_subcommand(name, |_| unknown.arg(rest))
    })
}

/// Reads the arguments of the plugin; the error names the command that is meant.
pub(super) fn matches(mut command: Command, arguments: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let matches = command.try_get_matches_from_mut(arguments)?;
    match matches.subcommand_name() {
        Some(name) if OF_THIS_MACHINE.contains(&name) => {
            let message = format!("`{name}` is about this machine and knows no cluster; run `ebb {name}`");
            Err(command.error(ErrorKind::InvalidSubcommand, message))
        }
        Some(_) | None => Ok(matches),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn read(words: &[&str]) -> Result<ArgMatches, clap::Error> {
        let words = [&[PLUGIN][..], words].concat();
        matches(command(Cli::command()), words.into_iter().map(OsString::from).collect())
    }

    #[test]
    fn commands_of_this_machine_do_not_appear_and_are_named_where_they_are_called() {
        command(Cli::command()).debug_assert();
        let help = command(Cli::command()).render_long_help().to_string();
        let offered: Vec<&str> =
            help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
        for name in ["get", "explain", "logs", "adopt", "check", "lint", "install", "import", "autoscale"] {
            assert!(offered.contains(&name), "{name} is missing in\n{help}");
        }
        for name in OF_THIS_MACHINE {
            assert!(!offered.contains(&name), "{name} appears in\n{help}");
            let error = read(&[name, "-f", "x.yaml", "--help"]).expect_err("it knows no cluster");
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(&format!("run `ebb {name}`")), "{error}");
        }
        read(&["get", "-A"]).expect("it knows a cluster");
    }

    #[test]
    fn the_plugin_installs_in_a_cluster() {
        let matches = read(&["install", "--image", "registry.example/ebb", "--dry-run"]).expect("it is read");
        assert_eq!(matches.subcommand_name(), Some(INSTALL));
        read(&["install", "--user"]).expect_err("that is a service of this machine");
    }
}
