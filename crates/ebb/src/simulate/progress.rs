//! How far is a simulation? A person at a terminal sees it; a file and another program do not.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use runtime::Clock;
use vocabulary::{Timestamp, format_duration};

/// A line that changes more often cannot be read.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// The line on the terminal that says how far the simulation is.
pub(super) struct SimulationProgress {
    /// `None` where there is no terminal.
    clock: Option<Clock>,
    shown_at: Timestamp,
    variants: usize,
    has_line: bool,
}

impl SimulationProgress {
    /// A simulation of so many variants, one after the other.
    pub(super) fn of(variants: usize) -> Self {
        let clock = io::stderr().is_terminal().then(Clock::start);
        let shown_at = clock.map(|clock| clock.now()).unwrap_or_default();
        Self { clock, shown_at, variants, has_line: false }
    }

    /// Shows that so much of the load of `length` has passed; `variant` is counted from zero.
    pub(super) fn tell(&mut self, variant: usize, passed: Duration, length: Duration) {
        let Some(clock) = self.clock else { return };
        let now = clock.now();
        if now.saturating_since(self.shown_at) < SHOWN_EVERY {
            return;
        }
        (self.shown_at, self.has_line) = (now, true);
        write(&line(variant + 1, self.variants, passed, length));
    }
}

impl Drop for SimulationProgress {
    /// Leaves an empty line for what is printed next.
    fn drop(&mut self) {
        if self.has_line {
            write("");
        }
    }
}

/// `variant 2 of 3: 43% of 24h`.
fn line(variant: usize, variants: usize, passed: Duration, length: Duration) -> String {
    let percent = (passed.as_secs_f64() / length.as_secs_f64() * 100.0).min(100.0);
    let of_all = if variants > 1 { format!("variant {variant} of {variants}: ") } else { String::new() };
    format!("{of_all}{percent:.0}% of {}", format_duration(length))
}

/// Replaces the line. A terminal that is gone takes nothing, and the simulation goes on.
fn write(line: &str) {
    let mut terminal = io::stderr().lock();
    let _ = write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_the_variant_if_there_are_several_and_how_far_it_is() {
        let (hour, day) = (Duration::from_secs(3_600), Duration::from_secs(86_400));
        assert_eq!(line(1, 1, 6 * hour, day), "25% of 24h");
        assert_eq!(line(2, 3, 2 * day, day), "variant 2 of 3: 100% of 24h");
    }
}
