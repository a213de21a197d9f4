//! What ebb's programs tell each other.
//!
//! The autoscaler calls; nobody calls the autoscaler. It opens one long-lived link to each queue-proxy and each activator: one TCP connection
//! with length-delimited protobuf frames both ways. Every message says what *is*, so a repeat or a reconnect does no harm.
//!
//! * [`PodReport`], [`PodOrder`], [`ActivatorReport`], [`ActivatorOrder`]: what is said, in our own words.
//! * [`dial`] and [`Acceptor`]: the two ends; [`Reader`] and [`Writer`] are typed by what travels in their direction, and cut off a peer
//!   that is silent, stalled or speaks garbage.
//! * [`History`]: what a reporter remembers for the next [`PodHello`] or [`ActivatorHello`].

mod accept;
mod framing;
mod history;
mod messages;
mod wire;

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, ToSocketAddrs};

pub use accept::{Accepted, Acceptor};
pub use framing::{HEARTBEAT_EVERY, LinkError, Reader, SILENCE_MAX, WRITE_MAX, Writer};
pub use history::History;
pub use messages::{
    ActivatorHello, ActivatorOrder, ActivatorReport, PodHello, PodOrder, PodReport, RevisionLoad,
};
pub use wire::{DETAIL_BYTES_MAX, Message, WireError};

/// The autoscaler's end of a link to a queue-proxy.
pub type ToPod = (Reader<PodReport>, Writer<PodOrder>);
/// The autoscaler's end of a link to an activator.
pub type ToActivator = (Reader<ActivatorReport>, Writer<ActivatorOrder>);
/// A queue-proxy's end of its link.
pub type FromPod = (Reader<PodOrder>, Writer<PodReport>);
/// An activator's end of its link.
pub type FromActivator = (Reader<ActivatorOrder>, Writer<ActivatorReport>);

/// Opens a link. Connecting has the same time limit as any write ([`WRITE_MAX`]).
///
/// The dialler speaks first: the accepting side takes a connection for a link only once a valid frame arrived on it.
pub async fn dial<In: Message, Out: Message>(
    address: impl ToSocketAddrs,
) -> Result<(Reader<In>, Writer<Out>), LinkError> {
    let connecting = tokio::time::timeout(WRITE_MAX, TcpStream::connect(address));
    let stream = connecting.await.map_err(|_| LinkError::ConnectTimeout)?.map_err(LinkError::Connect)?;
    Ok(accept(stream))
}

/// Opens a link to `address` through `relay`, which is told the address in a first line, `HOST:PORT`. Meant for tests of what crosses a
/// network; nothing else speaks this.
pub async fn dial_through<In: Message, Out: Message>(
    relay: SocketAddr,
    address: SocketAddr,
) -> Result<(Reader<In>, Writer<Out>), LinkError> {
    let connecting = async {
        let mut stream = TcpStream::connect(relay).await?;
        stream.write_all(format!("{address}\n").as_bytes()).await?;
        Ok(stream)
    };
    let stream = tokio::time::timeout(WRITE_MAX, connecting).await.map_err(|_| LinkError::ConnectTimeout)?;
    Ok(accept(stream.map_err(LinkError::Connect)?))
}

/// Makes a link of a connection that somebody else opened or accepted. [`Acceptor`] is what a listening program wants.
pub fn accept<In: Message, Out: Message>(stream: TcpStream) -> (Reader<In>, Writer<Out>) {
    // Frames are small and urgent. Failure leaves a slower link, which is no reason to refuse it.
    let _ = stream.set_nodelay(true);
    let (read, write) = stream.into_split();
    (Reader::new(read), Writer::new(write))
}
