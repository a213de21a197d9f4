//! In shadow: what is compared, and with what.

use super::*;

/// In shadow nothing is ordered and pods serve; how often the count would have been another is counted, and
/// why.
#[test]
fn in_shadow_everything_is_decided_and_nothing_ordered() {
    let shadow = ScalingSpec { shadow: true, ..settings(1, 10, vec![cpu()]) };
    let mut world = World::new(shadow);
    world.create(1);
    world.activator_starts();
    world.busy(31, 900, 0);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(world.route_orders().last().map(|(_, routing)| *routing), Some(Routing::Direct));
    let seen = world.status().shadow.expect("it is in shadow");
    assert_eq!((seen.compared, seen.differed), (2, 2));
    let last = seen.last.expect("they differed");
    assert_eq!((last.ours, last.theirs), (PodCount::new(2), PodCount::ONE));
    assert!(last.why.is_some() && seen.differs_since == Some(Timestamp::from_secs(1015)), "{seen:?}");
    // Another autoscaler does what was decided here.
    world.create(2);
    world.busy(15, 450, 0);
    let seen = world.status().shadow.expect("it is in shadow");
    assert_eq!((seen.compared, seen.differed, seen.differs_since), (3, 2, None));
    world.edit(|spec| spec.shadow = false);
    assert_eq!(world.status().shadow, None);
    world.busy(16, 900, 0);
    assert_eq!(world.scale_orders().len(), 1, "from now on it is done");
}

/// What a sync wants stands until the next one, and every look between them is compared too.
#[test]
fn in_shadow_evaluations_of_own_metrics_do_not_hide_the_count_of_a_sync() {
    let shadow = ScalingSpec { shadow: true, ..settings(1, 10, vec![cpu(), concurrency()]) };
    let mut world = World::new(shadow);
    world.create(5);
    world.activator_starts();
    // Longer than the stable window, from which five pods are found, and than the window of the document.
    world.busy(121, 100, 1);
    let seen = world.status().shadow.expect("it is in shadow");
    let since = seen.differs_since.expect("fewer pods are enough");
    let fewer = Some(PodCount::new(2));
    assert_eq!(world.status().desired, fewer, "half of them at once, as max-scale-down-rate allows");
    world.busy(30, 100, 1);
    let later = world.status().shadow.expect("it is in shadow");
    let compared = later.compared - seen.compared;
    assert!(compared >= 15, "at every look and at every sync: {compared}");
    assert_eq!((later.differed - seen.differed, later.differs_since), (compared, Some(since)));
    assert_eq!(later.last.map(|last| last.ours), fewer);
}

/// No queue-proxy and no activator: what cannot be measured says so, and why.
#[test]
fn in_shadow_an_own_metric_without_links_fails_for_want_of_reporters() {
    let shadow = ScalingSpec { shadow: true, ..settings(1, 10, vec![cpu(), concurrency()]) };
    let mut world = World::new(shadow);
    world.create(2);
    world.for_seconds(16);
    let shown = world.multiscaler.metrics_beside_targets(REVISION);
    assert_eq!(shown.as_deref(), Some("cpu <unknown>/50%, concurrency <unknown>/10"));
    let reasons = world.multiscaler.decisions(REVISION).flat_map(|decision| &decision.reasons);
    let told: Vec<String> = reasons.map(|reason| reason.text.to_string()).collect();
    let expected = "ebb.concurrency failed: no pod and no activator reports requests";
    assert!(told.iter().any(|text| text == expected), "{told:?}");
}

/// For every writer of the count: a policy of one pod in ten minutes is used up by another client's change.
#[test]
fn in_shadow_policies_look_back_on_changes_of_others() {
    let mut spec = ScalingSpec { shadow: true, ..settings(1, 10, vec![cpu()]) };
    allow_one_pod_in_ten_minutes(&mut spec);
    let mut world = World::new(spec);
    world.create(2);
    world.activator_starts();
    world.busy(16, 900, 0);
    assert_eq!(world.status().desired, Some(PodCount::new(3)));
    world.create(3);
    world.busy(15, 900, 0);
    assert_eq!(world.status().desired, Some(PodCount::new(3)), "that was the one");
    world.busy(600, 900, 0);
    assert_eq!(world.status().desired, Some(PodCount::new(4)));
}

#[test]
fn in_shadow_class_kpa_orders_nothing_either() {
    let mut world = World::new(ScalingSpec { shadow: true, ..spec() });
    world.create(1);
    world.activator_starts();
    world.ready(1);
    world.in_activator = 350;
    world.run_until(20.5);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(world.route_orders().last().map(|(_, routing)| *routing), Some(Routing::Direct));
    let seen = world.status().shadow.expect("it is in shadow");
    assert_eq!((seen.compared, seen.differed), (10, 10), "at every tick");
    let last = seen.last.expect("they differed");
    assert_eq!((last.ours, last.theirs), (PodCount::new(5), PodCount::ONE));
    world.edit(|spec| spec.shadow = false);
    world.run_until(22.5);
    assert_eq!(world.scale_orders().last().map(|(_, count)| *count), Some(5));
}
