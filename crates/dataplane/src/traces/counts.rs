//! How many spans arrived, and how many did not?

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LostSpanReasonLabel {
    reason: &'static str,
}

/// Counts the spans of traces. Cheap to clone; register once per process.
#[derive(Clone, Debug)]
pub struct SpanCounts {
    delivered: Counter,
    dropped: Family<LostSpanReasonLabel, Counter>,
    without_room: Counter,
    undelivered: Counter,
}

impl Default for SpanCounts {
    fn default() -> Self {
        let dropped = Family::<LostSpanReasonLabel, Counter>::default();
        let counter = |reason| dropped.get_or_create_owned(&LostSpanReasonLabel { reason });
        Self {
            delivered: Counter::default(),
            without_room: counter("queue_full"),
            undelivered: counter("not_delivered"),
            dropped,
        }
    }
}

impl SpanCounts {
    /// Lists the counters, with `prefix` before their names.
    pub fn register(&self, registry: &mut Registry, prefix: &str) {
        let name = |name| format!("{prefix}{name}");
        registry.register(
            name("delivered_spans"),
            "Spans of traces that the collector has taken",
            self.delivered.clone(),
        );
        registry.register(
            name("dropped_spans"),
            "Spans of traces that were dropped, by reason",
            self.dropped.clone(),
        );
    }

    pub(super) fn delivered(&self, spans: u64) {
        self.delivered.inc_by(spans);
    }

    pub(super) fn undelivered(&self, spans: u64) {
        self.undelivered.inc_by(spans);
    }

    pub(super) fn without_room(&self) {
        self.without_room.inc();
    }
}
