//! The fleet through time: what is started and ended when, without a process and without a clock.

use std::time::Duration;

use orchestration::{Fence, OrderId, OrderOutcome, PlatformFact, PodFacts, RouteInForce};
use scaling::PodPhase;
use tokio::sync::mpsc;
use vocabulary::{
    Bucket, Epoch, HopKey, Ownership, PodCount, PodName, PodState, QueueProxyAnnouncement, ReplicaName,
    RevisionName,
};

use super::failure::ProcessFailure;
use super::fleet::{Fleet, PodNews, TargetPresence};
use super::leases::SeatId;
use super::order_inbox::SeatArrival;
use super::outbox::{FactOutbox, PlatformStatus};
use super::subscribers::Subscribers;
use super::supervised_revision::{Action, CountOrder};
use crate::front_door::FrontDoor;
use crate::manifest::{LoadedManifest, ManifestService, PlacedService};
use crate::pod::{Container, PodMessage, Template};

struct World {
    fleet: Fleet,
    loaded: LoadedManifest,
    now: vocabulary::Timestamp,
    log: Vec<String>,
}

fn revision(name: &str) -> RevisionName {
    RevisionName::new("default", "service", name).expect("a name")
}

/// A Service whose template differs from others by its command.
fn service(name: &str, command: &str) -> ManifestService {
    ManifestService {
        name: revision(name),
        host: format!("{name}.default.example.com"),
        own_hosts: Vec::new(),
        waiting_page: vocabulary::WaitingPage::Off,
        settings: settings::RevisionSettings::default(),
        is_in_shadow: false,
        progress_deadline: settings::PROGRESS_DEADLINE_DEFAULT,
        template: Template {
            app: Container { command: vec![command.to_owned()], ..Container::default() },
            timeouts: vocabulary::RequestTimeouts {
                request: Some(Duration::from_secs(60)),
                ..Default::default()
            },
            ..Template::default()
        },
    }
}

impl World {
    /// One Service `app` with this many pods, all announced and ready.
    fn with_pods(count: u32) -> Self {
        let mut world = Self {
            fleet: Fleet::new(FrontDoor::without_tls(([127, 0, 0, 1], 8080).into()), || {
                HopKey::new("key".to_owned())
            }),
            loaded: LoadedManifest::default(),
            now: vocabulary::Timestamp::from_secs(3600),
            log: Vec::new(),
        };
        world.edit(&[service("app", "one")]);
        world.scale(count, &[]);
        for number in 1..=count.max(1) {
            if count > 0 {
                world.ready(&pod(1, number));
            }
        }
        world.log.clear();
        world
    }

    fn edit(&mut self, services: &[ManifestService]) {
        let placed = |service: &ManifestService| PlacedService {
            file: "all.yaml".into(),
            autoscaler_file: None,
            mappings: Vec::new(),
            service: service.clone(),
        };
        self.loaded.services =
            services.iter().map(|service| (service.name.clone(), placed(service))).collect();
        self.fleet.apply(&self.loaded, self.now);
        self.carry_out();
    }

    fn scale(&mut self, count: u32, end_first: &[PodName]) {
        let count = PodCount::new(count);
        let order = CountOrder { count, end_first: end_first.to_vec(), why: format!("{count} wanted") };
        self.fleet.scale_to(&revision("app"), order, self.now);
        self.carry_out();
    }

    fn note(&mut self, pod: &PodName, news: &PodNews) {
        self.fleet.note(pod, news, self.now);
        self.carry_out();
    }

    fn announced(&mut self, pod: &PodName) {
        let ports =
            QueueProxyAnnouncement { requests: 1, admin: 2, link: 3, stat: 4, metrics: 5, link_token: None };
        self.note(pod, &PodNews::Message(PodMessage::Announced(ports)));
    }

    fn ready(&mut self, pod: &PodName) {
        self.announced(pod);
        self.state(pod, PodState::Ready);
    }

    fn state(&mut self, pod: &PodName, state: PodState) {
        self.fleet.note_state(pod, state, self.now);
        self.carry_out();
    }

    fn fails(&mut self, pod: &PodName) {
        let reason = "the app exited with code 3".to_owned();
        self.note(
            pod,
            &PodNews::Failed(ProcessFailure { reason, last_lines: vec!["no database".to_owned()] }),
        );
        self.ends(pod);
    }

    fn ends(&mut self, pod: &PodName) {
        self.note(pod, &PodNews::Ended("its pod process exited with code 0".to_owned()));
    }

    fn release(&mut self, pod: &PodName) {
        self.fleet.release(pod, self.now);
        self.carry_out();
    }

    /// Lets time pass, stopping wherever something is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.fleet.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline.max(self.now);
            self.fleet.advance(self.now);
            self.carry_out();
        }
        self.now = end;
    }

    fn carry_out(&mut self) {
        for action in self.fleet.take_actions() {
            self.log.push(match action {
                Action::Start { pod, spec, siblings: _ } => {
                    format!("start {pod} {}", spec.template.app.command[0])
                }
                Action::Terminate(pod) => format!("terminate {pod}"),
                Action::Kill(pod) => format!("kill {pod}"),
            });
        }
    }

    /// What was done since the last call.
    fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn pods(&self) -> Vec<PodFacts> {
        self.fleet.pods(&revision("app")).unwrap_or_default()
    }

    fn facts(&self, pod: &PodName) -> PodFacts {
        self.pods().into_iter().find(|facts| facts.name == *pod).unwrap_or_else(|| panic!("{pod} is there"))
    }

    fn leaving(&self) -> Vec<String> {
        self.pods().into_iter().filter(|pod| pod.leaving).map(|pod| pod.name.to_string()).collect()
    }
}

