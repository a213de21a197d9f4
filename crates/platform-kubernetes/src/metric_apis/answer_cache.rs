//! How often is one question asked? Once a period, for all that ask: the answer is shared, also while it is
//! still under way. A question that failed is asked again after growing waits, and until then all askers have
//! the same words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::Failure;
use parking_lot::Mutex;
use runtime::{Backoff, Clock};
use vocabulary::Timestamp;

/// The first and the largest wait after a failure. The largest is two of the usual periods.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A question that was not asked for this long is forgotten: twice the longest sync period.
const FORGET_AFTER: Duration = Duration::from_secs(2 * 3600);
/// Two rounds that are due at the same time begin a little apart.
const SLACK_MAX: Duration = Duration::from_secs(1);

/// The answers to questions of one kind, by their paths.
#[derive(Debug)]
pub(crate) struct AnswerCache<Record> {
    clock: Clock,
    entries: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Entry<Record>>>>>,
}

/// The answer that is shared, or why there is none.
pub(crate) type SharedAnswer<Record> = Result<Arc<Record>, Arc<str>>;

#[derive(Debug)]
struct Entry<Record> {
    answer: Option<SharedAnswer<Record>>,
    answered: Timestamp,
    /// After a failure the question is not asked again before this time.
    not_before: Timestamp,
    backoff: Backoff,
}

impl<Record> Default for Entry<Record> {
    fn default() -> Self {
        let backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        Self { answer: None, answered: Timestamp::ZERO, not_before: Timestamp::ZERO, backoff }
    }
}

impl<Record> AnswerCache<Record> {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, entries: Mutex::default() }
    }

    /// The answer of this period; `ask` is run if the question was not asked in it yet.
    pub(crate) async fn get(
        &self,
        path: &str,
        period: Duration,
        ask: impl Future<Output = Result<Record, Failure>>,
    ) -> SharedAnswer<Record> {
        let entry = self.entry(path);
        // Others wait here for the answer that is under way.
        let mut entry = entry.lock().await;
        if let Some(answer) = entry.answer.as_ref().filter(|_| entry.is_fresh(period, self.clock.now())) {
            return answer.clone();
        }
        let answer = ask.await;
        let now = self.clock.now();
        entry.answered = now;
        let answer = match answer {
            Ok(record) => {
                entry.backoff.reset();
                entry.not_before = now;
                Ok(Arc::new(record))
            }
            Err(failure) => {
                entry.not_before = now + entry.backoff.next_wait().max(failure.wait());
                Err(failure.words().into())
            }
        };
        entry.answer.insert(answer).clone()
    }

    fn entry(&self, path: &str) -> Arc<tokio::sync::Mutex<Entry<Record>>> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(path) {
            return Arc::clone(entry);
        }
        // With each new question, those that are not asked any more are dropped.
        let now = self.clock.now();
        entries.retain(|_, entry| {
            entry.try_lock().map_or(true, |entry| now.saturating_since(entry.answered) < FORGET_AFTER)
        });
        Arc::clone(entries.entry(path.to_owned()).or_default())
    }
}

impl<Record> Entry<Record> {
    fn is_fresh(&self, period: Duration, now: Timestamp) -> bool {
        match &self.answer {
            Some(Ok(_)) => {
                let slack = SLACK_MAX.min(period / 10);
                now.saturating_since(self.answered) < period.saturating_sub(slack)
            }
            Some(Err(_)) => now < self.not_before,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const PERIOD: Duration = Duration::from_secs(15);

    struct Server {
        cache: AnswerCache<u32>,
        asked: AtomicU32,
    }

    impl Server {
        fn new() -> Self {
            Self { cache: AnswerCache::new(Clock::start()), asked: AtomicU32::new(0) }
        }

        async fn ask(&self, path: &str, how: Result<u32, Failure>) -> Result<u32, String> {
            let asking = async {
                self.asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
                how
            };
            let answer = self.cache.get(path, PERIOD, asking).await;
            answer.map(|record| *record).map_err(|words| words.to_string())
        }

        fn asked(&self) -> u32 {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_within_one_period_share_an_answer() {
        let server = Server::new();
        let (one, other) = tokio::join!(server.ask("/a", Ok(1)), server.ask("/a", Ok(2)));
        assert_eq!((one, other, server.asked()), (Ok(1), Ok(1), 1), "while it is under way too");
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!((server.ask("/a", Ok(3)).await, server.asked()), (Ok(1), 1));
        assert_eq!((server.ask("/b", Ok(4)).await, server.asked()), (Ok(4), 2), "another question");
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!((server.ask("/a", Ok(5)).await, server.asked()), (Ok(5), 3), "the next period");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_have_the_servers_words_and_growing_waits() {
        let server = Server::new();
        let down = || Err(Failure::Passing { why: "no such metric".to_owned(), after: None });
        for (wait_ms, asked) in [(0, 1), (900, 1), (200, 2), (1900, 2), (200, 3)] {
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            assert_eq!(server.ask("/a", down()).await, Err("no such metric".to_owned()));
            assert_eq!(server.asked(), asked, "after {wait_ms} ms more");
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(server.ask("/a", Ok(1)).await, Ok(1));
        let later = Err(Failure::Passing { why: "busy".to_owned(), after: Some(Duration::from_secs(20)) });
        tokio::time::sleep(PERIOD).await;
        assert_eq!(server.ask("/a", later).await, Err("busy".to_owned()));
        tokio::time::sleep(Duration::from_secs(19)).await;
        assert_eq!(server.ask("/a", Ok(2)).await, Err("busy".to_owned()), "the server said when");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(server.ask("/a", Ok(2)).await, Ok(2));
    }
}
