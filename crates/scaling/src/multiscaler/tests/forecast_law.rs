//! A forecast only raises: the count is never below that of a revision of class kpa that has the same load,
//! and of the ready pods as many as it asked for; nor below that of class hpa.

use std::sync::LazyLock;

use proptest::prelude::*;
use settings::hpa::MetricSpec;
use settings::{Metric, PredictionSettings, read_count_schedule};
use vocabulary::{MilliValue, Percentage, ScaleUpForward};

use super::forecast::{HOUR, MONDAY, eight_days_until, half_hourly_peak};
use super::former_record::{FormerRecord, former_record};
use super::hpa::cpu;
use super::*;
use crate::history::RevisionHistory;

/// Something that happens to both revisions.
#[derive(Clone, Copy, Debug)]
enum SharedHappening {
    /// Seconds pass, with a report in each.
    Wait(u8),
    /// The activator holds this much from the next report on.
    InActivator(u16),
    /// The activator holds this much, and says so at once.
    Present(u16),
    /// All pods together use so many thousandths of a core from now on.
    UsesCores(u16),
    /// As many pods as were asked for with the forecast are ready.
    PodsFollow,
    /// The wall clock is set: forward, or back.
    ClockSet(u32),
    /// Another owner follows, which finds this of the former one.
    OwnerChanges(FormerRecord),
}

fn shared_happening() -> impl Strategy<Value = SharedHappening> {
    prop_oneof![
        6 => (1_u8..90).prop_map(SharedHappening::Wait),
        3 => (0_u16..900).prop_map(SharedHappening::InActivator),
        2 => (0_u16..900).prop_map(SharedHappening::Present),
        2 => (0_u16..9000).prop_map(SharedHappening::UsesCores),
        4 => Just(SharedHappening::PodsFollow),
        1 => (0_u32..7 * 86_400).prop_map(SharedHappening::ClockSet),
        1 => former_record().prop_map(SharedHappening::OwnerChanges),
    ]
}

/// The part of the twin's pod-seconds that a forecast may add.
const BUDGET_PERCENT: f64 = 10.0;

/// Eight days with a peak in each hour, until ten o'clock.
static PEAKS: LazyLock<RevisionHistory> = LazyLock::new(|| eight_days_until(MONDAY + 10 * HOUR));

/// Lines of a schedule that begin and end within the hours of the test.
fn schedule_lines() -> impl Strategy<Value = String> {
    let line = (0_u32..1439, 1_u32..30, 0_u32..15);
    let line = line.prop_map(|(from, length, min)| {
        let to = (from + length) % 1440;
        format!("{:02}:{:02}-{:02}:{:02} min={min}\n", from / 60, from % 60, to / 60, to % 60)
    });
    prop::collection::vec(line, 1..40).prop_map(|lines| lines.concat())
}

/// Settings of class kpa. There is a pod at all times: what becomes of the last one depends on the route, and
/// that on the pods that are really there.
fn settings_with_pods() -> impl Strategy<Value = ScalingSpec> {
    let bounds = (1_u32..4, prop::option::of(4_u32..30), 0_u32..5);
    let times = (6_u64..40, 0_u64..40);
    (bounds, times, any::<bool>()).prop_map(|(bounds, times, surge_evaluation)| {
        let (min, max, activation) = bounds;
        let (window, delay) = times;
        ScalingSpec {
            min_scale: PodCount::new(min),
            max_scale: max.map(PodCount::new),
            activation_scale: PodCount::new(activation),
            stable_window: Duration::from_secs(window),
            scale_down_delay: Duration::from_secs(delay),
            surge_evaluation,
            ..spec()
        }
    })
}

/// Settings of class hpa by which seven requests in flight need a pod, or half a core does, or both.
fn settings_of_class_hpa() -> impl Strategy<Value = ScalingSpec> {
    let own = || MetricSpec::Own { metric: Metric::Concurrency, target: MilliValue::new(7_000) };
    let metrics = prop_oneof![Just(vec![own()]), Just(vec![cpu()]), Just(vec![own(), cpu()])];
    (metrics, 1_u32..4, 4_u32..30, any::<bool>()).prop_map(|(metrics, min, max, surge_evaluation)| {
        let spec = super::hpa::settings(min, max, metrics);
        // Without an own metric no request is a surge.
        ScalingSpec { surge_evaluation: surge_evaluation && spec.surge_evaluation, ..spec }
    })
}

