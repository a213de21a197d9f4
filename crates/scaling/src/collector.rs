//! Turns what pods and activators measured into a revision's stable and panic values.
//!
//! *One value per reporter and second of its own.* A reporter counts its seconds; when its link comes up the
//! second that runs is anchored to our axis. Each of its seconds is one entry of the windows, and saying it
//! again replaces it, so a reconnect neither doubles nor loses one. *The reporters divide the requests*: pods
//! count requests that did not come through an activator, activators count all that they hold. Their sum
//! counts each request once, but where a path changes: next to the values stands what they are if what may
//! have gone from pods to activators in a second, or back, was in one place only ([`path_changes`]). *Rest
//! leaves no trace*: what an activator does not mention is zero once and then not written at all, so the
//! windows of a revision at rest run empty and begin anew with its next load. (While the target burst
//! capacity is -1 the same holds of pods; else an idle pod writes zeros, as in Knative.) *Silence is not
//! zero*: next to the values stands what they would be if every silent pod were exactly on target and every
//! silent activator still held what it held last.
//!
//! Reporters end their seconds at different moments, so the newest second is usually known in part. It counts
//! only if that makes the value larger; otherwise the average ends at the newest second that every heard
//! reporter has completed.

mod path_changes;
mod reporter;

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::{Aggregation, Metric, ScalingSpec};
use smallvec::SmallVec;
use vocabulary::{BootId, BurstCapacity, Load, PodCount, PodId, PresentCount, Reporter, Sample, Timestamp};

use self::path_changes::PathSums;
use self::reporter::{
    Correction, CountExcess, PRESENT_COUNTS_FOR, ReporterRequests, SilenceMeaning, Track, UNHEARD_AFTER,
    second_of,
};
use crate::scale_to_zero::RequestsInFlight;
use crate::window::{Second, SecondSums, View, WindowHistory};

#[cfg(test)]
mod tests;

/// More than any reporter can hold. Values are cut to it, so that sums stay exact enough to return to zero
/// with any input.
const LARGEST_VALUE: f64 = 1e9;

/// The windows of one revision, and the latest seconds of each of its reporters.
///
/// Both metrics are collected, so a change of the metric finds a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collector {
    metric: Metric,
    aggregation: Aggregation,
    target_per_pod: f64,
    /// How a second counts in which a ready pod held nothing of its own.
    idle_pod_silence: SilenceMeaning,
    history: WindowHistory,
    path_sums: PathSums,
    /// Sorted; most revisions have few, many of them one, which needs no other place in memory.
    reporters: SmallVec<[(Reporter, Track); 1]>,
}

/// The averages of the windows at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averages {
    /// Over the stable window; what was not heard counts as zero, and what pods and activators may both have
    /// counted counts once.
    pub stable: f64,
    /// Over the panic window; counted as in `stable`.
    pub panic: f64,
    /// As `stable`, but what both counted counts twice, and each unheard second counts: of a ready pod as
    /// exactly on target, of an activator as the last that was heard.
    pub stable_at_most: f64,
    /// As `panic`, counted as in `stable_at_most`.
    pub panic_at_most: f64,
    /// Ready pods without a frame for 3 s or more.
    pub unheard: PodCount,
    /// Activators without a frame for 3 s or more that are not known to be gone.
    pub unheard_activators: PodCount,
}

impl Averages {
    /// Values of which nothing is missing.
    pub fn complete(stable: f64, panic: f64) -> Self {
        Self { stable, panic, stable_at_most: stable, panic_at_most: panic, ..Self::default() }
    }

    /// Whether silence, or a change of the path, leaves open what the values are.
    pub(crate) fn is_open(&self) -> bool {
        self.stable < self.stable_at_most || self.panic < self.panic_at_most
    }
}

