//! A revision's two windows over one ring of seconds: writing, forgetting, resizing.

use std::time::Duration;

use super::Second;
use super::average::View;
use super::ring::{Ring, SecondSums};
use super::span::{Edges, LAG, Window};
use serde::{Deserialize, Serialize};
use settings::Metric;

/// The latest seconds of both metrics, and the stable and the panic window over them.
///
/// All of them are written at the same time, so they share their seconds: a report is one write to few cache
/// lines, which is most of what it costs when there are thousands of revisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WindowHistory {
    ring: Ring,
    stable: Window,
    panic: Window,
}

impl WindowHistory {
    /// Empty windows over whole seconds; less than one second counts as one, and more than the stable window
    /// as that.
    pub(crate) fn new(stable: Duration, panic: Duration) -> Self {
        let stable = whole_seconds(stable);
        let panic = whole_seconds(panic).min(stable);
        Self { ring: Ring::new(stable + LAG), stable: Window::new(stable), panic: Window::new(panic) }
    }

    /// The stable window, read for one metric.
    pub(crate) fn stable(&self, metric: Metric) -> View<'_> {
        View { window: &self.stable, ring: &self.ring, metric }
    }

    /// The panic window, read for one metric.
    pub(crate) fn panic(&self, metric: Metric) -> View<'_> {
        View { window: &self.panic, ring: &self.ring, metric }
    }

    /// Adds `value` (a correction may be negative) to a second. A second that is no longer kept is ignored.
    pub(crate) fn add(&mut self, second: Second, value: SecondSums) {
        let Self { ring, stable, panic } = self;
        match stable.edges.map(|edges| edges.last) {
            Some(last) if second > last => {
                // Before the ring: what falls out of the windows is read from slots that the new seconds may
                // take.
                stable.advance(ring, second);
                panic.advance(ring, second);
                ring.advance(last, second);
            }
            // The slot of so old a second holds a newer one.
            Some(last) if second <= last - ring.length() => return,
            Some(_) | None => {}
        }
        // Windows get what the ring took, which is another value where a second would fall below zero: else
        // the sums and the seconds would drift apart.
        let change = ring.add(second, value);
        stable.add(ring, second, change);
        panic.add(ring, second, change);
    }

    /// Windows of the same spans that know nothing.
    pub(crate) fn emptied(&self) -> Self {
        let ring = Ring::new(self.ring.length());
        Self { ring, stable: Window::new(self.stable.span), panic: Window::new(self.panic.span) }
    }

    /// Whether every second of the stable window is zero.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.stable.total == SecondSums::default()
    }

    /// The newest second that was written.
    pub(crate) fn newest(&self) -> Option<Second> {
        self.stable.edges.map(|edges| edges.last)
    }

    /// Whether that second is not too old to be kept.
    pub(crate) fn covers(&self, second: Second) -> bool {
        self.newest().is_none_or(|newest| second > newest - self.ring.length())
    }

    /// The seconds that are kept, without a gap, the oldest first.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = Second> {
        self.newest().into_iter().flat_map(|newest| newest - self.ring.length() + 1..=newest)
    }

    /// The sums of the seconds from `first` on until the newest; `first` is kept, or has not come.
    pub(crate) fn sums_from(&self, first: Second) -> impl Iterator<Item = SecondSums> {
        self.newest().into_iter().flat_map(move |newest| self.ring.between(first, newest))
    }

    /// The sums of a second; zero for a second that is not kept, or has not come.
    pub(crate) fn at(&self, second: Second) -> SecondSums {
        match self.newest() {
            Some(newest) if second <= newest && self.covers(second) => self.ring.at(second),
            Some(_) | None => SecondSums::default(),
        }
    }

    /// Changes the spans. The newest seconds stay if they are not older than the old stable span, and a
    /// window that changes counts as if it had been full (as Knative does: growing a young window dilutes its
    /// average). Unlike there a panic window that grows finds the seconds that the stable window has kept, so
    /// its beginning is theirs if that is earlier.
    pub(crate) fn resize(&mut self, stable: Duration, panic: Duration, now: Second) {
        let old = std::mem::replace(self, Self::new(stable, panic));
        let (stable, panic) = (self.stable.span, self.panic.span);
        let measured = old.stable.edges;
        if stable == old.stable.span {
            self.ring = old.ring;
            self.stable = old.stable;
        } else if let Some(edges) = old.stable.edges.filter(|_| !old.stable.is_empty(now)) {
            let kept = edges.last - old.stable.span.min(stable) + 1;
            for (second, value) in (kept..).zip(old.ring.between(kept, edges.last)) {
                self.ring.add(second, value);
            }
            let first = edges.last - (old.stable.span - 1);
            self.stable.begin(&self.ring, Edges { first, oldest: first, last: edges.last });
        }
        let (Some(Edges { last, .. }), Some(measured)) = (self.stable.edges, measured) else {
            return;
        };
        let edges = old.panic.edges.filter(|_| panic == old.panic.span).unwrap_or_else(|| {
            let first = measured.first.min(last - (old.panic.span - 1));
            Edges { first, oldest: first, last }
        });
        self.panic.begin(&self.ring, edges);
    }
}

/// The whole seconds of a span, at least one.
fn whole_seconds(span: Duration) -> Second {
    Second::try_from(span.as_secs().max(1)).unwrap_or(Second::MAX)
}
