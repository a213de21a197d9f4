//! The ring of seconds: writing, forgetting, resizing.

use std::time::Duration;

use super::Second;

/// How many seconds beyond its span a window keeps. Reporters finish their seconds at different moments; a reader may therefore end its
/// average up to this many seconds before the newest write ([`Window::settled_average`]).
pub(crate) const LAG: Second = 4;

/// A sum per second over the newest `span` seconds.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Seconds covered; at least 1.
    pub(super) span: Second,
    /// `span + LAG` sums; the second `s` lives at `s mod (span + LAG)`.
    slots: Box<[f64]>,
    /// The sum of the newest `span` slots.
    pub(super) total: f64,
    /// `None` until the first write.
    pub(super) edges: Option<Edges>,
    /// The weight of the newest second in the weighted average.
    pub(super) coefficient: f64,
}

/// The seconds between which a window knows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    /// The earliest write since the window was last empty for a whole span; never moves forward otherwise.
    pub(super) first: Second,
    /// As `first`, but since the whole ring was empty, for readers of settled seconds.
    pub(super) oldest: Second,
    /// The newest write.
    pub(super) last: Second,
}

impl Window {
    /// An empty window over whole seconds; less than one second counts as one.
    pub(crate) fn new(span: Duration) -> Self {
        let span = Second::try_from(span.as_secs().max(1)).unwrap_or(Second::MAX);
        let length = usize::try_from(span + LAG).expect("a window is at most an hour long");
        Self {
            span,
            slots: vec![0.0; length].into_boxed_slice(),
            total: 0.0,
            edges: None,
            coefficient: super::average::coefficient(span),
        }
    }

    /// Adds `value` (a correction may be negative) to a second. What is too old for the ring is dropped.
    pub(crate) fn add(&mut self, second: Second, value: f64) {
        let Some(edges) = self.edges else {
            self.edges = Some(Edges { first: second, oldest: second, last: second });
            self.put(second, value);
            self.total = value;
            return;
        };
        if second > edges.last {
            self.advance(edges, second);
        } else if second <= edges.last - self.length() {
            return;
        } else {
            self.edges = Some(Edges {
                first: edges.first.min(second),
                oldest: edges.oldest.min(second),
                last: edges.last,
            });
        }
        self.put(second, value);
        if second > self.newest() - self.span {
            self.total += value;
            self.sweep(-value);
        }
    }

    /// The newest second written; the origin if there is none.
    pub(crate) fn newest(&self) -> Second {
        self.edges.map_or(0, |edges| edges.last)
    }

    /// Whether everything is older than the span (strictly), or nothing was ever written.
    pub(crate) fn is_empty(&self, now: Second) -> bool {
        self.edges.is_none_or(|edges| now - edges.last > self.span)
    }

    /// Changes the span. The newest seconds stay if they are not older than the old span, and count as if the old window had been
    /// full (as Knative does: growing a young window dilutes its average).
    pub(crate) fn resize(&mut self, span: Duration, now: Second) {
        let mut resized = Self::new(span);
        if resized.span == self.span {
            return;
        }
        if let Some(edges) = self.edges.filter(|_| !self.is_empty(now)) {
            let first = edges.last - (self.span - 1);
            resized.edges = Some(Edges { first, oldest: first, last: edges.last });
            for second in (edges.last - self.span.min(resized.span) + 1)..=edges.last {
                let value = self.slot(second);
                resized.put(second, value);
                resized.total += value;
            }
        }
        *self = resized;
    }

    /// The sum of one second. The caller asks only for seconds that the ring covers; others alias.
    pub(super) fn slot(&self, second: Second) -> f64 {
        self.slots[self.index(second)]
    }

    /// Moves the newest second forward; what falls out of the span leaves the total.
    fn advance(&mut self, edges: Edges, to: Second) {
        let Edges { mut first, mut oldest, last } = edges;
        let gap = to - last;
        let mut gone = 0.0;
        if gap >= self.span {
            first = to;
            self.total = 0.0;
        } else {
            gone = self.sum(last + 1 - self.span, to - self.span);
            self.total -= gone;
        }
        if gap >= self.length() {
            self.slots.fill(0.0);
            oldest = to;
        } else {
            for second in (last + 1)..=to {
                let index = self.index(second);
                self.slots[index] = 0.0;
            }
        }
        self.edges = Some(Edges { first, oldest, last: to });
        self.sweep(gone);
    }

    /// Taking much away from a float sum leaves a residue of the size of what was taken times 1e-16, which would keep a pod alive: when next
    /// to nothing is left, the sum is made anew.
    fn sweep(&mut self, gone: f64) {
        if self.total < gone * 1e-6 {
            self.total = self.sum(self.newest() - self.span + 1, self.newest());
        }
    }

    /// The sum of the seconds `from..=to`, which the ring must cover.
    pub(super) fn sum(&self, from: Second, to: Second) -> f64 {
        (from..=to).map(|second| self.slot(second)).sum()
    }

    fn put(&mut self, second: Second, value: f64) {
        let index = self.index(second);
        self.slots[index] += value;
    }

    fn length(&self) -> Second {
        self.span + LAG
    }

    fn index(&self, second: Second) -> usize {
        usize::try_from(second.rem_euclid(self.length()))
            .expect("a remainder of a positive length is not negative")
    }
}
