//! How much of what pods and activators say of the same second may be the same requests?
//!
//! A client whose path changes is counted by a pod before and by an activator after that, or the other way
//! round, and by both at no time. But each reporter measures seconds of its own, and puts its present count
//! in the place of a whole one, so there are seconds of our axis in which both have the client. Requests that
//! one kind lost from a second to those that follow, and that the other kind had gained until then, may have
//! moved from one kind to the other.
//!
//! The answer is made of the sums of whole windows each time they are read, and of nothing else: when a word
//! came, in which order, and whether it was said for the first time or again to a new owner makes no
//! difference.

use std::iter;

use serde::{Deserialize, Serialize};
use settings::Metric;
use vocabulary::Reporter;

use super::reporter::Correction;
use crate::window::{Second, SecondSums, WindowHistory};

/// By how many seconds two reporters can lie apart on our axis: each lies by less than one beside the second
/// that it was anchored to.
const APART_MAX: usize = 2;

/// Less than this is what sums of floats leave behind.
const LEAST_SHARE: f64 = 1e-6;

/// Which kind of reporter, pods or activators, held the requests that the windows add up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) enum PathSums {
    /// Nothing was held lately but by pods, or nothing at all.
    #[default]
    Pods,
    /// Nothing was held lately but by activators.
    Activators,
    /// Both held something; boxed, because most revisions at most times are served in one way.
    Both(Box<PathParts>),
}

/// The parts of windows that two kinds of reporters share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PathParts {
    in_pods: WindowHistory,
    /// The newest second for which each kind reported requests, or corrected such a report.
    newest_of_pods: Second,
    newest_of_activators: Second,
}

impl PathSums {
    /// Follows what a reporter says, before it is added to the windows, of which `all` is the sum.
    pub(super) fn add(&mut self, reporter: Reporter, correction: Correction, all: &WindowHistory) {
        let Correction { second, by } = correction;
        if by == SecondSums::default() {
            return;
        }
        match (&mut *self, reporter) {
            (Self::Both(parts), _) => {
                parts.add(reporter, correction);
                if !all.covers(parts.newest_of_activators) {
                    *self = Self::Pods;
                } else if !all.covers(parts.newest_of_pods) {
                    *self = Self::Activators;
                }
            }
            (Self::Pods, Reporter::Pod(_)) | (Self::Activators, Reporter::Activator(_)) => {}
            (Self::Pods, Reporter::Activator(_)) if all.holds_nothing() => *self = Self::Activators,
            (Self::Activators, Reporter::Pod(_)) if all.holds_nothing() => *self = Self::Pods,
            (Self::Pods, Reporter::Activator(_)) => {
                // Until now everything was the pods'.
                let newest_of_pods = all.newest().unwrap_or(second);
                let in_pods = all.clone();
                *self =
                    Self::Both(Box::new(PathParts { in_pods, newest_of_pods, newest_of_activators: second }));
            }
            (Self::Activators, Reporter::Pod(_)) => {
                let newest_of_activators = all.newest().unwrap_or(second);
                let mut in_pods = all.emptied();
                in_pods.add(second, by);
                *self =
                    Self::Both(Box::new(PathParts { in_pods, newest_of_pods: second, newest_of_activators }));
            }
        }
    }

    /// Resizes the windows of the pods' part as the windows of the sum are resized.
    pub(super) fn update(&mut self, resize: impl FnOnce(&mut WindowHistory)) {
        match self {
            Self::Pods | Self::Activators => {}
            Self::Both(parts) => resize(&mut parts.in_pods),
        }
    }

    /// The windows with what both kinds may have counted of one metric counted once; `None` where that is
    /// what they say already.
    pub(super) fn counted_once(&self, metric: Metric, all: &WindowHistory) -> Option<WindowHistory> {
        let parts = match self {
            Self::Pods | Self::Activators => return None,
            Self::Both(parts) => parts,
        };
        let mut once = None;
        for (second, shared) in parts.shared(metric, all).filter(|(_, shared)| *shared >= LEAST_SHARE) {
            once.get_or_insert_with(|| all.clone()).add(second, -SecondSums::only(metric, shared));
        }
        once
    }
}

impl PathParts {
    fn add(&mut self, reporter: Reporter, Correction { second, by }: Correction) {
        match reporter {
            Reporter::Pod(_) => {
                self.in_pods.add(second, by);
                self.newest_of_pods = self.newest_of_pods.max(second);
            }
            Reporter::Activator(_) => self.newest_of_activators = self.newest_of_activators.max(second),
        }
    }

