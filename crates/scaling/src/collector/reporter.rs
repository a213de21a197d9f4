//! The latest seconds of one reporter, and their place on our axis of time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{BootId, PresentCount, Sample, Timestamp};

use crate::window::{Second, SecondSums};

/// From this silence on a reporter is not heard.
pub(super) const UNHEARD_AFTER: Duration = Duration::from_secs(3);

/// The number of seconds of a reporter whose values can still be replaced. Frames arrive in order, so a
/// repeat is the running second or, after a reconnect, one of the last; older repeats say what they said
/// before and are dropped.
const REPLACEABLE: usize = 3;

/// A second may arrive this much early or late without its reporter's clock being doubted: one second for
/// where in our second its own began, or for a slow network.
const TOLERATED_DRIFT: Second = 1;

/// Lateness alone may be a stalled connection, which catches up. Only after this long without one punctual
/// frame is it the clock.
const LATENESS_PROVES_DRIFT_AFTER: Duration = Duration::from_secs(2);

/// The meaning of a frame in which a reporter does not mention a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SilenceMeaning {
    /// A second that held nothing: Knative finds one at every scrape of an idle pod.
    ZeroEachSecond,
    /// Zero once after something was held, silence afterwards, as Knative's activators report.
    ZeroOnce,
}

/// Requests that a reporter has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReporterRequests {
    /// The first of the seconds, without a break until the newest, in which there was one.
    pub(super) since: Second,
    /// The concurrency of the newest second, or the present count.
    pub(super) concurrency: f64,
}

/// For how long a present count is decided by between ticks. A queue-proxy that has more than its share says
/// so every 100 ms, until it has said that it has less.
pub(super) const PRESENT_COUNTS_FOR: Duration = Duration::from_millis(100);

/// For how long an activator's present count is taken as of this moment: an activator whose count goes on
/// growing reports again after 20 ms, and a little later on a busy machine.
const PRESENT_IS_FRESH: Duration = Duration::from_millis(40);

/// The requests that an activator holds at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HeldNow {
    /// The last present count, if it is fresh enough to count alone. Else the average of the last second, or
    /// the waiting requests, as far as the last present count is no less.
    pub(super) present: f64,
    /// By how much the count exceeds the average of the last second, or the waiting requests.
    pub(super) excess: CountExcess,
}

/// By how much a present count exceeds the average of the last second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CountExcess {
    /// The count is of this moment.
    Fresh(f64),
    /// The count is the largest since the last frame.
    Peak(f64),
}

/// The values to add to a second of the windows, so that they agree with the reporter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Correction {
    pub(super) second: Second,
    pub(super) by: SecondSums,
}

/// One reporter of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Track {
    boot: BootId,
    /// Our second minus the reporter's; `None` until one of its seconds was anchored.
    offset: Option<Second>,
    /// The newest complete second that the reporter has reported, on our axis.
    newest: Option<Second>,
    /// The second of our axis that ran when it last said hello; those before it are complete, also where its
    /// history does not name them.
    ran_at_hello: Second,
    /// The values that can be replaced, by our second. Unused ones lie before all time.
    recent: [(Second, SecondSums); REPLACEABLE],
    heard_at: Timestamp,
    late_since: Option<Timestamp>,
    /// The last present count of the reporter, until its next frame.
    pub(super) present: Option<PresentCount>,
    /// The last present count with the time of its report; kept also after the next frame.
    last_present: Option<(PresentCount, Timestamp)>,
    /// The requests that the reporter has held without a break until its newest second or present count.
    held: Option<ReporterRequests>,
    /// The requests that waited at the reporter at the end of its newest second.
    pub(super) queued: u32,
}

