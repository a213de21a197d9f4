//! The accepting end: which of several connections is an autoscaler's link.
//!
//! A new link may replace an old one, which is for the program to say: a queue-proxy has one at a time, an
//! activator one of each owner. But a connection counts as a link only once its first frame (the dialler
//! speaks first) was valid and carried this process's token: otherwise a port scanner, a health check or a
//! stray client would displace the autoscaler, and every caller that reaches the port could give this process
//! orders, with a version that no later word of the autoscaler's exceeds. Until then a connection is a
//! stranger's, and may cost no more than one small frame for a short time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use vocabulary::LinkToken;

use crate::connection::ByteStream;
use crate::framing::{FIRST_FRAME_WITHIN, LinkError, Reader, Writer};
use crate::refusal::{LinkRefusalReason, Refusals, RefusedLinks};
use crate::tls::LinkTlsAcceptor;
use crate::wire::Message;

/// Connections that have not said anything valid yet. One more displaces the oldest of them. The autoscaler
/// speaks as soon as it is connected, so this many strangers would have to connect while its first frame is
/// on its way; all of them together hold 128 KiB.
const CANDIDATES_MAX: usize = 32;
/// How long to leave a listener alone that cannot accept (out of file descriptors, for one).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection that became the link.
pub struct AcceptedLink<In, Out> {
    /// The first message of the dialler.
    pub first: In,
    /// The receiving half, from the second message on.
    pub reader: Reader<In>,
    /// The sending half, to the dialler.
    pub writer: Writer<Out>,
}

/// The proof that a caller is the autoscaler.
#[derive(Clone, Debug)]
pub enum LinkAccess {
    /// Nothing: every caller is let in, so only this machine should reach the listener.
    Open,
    /// The caller's first frame carries this token.
    Token(LinkToken),
    /// The caller's certificate, which the TLS handshake proves.
    Tls(LinkTlsAcceptor),
}

impl From<Option<LinkToken>> for LinkAccess {
    fn from(token: Option<LinkToken>) -> Self {
        token.map_or(Self::Open, Self::Token)
    }
}

/// The outcome of a connection that was not a link yet.
type Admission<In, Out> = Result<AcceptedLink<In, Out>, (SocketAddr, LinkError)>;

/// Accepts links on a listener, one after the other.
pub struct Acceptor<In, Out> {
    listener: TcpListener,
    access: LinkAccess,
    refusals: Refusals,
    candidates: JoinSet<Admission<In, Out>>,
    oldest_first: VecDeque<(SocketAddr, AbortHandle)>,
}

impl<In: Message, Out: Message> Acceptor<In, Out> {
    /// Takes over a listener. Refused connections are counted in `refused`.
    pub fn new(listener: TcpListener, access: impl Into<LinkAccess>, refused: RefusedLinks) -> Self {
        let (access, refusals) = (access.into(), Refusals::new(refused));
        Self { listener, access, refusals, candidates: JoinSet::new(), oldest_first: VecDeque::new() }
    }

    /// The next link: a connection on which a first valid message has arrived. Cancel-safe, and meant to be
    /// polled all the time, beside the links in use.
    pub async fn accept(&mut self) -> AcceptedLink<In, Out> {
        loop {
            // Cancel-safe: a finished candidate stays in the set, and a connection that was not accepted in
            // the kernel.
            tokio::select! {
                Some(finished) = self.candidates.join_next() => match finished {
                    Ok(Ok(accepted)) => return accepted,
                    Ok(Err((peer, error))) => self.note(peer, &error),
                    Err(_displaced) => {}
                },
                connection = self.listener.accept() => match connection {
                    Ok((stream, peer)) => self.admit(peer, stream),
                    Err(error) => Self::pause(&error).await,
                },
            }
        }
    }

    fn admit(&mut self, peer: SocketAddr, stream: TcpStream) {
        // A finished candidate is in the set until `accept` takes it out, but takes no place from others.
        self.oldest_first.retain(|(_, candidate)| !candidate.is_finished());
        if self.oldest_first.len() >= CANDIDATES_MAX
            && let Some((peer, oldest)) = self.oldest_first.pop_front()
        {
            // The oldest and not the newcomer: a peer that fills the places with silence is the oldest, and
            // an autoscaler that dials meanwhile has proved itself within a moment.
            oldest.abort();
            self.refusals.note(LinkRefusalReason::Displaced, peer);
        }
        let access = self.access.clone();
        let candidate = self
            .candidates
            // A panic in it drops the stream: this caller is not let in, and others are.
            .spawn(async move { admitted(access, stream).await.map_err(|error| (peer, error)) });
        self.oldest_first.push_back((peer, candidate));
    }

    fn note(&mut self, peer: SocketAddr, error: &LinkError) {
        tracing::debug!(%peer, error = error as &dyn std::error::Error, "refused a connection on the link port");
        if let Some(reason) = LinkRefusalReason::of(error) {
            self.refusals.note(reason, peer);
        }
    }

    /// Accepting fails for reasons that pass (no file descriptors left); asking again at once would only
    /// spin.
    async fn pause(error: &io::Error) {
        tracing::warn!(error = error as &dyn std::error::Error, "cannot accept a link");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

async fn admitted<In: Message, Out: Message>(
    access: LinkAccess,
    stream: TcpStream,
) -> Result<AcceptedLink<In, Out>, LinkError> {
    let (stream, token) = match access {
        LinkAccess::Open => (stream.into(), None),
        LinkAccess::Token(token) => (stream.into(), Some(token)),
        LinkAccess::Tls(door) => {
            // The handshake has the same time as a first frame: both are what a stranger may cost.
            let proving = tokio::time::timeout(FIRST_FRAME_WITHIN, door.accept(stream)).await;
            let proved = proving.map_err(|_| LinkError::FirstFrameLate)?;
            (proved.map_err(LinkError::Unproved)?, None)
        }
    };
    let (mut reader, writer): (Reader<In>, Writer<Out>) = accept_unproved(stream);
    let first = reader.first(token).await?;
    Ok(AcceptedLink { first, reader, writer })
}

/// Makes a link of a connection whose peer has not proved yet that it is the autoscaler.
fn accept_unproved<In: Message, Out: Message>(stream: ByteStream) -> (Reader<In>, Writer<Out>) {
    (Reader::of_unproved_peer(stream.incoming), Writer::new(stream.outgoing, None))
}

#[cfg(test)]
mod tests;