impl Collector {
    /// A collector without reporters, whose windows have the spans of the settings and are empty.
    pub fn new(spec: &ScalingSpec) -> Self {
        Self {
            metric: spec.metric,
            aggregation: spec.aggregation,
            target_per_pod: spec.target_per_pod,
            idle_pod_silence: idle_pod_silence(spec),
            history: WindowHistory::new(spec.stable_window, spec.panic_window),
            path_sums: PathSums::default(),
            reporters: SmallVec::new(),
        }
    }

    /// Follows changed settings. What was measured is kept as far as the new windows reach.
    pub fn update(&mut self, spec: &ScalingSpec, now: Timestamp) {
        self.metric = spec.metric;
        self.aggregation = spec.aggregation;
        self.target_per_pod = spec.target_per_pod;
        self.idle_pod_silence = idle_pod_silence(spec);
        let resize = |history: &mut WindowHistory| {
            history.resize(spec.stable_window, spec.panic_window, second_of(now));
        };
        resize(&mut self.history);
        self.path_sums.update(resize);
    }

    /// A link came up; the reporter's second `current_second` runs now. Its history follows through
    /// [`Collector::record`].
    pub fn start_reporter(&mut self, reporter: Reporter, boot: BootId, current_second: u64, now: Timestamp) {
        let correction = self.track(reporter, now).start(boot, current_second, now);
        self.correct(reporter, correction);
    }

    /// A reporter's complete second; a repeat replaces. Its present count, if it had one, is history with
    /// that.
    pub fn record(&mut self, reporter: Reporter, sample: Sample, now: Timestamp) {
        let value = value_of(reporter, &sample.load);
        let rest = self.idle_pod_silence;
        let track = self.track(reporter, now);
        let correction = match reporter {
            Reporter::Pod(_) if value == SecondSums::default() && rest == SilenceMeaning::ZeroOnce => {
                track.rested(sample, now)
            }
            Reporter::Pod(_) | Reporter::Activator(_) => track.complete(sample, value, now),
        };
        self.correct(reporter, correction);
    }

