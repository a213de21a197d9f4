//! Has the app answered, and has it ended? On one machine the process that started this one wants to know the
//! first and says the second.
//!
//! An app that listens for a moment and then ends looks ready, and breaks off what it was sent. Its first
//! answer tells it from an app that works. And a client whose request it closed reads how it ended: the
//! connection ends a moment before the process does, so the word is waited for, if nothing listens at the
//! app's address any more.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::time::Duration;

use runtime::Clock;
use tokio::sync::Notify;
use tracing::warn;
use vocabulary::FIRST_ANSWER;

use crate::config::{AppUsageSource, PortAudience};

/// How long a client waits for the line that says how its app ended. On a machine that is not overloaded it
/// comes within milliseconds.
const END_SAID_WITHIN: Duration = Duration::from_secs(1);

/// What this queue-proxy knows of the life of its app: whether it has answered, and how it ended.
pub(crate) struct AppLife {
    audience: PortAudience,
    source: AppUsageSource,
    has_answered: Cell<bool>,
    end: RefCell<Option<String>>,
    ended: Notify,
}

impl AppLife {
    /// `audience` hears of the first answer, and `source` tells how the app ended.
    pub(crate) fn new(audience: PortAudience, source: AppUsageSource) -> Self {
        Self {
            audience,
            source,
            has_answered: Cell::new(false),
            end: RefCell::default(),
            ended: Notify::new(),
        }
    }

    /// The app answered a request. The first answer is announced like the ports.
    pub(crate) fn note_answer(&self) {
        if self.has_answered.replace(true) || self.audience == PortAudience::No {
            return;
        }
        // A few bytes for a pipe that is read as long as its reader lives.
        let mut stdout = std::io::stdout();
        if let Err(error) = writeln!(stdout, "{FIRST_ANSWER}").and_then(|()| stdout.flush()) {
            warn!(%error, "cannot announce the first answer");
        }
    }

    /// Keeps the way in which the app ended by itself, for every client that asks from now on.
    pub(crate) fn note_end(&self, how: String) {
        self.end.replace(Some(how));
        self.ended.notify_waiters();
    }

    /// How the app ended, as its parent process says; `None` if it runs, or if that is not known within
    /// [`END_SAID_WITHIN`]. `is_listening` tells whether a connection to the app can still be made.
    pub(crate) async fn reason_of_end(
        &self,
        is_listening: impl Future<Output = bool>,
        clock: Clock,
    ) -> Option<String> {
        if self.source == AppUsageSource::Unmeasured {
            return None;
        }
        let said = async { if is_listening.await { None } else { Some(self.end().await) } };
        // Cancelling loses nothing: the end is a state, and a connection that is being made is of no use.
        tokio::select! {
            how = said => how,
            () = clock.sleep_until(clock.now() + END_SAID_WITHIN) => None,
        }
    }

    async fn end(&self) -> String {
        loop {
            let ended = self.ended.notified();
            if let Some(how) = self.end.borrow().clone() {
                return how;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn life(source: AppUsageSource) -> AppLife {
        AppLife::new(PortAudience::No, source)
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_an_app_is_waited_for_once_nothing_listens() {
        let (life, clock) = (life(AppUsageSource::Stdin), Clock::start());
        let word = async {
            clock.sleep_until(clock.now() + END_SAID_WITHIN / 2).await;
            life.note_end("the app exited with code 1".to_owned());
        };
        let (how, ()) = tokio::join!(life.reason_of_end(ready(false), clock), word);
        assert_eq!(how.as_deref(), Some("the app exited with code 1"));
        let before = clock.now();
        assert_eq!(life.reason_of_end(ready(false), clock).await, how, "and known from then on");
        assert_eq!(clock.now(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn an_app_that_listens_or_of_which_nothing_is_said_has_not_ended() {
        let (told, clock) = (life(AppUsageSource::Stdin), Clock::start());
        let before = clock.now();
        assert_eq!(told.reason_of_end(ready(true), clock).await, None);
        assert_eq!(life(AppUsageSource::Unmeasured).reason_of_end(pending(), clock).await, None);
        assert_eq!(clock.now(), before, "without a wait");
        assert_eq!(told.reason_of_end(pending(), clock).await, None);
        assert_eq!(clock.now().saturating_since(before), END_SAID_WITHIN);
    }
}
