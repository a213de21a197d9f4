//! Which faults happen in a world, and when?

use std::time::Duration;

use vocabulary::PodCount;

use super::drifting_clock::{ClockDrift, EntityDrifts};
use super::fault::{
    ACTIVATORS, ActivatorNumber, FaultKind, OWNERS, OwnerNumber, PlannedFault, PodChoice, WorldFault,
};
use super::revision_plan::RevisionPlan;
use crate::random::{RandomStream, span_of};
use crate::world_event::ServiceNumber;

/// No fault begins sooner: the Services have just been deployed.
const FIRST: Duration = Duration::from_secs(30);
/// No fault lasts longer, so none begins later than this before it is quiet.
const LONGEST: Duration = Duration::from_secs(120);
/// The greatest drift of a clock, in parts per million: a hundred times that of a bad quartz.
const DRIFT_MAX: usize = 5_000;
/// When the bucket of a pod whose link is slow moves at the earliest: its owner has dialled again by then.
const DIALLED_AGAIN: Duration = Duration::from_millis(100);
/// How much longer words on a slow link to a pod take: less than the lease of a bucket.
const SLOWNESS_LEAST: Duration = Duration::from_millis(500);
const SLOWNESS_MAX: Duration = Duration::from_secs(3);
/// The mean number of seconds between two faults of a world in which nothing but takeovers goes wrong.
const TAKEOVER_GAP: f64 = 120.0;

/// The faults of a world.
#[derive(Clone, Debug)]
pub(crate) struct DrawnFaults {
    /// In the order of their times.
    pub(crate) faults: Vec<PlannedFault>,
    pub(crate) drifts: EntityDrifts,
}

/// First the kinds that exist, each with the same chance; then faults of these kinds, one after the other.
pub(crate) fn draw_faults(seed: u64, quiet_from: Duration, revisions: &[RevisionPlan]) -> DrawnFaults {
    let mut random = RandomStream::of(seed, "world", "faults");
    let share = random.pick(&[0.1, 0.3, 0.6, 1.0]);
    let kinds: Vec<FaultKind> = FaultKind::ALL.into_iter().filter(|_| random.happens(share)).collect();
    let drifts =
        if kinds.contains(&FaultKind::ClocksDrift) { draw_drifts(&mut random) } else { EntityDrifts::NONE };
    let mean_gap = random.pick(&[45.0, 120.0, 300.0]);
    let mut faults = draw_faults_of(&mut random, &kinds, mean_gap, quiet_from, revisions);
    // As far apart as the faults of any one kind are.
    let gap_of_kind = mean_gap * f64::from(u32::try_from(kinds.len() + 1).unwrap_or(u32::MAX));
    faults.extend(draw_slow_pod_links(seed, share, gap_of_kind, quiet_from, revisions.len()));
    faults.sort_by_key(|planned| planned.at);
    DrawnFaults { faults, drifts }
}

/// Slow links to pods, if they exist, so many seconds apart on average. They have a stream of their own: a
/// world without them is the one that its seed made before there were any.
fn draw_slow_pod_links(
    seed: u64,
    share: f64,
    mean_gap: f64,
    quiet_from: Duration,
    services: usize,
) -> Vec<PlannedFault> {
    let mut random = RandomStream::of(seed, "world", "slow links to pods");
    let mut faults = Vec::new();
    if !random.happens(share) {
        return faults;
    }
    let mut at = FIRST + span_of(random.exponential(mean_gap));
    while at + LONGEST < quiet_from {
        faults.extend(draw_slow_pod_link(&mut random, at, services));
        at += span_of(random.exponential(mean_gap));
    }
    faults
}

/// The link of a pod breaks, and its owner dials again. Before the first word on that link has come, a bucket
/// moves, in half of the cases that of the pod; and its former owner hears of that only after the pod has
/// heard both owners. By chance alone a takeover would hardly ever fall into these seconds.
fn draw_slow_pod_link(random: &mut RandomStream, at: Duration, services: usize) -> [PlannedFault; 2] {
    let pod = PodChoice { service: ServiceNumber(random.index(services)), nth: random.index(8) };
    let delay = random.span(SLOWNESS_LEAST, SLOWNESS_MAX);
    let length = random.span(delay, LONGEST / 4);
    let moves_after = random.span(DIALLED_AGAIN, delay);
    let moves = WorldFault::BucketMoves { bucket: random.pick(&[0, 1]), notice: delay };
    [
        PlannedFault { at, fault: WorldFault::PodLinkIsSlow { pod, delay, length } },
        PlannedFault { at: at + moves_after, fault: moves },
    ]
}