    /// The seconds that are kept, and how many requests of each both kinds may have counted.
    fn shared(&self, metric: Metric, all: &WindowHistory) -> impl Iterator<Item = (Second, f64)> {
        let seconds = KeptSeconds(self.seconds(metric, all).collect());
        all.seconds().enumerate().map(move |(place, second)| (second, seconds.shared(place)))
    }

    /// All seconds that are kept, the oldest first; pods held nothing in those after the newest of their own.
    fn seconds(&self, metric: Metric, all: &WindowHistory) -> impl Iterator<Item = PathSecond> {
        all.seconds().next().into_iter().flat_map(move |first| {
            let in_pods = self.in_pods.sums_from(first).chain(iter::repeat(SecondSums::default()));
            all.sums_from(first).zip(in_pods).map(move |(sums, in_pods)| {
                let pods = in_pods.of(metric);
                PathSecond { pods, activators: (sums.of(metric) - pods).max(0.0) }
            })
        })
    }
}

/// The requests that pods and activators held in one second of our axis.
#[derive(Clone, Copy, Debug)]
struct PathSecond {
    pods: f64,
    activators: f64,
}

impl PathSecond {
    fn total(self) -> f64 {
        self.pods + self.activators
    }
}

/// The newest seconds without a gap, the oldest first.
struct KeptSeconds(Vec<PathSecond>);

impl KeptSeconds {
    /// How many requests of that second both kinds may have counted.
    fn shared(&self, place: usize) -> f64 {
        // Seconds that are no longer kept cannot be compared.
        if place < APART_MAX {
            return 0.0;
        }
        let PathSecond { pods, activators } = self.0[place];
        // As in most seconds: what only one kind held, both cannot have counted.
        if pods <= 0.0 || activators <= 0.0 {
            return 0.0;
        }
        let to_activators =
            self.lost_after(place, |at| at.pods).min(self.gained_until(place, |at| at.activators));
        let to_pods = self.lost_after(place, |at| at.activators).min(self.gained_until(place, |at| at.pods));
        // Reporters of one kind lie apart too, so what a short change of the path does to their sum is
        // smeared: it shows as a peak of both between lower sums.
        let beside = self.before(place).chain(self.after(place)).map(PathSecond::total);
        let peak = (self.0[place].total() - beside.fold(0.0, f64::max)).max(0.0);
        to_activators.max(to_pods).max(peak.min(pods).min(activators))
    }

    fn lost_after(&self, place: usize, held: impl Fn(PathSecond) -> f64) -> f64 {
        // A second that has not come yet is zero: until it has, what a kind held may have left it.
        let not_yet = (self.0.len() <= place + APART_MAX).then_some(0.0);
        let least = self.after(place).map(&held).chain(not_yet).fold(f64::INFINITY, f64::min);
        (held(self.0[place]) - least).max(0.0)
    }

    fn gained_until(&self, place: usize, held: impl Fn(PathSecond) -> f64) -> f64 {
        let least = self.before(place).map(&held).fold(f64::INFINITY, f64::min);
        (held(self.0[place]) - least).max(0.0)
    }

    fn before(&self, place: usize) -> impl Iterator<Item = PathSecond> {
        self.0[place - APART_MAX..place].iter().copied()
    }

    fn after(&self, place: usize) -> impl Iterator<Item = PathSecond> {
        let until = self.0.len().min(place + 1 + APART_MAX);
        self.0[place + 1..until].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_parts_of_all_seconds_are_those_of_each() {
        let sums = |value| SecondSums::only(Metric::Concurrency, value);
        let mut all = WindowHistory::new(Duration::from_secs(6), Duration::from_secs(2));
        let mut in_pods = all.clone();
        for (second, pods, activators) in [
            (100, 1.0, 0.0),
            (101, 2.0, 1.0),
            (104, 0.0, 3.0),
            (107, 0.5, 0.0),
            (112, 0.0, 2.0),
            (130, 0.0, 1.0),
        ] {
            if pods > 0.0 {
                in_pods.add(second, sums(pods));
            }
            all.add(second, sums(pods + activators));
            let parts =
                PathParts { in_pods: in_pods.clone(), newest_of_pods: second, newest_of_activators: second };
            let found = parts.seconds(Metric::Concurrency, &all).map(|at| (at.pods, at.activators));
            let found: Vec<(f64, f64)> = found.collect();
            let each = all.seconds().map(|second| {
                let pods = in_pods.at(second).concurrency;
                (pods, all.at(second).concurrency - pods)
            });
            assert_eq!(found, each.collect::<Vec<_>>(), "at {second}");
        }
    }
}
