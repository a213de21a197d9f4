//! `ebb install`: systemd runs `ebb up` from now on, with its sockets, so that connections wait while it
//! restarts.
//!
//! Only files are written (units, manual pages, what shells complete), and which commands come next is said:
//! the person who runs this may have no right to start services, and wants to look first.

mod access;
mod certificates;
mod manuals;
mod scope;
mod template;
mod units;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};

use crate::cli::InstallOptions;
use crate::{lint, output, up};
use access::{ExecutablePlace, ServiceUser, copy_executable};
use manuals::ManualsTask;
use scope::{ServiceScope, folder_of_user};
use units::{MARK, StartCondition, TlsFacts, UnitFacts, UnitFile};

/// Where systemd looks for what a machine's administrator writes.
const SYSTEM_UNITS: &str = "/etc/systemd/system";
/// Where an executable stays that no package brought.
const EXECUTABLES: &str = "/usr/local/bin";
/// Where a package puts the executable.
const PACKAGED_EXECUTABLE: &str = "/usr/bin/ebb";
/// Where its service looks for manifests.
const PACKAGED_MANIFESTS: &str = "/etc/ebb";

/// Writes or removes the units, and says what to run next.
pub(crate) fn run(options: &InstallOptions) -> anyhow::Result<ExitCode> {
    if options.for_package
        && let Err(errors) = refuse_beside_package(options)
    {
        return Ok(refuse(&errors));
    }
    let manager = if options.scope.system { ServiceScope::System } else { ServiceScope::User };
    let directory = match &options.unit_directory {
        Some(directory) => std::path::absolute(directory)?,
        None => unit_directory(manager)?,
    };
    let manuals = match &options.manual_directory {
        Some(directory) => std::path::absolute(directory),
        None => Ok(manuals::directory(manager)?),
    }?;
    if options.uninstall {
        let exit = uninstall(options, manager, &directory)?;
        let task = if options.dry_run { ManualsTask::ShowRemoval } else { ManualsTask::Remove };
        manuals::carry_out(&manuals, task)?;
        return Ok(exit);
    }
    if options.for_package {
        let units = units::all(&facts_of_package(options));
        units.iter().try_for_each(|unit| write(&directory.join(unit.name), unit))?;
        return Ok(ExitCode::SUCCESS);
    }
    // What `ebb up` would refuse must not be found out by a service that does not start.
    let source = options.reading.source(&options.files)?;
    if let Err(findings) = platform_local::load(&source) {
        return Ok(lint::refuse(&findings));
    }
    let refused = refuse_chosen_ports(options).and_then(|()| refuse_unreachable_token(options));
    let refused =
        refused.and_then(|()| runtime::check_log_filter(&options.operation.log).map_err(|error| vec![error]));
    let tls = match refused.and_then(|()| certificates::of_service(options, manager)) {
        Ok(tls) => tls,
        Err(errors) => return Ok(refuse(&errors)),
    };
    let place = match place_for_service(options, manager) {
        Ok(place) => place,
        Err(errors) => return Ok(refuse(&errors)),
    };
    let units = units::all(&facts(options, manager, tls, &place)?);
    put_executable(options, &place)?;
    for unit in &units {
        let path = directory.join(unit.name);
        if options.dry_run {
            output::print_line(&format!("# {}\n{}", path.display(), unit.text))?;
        } else {
            write(&path, unit)?;
            output::print_line(&format!("written: {}", path.display()))?;
        }
    }
    manuals::carry_out(&manuals, if options.dry_run { ManualsTask::Show } else { ManualsTask::Write })?;
    let verb = if options.dry_run { "then" } else { "now" };
    output::print_line(&format!("{verb} run:\n{}", next_commands(manager)))?;
    Ok(ExitCode::SUCCESS)
}

fn refuse(errors: &[anyhow::Error]) -> ExitCode {
    errors.iter().for_each(output::print_error);
    ExitCode::from(2)
}

