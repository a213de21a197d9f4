//! When may an object be written next?
//!
//! One write is under way at a time. After its answer the watch has to show another version of the object:
//! what is written over the former one would meet a conflict, whether the write went through or met one.

use std::time::Duration;

use vocabulary::Timestamp;

use crate::write_turns::WriteTurns;

/// The writes of one object, over the versions of it that the watch shows. The version of an object that does
/// not exist is empty.
#[derive(Debug)]
pub(super) struct VersionedWrites {
    /// The version over which a write is under way.
    under_way: Option<String>,
    /// The version over which the last write ended, until the watch shows another one.
    stale: Option<String>,
    turns: WriteTurns,
}

impl Default for VersionedWrites {
    fn default() -> Self {
        Self { under_way: None, stale: None, turns: WriteTurns::paced(Duration::ZERO) }
    }
}

impl VersionedWrites {
    /// The watch shows this version now.
    pub(super) fn shown(&mut self, version: &str) {
        if !self.is_stale(version) {
            self.stale = None;
        }
    }

    /// Whether this version is known to be older than the object.
    pub(super) fn is_stale(&self, version: &str) -> bool {
        self.stale.as_deref() == Some(version)
    }

    /// When a write over this version may begin; `None` while an answer or the watch has to come first.
    pub(super) fn next_turn(&self, version: &str) -> Option<Timestamp> {
        let is_open = self.under_way.is_none() && !self.is_stale(version);
        is_open.then(|| self.turns.next_turn())
    }

    /// A write over this version begins.
    pub(super) fn begin(&mut self, version: &str, now: Timestamp) {
        self.under_way = Some(version.to_owned());
        self.turns.begin(now);
    }

    /// The write under way went through, or met another version (409), and the watch shows this version.
    /// Returns whether one was under way: an answer may be to a write of a former object under this name.
    pub(super) fn ended(&mut self, shown: &str) -> bool {
        let Some(over) = self.under_way.take() else { return false };
        // The watch may have been faster than the answer.
        self.stale = (over == shown).then_some(over);
        self.turns.ended();
        true
    }

    /// The write under way failed, and may or may not have been done; `at_least` is the server's own wait.
    /// Returns whether one was under way.
    pub(super) fn failed(&mut self, at_least: Option<Duration>, now: Timestamp) -> bool {
        let was_under_way = self.under_way.take().is_some();
        if was_under_way {
            self.turns.failed(at_least, now);
        }
        was_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn one_write_is_under_way_and_the_next_one_waits_for_another_version() {
        let mut writes = VersionedWrites::default();
        assert!(writes.next_turn("7").is_some());
        writes.begin("7", at(0));
        assert_eq!((writes.next_turn("7"), writes.next_turn("8")), (None, None), "one is under way");
        assert!(writes.ended("7"));
        assert_eq!(writes.next_turn("7"), None, "its version is known to be old");
        assert!(writes.next_turn("8").is_some());
    }

    #[test]
    fn an_object_that_is_deleted_again_may_be_made_again() {
        let mut writes = VersionedWrites::default();
        writes.begin("", at(0));
        assert!(writes.ended(""));
        writes.shown("");
        assert_eq!(writes.next_turn(""), None, "the watch has not shown the new object");
        writes.shown("8");
        writes.shown("");
        assert!(writes.next_turn("").is_some());
    }

    #[test]
    fn a_watch_that_is_faster_than_the_answer_holds_nothing_up() {
        let mut writes = VersionedWrites::default();
        writes.begin("", at(0));
        writes.shown("8");
        assert!(writes.ended("8"));
        writes.shown("");
        assert!(writes.next_turn("").is_some(), "it was deleted since");
    }

    #[test]
    fn a_failed_write_is_tried_again_later_and_an_answer_to_no_write_means_nothing() {
        let mut writes = VersionedWrites::default();
        assert!(!writes.failed(None, at(0)) && !writes.ended("7"));
        assert!(writes.next_turn("7").is_some_and(|turn| turn <= at(0)));
        writes.begin("7", at(0));
        assert!(writes.failed(None, at(30)));
        assert_eq!(writes.next_turn("7"), Some(at(130)));
    }
}
