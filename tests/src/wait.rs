//! Waiting for an observed condition, with a deadline.

use std::time::Duration;

/// Asks until the answer is `Ok`, every 50 ms; panics with the last `Err` when `limit` has passed. Deadlines
/// are generous: they only bound how long a failing test takes, and prove nothing about speed.
pub async fn eventually<Answer, Ask, Asking>(what: &str, limit: Duration, ask: Ask) -> Answer
where
    Ask: FnMut() -> Asking,
    Asking: Future<Output = Result<Answer, String>>,
{
    let answer = asked_until(limit, ask).await;
    answer.unwrap_or_else(|last| panic!("{what}: not within {limit:?}; last seen: {last}"))
}

/// The same for what may not come: the last `Err` when `limit` has passed.
pub async fn asked_until<Answer, Ask, Asking>(limit: Duration, mut ask: Ask) -> Result<Answer, String>
where
    Ask: FnMut() -> Asking,
    Asking: Future<Output = Result<Answer, String>>,
{
    let mut last = String::new();
    let attempts = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(why) => last = why,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::time::timeout(limit, attempts).await.ok();
    answer.ok_or(last)
}
