//! Activators of Knative's, which push what they hold, are told nothing and acknowledge nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use settings::{ClusterConfig, FloorCause, RevisionSettings};
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, Concurrency, Epoch, LinkAddress, LinkChannel, LinkVersion, Load,
    Ownership, PodCount, PodHello, PodName, PodState, PodWord, PresentCount, ReplicaName, RequestRate,
    RequestTimeouts, RevisionName, Routing, Sample, Slice, Timestamp, WaitingPage,
};

use super::world;
use crate::*;

const ACTIVATOR: LinkId = LinkId(1);

/// A control loop beside one activator of Knative's, with what it has said since the last look.
struct Beside {
    orchestrator: Orchestrator,
    now: Timestamp,
    commands: Vec<ControlCommand>,
    /// The number of the activator's running second.
    second: u64,
}

fn revision() -> RevisionName {
    RevisionName::parse("default/revision/hello-00001").expect("a name")
}

fn address(last: u8, port: u16, channel: LinkChannel) -> LinkAddress {
    LinkAddress { channel, ..SocketAddr::from(([10, 0, 0, last], port)).into() }
}

fn facts(wanted: u32) -> RevisionFacts {
    let annotations = [("autoscaling.knative.dev/window".to_owned(), "10s".to_owned())].into();
    let config = ClusterConfig::default();
    RevisionFacts {
        name: revision(),
        settings: RevisionSettings::read(&annotations, &config, None).expect("good").value,
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        progress_deadline: Duration::from_secs(600),
        entrances: vec![Entrance::Host("hello-00001.default.svc.cluster.local".to_owned())],
        url: None,
        hop_keys: Vec::new(),
        wanted: PodCount::new(wanted),
        may_write: true,
        reachable: true,
        floor: PodCount::ZERO,
        floor_cause: FloorCause::default(),
        hold: None,
        origin: scaling::RevisionOrigin::New,
        waiting_page: WaitingPage::Off,
        template: "hello-00001".to_owned(),
        other_autoscaler: None,
    }
}

fn knatives_activator() -> ActivatorFacts {
    ActivatorFacts {
        name: ReplicaName::new("activator-1"),
        link: address(1, 8012, LinkChannel::Pushed),
        life: ActivatorLife::Ready,
    }
}

