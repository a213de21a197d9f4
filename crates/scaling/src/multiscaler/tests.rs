//! What a revision does over time, through the events and commands that the autoscaler sees.

mod world;

use vocabulary::{PodCount, Routing};

use self::world::{World, spec};
use super::*;

#[test]
fn the_first_request_at_zero_orders_pods_in_the_same_call() {
    let mut world = World::new(spec());
    world.create(0);
    world.activator_starts();
    world.forget();
    let commands = world.present(1, 1);
    assert!(commands.contains(&Command::ScaleTo { revision: world::REVISION, count: PodCount::ONE }));
    assert!(
        commands
            .contains(&Command::SetRouting { revision: world::REVISION, routing: Routing::ThroughActivator })
    );
}