/// Owners are killed, stall, and get and lose buckets, and nothing else goes wrong.
pub(crate) fn draw_takeovers(seed: u64, quiet_from: Duration, revisions: &[RevisionPlan]) -> DrawnFaults {
    let mut random = RandomStream::of(seed, "world", "takeovers");
    let kinds = [FaultKind::OwnerRestarts, FaultKind::OwnerStalls, FaultKind::BucketMoves];
    let faults = draw_faults_of(&mut random, &kinds, TAKEOVER_GAP, quiet_from, revisions);
    DrawnFaults { faults, drifts: EntityDrifts::NONE }
}

/// Faults of these kinds, so many seconds apart on average.
fn draw_faults_of(
    random: &mut RandomStream,
    kinds: &[FaultKind],
    mean_gap: f64,
    quiet_from: Duration,
    revisions: &[RevisionPlan],
) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    let mut at = FIRST + span_of(random.exponential(mean_gap));
    while !kinds.is_empty() && at + LONGEST < quiet_from {
        let kind = random.pick(kinds);
        if let Some(fault) = draw_fault(random, kind, revisions) {
            faults.push(PlannedFault { at, fault });
        }
        at += span_of(random.exponential(mean_gap));
    }
    faults
}

fn draw_drifts(random: &mut RandomStream) -> EntityDrifts {
    let mut draw = || {
        let parts = u32::try_from(random.index(DRIFT_MAX)).unwrap_or_default();
        if random.happens(0.5) { ClockDrift::Gains(parts) } else { ClockDrift::Loses(parts) }
    };
    EntityDrifts { owners: [draw(), draw()], activators: [draw(), draw()], pods: [draw(), draw(), draw()] }
}

/// A fault of a kind; `None` for a kind that is no event.
fn draw_fault(random: &mut RandomStream, kind: FaultKind, revisions: &[RevisionPlan]) -> Option<WorldFault> {
    let owner = OwnerNumber(random.index(OWNERS));
    let activator = ActivatorNumber(random.index(ACTIVATORS));
    let service = ServiceNumber(random.index(revisions.len()));
    let pod = PodChoice { service, nth: random.index(8) };
    // Most are short, and some as long as they may be.
    let longest = random.pick(&[Duration::from_secs(3), Duration::from_secs(20), LONGEST]);
    let length = random.span(Duration::from_millis(50), longest);
    let delay = random.span(Duration::from_millis(20), Duration::from_secs(3));
    let count = u32::try_from(random.index(4)).unwrap_or_default();
    Some(match kind {
        FaultKind::OwnerRestarts => WorldFault::OwnerRestarts { owner, pause: length },
        FaultKind::BothOwnersRestart => WorldFault::BothOwnersRestart { pause: length },
        FaultKind::OwnerStalls => WorldFault::OwnerStalls { owner, length: length / 4 },
        FaultKind::BucketMoves => {
            let bucket = random.pick(&[0, 1]);
            WorldFault::BucketMoves { bucket, notice: length / 8 }
        }
        FaultKind::OwnerIsCutOff => WorldFault::OwnerIsCutOff { owner, length },
        FaultKind::FactsAreLate => WorldFault::FactsAreLate { owner, delay, length },
        FaultKind::WallClockIsSet => {
            let forward = random.span(Duration::ZERO, Duration::from_secs(7_200));
            WorldFault::WallClockIsSet { owner, forward }
        }
        FaultKind::ActivatorRestarts => WorldFault::ActivatorRestarts { activator, pause: length / 2 },
        FaultKind::BothActivatorsRestart => WorldFault::BothActivatorsRestart { pause: length / 4 },
        FaultKind::ActivatorStalls => WorldFault::ActivatorStalls { activator, length: length / 8 },
        FaultKind::ActivatorLeaves => WorldFault::ActivatorLeaves { activator, pause: length / 2 },
        FaultKind::ActivatorLinkIsLost => WorldFault::ActivatorLinkIsLost { owner, activator, pause: length },
        FaultKind::ActivatorLinkIsSlow => WorldFault::ActivatorLinkIsSlow { owner, activator, delay, length },
        FaultKind::PodLinkIsLost => WorldFault::PodLinkIsLost { pod, pause: length },
        FaultKind::PodCrashes => WorldFault::PodCrashes { pod },
        FaultKind::PodTurnsUnready => WorldFault::PodTurnsUnready { pod, length },
        FaultKind::StartsAreSlow => WorldFault::StartsAreSlow { factor: 2 + count * 3, length },
        FaultKind::StartsFail => WorldFault::StartsFail { service, count: count + 1 },
        FaultKind::OrdersAreRetried => WorldFault::OrdersAreRetried { service, length: length / 4 },
        FaultKind::CountIsRefused => WorldFault::CountIsRefused { service },
        FaultKind::CountIsWritten => {
            let most = revisions[service.0].spec.max_scale.unwrap_or(PodCount::new(4));
            let least = revisions[service.0].spec.min_scale;
            WorldFault::CountIsWritten { service, count: PodCount::new(count).min(most).max(least) }
        }
        FaultKind::ClocksDrift => return None,
    })
}
