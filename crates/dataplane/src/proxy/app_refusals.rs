//! How often is a request sent on that apps refuse (`REFUSED_STREAM` of HTTP/2), and how long between?
//!
//! A pod that cannot be reached or is full says nothing about the next. One that apps refuse is another
//! matter: they say that they have not begun, so it may be sent again, but one that has just refused it is
//! likely to do the same at once, and one that always does must not be asked for ever. So the attempts come
//! at growing distances, and then the client is told. Both proxies count alike, so that it hears the same.

use std::time::Duration;

use runtime::Backoff;
use vocabulary::format_duration;

use crate::refusal::{Refusal, RefusalReason};

/// How often a request is sent to apps that refuse it. With the waits between, they have about 5 s to come to
/// themselves.
const ATTEMPTS_MAX: u32 = 12;

const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The refusals of one request.
#[derive(Debug)]
pub struct AppRefusals {
    count: u32,
    waited: Duration,
    backoff: Backoff,
    second_attempt: SecondAttempt,
}

/// When a request is sent again after its first refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondAttempt {
    /// At once: it may be another pod that gets it.
    AtOnce,
    /// After a wait, as the later ones.
    AfterAWait,
}

impl AppRefusals {
    /// The state of a request that no app has refused yet.
    pub const fn none(second_attempt: SecondAttempt) -> Self {
        Self { count: 0, waited: Duration::ZERO, backoff: Backoff::new(WAIT_MIN, WAIT_MAX), second_attempt }
    }

    /// How many times apps have refused the request.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Counts one more refusal. Returns how long to wait before the next attempt, or what the client is told.
    pub fn next_wait(&mut self) -> Result<Duration, Refusal> {
        self.count += 1;
        if self.count >= ATTEMPTS_MAX {
            let (count, waited) = (self.count, format_duration(self.waited));
            let detail = format!(
                "the app refused the request (REFUSED_STREAM) in each of {count} attempts, with {waited} of waiting between them"
            );
            return Err(Refusal::new(RefusalReason::UpstreamReset, detail));
        }
        let wait = match self.second_attempt {
            SecondAttempt::AtOnce if self.count == 1 => Duration::ZERO,
            SecondAttempt::AtOnce | SecondAttempt::AfterAWait => self.backoff.next_wait(),
        };
        self.waited += wait;
        Ok(wait)
    }
}

/// The text about refusals that is added where a client is told that its time is up.
pub fn text_of_refusals(count: u32) -> String {
    match count {
        0 => String::new(),
        count => format!("; the app refused the request (REFUSED_STREAM) {count} times until then"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_grow_and_end() {
        let waits = [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000];
        for (second, first_wait, in_all) in
            [(SecondAttempt::AtOnce, 0, "4.27s"), (SecondAttempt::AfterAWait, 10, "5.27s")]
        {
            let mut refusals = AppRefusals::none(second);
            assert_eq!(text_of_refusals(refusals.count()), "");
            let mut seen = Vec::new();
            let refusal = loop {
                match refusals.next_wait() {
                    Ok(wait) => seen.push(wait.as_millis()),
                    Err(refusal) => break refusal,
                }
            };
            assert_eq!((seen.len(), seen[0]), (11, first_wait));
            let waits =
                if first_wait == 0 { waits } else { [20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000] };
            assert_eq!(seen[1..], waits);
            assert_eq!(refusal.reason, RefusalReason::UpstreamReset);
            assert_eq!(
                refusal.detail,
                format!(
                    "the app refused the request (REFUSED_STREAM) in each of 12 attempts, with {in_all} of waiting between them"
                )
            );
            assert!(text_of_refusals(refusals.count()).contains("12 times"));
        }
    }
}
