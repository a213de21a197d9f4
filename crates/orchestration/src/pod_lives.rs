//! When did each pod of a revision come, become ready, begin to leave and go?
//!
//! For people alone: nothing is decided by it. The steps of a start have the times at which they were heard
//! of. The end is seen when a revision is written for readers, so its times are up to a second late, and a
//! pod that came and went between two writings is in none of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use scaling::PodPhase;
use vocabulary::{PodName, Timestamp};

use crate::facts::PodFacts;
use crate::pod_start::StartSteps;

/// As many pods that ended are kept, the last ones.
const ENDED_MAX: usize = 20;

/// The life of one pod until now, as this owner saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentPod {
    /// The steps of its start.
    pub start: StartSteps,
    /// When it was first seen on its way out; `None` while it is not.
    pub ending_at: Option<Timestamp>,
    is_outdated: bool,
}

/// A pod that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedPod {
    /// The name that it had.
    pub name: PodName,
    /// Its life until it was gone.
    pub life: RecentPod,
    /// When it was first missing among the pods.
    pub gone_at: Timestamp,
    /// Why it ended, as far as is known, for people. It has no word that the app printed.
    pub why: String,
}

/// The lives of the pods of one revision.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodLives {
    present: BTreeMap<PodName, RecentPod>,
    ended: VecDeque<EndedPod>,
}

impl PodLives {
    /// The lives at `now`, when these pods are there, each with its start. `story` tells how a pod failed or
    /// was killed, if it did. Lives in which nothing has changed are the former ones, shared.
    pub(crate) fn after<'p>(
        former: Arc<Self>,
        pods: impl Iterator<Item = (&'p PodFacts, StartSteps)> + Clone,
        story: impl Fn(&PodName) -> Option<String>,
        now: Timestamp,
    ) -> Arc<Self> {
        // A revision is written every second while it has traffic, and its pods are mostly the same ones.
        let is_known = |(facts, start): (&'p PodFacts, StartSteps)| {
            former.present.get(&facts.name).is_some_and(|life| life.seen(facts, start, now) == *life)
        };
        if pods.clone().count() == former.present.len() && pods.clone().all(is_known) {
            return former;
        }
        let present: BTreeMap<PodName, RecentPod> = pods
            .map(|(facts, start)| {
                let life = former.present.get(&facts.name).copied().unwrap_or(RecentPod::begun(start));
                (facts.name.clone(), life.seen(facts, start, now))
            })
            .collect();
        let gone = former.present.iter().filter(|(name, _)| !present.contains_key(*name));
        let newly_ended = gone.map(|(name, &life)| {
            let why = story(name).unwrap_or_else(|| life.usual_end().to_owned());
            EndedPod { name: name.clone(), life, gone_at: now, why }
        });
        let mut ended: VecDeque<EndedPod> = former.ended.iter().cloned().chain(newly_ended).collect();
        ended.drain(..ended.len().saturating_sub(ENDED_MAX));
        Arc::new(Self { present, ended })
    }

    /// The life of a pod that is there.
    pub(crate) fn of(&self, name: &PodName) -> Option<RecentPod> {
        self.present.get(name).copied()
    }

    /// The pods that ended last, the first of them first.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &EndedPod> {
        self.ended.iter()
    }
}

impl RecentPod {
    fn begun(start: StartSteps) -> Self {
        Self { start, ending_at: None, is_outdated: false }
    }

    fn seen(self, facts: &PodFacts, start: StartSteps, now: Timestamp) -> Self {
        let is_ending = facts.leaving || facts.phase == PodPhase::Terminating;
        let ending_at = self.ending_at.or(is_ending.then_some(now));
        Self { start, ending_at, is_outdated: facts.outdated }
    }

    /// Why a pod ends that did not fail and was not killed.
    fn usual_end(self) -> &'static str {
        match (self.is_outdated, self.ending_at) {
            (true, _) => "it ran an older template",
            (false, Some(_)) => "it was told to end: fewer pods were wanted, or it was deleted",
            (false, None) => "it was gone without having been told to end",
        }
    }
}
