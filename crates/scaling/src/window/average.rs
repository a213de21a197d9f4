//! How a window becomes one number: the plain average, or the one in which recent seconds weigh more.

use super::Second;
use super::history::{Edges, LAG, Window};
use super::ring::Ring;
use crate::config::{Aggregation, Metric};

/// Knative's floor of the newest second's weight: half of the sum lies in the newest four seconds however long the window is.
const LEAST_COEFFICIENT: f64 = 0.2;
/// What part of all weight must fall into the window, from which the coefficient of short windows follows.
const UNCOVERED_WEIGHT: f64 = 1.0 - 0.9999;

/// The weight of the newest second in a window of `span` seconds.
pub(super) fn coefficient(span: Second) -> f64 {
    (1.0 - UNCOVERED_WEIGHT.powf(1.0 / float(span))).max(LEAST_COEFFICIENT)
}

/// What a window says of one metric.
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

    /// The average at `now`, as Knative computes it: seconds without data at the end are left out of the plain average until they fill
    /// the span, and decay the weighted one. A `now` before the newest write counts as that.
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
            Aggregation::WeightedExponential => {
                self.weighted(edges.last, span - silence)
                    * (1.0 - self.window.coefficient).powi(exponent(silence))
            }
        }
    }

    /// The average over the span that ends at `until`, a second at most [`LAG`] before the newest write, without what came later.
    pub(crate) fn settled_average(&self, aggregation: Aggregation, until: Second) -> f64 {
        let &Window { edges: Some(Edges { oldest, last, .. }), span, .. } = self.window else { return 0.0 };
        let until = until.clamp(last - LAG, last);
        if until < oldest {
            return 0.0;
        }
        match aggregation {
            Aggregation::Linear => {
                let later = self.sum(until + 1, last);
                let earlier = self.sum(until - span + 1, last - span);
                rounded((self.total() - later + earlier) / float((until - oldest + 1).min(span)))
            }
            Aggregation::WeightedExponential => self.weighted(until, span),
        }
    }

    /// The newest second that was written.
    pub(crate) fn newest(&self) -> Option<Second> {
        self.window.edges.map(|edges| edges.last)
    }

    /// What a load of 1 in each second from `from` to `until`, or to the newest write if that is later, would add to the average that
    /// ends there.
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
        let seconds = until.saturating_sub(from).saturating_add(1).clamp(0, known);
        match aggregation {
            Aggregation::Linear => float(seconds) / float(known),
            Aggregation::WeightedExponential => 1.0 - (1.0 - self.window.coefficient).powi(exponent(seconds)),
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.window.total.of(self.metric)
    }

    pub(super) fn sum(&self, from: Second, to: Second) -> f64 {
        self.ring.sum(from, to).of(self.metric)
    }

    /// `Σ slot(newest − k) · c · (1 − c)^k` over `seconds` seconds, from the oldest on so that it needs no powers.
    fn weighted(&self, newest: Second, seconds: Second) -> f64 {
        let fading = 1.0 - self.window.coefficient;
        let values = self.ring.between(newest - seconds + 1, newest);
        let sum = values.fold(0.0, |sum, value| sum * fading + value.of(self.metric));
        sum * self.window.coefficient
    }
}

/// Six decimals, half away from zero, as Knative rounds the plain average: it hides what float sums leave behind. Adding zero keeps a
/// negative zero from being shown.
fn rounded(average: f64) -> f64 {
    (average * 1e6).round() / 1e6 + 0.0
}

fn exponent(seconds: Second) -> i32 {
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// Exact below 2^32 seconds, which is more than a window can span; beyond, the nearest of them.
fn float(seconds: Second) -> f64 {
    f64::from(u32::try_from(seconds).unwrap_or(u32::MAX))
}
