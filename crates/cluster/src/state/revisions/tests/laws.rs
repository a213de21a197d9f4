//! Whatever happens to a revision, in whichever order: what may never be written, which [`super::Place`]
//! looks at with each write, and that everything comes to rest.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Decide(Option<u32>, u32),
    Route(Routing),
    Scale(u32),
    Pod(bool),
    /// The controller carries out what is written, and clients get these addresses.
    Controller {
        pod: bool,
        activator: bool,
        is_populated: bool,
    },
    Webhook {
        is_away: bool,
    },
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        (proptest::option::of(0..4_u32), 0..5_u32)
            .prop_map(|(want, activators)| Step::Decide(want, activators)),
        any::<bool>().prop_map(|is_direct| Step::Route(if is_direct {
            Routing::Direct
        } else {
            Routing::ThroughActivator
        })),
        (0..4_u32).prop_map(Step::Scale),
        any::<bool>().prop_map(Step::Pod),
        (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(pod, activator, is_populated)| Step::Controller { pod, activator, is_populated }),
        any::<bool>().prop_map(|is_away| Step::Webhook { is_away }),
        (1..12_u64).prop_map(Step::Pass),
    ]
}

impl Place {
    fn step(&mut self, step: Step) {
        match step {
            Step::Decide(want, activators) => self.decide(want, activators),
            Step::Route(routing) => {
                self.route(routing);
            }
            Step::Scale(to) => {
                self.scale(self.replicas, to);
            }
            Step::Pod(is_ready) => {
                self.pod("hello-00001-deployment-a", "10.0.0.1", if is_ready { "True" } else { "False" });
            }
            Step::Controller { pod, activator, is_populated } => {
                let addresses = [("10.0.0.1", pod), ("10.1.0.1", activator)].into_iter();
                let named: Vec<&str> =
                    addresses.filter(|(_, is_named)| *is_named).map(|(of, _)| of).collect();
                if self.service.is_some() {
                    self.controller(&named, if is_populated { "True" } else { "False" });
                }
            }
            Step::Webhook { is_away } => self.is_webhook_away = is_away,
            Step::Pass(seconds) => self.pass(seconds),
        }
    }
}

proptest! {
    #[test]
    fn must_write_nothing_forbidden_and_come_to_rest(
        replicas in 0..3_u32,
        steps in proptest::collection::vec(steps(), 0..40),
    ) {
        let mut place = Place::new();
        place.apply(replicas);
        let mut place = place.listed();
        for step in steps {
            place.step(step);
        }
        place.is_webhook_away = false;
        place.pass(30);
        place.controller(&["10.1.0.1"], "True");
        place.pass(30);
        place.controller(&["10.1.0.1"], "True");
        place.pass(5);
        place.written();
        let statuses = place.statuses;
        place.pass(20);
        prop_assert_eq!((place.written(), place.statuses), (Vec::<String>::new(), statuses));
    }
}