    /// A reporter holds nothing of the revisions that it did not mention for its second. The first such
    /// second is zero; those after it are not written, so that they dilute nothing once a load comes.
    pub fn heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        let correction = self.track(reporter, now).quiet(second, SilenceMeaning::ZeroOnce, now);
        self.correct(reporter, correction);
    }

    /// Records an idle second of a ready pod: a zero, or nothing where the activators are always in the path.
    /// Idempotent.
    pub fn idle(&mut self, pod: PodId, second: u64, now: Timestamp) {
        let rest = self.idle_pod_silence;
        let reporter = Reporter::Pod(pod);
        let correction = self.track(reporter, now).quiet(second, rest, now);
        self.correct(reporter, correction);
    }

    /// Takes in the requests that a reporter holds at this instant: the value of its running second until
    /// that is reported, and a present count until its next frame. A rate cannot be told from it; that
    /// something waits is worth one request per second, as Knative's first report is.
    pub fn present(&mut self, reporter: Reporter, count: PresentCount, now: Timestamp) {
        let concurrency = f64::from(count.in_flight);
        let rate = f64::from(count.waiting.min(1));
        let track = self.track(reporter, now);
        let correction = track.running(SecondSums { concurrency, rate }, now);
        track.note_present(count, now);
        self.correct(reporter, correction);
    }

    /// A link is gone. Measured seconds stay; the present count of the reporter is unknown from now on.
    pub fn lost(&mut self, reporter: Reporter, _now: Timestamp) {
        if let Ok(index) = self.find(reporter) {
            self.reporters[index].1.lose();
        }
    }

    /// A reporter is gone for good. Its seconds stay in the windows.
    pub fn remove(&mut self, reporter: Reporter) {
        if let Ok(index) = self.find(reporter) {
            self.reporters.remove(index);
        }
    }

    /// The sum of the present counts that reporters gave since their last second: requests in flight, or,
    /// where the metric is a rate, waiting requests. `None` without such a count.
    pub fn present_total(&self) -> Option<f64> {
        let mut counts = self.reporters.iter().filter_map(|(_, track)| track.present).peekable();
        counts.peek()?;
        Some(counts.fold(0.0, |sum, count| {
            sum + f64::from(match self.metric {
                Metric::Concurrency => count.in_flight,
                Metric::Rps => count.waiting,
            })
        }))
    }

    /// What is there at this instant, for a decision between ticks: what pods or what activators hold,
    /// whichever is more. While clients go from the one to the other, both say that they have them; what
    /// neither has alone is known from the windows. A pod's count is used for [`PRESENT_COUNTS_FOR`]. An
    /// activator that says nothing goes on holding what it held, but no more than its last count: it says
    /// within the same time that it holds less. `None` if no reporter has said what it holds since its last
    /// second.
    pub(crate) fn surge_total(&self, now: Timestamp) -> Option<f64> {
        self.present_total()?;
        let present = self.reporters.iter().filter_map(|(reporter, track)| {
            let count = track.present_within(PRESENT_COUNTS_FOR, now)?;
            Some((reporter, count))
        });
        let (mut in_pods, mut waiting) = (0.0, 0.0);
        for (reporter, count) in present {
            waiting += f64::from(count.waiting);
            match reporter {
                Reporter::Pod(_) => in_pods += f64::from(count.in_flight),
                Reporter::Activator(_) => {}
            }
        }
        Some(match self.metric {
            Metric::Concurrency => self.held_by_activators(now).max(in_pods),
            // Of a rate it only matters that something waits.
            Metric::Rps => waiting,
        })
    }

    /// What activators hold, without what only seems to be there because they count at different moments.
    /// Requests are counted when an activator's number grows, so a count that is not fresh is a peak that may
    /// be over. Two activators that share a load would be two peaks, and their sum more than a single
    /// activator would ever see of the same requests.
    ///
    /// What an activator held on average in its last second, and what waits there, is there; by how much a
    /// count exceeds that is a fluctuation. Fresh ones are there together. Others were not seen at the same
    /// moment, and add up as independent ones do: the squares.
    fn held_by_activators(&self, now: Timestamp) -> f64 {
        let mut sum = 0.0;
        // By how much counts exceed what lasts: the fresh ones together, and each peak.
        let (mut fresh, mut peaks) = (0.0, SmallVec::<[f64; 4]>::new());
        for (reporter, track) in &self.reporters {
            match reporter {
                Reporter::Pod(_) => {}
                Reporter::Activator(_) => {
                    let held = track.held_now(now);
                    sum += held.present;
                    match held.excess {
                        CountExcess::Fresh(requests) => fresh += requests,
                        CountExcess::Peak(requests) => peaks.push(requests),
                    }
                }
            }
        }
        peaks.push(fresh);
        peaks.retain(|excess| *excess > 0.0);
        // One alone stays what it is, to the last bit: where a load is a multiple of the target, that is a
        // pod.
        if peaks.len() > 1 {
            let squares: f64 = peaks.iter().map(|excess| excess * excess).sum();
            sum += squares.sqrt() - peaks.iter().sum::<f64>();
        }
        sum
    }

    /// The requests in flight, by the last report of each reporter; `None` for none. A silent activator keeps
    /// its last requests, and so does a silent pod as long as it is among the `ready`.
    pub(crate) fn in_flight(&self, ready: &[PodId], now: Timestamp) -> Option<RequestsInFlight> {
        let counts = |reporter: Reporter, track: &Track| match reporter {
            Reporter::Activator(_) => true,
            Reporter::Pod(pod) => track.is_heard(now) || ready.contains(&pod),
        };
        let known = self.reporters.iter().filter(|(reporter, track)| counts(*reporter, track));
        let held: SmallVec<[ReporterRequests; 4]> = known.filter_map(|(_, track)| track.held()).collect();
        let since = held.iter().map(|held| held.since).min()?;
        let concurrency: f64 = held.iter().map(|held| held.concurrency).sum();
        let seconds = u64::try_from(second_of(now).saturating_sub(since)).unwrap_or(0);
        Some(RequestsInFlight { requests: concurrency.ceil(), age: Duration::from_secs(seconds) })
    }

    /// Requests that wait, by the last report of each reporter.
    pub fn waiting(&self) -> u32 {
        self.reporters.iter().fold(0, |sum: u32, (_, track)| {
            sum.saturating_add(track.present.map_or(track.queued, |count| count.waiting))
        })
    }

    /// The demand of a second, over all reporters; zero for one that is not kept or not reported.
    pub(crate) fn demand_at(&self, second: u64) -> SecondSums {
        self.history.at(Second::try_from(second).unwrap_or(Second::MAX))
    }

    /// The seconds that are kept; none if none was reported.
    pub(crate) fn reported_seconds(&self) -> Range<u64> {
        let [first, end] = [self.history.seconds().next(), self.history.newest().map(|newest| newest + 1)]
            .map(|second| second.map_or(0, |second| u64::try_from(second).unwrap_or(0)));
        first..end
    }

    /// Whether every second of the stable window is zero, or older than the window: reporters whose rest is
    /// not written leave the sum of their last load behind.
    pub(crate) fn holds_nothing(&self, now: Timestamp) -> bool {
        self.history.holds_nothing() || self.history.stable(self.metric).is_empty(second_of(now))
    }

    /// The values now; `None` if there is no data: no reporter is heard, or the stable window is empty and no
    /// reporter that is heard has completed a second. (Knative has no data as soon as the window is empty,
    /// because there the silence of an activator cannot be told from its absence; so what was wanted last
    /// stays wanted for ever, even for a revision without any waiting request.)
    pub fn observe(&self, ready: &[PodId], now: Timestamp) -> Option<Averages> {
        let said = self.known_until(now)?;
        let (stable, panic) = (self.history.stable(self.metric), self.history.panic(self.metric));
        let second = second_of(now);
        // The few seconds between the newest write and now are not silence but on their way, as long as a
        // reporter is heard.
        let under_way = second - Second::try_from(UNHEARD_AFTER.as_secs()).unwrap_or(0);
        let settled = if said == Second::MAX { under_way } else { said };
        let reading = WindowReading { aggregation: self.aggregation, under_way, settled };
        let mut averages = Averages::complete(reading.of(stable), reading.of(panic));
        if let Some(once) = self.path_sums.counted_once(self.metric, &self.history) {
            averages.stable = reading.of(once.stable(self.metric)).min(averages.stable);
            averages.panic = reading.of(once.panic(self.metric)).min(averages.panic);
        }
        let (mut unheard_pods, mut unheard_activators) = (0, 0);
        let mut may_be = |load: f64, since: Second| {
            averages.stable_at_most += load * stable.share_between(self.aggregation, since, settled);
            averages.panic_at_most += load * panic.share_between(self.aggregation, since, settled);
        };
        for silent_since in ready.iter().filter_map(|&pod| self.silent_since(pod, now)) {
            unheard_pods += 1;
            may_be(self.target_per_pod, silent_since);
        }
        for track in self.silent_activators(now) {
            unheard_activators += 1;
            may_be(track.newest_value().of(self.metric), track.silent_since());
        }
        averages.unheard = PodCount::new(unheard_pods);
        averages.unheard_activators = PodCount::new(unheard_activators);
        Some(averages)
    }

    /// Whether there is data: whether [`Collector::observe`] has an answer.
    pub(crate) fn has_data(&self, now: Timestamp) -> bool {
        self.known_until(now).is_some()
    }

    /// As [`Collector::settled_second`]; `None` if there is no data.
    fn known_until(&self, now: Timestamp) -> Option<Second> {
        let said = self.settled_second(now)?;
        let is_empty = || self.history.stable(self.metric).is_empty(second_of(now));
        (said != Second::MAX || !is_empty()).then_some(said)
    }

    /// The newest second that every heard reporter has completed, [`Second::MAX`] if none has yet. `None` if
    /// no reporter is heard.
    fn settled_second(&self, now: Timestamp) -> Option<Second> {
        let heard = self.reporters.iter().filter(|(_, track)| track.is_heard(now));
        // A reporter that has not completed a second yet holds no other up.
        heard.map(|(_, track)| track.newest().unwrap_or(Second::MAX)).min()
    }

    /// From which second on a ready pod is silent, if it is not heard.
    fn silent_since(&self, pod: PodId, now: Timestamp) -> Option<Second> {
        let track = self.find(Reporter::Pod(pod)).ok().map(|index| &self.reporters[index].1);
        match track {
            Some(track) if track.is_heard(now) => None,
            Some(track) => Some(track.silent_since()),
            // It may have been busy for as long as any window reaches back.
            None => Some(Second::MIN),
        }
    }

    fn silent_activators(&self, now: Timestamp) -> impl Iterator<Item = &Track> {
        self.reporters.iter().filter_map(move |(reporter, track)| match reporter {
            Reporter::Activator(_) if !track.is_heard(now) => Some(track),
            Reporter::Activator(_) | Reporter::Pod(_) => None,
        })
    }

    fn find(&self, reporter: Reporter) -> Result<usize, usize> {
        self.reporters.binary_search_by_key(&reporter, |&(known, _)| known)
    }

    fn track(&mut self, reporter: Reporter, now: Timestamp) -> &mut Track {
        let index = self.find(reporter).unwrap_or_else(|free| {
            self.reporters.insert(free, (reporter, Track::new(now)));
            free
        });
        &mut self.reporters[index].1
    }

    fn correct(&mut self, reporter: Reporter, correction: Option<Correction>) {
        if let Some(correction) = correction {
            self.path_sums.add(reporter, correction, &self.history);
            self.history.add(correction.second, correction.by);
        }
    }
}