impl Track {
    /// A reporter that has said nothing about its seconds yet.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            boot: BootId::default(),
            offset: None,
            newest: None,
            ran_at_hello: Second::MIN,
            recent: [(Second::MIN, SecondSums::default()); REPLACEABLE],
            heard_at: now,
            late_since: None,
            present: None,
            last_present: None,
            held: None,
            queued: 0,
        }
    }

    /// A link came up and its second `current` runs now. In the same life nothing that was said is forgotten,
    /// and the anchor moves only if the clocks have drifted apart. In another, its numbers begin anew; what
    /// the former life left unfinished is taken back.
    pub(super) fn start(&mut self, boot: BootId, current: u64, now: Timestamp) -> Option<Correction> {
        self.heard_at = now;
        (self.present, self.last_present) = (None, None);
        let offset = second_of(now).saturating_sub(number(current));
        let known = self.offset.filter(|known| (known - offset).abs() <= TOLERATED_DRIFT);
        if let Some(known) = known.filter(|_| self.boot == boot) {
            self.ran_at_hello = number(current).saturating_add(known);
            return None;
        }
        self.offset = Some(offset);
        self.ran_at_hello = second_of(now);
        self.late_since = None;
        // Only the clock is corrected: what the same life has said stays where it was put.
        if self.boot == boot {
            return None;
        }
        self.boot = boot;
        let newest_said = self.recent.iter().map(|&(second, _)| second).max();
        // Of such a second there is only a present count, and the process that could complete it has ended.
        let unfinished = newest_said.filter(|&second| second > self.newest.unwrap_or(Second::MIN));
        unfinished.and_then(|second| self.replace(second, SecondSums::default()))
    }

    /// Takes in a complete second, which replaces an earlier word about the same second.
    pub(super) fn complete(
        &mut self,
        sample: Sample,
        value: SecondSums,
        now: Timestamp,
    ) -> Option<Correction> {
        self.frame(now);
        self.queued = sample.load.queued;
        let second = self.place(sample.second, now);
        self.newest = self.newest.max(Some(second));
        if self.newest == Some(second) {
            self.note_held(second, value);
        }
        self.replace(second, value)
    }

    /// A second in which it had nothing to say, unless it said something about that second before.
    pub(super) fn quiet(
        &mut self,
        second: u64,
        unmentioned: SilenceMeaning,
        now: Timestamp,
    ) -> Option<Correction> {
        self.frame(now);
        let second = self.place(second, now);
        if self.newest >= Some(second) {
            return None;
        }
        self.queued = 0;
        self.held = None;
        self.newest = Some(second);
        let is_silence = match unmentioned {
            SilenceMeaning::ZeroEachSecond => false,
            SilenceMeaning::ZeroOnce => self.newest_value() == SecondSums::default(),
        };
        if is_silence { None } else { self.replace(second, SecondSums::default()) }
    }

    /// A complete second of a pod that held nothing of its own, where that is silence.
    pub(super) fn rested(&mut self, sample: Sample, now: Timestamp) -> Option<Correction> {
        let correction = self.quiet(sample.second, SilenceMeaning::ZeroOnce, now);
        // Requests that came through an activator may wait at the pod.
        self.queued = sample.load.queued;
        correction
    }

    /// Takes the requests that the reporter holds now as the value of its running second.
    pub(super) fn running(&mut self, value: SecondSums, now: Timestamp) -> Option<Correction> {
        self.heard_at = now;
        let now = second_of(now);
        let second = match self.newest {
            // Its next second, unless it has been silent for longer than that can last.
            Some(newest) if now <= newest + 2 => (newest + 1).max(self.ran_at_hello),
            Some(_) | None => now,
        };
        self.note_held(second, value);
        self.replace(second, value)
    }

    /// The link is gone: the present count is unknown from now on, and the values of past seconds stay.
    pub(super) fn lose(&mut self) {
        (self.present, self.last_present) = (None, None);
    }

    pub(super) fn is_heard(&self, now: Timestamp) -> bool {
        now.saturating_since(self.heard_at) < UNHEARD_AFTER
    }

    /// The first of our seconds of which it has said nothing complete.
    pub(super) fn silent_since(&self) -> Second {
        self.newest.map_or(Second::MIN, |newest| newest + 1)
    }

    /// The value of its newest second, complete or running.
    pub(super) fn newest_value(&self) -> SecondSums {
        self.recent
            .iter()
            .max_by_key(|(second, _)| *second)
            .map_or(SecondSums::default(), |&(_, value)| value)
    }

    /// Keeps the requests that the reporter holds at this instant.
    pub(super) fn note_present(&mut self, count: PresentCount, now: Timestamp) {
        self.present = Some(count);
        self.last_present = Some((count, now));
    }

    /// The present count since the last second, if it is no older than `age`.
    pub(super) fn present_within(&self, age: Duration, now: Timestamp) -> Option<PresentCount> {
        // The last report is the present count, unless a frame came since.
        self.present.filter(|_| self.last_present.is_some_and(|(_, at)| now.saturating_since(at) <= age))
    }

    /// The requests that the reporter holds, by its last second and its last present count.
    pub(super) fn held_now(&self, now: Timestamp) -> HeldNow {
        let newest = self.recent.iter().find(|(second, _)| Some(*second) == self.newest);
        let average = newest.filter(|_| self.is_heard(now)).map_or(0.0, |(_, value)| value.concurrency);
        let fresh = self.last_present.filter(|(_, at)| now.saturating_since(*at) <= PRESENT_IS_FRESH);
        let counts = fresh.map(|(count, _)| count).or_else(|| self.present_within(PRESENT_COUNTS_FOR, now));
        let Some(count) = counts else {
            let lasting = average.max(f64::from(self.queued));
            // The requests are no more than the last count said, because growth is told at once, and an
            // activator that holds fewer for 100 ms says so. That a second has ended since changes neither.
            let most = self.last_present.map_or(lasting, |(count, _)| f64::from(count.in_flight));
            return HeldNow { present: lasting.min(most), excess: CountExcess::Fresh(0.0) };
        };
        let present = f64::from(count.in_flight);
        let lasting = average.max(f64::from(count.waiting)).min(present);
        let excess = present - lasting;
        let excess = if fresh.is_some() { CountExcess::Fresh(excess) } else { CountExcess::Peak(excess) };
        HeldNow { present, excess }
    }

    /// The requests in flight at the reporter, by its last report; `None` for none.
    pub(super) fn held(&self) -> Option<ReporterRequests> {
        self.held
    }

    /// The newest complete second, on our axis.
    pub(super) fn newest(&self) -> Option<Second> {
        self.newest
    }

    fn frame(&mut self, now: Timestamp) {
        self.heard_at = now;
        self.present = None;
    }

    fn note_held(&mut self, second: Second, SecondSums { concurrency, .. }: SecondSums) {
        let since = self.held.map_or(second, |held| held.since);
        self.held = (concurrency > 0.0).then_some(ReporterRequests { since, concurrency });
    }

    /// Where on our axis a second lies that has just ended, if it is punctual; moves the anchor when it has
    /// been wrong for long enough.
    fn place(&mut self, second: u64, now: Timestamp) -> Second {
        let just_ended = second_of(now) - 1;
        let offset = *self.offset.get_or_insert(just_ended.saturating_sub(number(second)));
        let expected = number(second).saturating_add(offset);
        let lateness = just_ended.saturating_sub(expected);
        if lateness.abs() <= TOLERATED_DRIFT {
            self.late_since = None;
            return expected;
        }
        // A network delays but never hurries: what comes too early was anchored too late.
        let late_since = *self.late_since.get_or_insert(now);
        if lateness < 0 || now.saturating_since(late_since) >= LATENESS_PROVES_DRIFT_AFTER {
            self.late_since = None;
            self.offset = Some(just_ended.saturating_sub(number(second)));
            return just_ended;
        }
        expected
    }

    /// Puts `value` in the place of what was said of that second.
    fn replace(&mut self, second: Second, value: SecondSums) -> Option<Correction> {
        if let Some((_, known)) = self.recent.iter_mut().find(|(known, _)| *known == second) {
            let by = value - *known;
            *known = value;
            return Some(Correction { second, by });
        }
        let (oldest, place) = self
            .recent
            .iter_mut()
            .map(|entry| (entry.0, entry))
            .min_by_key(|&(oldest, _)| oldest)
            .expect("REPLACEABLE is not zero");
        if second < oldest {
            // So old a second was reported before, in this boot or a former one.
            return None;
        }
        *place = (second, value);
        Some(Correction { second, by: value })
    }
}

/// The second of our axis that runs at `now`.
pub(super) fn second_of(now: Timestamp) -> Second {
    number(now.whole_secs())
}

/// A reporter's number as ours. Absurd ones are cut to what arithmetic can bear; the anchor then puts them in
/// place.
fn number(second: u64) -> Second {
    Second::try_from(second).unwrap_or(Second::MAX).min(Second::MAX / 4)
}
