//! How often a request is sent on that apps refuse (`REFUSED_STREAM` of HTTP/2), and how long between.
//!
//! A pod that cannot be reached or is full says nothing about the next: such a request waits for its turn, up to its deadline. One that apps refuse is another
//! matter: they have it, and do not want it. It is offered to another pod at once, then at growing distances, and then its client is told.

use std::time::Duration;

use dataplane::{Reason, Refusal};
use runtime::Backoff;
use vocabulary::format_duration;

/// As often as a request is sent to apps that refuse it. With the waits between, they have about 5 s to come to themselves.
const ATTEMPTS_MAX: u32 = 12;

const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The refusals of one request.
#[derive(Debug)]
pub(crate) struct AppRefusals {
    count: u32,
    waited: Duration,
    backoff: Backoff,
}

impl Default for AppRefusals {
    fn default() -> Self {
        Self { count: 0, waited: Duration::ZERO, backoff: Backoff::new(WAIT_MIN, WAIT_MAX) }
    }
}

impl AppRefusals {
    /// One more. How long to wait before the next attempt, or what the client is told.
    pub(crate) fn next_wait(&mut self) -> Result<Duration, Refusal> {
        self.count += 1;
        if self.count >= ATTEMPTS_MAX {
            let (count, waited) = (self.count, format_duration(self.waited));
            let detail = format!(
                "the app refused the request (REFUSED_STREAM) in each of {count} attempts, with {waited} of waiting between them"
            );
            return Err(Refusal::new(Reason::UpstreamReset, detail));
        }
        let wait = if self.count == 1 { Duration::ZERO } else { self.backoff.next_wait() };
        self.waited += wait;
        Ok(wait)
    }

    /// What is to be added where a client is told that its time is up.
    pub(crate) fn so_far(&self) -> String {
        match self.count {
            0 => String::new(),
            count => format!("; the app refused the request (REFUSED_STREAM) {count} times until then"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_grow_and_end() {
        let mut refusals = AppRefusals::default();
        assert_eq!(refusals.so_far(), "");
        let mut waits = Vec::new();
        let refusal = loop {
            match refusals.next_wait() {
                Ok(wait) => waits.push(wait.as_millis()),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        assert_eq!(
            (refusal.reason, &*refusal.detail),
            (
                Reason::UpstreamReset,
                "the app refused the request (REFUSED_STREAM) in each of 12 attempts, with 4.27s of waiting between them"
            )
        );
        assert!(refusals.so_far().contains("12 times"));
    }
}
