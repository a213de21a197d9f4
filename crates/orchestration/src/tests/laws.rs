//! What holds in every world that chance makes: activators and pods that come, go, stall and speak late, and owners in turn.

use std::time::Duration;

use proptest::prelude::*;
use vocabulary::{Epoch, Ownership, PodState, PresentCount, Routing};

use super::world::{World, name, pod};
use crate::*;

const ACTIVATORS: [&str; 3] = ["a", "b", "c"];
const PODS: [&str; 3] = ["p", "q", "r"];

/// Something happens.
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
    ActivatorStalls(usize),
    ActivatorResumes(usize),
    ActivatorDrains(usize),
    ActivatorLife(usize, ActivatorLife),
    Acknowledges(usize),
    Empties(usize),
    Requests(usize, u32),
    OwnerChanges,
    TimePasses(u64),
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    Lost,
    Refused,
}

fn happening() -> impl Strategy<Value = Happening> {
    let state = prop_oneof![Just(PodState::Starting), Just(PodState::Ready), Just(PodState::Unready)];
    let loss = || prop_oneof![Just(Loss::Lost), Just(Loss::Refused)];
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
        1 => (0..3_usize).prop_map(Happening::ActivatorStalls),
        2 => (0..3_usize).prop_map(Happening::ActivatorResumes),
        1 => (0..3_usize).prop_map(Happening::ActivatorDrains),
        1 => (0..3_usize, life).prop_map(|(activator, life)| Happening::ActivatorLife(activator, life)),
        6 => (0..3_usize).prop_map(Happening::Acknowledges),
        1 => (0..3_usize).prop_map(Happening::Empties),
        2 => (0..3_usize, 0..50_u32).prop_map(|(activator, count)| Happening::Requests(activator, count)),
        1 => Just(Happening::OwnerChanges),
        3 => (1..40_000_u64).prop_map(Happening::TimePasses),
    ]
}

/// Lets everything happen, and looks after each step.
fn live(happenings: &[Happening], mut check: impl FnMut(&World)) -> World {
    let mut world = World::with_activators(&ACTIVATORS[..2]);
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
        Happening::PodLink(index, loss) => world.link_of_pod(PODS[index], news(loss)),
        Happening::ActivatorAppears(index) => {
            let known = world.activators.entry(ACTIVATORS[index].to_owned()).or_default();
            known.boot = known.boot.max(1);
            world.state_activators();
        }
        Happening::ActivatorIsGone(index) => {
            world.activators.remove(ACTIVATORS[index]);
            world.state_activators();
        }
        Happening::ActivatorLinks(index) => world.link(ACTIVATORS[index]),
        Happening::ActivatorRestarts(index) => {
            if let Some(known) = world.activators.get_mut(ACTIVATORS[index]) {
                let (boot, life) = (known.boot + 1, known.life);
                *known = super::world::FakeActivator { life, boot, ..Default::default() };
                world.link_of_activator(ACTIVATORS[index], LinkNews::Lost);
                world.link(ACTIVATORS[index]);
            }
        }
        Happening::ActivatorLink(index, loss) => world.link_of_activator(ACTIVATORS[index], news(loss)),
        Happening::ActivatorStalls(index) => {
            if world.activators.contains_key(ACTIVATORS[index]) {
                world.stall(ACTIVATORS[index]);
            }
        }
        Happening::ActivatorResumes(index) => {
            if world.activators.contains_key(ACTIVATORS[index]) {
                world.resume(ACTIVATORS[index]);
            }
        }
        Happening::ActivatorDrains(index) => {
            world.activator(ACTIVATORS[index], vocabulary::ActivatorWord::Draining);
        }
        Happening::ActivatorLife(index, life) => world.life(ACTIVATORS[index], life),
        Happening::Acknowledges(index) => {
            if world.activators.contains_key(ACTIVATORS[index]) {
                world.acknowledge(ACTIVATORS[index]);
            }
        }
        Happening::Empties(index) => {
            world.activator(ACTIVATORS[index], vocabulary::ActivatorWord::Emptied { revision: name() });
        }
        Happening::Requests(index, count) => {
            let (count, oldest_wait) = (PresentCount { in_flight: count, waiting: count }, Duration::ZERO);
            let present = vocabulary::ActivatorWord::Present { revision: name(), count, oldest_wait };
            world.activator(ACTIVATORS[index], present);
        }
        Happening::OwnerChanges => {
            *epoch += 1;
            world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(*epoch))));
        }
        Happening::TimePasses(milliseconds) => world.pass(Duration::from_millis(milliseconds)),
    }
}

fn news(loss: Loss) -> LinkNews {
    match loss {
        Loss::Lost => LinkNews::Lost,
        Loss::Refused => LinkNews::Refused,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    /// A pod ends only when nobody who may send to it still can, unless the time for saying so is over; and versions only grow.
    #[test]
    fn nobody_may_send_to_a_pod_that_was_released_and_versions_only_grow(
        happenings in prop::collection::vec(happening(), 1..80),
    ) {
        let world = live(&happenings, |_| {});
        prop_assert_eq!(world.breaches, Vec::<String>::new());
    }

    /// A path is called acknowledged only when everybody who serves acts upon it, and it is written.
    #[test]
    fn an_acknowledged_path_is_one(happenings in prop::collection::vec(happening(), 1..80)) {
        live(&happenings, |world| {
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

    /// A revision once served is direct with a ready pod, or on living activators.
    #[test]
    fn who_serves_lives(happenings in prop::collection::vec(happening(), 1..80)) {
        live(&happenings, |world| {
            let (Some(written), true) = (&world.written, world.orchestrator.is_settled(&name())) else { return };
            if written.routing == Routing::Direct && world.orchestrator.has_ready_pod(&name()) {
                return;
            }
            let living = world.orchestrator.living_activators();
            let is_served = written.activators.iter().any(|activator| living.contains(activator));
            assert!(is_served || living.is_empty(), "{written:?} while {living:?} live");
        });
    }

    /// The same facts of state lead to the same assignments, whatever their order.
    #[test]
    fn assignments_converge_whatever_the_order(
        happenings in prop::collection::vec(happening(), 1..40),
        shuffled in Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let settled = |order: &[usize]| {
            let mut world = live(&happenings, |_| {});
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