fn pod(template: u32, number: u32) -> PodName {
    PodName::new(&format!("app-{template:05}-{number:04}"))
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_new_revision_begins_with_its_initial_scale() {
    let mut world = World::with_pods(0);
    // One pod was started for the initial scale, and ended by the order to have none.
    assert_eq!(world.fleet.facts(&revision("app")).map(|facts| facts.wanted), Some(PodCount::ZERO));
    let mut several = service("more", "one");
    several.settings.min_scale = Some(PodCount::new(3));
    world.edit(&[service("app", "one"), several]);
    assert_eq!(world.done().len(), 3);
}

#[test]
fn a_start_says_how_many_pods_serve_the_same_already() {
    let mut world = World::with_pods(2);
    let siblings = |world: &mut World, wanted| {
        let why = String::new();
        let order = CountOrder { count: PodCount::new(wanted), end_first: vec![], why };
        world.fleet.scale_to(&revision("app"), order, world.now);
        let actions = world.fleet.take_actions();
        let started = actions.iter().filter_map(|action| match action {
            Action::Start { siblings, .. } => Some(siblings.all),
            Action::Terminate(_) | Action::Kill(_) => None,
        });
        started.collect::<Vec<_>>()
    };
    assert_eq!(siblings(&mut world, 4), [2, 3]);
    assert_eq!(siblings(&mut world, 0), [0; 0]);
    assert_eq!(siblings(&mut world, 2), [0, 1], "those that leave do not count");
}

#[test]
fn a_start_says_why() {
    let mut world = World::with_pods(1);
    let cause = |world: &World, pod: &PodName| {
        world.fleet.start_cause(pod).map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(cause(&world, &pod(1, 1)), "initial scale 1");
    world.scale(2, &[]);
    assert_eq!(cause(&world, &pod(1, 2)), "2 wanted");
    world.fails(&pod(1, 1));
    let failed = "instead of app-00001-0001, which failed: the app exited with code 3: no database";
    assert_eq!(cause(&world, &pod(1, 3)), failed);
    world.scale(3, &[]);
    assert_eq!(cause(&world, &pod(1, 4)), "3 wanted");
    world.edit(&[service("app", "two")]);
    assert_eq!(cause(&world, &pod(2, 5)), "rollout of app-00002");
}

#[test]
fn a_surplus_pod_leaves_is_released_ends_and_is_killed_only_if_it_does_not() {
    let mut world = World::with_pods(3);
    world.scale(1, &[pod(1, 1), pod(1, 3)]);
    assert_eq!(world.leaving(), ["app-00001-0001", "app-00001-0003"], "in the order asked for");
    assert_eq!(world.done(), [""; 0], "activators are told first");
    world.release(&pod(1, 1));
    assert_eq!(world.done(), ["terminate app-00001-0001"]);
    world.release(&pod(1, 2));
    assert_eq!(world.done(), [""; 0], "nobody asked for that pod");
    world.pass(5 * SECOND);
    assert_eq!(world.done(), ["terminate app-00001-0003"], "nobody released it within 5 s");
    world.ends(&pod(1, 3));
    // 60 s for requests, 45 s around them, 10 s for the app; the order came 5 s ago.
    world.pass(109 * SECOND);
    assert_eq!(world.done(), [""; 0]);
    world.pass(SECOND);
    assert_eq!(world.done(), ["kill app-00001-0001"]);
    world.ends(&pod(1, 1));
    assert_eq!(world.pods().len(), 1);
}

/// The queue-proxy is told its limit as it starts, so an edit holds for the pods that start after it.
#[test]
fn a_pod_may_drain_for_as_long_as_was_allowed_when_it_started() {
    let mut unlimited = service("app", "one");
    unlimited.template.timeouts.request = None;
    let allowed = |seconds: u64| {
        let mut service = unlimited.clone();
        service.settings.drain_limit = Some(Duration::from_secs(seconds));
        service
    };
    let mut world = World::with_pods(0);
    world.ends(&pod(1, 1));
    world.edit(&[allowed(30)]);
    world.scale(1, &[]);
    world.ready(&pod(2, 2));
    assert_eq!(world.fleet.longest_drain(), 75 * SECOND);
    world.edit(&[allowed(10)]);
    world.scale(2, &[]);
    world.ready(&pod(2, 3));
    assert_eq!(world.fleet.longest_drain(), 75 * SECOND, "of the older pod");
    world.scale(0, &[]);
    world.release(&pod(2, 2));
    world.release(&pod(2, 3));
    world.done();
    // 10 s for requests, 45 s around them, 10 s for the app.
    world.pass(64 * SECOND);
    assert_eq!(world.done(), [""; 0]);
    world.pass(SECOND);
    assert_eq!(world.done(), ["kill app-00002-0003"]);
    world.pass(20 * SECOND);
    assert_eq!(world.done(), ["kill app-00002-0002"]);
}

#[test]
fn a_restart_replaces_pods_one_by_one_and_an_edit_of_settings_does_not_undo_it() {
    let mut world = World::with_pods(2);
    assert_eq!(world.fleet.renew_pods(&revision("app"), world.now), TargetPresence::Yes);
    world.carry_out();
    assert_eq!(world.done(), ["start app-00002-0003 one"], "one first, as after an edit");
    let mut edited = service("app", "one");
    edited.settings.min_scale = Some(PodCount::ONE);
    world.edit(&[edited]);
    assert_eq!(world.done(), [""; 0], "it is the same template");
    world.ready(&pod(2, 3));
    assert_eq!(world.leaving(), ["app-00001-0002"]);
    assert_eq!(world.done(), ["start app-00002-0004 one"]);
    assert_eq!(world.fleet.renew_pods(&revision("other"), world.now), TargetPresence::No);
}

#[test]
fn the_template_before_the_last_edit_is_remembered() {
    let mut world = World::with_pods(1);
    let former = |world: &World| {
        world.fleet.former_template(&revision("app")).map(|template| template.app.command.clone())
    };
    assert_eq!(former(&world), None);
    world.edit(&[service("app", "two")]);
    assert_eq!(former(&world), Some(vec!["one".to_owned()]));
    world.edit(&[service("app", "one")]);
    assert_eq!(former(&world), Some(vec!["two".to_owned()]), "a rollback can be rolled back");
}

#[test]
fn a_pod_that_nobody_knows_yet_is_ended_without_waiting() {
    let mut world = World::with_pods(1);
    world.scale(3, &[]);
    world.announced(&pod(1, 2));
    world.done();
    world.scale(1, &[pod(1, 1)]);
    // Neither is ready, so they go before the one that works, whatever the order says.
    assert_eq!(world.leaving(), ["app-00001-0002", "app-00001-0003"]);
    assert_eq!(world.done(), ["terminate app-00001-0003"]);
}

#[test]
fn a_failed_pod_is_replaced_with_growing_patience_and_the_reason_stays_until_one_is_ready() {
    let mut world = World::with_pods(1);
    world.pass(SECOND);
    world.fails(&pod(1, 1));
    let successor = world.facts(&pod(1, 2));
    assert_eq!(successor.phase, PodPhase::Pending);
    assert_eq!(
        successor.trouble.as_deref(),
        Some(
            "app-00001-0001 failed: the app exited with code 3: no database; it is started again 100ms later"
        )
    );
    assert_eq!(world.done(), [""; 0]);
    world.pass(Duration::from_millis(99));
    assert_eq!(world.done(), [""; 0]);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.done(), ["start app-00001-0002 one"]);
    world.fails(&pod(1, 2));
    world.pass(Duration::from_millis(199));
    assert_eq!(world.done(), [""; 0]);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.done(), ["start app-00001-0003 one"]);
    assert!(
        world.facts(&pod(1, 3)).trouble.is_some_and(|trouble| trouble.starts_with("app-00001-0002 failed"))
    );
    world.ready(&pod(1, 3));
    assert_eq!(world.facts(&pod(1, 3)).trouble, None);
}

