//! Which Services, loads and faults does a seed make?
//!
//! First comes which kinds of faults exist at all, so that worlds with few kinds are as frequent as worlds
//! with all; then the Services; then the faults. A plan holds every number that decides what happens, so that
//! a smaller plan can be tried when the whole one fails.
//!
//! In the first part of a world faults happen under a load that comes and goes. In the second part no fault
//! begins or lasts, and the load is steady: a request comes at equal intervals, and takes an equal time. The
//! need for pods lies then halfway between two whole numbers of pods, so that every world without an error
//! ends with the same count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use settings::ClusterConfig;

use super::drifting_clock::EntityDrifts;
use super::fault::PlannedFault;
use super::fault_drawing::{DrawnFaults, draw_faults, draw_takeovers};
use super::revision_plan::{RevisionPlan, draw_revision};
use crate::random::RandomStream;
use crate::world_event::ServiceNumber;

/// A world has at most so many Services.
const SERVICES_MAX: usize = 4;
/// The longest time in which requests come, of the part with faults.
const TROUBLED_MAX: Duration = Duration::from_secs(50 * 60);
const TROUBLED_LEAST: Duration = Duration::from_secs(15 * 60);
/// What a world may need after its last fault beside two stable windows: the grace period before zero, the
/// time limit of requests, and the starts of pods.
const REST_BESIDE_WINDOWS: Duration = Duration::from_secs(180);
/// The twin of a world has as little as this of the load before the steady one.
const TWIN_QUIET_FROM: Duration = Duration::from_secs(60);
/// All that decides what happens in one made-up world.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    pub(crate) seed: u64,
    pub(crate) cluster: Arc<ClusterConfig>,
    pub(crate) revisions: Vec<RevisionPlan>,
    pub(crate) faults: Vec<PlannedFault>,
    pub(crate) drifts: EntityDrifts,
    /// Since the world began: no fault begins or lasts from then on.
    pub(crate) quiet_from: Duration,
    /// The length of the whole world.
    pub(crate) length: Duration,
}

impl WorldPlan {
    /// The world that a seed makes.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = RandomStream::of(seed, "world", "plan");
        let cluster = Arc::new(draw_cluster(&mut random));
        let quiet_from = random.span(TROUBLED_LEAST, TROUBLED_MAX);
        let services = 1 + random.index(SERVICES_MAX);
        let revisions: Vec<RevisionPlan> =
            (0..services).map(|place| draw_revision(seed, place, &cluster, quiet_from)).collect();
        let drawn = draw_faults(seed, quiet_from, &revisions);
        Self::with_rest(seed, cluster, revisions, drawn, quiet_from)
    }

    /// A world of so many Services in which, for so long, owners restart and take over from each other;
    /// nothing else goes wrong. It lasts for some minutes more.
    pub fn of_takeovers(seed: u64, services: usize, troubled: Duration) -> Self {
        let cluster = Arc::new(ClusterConfig::default());
        let revisions: Vec<RevisionPlan> =
            (0..services).map(|place| draw_revision(seed, place, &cluster, troubled)).collect();
        let drawn = draw_takeovers(seed, troubled, &revisions);
        Self::with_rest(seed, cluster, revisions, drawn, troubled)
    }

    fn with_rest(
        seed: u64,
        cluster: Arc<ClusterConfig>,
        revisions: Vec<RevisionPlan>,
        drawn: DrawnFaults,
        quiet_from: Duration,
    ) -> Self {
        let rest = revisions.iter().map(|revision| {
            let spec = &revision.spec;
            spec.stable_window * 2 + spec.scale_down_delay + spec.scale_to_zero_grace_period
        });
        let length = quiet_from + rest.max().unwrap_or_default() + REST_BESIDE_WINDOWS;
        let DrawnFaults { faults, drifts } = drawn;
        Self { seed, cluster, revisions, faults, drifts, quiet_from, length }
    }

    /// A short world with the same Services and the same steady load, in which nothing goes wrong.
    pub(crate) fn twin(&self) -> Self {
        let rest = self.length.saturating_sub(self.quiet_from);
        Self {
            faults: Vec::new(),
            drifts: EntityDrifts::NONE,
            quiet_from: TWIN_QUIET_FROM,
            length: TWIN_QUIET_FROM + rest,
            ..self.clone()
        }
    }

    /// The same world without one of its Services, and without the faults that are about that one.
    pub(crate) fn without_service(&self, dropped: ServiceNumber) -> Self {
        let mut plan = self.clone();
        plan.revisions.remove(dropped.0);
        plan.faults = self
            .faults
            .iter()
            .filter_map(|planned| Some(PlannedFault { fault: planned.fault.without(dropped)?, ..*planned }))
            .collect();
        plan
    }

    /// How many faults the world has.
    pub fn faults(&self) -> usize {
        self.faults.len()
    }

    /// How many Services the world has.
    pub fn services(&self) -> usize {
        self.revisions.len()
    }

    /// How long the world lasts.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The number from which the world follows, as long as nothing of it was dropped.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

fn draw_cluster(random: &mut RandomStream) -> ClusterConfig {
    let data = [
        ("max-scale-up-rate", random.pick(&["1000", "10", "2"])),
        ("max-scale-down-rate", random.pick(&["2", "3"])),
    ];
    let data: BTreeMap<String, String> =
        data.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    ClusterConfig::parse(&data).expect("these values are allowed").value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::fault::WorldFault;

    #[test]
    fn a_seed_makes_one_plan_and_two_seeds_make_two() {
        let text = |seed| format!("{:?}", WorldPlan::of_seed(seed));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn no_fault_of_a_plan_begins_when_it_is_quiet_and_a_world_ends_with_rest() {
        for seed in 0..200 {
            let plan = WorldPlan::of_seed(seed);
            assert!((1..=SERVICES_MAX).contains(&plan.services()));
            assert!(plan.faults.iter().all(|planned| planned.at < plan.quiet_from), "seed {seed}");
            assert!(plan.faults.is_sorted_by_key(|planned| planned.at), "seed {seed}");
            assert!(plan.length > plan.quiet_from + REST_BESIDE_WINDOWS);
        }
    }

    #[test]
    fn a_bucket_moves_before_the_first_word_on_a_slow_link_to_a_pod_arrives() {
        let mut slow_links = 0;
        for seed in 0..200 {
            let faults = WorldPlan::of_seed(seed).faults;
            for (place, planned) in faults.iter().enumerate() {
                let WorldFault::PodLinkIsSlow { delay, .. } = planned.fault else { continue };
                let moves = faults[place..].iter().any(|other| {
                    matches!(other.fault, WorldFault::BucketMoves { notice, .. } if notice == delay)
                        && other.at <= planned.at + delay
                });
                assert!(moves, "seed {seed}");
                slow_links += 1;
            }
        }
        assert!((20..2_000).contains(&slow_links), "{slow_links} slow links");
    }

    #[test]
    fn a_plan_of_takeovers_has_as_many_services_as_it_was_asked_for() {
        let plan = WorldPlan::of_takeovers(1, 20, Duration::from_secs(900));
        assert_eq!(plan.services(), 20);
        assert!(plan.faults() > 0 && plan.length() > Duration::from_secs(900), "{} faults", plan.faults());
    }

    #[test]
    fn a_plan_without_a_service_has_no_fault_of_it() {
        let plan = WorldPlan::of_seed(3);
        let mut smaller = plan.clone();
        while smaller.services() > 0 {
            smaller = smaller.without_service(ServiceNumber(0));
        }
        assert!(smaller.faults() <= plan.faults());
    }
}
