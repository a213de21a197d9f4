//! `ebb up`: one process with three parts (supervisor, activator, autoscaler) that share nothing but loopback
//! links and the platform trait, as they would on a cluster.
//!
//! The listening sockets belong to this module for as long as it lives. It lends clones, so that a part can
//! be rebuilt while connections keep being accepted.

mod access;
mod api;
mod histories;
mod inheritance;
mod joined;
mod logs;
mod parts;
mod scraping;
mod service_manager;
mod shutdown;
mod sockets;
mod startup_message;
mod state_folder;
mod take_over;
mod tls;
mod token_file;
mod watchdog;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context;
use platform_local::{LocalPlatform, ManifestSource};
use runtime::{Colours, EXIT_PART_FAILED, Hangup, Hangups, StopRequest, StopRequests};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::cli::{Part, TakeOverTarget, UpOptions};
use crate::{lint, output};
use access::ApiAccess;
use api::{ApiServer, PersonalOrders, RestartOrder};
use histories::Histories;
use inheritance::Inheritance;
pub(crate) use joined::JoinedManifest;
use joined::{JoinedFolder, JoinedStart};
pub use parts::StartAutoscaler;
use parts::succession::HandOverEnd;
use parts::{Entrances, Foundations, Manifests, Parts};
use service_manager::{GivenSockets, Replacements};
use sockets::Sockets;
use startup_message::{log_trusted_forwarders, startup_message};
use take_over::{HandOverOrder, TakeOverSocket, TakenParts};
use tls::FrontTls;
pub(crate) use tls::{LISTEN_OPTION as TLS_LISTEN_OPTION, address as tls_address, named_certificates};
use watchdog::ServiceWatchdog;

/// The exit code of a program that a second Ctrl-C ended, as shells report it.
const INTERRUPTED: u8 = 130;
/// Restart orders that may wait; a person gives them one by one.
const RESTARTS_WAITING: usize = 4;

/// Serves until asked to stop. Input that cannot be used (files, addresses) ends with exit code 2.
pub(crate) fn run(options: UpOptions, start_autoscaler: StartAutoscaler) -> anyhow::Result<ExitCode> {
    // Before anything can go wrong: a collector of these errors reads every line as JSON.
    runtime::print_errors_as(options.operation.log_format.format());
    let source = options.manifests.source()?;
    let start = if options.take_over.is_some() { JoinedStart::Taken } else { JoinedStart::Anew };
    let joined = JoinedFolder::open(options.api, start);
    let source = match &joined {
        Some(joined) => joined.added_to(source),
        None => source,
    };
    let exit = run_source(options, source, start_autoscaler);
    // A successor goes on with the folder, and says so by its own socket.
    if let Some(joined) = joined
        && exit.is_ok()
    {
        joined.leave_to_successor_or_remove();
    }
    exit
}

/// The same with these manifests, whatever the options name.
pub(crate) fn run_source(
    options: UpOptions,
    source: ManifestSource,
    start_autoscaler: StartAutoscaler,
) -> anyhow::Result<ExitCode> {
    let given = GivenSockets::take()?;
    let source = if options.operation.shadow { source.in_shadow() } else { source };
    let loaded = match platform_local::load(&source) {
        Ok(loaded) => loaded,
        Err(findings) => return Ok(lint::refuse(&findings)),
    };
    if let Err(error) = start_logs(&options) {
        output::print_problem(&format!("--log: {error}"));
        return Ok(ExitCode::from(2));
    }
    for warning in loaded.warnings.iter().chain(&loaded.absences) {
        output::print_warning(&warning.to_string());
    }
    let tls = match FrontTls::prepare(&options, &loaded) {
        Ok(tls) => tls,
        Err(errors) => return Ok(refuse(&errors)),
    };
    if let Some(group) = options.token_group.as_ref().filter(|group| !group.has_this_user()) {
        let problem = "--token-group: this user is not in the group";
        output::print_problem(&format!(
            "{problem} {}; in a unit of systemd SupplementaryGroups= adds it",
            group.name
        ));
        return Ok(ExitCode::from(2));
    }
    // Both first, so that little is left that could go wrong once another one's pods are ours.
    let descriptors = runtime::raise_descriptor_limit().told();
    let runtime = runtime()?;
    let (sockets, inheritance) = match take_over_if_asked(&options)? {
        Some(taken) => Inheritance::split(taken),
        None => match Sockets::bind(&options, given) {
            Ok(sockets) => (sockets, None),
            Err(errors) => return Ok(refuse(&errors)),
        },
    };
    let manifests = Manifests { source, loaded };
    let api = sockets.api.local_addr()?;
    let former_failure = former_failure(api);
    let handed = inheritance.as_ref().and_then(|inherited| inherited.api_token);
    let access = ApiAccess::prepare(api, &options, handed);
    let histories = Histories::open(api, &options);
    let foundations =
        Foundations { manifests, descriptors, start_autoscaler, inheritance, former_failure, histories };
    runtime.block_on(serve(options, foundations, sockets, tls, access))
}

