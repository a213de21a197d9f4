//! Which counts does a workload get, and when?

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Workload;
use crate::bench::clock;

/// How often it is looked at.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Sees what is written of a workload's count, until it is ended.
pub struct CountWatch {
    seen: Arc<Mutex<Vec<(Duration, i32)>>>,
    watching: JoinHandle<()>,
}

impl Workload {
    /// Sees the counts that are written from now on.
    pub fn watch_counts(&self) -> CountWatch {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, workload) = (Arc::clone(&seen), self.clone());
        // Ended by the test, whose looks at what was seen notice a panic.
        let watching = tokio::spawn(async move {
            loop {
                let count = workload.count().await;
                {
                    let mut noted = noted.lock().expect("nobody panicked");
                    if noted.last().is_none_or(|(_, last)| *last != count) {
                        noted.push((clock::now(), count));
                    }
                }
                tokio::time::sleep(LOOKS_EVERY).await;
            }
        });
        CountWatch { seen, watching }
    }
}

impl CountWatch {
    /// What was seen so far: each count once, and since when ([`clock::now`]).
    pub fn seen(&self) -> Vec<(Duration, i32)> {
        assert!(!self.watching.is_finished(), "it looks as long as the test wants");
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// The same, at the end.
    pub fn end(self) -> Vec<(Duration, i32)> {
        let seen = self.seen();
        self.watching.abort();
        seen
    }
}