#[test]
fn trouble_without_output_has_no_word_of_the_app_here_and_after_a_take_over() {
    let mut world = World::with_pods(1);
    world.pass(SECOND);
    world.fails(&pod(1, 1));
    let advice = "(run as the user of ebb to see its last lines); it is started again 100ms later";
    let text = format!("app-00001-0001 failed: the app exited with code 3 {advice}");
    assert_eq!(world.facts(&pod(1, 2)).trouble_without_output, Some(text));
    world.done();
    let mut world = handed_over(world);
    world.edit(&[service("app", "one")]);
    let troubles: Vec<String> =
        world.pods().into_iter().filter_map(|pod| pod.trouble_without_output).collect();
    assert!(!troubles.is_empty() && !troubles.concat().contains("no database"), "{troubles:?}");
}

#[test]
fn an_app_that_listens_elsewhere_is_the_trouble_of_its_pod_until_that_is_over() {
    let mut world = World::with_pods(0);
    world.scale(1, &[]);
    let starting = pod(1, 2);
    let tell = |world: &mut World, trouble: Option<&str>| {
        let trouble = trouble.map(str::to_owned);
        world.note(&starting, &PodNews::Message(PodMessage::ListensElsewhere { trouble }));
    };
    let text = "it listens on 127.0.0.1:23555, not on $PORT (29783)";
    tell(&mut world, Some(text));
    let facts = world.facts(&starting);
    assert_eq!(facts.trouble.as_deref(), Some(text));
    assert_eq!(facts.trouble_without_output.as_deref(), Some(text), "the 504 of a client has this one");
    tell(&mut world, None);
    assert_eq!(world.facts(&starting).trouble, None);
}

/// What its pods say of waiting for them.
fn hold(world: &World) -> Option<String> {
    world.pods().iter().find_map(|pod| pod.hold.clone())
}