/// Why the `ebb up` before this one ended, if a part of it failed. A service manager that starts `ebb up`
/// again sees an exit code only, and a person that asks later sees nothing. This process leaves the reason of
/// its own failure there, too.
fn former_failure(api: SocketAddr) -> Option<String> {
    let file = take_over::failure_file(api)?;
    let said = std::fs::read_to_string(&file).ok();
    // Said once: the next one that ends well leaves nothing.
    let _ = std::fs::remove_file(&file);
    runtime::record_fatal_errors_in(file);
    let said = said.filter(|said| !said.is_empty())?;
    tracing::warn!(reason = said, "the `ebb up` before this one ended because a part of it failed");
    Some(format!(
        "the `ebb up` before this one ended with exit code {EXIT_PART_FAILED}: {said}; this is a bug of ebb, which goes on since"
    ))
}

fn refuse(errors: &[anyhow::Error]) -> ExitCode {
    errors.iter().for_each(output::print_error);
    ExitCode::from(2)
}

/// Takes over from the running `ebb up`, if the options ask for that and there is one.
fn take_over_if_asked(options: &UpOptions) -> anyhow::Result<Option<TakenParts>> {
    let Some(named) = options.take_over else { return Ok(None) };
    let api = match named {
        TakeOverTarget::SameApi => options.api,
        TakeOverTarget::ApiAt(api) => api,
    };
    let taken =
        take_over::take(options, api).context("the running `ebb up` could not be taken over, and goes on")?;
    if taken.is_none() {
        info!(%api, "no `ebb up` of this user has its API there, so nothing is taken over: an ordinary start");
    }
    Ok(taken)
}

/// A runtime for everything but requests, which the activator's own threads serve. One worker, although it is
/// not alone: a second one would take over half of the steps from a waiting request to the pod that is
/// started for it, and on a busy machine each such change of threads takes a millisecond. And one thread for
/// what blocks, which looks at the manifests every other second: a second one would start some time because
/// the first is not quite back yet, and keep half a megabyte for good.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .context("starting the asynchronous runtime")
}

fn start_logs(options: &UpOptions) -> anyhow::Result<()> {
    let format = options.operation.log_format.format();
    let on_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    runtime::start_logs(format, &options.operation.log, if on_terminal { Colours::On } else { Colours::Off })
}

