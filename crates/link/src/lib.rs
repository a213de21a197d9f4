//! What ebb's programs tell each other.
//!
//! The autoscaler opens every link; no program opens one to the autoscaler. It keeps one long-lived link to
//! each queue-proxy and each activator: one connection, over whatever carries bytes both ways, with
//! length-delimited protobuf frames. Every message says what *is*, so a repeat or a reconnect does no harm.
//!
//! * [`vocabulary::PodWord`], [`PodOrder`], [`vocabulary::ActivatorWord`], [`ActivatorOrder`]: the messages,
//!   in the types of our own crates.
//! * [`dial`] and [`Acceptor`]: the two ends; [`Reader`] and [`Writer`] are typed by what travels in their
//!   direction, and cut off a peer that is silent, stalled or speaks garbage.
//! * [`TlsDialler`] and [`LinkTlsAcceptor`]: how the two ends prove their roles on a cluster.
//! * [`History`]: what a reporter remembers for its next hello.

mod accept;
mod connection;
mod framing;
mod history;
mod messages;
mod refusal;
mod stats;
mod tls;
mod wire;

use framing::WRITE_MAX;
use vocabulary::{ActivatorWord, LinkAddress, LinkToken};

pub use accept::{AcceptedLink, Acceptor, LinkAccess};
pub use connection::{ByteStream, Dial, TcpDialler};
pub use framing::{HEARTBEAT_EVERY, LATE_AFTER, LinkError, Reader, Reception, Writer};
pub use history::History;
pub use messages::{ActivatorOrder, PodOrder};
pub use refusal::RefusedLinks;
pub use stats::{
    SCRAPE_BYTES_MAX, STAT_FRAME_BYTES_MAX, ScrapedLoad, StatReport, read_scrape, read_stat_frame,
};
pub use tls::{Identity, LinkTlsAcceptor, TlsDialler, TlsProblem};
pub use wire::{Message, WireError};

/// An activator's end of its link, as tests of the other end hold it.
pub type FromActivator = (Reader<ActivatorOrder>, Writer<ActivatorWord>);

/// Opens a link over plain TCP; see [`dial_with`].
pub async fn dial<In: Message, Out: Message>(
    address: LinkAddress,
) -> Result<(Reader<In>, Writer<Out>), LinkError> {
    dial_with(&TcpDialler, address).await
}

/// Opens a link. Connecting has the same time limit as any write: ten seconds.
///
/// The dialler speaks first, and its first message carries the token: the accepting side takes a connection
/// for a link only then.
pub async fn dial_with<In: Message, Out: Message>(
    dialler: &dyn Dial,
    address: LinkAddress,
) -> Result<(Reader<In>, Writer<Out>), LinkError> {
    let connecting = tokio::time::timeout(WRITE_MAX, dialler.connect(address));
    let stream = connecting.await.map_err(|_| LinkError::ConnectTimeout)?.map_err(LinkError::Connect)?;
    Ok(over(stream, address.token))
}

/// Makes a link of a connection that another part opened or accepted, and whose peer is known. [`Acceptor`]
/// is what a listening program wants.
pub fn accept<In: Message, Out: Message>(stream: impl Into<ByteStream>) -> (Reader<In>, Writer<Out>) {
    over(stream.into(), None)
}

fn over<In: Message, Out: Message>(
    stream: ByteStream,
    token: Option<LinkToken>,
) -> (Reader<In>, Writer<Out>) {
    (Reader::new(stream.incoming), Writer::new(stream.outgoing, token))
}
