//! What goes wrong in a made-up world, and when?
//!
//! A fault is a value of the plan, with all its numbers, so that a world without it differs in nothing else.

use std::cmp::Ordering;
use std::time::Duration;

use vocabulary::PodCount;

use crate::world_event::ServiceNumber;

/// A world has so many owners, and as many buckets.
pub(crate) const OWNERS: usize = 2;
/// A world has so many activators.
pub(crate) const ACTIVATORS: usize = 2;

/// One of the two owners, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnerNumber(pub(crate) usize);

/// One of the two activators, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ActivatorNumber(pub(crate) usize);

/// A pod of a Service that is there when a fault begins: the n-th, counted round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PodChoice {
    pub(crate) service: ServiceNumber,
    pub(crate) nth: usize,
}

/// A fault and its time, since the world began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    pub(crate) at: Duration,
    pub(crate) fault: WorldFault,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorldFault {
    /// The process of an owner is killed, and another one of its name begins after the pause.
    OwnerRestarts { owner: OwnerNumber, pause: Duration },
    /// Both owners are killed at once.
    BothOwnersRestart { pause: Duration },
    /// An owner does nothing for a while, and then goes on as if no time had passed.
    OwnerStalls { owner: OwnerNumber, length: Duration },
    /// A bucket goes to the other owner; the former one hears of that late.
    BucketMoves { bucket: u16, notice: Duration },
    /// An owner can reach no pod and no activator for a while, but the platform.
    OwnerIsCutOff { owner: OwnerNumber, length: Duration },
    /// What the platform tells an owner comes late for a while, in order.
    FactsAreLate { owner: OwnerNumber, delay: Duration, length: Duration },
    /// The wall clock of an owner is set forward.
    WallClockIsSet { owner: OwnerNumber, forward: Duration },
    /// The process of an activator is killed with all that it holds, and another one begins after the pause.
    ActivatorRestarts { activator: ActivatorNumber, pause: Duration },
    /// Both activators are killed at once.
    BothActivatorsRestart { pause: Duration },
    /// An activator does nothing for a while.
    ActivatorStalls { activator: ActivatorNumber, length: Duration },
    /// An activator is told to end, serves until no route names it, and begins anew after the pause.
    ActivatorLeaves { activator: ActivatorNumber, pause: Duration },
    /// The connection of a link to an activator is lost, and there is none for a while.
    ActivatorLinkIsLost { owner: OwnerNumber, activator: ActivatorNumber, pause: Duration },
    /// Words between an owner and an activator take longer for a while.
    ActivatorLinkIsSlow { owner: OwnerNumber, activator: ActivatorNumber, delay: Duration, length: Duration },
    /// The connection of the link to a pod is lost, and there is none for a while.
    PodLinkIsLost { pod: PodChoice, pause: Duration },
    /// The link of a pod to the owner of its bucket breaks, and words on each link between the two take
    /// longer for a while: the pod hears late that the owner has dialled again.
    PodLinkIsSlow { pod: PodChoice, delay: Duration, length: Duration },
    /// A pod is killed with all that it holds; the platform starts another one.
    PodCrashes { pod: PodChoice },
    /// The app of a pod fails its probe for a while.
    PodTurnsUnready { pod: PodChoice, length: Duration },
    /// Pods that start now take so many times as long as usual.
    StartsAreSlow { factor: u32, length: Duration },
    /// The next pods of a Service end before they are ready; the platform starts others.
    StartsFail { service: ServiceNumber, count: u32 },
    /// The platform cannot carry out orders about a Service for a while, and tries again.
    OrdersAreRetried { service: ServiceNumber, length: Duration },
    /// The platform refuses the next count that is ordered for a Service.
    CountIsRefused { service: ServiceNumber },
    /// Another client writes the count of a Service.
    CountIsWritten { service: ServiceNumber, count: PodCount },
}

