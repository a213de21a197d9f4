//! Which of Kubernetes' own autoscalers scale the same workloads as we do or would?

use orchestration::OtherAutoscaler;
use vocabulary::RevisionName;

use super::{Workload, Workloads};
use crate::resources::ObjectKey;
use crate::resources::autoscaler::{AutoscalerRecord, ScaleTargetRef};

impl Workloads {
    /// An autoscaler of Kubernetes', or `None` if it is gone; returns the revisions that it scales or scaled,
    /// if that is news.
    pub(in crate::index) fn put_autoscaler(
        &mut self,
        key: ObjectKey,
        record: Option<AutoscalerRecord>,
    ) -> Vec<RevisionName> {
        let present = record.as_ref().map(|record| record.target.clone());
        let former = match record {
            Some(record) => {
                if self.autoscalers.get(&key) == Some(&record) {
                    return Vec::new();
                }
                self.autoscalers.insert(key, record)
            }
            None => self.autoscalers.remove(&key),
        };
        let targets = [former.map(|former| former.target), present].into_iter().flatten();
        targets.filter_map(|target| self.revision_of_target(&target)).collect()
    }

    fn revision_of_target(&self, target: &ScaleTargetRef) -> Option<RevisionName> {
        let mut workloads = self.by_name.iter();
        workloads
            .find(|(revision, workload)| scales(target, revision, workload))
            .map(|(name, _)| name.clone())
    }

    /// The one that scales a workload too.
    pub(in crate::index) fn other_autoscaler(
        &self,
        revision: &RevisionName,
        workload: &Workload,
    ) -> Option<&OtherAutoscaler> {
        let mut autoscalers = self.autoscalers.values();
        autoscalers.find(|one| scales(&one.target, revision, workload)).map(|one| &one.facts)
    }
}

fn scales(target: &ScaleTargetRef, revision: &RevisionName, workload: &Workload) -> bool {
    target.namespace == revision.namespace()
        && target.name == revision.name()
        && target.is_of(&workload.record.resource)
}