#[test]
fn requests_do_not_wait_after_three_failures_in_a_row_and_a_wake_is_a_fresh_attempt() {
    let mut world = World::with_pods(0);
    world.scale(1, &[]);
    for number in 2..4 {
        world.fails(&pod(1, number));
        assert_eq!(hold(&world), None, "failure {number}");
        world.pass(SECOND);
    }
    world.fails(&pod(1, 4));
    let text = "3 failures in a row: app-00001-0004 failed: the app exited with code 3 (run as the user of ebb to see its last lines)";
    assert_eq!(hold(&world).as_deref(), Some(text));
    world.pass(SECOND);
    assert_eq!(hold(&world).as_deref(), Some(text), "the next one is on trial");
    world.scale(0, &[]);
    world.done();
    world.scale(1, &[]);
    assert_eq!((hold(&world), world.done().len()), (None, 1), "a wake starts one at once");
    let failed = world.fleet.last_failure(&revision("app")).map(|failure| failure.pod.clone());
    assert_eq!(failed, Some(pod(1, 4)), "and the failure is not forgotten");
}

#[test]
fn a_pod_that_listens_for_a_moment_and_fails_counts_among_the_failures_in_a_row() {
    let mut world = World::with_pods(0);
    world.scale(1, &[]);
    for number in 2..5 {
        assert_eq!(hold(&world), None, "before failure {number}");
        world.ready(&pod(1, number));
        world.pass(Duration::from_millis(400));
        world.fails(&pod(1, number));
        if number < 4 {
            world.pass(SECOND);
        }
    }
    let text = "3 failures in a row: app-00001-0004 failed: the app exited with code 3 (run as the user of ebb to see its last lines)";
    assert_eq!(hold(&world).as_deref(), Some(text));
    world.pass(SECOND);
    world.ready(&pod(1, 5));
    assert_eq!(hold(&world), None, "while it listens, requests are to try it");
}

/// A revision whose pod has failed twice in a row, and its third pod, which is ready.
fn failed_twice() -> (World, PodName) {
    let mut world = World::with_pods(0);
    world.scale(1, &[]);
    for number in 2..4 {
        world.fails(&pod(1, number));
        world.pass(SECOND);
    }
    world.ready(&pod(1, 4));
    (world, pod(1, 4))
}

#[test]
fn an_answered_request_or_ten_healthy_seconds_end_a_row_of_failures() {
    type GiveProof = fn(&mut World, &PodName);
    let proofs: [(&str, GiveProof); 4] = [
        ("nothing", |world, _| world.pass(9 * SECOND)),
        ("an answer", |world, pod| world.note(pod, &PodNews::Message(PodMessage::Answered))),
        ("health", |world, _| world.pass(10 * SECOND)),
        ("health, and then unready before its end is known", |world, pod| {
            world.pass(10 * SECOND);
            world.state(pod, PodState::Unready);
        }),
    ];
    for (proof, give) in proofs {
        let (mut world, pod) = failed_twice();
        give(&mut world, &pod);
        let mut world = handed_over(world);
        world.edit(&[service("app", "one")]);
        world.fails(&pod);
        assert_eq!(hold(&world).is_some(), proof == "nothing", "{proof}");
    }
}

#[test]
fn a_pod_process_that_vanishes_is_a_failure_too() {
    let mut world = World::with_pods(1);
    world.note(&pod(1, 1), &PodNews::Ended("its pod process was killed by SIGKILL".to_owned()));
    let trouble = world.facts(&pod(1, 2)).trouble.expect("a reason");
    assert!(trouble.starts_with("app-00001-0001 failed: its pod process was killed by SIGKILL"), "{trouble}");
}

#[test]
fn one_old_pod_leaves_for_each_new_one_that_is_ready() {
    let mut world = World::with_pods(2);
    world.edit(&[service("app", "two")]);
    assert_eq!(world.done(), ["start app-00002-0003 two"], "a bad template crashes once");
    assert!(world.facts(&pod(1, 1)).outdated && !world.facts(&pod(2, 3)).outdated);
    assert_eq!(world.leaving(), [""; 0]);
    world.fleet.take_changes();
    world.ready(&pod(2, 3));
    assert_eq!(world.done(), ["start app-00002-0004 two"], "the rest when that one is ready");
    assert_eq!(world.leaving().len(), 1);
    assert_eq!(world.fleet.take_changes().rolled_out, []);
    world.ready(&pod(2, 4));
    assert_eq!(world.fleet.take_changes().rolled_out, [(revision("app"), "app-00002".to_owned())]);
    assert_eq!(world.leaving(), ["app-00001-0001", "app-00001-0002"]);
    assert_eq!(world.fleet.facts(&revision("app")).map(|facts| facts.template).as_deref(), Some("app-00002"));
}

#[test]
fn a_new_template_that_never_gets_ready_leaves_the_old_one_serving_and_growing() {
    let mut world = World::with_pods(1);
    world.edit(&[service("app", "broken")]);
    world.fails(&pod(2, 2));
    world.pass(SECOND);
    assert_eq!(world.leaving(), [""; 0]);
    world.done();
    world.scale(2, &[]);
    assert!(
        world.done().iter().any(|action| action.ends_with(" one")),
        "the load grows, and the old template works"
    );
    world.scale(0, &[]);
    assert!(world.pods().iter().all(|pod| pod.leaving), "nothing is wanted, so nothing is kept");
}

