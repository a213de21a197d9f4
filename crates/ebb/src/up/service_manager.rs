//! What does a service manager give to `ebb up`, and what is it told? Systemd has two protocols: listening
//! sockets that it keeps open while no `ebb up` runs, so that connections wait instead of being refused, and
//! a socket for notices about start, reload and end.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, bail};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

/// What the kernel adds to the name of an executable whose file was replaced.
const REPLACED: &str = " (deleted)";

/// The variable that names the process that the watchdog watches.
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// The option that a successor is given, whatever options this process had.
const TAKE_OVER: &str = "--take-over";

/// Sockets to listen on, if some were given.
#[derive(Debug, Default)]
pub(super) struct GivenSockets {
    /// The first socket that was given: for requests.
    pub(super) requests: Option<TcpListener>,
    /// The second: for the API.
    pub(super) api: Option<TcpListener>,
    /// The third: for requests over TLS.
    pub(super) tls: Option<TcpListener>,
}

impl GivenSockets {
    /// Takes them out of the environment. To be called while there is one thread.
    pub(super) fn take() -> anyhow::Result<Self> {
        let mut given = ListenFd::from_env();
        let count = given.len();
        if count > 3 {
            bail!(
                "LISTEN_FDS gives {count} sockets; give one for requests and, if you like, a second for the API and \
                 a third for requests over TLS"
            );
        }
        let mut take = |index: usize| -> anyhow::Result<Option<TcpListener>> {
            let socket = given
                .take_tcp_listener(index)
                .context("LISTEN_FDS gives something else than sockets that listen")?;
            if let Some(socket) = &socket {
                // It comes as the service manager made it, and a runtime that accepts on one that blocks
                // stands still.
                socket.set_nonblocking(true).context("preparing a socket of LISTEN_FDS")?;
            }
            Ok(socket)
        };
        Ok(Self { requests: take(0)?, api: take(1)?, tls: take(2)? })
    }
}

/// Tells that requests are answered, and that this process is to be watched from now on.
pub(super) fn tell_ready() {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// Tells the watchdog that every part works.
pub(super) fn tell_alive() {
    tell(&[NotifyState::Watchdog]);
}

/// Tells the service manager that this process ends.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(%error, "the service manager was not told");
    }
}

/// SIGUSR2: the order to be replaced by what the executable is now.
pub(super) struct Replacements(Signal);

impl Replacements {
    /// Takes the signal over. Must be called within a tokio runtime.
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self(signal(SignalKind::user_defined2()).context("listening for SIGUSR2")?))
    }

    /// Waits for the next order. Cancel-safe.
    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Starts a successor with the same arguments, which takes over from the `ebb up` whose API is there. If it
/// cannot be started, everything goes on here, and the reload is over.
pub(super) fn replace_this(api: SocketAddr) {
    if let Ok(time) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, time]);
    }
    match successor(api) {
        Ok(mut child) => {
            info!(pid = child.id(), "SIGUSR2: a successor is started, to take over");
            // After a panic no word says how that one ended; whether it has taken over is seen elsewhere.
            tokio::spawn(async move {
                let status = child.wait().await;
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                warn!(status, "the successor has ended without taking over; everything goes on here");
                tell(&[NotifyState::Ready]);
            });
        }
        Err(error) => {
            warn!(
                error = format!("{error:#}"),
                "SIGUSR2: no successor can be started; everything goes on here"
            );
            tell(&[NotifyState::Ready]);
        }
    }
}

fn successor(api: SocketAddr) -> anyhow::Result<tokio::process::Child> {
    let mut command = Command::new(executable()?);
    // The successor is to be watched, whatever its process number.
    command.env_remove(WATCHDOG_PID);
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("-") => bail!("standard input was read, and cannot be read again"),
            Some(own) if own.starts_with(TAKE_OVER) => {}
            _ => drop(command.arg(argument)),
        }
    }
    command.arg(format!("{TAKE_OVER}={api}")).stdin(Stdio::null()).spawn().context("starting the executable")
}

/// By its name, which may mean a newer file by now.
fn executable() -> anyhow::Result<PathBuf> {
    let found = std::env::current_exe().context("finding this executable")?;
    let name = found.to_str().and_then(|name| name.strip_suffix(REPLACED)).map(PathBuf::from);
    Ok(name.unwrap_or(found))
}
