//! One window over a ring of seconds: which seconds it covers, and their sum.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::Second;
use super::ring::{Ring, SecondSums};
use super::weight::coefficient;

/// How many seconds beyond its span a window keeps. Reporters finish their seconds at different moments; a
/// reader may therefore end its average up to this many seconds before the newest write
/// ([`super::View::settled_average`]).
pub(super) const LAG: Second = 4;

/// The newest `span` seconds of a ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    /// Seconds covered; at least 1.
    pub(super) span: Second,
    /// The sum of the newest `span` seconds.
    pub(super) total: SecondSums,
    /// `None` until the first write.
    pub(super) edges: Option<Edges>,
    /// The weight of the newest second in the weighted average.
    pub(super) coefficient: f64,
}

/// The seconds between which a window knows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Edges {
    /// The earliest write since the window was last empty for a whole span; never moves forward otherwise.
    pub(super) first: Second,
    /// As `first`, but since it was empty for [`LAG`] seconds more, for readers of settled seconds.
    pub(super) oldest: Second,
    /// The newest second that was written.
    pub(super) last: Second,
}

impl Window {
    pub(super) fn new(span: Second) -> Self {
        Self { span, total: SecondSums::default(), edges: None, coefficient: coefficient(span) }
    }

    /// Takes what a ring has within these edges.
    pub(super) fn begin(&mut self, ring: &Ring, edges: Edges) {
        self.total = ring.sum(edges.last - self.span + 1, edges.last);
        self.edges = Some(edges);
    }

    /// Whether everything is older than the span (strictly), or nothing was ever written.
    pub(super) fn is_empty(&self, now: Second) -> bool {
        self.edges.is_none_or(|edges| now - edges.last > self.span)
    }

    /// Moves the newest second forward, before the ring does; what falls out of the span leaves the total.
    pub(super) fn advance(&mut self, ring: &Ring, to: Second) {
        let Some(Edges { mut first, mut oldest, last }) = self.edges else { return };
        let gap = to - last;
        if gap >= self.span {
            first = to;
            self.total = SecondSums::default();
        } else {
            let gone = ring.sum(last + 1 - self.span, to - self.span);
            self.total -= gone;
            self.sweep(gone, ring, to - self.span + 1..=last);
        }
        if gap >= self.span + LAG {
            oldest = to;
        }
        self.edges = Some(Edges { first, oldest, last: to });
    }

    /// Takes what was just added to a second of the ring.
    pub(super) fn add(&mut self, ring: &Ring, second: Second, value: SecondSums) {
        let edges = self.edges.unwrap_or(Edges { first: second, oldest: second, last: second });
        let Edges { first, oldest, last } = edges;
        // The ring reaches as far back as the stable window needs, which may be farther than this one does.
        if second <= last - (self.span + LAG) {
            return;
        }
        let is_within = second > last - self.span;
        let first = if is_within { first.min(second) } else { first };
        self.edges = Some(Edges { first, oldest: oldest.min(second), last });
        if is_within {
            self.total += value;
            self.sweep(-value, ring, last - self.span + 1..=last);
        }
    }

    /// Taking much away from a float sum leaves a residue of the size of what was taken times 1e-16, which
    /// would keep a pod alive: when next to nothing is left, the sum is made anew, of these seconds.
    fn sweep(&mut self, gone: SecondSums, ring: &Ring, seconds: RangeInclusive<Second>) {
        let is_residue = |total: f64, gone: f64| total < gone * 1e-6;
        if is_residue(self.total.concurrency, gone.concurrency) || is_residue(self.total.rate, gone.rate) {
            self.total = ring.sum(*seconds.start(), *seconds.end());
        }
    }
}
