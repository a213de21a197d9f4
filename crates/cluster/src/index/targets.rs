//! Which pods does a workload of class hpa have?

use settings::Class;
use vocabulary::RevisionName;

use super::{Index, Workload};
use crate::resources::pod::PodObject;
use crate::target::TargetRecord;

impl Index {
    /// As it is now; `None` for a stranger.
    pub(crate) fn target(&self, revision: &RevisionName) -> Option<TargetRecord> {
        let workload = self.workloads.get(revision)?;
        let selector = workload.record.selector.clone();
        let named = self.pods.selected(revision.namespace(), &selector).into_iter();
        let pods = named.filter_map(|name| self.pods.record(name));
        let pods: Vec<&PodObject> = pods.filter(|pod| selector.selects(&pod.labels)).collect();
        let others: Vec<&Workload> = self.others_of_class_hpa(revision).collect();
        let is_shared =
            pods.iter().any(|pod| others.iter().any(|other| other.record.selector.selects(&pod.labels)));
        let pods = pods.into_iter().map(|pod| (pod.name.clone(), pod.scaled.clone())).collect();
        Some(TargetRecord { selector, pods, present: workload.record.present, is_shared })
    }

    /// Those of the same namespace.
    fn others_of_class_hpa<'a>(&'a self, revision: &'a RevisionName) -> impl Iterator<Item = &'a Workload> {
        let others = self.workloads.iter().filter(move |(other, workload)| {
            let class = workload
                .settings
                .as_ref()
                .map(|settings| settings.scaling.effective_class(self.workloads.cluster()));
            *other != revision && other.namespace() == revision.namespace() && class == Some(&Class::Hpa)
        });
        others.map(|(_, workload)| workload)
    }
}
