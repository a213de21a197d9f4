//! What a record knows of the load of one revision, its pods and its counts.

use std::time::Duration;

use vocabulary::PodCount;

const SECONDS_PER_MINUTE: usize = 60;

/// The load of one revision, from the beginning of the record on.
#[derive(Clone, Debug, Default)]
pub struct RecordedRevision {
    /// How many requests arrived in each second; with fractions, because a second of a reporter is not quite
    /// one of the clock. The first second began before the record, by the `past_second` of the load.
    /// Beyond the last one no request arrived.
    pub arrivals: Vec<f32>,
    /// When some of these requests arrived, since the beginning of the record, in their order: those after
    /// which an activator held more than it had said before.
    pub known_arrivals: Vec<Duration>,
    /// How long each pod took from its order until it was ready.
    pub start_ups: Vec<Duration>,
    /// Each count that was decided and is another one than before, with its time since the beginning of the
    /// record.
    pub counts: Vec<(Duration, PodCount)>,
    minutes: Vec<MinuteWork>,
}

/// What all pods of a revision did in a minute.
#[derive(Clone, Copy, Debug, Default)]
struct MinuteWork {
    /// The sum of what they held at once, second by second: seconds of work.
    held: f64,
    /// The requests that came to them.
    came: f64,
}

impl MinuteWork {
    fn mean(self) -> Option<Duration> {
        (self.came > 0.0).then(|| Duration::try_from_secs_f64(self.held / self.came).ok()).flatten()
    }
}

impl RecordedRevision {
    /// The mean time of a request in a pod, minute by minute; `None` where none came.
    pub fn service_times(&self) -> Vec<Option<Duration>> {
        let mut minutes = self.minutes.clone();
        let mut last_with_arrivals = None;
        for place in 0..minutes.len() {
            if minutes[place].came > 0.0 {
                last_with_arrivals = Some(place);
            } else if let Some(before) = last_with_arrivals {
                // Requests that take longer than a minute are still held.
                minutes[before].held += minutes[place].held;
            }
        }
        minutes.into_iter().map(MinuteWork::mean).collect()
    }

    /// The mean time of all requests in their pods; `None` if none came.
    pub fn mean_service_time(&self) -> Option<Duration> {
        let mut all = MinuteWork::default();
        for minute in &self.minutes {
            all.held += minute.held;
            all.came += minute.came;
        }
        all.mean()
    }

    pub(crate) fn note_arrivals(&mut self, second: usize, requests: f64) {
        if self.arrivals.len() <= second {
            self.arrivals.resize(second + 1, 0.0);
        }
        self.arrivals[second] += small(requests);
    }

    pub(crate) fn note_work(&mut self, second: usize, held: f64, came: f64) {
        let minute = second / SECONDS_PER_MINUTE;
        if self.minutes.len() <= minute {
            self.minutes.resize(minute + 1, MinuteWork::default());
        }
        self.minutes[minute].held += held;
        self.minutes[minute].came += came;
    }

    pub(crate) fn note_count(&mut self, at: Duration, count: PodCount) {
        self.counts.push((at, count));
    }

    /// All records of the run are read: counts of former and later owners are put in order.
    pub(crate) fn finish(&mut self) {
        self.counts.sort_by_key(|(at, _)| *at);
        self.counts.dedup_by_key(|(_, count)| *count);
        self.known_arrivals.sort_unstable();
    }
}

/// The requests of a second, of which there are far fewer than a number of this kind tells apart.
#[expect(
    clippy::cast_possible_truncation,
    reason = "24 bits are exact up to 16 million requests in a second"
)]
fn small(requests: f64) -> f32 {
    requests as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_what_is_held_by_what_comes() {
        let mut revision = RecordedRevision::default();
        for second in 0..60 {
            revision.note_arrivals(second, 20.0);
            revision.note_work(second, 2.0, 20.0);
        }
        // One request of a minute and a half, which comes in the third minute.
        revision.note_work(150, 1.0, 1.0);
        for second in 151..240 {
            revision.note_work(second, 1.0, 0.0);
        }
        let milliseconds = |minute: &Option<Duration>| minute.map(|time| time.as_millis());
        let found: Vec<Option<u128>> = revision.service_times().iter().map(milliseconds).collect();
        assert_eq!(found, [Some(100), None, Some(90_000), None]);
        assert_eq!(revision.mean_service_time().map(|time| time.as_millis()), Some(174));
        assert_eq!((revision.arrivals.len(), revision.arrivals[59]), (60, 20.0));
    }

    #[test]
    fn counts_of_several_owners_are_in_order() {
        let mut revision = RecordedRevision::default();
        for (at, count) in [(5, 2), (9, 2), (1, 1), (7, 3), (8, 3)] {
            revision.note_count(Duration::from_secs(at), PodCount::new(count));
        }
        revision.finish();
        let found: Vec<(u64, u32)> =
            revision.counts.iter().map(|(at, count)| (at.as_secs(), count.value())).collect();
        assert_eq!(found, [(1, 1), (5, 2), (7, 3), (9, 2)]);
    }
}
