//! What holds in every world that chance makes: activators and pods that come, go, stall and speak late, and
//! owners in turn.

use std::time::Duration;

use forecasting::ZoneOffsets;
use proptest::prelude::*;
use throttling::RequestRefusal;
use vocabulary::{Epoch, Ownership, PodState, PresentCount, Routing};

use super::world::{World, name, pod};
use crate::*;

const ACTIVATORS: [&str; 3] = ["a", "b", "c"];
const PODS: [&str; 3] = ["p", "q", "r"];
/// Settings of which each has state of its own: windows alone, a forecast with a schedule, class hpa,
/// decisions that are only compared, and a document.
const ANNOTATIONS: [&[(&str, &str)]; 5] = [
    &[("autoscaling.knative.dev/target", "10")],
    &[
        ("autoscaling.knative.dev/target", "10"),
        ("ebb.dev/prediction", "auto"),
        ("ebb.dev/schedule", "22:00-06:00 min=2 max=8"),
        ("ebb.dev/time-zone", "Asia/Tokyo"),
    ],
    &[
        ("autoscaling.knative.dev/class", "hpa.autoscaling.knative.dev"),
        ("autoscaling.knative.dev/metric", "cpu"),
        ("autoscaling.knative.dev/min-scale", "2"),
    ],
    &[("autoscaling.knative.dev/target", "10"), ("ebb.dev/shadow", "true")],
    &[("ebb.dev/hpa", DOCUMENT), ("ebb.dev/ignore-user-agents", "HAProxy")],
];

/// A document of class hpa with parts of each kind.
const DOCUMENT: &str = "
minReplicas: 1
maxReplicas: 9
metrics:
- {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}}
behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 2, periodSeconds: 60}]}}
";

/// One event of a random world.
#[derive(Clone, Copy, Debug)]
enum Happening {
    PodAppears(usize),
    PodSays(usize, PodState),
    PodLeaves(usize),
    PodIsGone(usize),
    PodLink(usize, Loss),
    ActivatorAppears(usize),
    ActivatorIsGone(usize),
    ActivatorLinks(usize),
    ActivatorRestarts(usize),
    ActivatorLink(usize, Loss),
    ActivatorDrains(usize),
    ActivatorLife(usize, ActivatorLife),
    AtActivator(usize, AtActivator),
    IsHeld,
    IsServed,
    OwnerChanges,
    OwnerIsReplaced,
    TimePasses(u64),
}

/// One event at an activator that is there.
#[derive(Clone, Copy, Debug)]
enum AtActivator {
    Stalls,
    Resumes,
    Acknowledges,
    Empties,
    Requests(u32),
    RequestEnds,
    Counts,
    Measures,
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    Lost,
    Refused,
    Unreachable,
}

fn happening() -> impl Strategy<Value = Happening> {
    let state = prop_oneof![Just(PodState::Starting), Just(PodState::Ready), Just(PodState::Unready)];
    let loss = || prop_oneof![Just(Loss::Lost), Just(Loss::Refused), Just(Loss::Unreachable)];
    let life = prop_oneof![
        Just(ActivatorLife::Ready),
        Just(ActivatorLife::NotReady),
        Just(ActivatorLife::Terminating)
    ];
    prop_oneof![
        3 => (0..3_usize).prop_map(Happening::PodAppears),
        5 => (0..3_usize, state).prop_map(|(pod, state)| Happening::PodSays(pod, state)),
        2 => (0..3_usize).prop_map(Happening::PodLeaves),
        1 => (0..3_usize).prop_map(Happening::PodIsGone),
        1 => (0..3_usize, loss()).prop_map(|(pod, loss)| Happening::PodLink(pod, loss)),
        2 => (0..3_usize).prop_map(Happening::ActivatorAppears),
        1 => (0..3_usize).prop_map(Happening::ActivatorIsGone),
        4 => (0..3_usize).prop_map(Happening::ActivatorLinks),
        1 => (0..3_usize).prop_map(Happening::ActivatorRestarts),
        1 => (0..3_usize, loss()).prop_map(|(activator, loss)| Happening::ActivatorLink(activator, loss)),
        1 => (0..3_usize).prop_map(Happening::ActivatorDrains),
        1 => (0..3_usize, life).prop_map(|(activator, life)| Happening::ActivatorLife(activator, life)),
        18 => (0..3_usize, at_activator()).prop_map(|(activator, event)| Happening::AtActivator(activator, event)),
        1 => Just(Happening::IsHeld),
        1 => Just(Happening::IsServed),
        1 => Just(Happening::OwnerChanges),
        1 => Just(Happening::OwnerIsReplaced),
        3 => (1..40_000_u64).prop_map(Happening::TimePasses),
    ]
}