impl Beside {
    fn new(wanted: u32) -> Self {
        let settings = OrchestratorSettings {
            choice: ActivatorChoice::AllOfWhichSomeShare,
            ..OrchestratorSettings::default()
        };
        let mut beside = Self {
            orchestrator: Orchestrator::new(settings),
            now: Timestamp::from_secs(1000),
            commands: Vec::new(),
            second: 0,
        };
        beside.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(1))));
        beside.fact(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default())));
        beside.fact(PlatformFact::RevisionChanged(Arc::new(facts(wanted))));
        beside.fact(PlatformFact::ActivatorsChanged(vec![knatives_activator()]));
        beside.fact(PlatformFact::Synced);
        beside
    }

    fn event(&mut self, event: ControlEvent) {
        self.orchestrator.handle(event, self.now);
        self.settle();
    }

    fn fact(&mut self, fact: PlatformFact) {
        self.event(ControlEvent::Platform(fact));
    }

    fn settle(&mut self) {
        loop {
            self.obey();
            if self.orchestrator.next_deadline().is_none_or(|deadline| deadline > self.now) {
                return;
            }
            self.orchestrator.advance(self.now);
        }
    }

    /// Carries each order out at once, as a platform that is fast.
    fn obey(&mut self) {
        while let Some(command) = self.orchestrator.next_command() {
            if let ControlCommand::Order(order) = &command {
                let ended = PlatformFact::OrderEnded { order: order.id, outcome: OrderOutcome::Done };
                self.orchestrator.handle(ControlEvent::Platform(ended), self.now);
            }
            self.commands.push(command);
        }
    }

    fn says(&mut self, word: ActivatorWord) {
        self.event(ControlEvent::ActivatorSpoke { link: ACTIVATOR, word });
    }

    fn hello(&mut self) {
        self.says(ActivatorWord::Hello(self.hello_of("activator-1")));
    }

    fn hello_of(&self, name: &str) -> ActivatorHello {
        ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: ReplicaName::new(name),
            boot: BootId(1),
            current_second: self.second,
            history: Vec::new(),
            present: Vec::new(),
            routings: Vec::new(),
        }
    }

    fn holds(&mut self, in_flight: u32) {
        let count = PresentCount { in_flight, waiting: 0 };
        self.says(ActivatorWord::Present { revision: revision(), count, oldest_wait: Duration::ZERO });
    }

    /// Seconds pass in which the activator holds so much, and the pod what came to it through there.
    fn pass(&mut self, seconds: u64, held: f64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            let concurrency = Concurrency::new(held).expect("a load");
            let rate = RequestRate::new(held).expect("a rate");
            let load = Load { concurrency, request_rate: rate, ..Load::default() };
            let loads = vocabulary::RevisionLoad {
                revision: revision(),
                load,
                oldest_wait: Duration::ZERO,
                callers: Vec::new(),
            };
            let loads = if held > 0.0 { vec![loads] } else { Vec::new() };
            self.says(ActivatorWord::Loads { second: self.second, loads });
            self.scraped(held);
            self.second += 1;
        }
    }

    /// The answer of the pod, where one is linked.
    fn scraped(&mut self, held: f64) {
        let concurrency = Concurrency::new(held).expect("a load");
        let rate = RequestRate::new(held).expect("a rate");
        let load = Load {
            concurrency,
            proxied_concurrency: concurrency,
            request_rate: rate,
            proxied_request_rate: rate,
            queued: 0,
        };
        let sample = Sample { second: self.second, load };
        let word = PodWord::Load { sample, usage: None, late_bytes: None };
        if let Some(link) = self.pod_link() {
            self.event(ControlEvent::PodSpoke { link, word });
        }
    }

    /// A pod that Kubernetes calls ready or not, and that has no link.
    fn pod(&mut self, is_ready: bool) {
        let pod = PodFacts {
            platform_ready: Some(is_ready),
            link: Some(address(2, 9090, LinkChannel::Scraped)),
            ..world::pod("default/hello-00001-deployment-a")
        };
        let is_new = self.pod_link().is_none();
        self.fact(PlatformFact::PodsChanged { revision: revision(), pods: vec![pod] });
        if let Some(link) = self.pod_link().filter(|_| is_new) {
            let hello = PodHello {
                speaks: LinkVersion::CURRENT,
                pod: PodName::new("default/hello-00001-deployment-a"),
                boot: BootId(1),
                state: PodState::Unheard,
                detail: String::new(),
                container_concurrency: 0,
                timeouts: RequestTimeouts::default(),
                current_second: self.second,
                history: Vec::new(),
            };
            self.event(ControlEvent::PodSpoke { link, word: PodWord::Hello(hello) });
        }
    }

    /// An activator of ebb's comes beside Knative's, and is linked.
    fn link_ours(&mut self) {
        let ours = ActivatorFacts {
            name: ReplicaName::new("activator-2"),
            link: address(3, 8024, LinkChannel::TlsOfActivator),
            life: ActivatorLife::Ready,
        };
        self.fact(PlatformFact::ActivatorsChanged(vec![knatives_activator(), ours]));
        let link = self.commands.iter().find_map(|command| {
            let ControlCommand::OpenLink { link, peer: Peer::Activator { name }, .. } = command else {
                return None;
            };
            (name.as_str() == "activator-2").then_some(*link)
        });
        let word = ActivatorWord::Hello(self.hello_of("activator-2"));
        self.event(ControlEvent::ActivatorSpoke { link: link.expect("it is dialled"), word });
    }

    fn pod_link(&self) -> Option<LinkId> {
        self.commands.iter().find_map(|command| {
            let ControlCommand::OpenLink { link, peer: Peer::Pod { .. }, .. } = command else { return None };
            Some(*link)
        })
    }

    fn counts(&self) -> Vec<u32> {
        let counts = self.orders().filter_map(|order| {
            let Order::ScaleTo { to, .. } = order else { return None };
            Some(to.value())
        });
        counts.collect()
    }

    fn routings(&self) -> Vec<Routing> {
        let routings = self.orders().filter_map(|order| {
            let Order::Route { routing, .. } = order else { return None };
            Some(*routing)
        });
        routings.collect()
    }

    fn orders(&self) -> impl Iterator<Item = &Order> {
        self.commands.iter().filter_map(|command| {
            let ControlCommand::Order(order) = command else { return None };
            Some(&order.what)
        })
    }

    /// What was said to activators.
    fn told(&self) -> usize {
        let told = self.commands.iter().filter(|command| {
            matches!(
                command,
                ControlCommand::Sync { .. }
                    | ControlCommand::Assign { .. }
                    | ControlCommand::Unassign { .. }
                    | ControlCommand::ReleaseActivator { .. }
            )
        });
        told.count()
    }
}