/// The units of a package are the same on every machine, so an option about one machine would be lost there.
fn refuse_beside_package(options: &InstallOptions) -> Result<(), Vec<anyhow::Error>> {
    let problem = |option: &String| {
        anyhow!(
            "{option} has no effect on what a package brings; remove it, or say it where the package is installed: `systemctl \
             edit ebb.service`"
        )
    };
    let problems: Vec<_> = options.given_beside_package.iter().map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Systemd ignores a socket without a port, and then refuses the whole unit.
fn refuse_chosen_ports(options: &InstallOptions) -> Result<(), Vec<anyhow::Error>> {
    let tls = up::tls_address(&options.tls, options.listen);
    let addresses =
        [("--listen", Some(options.listen)), ("--api", Some(options.api)), (up::TLS_LISTEN_OPTION, tls)];
    let problem = |(option, address): (&str, Option<SocketAddr>)| {
        let address = address.filter(|address| address.port() == 0)?;
        Some(anyhow!("{option} says {address}, but systemd chooses no port; write one"))
    };
    let problems: Vec<_> = addresses.into_iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What a user that systemd makes up keeps is in `/var/lib/private`, which root alone may enter.
fn refuse_unreachable_token(options: &InstallOptions) -> Result<(), Vec<anyhow::Error>> {
    let is_made_up = options.scope.system && options.run_as.is_none();
    match &options.token_group {
        Some(_) if is_made_up => Err(vec![anyhow!(
            "--token-group takes --run-as: what a user keeps that systemd makes up no group can reach"
        )]),
        Some(_) | None => Ok(()),
    }
}

/// Where the service finds its executable, if its user may run it and read the manifests.
fn place_for_service(
    options: &InstallOptions,
    manager: ServiceScope,
) -> Result<ExecutablePlace, Vec<anyhow::Error>> {
    if manager == ServiceScope::User {
        return Ok(ExecutablePlace::AsItIs);
    }
    let user = ServiceUser::of(options.run_as.as_deref()).map_err(|error| vec![error])?;
    let problems = user.problems_of_files(&options.files);
    if !problems.is_empty() {
        return Err(problems);
    }
    let directory = options.executable_directory.clone().unwrap_or_else(|| EXECUTABLES.into());
    let place = this_executable().and_then(|executable| user.place_of(&executable, &directory));
    place.map_err(|error| vec![error])
}

/// Copies this executable if it is to be copied, and says so.
fn put_executable(options: &InstallOptions, place: &ExecutablePlace) -> anyhow::Result<()> {
    let ExecutablePlace::Copy(copy) = place else { return Ok(()) };
    let executable = this_executable()?;
    let verb = if options.dry_run { "would be copied" } else { "copied" };
    if !options.dry_run {
        copy_executable(&executable, copy)?;
    }
    let (from, to) = (executable.display(), copy.display());
    output::print_line(&format!(
        "{verb}: {from} to {to}, which the service runs; `ebb install` again updates it"
    ))
}

fn this_executable() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("finding this executable")
}

fn next_commands(manager: ServiceScope) -> String {
    let command = manager.command();
    let names = units::NAMES.join(" ");
    let mut lines = vec![format!("  {command} daemon-reload"), format!("  {command} enable --now {names}")];
    if manager == ServiceScope::User {
        lines.push("  loginctl enable-linger    # to run while you are not logged in, too".to_owned());
    }
    lines.join("\n")
}

fn facts(
    options: &InstallOptions,
    manager: ServiceScope,
    tls: Option<TlsFacts>,
    place: &ExecutablePlace,
) -> anyhow::Result<UnitFacts> {
    let executable = match place {
        ExecutablePlace::AsItIs => this_executable()?,
        ExecutablePlace::Copy(copy) => copy.clone(),
    };
    let absolute = |file: &PathBuf| {
        fs::canonicalize(file).with_context(|| format!("{} cannot be read by a service", file.display()))
    };
    Ok(UnitFacts {
        manager,
        executable,
        files: options.files.iter().map(absolute).collect::<anyhow::Result<_>>()?,
        listen: options.listen,
        api: options.api,
        tls,
        run_as: options.run_as.clone(),
        token_group: options.token_group.clone(),
        given_to_up: options.given_to_up.clone(),
        starts: StartCondition::Always,
    })
}

/// Of units that stand in a package, on machines of which nothing is known.
fn facts_of_package(options: &InstallOptions) -> UnitFacts {
    UnitFacts {
        manager: ServiceScope::System,
        executable: PACKAGED_EXECUTABLE.into(),
        files: vec![PACKAGED_MANIFESTS.into()],
        listen: options.listen,
        api: options.api,
        tls: None,
        run_as: None,
        token_group: None,
        given_to_up: Vec::new(),
        starts: StartCondition::OnceThereAreManifests,
    }
}

fn unit_directory(manager: ServiceScope) -> anyhow::Result<PathBuf> {
    if manager == ServiceScope::System {
        return Ok(SYSTEM_UNITS.into());
    }
    Ok(folder_of_user("XDG_CONFIG_HOME", ".config", "--unit-directory")?.join("systemd/user"))
}

/// Whether a file is what an earlier `ebb install` wrote; `None` if there is no file.
fn is_ours(path: &Path) -> anyhow::Result<Option<bool>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.starts_with(MARK))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    if is_ours(path)? == Some(false) {
        bail!("{} was not written by `ebb install`; move it away first", path.display());
    }
    Ok(())
}

fn write(path: &Path, unit: &UnitFile) -> anyhow::Result<()> {
    refuse_foreign(path)?;
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, &unit.text));
    written.with_context(|| format!("writing {}", path.display()))
}

fn uninstall(options: &InstallOptions, manager: ServiceScope, directory: &Path) -> anyhow::Result<ExitCode> {
    let paths: Vec<PathBuf> = units::NAMES.iter().map(|name| directory.join(name)).collect();
    for path in &paths {
        refuse_foreign(path)?;
    }
    let mut removed = 0;
    for path in paths.iter().chain(&units::enabled_in(directory)) {
        if path.symlink_metadata().is_err() {
            continue;
        }
        removed += 1;
        if options.dry_run {
            output::print_line(&format!("would be removed: {}", path.display()))?;
        } else {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
            output::print_line(&format!("removed: {}", path.display()))?;
        }
    }
    if removed == 0 {
        output::print_line(&format!("nothing of ebb is in {}", directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (command, names) = (manager.command(), units::NAMES.join(" "));
    let verb = if options.dry_run { "then" } else { "now" };
    output::print_line(&format!("{verb} run:\n  {command} stop {names}\n  {command} daemon-reload"))?;
    Ok(ExitCode::SUCCESS)
}
