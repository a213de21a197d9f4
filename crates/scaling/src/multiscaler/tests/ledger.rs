//! What the ledger of a revision says, beside a count from outside.

use proptest::prelude::*;

use super::*;
use crate::history::{ColdStarts, RevisionLedger};

/// Long enough for everything that a test lets happen.
const SINCE: Duration = Duration::from_hours(48);

fn told_the_time(mut world: World) -> World {
    world.handle(Event::WallClockRead { since_epoch: Duration::from_secs(1_700_002_830) });
    world
}

fn ledger(world: &World) -> RevisionLedger {
    let history = world.multiscaler.published_history(REVISION).expect("it was used");
    history.ledger(SINCE, world.now)
}

/// The pods of a revision for a while, by their state.
#[derive(Clone, Debug)]
struct PodStretch {
    milliseconds: u32,
    starting: u32,
    ready: u32,
    ending: u32,
    in_flight: u32,
}

fn stretch() -> impl Strategy<Value = PodStretch> {
    (1_u32..20_000, 0_u32..4, 0_u32..5, 0_u32..3, 0_u32..3).prop_map(
        |(milliseconds, starting, ready, ending, in_flight)| PodStretch {
            milliseconds,
            starting,
            ready,
            ending,
            in_flight,
        },
    )
}

impl PodStretch {
    /// Pods of each state have numbers of their own.
    fn facts(&self) -> Vec<PodFact> {
        let starting = (0..self.starting).map(|id| running(PodId(id), false));
        let ready = (100..100 + self.ready).map(|id| running(PodId(id), true));
        let ending = (200..200 + self.ending)
            .map(|id| PodFact { phase: PodPhase::Terminating, ..running(PodId(id), true) });
        starting.chain(ready).chain(ending).collect()
    }
}

/// The seconds of pods in one state, counted at every instant.
#[derive(Debug, Default)]
struct OutsideCount {
    pods: u32,
    pod_seconds: f64,
    /// How many pods have come into the state: each may be counted for a second more or less.
    entered: u32,
}

impl OutsideCount {
    fn pass_with(&mut self, pods: u32, seconds: f64) {
        self.entered += pods.saturating_sub(self.pods);
        self.pods = pods;
        self.pod_seconds += f64::from(pods) * seconds;
    }

    fn agrees_with(&self, counted: u64) -> bool {
        let counted = Duration::from_secs(counted).as_secs_f64();
        (counted - self.pod_seconds).abs() <= f64::from(self.entered)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn each_pod_second_is_in_the_ledger_once(stretches in prop::collection::vec(stretch(), 1..12)) {
        let mut world = told_the_time(serving(spec()));
        let [mut starting, mut ready, mut ending] = [0, 1, 2].map(|_| OutsideCount::default());
        let mut passed = 0.0;
        for stretch in &stretches {
            world.handle(Event::PodsChanged { revision: REVISION, pods: stretch.facts() });
            for pod in (100..100 + stretch.ready).map(PodId) {
                if world.linked.insert(pod) {
                    world.starts(Reporter::Pod(pod), Vec::new());
                }
                world.in_pods.insert(pod, stretch.in_flight);
            }
            let seconds = f64::from(stretch.milliseconds) / 1000.0;
            starting.pass_with(stretch.starting, seconds);
            ready.pass_with(stretch.ready, seconds);
            ending.pass_with(stretch.ending, seconds);
            passed += seconds;
            world.run_until(passed);
        }
        // Without pods, until every second with pods is closed.
        world.handle(Event::PodsChanged { revision: REVISION, pods: Vec::new() });
        world.run_until(passed + 6.0);
        let counted = ledger(&world).pod_seconds;
        prop_assert!(starting.agrees_with(counted.starting), "{counted:?}, {starting:?}");
        prop_assert!(ready.agrees_with(counted.busy + counted.idle), "{counted:?}, {ready:?}");
        prop_assert!(ending.agrees_with(counted.ending), "{counted:?}, {ending:?}");
        let history = world.multiscaler.published_history(REVISION).expect("it was used");
        prop_assert_eq!(history.totals(world.now).pod_seconds, counted, "counters and ledger tell the same");
    }
}

#[test]
fn a_wake_is_a_cold_start_from_zero_and_further_pods_are_growth() {
    let mut world = told_the_time(at_zero(spec()));
    world.run_until(10.0);
    world.present(250, 250);
    let wanted = world.status().wanted.value();
    assert!(wanted > 1, "{wanted}");
    world.pods(wanted);
    world.run_until(12.0);
    world.ready(wanted);
    world.run_until(20.0);
    // Panic mode lowers no count, so each pod that is wanted by now was a raise.
    let wanted = world.status().wanted.value();
    let ledger = ledger(&world);
    let growth = u64::from(wanted) - 1;
    let expected = ColdStarts { from_zero: 1, growth, rollout: 0, failed_pod: 0 };
    assert_eq!(ledger.cold_starts, expected);
    let avoided: Vec<u64> = ledger.least_counts().map(|(_, what_if)| what_if.avoided_cold_starts).collect();
    let expected: Vec<u64> = (0..6).map(|least: u64| least.min(u64::from(wanted))).collect();
    assert_eq!(avoided, expected);
    assert!(ledger.waits.waited >= 250 && ledger.waits.wakes_ended == 1, "{:?}", ledger.waits);
}

#[test]
fn pods_in_the_place_of_others_are_counted_by_their_cause() {
    let mut world = told_the_time(serving(ScalingSpec { min_scale: PodCount::ONE, ..spec() }));
    let mut see = |pods: Vec<PodFact>, until: f64| {
        world.handle(Event::PodsChanged { revision: REVISION, pods });
        world.run_until(until);
    };
    // The pod fails and another one comes; then a rollout, the new pod beside the old one.
    see(Vec::new(), 5.0);
    see(vec![running(PodId(1), false)], 10.0);
    see(vec![running(PodId(1), true)], 15.0);
    let outdated = PodFact { is_outdated: true, ..running(PodId(1), true) };
    see(vec![outdated, running(PodId(2), false)], 20.0);
    see(vec![running(PodId(2), true)], 40.0);
    let expected = ColdStarts { from_zero: 0, growth: 0, rollout: 1, failed_pod: 1 };
    assert_eq!(ledger(&world).cold_starts, expected);
}
