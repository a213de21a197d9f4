//! Which counts of workloads are to be written now, and what follows from the answers?

use orchestration::OrderOutcome;
use vocabulary::{PodCount, RevisionName, Timestamp};

use super::{Index, Topic};
use crate::count_writer::{CountStep, CountWrite, EndedWrite, WriteEnding};
use crate::resources::workload::ScaleSubject;

impl Index {
    /// The autoscaler orders a count; returns the write that waited until now, whose place it takes.
    pub(crate) fn want_count(&mut self, write: CountWrite) -> Option<CountWrite> {
        self.workloads.counts_mut().want(write)
    }

    /// What is to be done now about counts that were ordered. Facts that forbid a write may be newer than its
    /// order.
    pub(crate) fn take_count_steps(&mut self, now: Timestamp) -> Vec<CountStep> {
        let due = self.workloads.counts().due(now);
        let steps = due.iter().filter_map(|revision| self.take_count_step(revision, now)).collect();
        self.workloads.counts_mut().settle(now);
        steps
    }

    fn take_count_step(&mut self, revision: &RevisionName, now: Timestamp) -> Option<CountStep> {
        let write = self.workloads.counts().due_write(revision, now)?;
        let (from, to) = (write.from, write.to);
        let subject = self.record_of(revision).map(ScaleSubject::of);
        let is_allowed = self.may_change(revision, from, to);
        let former_floor = self.floor(revision);
        let counts = self.workloads.counts_mut();
        match subject {
            Some(subject) if is_allowed => {
                let write = counts.begin(revision, now)?;
                self.tell_moved_floor(revision, former_floor);
                Some(CountStep::Begin(write, subject))
            }
            // The count that is there stays as if another writer had written it again. The Service's problems
            // say why. It need not be the count that the order was decided upon.
            Some(_) => {
                let found = counts.wanted(revision).unwrap_or(from);
                Some(CountStep::Refuse(counts.refuse(revision, now)?, OrderOutcome::Conflict { found }))
            }
            None => Some(CountStep::Refuse(counts.refuse(revision, now)?, OrderOutcome::Gone)),
        }
    }

    /// The request of a count has ended; returns its write.
    pub(crate) fn count_answered(
        &mut self,
        revision: &RevisionName,
        ending: WriteEnding,
        now: Timestamp,
    ) -> Option<EndedWrite> {
        let former_floor = self.floor(revision);
        let ended = self.workloads.counts_mut().answered(revision, ending, now)?;
        if ended.is_news {
            self.notices.tell(Topic::Revision(revision.clone()));
        }
        self.tell_moved_floor(revision, former_floor);
        Some(ended)
    }

    /// A count that may not fall is its own floor, which moves when the count is written: the autoscaler must
    /// hear that before the watch shows the count.
    fn tell_moved_floor(&mut self, revision: &RevisionName, former: PodCount) {
        if self.floor(revision) != former {
            self.notices.tell(Topic::Revision(revision.clone()));
        }
    }

    /// When the write of a count may begin.
    pub(crate) fn next_count_deadline(&self) -> Option<Timestamp> {
        self.workloads.counts().next_deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count_writer::tests::write;
    use crate::index::tests::{index, name, put_service, put_workload, settle, told, workload};
    use crate::resources::workload::ObjectVersion;
    use scaling::RevisionOrigin;
    use serde_json::json;

    /// The watch shows this count, in that version of the object.
    fn show(index: &mut Index, count: u32, version: u64, window: &str) {
        let annotations = json!({"autoscaling.knative.dev/window": window});
        let mut shown = workload(count, &annotations);
        shown.count.version = Some(ObjectVersion(version));
        index.put_workload(shown, RevisionOrigin::Found);
        settle(index);
    }

    /// A request begins that writes 5 over 2.
    fn begin(index: &mut Index) {
        index.want_count(write(2, 5));
        let now = index.next_count_deadline().expect("it is asked");
        let steps = index.take_count_steps(now);
        assert!(
            matches!(&steps[..], [CountStep::Begin(begun, _)] if begun.to == PodCount::new(5)),
            "{steps:?}"
        );
    }

    fn end(index: &mut Index, ending: WriteEnding) {
        index.count_answered(&name(), ending, Timestamp::ZERO).expect("it is under way");
    }

    fn written() -> WriteEnding {
        WriteEnding::Written(Some(ObjectVersion(13)))
    }

    fn two() -> Index {
        let mut index = index();
        put_service(&mut index, json!({}));
        show(&mut index, 2, 10, "30s");
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);
        begin(&mut index);
        index
    }

    #[test]
    fn a_count_that_is_being_written_is_told_with_other_news_until_the_watch_shows_it() {
        let mut index = two();
        show(&mut index, 2, 11, "40s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        end(&mut index, written());
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
        end(&mut index, written());
        show(&mut index, 2, 14, "30s");
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);

        // It came before the answer to ours.
        let mut index = two();
        show(&mut index, 3, 14, "30s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        end(&mut index, written());
        assert_eq!(told(&mut index), ["revision at 3"]);
    }

    #[test]
    fn a_count_that_could_not_be_written_hides_nothing() {
        let mut index = two();
        show(&mut index, 2, 11, "40s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
        end(&mut index, WriteEnding::Failed(None));
        assert_eq!(told(&mut index), Vec::<String>::new(), "whoever ordered it has heard of the failure");
        begin(&mut index);
        show(&mut index, 3, 12, "40s");
        end(&mut index, WriteEnding::Failed(None));
        assert_eq!(told(&mut index), ["revision at 3", "0 pods"], "somebody else's");
    }

    #[test]
    fn a_count_of_ours_that_the_watch_shows_is_told_to_an_autoscaler_that_has_not_ordered_it() {
        let mut index = index();
        put_service(&mut index, json!({}));
        show(&mut index, 2, 10, "30s");
        index.want_count(write(2, 5));
        // It takes its seat before the request begins, so it hears the former count.
        index.resend_counts_and_routes();
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);
        begin(&mut index);
        end(&mut index, written());
        assert_eq!(told(&mut index), Vec::<String>::new(), "the autoscaler of the order hears its outcome");
        show(&mut index, 5, 13, "30s");
        assert_eq!(told(&mut index), ["revision at 5", "0 pods"]);
    }

    #[test]
    fn a_write_that_is_not_begun_ends_with_the_count_that_is_there() {
        let mut index = index();
        put_service(&mut index, json!({}));
        show(&mut index, 2, 10, "30s");
        index.want_count(write(2, 5));
        // Another client wrote 7 since, and a person forbids that ebb writes.
        put_workload(&mut index, 7, &json!({"ebb.dev/paused": "true"}));
        let now = index.next_count_deadline().expect("it is asked");
        let steps = index.take_count_steps(now);
        let [CountStep::Refuse(_, outcome)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(*outcome, OrderOutcome::Conflict { found: PodCount::new(7) });
    }

    #[test]
    fn without_comparable_versions_the_watch_is_believed() {
        let mut index = two();
        end(&mut index, written());
        put_workload(&mut index, 2, &json!({"autoscaling.knative.dev/window": "40s"}));
        assert_eq!(told(&mut index), ["revision at 2", "0 pods"]);
    }
}
