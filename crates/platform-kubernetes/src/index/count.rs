//! Which count does a workload have, while ebb writes one? The autoscaler must not hear the former count
//! again: it would decide the same once more, and policies and Events would count both.

use vocabulary::{PodCount, RevisionName};

use super::{Index, Topic, Workload};
use crate::resources::workload::ObjectVersion;

/// A count of ours that the watch may not have shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnseenCount {
    /// A request is under way to write it over that one, which the watch shows.
    UnderWay { count: PodCount, over: PodCount },
    /// It is there, from this version of the object on.
    Written { count: PodCount, version: ObjectVersion },
}

impl UnseenCount {
    fn count(self) -> PodCount {
        match self {
            Self::UnderWay { count, .. } | Self::Written { count, .. } => count,
        }
    }
}

impl Workload {
    /// The count of pods that the workload is to have, with a write of ours that the watch has not shown.
    pub(super) fn wanted(&self) -> PodCount {
        self.unseen_count.map_or(self.record.wanted, UnseenCount::count)
    }

    /// Forgets our write once the watch shows a version that is as new; returns whether that has another
    /// count.
    pub(super) fn catch_up(&mut self) -> bool {
        let Some(UnseenCount::Written { count, version }) = self.unseen_count else { return false };
        // Where versions cannot be compared, the watch is believed.
        if self.record.version.is_some_and(|shown| shown < version) {
            return false;
        }
        self.unseen_count = None;
        self.record.wanted != count
    }
}

impl Index {
    /// A request begins that writes this count.
    pub(crate) fn count_begins(&mut self, revision: &RevisionName, count: PodCount) {
        if let Some(workload) = self.workloads.get_mut(revision) {
            workload.unseen_count = Some(UnseenCount::UnderWay { count, over: workload.record.wanted });
        }
    }

    /// The request has ended, and the count is there from this version of the object on; `None` if the write
    /// failed, or its outcome is not known.
    pub(crate) fn count_ended(&mut self, revision: &RevisionName, version: Option<ObjectVersion>) {
        let Some(workload) = self.workloads.get_mut(revision) else { return };
        let Some(UnseenCount::UnderWay { count, over }) = workload.unseen_count.take() else { return };
        workload.unseen_count = version.map(|version| UnseenCount::Written { count, version });
        let is_news = match version {
            Some(_) => workload.catch_up(),
            // A count that another writer wrote meanwhile was sent as ours.
            None => workload.record.wanted != over,
        };
        if is_news {
            self.topics.insert(Topic::Revision(revision.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use scaling::RevisionOrigin;
    use serde_json::json;

    use super::*;
    use crate::index::tests::{index, name, put_service, put_workload, record, settle, told};

    /// The watch shows this count, in that version of the object.
    fn show(index: &mut Index, count: u32, version: u64, window: &str) {
        let annotations = json!({"autoscaling.knative.dev/window": window});
        let mut record = record(count, &annotations);
        record.version = Some(ObjectVersion(version));
        index.put_workload(record, RevisionOrigin::Found);
        settle(index);
    }

    fn two() -> Index {
        let mut index = index();
        put_service(&mut index, json!({}));
        show(&mut index, 2, 10, "30s");
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);
        index.count_begins(&name(), PodCount::new(5));
        index
    }

    #[test]
    fn a_count_that_is_being_written_is_told_with_other_news_until_the_watch_shows_it() {
        let mut index = two();
        show(&mut index, 2, 11, "40s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        index.count_ended(&name(), Some(ObjectVersion(13)));
        // It was on the way before ours was written.
        show(&mut index, 2, 12, "50s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        show(&mut index, 5, 13, "50s");
        show(&mut index, 2, 14, "50s");
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"], "somebody else's");
    }

    #[test]
    fn a_count_of_somebody_elses_is_told_also_where_the_watch_left_ours_out() {
        let mut index = two();
        index.count_ended(&name(), Some(ObjectVersion(13)));
        show(&mut index, 2, 14, "30s");
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);

        // It came before the answer to ours.
        let mut index = two();
        show(&mut index, 3, 14, "30s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        index.count_ended(&name(), Some(ObjectVersion(13)));
        assert_eq!(told(&mut index), ["revision at 3"]);
    }

    #[test]
    fn a_count_that_could_not_be_written_hides_nothing() {
        let mut index = two();
        show(&mut index, 2, 11, "40s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        index.count_ended(&name(), None);
        assert_eq!(told(&mut index), Vec::<String>::new(), "whoever ordered it has heard of the failure");
        index.count_begins(&name(), PodCount::new(5));
        show(&mut index, 3, 12, "40s");
        index.count_ended(&name(), None);
        assert_eq!(told(&mut index), ["revision at 3", "0 pods"], "somebody else's");
    }

    #[test]
    fn without_comparable_versions_the_watch_is_believed() {
        let mut index = two();
        index.count_ended(&name(), Some(ObjectVersion(13)));
        put_workload(&mut index, 2, &json!({"autoscaling.knative.dev/window": "40s"}));
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);
    }
}
