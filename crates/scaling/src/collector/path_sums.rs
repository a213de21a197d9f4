//! How much of what pods and activators say of the same second may be the same requests?
//!
//! A client whose path changes is counted by a pod before and by an activator after that, or the other way
//! round, and by both at no time. But each reporter measures seconds of its own, and puts its present count
//! in the place of a whole one, so there are seconds of our axis in which both have the client. What one kind
//! lost from a second to those that follow, and the other had gained until then, may have gone from the one
//! to the other.

use smallvec::SmallVec;
use vocabulary::Reporter;

use super::reporter::{Correction, Track};
use crate::config::Metric;
use crate::window::{Second, SecondSums};

/// By how many seconds two reporters can lie apart on our axis: each lies by less than one beside the second
/// that it was anchored to.
const APART_MAX: Second = 2;

/// How many of the newest seconds are remembered: the three that reporters can replace, and those before them
/// that these are compared with.
const KEPT: usize = 8;

/// A word changes what may be shared in its second and in those that are compared with it.
const CHANGES_MAX: usize = 5;

/// Less than this is what sums of floats leave behind.
const LEAST_SHARE: f64 = 1e-6;

/// What pods and activators said of the newest seconds.
#[derive(Clone, Debug)]
pub(super) struct PathSums {
    newest: Second,
    seconds: [PathSecond; KEPT],
    /// The newest second in which both may have counted the same requests.
    newest_shared: Second,
}

/// One second of our axis.
#[derive(Clone, Copy, Debug, Default)]
struct PathSecond {
    pods: SecondSums,
    activators: SecondSums,
    /// What both may have counted.
    shared: SecondSums,
}

impl PathSums {
    /// What these said, as far as it can be replaced.
    pub(super) fn of(reporters: &[(Reporter, Track)]) -> Self {
        let empty = [PathSecond::default(); KEPT];
        let mut sums = Self { newest: Second::MIN / 2, seconds: empty, newest_shared: Second::MIN };
        for (reporter, track) in reporters {
            for (second, by) in track.values() {
                sums.add(*reporter, Correction { second, by });
            }
        }
        sums
    }

    /// Follows what a reporter says. What is too old is dropped.
    pub(super) fn add(&mut self, reporter: Reporter, Correction { second, by }: Correction) {
        if second > self.newest {
            let oldest_kept = second - kept() + 1;
            for new in oldest_kept.max(self.newest + 1)..=second {
                self.seconds[place(new)] = PathSecond::default();
            }
            self.newest = second;
        }
        if self.keeps(second) {
            let known = &mut self.seconds[place(second)];
            match reporter {
                Reporter::Pod(_) => known.pods += by,
                Reporter::Activator(_) => known.activators += by,
            }
        }
    }

    /// After something was said of `second`: by how much more of each second both may have counted.
    pub(super) fn changes_around(&mut self, second: Second) -> SmallVec<[(Second, SecondSums); CHANGES_MAX]> {
        let mut changes = SmallVec::new();
        for second in second - APART_MAX..=(second + APART_MAX).min(self.newest) {
            // Of what is forgotten by now it was said when it was known.
            if !self.keeps(second - APART_MAX) {
                continue;
            }
            let shared = SecondSums {
                concurrency: self.shared(second, Metric::Concurrency),
                rate: self.shared(second, Metric::Rps),
            };
            let known = &mut self.seconds[place(second)].shared;
            let more = shared - std::mem::replace(known, shared);
            if shared != SecondSums::default() {
                self.newest_shared = self.newest_shared.max(second);
            }
            if more != SecondSums::default() {
                changes.push((second, more));
            }
        }
        changes
    }

    /// The newest second in which both may have counted the same requests; the least number there is if they
    /// never did.
    pub(super) fn newest_shared(&self) -> Second {
        self.newest_shared
    }

    fn shared(&self, second: Second, metric: Metric) -> f64 {
        let pods = |at: Second| self.at(at).pods.of(metric);
        let activators = |at: Second| self.at(at).activators.of(metric);
        let to_activators = lost_after(pods, second).min(gained_until(activators, second));
        let to_pods = lost_after(activators, second).min(gained_until(pods, second));
        // Reporters of one kind lie apart too, so what a short change of the path does to their sum is
        // smeared: it shows as a peak of both between lower sums.
        let total = |at: Second| pods(at) + activators(at);
        let beside = (1..=APART_MAX).flat_map(|by| [total(second - by), total(second + by)]);
        let peak = (total(second) - beside.fold(0.0, f64::max)).max(0.0);
        let smeared = peak.min(pods(second)).min(activators(second));
        let shared = to_activators.max(to_pods).max(smeared);
        if shared < LEAST_SHARE { 0.0 } else { shared }
    }

    /// Zero for what is not known, and so for a second that has not come yet: until it has, what a kind held
    /// may have left it.
    fn at(&self, second: Second) -> PathSecond {
        if self.keeps(second) { self.seconds[place(second)] } else { PathSecond::default() }
    }

    fn keeps(&self, second: Second) -> bool {
        second <= self.newest && second > self.newest - kept()
    }
}

fn lost_after(held: impl Fn(Second) -> f64, second: Second) -> f64 {
    let least = (1..=APART_MAX).map(|by| held(second + by)).fold(f64::INFINITY, f64::min);
    (held(second) - least).max(0.0)
}

fn gained_until(held: impl Fn(Second) -> f64, second: Second) -> f64 {
    let least = (1..=APART_MAX).map(|by| held(second - by)).fold(f64::INFINITY, f64::min);
    (held(second) - least).max(0.0)
}

fn kept() -> Second {
    Second::try_from(KEPT).expect("it is small")
}

fn place(second: Second) -> usize {
    usize::try_from(second.rem_euclid(kept())).expect("a remainder of a positive number is not negative")
}
