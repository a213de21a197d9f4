//! Is a peer that says nothing while streams are open still there? It is asked, and has some time to answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use protocol::http2::Session;
use runtime::Clock;
use tokio::time::Sleep;
use vocabulary::Timestamp;

/// Notices a peer that is gone without a word.
pub(crate) struct PeerWatchdog {
    /// How long a silent peer is left alone, and how long it has to answer.
    patience: Duration,
    clock: Clock,
    last_heard: Timestamp,
    /// Runs while streams are open, and is looked at only when it has fired: what is heard costs no timer
    /// operation.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the peer was asked and has not been heard since.
    is_asked: bool,
}

impl PeerWatchdog {
    pub(crate) fn new(patience: Duration, clock: Clock) -> Self {
        Self { patience, clock, last_heard: clock.now(), timer: None, is_asked: false }
    }

    /// Ready when the peer is dead.
    pub(crate) fn poll_dead(
        &mut self,
        session: &Session,
        has_heard: bool,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if has_heard {
            self.last_heard = self.clock.now();
            self.is_asked = false;
        }
        // A timer that runs is not moved when something is heard, which would cost more than the piece that
        // was heard. It fires, finds that it is too early, and is set again: once in a patience, whatever the
        // traffic.
        if self.timer.as_ref().is_some_and(|timer| !timer.is_elapsed()) {
            return Poll::Pending;
        }
        let is_idle = session.streams() == 0;
        let mut timer = match self.timer.take() {
            Some(_) | None if is_idle => return Poll::Pending,
            Some(timer) => timer,
            None => {
                // Silence begins with the first stream.
                self.last_heard = self.clock.now();
                self.is_asked = false;
                Box::pin(tokio::time::sleep_until(self.clock.instant(self.last_heard + self.patience)))
            }
        };
        while timer.as_mut().poll(context).is_ready() {
            let now = self.clock.now();
            let mut next = self.last_heard + self.patience;
            if next <= now {
                if self.is_asked {
                    return Poll::Ready(());
                }
                self.is_asked = true;
                session.ping();
                next = now + self.patience;
            }
            timer.as_mut().reset(self.clock.instant(next));
        }
        self.timer = Some(timer);
        Poll::Pending
    }
}