#[test]
fn starts_that_wait_become_the_new_templates_once_its_first_pod_is_ready() {
    let mut world = World::with_pods(1);
    world.scale(5, &[]);
    world.note(&pod(1, 2), &PodNews::Spawned(4711));
    world.done();
    world.edit(&[service("app", "two")]);
    assert_eq!(world.done(), ["start app-00002-0006 two"], "the others wait on until that one is ready");
    assert_eq!(world.leaving(), [""; 0]);
    world.note(&pod(2, 6), &PodNews::Spawned(4712));
    world.ready(&pod(2, 6));
    let done = world.done();
    let (ended, started) = done.split_at(3);
    assert_eq!(
        ended,
        ["terminate app-00001-0003", "terminate app-00001-0004", "terminate app-00001-0005"],
        "none of them has a process; the second pod has"
    );
    assert_eq!(started.len(), 4, "{started:?}");
    assert!(started.iter().all(|action| action.ends_with(" two")), "{started:?}");
}

#[test]
fn a_bad_edit_in_a_burst_crashes_once_and_takes_no_start_from_the_template_that_works() {
    let mut world = World::with_pods(1);
    world.scale(4, &[]);
    world.edit(&[service("app", "broken")]);
    world.done();
    world.fails(&pod(2, 5));
    assert_eq!(world.leaving(), [""; 0]);
    world.pass(SECOND);
    assert_eq!(world.done(), ["start app-00002-0006 broken"]);
    assert_eq!(world.pods().iter().filter(|pod| pod.outdated).count(), 4);
}

#[test]
fn a_smaller_count_ends_pods_without_a_process_first() {
    let mut world = World::with_pods(1);
    world.scale(4, &[]);
    world.note(&pod(1, 4), &PodNews::Spawned(4711));
    world.done();
    world.scale(2, &[]);
    assert_eq!(world.done(), ["terminate app-00001-0003", "terminate app-00001-0002"]);
}

#[test]
fn a_start_says_how_many_pods_run_its_template() {
    let mut world = World::with_pods(2);
    let siblings = |world: &mut World| {
        let actions = world.fleet.take_actions();
        let started = actions.iter().filter_map(|action| match action {
            Action::Start { siblings, .. } => Some((siblings.all, siblings.of_template)),
            Action::Terminate(_) | Action::Kill(_) => None,
        });
        started.collect::<Vec<_>>()
    };
    world.loaded.services.get_mut(&revision("app")).expect("it is there").service = service("app", "two");
    world.fleet.apply(&world.loaded, world.now);
    assert_eq!(siblings(&mut world), [(2, 0)]);
    world.fleet.note_state(&pod(2, 3), PodState::Ready, world.now);
    assert_eq!(siblings(&mut world), [(2, 1)], "one of the two others leaves");
}

#[test]
fn undoing_an_edit_keeps_the_pods_that_run() {
    let mut world = World::with_pods(2);
    world.edit(&[service("app", "broken")]);
    world.edit(&[service("app", "one")]);
    assert_eq!(world.leaving(), ["app-00002-0003"]);
    assert!(!world.facts(&pod(1, 1)).outdated);
}

#[test]
fn an_edit_of_what_applies_live_starts_nothing() {
    let mut world = World::with_pods(1);
    let mut edited = service("app", "one");
    edited.settings.target = Some(5.0);
    edited.progress_deadline = SECOND;
    world.fleet.take_changes();
    world.edit(&[edited]);
    assert_eq!(world.done(), [""; 0]);
    assert!(world.fleet.take_changes().revisions.contains(&revision("app")), "but it is told");
}

#[test]
fn an_edit_at_zero_pods_waits_for_the_next_wake() {
    let mut world = World::with_pods(1);
    world.scale(0, &[]);
    world.release(&pod(1, 1));
    world.ends(&pod(1, 1));
    world.done();
    world.edit(&[service("app", "two")]);
    assert_eq!(world.done(), [""; 0]);
    world.scale(1, &[]);
    assert_eq!(world.done(), ["start app-00002-0002 two"]);
}

#[test]
fn a_removed_service_answers_no_more_and_goes_with_its_last_pod() {
    let mut world = World::with_pods(1);
    world.edit(&[]);
    assert_eq!(world.fleet.facts(&revision("app")).map(|facts| facts.hosts()), Some(vec![]));
    assert_eq!(world.leaving(), ["app-00001-0001"]);
    world.scale(5, &[]);
    assert_eq!(world.done(), [""; 0], "orders for it come too late");
    world.fleet.take_changes();
    world.release(&pod(1, 1));
    world.ends(&pod(1, 1));
    assert!(world.fleet.take_changes().removed.contains(&revision("app")));
    assert!(world.fleet.facts(&revision("app")).is_none());
}

#[test]
fn a_service_that_is_back_before_its_last_pod_ended_serves_again() {
    let mut world = World::with_pods(1);
    world.edit(&[]);
    world.edit(&[service("app", "one")]);
    assert_eq!(world.done(), ["start app-00001-0002 one"], "what leaves, leaves");
    assert_eq!(world.fleet.facts(&revision("app")).map(|facts| facts.hosts().len()), Some(6));
}

