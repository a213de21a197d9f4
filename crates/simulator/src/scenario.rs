//! What is simulated: which Services, which loads, and for how long?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{Entrance, RevisionFacts};
use scaling::RevisionOrigin;
use settings::{Class, ClusterConfig, FloorCause, PROGRESS_DEADLINE_DEFAULT, RevisionSettings};
use thiserror::Error;
use vocabulary::{PodCount, RequestTimeouts, RevisionName, format_duration, shown};

use crate::load_shape::LoadShape;
use crate::scenario_fault::ScenarioFault;
use crate::shared_cores::CoreCount;
use crate::time_distribution::TimeDistribution;

/// A world with its loads, from which everything in it follows.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The ConfigMap `config-autoscaler`, or the defaults.
    pub cluster: Arc<ClusterConfig>,
    /// The Services, in the order of the report.
    pub services: Vec<ServiceScenario>,
    /// The cores of each pod, by Service. The pods of a Service that is not named work on any number of
    /// requests at full speed.
    pub cores: BTreeMap<RevisionName, CoreCount>,
    /// How long messages are under way.
    pub delays: WorldDelays,
    /// When the load begins, beside the autoscaler.
    pub beginning: LoadBeginning,
    /// How long the load lasts.
    pub length: Duration,
    /// The number from which all chance follows.
    pub seed: u64,
    /// Whether each request is followed.
    pub pace: SimulationPace,
    /// What goes wrong; only where each request is followed.
    pub faults: Vec<ScenarioFault>,
}

/// When a load begins, beside the autoscaler. Services are evaluated every two seconds from their
/// deployment on, and the activator's seconds are those of the clock: so a run that was recorded is simulated
/// with the same instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadBeginning {
    /// At a whole second of the clock, a second after the autoscaler has begun and the Services were
    /// deployed.
    #[default]
    AfterDeployment,
    /// When the autoscaler begins. Only where each request is followed; otherwise as after a deployment.
    WithAutoscaler {
        /// How long before that the running second of the autoscaler's clock began; less than a second.
        past_second: Duration,
    },
}

/// How closely a load is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimulationPace {
    /// Each request by itself, through every queue.
    #[default]
    EveryRequest,
    /// The requests of a second together, as a fluid: as the exact world on average, and in far less time.
    WholeSeconds,
}

/// One Service, its load and its pods.
#[derive(Clone, Debug)]
pub struct ServiceScenario {
    /// The Service as its platform states it first.
    pub facts: RevisionFacts,
    /// How its requests arrive; `None` for a Service without requests.
    pub load: Option<LoadShape>,
    /// The work of its app for one request.
    pub service_time: TimeDistribution,
    /// The time from the order of a pod until the pod is ready.
    pub start_up: TimeDistribution,
}

/// The longest time of a request to a made-up Service, as Knative's default is.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);

/// A made-up Service as its platform states it first: with a host of its own, and the count with which its
/// settings let it begin.
pub fn new_service(
    name: RevisionName,
    settings: RevisionSettings,
    container_concurrency: u32,
    cluster: &ClusterConfig,
) -> RevisionFacts {
    let spec = settings.resolve(cluster, container_concurrency, PROGRESS_DEADLINE_DEFAULT);
    RevisionFacts {
        settings,
        container_concurrency,
        timeouts: RequestTimeouts { request: Some(REQUEST_TIMEOUT), ..RequestTimeouts::default() },
        progress_deadline: PROGRESS_DEADLINE_DEFAULT,
        entrances: vec![Entrance::Host(format!("{}.default.example.com", name.name()))],
        url: None,
        hop_keys: Vec::new(),
        wanted: spec.initial_scale.max(spec.min_scale),
        may_write: true,
        reachable: true,
        floor: PodCount::ZERO,
        floor_cause: FloorCause::default(),
        waiting_page: vocabulary::WaitingPage::Off,
        hold: None,
        origin: RevisionOrigin::New,
        template: format!("{}-00001", name.name()),
        other_autoscaler: None,
        name,
    }
}

/// How long messages are under way, each in one direction.
#[derive(Clone, Copy, Debug)]
pub struct WorldDelays {
    /// A request or an answer between a client and the activator, and between the activator and a pod.
    pub request: Duration,
    /// A word on a link of the autoscaler.
    pub link: Duration,
    /// An order to the platform, or a fact of it.
    pub platform: Duration,
}

impl Default for WorldDelays {
    /// As on one machine, where a message takes the time of two wake-ups of threads; rounded up.
    fn default() -> Self {
        Self {
            request: Duration::from_micros(100),
            link: Duration::from_micros(200),
            platform: Duration::from_micros(200),
        }
    }
}

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioProblem {
    /// The class of a Service needs metrics that no simulated pod has.
    #[error(
        "{service} has the class {class}, which scales by metrics that the simulator does not have; only {} is simulated",
        Class::Kpa.name()
    )]
    OtherClass {
        /// The Service of that class.
        service: RevisionName,
        /// The class by its name.
        class: String,
    },
    /// Nothing can be said of no time.
    #[error("the load lasts no time; give it a length of at least a minute")]
    NoLength,
    /// A fluid is in no pod, so none of it is lost with one.
    #[error(
        "there are faults, and requests are simulated by whole seconds; leave --fast out, or let the load have fewer requests"
    )]
    FaultOfFluid,
    /// A fault is about a Service that is not simulated.
    #[error("a fault is about the Service {}, which is none of {known}", shown(.service))]
    FaultOfNothing {
        /// The name as it is written.
        service: String,
        /// The Services that are simulated.
        known: String,
    },
    /// A fault would never happen.
    #[error("a fault is at {}, and the load ends after {}", format_duration(*.at), format_duration(*.length))]
    FaultAfterEnd {
        /// The time of the fault.
        at: Duration,
        /// The length of the load.
        length: Duration,
    },
}

impl Scenario {
    /// Refuses what the simulator cannot do.
    pub fn check(&self) -> Result<(), ScenarioProblem> {
        for service in &self.services {
            match service.facts.settings.effective_class(&self.cluster) {
                Class::Kpa | Class::Ahpa => {}
                class @ (Class::Hpa | Class::Other(_)) => {
                    let class = class.name().to_owned();
                    return Err(ScenarioProblem::OtherClass { service: service.facts.name.clone(), class });
                }
            }
        }
        if self.length.is_zero() { Err(ScenarioProblem::NoLength) } else { self.check_faults() }
    }

    fn check_faults(&self) -> Result<(), ScenarioProblem> {
        for fault in &self.faults {
            if self.pace == SimulationPace::WholeSeconds {
                return Err(ScenarioProblem::FaultOfFluid);
            }
            if fault.at >= self.length {
                return Err(ScenarioProblem::FaultAfterEnd { at: fault.at, length: self.length });
            }
            if !self.services.iter().any(|service| fault.is_about(&service.facts.name)) {
                let known: Vec<&str> =
                    self.services.iter().map(|service| service.facts.name.as_str()).collect();
                let service = fault.service.clone().unwrap_or_default();
                return Err(ScenarioProblem::FaultOfNothing { service, known: known.join(", ") });
            }
        }
        Ok(())
    }
}