fn at_activator() -> impl Strategy<Value = AtActivator> {
    prop_oneof![
        1 => Just(AtActivator::Stalls),
        2 => Just(AtActivator::Resumes),
        6 => Just(AtActivator::Acknowledges),
        1 => Just(AtActivator::Empties),
        3 => (1..50_u32).prop_map(AtActivator::Requests),
        3 => Just(AtActivator::RequestEnds),
        2 => Just(AtActivator::Counts),
        2 => Just(AtActivator::Measures),
    ]
}

fn choice() -> impl Strategy<Value = ActivatorChoice> {
    prop_oneof![Just(ActivatorChoice::All), Just(ActivatorChoice::AsManyAsNeeded)]
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    prop::collection::vec(happening(), 1..80)
}

/// Lets everything happen, and looks after each step.
fn live(choice: ActivatorChoice, happenings: &[Happening], check: impl FnMut(&World)) -> World {
    live_in(World::choosing(choice, &ACTIVATORS[..2]), happenings, check)
}

/// A world whose pods take so many requests at once, with a ready pod and requests at both activators.
fn limited(choice: ActivatorChoice, limit: u32) -> World {
    let mut world = World::choosing(choice, &ACTIVATORS[..2]);
    world.limit = limit;
    world.state_revision();
    world.pods(&PODS[..1]);
    world.pod_says(PODS[0], PodState::Ready);
    for name in &ACTIVATORS[..2] {
        world.hold(name, PresentCount { in_flight: 3, waiting: 3 });
    }
    world
}

fn live_in(mut world: World, happenings: &[Happening], mut check: impl FnMut(&World)) -> World {
    let mut epoch = 1;
    for happening in happenings {
        happen(&mut world, *happening, &mut epoch);
        check(&world);
    }
    world
}

fn happen(world: &mut World, happening: Happening, epoch: &mut u64) {
    match happening {
        Happening::PodAppears(index) => {
            world.pods.entry(PODS[index].to_owned()).or_insert_with(|| pod(PODS[index]));
            world.state_pods();
        }
        Happening::PodSays(index, state) => world.pod_says(PODS[index], state),
        Happening::PodLeaves(index) => world.leave(PODS[index]),
        Happening::PodIsGone(index) => {
            world.pods.remove(PODS[index]);
            world.state_pods();
        }
        Happening::PodLink(index, loss) => {
            let news = news(loss, world);
            world.link_of_pod(PODS[index], news);
        }
        Happening::ActivatorAppears(index) => world.add_activator(ACTIVATORS[index]),
        Happening::ActivatorIsGone(index) => {
            world.activators.remove(ACTIVATORS[index]);
            world.state_activators();
        }
        Happening::ActivatorLinks(index) => world.link(ACTIVATORS[index]),
        Happening::ActivatorRestarts(index) => world.restart(ACTIVATORS[index]),
        Happening::ActivatorLink(index, loss) => {
            let news = news(loss, world);
            world.link_of_activator(ACTIVATORS[index], news);
        }
        Happening::ActivatorDrains(index) => {
            world.activator(ACTIVATORS[index], vocabulary::ActivatorWord::Draining);
        }
        Happening::ActivatorLife(index, life) => world.life(ACTIVATORS[index], life),
        Happening::AtActivator(index, event) => {
            if world.activators.contains_key(ACTIVATORS[index]) {
                happen_at(world, ACTIVATORS[index], event);
            }
        }
        Happening::IsHeld => {
            world.held = Some("another one decides".to_owned());
            world.state_revision();
        }
        Happening::IsServed => {
            world.held = None;
            world.state_revision();
        }
        Happening::OwnerChanges => change_owner(world, epoch),
        Happening::OwnerIsReplaced => {
            *epoch += 1;
            world.replace_owner(Epoch(*epoch));
        }
        Happening::TimePasses(milliseconds) => world.pass(Duration::from_millis(milliseconds)),
    }
}

