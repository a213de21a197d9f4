//! Does class ahpa ever make requests wait longer than class kpa does?
//!
//! ```text
//! cargo bench -p simulator --bench twins                 # 1,000 seeds, each with one and with ten slots in a pod
//! cargo bench -p simulator --bench twins -- --quick      # 2 seeds
//! cargo bench -p simulator --bench twins -- --seeds 200 --from 1
//! ```
//!
//! Each seed draws a load of some hours, a service time and a start-up. Both classes meet the same arrivals
//! and service times, request by request, at one activator. A world is worse than its twin if its waits are
//! longer by more than 2 % and by more than a second. The worst five are printed, each with the time in which
//! class kpa had more pods and the reasons of both: a twin that is late wants more pods afterwards.

#[path = "shared/arguments.rs"]
mod arguments;
#[path = "shared/figures.rs"]
mod figures;
#[path = "shared/split_mix.rs"]
mod split_mix;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::number_after;
use figures::Figure;
use settings::{ClusterConfig, RevisionSettings};
use simulator::{
    CountDifference, LoadBeginning, LoadShape, LoadSource, Scenario, ServiceLoad, ServiceReport,
    ServiceScenario, SimulationPace, TimeDistribution, WorldDelays, greatest_differences, new_service,
    simulate,
};
use split_mix::SplitMix;
use vocabulary::RevisionName;

const SEEDS: u64 = 1_000;
const SEEDS_QUICK: u64 = 2;
/// So long that rules of the same minute of every hour have their periods.
const LENGTH: Duration = Duration::from_secs(7 * 3_600);
const LENGTH_QUICK: Duration = Duration::from_secs(4 * 3_600);
const SLOTS: [u32; 2] = [1, 10];
/// A world may be worse by this part and by so many seconds.
const WORSE_PART_MAX: f64 = 0.02;
const WORSE_SECONDS_MAX: f64 = 1.0;
const WORST: usize = 5;

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let seeds = number_after("--seeds").unwrap_or(if is_quick { SEEDS_QUICK } else { SEEDS });
    let first = number_after("--from").unwrap_or(1_u64);
    let length = if is_quick { LENGTH_QUICK } else { LENGTH };
    let mut pairs = Vec::new();
    let seeds = first..first + seeds;
    for seed in seeds {
        pairs.extend(SLOTS.map(|slots| TwinPair::of(seed, slots, length)));
    }
    let figures = judge(pairs);
    if !is_quick {
        figures::keep("simulator", "twins", &figures);
    }
    if figures.iter().all(|figure| figure.is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the sums and the worst worlds. Returns what became of each goal.
fn judge(mut pairs: Vec<TwinPair>) -> [Figure; 3] {
    let waits = |of: fn(&TwinPair) -> RequestWaits| {
        pairs.iter().map(of).fold(RequestWaits::default(), |sum, waits| RequestWaits {
            seconds: sum.seconds + waits.seconds,
            requests: sum.requests + waits.requests,
        })
    };
    let [kpa, ahpa] = [waits(|pair| pair.kpa), waits(|pair| pair.ahpa)];
    println!("{} worlds; class kpa: {} requests waited {:.0} s", pairs.len(), kpa.requests, kpa.seconds);
    println!("class ahpa: {} requests waited {:.0} s", ahpa.requests, ahpa.seconds);
    let worse = pairs.iter().filter(|pair| pair.is_worse()).count();
    let none_more = |goal: &str, is_met: bool, found: String| Figure {
        goal: goal.to_owned(),
        found,
        at_most: None,
        is_met,
    };
    let figures = [
        Figure::at_most("all worlds: s of waits, at most class kpa's", ahpa.seconds, kpa.seconds),
        none_more(
            "all worlds: requests that wait, at most class kpa's",
            ahpa.requests <= kpa.requests,
            format!("{} (limit {})", ahpa.requests, kpa.requests),
        ),
        none_more("no world is worse than its twin", worse == 0, format!("{worse} of {}", pairs.len())),
    ];
    for Figure { goal, found, is_met, .. } in &figures {
        println!("{}: {goal} {found}", if *is_met { "met" } else { "NOT MET" });
    }
    pairs.sort_by(|one, other| other.longer().total_cmp(&one.longer()));
    for pair in pairs.iter().take(WORST) {
        println!("{pair}\n  {}", pair.reason.as_deref().unwrap_or("class kpa never had more pods"));
    }
    figures
}

/// How many requests waited, and for how long together.
#[derive(Clone, Copy, Debug, Default)]
struct RequestWaits {
    seconds: f64,
    requests: u64,
}

impl RequestWaits {
    fn of(report: &ServiceReport) -> Self {
        Self {
            seconds: report.wait.mean.as_secs_f64() * real(report.answered),
            requests: report.waited_from_zero + report.waited_for_growth,
        }
    }
}

/// One world with both classes.
#[derive(Debug)]
struct TwinPair {
    seed: u64,
    slots: u32,
    load: String,
    kpa: RequestWaits,
    ahpa: RequestWaits,
    /// When class kpa had most pods more, and why; `None` if it never had, or if requests waited as long.
    reason: Option<String>,
}

impl TwinPair {
    fn of(seed: u64, slots: u32, length: Duration) -> Self {
        let mut draws = WorldDraws(SplitMix(seed));
        let load = draws.load();
        let [service, start_up] = [draws.between(50, 900), draws.between(1, 90)];
        let times = [format!("{service}ms,p99={}ms", 4 * service), format!("{start_up}s")];
        let report = |class: &str| {
            let scenario = TwinWorld { seed, slots, load: &load, times: &times, length }.scenario(class);
            simulate(&scenario).expect("a scenario that can be simulated").services.swap_remove(0)
        };
        let reports = ["kpa", "ahpa"].map(report);
        let [kpa, ahpa] = reports.each_ref().map(RequestWaits::of);
        let reason = if ahpa.seconds > kpa.seconds { more_pods_of_kpa(&reports, length) } else { None };
        Self { seed, slots, kpa, ahpa, reason, load: format!("{load}; {}", times.join("; ")) }
    }

    /// The seconds by which requests waited longer with class ahpa.
    fn longer(&self) -> f64 {
        self.ahpa.seconds - self.kpa.seconds
    }

    fn is_worse(&self) -> bool {
        self.longer() > WORSE_SECONDS_MAX && self.longer() > WORSE_PART_MAX * self.kpa.seconds
    }
}

impl std::fmt::Display for TwinPair {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, slots, load, kpa, ahpa, reason: _ } = self;
        write!(to, "seed {seed}, {slots} in a pod, {load}: ")?;
        write!(to, "class kpa {} requests {:.1} s, ", kpa.requests, kpa.seconds)?;
        write!(to, "class ahpa {} requests {:.1} s", ahpa.requests, ahpa.seconds)
    }
}