fn settings_of_any_class() -> impl Strategy<Value = ScalingSpec> {
    prop_oneof![2 => settings_with_pods(), 1 => settings_of_class_hpa()]
}

/// A revision with a forecast, and its twin without.
struct TwinWorlds {
    world: World,
    twin: World,
    ready: u32,
    ready_of_twin: u32,
    /// What all pods of either together use, in thousandths of a core.
    milli_cores: u32,
    seconds: u32,
    /// The second since 1970 that the wall clock would have shown in the beginning.
    first_second: u64,
}

impl TwinWorlds {
    fn new(spec: &ScalingSpec, lines: Option<&str>) -> Self {
        let schedule = lines.map(|lines| {
            Arc::new(read_count_schedule("the test", lines).expect("lines with a least count agree"))
        });
        let prediction = PredictionSettings {
            observes_only: false,
            budget: Percentage::clamped(BUDGET_PERCENT),
            cold_start_worth: Duration::from_mins(20),
            scale_up_forward: ScaleUpForward::Measured,
            bin: Duration::from_secs(60),
        };
        let expecting = ScalingSpec { prediction: Some(prediction), schedule, ..spec.clone() };
        let [world, twin] = [expecting, spec.clone()].map(|spec| {
            let mut world = World::new(spec);
            world.handle(Event::WallClockRead { since_epoch: Duration::from_secs(MONDAY + 10 * HOUR) });
            world.create(1);
            world.activator_starts();
            world.acknowledged(true);
            world.ready(1);
            world
        });
        Self {
            world,
            twin,
            ready: 1,
            ready_of_twin: 1,
            milli_cores: 0,
            seconds: 0,
            first_second: MONDAY + 10 * HOUR,
        }
    }

    fn happen(&mut self, happening: SharedHappening) {
        match happening {
            SharedHappening::Wait(_) => {}
            SharedHappening::InActivator(count) => {
                self.each(|world| world.in_activator = count.into());
            }
            SharedHappening::Present(count) => {
                self.each(|world| {
                    world.present(count.into(), count.into());
                });
            }
            SharedHappening::UsesCores(milli_cores) => self.milli_cores = milli_cores.into(),
            SharedHappening::PodsFollow => {
                self.ready = self.world.status().wanted.value();
                self.world.ready(self.ready);
            }
            SharedHappening::ClockSet(second) => {
                self.first_second = MONDAY + u64::from(second) - u64::from(self.seconds);
                let since_epoch = Duration::from_secs(MONDAY + u64::from(second));
                self.each(|world| {
                    world.handle(Event::WallClockRead { since_epoch });
                });
            }
            SharedHappening::OwnerChanges(former) => self.change_owners(former),
        }
        self.limit_twin();
    }

    /// Where nothing is known of the past, the platform's count stands for what the class asked for: for that
    /// of the twin, too. A count that is damaged counts for both.
    fn change_owners(&mut self, former: FormerRecord) {
        let since_epoch = Duration::from_secs(self.first_second + u64::from(self.seconds));
        let wanted = self.world.status().wanted;
        let history = former.history(&self.world);
        let of_twin = match former {
            FormerRecord::Nothing => wanted,
            FormerRecord::Whole => self.twin.status().wanted,
            FormerRecord::Damaged { reactive, .. } => wanted.min(PodCount::new(reactive)),
        };
        self.ready_of_twin = self.ready.min(of_twin.value());
        let begin = |former: &World, wanted: PodCount, history: Option<Box<RevisionHistory>>, ready: u32| {
            let mut next = World::new(ScalingSpec::clone(&former.spec));
            (next.now, next.in_activator, next.waiting) = (former.now, former.in_activator, former.waiting);
            next.handle(Event::WallClockRead { since_epoch });
            next.create(wanted.value());
            if let Some(history) = history {
                next.handle(Event::HistoryRestored { revision: REVISION, history });
            }
            next.activator_starts();
            next.acknowledged(true);
            next.ready(ready);
            next
        };
        self.world = begin(&self.world, wanted, history, self.ready);
        self.twin = begin(&self.twin, of_twin, None, self.ready_of_twin);
    }