fn happen_at(world: &mut World, name: &str, event: AtActivator) {
    match event {
        AtActivator::Stalls => world.stall(name),
        AtActivator::Resumes => world.resume(name),
        AtActivator::Acknowledges => world.acknowledge(name),
        AtActivator::Empties => world.empty(name),
        AtActivator::Requests(count) => {
            // One that does not know the revision holds nothing of it.
            let known = &world.activators[name];
            if known.applied.is_some() {
                let in_flight = known.present().in_flight + count;
                world.hold(name, PresentCount { in_flight, waiting: in_flight });
            }
        }
        AtActivator::RequestEnds => {
            let now = world.now;
            world.activators.get_mut(name).expect("it is there").end_one(now);
        }
        AtActivator::Counts => world.count(name),
        AtActivator::Measures => world.measure(name),
    }
}

fn change_owner(world: &mut World, epoch: &mut u64) {
    *epoch += 1;
    world.owner_changed();
    world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(*epoch))));
}

fn news(loss: Loss, world: &World) -> LinkNews {
    match loss {
        Loss::Lost => LinkNews::Lost,
        Loss::Refused => LinkNews::Refused,
        Loss::Unreachable => LinkNews::Unreachable { since: world.now - Duration::from_secs(1) },
    }
}

/// All that a reader finds of the revisions, but the averages that change by time alone.
fn found(snapshot: &ControlSnapshot, now: vocabulary::Timestamp) -> Vec<String> {
    let all = snapshot.revisions().iter().map(|(name, revision)| {
        let Some(view) = snapshot.view(name, now) else {
            return format!("{name} {:?} {:?}", revision.pods, revision.decided.is_none());
        };
        let status = scaling::RevisionStatus { stable_value: None, panic_value: None, ..view.status.clone() };
        let latest = view
            .decisions()
            .last()
            .map(|latest| scaling::Decision { at: vocabulary::Timestamp::ZERO, ..latest.clone() });
        let decided =
            (view.decisions().count(), latest, view.confirmed_at(), view.fence(), view.oldest_wait());
        let pods = (view.pods(AppOutput::Shown), view.links(), view.why_not_ready(AppOutput::Shown));
        format!("{name} {status:?} {decided:?} {pods:?} {:?}", view.facts())
    });
    let links = (snapshot.links_to_activators(), snapshot.links_to_pods());
    all.chain([format!("{links:?} {:?}", snapshot.problems())]).collect()
}