/// Knative finds a zero at every scrape of an idle pod, and scrapes no pod of a revision whose activators are
/// always in the path: there a pod's zeros would dilute the first load after a rest.
fn idle_pod_silence(spec: &ScalingSpec) -> SilenceMeaning {
    match spec.target_burst_capacity {
        BurstCapacity::Unlimited => SilenceMeaning::ZeroOnce,
        BurstCapacity::Requests(_) => SilenceMeaning::ZeroEachSecond,
    }
}

/// The value of a load: a pod leaves out requests that came through an activator, which counts them itself.
fn value_of(reporter: Reporter, load: &Load) -> SecondSums {
    let (proxied_concurrency, proxied_rate) = match reporter {
        Reporter::Pod(_) => (load.proxied_concurrency.value(), load.proxied_request_rate.value()),
        Reporter::Activator(_) => (0.0, 0.0),
    };
    SecondSums {
        concurrency: (load.concurrency.value() - proxied_concurrency).clamp(0.0, LARGEST_VALUE),
        rate: (load.request_rate.value() - proxied_rate).clamp(0.0, LARGEST_VALUE),
    }
}

/// How to read a window.
#[derive(Clone, Copy)]
struct WindowReading {
    aggregation: Aggregation,
    /// Seconds without a write up to here are silence, even if a reporter is late.
    under_way: Second,
    /// The newest second that every heard reporter has completed.
    settled: Second,
}

impl WindowReading {
    fn of(self, window: View<'_>) -> f64 {
        if window.newest().is_none_or(|newest| newest <= self.settled) {
            // Nothing is missing: every heard reporter was silent since the newest write.
            return window.average(self.aggregation, self.settled);
        }
        let everything = window.average(self.aggregation, self.under_way);
        everything.max(window.settled_average(self.aggregation, self.settled))
    }
}
