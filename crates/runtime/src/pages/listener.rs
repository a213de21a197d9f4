//! The listener of a program's pages: a connection leaves it with a place.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use vocabulary::Backoff;

use super::places::PagePlaces;
use super::seat::PageSeat;
use crate::listen::is_of_one_connection;

/// A peer that is gone without a word is noticed after 90 s, as by the proxies: the place of a long read
/// would be its own for ever.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_QUESTIONS: u32 = 3;

/// A listener for pages, with the places that it shares with others of its program.
#[derive(Debug)]
pub struct PageListener {
    listener: TcpListener,
    places: PagePlaces,
    backoff: Backoff,
    /// A connection that was accepted and has no place yet.
    waiting: Option<(TcpStream, SocketAddr)>,
}

/// A connection that has a place.
#[derive(Debug)]
pub struct PageConnection {
    /// The accepted socket, in non-blocking mode.
    pub stream: TcpStream,
    /// The address of the client.
    pub peer: SocketAddr,
    /// The place of the connection, to be held until its end.
    pub seat: PageSeat,
}

impl PageListener {
    /// Fails if the listener cannot be used. Must be called within a tokio runtime.
    pub fn new(listener: std::net::TcpListener, places: &PagePlaces) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL);
        // What a listening socket is told holds for its connections as well.
        SockRef::from(&listener).set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_QUESTIONS))?;
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            places: places.clone(),
            backoff: Backoff::new(Duration::from_millis(5), Duration::from_secs(1)),
            waiting: None,
        })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The places that this listener shares with others.
    pub fn places(&self) -> &PagePlaces {
        &self.places
    }

    /// The next connection, once it has a place. Cancel-safe.
    pub async fn accept(&mut self) -> PageConnection {
        loop {
            if self.waiting.is_none() {
                self.waiting = self.next().await;
                continue;
            }
            let seat = self.places.take().await;
            if let Some((stream, peer)) = self.waiting.take() {
                return PageConnection { stream, peer, seat };
            }
        }
    }

    /// Stops listening. Connections that the kernel has accepted already are returned, as far as there are
    /// places for them.
    pub fn close(mut self) -> Vec<PageConnection> {
        let mut last: Vec<PageConnection> = Vec::new();
        let seated =
            |(stream, peer)| self.places.take_now().map(|seat| PageConnection { stream, peer, seat });
        last.extend(self.waiting.take().and_then(seated));
        // The kernel is asked itself: the runtime may not have heard of them yet.
        let Ok(listener) = self.listener.into_std() else { return last };
        while let Ok((stream, peer)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            last.extend(stream.ok().and_then(|stream| seated((stream, peer))));
        }
        last
    }

    async fn next(&mut self) -> Option<(TcpStream, SocketAddr)> {
        match self.listener.accept().await {
            Ok(accepted) => {
                self.backoff.reset();
                Some(accepted)
            }
            // Only that peer has gone.
            Err(error) if is_of_one_connection(&error) => None,
            Err(error) => {
                // Out of file descriptors, most likely: no reason to stop serving.
                tracing::warn!(%error, "no connection to a page can be accepted for now");
                tokio::time::sleep(self.backoff.next_wait()).await;
                None
            }
        }
    }
}
