//! The activators that hold requests: those of this process, and those of the process that it has taken over
//! from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use activator::{Activator, HeldRequests, Holdings, ThreadHeartbeats};
use orchestration::{ActivatorFacts, ActivatorLife};
use parking_lot::Mutex;
use platform_local::LocalPlatform;
use vocabulary::{ReplicaName, RevisionName};

use crate::up::take_over::Predecessor;

/// An activator of this process, and how autoscalers reach it.
pub(super) struct RunningActivator {
    pub(super) activator: Activator,
    pub(super) facts: ActivatorFacts,
}

impl RunningActivator {
    /// Ends it once it has answered what it holds, or after so long.
    pub(super) async fn retire(self, activators: Arc<AnnouncedActivators>, at_most: Duration) {
        self.activator.drained(at_most).await;
        activators.remove(&self.facts.name);
    }
}

/// The activators that hold requests, as the platform is told.
pub(super) struct AnnouncedActivators {
    platform: Arc<LocalPlatform>,
    present: Mutex<Vec<PresentActivator>>,
}

/// One activator that holds requests.
struct PresentActivator {
    facts: ActivatorFacts,
    /// What it holds, and whether its threads move; `None` for an activator of another process.
    own: Option<(Holdings, ThreadHeartbeats)>,
}

impl AnnouncedActivators {
    pub(super) fn none(platform: &Arc<LocalPlatform>) -> Arc<Self> {
        Arc::new(Self { platform: Arc::clone(platform), present: Mutex::default() })
    }

    pub(super) fn add(&self, running: &RunningActivator) {
        let own = (running.activator.holdings(), running.activator.heartbeats());
        self.change(|present| {
            present.push(PresentActivator { facts: running.facts.clone(), own: Some(own) });
        });
    }

    /// Announces that the activator accepts nothing more, and finishes what it holds.
    pub(super) fn retire(&self, name: &ReplicaName) {
        self.change(|present| {
            for activator in present.iter_mut().filter(|activator| activator.facts.name == *name) {
                activator.facts.life = ActivatorLife::Terminating;
            }
        });
    }

    fn remove(&self, name: &ReplicaName) {
        self.change(|present| present.retain(|activator| activator.facts.name != *name));
    }

    /// The requests that all activators of this process hold, by revision.
    pub(super) fn held(&self) -> Vec<HeldRequests> {
        let mut all = BTreeMap::<RevisionName, HeldRequests>::new();
        let present = self.present.lock();
        let holdings = present.iter().filter_map(|activator| activator.own.as_ref());
        for held in holdings.flat_map(|(holdings, _)| holdings.list()) {
            match all.get_mut(&held.revision) {
                Some(sum) => sum.requests += held.requests,
                None => drop(all.insert(held.revision.clone(), held)),
            }
        }
        all.into_values().collect()
    }

    /// Of each thread of those that accept, by the activator's name, how often it has shown that it moves.
    pub(super) fn heartbeats(&self) -> BTreeMap<(ReplicaName, usize), u64> {
        let mut all = BTreeMap::new();
        for PresentActivator { facts, own } in self.present.lock().iter() {
            // Threads of one that retires end with what they serve, and would look as if they hung.
            let is_at_work = facts.life == ActivatorLife::Ready;
            let beats = own.as_ref().filter(|_| is_at_work).map(|(_, heartbeats)| heartbeats.counts());
            for (thread, beats) in beats.unwrap_or_default().into_iter().enumerate() {
                all.insert((facts.name.clone(), thread), beats);
            }
        }
        all
    }

    /// The facts of all activators that hold requests.
    pub(super) fn facts(&self) -> Vec<ActivatorFacts> {
        self.present.lock().iter().map(|activator| activator.facts.clone()).collect()
    }

    /// The platform hears of changes in their order.
    fn change(&self, change: impl FnOnce(&mut Vec<PresentActivator>)) {
        let mut present = self.present.lock();
        change(&mut present);
        self.platform.set_activators(present.iter().map(|activator| activator.facts.clone()).collect());
    }
}

/// Makes the activators of the process before known for as long as it answers what they hold.
pub(super) fn announce_predecessor(
    predecessor: Predecessor,
    activators: Arc<AnnouncedActivators>,
) -> anyhow::Result<impl Future<Output = ()>> {
    let (theirs, connection) = predecessor.into_parts()?;
    let present_of = |facts: &ActivatorFacts| PresentActivator { facts: facts.clone(), own: None };
    activators.change(|present| present.extend(theirs.iter().map(present_of)));
    Ok(async move {
        Predecessor::ended(connection).await;
        for facts in theirs {
            activators.remove(&facts.name);
        }
    })
}
