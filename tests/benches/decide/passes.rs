//! Passes of class hpa in steady state: four metrics over the pods of one workload.

use std::hint::black_box;
use std::time::Duration;

use scaling::hpa::{
    HpaObservation, HpaPod, HpaPodPhase, HpaPods, HpaState, MetricSamples, PodSample, PodSamples,
    ReadyCondition, ReadyStatus, Scale, Selection, evaluate,
};
use settings::hpa::{
    Behavior, ContainerRequests, HpaSettings, HpaSpec, LabelSelector, MetricIdentifier, MetricSpec,
    PodRequests, ResourceName, ResourceRequests, ResourceTarget, ScalingRules, TotalTarget,
};
use vocabulary::{MilliValue, PodCount, PodId, Timestamp};

/// How long the workload has been there: its windows are full.
const BEGAN: Timestamp = Timestamp::from_secs(10_000);
const SYNC_PERIOD: Duration = Duration::from_secs(15);

pub(crate) struct Passes {
    spec: HpaSpec,
    pods: HpaPods,
    samples: Vec<MetricSamples>,
    state: HpaState,
    scale: Scale,
    now: Timestamp,
}

impl Passes {
    /// CPU and memory in percent of requests, a number of each pod, a queue; each close to its target.
    pub(crate) fn over(pods: u32) -> Self {
        let identifier =
            |name: &str| MetricIdentifier { name: name.into(), selector: LabelSelector::default() };
        let resource = |resource, target| MetricSpec::Resource {
            resource,
            container: None,
            target: ResourceTarget::Utilization(target),
        };
        let count = PodCount::new(pods);
        let queued = MilliValue::new(i64::from(pods) * 7000);
        let mut passes = Self {
            spec: HpaSpec {
                min: PodCount::ONE,
                max: PodCount::new(2 * pods),
                metrics: vec![
                    resource(ResourceName::Cpu, 60),
                    resource(ResourceName::Memory, 70),
                    MetricSpec::Pods {
                        metric: identifier("requests-per-second"),
                        target: MilliValue::new(100_000),
                    },
                    MetricSpec::External {
                        metric: identifier("queue"),
                        target: TotalTarget::AverageValue(MilliValue::new(7000)),
                    },
                ],
                behavior: Some(Behavior {
                    scale_up: ScalingRules::default_up(),
                    scale_down: ScalingRules::default_down(),
                }),
                settings: HpaSettings::default(),
            },
            pods: HpaPods::new((0..pods).map(pod).collect()),
            samples: vec![
                per_pod(pods, 600),
                per_pod(pods, 700),
                per_pod(pods, 100_000),
                MetricSamples::Series(vec![queued]),
            ],
            state: HpaState::default(),
            scale: Scale { replicas: count, status_replicas: count, selection: Selection::Unique },
            now: BEGAN,
        };
        (0..100).for_each(|_| passes.once());
        passes
    }

    pub(crate) fn once(&mut self) {
        self.now += SYNC_PERIOD;
        let observation = HpaObservation { scale: self.scale, pods: &self.pods, samples: &self.samples };
        let outcome = evaluate(&self.spec, &observation, &mut self.state, self.now);
        assert_eq!(outcome.desired, self.scale.replicas, "nothing was to change");
        black_box(outcome);
    }
}

fn pod(number: u32) -> HpaPod {
    let requests = |cpu, memory| ResourceRequests {
        cpu: Some(MilliValue::new(cpu)),
        memory: Some(MilliValue::new(memory)),
        others: Vec::new(),
    };
    HpaPod {
        pod: PodId(number),
        phase: HpaPodPhase::Running,
        is_deleted: false,
        started: Some(Timestamp::ZERO),
        ready: Some(ReadyCondition { status: ReadyStatus::True, since: Timestamp::from_secs(10) }),
        requests: PodRequests {
            pod_level: None,
            containers: vec![
                ContainerRequests { name: "app".into(), requests: requests(900, 900) },
                ContainerRequests { name: "queue-proxy".into(), requests: requests(100, 100) },
            ],
        },
    }
}

fn per_pod(pods: u32, value: i64) -> MetricSamples {
    // One pod in ten is a little off, so that averages are not the values themselves.
    let value_of = |pod: u32| MilliValue::new(value + if pod % 10 == 9 { value / 50 } else { 0 });
    let sample = |pod| PodSample { pod: PodId(pod), value: value_of(pod), at: BEGAN, window: SYNC_PERIOD };
    MetricSamples::PerPod(PodSamples::new((0..pods).map(sample).collect()))
}