    fn pass_second(&mut self) {
        self.seconds += 1;
        let seconds = f64::from(self.seconds);
        self.each(|world| world.run_until(seconds));
        self.limit_twin();
    }

    /// Of the pods that are ready the twin has as many as it asked for.
    fn limit_twin(&mut self) {
        let ready = self.ready.min(self.twin.status().wanted.value());
        if ready != self.ready_of_twin {
            self.ready_of_twin = ready;
            self.twin.ready(ready);
        }
        // Either has the same load, which its pods divide.
        self.world.share_cores(self.ready, self.milli_cores);
        self.twin.share_cores(self.ready_of_twin, self.milli_cores);
    }

    fn each(&mut self, act: impl Fn(&mut World)) {
        act(&mut self.world);
        act(&mut self.twin);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_count_is_never_below_that_of_the_twin(
        spec in settings_of_any_class(),
        lines in schedule_lines(),
        happenings in prop::collection::vec(shared_happening(), 1..40),
    ) {
        let mut worlds = TwinWorlds::new(&spec, Some(&lines));
        for happening in happenings {
            worlds.happen(happening);
            let seconds = if let SharedHappening::Wait(seconds) = happening { seconds } else { 0 };
            for _ in 0..seconds {
                worlds.pass_second();
                let [with, without] = [&worlds.world, &worlds.twin].map(|world| world.status().wanted);
                prop_assert!(with >= without, "{} and {} after {} s", with, without, worlds.seconds);
                prop_assert!(spec.max_scale.is_none_or(|max| with <= max), "{} pods", with);
            }
        }
    }
}

/// Two hours and a half in which demand comes as in the hours before, or a multiple of it.
#[derive(Clone, Debug)]
struct PeakHours {
    /// How many times as much comes in each ten minutes.
    factors: Vec<u32>,
    /// The seconds after which pods follow the count.
    pods_follow: u32,
}

fn peak_hours() -> impl Strategy<Value = PeakHours> {
    let factors = prop::collection::vec(prop_oneof![3 => Just(1_u32), 1 => 0_u32..4], 15);
    (factors, 1_u32..80).prop_map(|(factors, pods_follow)| PeakHours { factors, pods_follow })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_forecast_raises_the_count_and_spends_no_more_than_its_budget(
        spec in settings_of_any_class(),
        hours in peak_hours(),
    ) {
        let spec = ScalingSpec { target_per_pod: 7.0, total_per_pod: 10.0, ..spec };
        let mut worlds = TwinWorlds::new(&spec, None);
        let history = Box::new(PEAKS.clone());
        worlds.world.handle(Event::HistoryRestored { revision: REVISION, history });
        let (mut extra, mut reactive) = (0.0, 0.0);
        for second in 0..150 * 60_u32 {
            let factor = hours.factors[usize::try_from(second / 600).expect("fifteen of them")];
            let demand = half_hourly_peak(MONDAY + 10 * HOUR + u64::from(second)) * factor;
            worlds.each(|world| world.in_activator = demand);
            if second % hours.pods_follow == 0 {
                worlds.happen(SharedHappening::PodsFollow);
            }
            worlds.pass_second();
            let [with, without] = [&worlds.world, &worlds.twin].map(|world| world.status().wanted);
            prop_assert!(with >= without, "{} and {} after {} s", with, without, worlds.seconds);
            let early = with.as_f64() - without.as_f64();
            extra += early;
            reactive += without.as_f64();
            // A second is looked at when it ends, so what changed within it is not seen.
            let limit = (reactive + without.as_f64()) * BUDGET_PERCENT / 100.0 + early;
            prop_assert!(early <= 0.0 || extra <= limit, "{} of {} pod-seconds", extra, reactive);
        }
    }
}