/// When class kpa, which is the first, had most pods more than class ahpa, with the reasons of both.
fn more_pods_of_kpa([kpa, ahpa]: &[ServiceReport; 2], length: Duration) -> Option<String> {
    let all = greatest_differences(&kpa.counts, &ahpa.counts, length, usize::MAX);
    let more = |CountDifference { first, second, .. }: &CountDifference| {
        first.count.value().saturating_sub(second.count.value())
    };
    let most = all.into_iter().filter(|found| more(found) > 0);
    let most = most.max_by_key(|found| (more(found), found.lasted));
    most.map(|CountDifference { at, lasted, first, second }| {
        format!(
            "after {} s, for {} s: class kpa {} pods ({}), class ahpa {} ({})",
            at.as_secs(),
            lasted.as_secs(),
            first.count,
            first.why,
            second.count,
            second.why
        )
    })
}

/// What both worlds of a pair have in common.
struct TwinWorld<'a> {
    seed: u64,
    slots: u32,
    load: &'a str,
    /// The service time and the start-up.
    times: &'a [String; 2],
    length: Duration,
}

impl TwinWorld<'_> {
    fn scenario(&self, class: &str) -> Scenario {
        let cluster = ClusterConfig::default();
        let annotations: BTreeMap<String, String> =
            [("autoscaling.knative.dev/class".to_owned(), format!("{class}.autoscaling.knative.dev"))].into();
        let settings = RevisionSettings::read(&annotations, &cluster, None).expect("good annotations").value;
        let name = RevisionName::new("default", "service", "twin").expect("a name");
        let [service_time, start_up] = self.times;
        let service = ServiceScenario {
            facts: new_service(name, settings, self.slots, &cluster),
            load: Some(shape(self.load)),
            service_time: TimeDistribution::parse(service_time).expect("a time"),
            start_up: TimeDistribution::parse(start_up).expect("a time"),
        };
        Scenario {
            cluster: Arc::new(cluster),
            services: vec![service],
            cores: BTreeMap::new(),
            delays: WorldDelays::default(),
            beginning: LoadBeginning::default(),
            length: self.length,
            seed: self.seed,
            pace: SimulationPace::EveryRequest,
            faults: Vec::new(),
        }
    }
}

fn shape(load: &str) -> LoadShape {
    match ServiceLoad::parse(&format!("*={load}")).expect("a load").source {
        LoadSource::Shape(shape) => shape,
        LoadSource::File(_) => panic!("{load} is a file"),
    }
}

/// Draws what a world is made of.
struct WorldDraws(SplitMix);

impl WorldDraws {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.draw() % (most - least + 1)
    }

    /// A load of hours, of bursts of timers or of rare requests; the last two shapes have no pattern.
    fn load(&mut self) -> String {
        let (rate, minutes, requests) = (self.between(4, 30), self.between(3, 25), self.between(1, 20));
        match self.between(0, 5) {
            0 | 1 => format!("diurnal,peak={rate}rps,trough=1rps,period=1h"),
            2 => format!("timer,every={minutes}m,requests={requests}"),
            3 => format!("timer,every={minutes}m"),
            4 => format!("sparse,every={minutes}m"),
            _ => format!("bursty,burst={rate}rps,every={minutes}m,length=40s,rate=1rps"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is printed with a few digits")]
fn real(count: u64) -> f64 {
    count as f64
}
