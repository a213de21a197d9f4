//! The new one's side: done before anything else of it runs, so it blocks.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use orchestration::ActivatorFacts;
use platform_local::Handover;
use tokio::io::AsyncReadExt as _;
use tracing::info;

use super::messages::{Offer, PredecessorActivator, TakeOverMessage, VERSION};
use super::{socket, wire};
use crate::api_token::ApiToken;
use crate::cli::UpOptions;
use crate::up::sockets::{Sockets, bind};
use crate::up::tls;

/// How long the running one may take until it offers something, and then until it lets go: longer than it
/// gives itself for either.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that another one had.
pub(in crate::up) struct TakenParts {
    pub(in crate::up) requests: TcpListener,
    pub(in crate::up) api: TcpListener,
    pub(in crate::up) tls: Option<TcpListener>,
    pub(in crate::up) platform: Handover,
    pub(in crate::up) predecessor: Predecessor,
    pub(in crate::up) activators_started: u64,
    pub(in crate::up) api_token: Option<ApiToken>,
}

/// The one before, which serves what it holds.
pub(in crate::up) struct Predecessor {
    pub(in crate::up) pid: u32,
    pub(in crate::up) activators: Vec<ActivatorFacts>,
    /// Open for as long as it does.
    connection: UnixStream,
}

impl Predecessor {
    /// Returns when it has ended.
    pub(in crate::up) async fn ended(mut connection: tokio::net::UnixStream) {
        // The predecessor sends nothing any more; whatever is read means its end.
        let _ = connection.read_u8().await;
    }

    /// The activators of the predecessor, and the connection that ends with it.
    pub(in crate::up) fn into_parts(self) -> anyhow::Result<(Vec<ActivatorFacts>, tokio::net::UnixStream)> {
        self.connection.set_nonblocking(true)?;
        let connection = tokio::net::UnixStream::from_std(self.connection)?;
        Ok((self.activators, connection))
    }
}

/// Takes over from the `ebb up` that has its API there; `None` if there is none.
pub(in crate::up) fn take(options: &UpOptions, api: SocketAddr) -> anyhow::Result<Option<TakenParts>> {
    let Some(connection) = socket::connect(api)? else { return Ok(None) };
    socket::check_peer(&connection)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    wire::send(&connection, &TakeOverMessage::Ask { version: VERSION }, &[]).context("asking it")?;
    let (offer, descriptors) = match wire::receive(&connection).context("waiting for its offer")? {
        (TakeOverMessage::Offer(offer), descriptors) => (*offer, descriptors),
        (TakeOverMessage::Refused { reason }, _) => bail!("{reason}"),
        (other, _) => bail!("its answer is {other:?}, which is no offer"),
    };
    let taken = match understand(options, offer, descriptors, connection) {
        Ok(taken) => taken,
        Err((connection, error)) => {
            // So that it can say why, too: without this word it would only see a connection that closed.
            let _ = wire::send(&connection, &TakeOverMessage::Refused { reason: format!("{error:#}") }, &[]);
            return Err(error);
        }
    };
    let connection = &taken.predecessor.connection;
    // Up to the last message the predecessor has everything, also what this process holds copies of: if this
    // process ends before it, its copies end with it and no pod has noticed.
    wire::send(connection, &TakeOverMessage::Prepared, &[]).context("accepting its offer")?;
    match wire::receive(connection).context("waiting for its last word")?.0 {
        TakeOverMessage::Yours => Ok(Some(taken)),
        TakeOverMessage::Refused { reason } => bail!("{reason}"),
        other @ (TakeOverMessage::Ask { .. } | TakeOverMessage::Offer(_) | TakeOverMessage::Prepared) => {
            bail!("its last message is {other:?}")
        }
    }
}

/// Everything, if all of it makes sense.
fn understand(
    options: &UpOptions,
    offer: Offer,
    mut descriptors: Vec<OwnedFd>,
    connection: UnixStream,
) -> Result<TakenParts, (UnixStream, anyhow::Error)> {
    // At the end, as the other side puts it: how many of the platform's are before it only the record knows.
    let tls = if offer.has_tls { descriptors.pop() } else { None };
    match join(options, offer.platform, descriptors, tls) {
        Ok((Sockets { requests, api, tls }, platform)) => {
            let activators = offer.activators.into_iter().map(PredecessorActivator::facts).collect();
            let predecessor = Predecessor { pid: offer.pid, activators, connection };
            let (activators_started, api_token) = (offer.activators_started, offer.api_token);
            Ok(TakenParts { requests, api, tls, platform, predecessor, activators_started, api_token })
        }
        Err(error) => Err((connection, error)),
    }
}

fn join(
    options: &UpOptions,
    platform: serde_json::Value,
    descriptors: Vec<OwnedFd>,
    tls: Option<OwnedFd>,
) -> anyhow::Result<(Sockets, Handover)> {
    let mut descriptors = descriptors.into_iter();
    let mut listener = || descriptors.next().map(TcpListener::from).context("a listening socket is missing");
    let (requests, api) = (listener()?, listener()?);
    check_address(&requests, options.listen, "requests at", "--listen")?;
    check_address(&api, options.api, "the API at", "--api")?;
    let platform = Handover { record: platform, descriptors: descriptors.collect() };
    platform.check().map_err(anyhow::Error::msg)?;
    let tls = match (tls.map(TcpListener::from), tls::address(&options.tls, options.listen)) {
        (Some(socket), Some(wanted)) => {
            check_address(&socket, wanted, "requests over TLS at", tls::LISTEN_OPTION)?;
            Some(socket)
        }
        (None, Some(wanted)) => Some(bind(wanted, tls::LISTEN_OPTION)?),
        (Some(_), None) => {
            info!("the running `ebb up` takes requests over TLS, and this one has no certificate to do so");
            None
        }
        (None, None) => None,
    };
    Ok((Sockets { requests, api, tls }, platform))
}

/// The socket stays as it is, so what was written must be what it is.
fn check_address(socket: &TcpListener, wanted: SocketAddr, what: &str, option: &str) -> anyhow::Result<()> {
    let found = socket.local_addr()?;
    // Port 0 means any port, so the port of the predecessor will do.
    let fits = wanted == found || (wanted.port() == 0 && wanted.ip() == found.ip());
    ensure!(
        fits,
        "it has {what} {found}, and {option} says {wanted}; addresses stay as they are in a take-over"
    );
    Ok(())
}
