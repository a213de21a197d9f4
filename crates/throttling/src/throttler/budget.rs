//! How often may a request be tried again?
//!
//! Retries must not multiply an overload: one in five requests, and ten a second besides, so that a revision
//! with little traffic can retry at all. The budget paces; what it does not cover waits and is never answered
//! with an error for it.
//!
//! The account is kept in time: a retry costs a tenth of a second, time earns itself, a request a fifth of
//! that price.

use std::time::Duration;

use vocabulary::Timestamp;

/// The price of one retry: time alone pays for ten a second.
const PRICE: Duration = Duration::from_millis(100);
/// The earning of one served request: 20 % of a retry.
const EARNED_PER_REQUEST: Duration = Duration::from_millis(20);
/// The most that can be saved up: a hundred retries at once, say when a pod with that many requests dies.
const SAVINGS_MAX: Duration = Duration::from_secs(10);

/// The account of one revision.
#[derive(Clone, Debug)]
pub(super) struct RetryBudget {
    savings: Duration,
    as_of: Timestamp,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { savings: SAVINGS_MAX, as_of: Timestamp::ZERO }
    }
}

impl RetryBudget {
    /// Whether a retry is covered at `now`.
    pub(super) fn covers_one(&mut self, now: Timestamp) -> bool {
        let earned = now.saturating_since(self.as_of);
        self.as_of = self.as_of.max(now);
        self.savings = self.savings.saturating_add(earned).min(SAVINGS_MAX);
        self.savings >= PRICE
    }

    /// From when on a retry is covered by time alone; may be past.
    pub(super) fn covers_one_at(&self) -> Timestamp {
        self.as_of + PRICE.saturating_sub(self.savings)
    }

    /// Takes the price of one retry out of the budget.
    pub(super) fn withdraw(&mut self) {
        self.savings = self.savings.saturating_sub(PRICE);
    }

    /// A request was served for the first time.
    pub(super) fn deposit(&mut self) {
        self.savings = self.savings.saturating_add(EARNED_PER_REQUEST).min(SAVINGS_MAX);
    }
}