#[test]
fn plain_localhost_belongs_to_the_only_service() {
    let mut world = World::with_pods(1);
    let hosts = |world: &World, name: &str| {
        world.fleet.facts(&revision(name)).map(|facts| facts.hosts()).unwrap_or_default()
    };
    let own = |name: &str| {
        [".default.example.com", ".localhost", ".default.localhost"].map(|rest| format!("{name}{rest}"))
    };
    let with_single =
        |name: &str| [&own(name)[..], &["localhost", "127.0.0.1", "[::1]"].map(str::to_owned)].concat();
    assert_eq!(hosts(&world, "app"), with_single("app"));
    let url = world.fleet.facts(&revision("app")).and_then(|facts| facts.url);
    assert_eq!(url.as_deref(), Some("http://app.localhost:8080"));
    world.edit(&[service("app", "one"), service("other", "one")]);
    assert_eq!(hosts(&world, "app"), own("app"));
    assert_eq!(hosts(&world, "other"), own("other"));
    world.edit(&[service("other", "one")]);
    assert_eq!(hosts(&world, "other"), with_single("other"));
}

#[test]
fn draining_ends_all_and_takes_no_more_orders() {
    let mut world = World::with_pods(2);
    world.fleet.drain(world.now);
    world.carry_out();
    assert_eq!(world.leaving().len(), 2);
    world.scale(4, &[]);
    world.edit(&[service("new", "one")]);
    world.fleet.release_all(world.now);
    world.carry_out();
    assert_eq!(world.done(), ["terminate app-00001-0001", "terminate app-00001-0002"]);
    assert!(!world.fleet.has_ended());
    world.ends(&pod(1, 1));
    world.ends(&pod(1, 2));
    assert!(world.fleet.has_ended());
}

#[test]
fn killing_waits_for_nobody() {
    let mut world = World::with_pods(1);
    world.fleet.drain(world.now);
    world.fleet.kill(world.now);
    world.carry_out();
    assert_eq!(world.done(), ["kill app-00001-0001"]);
    world.ends(&pod(1, 1));
    assert!(world.fleet.has_ended());
}

mod telling {
    use super::*;

    fn kinds(events: &mut mpsc::Receiver<PlatformFact>) -> Vec<String> {
        let mut kinds = Vec::new();
        while let Ok(event) = events.try_recv() {
            kinds.push(match event {
                PlatformFact::ConfigChanged(_) => "config".to_owned(),
                PlatformFact::ProblemsChanged { problems, .. } => format!("{} problems", problems.len()),
                PlatformFact::RevisionChanged(facts) => format!("revision {}", facts.name.name()),
                PlatformFact::RevisionRemoved(name) | PlatformFact::RevisionGivenBack(name) => {
                    format!("removed {}", name.name())
                }
                PlatformFact::PodsChanged { revision, pods } => {
                    format!("pods of {}: {}", revision.name(), pods.len())
                }
                PlatformFact::PodFailed { failure, .. } => format!("failure of {}", failure.pod),
                PlatformFact::PodKilled { kill, .. } => format!("kill of {}", kill.pod),
                PlatformFact::ActivatorsChanged(activators) => format!("{} activators", activators.len()),
                PlatformFact::OwnershipChanged(_) => "ownership".to_owned(),
                PlatformFact::RouteFound { revision, .. } => format!("route of {}", revision.name()),
                PlatformFact::OrderEnded { outcome, .. } => format!("{outcome:?}"),
                PlatformFact::Synced => "synced".to_owned(),
            });
        }
        kinds
    }

    #[test]
    fn a_subscriber_hears_everything_that_is_then_what_changes() {
        let mut world = World::with_pods(1);
        let status = PlatformStatus::default();
        let (subscriber, mut events) = mpsc::channel(100);
        let everything = Ownership::of_everything(Epoch(1));
        let mut outbox = FactOutbox::new(subscriber, everything, &world.fleet);
        assert!(!outbox.deliver(&world.fleet, &status));
        let all =
            ["config", "revision app", "ownership", "pods of app: 1", "0 activators", "0 problems", "synced"];
        assert_eq!(kinds(&mut events), all);
        world.fleet.take_changes();

        world.fleet.advance(world.now);
        outbox.note_changes(&world.fleet.take_changes());
        outbox.deliver(&world.fleet, &status);
        assert_eq!(kinds(&mut events), [""; 0], "nothing changed, so nothing is said");

        world.scale(2, &[]);
        outbox.note_changes(&world.fleet.take_changes());
        outbox.deliver(&world.fleet, &status);
        assert_eq!(kinds(&mut events), ["pods of app: 2"], "an order is not told back");

        world.fails(&pod(1, 1));
        outbox.note_changes(&world.fleet.take_changes());
        outbox.deliver(&world.fleet, &status);
        assert_eq!(kinds(&mut events), ["pods of app: 2", "failure of app-00001-0001"]);
    }

    /// An autoscaler that takes a seat, and what it is told.
    fn arrival(seat: u64, name: &str) -> (SeatArrival, mpsc::Receiver<PlatformFact>) {
        let (facts, told) = mpsc::channel(100);
        (SeatArrival { seat: SeatId(seat), name: ReplicaName::new(name), facts }, told)
    }

    fn fence(bucket: u16, epoch: u64) -> Fence {
        Fence { bucket: Bucket(bucket), epoch: Epoch(epoch) }
    }