/// The histories that a reader finds, in the order of the revisions' names.
fn histories(snapshot: &ControlSnapshot) -> Vec<Option<scaling::PublishedHistory>> {
    let decided = snapshot.revisions().values().map(|revision| revision.decided.as_ref());
    decided.map(|decided| decided.and_then(|decided| decided.history.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    /// Whatever a reader sees is marked when it changes: a snapshot that was kept up to date is the one that
    /// would be written of everything.
    #[test]
    fn a_snapshot_of_the_news_is_a_snapshot_of_everything(choice in choice(), happenings in happenings()) {
        let (mut world, mut epoch) = (World::choosing(choice, &ACTIVATORS[..2]), 1);
        for happening in happenings {
            happen(&mut world, happening, &mut epoch);
            let (kept, now) = (world.snapshot(), world.now);
            let rewritten = world.orchestrator.rewritten(now);
            prop_assert_eq!(found(&kept, now), found(&rewritten, now));
            prop_assert_eq!(histories(&kept), histories(&rewritten));
        }
    }

    /// A state that was written as bytes is the whole state: an orchestrator that goes on with it gives the
    /// commands that the other one would have given.
    #[test]
    fn a_state_goes_on_after_it_was_written_and_read(
        choice in choice(),
        annotations in prop::sample::select(ANNOTATIONS.to_vec()),
        before in happenings(),
        after in happenings(),
    ) {
        let commands = |is_restored: bool| {
            let (mut world, mut epoch) = (World::choosing(choice, &ACTIVATORS[..2]), 1);
            world.event(ControlEvent::WallClockRead { since_epoch: Duration::from_secs(1_700_000_000) });
            world.state_annotated(annotations);
            let (zone, offsets) = (vocabulary::TimeZoneName::new("Asia/Tokyo"), ZoneOffsets::fixed(9 * 60));
            world.event(ControlEvent::ZoneRead { zone, offsets });
            for happening in &before {
                happen(&mut world, *happening, &mut epoch);
            }
            if is_restored {
                world.restore();
            }
            world.commands.clear();
            for happening in &after {
                happen(&mut world, *happening, &mut epoch);
            }
            world.commands
        };
        prop_assert_eq!(commands(true), commands(false));
    }

    /// A pod ends only when no activator that may send to it still can, unless the time for saying so is
    /// over; and versions only grow.
    #[test]
    fn no_activator_may_send_to_a_released_pod_and_versions_only_grow(
        choice in choice(),
        happenings in happenings(),
    ) {
        let world = live(choice, &happenings, |_| {});
        prop_assert_eq!(world.breaches, Vec::<String>::new());
    }

    /// A path is called acknowledged only when all that serve act upon it, and it is written.
    #[test]
    fn an_acknowledged_path_is_one(choice in choice(), happenings in happenings()) {
        live(choice, &happenings, |world| {
            let Some((members, is_acknowledged)) = world.orchestrator.path(&name()) else { return };
            if !is_acknowledged {
                return;
            }
            assert!(!members.is_empty());
            for member in members {
                let known = &world.activators[member.as_str()];
                // One that stalls or was restarted since had acknowledged before.
                let applied = known.applied.as_ref().expect("it acknowledged an assignment");
                assert_eq!(applied.routing, Routing::ThroughActivator, "{member}");
            }
            let written = world.written.as_ref().expect("somebody serves");
            assert_eq!(written.routing, Routing::ThroughActivator);
        });
    }

    /// A revision once served is direct with a ready pod, or on living activators: those that acknowledged or
    /// serve since before the owner came, and only if none of them lives any other.
    #[test]
    fn routes_name_only_live_activators_that_acknowledged(choice in choice(), happenings in happenings()) {
        live(choice, &happenings, |world| {
            let (Some(written), true) = (&world.written, world.orchestrator.is_settled(&name())) else { return };
            if written.routing == Routing::Direct && world.orchestrator.has_ready_pod(&name()) {
                return;
            }
            let living = world.orchestrator.living_activators();
            if living.is_empty() {
                return;
            }
            let named = &written.activators;
            assert!(!named.is_empty() && named.iter().all(|name| living.contains(name)), "{written:?}, {living:?} live");
            let since = match written.routing {
                Routing::ThroughActivator => world.through_since,
                Routing::Direct => Some(vocabulary::Version::default()),
            };
            let has = |name: &&vocabulary::ReplicaName| {
                let acknowledged = world.activators[name.as_str()].acknowledged;
                since.is_some_and(|since| acknowledged.is_some_and(|version| version >= since))
            };
            let proven: Vec<_> = living.iter().filter(has).collect();
            let inherited: Vec<_> = world.inherited.iter().flat_map(|route| &route.activators).collect();
            let serves_as_before = |name: &vocabulary::ReplicaName| {
                inherited.contains(&name) && world.activators[name.as_str()].acknowledged.is_none()
            };
            let is_proven = named.iter().all(|name| proven.contains(&name) || serves_as_before(name));
            assert!(proven.is_empty() || is_proven, "{written:?}, and {proven:?} acknowledged since {since:?}");
        });
    }

    /// Of the ready pods one is led to, however many hosts seem to be dead.
    #[test]
    fn the_last_ready_pod_stays_an_endpoint(choice in choice(), happenings in happenings()) {
        live(choice, &happenings, |world| {
            let ready = world.orchestrator.ready_pods(&name());
            let is_led_to = ready.iter().any(|pod| !world.unreachable.contains(pod.as_str()));
            assert!(ready.is_empty() || is_led_to, "{ready:?}, but not {:?}", world.unreachable);
        });
    }

    /// Nothing that waits is refused but by `Remove`, a named limit, or a hold that the assignment carries:
    /// an activator that holds something of a revision that exists hears of the pods that there are, whether
    /// it is to serve or not, under every owner, and is not told that the revision is gone.
    #[test]
    fn every_activator_with_waiting_requests_gets_pod_updates(choice in choice(), happenings in happenings()) {
        let world = live(choice, &happenings, |world| {
            let Some(whole) = world.orchestrator.assignment(&name()) else { return };
            let pods = |told: &vocabulary::Assignment| -> Vec<_> {
                told.pods.iter().map(|pod| (pod.pod.clone(), pod.address, pod.state)).collect()
            };
            let listening = world.activators.iter().filter(|(_, known)| known.is_linked && !known.is_stalled);
            for (name, known) in listening.filter(|(_, known)| known.present().in_flight > 0) {
                let told = known.applied.as_ref().unwrap_or_else(|| panic!("{name} holds requests and forgot them"));
                assert_eq!((pods(told), &told.hold), (pods(whole), &whole.hold), "{name} holds requests");
            }
        });
        prop_assert_eq!(world.breaches, Vec::<String>::new());
    }

    /// Nothing that waits is refused but by the end of its revision, a named limit, or a hold that the
    /// assignment carries while no pod is ready.
    #[test]
    fn waiting_requests_are_refused_by_a_limit_or_a_hold_alone(
        choice in choice(),
        limit in 0..3_u32,
        happenings in happenings(),
    ) {
        let mut has_been_held = false;
        live_in(limited(choice, limit), &happenings, |world| {
            has_been_held |= world.held.is_some();
            for known in world.activators.values() {
                for refusal in &known.refusals {
                    assert!(*refusal != RequestRefusal::Gone, "the revision exists");
                    assert!(*refusal != RequestRefusal::Held || has_been_held, "no assignment carries a hold");
                }
                let counted = usize::try_from(known.present().waiting).expect("32 bits");
                assert_eq!(known.waiting(), counted, "requests that wait and were not refused");
            }
        });
    }

    /// After one round of commands no request waits at an activator while a ready pod of its slice has a free
    /// slot, and no timer has to fire for that.
    #[test]
    fn a_free_slot_is_used_at_once_while_a_request_waits(
        choice in choice(),
        limit in 0..3_u32,
        happenings in happenings(),
    ) {
        live_in(limited(choice, limit), &happenings, |world| {
            for (name, known) in &world.activators {
                assert_eq!(known.unused_slot(), None, "a request waits at {name}");
            }
        });
    }

    /// Each request that came to an activator is heard of in exactly one second, however links are lost and
    /// seconds repeated.
    #[test]
    fn both_ends_count_the_same_requests(choice in choice(), happenings in happenings()) {
        let mut world = live(choice, &happenings, |_| {});
        for name in ACTIVATORS {
            if world.activators.contains_key(name) {
                world.resume(name);
                world.link(name);
            }
        }
        world.pass(Duration::from_secs(2));
        for name in ACTIVATORS.into_iter().filter(|name| world.activators.contains_key(*name)).collect::<Vec<_>>() {
            world.measure(name);
            let known = &world.activators[name];
            let heard = world.heard.of(name, known.boot);
            for (second, requests) in &heard {
                let came = f64::from(known.arrivals_in(*second));
                assert!((requests - came).abs() < 0.001, "{name} in second {second}: {requests} of {came}");
            }
            let last = known.is_linked.then(|| heard.last_key_value().map(|(second, _)| *second)).flatten();
            let complete = last.is_none_or(|last| (last.saturating_sub(59)..last).all(|at| heard.contains_key(&at)));
            assert!(complete, "{name}: {heard:?}");
        }
    }

    /// The same facts of state lead to the same assignments, whatever their order.
    #[test]
    fn assignments_converge_whatever_the_order(
        choice in choice(),
        happenings in prop::collection::vec(happening(), 1..40),
        shuffled in Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let settled = |order: &[usize]| {
            let mut world = live(choice, &happenings, |_| {});
            for step in order {
                match step {
                    0 => { world.pods(&PODS); for pod in PODS { world.pod_says(pod, PodState::Ready); } }
                    1 => world.state_activators(),
                    2 => world.state_revision(),
                    _ => world.state_pods(),
                }
            }
            world.pods(&PODS);
            for activator in ACTIVATORS {
                if world.activators.contains_key(activator) {
                    world.resume(activator);
                    world.life(activator, ActivatorLife::Ready);
                    world.link(activator);
                }
            }
            for pod in PODS {
                world.pod_says(pod, PodState::Ready);
            }
            let told = world.activators.values().filter_map(|known| known.applied.as_deref().cloned());
            told.map(|told| vocabulary::Assignment { version: vocabulary::Version::default(), ..told }).collect::<Vec<_>>()
        };
        prop_assert_eq!(settled(&[0, 1, 2, 3]), settled(&shuffled));
    }
}
