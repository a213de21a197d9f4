//! How a window becomes one number: the plain average, or the one in which recent seconds weigh more.

use super::Second;
use super::ring::Ring;
use super::span::{Edges, LAG, Window};
use settings::{Aggregation, Metric};

/// A window, read for one metric.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(super) window: &'a Window,
    pub(super) ring: &'a Ring,
    pub(super) metric: Metric,
}

impl View<'_> {
    /// Whether everything is older than the span (strictly), or nothing was ever written.
    pub(crate) fn is_empty(&self, now: Second) -> bool {
        self.window.is_empty(now)
    }

    /// The average at `now`, as Knative computes it: seconds without data at the end are left out of the
    /// plain average until they fill the span, and decay the weighted one. A `now` before the newest write
    /// counts as that.
    pub(crate) fn average(&self, aggregation: Aggregation, now: Second) -> f64 {
        let &Window { edges: Some(edges), span, .. } = self.window else { return 0.0 };
        let silence = (now - edges.last).max(0);
        match aggregation {
            Aggregation::Linear if silence >= span => 0.0,
            Aggregation::Linear => {
                let gone = self.sum(edges.last + 1 - span, edges.last - span + silence);
                let seconds = (edges.last - edges.first + 1).min(span - silence);
                rounded((self.total() - gone) / float(seconds))
            }
            Aggregation::WeightedExponential => self.weighted(edges.last, silence),
        }
    }

    /// The average over the span that ends at `until`, a second at most [`LAG`] before the newest write,
    /// without what came later.
    pub(crate) fn settled_average(&self, aggregation: Aggregation, until: Second) -> f64 {
        let &Window { edges: Some(Edges { oldest, last, .. }), span, .. } = self.window else { return 0.0 };
        let until = until.clamp(last - LAG, last);
        if until < oldest {
            return 0.0;
        }
        match aggregation {
            Aggregation::Linear => {
                // The total is that of the span that ends with the newest write; moved back, it ends at
                // `until`.
                let later = self.sum(until + 1, last);
                let earlier = self.sum(until - span + 1, last - span);
                rounded((self.total() - later + earlier) / float((until - oldest + 1).min(span)))
            }
            Aggregation::WeightedExponential => self.weighted(until, 0),
        }
    }

    /// The newest second that was written.
    pub(crate) fn newest(&self) -> Option<Second> {
        self.window.edges.map(|edges| edges.last)
    }

    /// What a load of 1 in each second from `from` to `until`, or to the newest write if that is later, would
    /// add to the average that ends there.
    pub(crate) fn share_between(&self, aggregation: Aggregation, from: Second, until: Second) -> f64 {
        let span = self.window.span;
        let (known, until) = match self.window.edges {
            Some(Edges { first, last, .. }) if until - last < span => {
                let until = until.max(last);
                ((until - first + 1).min(span), until)
            }
            // After a whole window of silence nothing else is in it.
            Some(_) | None => (span, until),
        };
        // For a reporter without any report `from` is the least number there is, and nothing may overflow.
        let seconds = until.saturating_sub(from).saturating_add(1).clamp(0, known);
        match aggregation {
            Aggregation::Linear => float(seconds) / float(known),
            Aggregation::WeightedExponential => 1.0 - power(1.0 - self.window.coefficient, seconds),
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.window.total.of(self.metric)
    }

    pub(super) fn sum(&self, from: Second, to: Second) -> f64 {
        self.ring.sum(from, to).of(self.metric)
    }

    /// `Σ slot(newest − k) · c · (1 − c)^(silence + k)` over what the silence leaves of the span. The weights
    /// are multiplied up and the terms added from the newest to the oldest, as in Knative: any other order
    /// gives other last bits.
    fn weighted(&self, newest: Second, silence: Second) -> f64 {
        let fading = 1.0 - self.window.coefficient;
        let mut weight = self.window.coefficient * power(fading, silence);
        let oldest = newest - (self.window.span - silence) + 1;
        let values = self.ring.between(oldest, newest).rev();
        values.fold(0.0, |sum, value| {
            let term = value.of(self.metric) * weight;
            weight *= fading;
            sum + term
        })
    }
}

/// Six decimals, half away from zero, as Knative rounds the plain average: it hides what float sums leave
/// behind, but for sums so large that more is left, and that is not below zero either. Adding zero keeps a
/// negative zero from being shown.
fn rounded(average: f64) -> f64 {
    (average * 1e6).round().max(0.0) / 1e6 + 0.0
}

/// By repeated squaring, bit for bit the same everywhere, which the standard library's does not promise.
fn power(base: f64, exponent: Second) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result *= square;
        }
        square *= square;
        rest /= 2;
    }
    result
}

/// Exact below 2^32 seconds, which is more than a window can span; beyond, the nearest of them.
fn float(seconds: Second) -> f64 {
    f64::from(u32::try_from(seconds).unwrap_or(u32::MAX))
}