#[test]
fn an_activator_that_pushes_is_told_nothing_and_its_first_request_asks_for_a_pod() {
    let mut beside = Beside::new(0);
    beside.hello();
    beside.holds(1);
    assert_eq!(beside.counts(), [1]);
    beside.pod(false);
    beside.pass(2, 1.0);
    beside.pod(true);
    beside.pass(2, 1.0);
    assert_eq!((beside.told(), beside.counts().last()), (0, Some(&1)));
}

#[test]
fn the_last_pod_goes_without_a_word_of_an_activator_that_acknowledges_nothing() {
    let mut beside = Beside::new(1);
    beside.hello();
    beside.pod(true);
    beside.pass(5, 1.0);
    assert_eq!(beside.routings().last(), Some(&Routing::ThroughActivator));
    beside.pass(120, 0.0);
    assert_eq!((beside.counts().last(), beside.told()), (Some(&0), 0));
}

#[test]
fn readiness_of_a_pod_without_a_link_is_kubernetes_word() {
    let mut beside = Beside::new(1);
    beside.hello();
    beside.pod(false);
    beside.pass(1, 1.0);
    assert_eq!(beside.orchestrator.ready_pods(&revision()), Vec::<PodName>::new());
    beside.pod(true);
    beside.pass(1, 1.0);
    assert_eq!(
        beside.orchestrator.ready_pods(&revision()).len(),
        1,
        "what the scrape says of it is its load"
    );
}

#[test]
fn entrances_of_a_removed_revision_wait_for_no_activator_that_acknowledges_nothing() {
    let mut beside = Beside::new(0);
    beside.hello();
    beside.fact(PlatformFact::RevisionRemoved(revision()));
    let is_released = beside.orders().any(|order| matches!(order, Order::ReleaseEntrance { .. }));
    assert_eq!((is_released, beside.told()), (true, 0));
}

/// Contract §7.2: its queue-proxy is Knative's, and what stands in the place of its hello has no word on a
/// limit.
#[test]
fn a_pod_without_a_link_has_as_many_slots_as_its_revision_says() {
    let mut beside = Beside::new(1);
    beside.hello();
    let limited = RevisionFacts { container_concurrency: 7, ..facts(1) };
    beside.fact(PlatformFact::RevisionChanged(Arc::new(limited)));
    beside.link_ours();
    beside.pod(true);
    beside.pass(1, 1.0);
    let slots = beside.commands.iter().rev().find_map(|command| {
        let ControlCommand::Assign { assignment, .. } = command else { return None };
        assignment.pods.first().map(|pod| pod.slots)
    });
    assert_eq!(slots, Some(7));
}

/// Contract §7.3: Knative's activators do not hear of ebb's slots and take their own share of the pods, so
/// those of ebb's are left what is not in that share.
#[test]
fn must_leave_knatives_activators_their_share_of_the_slots() {
    let mut beside = Beside::new(2);
    beside.hello();
    let limited = RevisionFacts { container_concurrency: 10, ..facts(2) };
    beside.fact(PlatformFact::RevisionChanged(Arc::new(limited)));
    beside.link_ours();
    let pods = ["default/a", "default/b"].map(|name| PodFacts {
        platform_ready: Some(true),
        link: Some(address(2, 9090, LinkChannel::Scraped)),
        ..world::pod(name)
    });
    beside.fact(PlatformFact::PodsChanged { revision: revision(), pods: pods.to_vec() });
    let told = beside.commands.iter().rev().find_map(|command| {
        let ControlCommand::Assign { assignment, .. } = command else { return None };
        Some(assignment.pods.iter().map(|pod| (pod.slots, pod.slice)).collect::<Vec<_>>())
    });
    assert_eq!(told, Some(vec![(10, Slice::Outside), (10, Slice::Inside)]), "half of the pods each");
}
