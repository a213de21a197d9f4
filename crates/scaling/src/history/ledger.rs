//! What did the pods of a revision cost, and what would another least count have cost?
//!
//! The hours of a history hold everything that is needed, so a ledger of any range of hours is a sum, and
//! live, replayed and simulated revisions are counted alike. What another least count n would have brought is
//! counted as time goes, second by second: the pods that were missing to n are what it would have cost, and
//! the raises of the count that began with fewer than n pods are the cold starts that it would have avoided.
//! So the answer is exact for any range, as far as the load would have been the same.
//!
//! Left out on purpose: prices, which are multiplied by these numbers where they are shown.

use std::fmt;
use std::time::Duration;

use vocabulary::PodCount;

use super::facts::PLACES;
use super::revision::{HOUR, RevisionHistory};
use super::span::HistorySpan;
use super::totals::{ColdStarts, PodSeconds};

/// The worth of an avoided cold start in time of one pod, unless settings say otherwise.
pub const COLD_START_WORTH: Duration = Duration::from_mins(20);

/// What a revision came to over a range of hours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RevisionLedger {
    /// The second since 1970 from which on was measured, in the first hour that counts; 0 for none.
    pub first_second: u64,
    /// How long ago that was, in whole seconds; zero for none.
    pub first_ago: Duration,
    /// The seconds in which the revision was measured.
    pub seconds: u64,
    /// The seconds of its pods.
    pub pod_seconds: PodSeconds,
    /// The starts of its pods.
    pub cold_starts: ColdStarts,
    /// Requests that arrived while a reporter was heard.
    pub requests: f64,
    /// How many requests waited, and how long.
    pub waits: LedgerWaits,
    least_counts: [WhatIf; PLACES],
}

/// The waits of requests, and those for the first pods of a revision that had none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerWaits {
    /// Requests that waited, as far as looks once a second saw them.
    pub waited: u64,
    /// The seconds that all of them waited together.
    pub waiting_seconds: u64,
    /// Cold starts from zero that ended with a ready pod.
    pub wakes_ended: u64,
    /// The milliseconds from the order to the ready pod, of all of these together.
    pub wake_wait_ms: u64,
    /// The longest of these waits, in milliseconds.
    pub wake_wait_ms_max: u32,
}

/// What a least count would have brought, beside what was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// The seconds of pods that were missing to it.
    pub extra_pod_seconds: u64,
    /// The starts of pods that began with fewer pods.
    pub avoided_cold_starts: u64,
}

/// The advice of a ledger about the least count of a revision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastCountAdvice {
    /// The least count to have; the present one where no greater one is worth its pods.
    pub advised: PodCount,
    present: PodCount,
    /// The least count that the sentence weighs: the advised one, or the one above the present one.
    weighed: PodCount,
    extra_pod_hours_a_day: f64,
    avoided_cold_starts: u64,
    mean_wake_wait: Option<Duration>,
}

impl RevisionLedger {
    /// The greatest least count for which the ledger knows what it would have brought.
    pub const LEAST_COUNT_MAX: PodCount = PodCount::new(5);

    /// What each least count would have brought, from 0 to [`Self::LEAST_COUNT_MAX`].
    pub fn least_counts(&self) -> impl Iterator<Item = (PodCount, WhatIf)> {
        (0..).map(PodCount::new).zip(self.least_counts)
    }

    /// The least count above the present one at which an avoided cold start costs at most `worth` of a pod's
    /// time, or the present one. `None` where nothing was measured, or no greater least count was counted.
    pub fn advice(&self, present: PodCount, worth: Duration) -> Option<LeastCountAdvice> {
        let greater = || self.least_counts().filter(move |(count, _)| *count > present);
        let is_worth_it = |what_if: &WhatIf| {
            let worth = worth.as_secs().saturating_mul(what_if.avoided_cold_starts);
            what_if.avoided_cold_starts > 0 && what_if.extra_pod_seconds <= worth
        };
        let advised = greater().find(|(_, what_if)| is_worth_it(what_if));
        let (weighed, what_if) = advised.or_else(|| greater().next()).filter(|_| self.seconds > 0)?;
        Some(LeastCountAdvice {
            advised: advised.map_or(present, |(count, _)| count),
            present,
            weighed,
            extra_pod_hours_a_day: 24.0 * as_number(what_if.extra_pod_seconds) / as_number(self.seconds),
            avoided_cold_starts: what_if.avoided_cold_starts,
            mean_wake_wait: self.waits.mean_wake_wait(),
        })
    }

    fn add(&mut self, span: &HistorySpan) {
        self.seconds += u64::from(span.seconds);
        self.pod_seconds = self.pod_seconds.with(span.pod_seconds());
        self.cold_starts = self.cold_starts.with(span.cold_starts());
        self.requests += span.requests;
        self.waits.add(span);
        for (min_scale, what_if) in (0..).zip(&mut self.least_counts) {
            what_if.extra_pod_seconds += u64::from(span.extra_seconds_with(min_scale));
            what_if.avoided_cold_starts += u64::from(span.starts_spared_with(min_scale));
        }
    }
}

