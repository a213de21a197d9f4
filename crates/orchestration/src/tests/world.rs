//! A platform, activators and pods as the tests play them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scaling::PodPhase;
use settings::{ClusterConfig, FloorCause, RevisionSettings};
use vocabulary::{
    ActivatorWord, Assignment, BootId, Epoch, LinkVersion, Ownership, PodCount, PodExits, PodHello, PodName,
    PodSettings, PodState, PodWord, PresentCount, ReplicaName, RequestTimeouts, RevisionName, Routing,
    Timestamp, Version,
};

use super::activator::{PlayedActivator, Told};
use crate::*;

pub(super) fn name() -> RevisionName {
    RevisionName::parse("default/service/hello").expect("a name")
}

pub(super) fn pod(name: &str) -> PodFacts {
    let address = SocketAddr::from(([127, 0, 0, 1], 8012));
    PodFacts {
        name: PodName::new(name),
        phase: PodPhase::Running,
        leaving: false,
        ends_in: None,
        platform_ready: None,
        requests: Some(address),
        exits: PodExits::default(),
        link: Some(address.into()),
        adoption: None,
        outdated: false,
        awaits_core: false,
        trouble: None,
        trouble_without_output: None,
        hold: None,
        details: BTreeMap::new(),
    }
}

pub(super) fn hello(pod: &str, state: PodState) -> PodHello {
    PodHello {
        speaks: LinkVersion::CURRENT,
        pod: PodName::new(pod),
        boot: BootId(1),
        state,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: 0,
        history: Vec::new(),
    }
}

/// What was heard of the seconds of activators, by name and boot; a repeat replaces.
#[derive(Debug, Default)]
pub(super) struct HeardSeconds(BTreeMap<(String, u64, u64), f64>);

impl HeardSeconds {
    fn note(&mut self, activator: &str, boot: u64, second: u64, loads: &[vocabulary::RevisionLoad]) {
        let requests = loads.iter().map(|of| of.load.request_rate.value()).sum();
        self.0.insert((activator.to_owned(), boot, second), requests);
    }

    /// The numbers of the seconds of one life that were heard, with the requests that came in each.
    pub(super) fn of(&self, activator: &str, boot: u64) -> BTreeMap<u64, f64> {
        let own = self.0.iter().filter(|((name, of, _), _)| name == activator && *of == boot);
        own.map(|((_, _, second), requests)| (*second, *requests)).collect()
    }
}

pub(super) struct World {
    pub(super) heard: HeardSeconds,
    /// The number of the last life of an activator that did not begin with the world.
    boots: u64,
    pub(super) orchestrator: Orchestrator,
    pub(super) now: Timestamp,
    choice: ActivatorChoice,
    pub(super) limit: u32,
    hosts: Vec<String>,
    pub(super) wanted: u32,
    /// What the platform asks for, whatever the settings say.
    pub(super) floor: u32,
    pub(super) may_write: bool,
    pub(super) held: Option<String>,
    /// Whether the revision exists on the platform.
    exists: bool,
    /// The first version of the present owner's since which all that was told routes through activators.
    pub(super) through_since: Option<Version>,
    pub(super) pods: BTreeMap<String, PodFacts>,
    pub(super) activators: BTreeMap<String, PlayedActivator>,
    links: BTreeMap<LinkId, (String, bool)>,
    pub(super) written: Option<RouteInForce>,
    /// What was written when the present owner came, as far as it has left that.
    pub(super) inherited: Option<RouteInForce>,
    pub(super) settings: BTreeMap<String, Arc<PodSettings>>,
    pub(super) orders: usize,
    scale_outcome: OrderOutcome,
    counts: Vec<u32>,
    releases: Vec<(String, ReleaseProof)>,
    drained: Vec<String>,
    /// Pods to which the platform leads no connection.
    pub(super) unreachable: BTreeSet<String>,
    people: Vec<ReasonCode>,
    entrances: Vec<Entrance>,
    released_activators: Vec<String>,
    /// All commands since the list was last emptied.
    pub(super) commands: Vec<ControlCommand>,
    /// Looks at each release before it is carried out.
    pub(super) breaches: Vec<String>,
}

