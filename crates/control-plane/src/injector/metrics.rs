//! What the webhook counts, for Prometheus.

use injector::{ReviewQuestion, ReviewVerdict};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use runtime::{MetricsListing, MetricsRegistry};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    question: &'static str,
    verdict: &'static str,
}

/// How a question of the API server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewEnding {
    Answered(ReviewVerdict),
    /// The request could not be read as a review.
    Unreadable,
    /// The API server had given up by then, or would have.
    Late,
}

/// The injector's metrics. Register them once per process.
#[derive(Clone, Debug)]
pub(super) struct InjectorMetrics {
    reviews: Family<ReviewLabels, Counter>,
    connections: Gauge,
    connections_max: Gauge,
    crowded_out: Counter,
}

impl InjectorMetrics {
    pub(super) fn register(registry: &MetricsRegistry) -> Self {
        registry.with(|registry| Self::declare(&mut MetricsListing::new(registry)))
    }

    fn declare(page: &mut MetricsListing<'_>) -> Self {
        Self {
            reviews: page.metric("injector_reviews", "Questions of API servers, by what became of them"),
            connections: page.metric("injector_open_connections", "Callers of the webhook"),
            connections_max: page.metric("injector_connections_max", "How many callers there may be"),
            crowded_out: page.metric(
                "injector_closed_idle_connections",
                "Callers whose connection was closed to make room for others",
            ),
        }
    }

    pub(super) fn ended(&self, question: ReviewQuestion, ending: ReviewEnding) {
        let question = match question {
            ReviewQuestion::Inject => "inject",
            ReviewQuestion::Validate => "validate",
        };
        let verdict = match ending {
            ReviewEnding::Answered(ReviewVerdict::Injected) => "injected",
            ReviewEnding::Answered(ReviewVerdict::Accepted) => "accepted",
            ReviewEnding::Answered(ReviewVerdict::Warned) => "warned",
            ReviewEnding::Answered(ReviewVerdict::Refused) => "refused",
            ReviewEnding::Unreadable => "unreadable",
            ReviewEnding::Late => "late",
        };
        self.reviews.get_or_create(&ReviewLabels { question, verdict }).inc();
    }

    pub(super) fn connected(&self, callers: usize) {
        self.connections.set(i64::try_from(callers).unwrap_or(i64::MAX));
    }

    pub(super) fn has_places(&self, places: usize) {
        self.connections_max.set(i64::try_from(places).unwrap_or(i64::MAX));
    }

    pub(super) fn crowded_out(&self) {
        self.crowded_out.inc();
    }
}

#[cfg(test)]
mod tests {
    use runtime::reference_faults;

    use super::*;

    /// Names, kinds and labels are promises to those who watch us; `docs/reference/metrics.md` lists them.
    #[test]
    fn the_page_is_pinned() {
        let registry = MetricsRegistry::default();
        let metrics = InjectorMetrics::register(&registry);
        metrics.ended(ReviewQuestion::Inject, ReviewEnding::Answered(ReviewVerdict::Injected));
        metrics.ended(ReviewQuestion::Validate, ReviewEnding::Answered(ReviewVerdict::Refused));
        metrics.connected(3);
        metrics.has_places(256);
        metrics.crowded_out();
        let page = registry.encode();
        let types: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let expected = [
            "runtime_tasks gauge",
            "injector_reviews counter",
            "injector_open_connections gauge",
            "injector_connections_max gauge",
            "injector_closed_idle_connections counter",
        ];
        assert_eq!(types, expected);
        for line in [
            "injector_reviews_total{question=\"inject\",verdict=\"injected\"} 1",
            "injector_reviews_total{question=\"validate\",verdict=\"refused\"} 1",
            "injector_open_connections 3",
            "injector_connections_max 256",
            "injector_closed_idle_connections_total 1",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
        }
        let manual = include_str!("../../../../docs/reference/metrics.md");
        let faults = reference_faults(manual, &page, "injector_");
        assert_eq!(faults, [""; 0], "in docs/reference/metrics.md");
    }
}