impl LedgerWaits {
    /// The time from the order to the ready pod, on average; `None` without such a wait.
    pub fn mean_wake_wait(&self) -> Option<Duration> {
        self.wake_wait_ms.checked_div(self.wakes_ended).map(Duration::from_millis)
    }

    fn add(&mut self, span: &HistorySpan) {
        self.waited += u64::from(span.waited);
        self.waiting_seconds += u64::from(span.waiting_seconds);
        self.wakes_ended += u64::from(span.wakes_ended);
        self.wake_wait_ms += u64::from(span.wake_wait_ms);
        self.wake_wait_ms_max = self.wake_wait_ms_max.max(span.wake_wait_ms_max);
    }
}

impl fmt::Display for LeastCountAdvice {
    /// One sentence: what the weighed least count costs and avoids, and what to do.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weighed, extra_pod_hours_a_day, avoided_cold_starts, .. } = self;
        write!(
            formatter,
            "min-scale {weighed} costs {extra_pod_hours_a_day:.1} pod-hours a day more and avoids "
        )?;
        match avoided_cold_starts {
            0 => write!(formatter, "no cold start")?,
            1 => write!(formatter, "1 cold start")?,
            several => write!(formatter, "{several} cold starts")?,
        }
        if let Some(wait) = self.mean_wake_wait.filter(|_| self.avoided_cold_starts > 0) {
            write!(formatter, " of {:.1} s", wait.as_secs_f64())?;
        }
        if self.advised > self.present {
            write!(formatter, ": write {}", self.advised)
        } else {
            write!(formatter, ": keep {}", self.present)
        }
    }
}

impl RevisionHistory {
    /// The ledger of all hours from this one on, as it is in a second; both have their numbers since 1970.
    pub(super) fn ledger_since(&self, first_hour: u64, second: u64) -> RevisionLedger {
        let mut ledger = RevisionLedger::default();
        for (hour, span) in self.hours().filter(|(hour, _)| *hour >= first_hour) {
            if ledger.seconds == 0 {
                // What is missing of the first hour is taken for its beginning: the hours begin with the
                // first second that is measured.
                let end = ((hour + 1) * HOUR).min(self.next);
                ledger.first_second = end.saturating_sub(span.seconds.into());
                ledger.first_ago = Duration::from_secs(second.saturating_sub(ledger.first_second));
            }
            ledger.add(&span);
        }
        ledger
    }
}

/// Whole seconds as a number for a ratio.
fn as_number(seconds: u64) -> f64 {
    Duration::from_secs(seconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A span of a day in which no pod was wanted but for the minutes of its wakes, each from zero.
    fn sleepy(wakes: u32, minutes_awake: u32) -> RevisionLedger {
        let awake = wakes * minutes_awake * 60;
        let span = HistorySpan {
            seconds: 86_400,
            seconds_wanting: [86_400 - awake, awake, 0, 0, 0],
            raises_from: [wakes, 0, 0, 0, 0, 0],
            wakes_ended: wakes,
            wake_wait_ms: wakes * 1900,
            wake_wait_ms_max: 2500,
            ..HistorySpan::default()
        };
        let mut ledger = RevisionLedger::default();
        ledger.add(&span);
        ledger
    }

    fn advised(ledger: &RevisionLedger, present: u32) -> (u32, String) {
        let advice = ledger.advice(PodCount::new(present), COLD_START_WORTH).expect("a day was measured");
        (advice.advised.value(), advice.to_string())
    }

    #[test]
    fn a_pod_that_is_kept_for_few_cold_starts_is_not_worth_it() {
        let (advised, sentence) = advised(&sleepy(4, 13), 0);
        assert_eq!(advised, 0);
        assert_eq!(
            sentence,
            "min-scale 1 costs 23.1 pod-hours a day more and avoids 4 cold starts of 1.9 s: keep 0"
        );
    }

    #[test]
    fn the_least_count_that_is_worth_its_pods_is_advised() {
        // 72 cold starts are worth 24 hours of a pod, and it would have been up for some of these anyway.
        let (advised, sentence) = advised(&sleepy(72, 5), 0);
        assert_eq!(advised, 1);
        assert_eq!(
            sentence,
            "min-scale 1 costs 18.0 pod-hours a day more and avoids 72 cold starts of 1.9 s: write 1"
        );
    }

    #[test]
    fn a_greater_least_count_is_weighed_against_the_present_one() {
        let ledger = sleepy(1, 10);
        assert_eq!(
            advised(&ledger, 3),
            (
                3,
                "min-scale 4 costs 95.8 pod-hours a day more and avoids 1 cold start of 1.9 s: keep 3"
                    .to_owned()
            )
        );
        assert_eq!(ledger.advice(PodCount::new(5), COLD_START_WORTH), None, "no greater one was counted");
        assert_eq!(RevisionLedger::default().advice(PodCount::ZERO, COLD_START_WORTH), None);
        let idle = sleepy(0, 0);
        assert_eq!(
            advised(&idle, 0).1,
            "min-scale 1 costs 24.0 pod-hours a day more and avoids no cold start: keep 0"
        );
    }
}