/// The kinds of faults, of which each seed first draws those that its world has. Slow links to pods are drawn
/// apart, with the takeovers in their midst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    OwnerRestarts,
    BothOwnersRestart,
    OwnerStalls,
    BucketMoves,
    OwnerIsCutOff,
    FactsAreLate,
    WallClockIsSet,
    ActivatorRestarts,
    BothActivatorsRestart,
    ActivatorStalls,
    ActivatorLeaves,
    ActivatorLinkIsLost,
    ActivatorLinkIsSlow,
    PodLinkIsLost,
    PodCrashes,
    PodTurnsUnready,
    StartsAreSlow,
    StartsFail,
    OrdersAreRetried,
    CountIsRefused,
    CountIsWritten,
    ClocksDrift,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 22] = [
        Self::OwnerRestarts,
        Self::BothOwnersRestart,
        Self::OwnerStalls,
        Self::BucketMoves,
        Self::OwnerIsCutOff,
        Self::FactsAreLate,
        Self::WallClockIsSet,
        Self::ActivatorRestarts,
        Self::BothActivatorsRestart,
        Self::ActivatorStalls,
        Self::ActivatorLeaves,
        Self::ActivatorLinkIsLost,
        Self::ActivatorLinkIsSlow,
        Self::PodLinkIsLost,
        Self::PodCrashes,
        Self::PodTurnsUnready,
        Self::StartsAreSlow,
        Self::StartsFail,
        Self::OrdersAreRetried,
        Self::CountIsRefused,
        Self::CountIsWritten,
        Self::ClocksDrift,
    ];
}

impl WorldFault {
    /// The fault in a world that lacks one Service; `None` if it was about that one.
    pub(crate) fn without(self, dropped: ServiceNumber) -> Option<Self> {
        let kept = |service: ServiceNumber| match service.0.cmp(&dropped.0) {
            Ordering::Less => Some(service),
            Ordering::Equal => None,
            Ordering::Greater => Some(ServiceNumber(service.0 - 1)),
        };
        let kept_pod = |pod: PodChoice| Some(PodChoice { service: kept(pod.service)?, ..pod });
        Some(match self {
            Self::PodLinkIsLost { pod, pause } => Self::PodLinkIsLost { pod: kept_pod(pod)?, pause },
            Self::PodLinkIsSlow { pod, delay, length } => {
                Self::PodLinkIsSlow { pod: kept_pod(pod)?, delay, length }
            }
            Self::PodCrashes { pod } => Self::PodCrashes { pod: kept_pod(pod)? },
            Self::PodTurnsUnready { pod, length } => Self::PodTurnsUnready { pod: kept_pod(pod)?, length },
            Self::StartsFail { service, count } => Self::StartsFail { service: kept(service)?, count },
            Self::OrdersAreRetried { service, length } => {
                Self::OrdersAreRetried { service: kept(service)?, length }
            }
            Self::CountIsRefused { service } => Self::CountIsRefused { service: kept(service)? },
            Self::CountIsWritten { service, count } => {
                Self::CountIsWritten { service: kept(service)?, count }
            }
            Self::OwnerRestarts { .. }
            | Self::BothOwnersRestart { .. }
            | Self::OwnerStalls { .. }
            | Self::BucketMoves { .. }
            | Self::OwnerIsCutOff { .. }
            | Self::FactsAreLate { .. }
            | Self::WallClockIsSet { .. }
            | Self::ActivatorRestarts { .. }
            | Self::BothActivatorsRestart { .. }
            | Self::ActivatorStalls { .. }
            | Self::ActivatorLeaves { .. }
            | Self::ActivatorLinkIsLost { .. }
            | Self::ActivatorLinkIsSlow { .. }
            | Self::StartsAreSlow { .. } => self,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_dropped_service_go_and_those_of_later_ones_move_up() {
        let refused = |service| WorldFault::CountIsRefused { service: ServiceNumber(service) };
        assert_eq!(refused(0).without(ServiceNumber(1)), Some(refused(0)));
        assert_eq!(refused(1).without(ServiceNumber(1)), None);
        assert_eq!(refused(2).without(ServiceNumber(1)), Some(refused(1)));
        let other = WorldFault::BothOwnersRestart { pause: Duration::from_secs(1) };
        assert_eq!(other.without(ServiceNumber(0)), Some(other));
    }
}
