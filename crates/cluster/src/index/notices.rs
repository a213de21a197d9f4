//! What has each reader to hear of the objects? People read notices and the Events that announce them, the
//! autoscaler reads facts, and the writer of slices looks at revisions.
//!
//! A subject that is put in again before its reader has taken it stands here once, so that the reader hears
//! of its last state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use orchestration::Subject;
use vocabulary::RevisionName;

use super::topic::Topic;
use crate::incident::ClusterIncident;
use crate::notice::{Notice, Tone, tone_of};

/// Announcements that wait for an owner that may write them; the oldest are dropped first. Problems keep what
/// holds.
const ANNOUNCEMENTS_MAX: usize = 1000;

/// News of an object, for which an Event is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) about: Subject,
    pub(crate) notice: Notice,
    pub(crate) tone: Tone,
}

/// Everything that a reader has not taken yet, and what was told before.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// The notices that hold; a subject without notices has no entry.
    by_subject: BTreeMap<Subject, Vec<Notice>>,
    /// The notices about each ConfigMap; together they are those of the configuration.
    by_config_map: BTreeMap<&'static str, Vec<Notice>>,
    /// News of objects for which no Event was written yet.
    announcements: VecDeque<Announcement>,
    /// What should stand in the log, since the log was written last.
    incidents: Vec<ClusterIncident>,
    /// Revisions of which the autoscaler was sent facts.
    sent_revisions: BTreeSet<RevisionName>,
    topics: BTreeSet<Topic>,
    /// Revisions whose slices may have to be written.
    unrouted: BTreeSet<RevisionName>,
}

impl Notices {
    /// All that is to be known of an object now. What was not known before is announced.
    pub(super) fn put(&mut self, about: Subject, notices: Vec<Notice>) {
        let former = self.by_subject.remove(&about).unwrap_or_default();
        if former != notices {
            // Everything about an object is put anew with each change of it, and an Event is a request to the
            // API server.
            for notice in notices.iter().filter(|notice| !former.contains(notice)) {
                let tone = tone_of(notice.reason);
                self.incidents.push(ClusterIncident::Noticed {
                    about: about.clone(),
                    reason: notice.reason,
                    text: notice.text.clone(),
                    tone,
                });
                let (about, notice) = (about.clone(), notice.clone());
                self.announce(Announcement { about, notice, tone });
            }
            self.topics.insert(Topic::Problems(about.clone()));
        }
        if !notices.is_empty() {
            self.by_subject.insert(about, notices);
        }
    }

    /// All that is to be known of one ConfigMap now.
    pub(super) fn put_of_config_map(&mut self, name: &'static str, notices: Vec<Notice>) {
        self.by_config_map.insert(name, notices);
        let all = self.by_config_map.values().flatten().cloned().collect();
        self.put(Subject::Configuration, all);
    }

    /// The notices that hold about a subject.
    pub(super) fn of(&self, about: &Subject) -> &[Notice] {
        self.by_subject.get(about).map(Vec::as_slice).unwrap_or_default()
    }

    /// The subjects about which notices hold.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.by_subject.keys()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    pub(super) fn announce(&mut self, announcement: Announcement) {
        if self.announcements.len() == ANNOUNCEMENTS_MAX {
            self.announcements.pop_front();
        }
        self.announcements.push_back(announcement);
    }

    /// Announces all notices that hold about these subjects, for an owner that writes Events from now on.
    pub(super) fn announce_all(&mut self, is_ours: impl Fn(&Subject) -> bool) {
        // All of them are said below, as they are now; what waits may be over.
        self.announcements.retain(|announcement| !is_ours(&announcement.about));
        let all: Vec<Announcement> = self
            .by_subject
            .iter()
            .filter(|(about, _)| is_ours(about))
            .flat_map(|(about, notices)| {
                notices.iter().map(|notice| Announcement {
                    about: about.clone(),
                    notice: notice.clone(),
                    tone: tone_of(notice.reason),
                })
            })
            .collect();
        for announcement in all {
            self.announce(announcement);
        }
    }

    /// Something that should stand in the log has happened.
    pub(super) fn log(&mut self, incident: ClusterIncident) {
        self.incidents.push(incident);
    }

    /// Takes what should stand in the log.
    pub(super) fn take_incidents(&mut self) -> Vec<ClusterIncident> {
        std::mem::take(&mut self.incidents)
    }

    /// Takes what has not been announced yet.
    pub(super) fn take_announcements(&mut self) -> VecDeque<Announcement> {
        std::mem::take(&mut self.announcements)
    }

    /// The autoscaler has to be sent a fact of this topic.
    pub(super) fn tell(&mut self, topic: Topic) {
        self.topics.insert(topic);
    }

    /// The autoscaler has to be sent facts of these topics.
    pub(super) fn tell_all(&mut self, topics: impl IntoIterator<Item = Topic>) {
        self.topics.extend(topics);
    }

    /// Takes the topic of the next fact.
    pub(super) fn next_topic(&mut self) -> Option<Topic> {
        self.topics.pop_first()
    }

    /// Whether the autoscaler was told that a revision is there, and not that it is gone.
    pub(super) fn is_sent(&self, revision: &RevisionName) -> bool {
        self.sent_revisions.contains(revision)
    }

    /// The autoscaler is told that a revision is there.
    pub(super) fn revision_sent(&mut self, revision: RevisionName) {
        self.sent_revisions.insert(revision);
    }

    /// The autoscaler is to be told that a revision is gone; returns whether it knows the revision.
    pub(super) fn forget_sent(&mut self, revision: &RevisionName) -> bool {
        self.sent_revisions.remove(revision)
    }

    /// The next facts go to an autoscaler that was told of no revision.
    pub(super) fn forget_all_sent(&mut self) {
        self.sent_revisions.clear();
    }

    /// The slices of a revision may have to be written.
    pub(super) fn reroute(&mut self, revision: RevisionName) {
        self.unrouted.insert(revision);
    }

    /// The slices of these revisions may have to be written.
    pub(super) fn reroute_all(&mut self, revisions: impl IntoIterator<Item = RevisionName>) {
        self.unrouted.extend(revisions);
    }

    /// Takes the revisions whose slices may have to be written.
    pub(super) fn take_unrouted(&mut self) -> BTreeSet<RevisionName> {
        std::mem::take(&mut self.unrouted)
    }
}
