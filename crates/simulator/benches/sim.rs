//! How fast is a load simulated?
//!
//! ```text
//! cargo bench -p simulator --bench sim               # a day of 100 Services, one Service, and 14 days by whole seconds
//! cargo bench -p simulator --bench sim -- --quick    # minutes of the same: shows that it works
//! ```
//!
//! What a request costs is split by leaving parts out: a world without requests has the control loop, the
//! links and the seconds of pods alone; one whose requests go past the queue of the activator has no queue.

#[path = "shared/cpu_seconds.rs"]
mod cpu_seconds;
#[path = "shared/figures.rs"]
mod figures;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cpu_seconds::cpu_seconds;
use figures::Figure;
use orchestration::RevisionFacts;
use settings::{ClusterConfig, RevisionSettings};
use simulator::{
    LoadBeginning, LoadSource, Scenario, ServiceLoad, ServiceScenario, SimulationPace, TimeDistribution,
    WorldDelays, new_service, simulate,
};
use vocabulary::RevisionName;

const SERVICES: u32 = 100;
/// All Services together have so many requests a second.
const REQUESTS_PER_SECOND: u32 = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// The goals, in seconds of CPU time, in megabytes, and in requests per second of CPU time.
const DAY_SECONDS_MAX: f64 = 60.0;
const MEMORY_MAX: f64 = 200.0;
const ONE_SERVICE_MIN: f64 = 1.5e6;
const FORTNIGHT_SECONDS_MAX: f64 = 150.0;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--quick") {
        // How fast a build without optimisation is says nothing, so no goal is asked for.
        measure(&BenchLengths { day: HOUR / 30, one: HOUR / 6, fortnight: HOUR, runs: 1 });
        return ExitCode::SUCCESS;
    }
    let lengths = BenchLengths { day: DAY, one: HOUR, fortnight: 14 * DAY, runs: 3 };
    let figures = measure(&lengths);
    figures::keep("simulator", "sim", &figures);
    if figures.iter().all(|figure| figure.is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much time each load lasts in its world.
struct BenchLengths {
    day: Duration,
    one: Duration,
    fortnight: Duration,
    runs: usize,
}

/// Prints every number. Returns what became of each goal.
fn measure(lengths: &BenchLengths) -> Vec<Figure> {
    let day = |load: &str, annotations: &[(&str, &str)]| {
        let world = world(SERVICES, load, annotations, lengths.day);
        median(lengths.runs, || run(&world))
    };
    let rate = format!("constant,rate={}rps", REQUESTS_PER_SECOND / SERVICES);
    let whole = day(&rate, &[]);
    let memory = peak_megabytes();
    let direct = day(&rate, &[("target-burst-capacity", "0")]);
    // Pods are there, and no request comes in all the time.
    let silent = day("timer,every=8760h", &[("min-scale", "1")]);
    println!(
        "{SERVICES} Services, {REQUESTS_PER_SECOND} requests a second, {:.1} h: {} requests in {:.1} s of CPU time, {memory:.0} MB at most",
        lengths.day.as_secs_f64() / 3_600.0,
        whole.requests,
        whole.seconds,
    );
    println!(
        "  a request: {:.0} ns, of them {:.0} ns control loop, links and seconds, {:.0} ns arrival, pod and answer, {:.0} ns queue of the activator",
        whole.nanoseconds(),
        silent.seconds / real(whole.requests) * 1e9,
        (direct.seconds - silent.seconds) / real(direct.requests) * 1e9,
        whole.nanoseconds() - direct.nanoseconds(),
    );
    let one = world(1, &format!("constant,rate={REQUESTS_PER_SECOND}rps"), &[], lengths.one);
    let one = median(lengths.runs, || run(&one));
    let per_second = real(one.requests) / one.seconds;
    println!("1 Service: {} requests, {per_second:.0} in a second of CPU time", one.requests);
    let mut fast = world(SERVICES, &rate, &[], lengths.fortnight);
    fast.pace = SimulationPace::WholeSeconds;
    let fast = run(&fast);
    println!(
        "by whole seconds, {:.1} days: {} requests in {:.1} s of CPU time",
        lengths.fortnight.as_secs_f64() / 86_400.0,
        fast.requests,
        fast.seconds
    );
    let one_service = Figure {
        goal: "one Service: requests in a second of CPU time".to_owned(),
        found: format!("{per_second:.0} (at least {ONE_SERVICE_MIN:.0})"),
        at_most: None,
        is_met: per_second >= ONE_SERVICE_MIN,
    };
    let figures = vec![
        Figure::at_most("a day of 100 Services: s of CPU time", whole.seconds, DAY_SECONDS_MAX),
        Figure::at_most("a day of 100 Services: peak MB", memory, MEMORY_MAX),
        one_service,
        Figure::at_most("14 days by whole seconds: s of CPU time", fast.seconds, FORTNIGHT_SECONDS_MAX),
    ];
    for Figure { goal, found, is_met, .. } in &figures {
        println!("{}: {goal} {found}", if *is_met { "met" } else { "NOT MET" });
    }
    figures
}

/// What one run has cost.
#[derive(Clone, Copy)]
struct RunCost {
    requests: u64,
    seconds: f64,
}

impl RunCost {
    fn nanoseconds(&self) -> f64 {
        self.seconds / real(self.requests) * 1e9
    }
}

fn run(scenario: &Scenario) -> RunCost {
    let before = cpu_seconds();
    let report = simulate(scenario).expect("a scenario that can be simulated");
    let requests = report.services.iter().map(|service| service.requests).sum();
    RunCost { requests, seconds: cpu_seconds() - before }
}

fn median(runs: usize, run: impl Fn() -> RunCost) -> RunCost {
    let mut costs: Vec<RunCost> = (0..runs).map(|_| run()).collect();
    costs.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    costs[costs.len() / 2]
}

/// So many Services with the same load and annotations, which are named without their prefix.
fn world(services: u32, load: &str, annotations: &[(&str, &str)], length: Duration) -> Scenario {
    let LoadSource::Shape(load) = ServiceLoad::parse(&format!("*={load}")).expect("a load").source else {
        panic!("{load} is a file");
    };
    let service = |number: u32| ServiceScenario {
        facts: facts(number, annotations),
        load: Some(load.clone()),
        service_time: TimeDistribution::parse("120ms,p99=800ms").expect("a time"),
        start_up: TimeDistribution::parse("2s..5s").expect("a time"),
    };
    Scenario {
        cluster: Arc::new(ClusterConfig::default()),
        services: (0..services).map(service).collect(),
        cores: BTreeMap::new(),
        delays: WorldDelays::default(),
        beginning: LoadBeginning::default(),
        length,
        seed: 7,
        pace: SimulationPace::EveryRequest,
        faults: Vec::new(),
    }
}

fn facts(number: u32, annotations: &[(&str, &str)]) -> RevisionFacts {
    let annotations: BTreeMap<String, String> = annotations
        .iter()
        .map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), (*value).to_owned()))
        .collect();
    let cluster = ClusterConfig::default();
    let settings = RevisionSettings::read(&annotations, &cluster, None).expect("good annotations").value;
    let name = RevisionName::new("default", "service", &format!("app-{number}")).expect("a name");
    new_service(name, settings, 0, &cluster)
}

/// The most memory that this process has had.
fn peak_megabytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kilobytes");
    kilobytes / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "a count is printed with a few digits")]
fn real(count: u64) -> f64 {
    count as f64
}
