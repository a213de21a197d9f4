//! The connection of a response while its body is read, and what becomes of it afterwards.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use protocol::http1::BodilessResponse;
use tokio::task::JoinHandle;

use super::super::limits::LateBodies;
use super::super::pool::{Http1Connection, Pool};
use super::late_body_record::BodilessOutcome;
use super::wire::UnfinishedExchange;

/// How long the rest of an exchange (a request body that the app did not wait for) may take before its
/// connection is given up.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// How long an app may take to close a connection that we closed. Silence for so long is as good.
const WATCH_LIMIT: Duration = Duration::from_secs(2);

/// The task that sends the rest of a request body. Dropping this stops it.
pub(super) struct UploadTask(pub(super) JoinHandle<bool>);

impl Drop for UploadTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection whose response is being read. Unless [`Http1Lease::end`] is reached, it is closed.
pub(crate) struct Http1Lease {
    pub(super) pool: Weak<Pool>,
    pub(super) address: SocketAddr,
    pub(super) connection: Http1Connection,
    pub(super) is_kept_alive: bool,
    /// Set if the response has no body, whatever its head says.
    pub(super) bodiless: Option<BodilessResponse>,
    pub(super) upload: Option<UploadTask>,
    pub(super) unfinished: UnfinishedExchange,
}

impl Http1Lease {
    pub(super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        self.connection.wire.poll_read(context)
    }

    /// Whether the request broke off.
    pub(super) fn is_broken_off(&self) -> bool {
        self.connection.wire.is_broken_off()
    }

    /// The response was read, and `rest` after it: the connection returns to the pool, if it can be used
    /// again.
    pub(super) fn end(mut self, rest: &Bytes) {
        self.unfinished.end();
        if let Some(bodiless) = self.bodiless {
            return self.end_without_body(bodiless, rest);
        }
        if rest.is_empty() {
            if self.is_kept_alive {
                self.keep();
            }
        } else if !is_line_ends(rest)
            && let Some(pool) = self.pool.upgrade()
        {
            pool.note_late_bytes(self.address);
        }
    }

    fn end_without_body(mut self, bodiless: BodilessResponse, rest: &Bytes) {
        let Some(pool) = self.pool.upgrade() else { return };
        let can_be_late = pool.limits.late_bodies == LateBodies::Possible;
        if can_be_late && !rest.is_empty() {
            pool.note_late_body(self.address);
        }
        if !self.is_kept_alive || !rest.is_empty() {
            return;
        }
        if !can_be_late {
            return self.keep();
        }
        self.connection.is_after_bodiless = true;
        match pool.with_host(self.address, |host| host.late_body_record.afterwards(bodiless)) {
            BodilessOutcome::Kept => self.keep(),
            BodilessOutcome::Watched => {
                // After a panic it would count as watched for ever; further connections are closed then, as
                // beyond the limit.
                tokio::task::spawn_local(watch(self.pool, self.address, self.connection));
            }
            BodilessOutcome::Closed => self.connection.discard(&pool, self.address),
        }
    }

    fn keep(self) {
        match self.upload {
            Some(upload) => {
                // A panic drops the connection: it is not used again.
                tokio::task::spawn_local(settle(self.pool, self.address, self.connection, upload));
            }
            None => put_idle(&self.pool, self.address, self.connection),
        }
    }
}

impl fmt::Debug for Http1Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Http1Lease").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Some apps end a body with a line too many. That costs their connection and says nothing else.
fn is_line_ends(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

fn put_idle(pool: &Weak<Pool>, address: SocketAddr, connection: Http1Connection) {
    if let Some(pool) = pool.upgrade() {
        pool.put_idle(address, connection);
    }
}

/// The response is done, the request is not quite: waits for the rest, then keeps the connection.
async fn settle(pool: Weak<Pool>, address: SocketAddr, connection: Http1Connection, mut upload: UploadTask) {
    if let Ok(Ok(true)) = tokio::time::timeout(SETTLE_LIMIT, &mut upload.0).await {
        put_idle(&pool, address, connection);
    }
}

/// Closes our side of a connection and waits for the app to close its own.
async fn watch(pool: Weak<Pool>, address: SocketAddr, connection: Http1Connection) {
    let wire = connection.wire;
    wire.end_writing();
    let read = std::future::poll_fn(|context| wire.poll_read(context));
    let has_sent = match tokio::time::timeout(WATCH_LIMIT, read).await {
        Ok(Ok(bytes)) => !bytes.is_empty(),
        // It broke the connection, or says nothing.
        Ok(Err(_)) | Err(_) => false,
    };
    let Some(pool) = pool.upgrade() else { return };
    pool.with_host(address, |host| host.late_body_record.watched(!has_sent));
    if has_sent {
        pool.note_late_body(address);
    }
}