impl World {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            heard: HeardSeconds::default(),
            boots: 1,
            orchestrator: Orchestrator::new(OrchestratorSettings::default()),
            now: Timestamp::from_secs(1000),
            choice: ActivatorChoice::default(),
            limit,
            hosts: vec!["one".to_owned()],
            wanted: 0,
            floor: 0,
            may_write: true,
            held: None,
            exists: true,
            through_since: None,
            pods: BTreeMap::new(),
            activators: BTreeMap::new(),
            links: BTreeMap::new(),
            written: None,
            inherited: None,
            settings: BTreeMap::new(),
            orders: 0,
            scale_outcome: OrderOutcome::Done,
            counts: Vec::new(),
            releases: Vec::new(),
            drained: Vec::new(),
            unreachable: BTreeSet::new(),
            people: Vec::new(),
            entrances: Vec::new(),
            released_activators: Vec::new(),
            commands: Vec::new(),
            breaches: Vec::new(),
        }
    }

    /// A revision at zero, and activators that are linked.
    pub(super) fn with_activators(names: &[&str]) -> Self {
        Self::with_limit(0, names)
    }

    pub(super) fn with_limit(limit: u32, names: &[&str]) -> Self {
        let mut world = Self::new(limit);
        world.begin(names);
        world
    }

    /// As a successor finds it, with a route that was written before.
    pub(super) fn begin_with_route(&mut self, names: &[&str], routing: vocabulary::Routing) {
        self.state_revision();
        self.state_pods();
        let activators = names.iter().map(|name| ReplicaName::new(name)).collect();
        let route = RouteInForce { routing, activators };
        self.fact(PlatformFact::RouteFound { revision: name(), route });
        self.begin(names);
    }

    /// As a standby, which owns nothing yet, is linked to activators before there is a revision.
    pub(super) fn stand_by(&mut self, names: &[&str], routing: vocabulary::Routing) {
        self.fact(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default())));
        for name in names {
            self.activators.insert((*name).to_owned(), PlayedActivator::new(name, 1, self.now));
        }
        self.state_activators();
        self.fact(PlatformFact::Synced);
        for name in names {
            self.link(name);
        }
        self.state_revision();
        self.state_pods();
        let activators = names.iter().map(|name| ReplicaName::new(name)).collect();
        let route = RouteInForce { routing, activators };
        self.fact(PlatformFact::RouteFound { revision: name(), route });
    }

    /// With activators that are linked, chosen like that.
    pub(super) fn choosing(choice: ActivatorChoice, names: &[&str]) -> Self {
        let mut world = Self::new(0);
        let settings = OrchestratorSettings { choice, ..OrchestratorSettings::default() };
        (world.orchestrator, world.choice) = (Orchestrator::new(settings), choice);
        world.begin(names);
        world
    }

    pub(super) fn begin(&mut self, names: &[&str]) {
        self.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(1))));
        self.fact(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default())));
        self.state_revision();
        for name in names {
            self.activators.insert((*name).to_owned(), PlayedActivator::new(name, 1, self.now));
        }
        self.state_activators();
        self.fact(PlatformFact::Synced);
        for name in names {
            self.link(name);
        }
        self.pass(Duration::from_secs(1));
    }

    pub(super) fn state_revision(&mut self) {
        self.state_annotated(&[("autoscaling.knative.dev/target", "10")]);
    }

    pub(super) fn state_annotated(&mut self, annotations: &[(&str, &str)]) {
        let annotations =
            annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let settings =
            RevisionSettings::read(&annotations, &ClusterConfig::default(), None).expect("good").value;
        self.fact(PlatformFact::RevisionChanged(Arc::new(RevisionFacts {
            name: name(),
            settings,
            container_concurrency: self.limit,
            timeouts: RequestTimeouts::default(),
            progress_deadline: settings::PROGRESS_DEADLINE_DEFAULT,
            entrances: self.hosts.iter().cloned().map(Entrance::Host).collect(),
            hop_keys: Vec::new(),
            wanted: PodCount::new(self.wanted),
            may_write: self.may_write,
            reachable: true,
            floor: PodCount::new(self.floor),
            floor_cause: FloorCause::default(),
            waiting_page: vocabulary::WaitingPage::Off,
            hold: self.held.clone(),
            origin: scaling::RevisionOrigin::Found,
            template: "hello-00001".to_owned(),
            other_autoscaler: None,
            url: None,
        })));
    }

    /// An activator appears, unless one of that name is there.
    pub(super) fn add_activator(&mut self, name: &str) {
        let (boot, now) = (self.draw_boot(), self.now);
        self.activators.entry(name.to_owned()).or_insert_with(|| PlayedActivator::new(name, boot, now));
        self.state_activators();
    }

    pub(super) fn state_activators(&mut self) {
        let link = SocketAddr::from(([127, 0, 0, 1], 8024)).into();
        let facts = self.activators.iter();
        let facts = facts.map(|(name, known)| ActivatorFacts {
            name: ReplicaName::new(name),
            link,
            life: known.life,
        });
        let facts = facts.collect();
        self.fact(PlatformFact::ActivatorsChanged(facts));
    }

    pub(super) fn state_pods(&mut self) {
        // What the platform knows of a pod goes with it.
        self.unreachable.retain(|name| self.pods.contains_key(name));
        let pods = self.pods.values().cloned().collect();
        self.fact(PlatformFact::PodsChanged { revision: name(), pods });
    }

    pub(super) fn fact(&mut self, fact: PlatformFact) {
        self.event(ControlEvent::Platform(fact));
    }

    pub(super) fn event(&mut self, event: ControlEvent) {
        self.orchestrator.handle(event, self.now);
        self.obey();
        self.settle();
    }

    /// Goes on with an orchestrator whose state was written as bytes and read again.
    pub(super) fn restore(&mut self) {
        let written = postcard::to_stdvec(&self.orchestrator.exact_state()).expect("a state can be written");
        let read: ExactState = postcard::from_bytes(&written).expect("it was just written");
        self.orchestrator = Orchestrator::restored(read);
    }

    /// What readers find, measurements included.
    pub(super) fn snapshot(&mut self) -> ControlSnapshot {
        self.orchestrator.sweep(self.now);
        self.orchestrator.snapshot(self.now)
    }

    /// Does what is due now.
    pub(super) fn settle(&mut self) {
        for _ in 0..100 {
            if self.orchestrator.next_deadline().is_none_or(|deadline| deadline > self.now) {
                return;
            }
            self.orchestrator.advance(self.now);
            self.obey();
        }
        panic!("it never comes to rest");
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(deadline) = self.orchestrator.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = deadline.max(self.now);
            self.advance_activators();
            self.settle();
        }
        self.now = until;
        self.advance_activators();
    }

    /// Lets each activator do what its time alone asks for.
    fn advance_activators(&mut self) {
        for known in self.activators.values_mut() {
            known.advance(self.now);
        }
    }

    fn obey(&mut self) {
        while let Some(command) = self.orchestrator.next_command() {
            self.commands.push(command.clone());
            match command {
                ControlCommand::OpenLink { link, peer, .. } => self.open(link, peer),
                ControlCommand::CloseLink { link } => drop(self.links.remove(&link)),
                ControlCommand::Sync { activator, ownership, assignments } => {
                    self.tell(activator, Told::Everything(ownership, assignments));
                }
                ControlCommand::Assign { activator, assignment, .. } => {
                    self.tell(activator, Told::Assignment(assignment));
                }
                ControlCommand::Unassign { activator, version, how, .. } => {
                    if how == Unassignment::Removed && self.exists {
                        self.breaches.push("what waits is refused although the revision exists".to_owned());
                    }
                    self.tell(activator, Told::Unassigned(version, how));
                }
                ControlCommand::TellPod { pod, settings } => {
                    if let Some((name, _)) = self.links.get(&pod) {
                        let before = self.settings.insert(name.clone(), Arc::clone(&settings));
                        if before.is_some_and(|before| before.version >= settings.version) {
                            self.breaches.push(format!("settings {} again", settings.version));
                        }
                    }
                }
                ControlCommand::ReleaseActivator { activator, .. } => {
                    self.released_activators.extend(self.links.get(&activator).map(|(name, _)| name.clone()));
                }
                ControlCommand::Order(order) => self.order(&order),
                ControlCommand::Publish { .. } | ControlCommand::AskMetrics { .. } => {}
            }
        }
    }

    fn open(&mut self, link: LinkId, peer: Peer) {
        match peer {
            Peer::Pod { name, settings } => {
                self.links.insert(link, (name.as_str().to_owned(), true));
                self.settings.insert(name.as_str().to_owned(), settings);
            }
            Peer::Activator { name } => {
                if let Some(known) = self.activators.get_mut(name.as_str()) {
                    known.unlink(self.now);
                }
                self.links.insert(link, (name.as_str().to_owned(), false));
            }
        }
    }

    fn tell(&mut self, link: LinkId, told: Told) {
        let Some((name, _)) = self.links.get(&link) else { return };
        let Some(known) = self.activators.get_mut(name).filter(|known| known.is_linked) else { return };
        let version = match &told {
            Told::Everything(_, assignments) => assignments.first().map(|assignment| assignment.version),
            Told::Assignment(assignment) => Some(assignment.version),
            Told::Unassigned(version, _) => Some(*version),
        };
        if let Some(version) = version {
            if version < known.last_version {
                self.breaches.push(format!("{version} after {}", known.last_version));
            }
            known.last_version = version;
        }
        let assignment = match &told {
            Told::Everything(_, assignments) => assignments.first(),
            Told::Assignment(assignment) => Some(assignment),
            Told::Unassigned(..) => None,
        };
        if let Some(assignment) = assignment {
            self.through_since = match assignment.routing {
                Routing::Direct => None,
                Routing::ThroughActivator => self.through_since.or(Some(assignment.version)),
            };
        }
        known.tell(told, self.now);
    }

    fn order(&mut self, order: &PlatformOrder) {
        self.orders += 1;
        let outcome = match &order.what {
            Order::ScaleTo { to, .. } => {
                self.counts.push(to.value());
                self.scale_outcome.clone()
            }
            Order::Route { routing, activators, .. } => {
                self.inherited = self.inherited.take().filter(|inherited| inherited.routing == *routing);
                if let Some(inherited) = &mut self.inherited {
                    inherited.activators.retain(|name| activators.contains(name));
                }
                self.written = Some(RouteInForce { routing: *routing, activators: activators.clone() });
                OrderOutcome::Done
            }
            Order::ReleasePod { pod, proof } => {
                self.judge_release(pod, *proof);
                self.releases.push((pod.as_str().to_owned(), *proof));
                OrderOutcome::Done
            }
            Order::ReleaseEntrance { entrance, .. } => {
                self.entrances.push(entrance.clone());
                OrderOutcome::Done
            }
            Order::NotePodState { .. } => OrderOutcome::Done,
            Order::NotePodReach { pod, reach } => {
                match reach {
                    PodReach::Reachable => self.unreachable.remove(pod.as_str()),
                    PodReach::Unreachable => self.unreachable.insert(pod.as_str().to_owned()),
                };
                OrderOutcome::Done
            }
            Order::NoteDrained { pod, .. } => {
                self.drained.push(pod.as_str().to_owned());
                OrderOutcome::Done
            }
            Order::Tell { reason, .. } => {
                self.people.push(*reason);
                OrderOutcome::Done
            }
        };
        let fact = PlatformFact::OrderEnded { order: order.id, outcome };
        self.orchestrator.handle(ControlEvent::Platform(fact), self.now);
    }

    /// A pod may end when no activator acts upon an assignment that lets it be picked.
    fn judge_release(&mut self, pod: &PodName, proof: ReleaseProof) {
        for (name, known) in &self.activators {
            let picks = known.applied.iter().flat_map(|applied| &applied.pods);
            let mut picks = picks.filter(|known| known.pod == *pod && known.state != PodState::Draining);
            if proof == ReleaseProof::Acknowledged && picks.next().is_some() {
                self.breaches.push(format!("{pod} is released while {name} may send to it"));
            }
        }
    }

    pub(super) fn link_id(&self, name: &str, is_pod: bool) -> Option<LinkId> {
        let mut links = self.links.iter().filter(|(_, peer)| peer.0 == name && peer.1 == is_pod);
        links.next_back().map(|(&link, _)| link)
    }

    /// An activator's link comes up, as often as that happens.
    pub(super) fn link(&mut self, name: &str) {
        let Some(link) = self.link_id(name, false) else { return };
        let Some(known) = self.activators.get_mut(name) else { return };
        let hello = known.relink(self.now);
        for (second, loads) in &hello.history {
            self.heard.note(name, known.boot, *second, loads);
        }
        self.event(ControlEvent::ActivatorSpoke { link, word: ActivatorWord::Hello(hello) });
    }

    /// A number that no life of an activator had before.
    pub(super) fn draw_boot(&mut self) -> u64 {
        self.boots += 1;
        self.boots
    }

    /// An activator is killed, with all that it holds, and comes back.
    pub(super) fn restart(&mut self, name: &str) {
        let boot = self.draw_boot();
        let Some(known) = self.activators.get_mut(name) else { return };
        *known = known.restarted(boot, self.now);
        self.link_of_activator(name, LinkNews::Lost);
        self.link(name);
    }

    pub(super) fn activator(&mut self, name: &str, word: ActivatorWord) {
        if let Some(link) = self.link_id(name, false) {
            self.event(ControlEvent::ActivatorSpoke { link, word });
        }
    }

    pub(super) fn pod(&mut self, name: &str, word: PodWord) {
        if let Some(link) = self.link_id(name, true) {
            self.event(ControlEvent::PodSpoke { link, word });
        }
    }

    pub(super) fn pod_says(&mut self, name: &str, state: PodState) {
        self.pod(name, PodWord::Hello(hello(name, state)));
    }

    pub(super) fn link_of_pod(&mut self, name: &str, news: LinkNews) {
        if let Some(link) = self.link_id(name, true) {
            self.event(ControlEvent::LinkChanged { link, news });
        }
    }

    pub(super) fn link_of_activator(&mut self, name: &str, news: LinkNews) {
        if let Some(known) = self.activators.get_mut(name) {
            known.unlink(self.now);
        }
        if let Some(link) = self.link_id(name, false) {
            self.event(ControlEvent::LinkChanged { link, news });
        }
    }

    pub(super) fn pods(&mut self, names: &[&str]) {
        self.pods = names.iter().map(|name| ((*name).to_owned(), pod(name))).collect();
        self.state_pods();
    }

    pub(super) fn leave(&mut self, name: &str) {
        if let Some(pod) = self.pods.get_mut(name) {
            pod.leaving = true;
        }
        self.state_pods();
    }

    pub(super) fn life(&mut self, name: &str, life: ActivatorLife) {
        if let Some(known) = self.activators.get_mut(name) {
            known.life = life;
        }
        self.state_activators();
    }

    pub(super) fn hosts(&mut self, hosts: &[&str]) {
        self.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        self.state_revision();
    }

    pub(super) fn remove(&mut self) {
        self.exists = false;
        self.fact(PlatformFact::RevisionRemoved(name()));
    }

    pub(super) fn give_back(&mut self) {
        self.fact(PlatformFact::RevisionGivenBack(name()));
    }

    pub(super) fn stall(&mut self, name: &str) {
        self.activators.get_mut(name).expect("it is there").is_stalled = true;
    }

    pub(super) fn resume(&mut self, name: &str) {
        let known = self.activators.get_mut(name).expect("it is there");
        known.is_stalled = false;
        known.read(self.now);
    }

    /// Each activator that is linked and reads says what it acts upon.
    pub(super) fn acknowledge_all(&mut self) {
        for name in self.activators.keys().cloned().collect::<Vec<_>>() {
            self.acknowledge(&name);
        }
    }

    /// Whom the route names that was written last.
    pub(super) fn routed_to(&self) -> Vec<&str> {
        self.written.iter().flat_map(|route| &route.activators).map(ReplicaName::as_str).collect()
    }

    pub(super) fn acknowledge(&mut self, name: &str) {
        let known = self.activators.get_mut(name).expect("it is there");
        for word in known.acknowledge() {
            self.activator(name, word);
        }
    }

    /// What an activator held is over. Of a retired revision it says so.
    pub(super) fn empty(&mut self, name: &str) {
        let now = self.now;
        self.activators.get_mut(name).expect("it is there").empty(now);
        self.count(name);
    }

    /// What an activator has to say of its counts is heard.
    pub(super) fn count(&mut self, name: &str) {
        let known = self.activators.get_mut(name).expect("it is there");
        for word in known.counted() {
            self.activator(name, word);
        }
    }

    /// The seconds that an activator has closed are heard.
    pub(super) fn measure(&mut self, name: &str) {
        let known = self.activators.get_mut(name).expect("it is there");
        let boot = known.boot;
        for word in known.measured() {
            if let ActivatorWord::Loads { second, loads } = &word {
                self.heard.note(name, boot, *second, loads);
            }
            self.activator(name, word);
        }
    }

    /// Another owner, who knows nothing but what the platform states and the activators that are linked say.
    /// The former one is silent.
    pub(super) fn replace_owner(&mut self, epoch: Epoch) {
        let linked: Vec<String> = self
            .activators
            .iter()
            .filter(|(_, known)| known.is_linked)
            .map(|(name, _)| name.clone())
            .collect();
        let settings = OrchestratorSettings { choice: self.choice, ..OrchestratorSettings::default() };
        self.orchestrator = Orchestrator::new(settings);
        self.links.clear();
        self.owner_changed();
        self.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(epoch)));
        self.fact(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default())));
        self.state_revision();
        if let Some(route) = self.written.clone() {
            self.fact(PlatformFact::RouteFound { revision: name(), route });
        }
        self.state_pods();
        self.state_activators();
        self.fact(PlatformFact::Synced);
        for name in linked {
            self.link(&name);
        }
    }

    /// No activator has acknowledged anything to the present owner.
    pub(super) fn owner_changed(&mut self) {
        self.inherited = self.written.clone();
        self.unreachable.clear();
        self.through_since = None;
        for known in self.activators.values_mut() {
            known.acknowledged = None;
            known.former_version = known.last_version;
        }
    }

    pub(super) fn acknowledge_removal(&mut self, name: &str) {
        let version = self.activators[name].last_version;
        self.activator(name, ActivatorWord::Acknowledged { revision: super::name(), version });
    }

    /// An activator holds so much from now on.
    pub(super) fn hold(&mut self, activator: &str, count: PresentCount) {
        let now = self.now;
        self.activators.get_mut(activator).expect("it is there").hold(count, now);
        self.count(activator);
    }

    /// A first decision, which routes through the activators.
    pub(super) fn routed(&mut self) {
        let count = vocabulary::PresentCount { in_flight: 1, waiting: 1 };
        let names: BTreeSet<String> = self.activators.keys().cloned().collect();
        for name in names {
            let present =
                ActivatorWord::Present { revision: super::name(), count, oldest_wait: Duration::ZERO };
            self.activator(&name, present);
        }
    }

    pub(super) fn answer_scales_with(&mut self, outcome: OrderOutcome) {
        self.scale_outcome = outcome;
    }

    pub(super) fn told(&self, activator: &str) -> Option<&Assignment> {
        self.activators[activator].applied.as_deref()
    }

    pub(super) fn settings(&self, pod: &str) -> Option<Arc<PodSettings>> {
        self.settings.get(pod).cloned()
    }

    pub(super) fn forgotten(&self, activator: &str) -> usize {
        self.activators[activator].forgotten
    }

    pub(super) fn counts(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.counts)
    }

    pub(super) fn releases(&mut self) -> Vec<(String, ReleaseProof)> {
        std::mem::take(&mut self.releases)
    }

    pub(super) fn drained(&mut self) -> Vec<String> {
        std::mem::take(&mut self.drained)
    }

    pub(super) fn people(&mut self) -> Vec<ReasonCode> {
        std::mem::take(&mut self.people)
    }

    pub(super) fn entrances(&mut self) -> Vec<Entrance> {
        std::mem::take(&mut self.entrances)
    }

    pub(super) fn released_activators(&mut self) -> Vec<String> {
        std::mem::take(&mut self.released_activators)
    }
}
