//! Which states have the worlds reached?
//!
//! A check that is never asked proves nothing. Each state here is one that errors hide in; a run of many
//! worlds that has missed one of them is no proof.

use std::fmt;

macro_rules! states {
    ($($(#[$doc:meta])* $state:ident,)*) => {
        /// A state that made-up worlds have to reach.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ReachedState {
            $($(#[$doc])* $state,)*
        }

        impl ReachedState {
            /// All states, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$state,)*];
        }
    };
}

states! {
    /// A decision was made in panic mode.
    PanicEntered,
    /// A decision was made in stable mode after one in panic mode.
    PanicLeft,
    /// The count of a Service was ordered to be zero.
    ScaledToZero,
    /// The count of a Service was ordered to be above zero when it was zero.
    ScaledFromZero,
    /// The greatest count of a Service was ordered.
    ReachedMaxScale,
    /// A bucket got another owner while a pod of it was leaving.
    TookOverWhileDraining,
    /// A bucket got another owner while requests waited.
    TookOverWhileWaiting,
    /// An owner was killed and began again.
    OwnerRestarted,
    /// No process of an owner was there.
    AllOwnersGone,
    /// An owner went on after a stall that was longer than its lease.
    LeaseRanOutInStall,
    /// An order came from an owner that had lost the bucket.
    OrderFenced,
    /// An activator passed over an order of an earlier owner or of an older version.
    StaleOrderIgnored,
    /// A pod kept its settings against those of an earlier owner.
    StaleSettingsIgnored,
    /// The platform refused a count.
    OrderRefused,
    /// The platform tried an order again.
    OrderRetried,
    /// An order was replaced by a later one before the platform could carry it out.
    OrderSuperseded,
    /// An order found another count than the one that it was decided upon.
    CountConflict,
    /// An activator was killed and began again.
    ActivatorRestarted,
    /// No process of an activator was there.
    AllActivatorsGone,
    /// An activator ended after its owners had said that no route names it.
    ActivatorReleased,
    /// An activator went on after a stall.
    ActivatorStalled,
    /// An owner told an activator of a Service that others serve.
    RevisionRetired,
    /// The connection of a link to an activator was lost.
    ActivatorLinkLost,
    /// The connection of a link to a pod was lost.
    PodLinkLost,
    /// A pod was killed with what it held.
    PodCrashed,
    /// A pod ended before it was ready.
    PodStartFailed,
    /// A ready pod failed its probe.
    PodTurnedUnready,
    /// A pod was released after every acknowledgement.
    PodReleasedAcknowledged,
    /// A pod was released because the time for acknowledgements was over.
    PodReleasedOutOfTime,
    /// A request waited for a first pod.
    WaitedFromZero,
    /// A request waited while pods were ready.
    WaitedForSlot,
    /// A request waited until its time limit.
    WaitedTooLong,
    /// A request was refused because a queue was full.
    QueueFull,
    /// A request came to a pod that did not start it.
    RequestNotStarted,
    /// A request came to a pod of another activator's slice that had no room.
    FoundNoRoom,
    /// A request ended because its activator was killed.
    LostWithActivator,
    /// A request ended because its pod was killed.
    LostWithPod,
    /// A request went past the queue of its activator.
    ServedDirect,
    /// A route began to lead past the activators.
    RouteTurnedDirect,
    /// A route began to lead through the activators.
    RouteTurnedToActivators,
    /// Several activators divided the pods of a Service.
    PodsDivided,
}

/// How many times each state was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedStates {
    counts: Vec<u64>,
}

impl Default for ReachedStates {
    fn default() -> Self {
        Self { counts: vec![0; ReachedState::ALL.len()] }
    }
}

impl ReachedStates {
    pub(crate) fn note(&mut self, state: ReachedState) {
        if let Some(place) = ReachedState::ALL.iter().position(|known| *known == state) {
            self.counts[place] += 1;
        }
    }

    /// Adds what other worlds have reached.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The counts in their order, for a run that goes on later.
    pub(crate) fn as_text(&self) -> String {
        let counts: Vec<String> = self.counts.iter().map(ToString::to_string).collect();
        counts.join(",")
    }

    /// What [`ReachedStates::as_text`] has written; `None` if it is of other states.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let counts: Vec<u64> = text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        (counts.len() == ReachedState::ALL.len()).then_some(Self { counts })
    }

    /// The states that no world has reached.
    pub fn missing(&self) -> Vec<ReachedState> {
        let counted = ReachedState::ALL.iter().zip(&self.counts);
        counted.filter(|(_, count)| **count == 0).map(|(state, _)| *state).collect()
    }
}

/// One line for each state, with its count.
impl fmt::Display for ReachedStates {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (state, count) in ReachedState::ALL.iter().zip(&self.counts) {
            writeln!(to, "{count:>12} {state:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_was_reached_is_missing_no_more() {
        let (mut one, mut other) = (ReachedStates::default(), ReachedStates::default());
        assert_eq!(one.missing(), ReachedState::ALL);
        one.note(ReachedState::PanicEntered);
        other.note(ReachedState::PodsDivided);
        one.add(&other);
        assert_eq!(one.missing().len(), ReachedState::ALL.len() - 2);
        assert!(one.to_string().contains("1 PodsDivided"), "{one}");
    }
}
