//! The reports of one revision's reporters, for each metric that decides about it.
//!
//! Class kpa has one metric. Class hpa may have two of our own, each with a target of its own; what a silent
//! pod counts for depends on the target, so each has its own windows. Where none of its metrics is ours one
//! collector is kept all the same: it counts the waiting requests.

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use smallvec::SmallVec;
use vocabulary::{BootId, PodId, PresentCount, Reporter, Sample, Timestamp};

use crate::collector::{Averages, Collector};

/// The windows of one revision; at least one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Collectors(SmallVec<[Collector; 1]>);

impl Collectors {
    pub(super) fn new(spec: &ScalingSpec) -> Self {
        Self(observed(spec).iter().map(Collector::new).collect())
    }

    /// Follows changed settings. A metric that is new finds the history of the first.
    pub(super) fn update(&mut self, spec: &ScalingSpec, now: Timestamp) {
        let observed = observed(spec);
        let first = self.first().clone();
        // A copy of any of them would do: each records both metrics.
        self.0.resize(observed.len(), first);
        for (collector, spec) in self.0.iter_mut().zip(&observed) {
            collector.update(spec, now);
        }
    }

    pub(super) fn start_reporter(&mut self, reporter: Reporter, boot: BootId, second: u64, now: Timestamp) {
        self.each(|collector| collector.start_reporter(reporter, boot, second, now));
    }

    pub(super) fn record(&mut self, reporter: Reporter, sample: Sample, now: Timestamp) {
        self.each(|collector| collector.record(reporter, sample, now));
    }

    pub(super) fn heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        self.each(|collector| collector.heard(reporter, second, now));
    }

    pub(super) fn idle(&mut self, pod: PodId, second: u64, now: Timestamp) {
        self.each(|collector| collector.idle(pod, second, now));
    }

    pub(super) fn present(&mut self, reporter: Reporter, count: PresentCount, now: Timestamp) {
        self.each(|collector| collector.present(reporter, count, now));
    }

    pub(super) fn lost(&mut self, reporter: Reporter, now: Timestamp) {
        self.each(|collector| collector.lost(reporter, now));
    }

    pub(super) fn remove(&mut self, reporter: Reporter) {
        self.each(|collector| collector.remove(reporter));
    }

    /// The collector of the metric by which people know the revision.
    pub(super) fn first(&self) -> &Collector {
        self.0.first().expect("there is at least one")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Collector> {
        self.0.iter()
    }

    /// The averages of the first collector's windows.
    pub(super) fn observe(&self, ready: &[PodId], now: Timestamp) -> Option<Averages> {
        self.first().observe(ready, now)
    }

    fn each(&mut self, act: impl FnMut(&mut Collector)) {
        self.0.iter_mut().for_each(act);
    }
}

/// The settings of each metric that is observed; the first is the one by which people know the revision.
fn observed(spec: &ScalingSpec) -> SmallVec<[ScalingSpec; 1]> {
    let document = spec.hpa.iter().flat_map(|hpa| &hpa.spec.metrics);
    let own: SmallVec<[ScalingSpec; 1]> = document.filter_map(|metric| spec.for_own_metric(metric)).collect();
    if own.is_empty() { SmallVec::from_iter([spec.clone()]) } else { own }
}
