//! The running one's side. A thread of its own waits at the socket: it blocks, and what it does is rare.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use anyhow::{Context, bail};
use runtime::vital_thread;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::messages::{Offer, TakeOverMessage, VERSION};
use super::socket::{self, TakeOverSocket};
use super::wire;

/// How long the other side may take for one message: it reads what it was offered, and that is all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait after the kernel would not give a connection.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A request of a successor to take everything over; the answer is the offer, or why there is none.
pub(in crate::up) struct HandOverOrder(pub(in crate::up) oneshot::Sender<Result<HandOverOffer, String>>);

/// Everything, while it stands still.
pub(in crate::up) struct HandOverOffer {
    pub(in crate::up) offer: Offer,
    /// The listening sockets and the platform's.
    pub(in crate::up) descriptors: Vec<OwnedFd>,
    /// Told when the other side has understood it all. Dropped: it has not, and everything goes on.
    pub(in crate::up) prepared: oneshot::Sender<()>,
    /// Waited for before the last message.
    pub(in crate::up) go: oneshot::Receiver<()>,
    /// Told when the last message was sent. Dropped: it was not, and everything goes on.
    pub(in crate::up) sent: oneshot::Sender<()>,
}

/// Waits for successors in a thread. Without it everything but a take-over works, so an error is only logged.
pub(in crate::up) fn listen(api: SocketAddr, orders: mpsc::Sender<HandOverOrder>) -> Option<TakeOverSocket> {
    let started = socket::listen(api).and_then(|(listener, place)| {
        let thread = std::thread::Builder::new().name("take-over".to_owned());
        // It ends with the process: nothing is left to be done then.
        thread
            .spawn(move || vital_thread("the wait for a successor", || serve(&listener, &orders)))
            .context("starting a thread")?;
        Ok(place)
    });
    match started {
        Ok(place) => Some(place),
        Err(error) => {
            warn!(error = format!("{error:#}"), "another `ebb up` will not be able to take over");
            None
        }
    }
}

fn serve(listener: &UnixListener, orders: &mpsc::Sender<HandOverOrder>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // For want of descriptors, most likely: it would say the same at once, and again, with a whole
            // core.
            std::thread::sleep(RETRY_AFTER);
            continue;
        };
        match give(&stream, orders) {
            // No other successor is served: everything was handed over.
            Ok(()) => return wait_for_end(&stream),
            Err(error) => {
                let reason = format!("{error:#}");
                warn!(error = reason, "nothing was handed over; everything goes on here");
                let _ = wire::send(&stream, &TakeOverMessage::Refused { reason }, &[]);
            }
        }
    }
}

/// Hands everything over; fails if it is still ours.
fn give(stream: &UnixStream, orders: &mpsc::Sender<HandOverOrder>) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Before a word of it is read: what follows gives away every pod and every socket.
    socket::check_peer(stream)?;
    match wire::receive(stream)?.0 {
        TakeOverMessage::Ask { version: VERSION } => {}
        TakeOverMessage::Ask { version } => bail!(
            "the successor speaks version {version} of the take-over, and this `ebb up` version {VERSION}"
        ),
        other @ (TakeOverMessage::Offer(_)
        | TakeOverMessage::Refused { .. }
        | TakeOverMessage::Prepared
        | TakeOverMessage::Yours) => {
            bail!("the successor's first message is {other:?}")
        }
    }
    let (answer, offering) = oneshot::channel();
    orders.blocking_send(HandOverOrder(answer)).context("everything ends")?;
    let offering = offering.blocking_recv().context("everything ends")?.map_err(anyhow::Error::msg)?;
    // Everything stands still now. Each way out of here drops `prepared` or `sent`, and that is how the other
    // thread knows that it goes on.
    let HandOverOffer { offer, descriptors, prepared, go, sent } = offering;
    wire::send(stream, &TakeOverMessage::Offer(Box::new(offer)), &descriptors)?;
    match wire::receive(stream)?.0 {
        TakeOverMessage::Prepared => {}
        TakeOverMessage::Refused { reason } => bail!("the successor refuses: {reason}"),
        other @ (TakeOverMessage::Ask { .. } | TakeOverMessage::Offer(_) | TakeOverMessage::Yours) => {
            bail!("the successor's answer to the offer is {other:?}")
        }
    }
    // The receiver may have lost patience and gone on as before; then `go` is dropped, and nothing is given.
    let _ = prepared.send(());
    go.blocking_recv().context("it took too long")?;
    // These copies have to be closed before it owns the others, which is from the next message on.
    drop(descriptors);
    wire::send(stream, &TakeOverMessage::Yours, &[])?;
    let _ = sent.send(());
    info!("everything was handed over");
    Ok(())
}

/// As long as this connection is open, the other side knows that requests are answered here.
fn wait_for_end(stream: &UnixStream) {
    let _ = stream.set_read_timeout(None);
    let _ = wire::receive(stream);
    // Whatever was heard, the connection ends with the process and not with this function.
    std::thread::park();
}
