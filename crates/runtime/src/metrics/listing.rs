//! How a component declares its metrics: name, help and handle in one expression.
//!
//! Where handles are made in one place and registered in another, two handles of one type can change places,
//! and only the page shows it.

use prometheus_client::registry::{Metric, Registry, Unit};

/// The metrics of one component, as they are declared. The page shows them in the order of their declaration.
#[derive(Debug)]
pub struct MetricsListing<'r>(&'r mut Registry);

impl<'r> MetricsListing<'r> {
    /// Declares in `registry`, whose prefix comes before each name.
    pub fn new(registry: &'r mut Registry) -> Self {
        Self(registry)
    }

    /// A new metric at zero, or a family without series. Returns its handle.
    pub fn metric<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.prepared(name, help, M::default())
    }

    /// A metric that is made of more than its type, such as the bounds of a histogram. Returns its handle.
    pub fn prepared<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    /// As [`MetricsListing::prepared`], for a metric in seconds: the page adds the unit to its name.
    pub fn in_seconds<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }

    /// Metrics that know their own help, or that are several. Returns their handle.
    pub fn group<G: Default>(&mut self, register: impl FnOnce(&G, &mut Registry)) -> G {
        let group = G::default();
        register(&group, self.0);
        group
    }
}
