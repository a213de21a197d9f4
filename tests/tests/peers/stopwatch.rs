//! How long each test took: the whole suite has a limit (`.ci/run`), and who looks for room looks here.

use std::time::Duration;

use tests::bench::clock;

/// Says, when it goes, how long it was there.
pub(crate) struct Stopwatch {
    what: &'static str,
    began: Duration,
}

impl Stopwatch {
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, began: clock::now() }
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        println!("--- {:.1} s: {}", clock::since(self.began).as_secs_f64(), self.what);
    }
}
