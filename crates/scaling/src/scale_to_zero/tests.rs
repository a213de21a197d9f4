//! The vectors L and M of the reference, as tables.

use vocabulary::Timestamp;

use super::*;

const ACTIVE: fn() -> RevisionActivity = || RevisionActivity::Active { since: Timestamp::ZERO };
const INACTIVE: fn() -> RevisionActivity =
    || RevisionActivity::Inactive { since: Timestamp::ZERO, because: InactiveBecause::NoTraffic };
const ACTIVATING: fn() -> RevisionActivity = || RevisionActivity::Activating { since: Timestamp::ZERO };

/// One row of the table: what the rules look at, and what they answer.
struct Row {
    id: &'static str,
    present: u32,
    desired: Option<u32>,
    spec: ScalingSpec,
    activity: RevisionActivity,
    seconds: u64,
    initialization: Initialization,
    path: Path,
    in_flight: Option<RequestsInFlight>,
}

/// The settings from which the vectors start.
fn spec() -> ScalingSpec {
    let seconds = Duration::from_secs;
    ScalingSpec {
        scale_to_zero_grace_period: seconds(60),
        stable_window: seconds(300),
        activation_timeout: seconds(151),
        ..ScalingSpec::default()
    }
}

/// A row in which the activators have acknowledged just now, and the initial scale was reached.
fn row(id: &'static str, present: u32, desired: i64, activity: RevisionActivity, seconds: u64) -> Row {
    let desired = u32::try_from(desired).ok();
    Row {
        id,
        present,
        desired,
        spec: spec(),
        activity,
        seconds,
        initialization: Initialization::Done,
        path: Path::Acknowledged(Duration::ZERO),
        in_flight: None,
    }
}