async fn serve(
    options: UpOptions,
    foundations: Foundations,
    sockets: Sockets,
    tls: Option<FrontTls>,
    access: ApiAccess,
) -> anyhow::Result<ExitCode> {
    let mut stop_requests = StopRequests::listen()?;
    let mut hangups = Hangups::listen()?;
    let mut replacements = Replacements::listen()?;
    let front_door = sockets.front_door(&options.tls)?;
    log_trusted_forwarders(&options, front_door);
    let api_address = sockets.api.local_addr()?;
    let (orders, restarts) = mpsc::channel(RESTARTS_WAITING);
    let startup_message =
        startup_message(options.operation.log_format, &foundations.manifests.loaded, front_door, api_address);
    let socket = sockets.api.try_clone().context("keeping the API's socket")?.into();
    let tls_entrance = tls.as_ref().zip(sockets.tls).map(|(tls, socket)| tls.at(socket));
    let entrances = Entrances { front_door, requests: sockets.requests, tls: tls_entrance };
    // Pods start before everything is ready. What they print waits for this lock: the program that has
    // started us reads first where everything is reached.
    let mut first_words = std::io::stdout().lock();
    let parts = Parts::start(&options, foundations, entrances).await?;
    if let Some(tls) = tls {
        tokio::spawn(runtime::vital("the watch over certificates", tls.watch()));
    }
    let orders = PersonalOrders { restarts: orders, platform: parts.platform(), access: access.clone() };
    let task = api::serve(sockets.api, parts.api(), orders, options.operation.trusted_host.clone().into())?;
    let (wanted, hand_overs) = mpsc::channel(1);
    let take_over_socket = take_over::listen(api_address, wanted);
    let watchdog = ServiceWatchdog::start(parts.watched_parts());
    let api = ApiServer { task, socket, access };
    let control = ControlPoints { restarts, hand_overs, api, take_over_socket, watchdog };
    // An output without a reader is no reason to fail.
    let _ = writeln!(first_words, "{startup_message}").and_then(|()| first_words.flush());
    drop(first_words);
    service_manager::tell_ready();
    let kill = parts.killer();
    let platform = parts.platform();
    let stopping = CancellationToken::new();
    // However long a restart or the drain takes, requests to stop are heard.
    let working = work(parts, control, &stopping);
    let hurried = async {
        let replaced = async {
            loop {
                replacements.next().await;
                service_manager::replace_this(api_address);
            }
        };
        // Only one can end, and then the other is cancelled for good.
        let why = tokio::select! {
            why = stop_reason(&mut stop_requests, &mut hangups, &platform) => why,
            () = replaced => unreachable!("the loop has no end"),
        };
        service_manager::tell_stopping();
        info!(why, "stopping: requests are finished, then pods end; once more ends everything at once");
        stopping.cancel();
        stop_requests.next().await
    };
    // Cancelling the work is what a second signal asks for; if the work ends first, nothing is cancelled.
    let exit = tokio::select! {
        () = working => ExitCode::SUCCESS,
        _ = hurried => {
            kill();
            ExitCode::from(INTERRUPTED)
        }
    };
    Ok(exit)
}

/// The ways by which people, a successor and the service manager control `ebb up`.
struct ControlPoints {
    restarts: mpsc::Receiver<RestartOrder>,
    hand_overs: mpsc::Receiver<HandOverOrder>,
    api: ApiServer,
    /// The socket at which a successor asks for everything.
    take_over_socket: Option<TakeOverSocket>,
    watchdog: ServiceWatchdog,
}

/// Works until it is to stop, or until everything is handed over; then finishes the requests that are held.
async fn work(mut parts: Parts, mut control: ControlPoints, stopping: &CancellationToken) {
    loop {
        // Cancel-safe: orders stay in their channels. What is done about one is done in the arm's body, which
        // nothing cancels.
        tokio::select! {
            () = stopping.cancelled() => break,
            Some(order) = control.restarts.recv() => restart(&mut parts, order).await,
            Some(order) = control.hand_overs.recv() => {
                if parts.hand_over(order, &control.api).await == HandOverEnd::Over {
                    // The successor tells the watchdog from now on.
                    drop(control.watchdog);
                    control.take_over_socket.into_iter().for_each(TakeOverSocket::leave);
                    // The listening socket is the same in both processes, so as long as this task accepts,
                    // some calls come here.
                    control.api.task.abort();
                    drop(control.api.socket);
                    return parts.finish().await;
                }
            }
        }
    }
    // The API answers to the end; only orders are not taken any more.
    drop((control.restarts, control.hand_overs, control.take_over_socket));
    parts.drain().await;
    control.api.task.abort();
    control.api.access.leave();
}

/// Returns why everything is to stop; until then a hangup means that the files are read again.
async fn stop_reason(
    stop_requests: &mut StopRequests,
    hangups: &mut Hangups,
    platform: &LocalPlatform,
) -> &'static str {
    loop {
        // Cancel-safe: signals without a waiter are kept.
        tokio::select! {
            request = stop_requests.next() => return match request {
                StopRequest::Interrupt => "SIGINT",
                StopRequest::Terminate => "SIGTERM",
            },
            hangup = hangups.next() => match hangup {
                Hangup::TerminalGone => return "the terminal is gone",
                Hangup::Reload => {
                    info!("SIGHUP: the files are read again");
                    platform.reload();
                }
            },
        }
    }
}

async fn restart(parts: &mut Parts, order: RestartOrder) {
    let done = match order.part {
        Part::Autoscaler => {
            parts.restart_autoscalers().await;
            Ok(())
        }
        Part::Activator => parts.restart_activators().await,
    };
    if let Err(error) = &done {
        error!(%error, part = order.part.name(), "rebuilding failed");
    }
    // The caller may have gone away; the part is rebuilt all the same.
    let _ = order.done.send(done.map_err(|error| format!("{error:#}")));
}
