//! A platform, activators and pods as the tests play them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scaling::PodPhase;
use settings::{ClusterConfig, RevisionSettings};
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
