//! Which settings, which pods and which load does one Service of a made-up world have?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::RevisionFacts;
use settings::{ClusterConfig, Metric, PROGRESS_DEADLINE_DEFAULT, RevisionSettings, ScalingSpec};
use vocabulary::{RequestTimeouts, RevisionName};

use crate::random::{RandomStream, span_of};
use crate::scenario::{ServiceScenario, new_service};
use crate::time_distribution::TimeDistribution;

/// No stretch of a load has more requests per second: a world is to have many events of other kinds.
const RATE_MAX: f64 = 15.0;

/// A Service with its load.
#[derive(Clone, Debug)]
pub(crate) struct RevisionPlan {
    pub(crate) scenario: ServiceScenario,
    pub(crate) spec: ScalingSpec,
    pub(crate) service_time: Duration,
    /// The load while faults happen, each stretch until the next one.
    pub(crate) stretches: Vec<LoadStretch>,
    /// The time between two requests of the steady load; `None` for no load.
    pub(crate) steady_gap: Option<Duration>,
}

/// A rate of requests from some time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadStretch {
    pub(crate) from: Duration,
    pub(crate) rate: f64,
}

/// The Service at some place among those of a world.
pub(crate) fn draw_revision(
    seed: u64,
    place: usize,
    cluster: &Arc<ClusterConfig>,
    quiet_from: Duration,
) -> RevisionPlan {
    let name = RevisionName::new("default", "service", &format!("r{place}")).expect("letters and digits");
    let mut random = RandomStream::of(seed, name.as_str(), "plan");
    let container_concurrency = random.pick(&[0, 0, 1, 4, 10]);
    // Two activators may send to one pod that takes one request at a time while another pod is free. What
    // waits there is load: with more than one pod the count would depend on who chose which.
    let steady_pods = random.pick(&[0_u32, 0, 1, 2, 3]).min(if container_concurrency == 1 { 1 } else { 3 });
    let annotations = draw_annotations(&mut random, container_concurrency, steady_pods);
    let settings =
        RevisionSettings::read(&annotations, cluster, None).expect("these annotations are allowed").value;
    let spec = settings.resolve(cluster, container_concurrency, PROGRESS_DEADLINE_DEFAULT);
    let service_time = draw_service_time(&mut random, &spec);
    let request = Some(Duration::from_secs(random.pick(&[20, 40, 60])));
    let facts = RevisionFacts {
        timeouts: RequestTimeouts { request, ..RequestTimeouts::default() },
        ..new_service(name, settings, container_concurrency, cluster)
    };
    let start_up = random.pick(&[(200, 500), (1_000, 3_000), (2_000, 8_000)]);
    let start_up = TimeDistribution::Uniform {
        least: Duration::from_millis(start_up.0),
        most: Duration::from_millis(start_up.1),
    };
    let steady_rate = rate_for(&spec, service_time, steady_need(steady_pods));
    let base = rate_for(&spec, service_time, 1.5);
    let service_time_drawn = TimeDistribution::Constant(service_time);
    RevisionPlan {
        scenario: ServiceScenario { facts, load: None, service_time: service_time_drawn, start_up },
        spec,
        service_time,
        stretches: draw_stretches(&mut random, base, quiet_from),
        steady_gap: (steady_pods > 0).then(|| span_of(1.0 / steady_rate)),
    }
}

/// Pods that take many requests at once have slow ones: a world is to have many events of other kinds.
fn draw_service_time(random: &mut RandomStream, spec: &ScalingSpec) -> Duration {
    Duration::from_millis(match spec.metric {
        Metric::Concurrency if spec.target_per_pod < 2.0 => random.pick(&[300, 800, 2_000]),
        Metric::Concurrency => random.pick(&[800, 2_000]),
        Metric::Rps => random.pick(&[50, 300]),
    })
}

/// Settings of one Service. No single request needs more than one pod, so that a steady load is steady.
fn draw_annotations(
    random: &mut RandomStream,
    container_concurrency: u32,
    steady_pods: u32,
) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        annotations.insert(format!("autoscaling.knative.dev/{key}"), value);
    };
    // A panic window is a tenth of the window. In one of a second, the present count of one reporter stands
    // for a whole window until the report of that second replaces it: at a target of one request that is a
    // pod more.
    let windows =
        if container_concurrency == 1 { ["20s", "30s", "60s", "60s"] } else { ["10s", "20s", "30s", "60s"] };
    set("window", random.pick(&windows).to_owned());
    if container_concurrency == 1 {
        set("target-utilization-percentage", "100".to_owned());
    } else if container_concurrency == 0 {
        set("target", random.pick(&["2", "3", "5"]).to_owned());
        if random.happens(0.25) {
            set("metric", "rps".to_owned());
        }
    }
    if random.happens(0.3) {
        set("min-scale", random.pick(&["1", "2"]).to_owned());
    }
    if random.happens(0.5) {
        set("max-scale", (steady_pods.max(2) + random.pick(&[0, 1, 4])).to_string());
    }
    if random.happens(0.2) {
        set("scale-down-delay", "15s".to_owned());
    }
    if random.happens(0.2) {
        set("activation-scale", "2".to_owned());
    }
    if random.happens(0.7) {
        set("target-burst-capacity", random.pick(&["0", "0", "5", "-1"]).to_owned());
    }
    annotations
}

/// How much of so many pods a steady load needs. One pod is needed by a quarter: the seconds of two reporters
/// need not begin together, and a second that seems to hold two requests must not seem to need two pods.
fn steady_need(pods: u32) -> f64 {
    if pods == 1 { 0.25 } else { f64::from(pods) - 0.5 }
}

/// The rate at which requests need so many pods, not yet rounded.
fn rate_for(spec: &ScalingSpec, service_time: Duration, pods: f64) -> f64 {
    let demand = pods * spec.target_per_pod;
    match spec.metric {
        Metric::Concurrency => demand / service_time.as_secs_f64(),
        Metric::Rps => demand,
    }
}

fn draw_stretches(random: &mut RandomStream, base: f64, until: Duration) -> Vec<LoadStretch> {
    let (mut stretches, mut from) = (Vec::new(), Duration::ZERO);
    while from < until {
        let factor = random.pick(&[0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0]);
        stretches.push(LoadStretch { from, rate: (base * factor).min(RATE_MAX) });
        from += random.span(Duration::from_secs(10), Duration::from_secs(240));
    }
    stretches
}
