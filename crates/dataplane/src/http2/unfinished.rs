//! For how long may something stand half on a connection?
//!
//! A head has as long as one of HTTP/1.1, from its first byte to its last. A DATA frame may be as slow as its
//! sender likes, but not stand still for as long: what it belongs to may be slow for good reasons, and what
//! waits behind it cannot be.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use protocol::http2::{Session, UnfinishedInput};
use runtime::Clock;
use tokio::time::Sleep;
use vocabulary::Timestamp;

/// Notices what stands half for too long.
pub(crate) struct UnfinishedInputWatch {
    patience: Duration,
    clock: Clock,
    /// The input that has come in part, and the time from which its limit counts.
    begun: Option<(UnfinishedInput, Timestamp)>,
    /// Set when something is, and looked at only when it has fired: a connection on which a body comes is
    /// within a frame after nearly every read, and must not pay for a timer each time.
    timer: Option<Pin<Box<Sleep>>>,
}

impl UnfinishedInputWatch {
    pub(crate) fn new(patience: Duration, clock: Clock) -> Self {
        Self { patience, clock, begun: None, timer: None }
    }

    /// Ready when something has stood half for too long. `has_heard`: whether anything came since this was
    /// last asked.
    pub(crate) fn poll_late(
        &mut self,
        session: &Session,
        has_heard: bool,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(unfinished) = session.unfinished() else {
            self.begun = None;
            return Poll::Pending;
        };
        let is_same = self.begun.is_some_and(|(before, _)| before == unfinished);
        let has_moved = has_heard && unfinished == UnfinishedInput::Data;
        let since = match self.begun {
            Some((_, since)) if is_same && !has_moved => since,
            Some(_) | None => self.clock.now(),
        };
        self.begun = Some((unfinished, since));
        let ends_at = since + self.patience;
        let end = self.clock.instant(ends_at);
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        while timer.as_mut().poll(context).is_ready() {
            if self.clock.now() >= ends_at {
                return Poll::Ready(());
            }
            // It was set for something that has come to its end since.
            timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}
