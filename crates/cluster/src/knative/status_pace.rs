//! When is the status of a `PodAutoscaler` written? (Contract §2.2.)
//!
//! At once when a condition or a name changes, for a revision waits for that; counts at most once a second,
//! for they change with each pod. One write is under way at a time, and what changes nothing is not written:
//! its own event would come back.

use std::time::Duration;

use vocabulary::Timestamp;

use super::pod_autoscaler::PodAutoscalerRecord;
use super::status::{AutoscalerStatus, StatusWrite};
use super::versioned_writes::VersionedWrites;

/// Minimum interval between two writes of counts alone.
pub const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// The write of one status that is under way, and the times of those that follow.
#[derive(Debug, Default)]
pub struct StatusPace {
    writes: VersionedWrites,
    /// The status of the write that is under way.
    under_way: Option<AutoscalerStatus>,
    /// The last write that went through, until the watch shows a version at least as new.
    written: Option<AutoscalerStatus>,
    last_write: Option<Timestamp>,
}

impl StatusPace {
    /// The status that the object has, as far as we know: what the watch shows, or what was written since.
    pub fn known<'a>(&'a self, shown: &'a PodAutoscalerRecord) -> &'a AutoscalerStatus {
        let is_stale = self.writes.is_stale(&shown.resource_version);
        self.written.as_ref().filter(|_| is_stale).unwrap_or(&shown.status)
    }

    /// The write that has to begin now so that the object gets this status, if any; it is under way from then
    /// on.
    pub fn begin(
        &mut self,
        shown: &PodAutoscalerRecord,
        wanted: &AutoscalerStatus,
        now: Timestamp,
    ) -> Option<StatusWrite> {
        if self.next_turn(shown, wanted)? > now {
            return None;
        }
        self.writes.begin(&shown.resource_version, now);
        self.last_write = Some(now);
        self.under_way = Some(wanted.clone());
        Some(StatusWrite { over: shown.resource_version.clone(), status: wanted.clone() })
    }

    /// When a write may begin that gives the object this status; `None` if nothing is to be written, or
    /// something else has to happen first.
    pub fn next_turn(&self, shown: &PodAutoscalerRecord, wanted: &AutoscalerStatus) -> Option<Timestamp> {
        let known = self.known(shown);
        if known == wanted {
            return None;
        }
        let turn = self.writes.next_turn(&shown.resource_version)?;
        let pause =
            self.last_write.filter(|_| known.differs_in_counts_alone(wanted)).map(|at| at + COUNTS_EVERY);
        Some(turn.max(pause.unwrap_or(Timestamp::ZERO)))
    }

    /// The write under way went through.
    pub fn written(&mut self, shown: &PodAutoscalerRecord) {
        if self.writes.ended(&shown.resource_version) {
            self.written = self.under_way.take();
        }
    }

    /// The write under way met another version of the object (409): the watch shows it.
    pub fn conflicted(&mut self, shown: &PodAutoscalerRecord) {
        if self.writes.ended(&shown.resource_version) {
            (self.under_way, self.written) = (None, None);
        }
    }

    /// The write under way failed, and may or may not have been done; `at_least` is the server's own wait.
    pub fn failed(&mut self, at_least: Option<Duration>, now: Timestamp) {
        if self.writes.failed(at_least, now) {
            self.under_way = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vocabulary::PodCount;

    use super::*;
    use crate::knative::pod_autoscaler::tests::autoscaler;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn status(name: &str, actual: u32) -> AutoscalerStatus {
        let actual = Some(PodCount::new(actual));
        AutoscalerStatus { service_name: name.to_owned(), actual, ..AutoscalerStatus::default() }
    }

    /// The write goes through, and the watch shows it.
    fn write(pace: &mut StatusPace, shown: &mut PodAutoscalerRecord, wanted: &AutoscalerStatus, now: u64) {
        let write = pace.begin(shown, wanted, at(now)).expect("it is due");
        assert_eq!((write.over.as_str(), &write.status), (shown.resource_version.as_str(), wanted));
        pace.written(shown);
        shown.status = write.status;
        shown.resource_version = format!("{}0", write.over);
    }

    #[test]
    fn counts_are_written_once_a_second_and_names_at_once() {
        let (mut pace, mut shown) = (StatusPace::default(), autoscaler(&json!({})));
        write(&mut pace, &mut shown, &status("hello", 0), 1_000);
        assert_eq!(pace.begin(&shown, &status("hello", 1), at(1_900)), None);
        assert_eq!(pace.next_turn(&shown, &status("hello", 2)), Some(at(2_000)));
        write(&mut pace, &mut shown, &status("hello", 3), 2_000);
        write(&mut pace, &mut shown, &status("other", 4), 2_001);
    }

    #[test]
    fn a_write_that_changes_nothing_is_not_sent() {
        let (mut pace, mut shown) = (StatusPace::default(), autoscaler(&json!({})));
        write(&mut pace, &mut shown, &status("hello", 1), 1_000);
        assert_eq!(pace.next_turn(&shown, &status("hello", 1)), None);
    }

    #[test]
    fn one_write_is_under_way_and_the_next_one_waits_for_the_watch() {
        let (mut pace, shown) = (StatusPace::default(), autoscaler(&json!({})));
        assert!(pace.begin(&shown, &status("hello", 1), at(0)).is_some());
        assert_eq!(pace.begin(&shown, &status("other", 1), at(10)), None, "one is under way");
        pace.written(&shown);
        assert_eq!(*pace.known(&shown), status("hello", 1), "the watch has not shown it yet");
        assert_eq!(pace.begin(&shown, &status("other", 1), at(20)), None, "its version is known to be old");
    }

    #[test]
    fn after_a_conflict_the_object_is_read_again_and_after_a_failure_a_wait_grows() {
        let (mut pace, mut shown) = (StatusPace::default(), autoscaler(&json!({})));
        assert!(pace.begin(&shown, &status("hello", 1), at(0)).is_some());
        pace.conflicted(&shown);
        assert_eq!(pace.begin(&shown, &status("hello", 1), at(10)), None);
        shown.resource_version = "8".to_owned();
        assert!(pace.begin(&shown, &status("hello", 1), at(20)).is_some());
        pace.failed(None, at(30));
        assert_eq!(pace.next_turn(&shown, &status("hello", 1)), Some(at(130)));
    }
}
