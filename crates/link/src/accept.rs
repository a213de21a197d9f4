//! The accepting end: which of several connections is the autoscaler's link.
//!
//! There is one autoscaler, so there is one link at a time, and a new one replaces the old. But a connection counts as a link only once a
//! valid frame arrived on it (the dialler speaks first): otherwise a port scanner, a health check or a stray client would
//! displace the autoscaler, and silence would hold its place.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::framing::{LinkError, Reader, Writer};
use crate::wire::Message;

/// Connections that have not said anything valid yet. One more displaces the oldest of them.
const CANDIDATES_MAX: usize = 8;
/// How long to leave a listener alone that cannot accept (out of file descriptors, for one).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection that became the link.
pub struct Accepted<In, Out> {
    /// What the dialler said first.
    pub first: In,
    /// What it says next.
    pub reader: Reader<In>,
    /// The way back.
    pub writer: Writer<Out>,
}

/// Accepts links on a listener, one at a time: drop the link in use when [`Acceptor::accept`] yields the next.
pub struct Acceptor<In, Out> {
    listener: TcpListener,
    candidates: JoinSet<Result<Accepted<In, Out>, LinkError>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl<In: Message, Out: Message> Acceptor<In, Out> {
    /// Takes over a listener.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, candidates: JoinSet::new(), oldest_first: VecDeque::new() }
    }

    /// The next link: a connection on which a first valid message has arrived. Cancel-safe, and meant to be polled all the
    /// time, beside the link in use.
    pub async fn accept(&mut self) -> Accepted<In, Out> {
        loop {
            tokio::select! {
                Some(finished) = self.candidates.join_next() => match finished {
                    Ok(Ok(accepted)) => return accepted,
                    Ok(Err(reason)) => tracing::debug!(error = &reason as &dyn std::error::Error, "refused a connection on the link port"),
                    Err(_displaced) => {}
                },
                connection = self.listener.accept() => match connection {
                    Ok((stream, _)) => self.admit(crate::accept(stream)),
                    Err(error) => Self::pause(&error).await,
                },
            }
        }
    }

    fn admit(&mut self, (mut reader, writer): (Reader<In>, Writer<Out>)) {
        self.oldest_first.retain(|candidate| !candidate.is_finished());
        if self.oldest_first.len() >= CANDIDATES_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            oldest.abort();
        }
        self.oldest_first.push_back(self.candidates.spawn(async move {
            let first =
                reader.next().await?.ok_or_else(|| LinkError::Broken(io::ErrorKind::UnexpectedEof.into()))?;
            Ok(Accepted { first, reader, writer })
        }));
    }

    /// Accepting fails for reasons that pass (no file descriptors left); asking again at once would only spin.
    async fn pause(error: &io::Error) {
        tracing::warn!(error = error as &dyn std::error::Error, "cannot accept a link");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

#[cfg(test)]
mod tests;
