//! How many lines of each revision never reached our standard output.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use runtime::{MetricsRegistry, RevisionLabels};
use vocabulary::RevisionName;

/// Counts them; clones share it. A series begins with the first pod of a revision and ends with the revision.
#[derive(Clone, Debug, Default)]
pub(super) struct DroppedLines(Family<RevisionLabels, Counter>);

impl DroppedLines {
    pub(super) fn register(&self, registry: &MetricsRegistry) {
        registry.with(|registry| {
            registry.register(
                "supervisor_dropped_log_lines",
                "Lines of pods that were dropped on their way to standard output because no reader took them in time",
                self.0.clone(),
            );
        });
    }

    pub(super) fn of(&self, revision: &RevisionName) -> Counter {
        self.0.get_or_create_owned(&revision.into())
    }

    pub(super) fn forget(&self, revision: &RevisionName) {
        self.0.remove(&revision.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_documented_and_ends_with_the_revision() {
        let registry = MetricsRegistry::default();
        let dropped = DroppedLines::default();
        dropped.register(&registry);
        let revision = RevisionName::parse("default/service/hello").expect("a name");
        dropped.of(&revision).inc();
        let line = "supervisor_dropped_log_lines_total{namespace=\"default\",revision=\"service/hello\"} 1";
        assert!(registry.encode().contains(line), "{}", registry.encode());
        let manual = include_str!("../../../../../docs/reference/metrics.md");
        assert!(manual.contains("| `supervisor_dropped_log_lines_total` | counter |"));
        dropped.forget(&revision);
        assert!(!registry.encode().contains("hello"), "{}", registry.encode());
    }
}
