//! What are people told by Events, and of what?

use orchestration::{OrderOutcome, ReasonCode, Subject};
use vocabulary::{Bucket, PodCount, RevisionName, Timestamp};

use super::{ClusterState, changed};
use crate::buckets::{Buckets, epochs};
use crate::count_writer::{CountWrite, ForeignCount};
use crate::event_book::{EventNote, EventText};
use crate::incident::ClusterIncident;
use crate::index::Announcement;
use crate::notice::{IGNORES_TERM, Notice, Tone, tone_of};
use crate::write::{ClusterWrite, Failure};

/// The field `action` of an Event: what ebb was doing.
const SCALING: &str = "Scaling";
const SERVING: &str = "Serving";

impl ClusterState {
    /// Writes Events for all news about objects of our buckets.
    pub(super) fn write_events(&mut self, now: Timestamp) {
        let notified = epochs(&self.buckets.rights(now));
        let gained = changed(&self.notified_epochs, &notified);
        self.notified_epochs = notified;
        if !gained.is_empty() {
            let buckets = &self.buckets;
            self.index.announce_all(|about| gained.contains(&notifying_bucket(buckets, about)));
        }
        let announcements: Vec<Announcement> = self.index.take_announcements().collect();
        for Announcement { about, notice, tone } in announcements {
            // The owners of the other buckets write Events about the others.
            if self.notified_epochs.contains_key(&notifying_bucket(&self.buckets, &about)) {
                self.note(&about, notice, tone, now);
            }
        }
        while let Some(write) = self.events.next_write(now) {
            self.writes.push_back(ClusterWrite::Event(write));
        }
    }

    fn note(&mut self, about: &Subject, notice: Notice, tone: Tone, now: Timestamp) {
        let Notice { reason, text } = notice;
        let action = if about_count(reason) { SCALING } else { SERVING };
        for object in self.index.event_objects(about) {
            let text = EventText::Sentence(text.clone());
            self.events.note(EventNote { object, reason, action, tone, text }, now);
        }
    }

    /// Writes as an Event that a count was changed.
    fn note_count_change(&mut self, write: &CountWrite, now: Timestamp) {
        let (from, to) = (write.from, write.to);
        let reasons: Vec<String> =
            write.because.reasons.iter().map(|reason| reason.text.to_string()).collect();
        let reason = if to > from { SCALED_UP } else { SCALED_DOWN };
        for object in self.index.event_objects(&Subject::Revision(write.revision.clone())) {
            let text = EventText::CountChange { from, to, why: reasons.join("; ") };
            let note = EventNote { object, reason, action: SCALING, tone: Tone::Normal, text };
            self.events.note(note, now);
        }
    }

    /// Logs and writes as an Event what the control loop reports of an object.
    pub(super) fn report(&mut self, about: &Subject, reason: ReasonCode, text: String, now: Timestamp) {
        let reason = reason.word();
        let tone = tone_of(reason);
        self.incidents.push(ClusterIncident::Noticed {
            about: about.clone(),
            reason,
            text: text.clone(),
            tone,
        });
        self.note(about, Notice::new(reason, text), tone, now);
    }

    /// Tells people of a count that another client wrote, where it was ours to write.
    pub(super) fn note_foreign_count(
        &mut self,
        revision: &RevisionName,
        foreign: ForeignCount,
        now: Timestamp,
    ) {
        let ForeignCount { former, present } = foreign;
        let about = Subject::Revision(revision.clone());
        // A standby replica sees counts that the owner wrote, and says nothing of them.
        if !self.notified_epochs.contains_key(&notifying_bucket(&self.buckets, &about)) {
            return;
        }
        let text = format!(
            "another client wrote a count of {present}, where {former} was wanted; ebb goes on from there"
        );
        self.note(&about, Notice::new(FOREIGN_COUNT, text), Tone::Normal, now);
    }