impl Row {
    fn with(mut self, change: impl FnOnce(&mut ScalingSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    fn proxied_for(self, seconds: u64) -> Self {
        self.on(Path::Acknowledged(Duration::from_secs(seconds)))
    }

    fn on(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// That many requests have been in flight without a break for 42 s.
    fn holding(mut self, requests: f64) -> Self {
        self.in_flight = Some(RequestsInFlight { requests, age: seconds(42) });
        self
    }

    /// The initial scale was not reached yet.
    fn fresh(mut self) -> Self {
        self.initialization = Initialization::Pending;
        self
    }

    fn plan(&self) -> Plan {
        let situation = Situation {
            spec: &self.spec,
            present: PodCount::new(self.present),
            activity: self.activity,
            activity_age: Duration::from_secs(self.seconds),
            initialization: self.initialization,
            path: self.path,
            in_flight: self.in_flight,
        };
        apply_scale(self.desired.map(PodCount::new), &situation)
    }

    /// Checks the count (-1: not known), what is written to the platform, and when to look again.
    fn gives(&self, want: i64, patch: Option<u32>, recheck: Option<u64>) {
        let plan = self.plan();
        let written = plan.applied().map(PodCount::value).filter(|&count| count != self.present);
        let answer = (plan.want.map(PodCount::value), written, plan.recheck.map(|rest| rest.as_secs()));
        assert_eq!(answer, (u32::try_from(want).ok(), patch, recheck), "{}", self.id);
        assert_linked(self.id, self.desired, &plan);
    }
}

/// Each reason starts where the former ended, the first at the decider's answer, the last ends at what is
/// asked for.
fn assert_linked(id: &str, desired: Option<u32>, plan: &Plan) {
    let mut number = desired.map(PodCount::new);
    for reason in &plan.reasons {
        assert_eq!(reason.before, number, "{id}: {reason:?}");
        number = reason.after;
    }
    if plan.apply {
        assert_eq!(number, plan.want, "{id}: the reasons lead to the answer");
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn active_revisions_keep_a_pod_for_a_stable_window() {
    row("L1", 1, 0, ACTIVE(), 299).gives(1, None, Some(1));
    row("L2", 10, 0, ACTIVE(), 299).gives(1, Some(1), Some(1));
    row("L3", 3, 0, ACTIVE(), 10).gives(1, Some(1), Some(290));
    row("L4", 1, 0, ACTIVE(), 300).on(Path::Direct).gives(0, None, None);
    row("L5", 1, 0, ACTIVE(), 300).on(Path::Unacknowledged).gives(0, None, Some(3));
    let window = |spec: &mut ScalingSpec| spec.stable_window = seconds(45);
    row("L6 at 44", 1, 0, ACTIVE(), 44).with(window).gives(1, None, Some(1));
    row("L6 at 300", 1, 0, ACTIVE(), 300).on(Path::Direct).with(window).gives(0, None, None);
}

#[test]
fn the_last_pod_waits_for_grace_retention_and_acknowledgement() {
    let retention = |count: u64| move |spec: &mut ScalingSpec| spec.pod_retention = seconds(count);
    row("L7", 1, 0, INACTIVE(), 60).gives(0, Some(0), None);
    row("L8", 1, 0, INACTIVE(), 59).gives(0, None, Some(60));
    row("L9", 1, 0, INACTIVE(), 59).proxied_for(59).gives(0, None, Some(1));
    row("L10", 1, 0, INACTIVE(), 59).proxied_for(60).gives(0, Some(0), None);
    row("L11", 1, 0, INACTIVE(), 59).proxied_for(60).with(retention(42)).gives(0, Some(0), None);
    row("L12", 1, 0, INACTIVE(), 60).with(retention(120)).gives(0, None, Some(60));
    row("L13", 1, 0, INACTIVE(), 60).with(retention(0)).gives(0, Some(0), None);
    row("L14", 1, 0, INACTIVE(), 60).with(retention(60)).gives(0, Some(0), None);
    row("L15 at 10", 1, 0, INACTIVE(), 10).proxied_for(60).with(retention(5)).gives(0, Some(0), None);
    row("L15 at 3", 1, 0, INACTIVE(), 3).proxied_for(60).with(retention(5)).gives(0, None, Some(2));
    row("L17", 1, 0, INACTIVE(), 60).on(Path::Unacknowledged).gives(0, None, None);
    row("L17 direct", 1, 0, INACTIVE(), 60).on(Path::Direct).gives(0, None, None);
    let initial_zero = |spec: &mut ScalingSpec| spec.initial_scale = PodCount::ZERO;
    row("L33", 0, 0, INACTIVE(), 0).with(initial_zero).gives(0, None, Some(60));
}

#[test]
fn an_unlimited_burst_needs_the_acknowledgement_too() {
    let unlimited =
        |spec: &mut ScalingSpec| spec.target_burst_capacity = vocabulary::BurstCapacity::Unlimited;
    row("L16", 1, 0, INACTIVE(), 60).with(unlimited).gives(0, Some(0), None);
    row("L16 not acknowledged", 1, 0, INACTIVE(), 60)
        .on(Path::Unacknowledged)
        .with(unlimited)
        .gives(0, None, None);
}

#[test]
fn an_activation_is_given_up_after_its_timeout() {
    row("L18 at 75", 1, 0, ACTIVATING(), 75).gives(-1, None, Some(151));
    row("L18 at 150", 1, 0, ACTIVATING(), 150).gives(-1, None, Some(151));
    row("L19 with 0", 1, 0, ACTIVATING(), 152).gives(0, Some(0), None);
    row("L19 with -1", 1, -1, ACTIVATING(), 152).gives(0, Some(0), None);
    let timeout = |spec: &mut ScalingSpec| spec.activation_timeout = seconds(35);
    row("L20", 1, 0, ACTIVATING(), 36).with(timeout).gives(0, Some(0), None);
    row("L27", 1, -1, ACTIVATING(), 0).gives(-1, None, Some(151));
    let plan = row("L19", 1, 0, ACTIVATING(), 152).plan();
    assert_eq!(plan.reasons.last().map(|reason| reason.stage), Some(Stage::ActivationTimeout));
}

#[test]
fn the_lower_bound_holds_while_traffic_can_arrive() {
    let min = |count: u32| move |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(count);
    let min_unreachable = |spec: &mut ScalingSpec| {
        spec.min_scale = PodCount::new(2);
        spec.reachable = false;
    };
    let retained_unreachable = |spec: &mut ScalingSpec| {
        spec.pod_retention = seconds(600);
        spec.reachable = false;
    };
    row("L21 at 59", 10, 0, INACTIVE(), 59).with(min(2)).gives(2, Some(2), None);
    row("L21 at 60", 10, 0, INACTIVE(), 60).with(min(2)).gives(2, Some(2), None);
    row("L22", 10, 0, INACTIVE(), 60).with(min_unreachable).gives(0, Some(0), None);
    row("L23 at 60", 1, 0, INACTIVE(), 60).with(retained_unreachable).gives(0, Some(0), None);
    row("L23 at 59", 1, 0, INACTIVE(), 59).with(retained_unreachable).gives(0, None, Some(60));
    // L38 is refused here (see `vectors`); what it leads to with the setting read from the ConfigMap is this.
    row("L38, min 2", 1, 0, ACTIVE(), 300).with(min(2)).gives(2, Some(2), None);
    row("L39", 1, 0, ACTIVE(), 300).with(min(7)).gives(7, Some(7), None);
}

#[test]
fn bounds_meet_as_in_knative() {
    let max = |count: u32| move |spec: &mut ScalingSpec| spec.max_scale = Some(PodCount::new(count));
    let crossed = |spec: &mut ScalingSpec| {
        spec.min_scale = PodCount::new(5);
        spec.max_scale = Some(PodCount::new(3));
    };
    let initial_above_max = |spec: &mut ScalingSpec| {
        spec.initial_scale = PodCount::new(10);
        spec.max_scale = Some(PodCount::new(3));
    };
    for activity in [ACTIVE(), INACTIVE(), ACTIVATING()] {
        row("L24", 1, 10, activity, 7).gives(10, Some(10), None);
        row("L24 max 8", 1, 10, activity, 7).with(max(8)).gives(8, Some(8), None);
    }
    row("L36 needs 10", 1, 10, ACTIVE(), 7).with(crossed).gives(3, Some(3), None);
    row("L36 needs 2", 1, 2, ACTIVE(), 7).with(crossed).gives(5, Some(5), None);
    row("L37 needs 1", 1, 1, ACTIVATING(), 0).fresh().with(initial_above_max).gives(10, Some(10), None);
    row("L37 needs 20", 1, 20, ACTIVATING(), 0).fresh().with(initial_above_max).gives(3, Some(3), None);
}

#[test]
fn an_unknown_count_is_left_alone() {
    let min = |count: u32| move |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(count);
    let disabled = |spec: &mut ScalingSpec| spec.scale_to_zero = false;
    row("L25", 0, -1, INACTIVE(), 60).gives(-1, None, None);
    row("L25 min 2", 0, -1, INACTIVE(), 60).with(min(2)).gives(-1, None, None);
    row("L26", 12, -1, ACTIVE(), 60).gives(-1, None, None);
    row("L35", 10, -1, ACTIVE(), 60).with(disabled).gives(-1, None, None);
}

#[test]
fn the_initial_scale_holds_until_it_was_reached() {
    let initial = |count: u32| move |spec: &mut ScalingSpec| spec.initial_scale = PodCount::new(count);
    let unreachable = |spec: &mut ScalingSpec| {
        spec.initial_scale = PodCount::new(2);
        spec.reachable = false;
    };
    let min = |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(4);
    row("L28 min 4", 1, -1, ACTIVATING(), 0).fresh().with(min).gives(4, Some(4), None);
    row("L28 init 3", 1, -1, ACTIVATING(), 0).fresh().with(initial(3)).gives(3, Some(3), None);
    row("L29", 0, 1, ACTIVATING(), 0).fresh().with(initial(2)).gives(2, Some(2), None);
    row("L30", 5, 1, ACTIVATING(), 9).fresh().with(initial(5)).gives(5, None, None);
    row("L31", 2, 0, ACTIVE(), 120).with(initial(2)).gives(1, Some(1), Some(180));
    row("L32", 2, 0, ACTIVE(), 120).fresh().with(unreachable).gives(1, Some(1), Some(180));
}

#[test]
fn with_scale_to_zero_off_one_pod_stays() {
    let disabled = |spec: &mut ScalingSpec| spec.scale_to_zero = false;
    let disabled_min_2 = |spec: &mut ScalingSpec| {
        spec.scale_to_zero = false;
        spec.min_scale = PodCount::new(2);
    };
    row("L34", 10, 0, INACTIVE(), 600).with(disabled).gives(1, Some(1), None);
    row("L34 min 2", 10, 0, INACTIVE(), 600).with(disabled_min_2).gives(2, Some(2), None);
}

/// Not among the vectors: to Knative a request in flight is nothing but load.
#[test]
fn a_request_in_flight_keeps_one_pod_in_every_state_and_raises_no_other_count() {
    let retained = |spec: &mut ScalingSpec| spec.pod_retention = seconds(120);
    let max = |spec: &mut ScalingSpec| spec.max_scale = Some(PodCount::new(3));
    let min = |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(2);
    for activity in [ACTIVE(), INACTIVE(), ACTIVATING()] {
        for age in [0, 152, 600] {
            row("none needed", 1, 0, activity, age).holding(1.0).gives(1, None, Some(2));
            row("eight there", 8, 0, activity, age).holding(8.0).gives(1, Some(1), Some(2));
            row("retained", 8, 0, activity, age).with(retained).holding(1.0).gives(1, Some(1), Some(2));
        }
        for path in [Path::Direct, Path::Unacknowledged] {
            row("another path", 1, 0, activity, 600).on(path).holding(1.0).gives(1, None, Some(2));
        }
        row("five needed", 8, 5, activity, 600).holding(900.0).gives(5, Some(5), None);
        row("five needed, max 3", 8, 5, activity, 600).with(max).holding(9.0).gives(3, Some(3), None);
        row("min 2", 8, 0, activity, 600).with(min).holding(9.0).gives(2, Some(2), None);
    }
    row("nothing known", 8, -1, ACTIVATING(), 152).holding(1.0).gives(8, None, Some(2));
    row("nothing known, at rest", 0, -1, INACTIVE(), 152).holding(1.0).gives(-1, None, None);
}

/// Not among the vectors: Knative never meets it, because its status survives a restart.
#[test]
fn without_a_decision_nothing_is_lowered() {
    let min = |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(4);
    let disabled = |spec: &mut ScalingSpec| spec.scale_to_zero = false;
    row("restart with 8 pods, min 4", 8, -1, ACTIVATING(), 0).with(min).gives(8, None, None);
    row("restart with 8 pods, zero off", 8, -1, ACTIVATING(), 0).with(disabled).gives(8, None, None);
}

#[test]
fn every_rule_that_keeps_a_pod_says_so() {
    let retained = |spec: &mut ScalingSpec| spec.pod_retention = seconds(120);
    let min = |spec: &mut ScalingSpec| spec.min_scale = PodCount::new(2);
    let disabled = |spec: &mut ScalingSpec| spec.scale_to_zero = false;
    let rows = [
        (row("window", 1, 0, ACTIVE(), 10), KeptBy::Window, "4m50s to go"),
        (row("deactivating", 1, 0, ACTIVE(), 300), KeptBy::Deactivating, "activators"),
        (row("path", 1, 0, INACTIVE(), 60).on(Path::Direct), KeptBy::Acknowledgement, "acknowledged"),
        (row("retention", 1, 0, INACTIVE(), 60).with(retained), KeptBy::Retention, "1m to go"),
        (row("grace", 1, 0, INACTIVE(), 1).proxied_for(20), KeptBy::Grace, "40s to go"),
        (row("activating", 1, 0, ACTIVATING(), 1), KeptBy::Activating, "2m31s"),
        (row("min", 1, 0, ACTIVE(), 300).with(min), KeptBy::MinScale, "min-scale"),
        (row("off", 1, 0, ACTIVE(), 300).with(disabled), KeptBy::Disabled, "enable-scale-to-zero"),
        (row("stream", 1, 0, ACTIVE(), 300).holding(1.0), KeptBy::InFlight, "1 request in flight for 42s"),
    ];
    for (row, rule, word) in rows {
        let kept = row.plan().kept.unwrap_or_else(|| panic!("{} keeps a pod", row.id));
        assert_eq!(kept.rule, rule, "{}", row.id);
        let text = kept.text.to_string();
        assert!(text.contains(word), "{}: {:?} does not say {word:?}", row.id, text);
    }
}

/// What becomes of the activity: (before, wanted or -1, ready, needed) to what is expected, at a later time.
fn activity_after(before: RevisionActivity, want: i64, ready: u32, needed: u32) -> RevisionActivity {
    let want = u32::try_from(want).ok().map(PodCount::new);
    before.next(want, PodCount::new(ready), PodCount::new(needed), Timestamp::from_secs(9))
}

#[test]
fn the_activity_follows_the_count_and_the_ready_pods() {
    let later = Timestamp::from_secs(9);
    let active = RevisionActivity::Active { since: later };
    let activating = RevisionActivity::Activating { since: later };
    let inactive = |because| RevisionActivity::Inactive { since: later, because };
    let rows = [
        ("M10 ready 0", ACTIVATING(), -1, 0, 1, ACTIVATING()),
        ("M10 ready 1", ACTIVATING(), -1, 1, 1, active),
        ("M11", ACTIVATING(), 0, 1, 1, inactive(InactiveBecause::TimedOut)),
        ("M12", ACTIVE(), 0, 0, 1, inactive(InactiveBecause::NoTraffic)),
        ("M13 ready 0", INACTIVE(), -1, 0, 1, INACTIVE()),
        ("M13 ready 1", INACTIVE(), -1, 1, 1, INACTIVE()),
        ("M14 ready 0", INACTIVE(), 1, 0, 1, activating),
        ("M14 ready 1", INACTIVE(), 1, 1, 1, active),
        ("M15 ready 1", ACTIVE(), 5, 1, 3, activating),
        ("M15 ready 3", ACTIVE(), 5, 3, 3, ACTIVE()),
        ("M16", ACTIVATING(), 11, 1, 1, active),
        ("M17 ready 11", ACTIVATING(), 20, 11, 20, ACTIVATING()),
        ("M17 ready 20", ACTIVATING(), 20, 20, 20, active),
        ("M18", ACTIVATING(), -1, 0, 0, inactive(InactiveBecause::NoTraffic)),
        ("a lost decision", ACTIVE(), -1, 0, 1, activating),
    ];
    for (id, before, want, ready, needed, expected) in rows {
        assert_eq!(activity_after(before, want, ready, needed), expected, "{id}");
    }
}

#[test]
fn a_revision_is_ready_with_its_initial_scale_at_first_and_with_its_lower_bound_afterwards() {
    let rows = [
        ("M16", 2, 1, false, Initialization::Pending, 1),
        ("M17", 11, 20, true, Initialization::Pending, 20),
        ("M17 once initialised", 11, 20, true, Initialization::Done, 11),
        ("M18", 0, 0, true, Initialization::Pending, 0),
        ("M18 once initialised", 0, 0, true, Initialization::Done, 1),
    ];
    for (id, min, initial, reachable, initialization, expected) in rows {
        let spec = ScalingSpec {
            min_scale: PodCount::new(min),
            initial_scale: PodCount::new(initial),
            reachable,
            ..ScalingSpec::default()
        };
        assert_eq!(needed_pods(&spec, initialization), PodCount::new(expected), "{id}");
    }
}

#[test]
fn giving_up_is_remembered_until_the_next_activation() {
    let given_up = activity_after(ACTIVATING(), 0, 0, 1);
    assert_eq!(given_up.age(Timestamp::from_secs(10)), seconds(1));
    assert_eq!(activity_after(given_up, 0, 0, 1), given_up);
    assert!(activity_after(given_up, 1, 0, 1).is_activating());
}