    #[test]
    fn a_new_subscriber_hears_the_route_in_force_and_what_the_former_one_ordered_is_not_its_affair() {
        let mut world = World::with_pods(1);
        let status = PlatformStatus::default();
        let mut subscribers = Subscribers::new(&[ReplicaName::new("one")], world.now);
        let (former, mut former_events) = arrival(1, "one");
        subscribers.take_seat(former, &world.fleet, world.now);
        subscribers.order_ended(SeatId(1), OrderId(1), OrderOutcome::Done);
        subscribers.deliver(&world.fleet, &status);
        assert!(kinds(&mut former_events).contains(&"Done".to_owned()));
        let route = RouteInForce { routing: vocabulary::Routing::Direct, activators: Vec::new() };
        assert_eq!(world.fleet.set_route(&revision("app"), route), TargetPresence::Yes);
        let (latter, mut events) = arrival(2, "one");
        subscribers.take_seat(latter, &world.fleet, world.now);
        assert!(
            !subscribers.is_in_force(SeatId(1), fence(0, 1))
                && subscribers.is_in_force(SeatId(2), fence(0, 2))
        );
        subscribers.order_ended(SeatId(1), OrderId(2), OrderOutcome::NotOwner);
        subscribers.order_ended(SeatId(2), OrderId(2), OrderOutcome::Gone);
        subscribers.deliver(&world.fleet, &status);
        let told = kinds(&mut events);
        assert!(told.contains(&"route of app".to_owned()) && told.contains(&"Gone".to_owned()), "{told:?}");
        assert!(!told.contains(&"NotOwner".to_owned()), "{told:?}");
    }

    /// Counts and routes are told to no seat while their owner orders them, so the next owner is told them
    /// first.
    #[test]
    fn a_new_owner_gets_the_former_owners_counts_and_routes_before_the_bucket() {
        let mut world = World::with_pods(1);
        let status = PlatformStatus::default();
        let mut subscribers = Subscribers::new(&["one", "two"].map(ReplicaName::new), world.now);
        let [(one, mut told_one), (two, mut told_two)] = [arrival(1, "one"), arrival(2, "two")];
        subscribers.take_seat(one, &world.fleet, world.now);
        subscribers.take_seat(two, &world.fleet, world.now);
        subscribers.deliver(&world.fleet, &status);
        world.fleet.take_changes();
        let ownership = Ownership { epochs: [(Bucket(0), Epoch(1))].into(), buckets: 2 };
        let (loser, winner) = match ownership.bucket_of(&revision("app")) {
            Bucket(0) => ((SeatId(1), &mut told_one), (SeatId(2), &mut told_two)),
            Bucket(_) => ((SeatId(2), &mut told_two), (SeatId(1), &mut told_one)),
        };
        kinds(loser.1);
        kinds(winner.1);
        let route = RouteInForce { routing: vocabulary::Routing::Direct, activators: Vec::new() };
        world.fleet.set_route(&revision("app"), route);
        world.scale(3, &[]);
        subscribers.note_changes(&world.fleet.take_changes());
        subscribers.deliver(&world.fleet, &status);
        assert_eq!(kinds(winner.1), ["pods of app: 3"]);
        for second in [5, 10, 14] {
            subscribers.renew([winner.0], &world.fleet, world.now + Duration::from_secs(second));
        }
        let deadline = subscribers.next_deadline().expect("a lease runs out");
        assert_eq!(deadline, world.now + Duration::from_secs(15));
        subscribers.advance(&world.fleet, deadline);
        subscribers.deliver(&world.fleet, &status);
        assert_eq!(kinds(winner.1), ["revision app", "route of app", "ownership"]);
        let facts = world.fleet.facts(&revision("app")).expect("it is there");
        assert_eq!((facts.wanted, facts.origin), (PodCount::new(3), scaling::RevisionOrigin::Found));
        // The one that hung hears of it whenever it listens, and what it orders until then is refused.
        assert_eq!(kinds(loser.1), ["pods of app: 3", "ownership"]);
        assert!(
            !subscribers.is_in_force(loser.0, fence(0, 1)) && !subscribers.is_in_force(loser.0, fence(1, 2))
        );
        subscribers.order_ended(loser.0, OrderId(7), OrderOutcome::NotOwner);
        subscribers.deliver(&world.fleet, &status);
        assert_eq!(kinds(loser.1), ["NotOwner"]);
    }

    #[test]
    fn a_slow_subscriber_misses_the_steps_but_not_the_state() {
        let mut world = World::with_pods(1);
        let status = PlatformStatus::default();
        let (subscriber, mut events) = mpsc::channel(1);
        let mut outbox = FactOutbox::new(subscriber, Ownership::of_everything(Epoch(1)), &world.fleet);
        assert!(outbox.deliver(&world.fleet, &status), "there is more than fits");
        for count in 2..5 {
            world.scale(count, &[]);
            outbox.note_changes(&world.fleet.take_changes());
            outbox.deliver(&world.fleet, &status);
        }
        let mut heard = Vec::new();
        loop {
            let more = outbox.deliver(&world.fleet, &status);
            heard.extend(kinds(&mut events));
            if !more {
                break;
            }
        }
        let all =
            ["config", "revision app", "ownership", "pods of app: 4", "0 activators", "0 problems", "synced"];
        assert_eq!(heard, all);
    }
}