    /// Tells people that histories are not kept as they should be, or that they are again: as a problem, and
    /// by an Event of each revision of ours for which prediction is asked.
    pub(super) fn note_histories(&mut self, trouble: Option<String>, now: Timestamp) {
        let Some(notice) = self.index.put_histories(trouble) else {
            return self.without_histories.clear();
        };
        // It is tried again all the time, and revisions come meanwhile.
        for revision in self.index.predicted_revisions() {
            let about = Subject::Revision(revision.clone());
            let is_ours = self.notified_epochs.contains_key(&notifying_bucket(&self.buckets, &about));
            if is_ours && self.without_histories.insert(revision) {
                self.note(&about, notice.clone(), Tone::Warning, now);
            }
        }
    }

    /// Tells people of pods whose apps run on for longer than their own grace period.
    pub(super) fn report_pods_ignoring_sigterm(&mut self, now: Timestamp) {
        for (name, drained) in self.drained.take_overdue(now) {
            if !self.index.pod_record(&name).is_some_and(|pod| drained.ignores_sigterm(pod)) {
                continue;
            }
            let grace = drained.app_grace.as_secs();
            let text = format!(
                "pod {name} had answered all its requests and was told to stop, and its app still runs after {grace} s, the grace period of the template. Let the app end on SIGTERM; such a pod stays for as long as the longest drain may take (docs/operate/troubleshooting.md, \"Apps that ignore SIGTERM\")"
            );
            for about in [Subject::Pod(name), Subject::Revision(drained.revision)] {
                self.note(&about, Notice::new(IGNORES_TERM, text.clone()), Tone::Warning, now);
            }
        }
    }

    /// What became of an attempt to change a count.
    pub(super) fn note_scaling(
        &mut self,
        write: &CountWrite,
        outcome: &Result<OrderOutcome, Failure>,
        now: Timestamp,
    ) {
        let (from, to) = (write.from, write.to);
        let (reason, text, tone) = match outcome {
            // The same count was ordered once more before the first write of it was known to be done.
            Ok(OrderOutcome::Done) if from == to => return,
            Ok(OrderOutcome::Done) => return self.note_count_change(write, now),
            Ok(OrderOutcome::Conflict { found }) => {
                let text = format!(
                    "another client wrote a count of {found} while ebb was about to write {to} instead of {from}; ebb goes on from there"
                );
                (FOREIGN_COUNT, text, Tone::Normal)
            }
            Ok(_) | Err(Failure::NotOwner) => return,
            Err(failure) => {
                (SCALING_FAILED, format!("from {from} to {}: {}", pods(to), failure.words()), Tone::Warning)
            }
        };
        let about = Subject::Revision(write.revision.clone());
        self.note(&about, Notice::new(reason, text), tone, now);
    }
}

/// A number of pods in words: `1 pod`, `2 pods`.
fn pods(count: PodCount) -> String {
    let word = if count == PodCount::new(1) { "pod" } else { "pods" };
    format!("{count} {word}")
}

/// The bucket whose owner writes Events about a subject. Subjects without a revision belong to the first
/// bucket.
fn notifying_bucket(buckets: &Buckets, about: &Subject) -> Bucket {
    match about {
        Subject::Revision(revision) => buckets.bucket_of(revision),
        Subject::Configuration | Subject::Pod(_) | Subject::Activator(_) => Bucket(0),
    }
}

/// Reasons of Events: a count was written that is larger, or smaller.
const SCALED_UP: &str = "ScaledUp";
const SCALED_DOWN: &str = "ScaledDown";
/// The count was another than we knew.
const FOREIGN_COUNT: &str = "ForeignCount";
/// The API server did not take it.
const SCALING_FAILED: &str = "ScalingFailed";

fn about_count(reason: &str) -> bool {
    [SCALED_UP, SCALED_DOWN, FOREIGN_COUNT, SCALING_FAILED].contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_said_in_words() {
        assert_eq!([0, 1, 2].map(|count| pods(PodCount::new(count))), ["0 pods", "1 pod", "2 pods"]);
    }
}
