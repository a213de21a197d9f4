//! A process's metrics, and the text of the page that shows them. Serving the page is not done here: the
//! proxies do it over their own stack.

mod format;
mod listing;
mod reference;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;
use vocabulary::RevisionName;

pub use format::MetricsFormat;
pub use listing::MetricsListing;
pub use reference::reference_faults;

/// The revision of a series, with the same labels in every program: a query joins the series of several
/// processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct RevisionLabels {
    /// The namespace of the revision.
    pub namespace: String,
    /// The kind and the name of the revision, as `KIND/NAME`.
    pub revision: String,
}

impl From<&RevisionName> for RevisionLabels {
    fn from(name: &RevisionName) -> Self {
        Self { namespace: name.namespace().to_owned(), revision: format!("{}/{}", name.kind(), name.name()) }
    }
}

/// The metrics of one process. Cheap to clone; components register what they count and keep their own
/// handles, so nothing is looked up per request.
#[derive(Clone, Debug)]
pub struct MetricsRegistry {
    registry: Arc<Mutex<Registry>>,
    tasks: Gauge,
}

/// The metrics that every process has.
impl Default for MetricsRegistry {
    fn default() -> Self {
        let (mut registry, tasks) = (Registry::default(), Gauge::default());
        registry.register("runtime_tasks", "Tasks that are alive beside this page", tasks.clone());
        Self { registry: Arc::new(Mutex::new(registry)), tasks }
    }
}

impl MetricsRegistry {
    /// Registers or inspects metrics. Keep the closure short: `/metrics` waits for it.
    pub fn with<Answer>(&self, use_registry: impl FnOnce(&mut Registry) -> Answer) -> Answer {
        // A panic while registering leaves a usable registry behind: worst case one metric is missing.
        use_registry(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All metrics in the OpenMetrics text format. Counts the tasks of the runtime on which it is called.
    pub fn encode(&self) -> String {
        if let Ok(runtime) = Handle::try_current() {
            self.tasks.set(i64::try_from(runtime.metrics().num_alive_tasks()).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        self.with(|registry| prometheus_client::encoding::text::encode(&mut text, registry))
            .expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn a_registered_metric_is_on_the_page() {
        let metrics = MetricsRegistry::default();
        let wakes: Counter = Counter::default();
        metrics.with(|registry| registry.register("wakes", "Revisions woken from zero", wakes.clone()));
        wakes.inc();
        assert!(metrics.encode().contains("wakes_total 1"), "{}", metrics.encode());
    }

    #[tokio::test]
    async fn tasks_are_counted_while_they_live() {
        let metrics = MetricsRegistry::default();
        let tasks = |count: u32| metrics.encode().contains(&format!("\nruntime_tasks {count}\n"));
        let task = tokio::spawn(std::future::pending::<()>());
        assert!(tasks(1), "{}", metrics.encode());
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        assert!(tasks(0), "{}", metrics.encode());
    }
}