/// The same fleet in another process, whose clock shows something else, before its files are read.
fn handed_over(mut world: World) -> World {
    let pods = world.fleet.names().flat_map(|name| world.fleet.pods(name).expect("it is there"));
    let with_process = pods.map(|pod| pod.name).collect();
    let record = world.fleet.record(&with_process, world.now);
    let record = serde_json::to_string(&record).expect("records are plain data");
    world.now = vocabulary::Timestamp::from_secs(1_000_000);
    world.fleet = Fleet::new(FrontDoor::without_tls(([127, 0, 0, 1], 8080).into()), || {
        HopKey::new("another key".to_owned())
    });
    world.fleet.take_over(serde_json::from_str(&record).expect("it is understood"), &world.loaded, world.now);
    world
}

#[test]
fn a_take_over_starts_and_ends_no_pod_and_tells_the_same_facts() {
    let mut world = World::with_pods(3);
    world.scale(2, &[pod(1, 2)]);
    world.release(&pod(1, 2));
    assert_eq!(world.done(), ["terminate app-00001-0002"]);
    // Keys are not in the text.
    let said = |fleet: &Fleet| {
        let facts = fleet.facts(&revision("app")).expect("it is there");
        (format!("{facts:?}"), facts.hop_keys, fleet.pods(&revision("app")))
    };
    let before = said(&world.fleet);
    let mut world = handed_over(world);
    world.edit(&[service("app", "one")]);
    // It may not have been told, if it was at that moment that everything stood still.
    assert_eq!(world.done(), ["terminate app-00001-0002"]);
    assert_eq!(said(&world.fleet), before);
    let left = world.fleet.longest_end();
    world.pass(left.saturating_sub(SECOND));
    assert_eq!(world.done(), [""; 0]);
    world.pass(SECOND);
    assert_eq!(world.done(), ["kill app-00001-0002"], "what is left of its time goes on");
    world.ends(&pod(1, 2));
    world.scale(3, &[]);
    assert_eq!(world.done(), ["start app-00001-0004 one"], "names go on as well");
}

#[test]
fn repeated_failures_are_known_after_a_take_over() {
    let mut world = World::with_pods(1);
    world.pass(SECOND);
    for number in 1..4 {
        world.fails(&pod(1, number));
        world.pass(Duration::from_millis(if number < 3 { 1000 } else { 100 }));
    }
    let text = "3 failures in a row: app-00001-0003 failed: the app exited with code 3 (run as the user of ebb to see its last lines)";
    assert_eq!(hold(&world).as_deref(), Some(text));
    let failure = world.fleet.last_failure(&revision("app")).cloned().expect("one failed");
    world.done();
    let mut world = handed_over(world);
    world.edit(&[service("app", "one")]);
    assert_eq!(hold(&world).as_deref(), Some(text), "nobody should wait");
    let known = world.fleet.last_failure(&revision("app")).cloned().expect("it is known");
    assert_eq!((known.pod, known.last_lines), (failure.pod, failure.last_lines));
    assert_eq!(world.now.saturating_since(known.at), Duration::from_millis(100));
    // 400 ms after the third failure, of which 100 had passed.
    world.pass(Duration::from_millis(299));
    assert_eq!(world.done(), [""; 0], "the wait goes on");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.done(), ["start app-00001-0005 one"]);
    world.fails(&pod(1, 5));
    world.pass(Duration::from_millis(799));
    assert_eq!(world.done(), [""; 0], "and grows on");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.done(), ["start app-00001-0006 one"]);
}

#[test]
fn the_time_from_term_to_kill_is_the_manifests_before_and_after_a_take_over() {
    let mut patient = service("app", "one");
    patient.template.termination_grace = Some(100 * SECOND);
    let mut world = World::with_pods(1);
    world.edit(std::slice::from_ref(&patient));
    assert_eq!(world.done(), ["start app-00002-0002 one"]);
    world.announced(&pod(2, 2));
    world.ready(&pod(2, 2));
    world.release(&pod(1, 1));
    world.done();
    world.ends(&pod(1, 1));
    let mut world = handed_over(world);
    world.edit(&[patient]);
    world.scale(0, &[]);
    world.release(&pod(2, 2));
    assert_eq!(world.done(), ["terminate app-00002-0002"]);
    // The request timeout of 60 s and 15 s more, then the app's own.
    let left = world.fleet.longest_end();
    assert_eq!(left, world.fleet.longest_drain() + 100 * SECOND);
    world.pass(left.saturating_sub(SECOND));
    assert_eq!(world.done(), [""; 0]);
    world.pass(SECOND);
    assert_eq!(world.done(), ["kill app-00002-0002"]);
}

#[test]
fn a_rollout_goes_on_where_it_was_and_another_edit_is_one_more() {
    let mut world = World::with_pods(2);
    world.edit(&[service("app", "two")]);
    assert_eq!(world.done(), ["start app-00002-0003 two"]);
    let mut world = handed_over(world);
    world.edit(&[service("app", "three")]);
    assert_eq!(world.done(), ["terminate app-00002-0003", "start app-00003-0004 three"]);
    world.ready(&pod(3, 4));
    assert_eq!(world.done(), ["start app-00003-0005 three"]);
}

#[test]
fn a_service_without_a_file_drains_after_a_take_over() {
    let mut world = handed_over(World::with_pods(1));
    world.edit(&[]);
    assert_eq!(world.leaving(), ["app-00001-0001"]);
    world.release(&pod(1, 1));
    world.ends(&pod(1, 1));
    assert_eq!(world.fleet.names().count(), 0);
}
