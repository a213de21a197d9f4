//! What `ebb simulate` takes: a load, the times of an app, settings to compare, and what is good enough; or a
//! world that a seed makes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use settings::{CONFIG_MAP_NAME, config_map_keys};
use simulator::{CoreCount, ScenarioFault, ServiceLoad, SimulationPace, TimeDistribution};
use vocabulary::{did_you_mean, shown};

use super::annotation_names::{annotation_named, annotation_value, short_names};
use super::serving::{ManifestOptions, ReadingOptions};
use super::values::duration;

/// A year has so many minutes at most.
const MINUTES_MAX: i64 = 366 * 24 * 60;

/// The seed where none is said.
pub(crate) const DEFAULT_SEED: u64 = 1;

/// What is written on the command line: a load, or a made-up world of its own.
#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// A scenario: a file of the kind Simulation that holds manifests, loads and times, with the fields that
    /// docs/tasks/simulate.md lists. Then no other option says them.
    #[arg(value_name = "SCENARIO", conflicts_with_all = WORDS_OF_SCENARIOS)]
    scenario: Option<PathBuf>,
    /// Simulate no load, but a world in which processes, links, the platform and clocks fail, as --seed makes
    /// it, and say which promise of ebb it breaks. Exit code 1 if it breaks one.
    #[arg(long, value_name = "WORLD", value_enum, conflicts_with_all = WORDS_OF_LOADS)]
    world: Option<MadeUpWorld>,
    /// Manifests: Knative Services and, optionally, the ConfigMap config-autoscaler. A directory means all
    /// *.yaml, *.yml and *.json in it, "-" standard input.
    #[arg(
        short,
        long = "filename",
        value_name = "FILE",
        required_unless_present_any = ["world", "scenario"],
        num_args = 1..
    )]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingOptions,
    /// How requests of a Service arrive, such as hello=constant,rate=50rps or
    /// hello=diurnal,peak=200rps,trough=10rps or hello=clients=50. Shapes: constant, step, ramp, diurnal,
    /// weekly, bursty, timer, sparse, azure; docs/tasks/simulate.md has the words of each. Or a file, such as
    /// hello=requests.csv or hello=requests.csv.gz: each line is one request, SECONDS or SECONDS,WORK. The
    /// name * stands for each Service that no other load names.
    #[arg(
        long,
        value_name = "NAME=SHAPE",
        required_unless_present_any = ["world", "scenario", "record"],
        value_parser = service_load
    )]
    load: Vec<ServiceLoad>,
    /// Take the load of a run that `ebb up --record` has written into this folder: as many requests in each
    /// second as came then, each at any time of it, with the mean time that requests took, and starts of pods
    /// as long as those were. --load, --service-time, --start-up and a length take the place of what is
    /// recorded.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
    /// In files of --load each line is the number of requests in a span of this length: 1s, 1m or 1h.
    #[arg(long, value_name = "TIME", value_parser = bin)]
    bin: Option<Duration>,
    /// How long an app works on a request: 120ms, 50ms..200ms, 120ms,p99=800ms (log-normal),
    /// exponential,mean=120ms, or percentiles,min=5ms,p50=80ms,p99=900ms,max=2s.
    #[arg(
        long,
        value_name = "TIME",
        required_unless_present_any = ["world", "scenario", "record"],
        value_parser = time_distribution
    )]
    service_time: Option<TimeDistribution>,
    /// How long a pod takes from its order until it is ready, in the words of --service-time, such as 2s..5s.
    #[arg(
        long,
        value_name = "TIME",
        required_unless_present_any = ["world", "scenario", "record"],
        value_parser = time_distribution
    )]
    start_up: Option<TimeDistribution>,
    /// How many requests a pod works on at full speed, such as 2 or 0.5: more that run in it at once share
    /// its cores evenly, and each takes longer. Without this they do not slow each other down.
    #[arg(long, value_name = "NUMBER", value_parser = cores)]
    cores: Option<CoreCount>,
    /// Do not follow each request, but draw what happens in each second: about the same counts and waits, in
    /// far less time. Above 1,000,000,000 requests this is done without being asked for, and said.
    #[arg(long)]
    fast: bool,
    /// Let something go wrong: pods-killed,at=10m,service=hello,pods=2 (they are lost with all that they
    /// hold), slow-starts,at=10m,length=5m,times=4 (starts take so many times as long),
    /// autoscaler-killed,at=10m,pause=15s, takeover,at=10m, pod-links-lost,at=10m,length=30s,
    /// pod-links-slow,at=10m,length=30s,delay=2s, activator-link-lost and activator-link-slow. Without a
    /// service it is about each. Repeat it for further faults.
    #[arg(long, value_name = "FAULT", value_parser = fault)]
    fault: Vec<ScenarioFault>,
    #[command(flatten)]
    length: LengthOptions,
    /// Simulate again with other annotations on every Service, such as window=30s or min-scale=1,target=5,
    /// and show when the counts differ most. Each variant meets the same requests, service times and
    /// start-ups.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = variant)]
    compare: Vec<VariantOption>,
    /// The number from which all chance follows: the same number repeats a simulation. Without this it is 1,
    /// or that of the scenario.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Name the cheapest of all settings that are simulated whose waits are short enough, such as
    /// "p99 wait < 200ms"; p50, p95 and max too. Exit code 1 if none is.
    #[arg(long, value_name = "GOAL", value_parser = objective)]
    objective: Option<WaitObjective>,
    /// Write all numbers into this file too, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the counts of all variants over time into this file too, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the whole report with its charts into this file too, which a browser shows by itself.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The arguments that are about loads, and mean nothing in a world that a seed makes.
const WORDS_OF_LOADS: [&str; 16] = [
    "files",
    "load",
    "record",
    "bin",
    "service_time",
    "start_up",
    "cores",
    "fast",
    "fault",
    "LengthOptions",
    "compare",
    "objective",
    "json",
    "svg",
    "html",
    "ignore_foreign",
];

/// The arguments that a scenario holds, and that say nothing beside one.
const WORDS_OF_SCENARIOS: [&str; 14] = [
    "world",
    "files",
    "load",
    "record",
    "bin",
    "service_time",
    "start_up",
    "cores",
    "fast",
    "fault",
    "LengthOptions",
    "compare",
    "objective",
    "ignore_foreign",
];

/// A world that is simulated without a load of a person's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MadeUpWorld {
    /// Services, loads and faults as the seed makes them.
    Random,
}

/// What is to be simulated.
#[derive(Debug)]
pub(crate) enum SimulationOrder {
    /// The world that a seed makes.
    World {
        seed: u64,
    },
    /// What a scenario file says.
    Scenario(ScenarioOptions),
    Loads(Box<SimulateOptions>),
}

/// A scenario file, and what is said beside it.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioOptions {
    pub(crate) path: PathBuf,
    /// In place of the seed of the file.
    pub(crate) seed: Option<u64>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
}

/// Loads that are to be simulated, and with which settings.
#[derive(Debug)]
pub(crate) struct SimulateOptions {
    pub(crate) manifests: ManifestOptions,
    pub(crate) load: Vec<ServiceLoad>,
    /// The run that says what is not said otherwise.
    pub(crate) record: Option<PathBuf>,
    pub(crate) bin: Option<Duration>,
    /// `None` only with a record, and so for the next two.
    pub(crate) service_time: Option<TimeDistribution>,
    pub(crate) start_up: Option<TimeDistribution>,
    pub(crate) cores: Option<CoreCount>,
    pub(crate) pace: SimulationPace,
    pub(crate) faults: Vec<ScenarioFault>,
    pub(crate) length: Option<Duration>,
    pub(crate) compare: Vec<VariantOption>,
    pub(crate) seed: u64,
    pub(crate) objective: Option<WaitObjective>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
}

impl SimulateArguments {
    pub(crate) fn order(self) -> SimulationOrder {
        if let Some(path) = self.scenario {
            let (seed, json, svg, html) = (self.seed, self.json, self.svg, self.html);
            return SimulationOrder::Scenario(ScenarioOptions { path, seed, json, svg, html });
        }
        let seed = self.seed.unwrap_or(DEFAULT_SEED);
        if self.world.is_some() {
            return SimulationOrder::World { seed };
        }
        SimulationOrder::Loads(Box::new(SimulateOptions {
            manifests: ManifestOptions { files: self.files, reading: self.reading },
            load: self.load,
            record: self.record,
            bin: self.bin,
            service_time: self.service_time,
            start_up: self.start_up,
            cores: self.cores,
            pace: if self.fast { SimulationPace::WholeSeconds } else { SimulationPace::EveryRequest },
            faults: self.fault,
            length: self.length.span(),
            compare: self.compare,
            seed,
            objective: self.objective,
            json: self.json,
            svg: self.svg,
            html: self.html,
        }))
    }
}

/// What is good enough: so many requests have a shorter wait than the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitObjective {
    /// As a person wrote it.
    pub(crate) text: String,
    pub(crate) quantile: WaitQuantile,
    pub(crate) limit: Duration,
}

/// How many of all requests an objective is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitQuantile {
    P50,
    P95,
    P99,
    All,
}

/// The words for how many requests an objective is about.
const QUANTILES: [(&str, WaitQuantile); 4] = [
    ("p50", WaitQuantile::P50),
    ("p95", WaitQuantile::P95),
    ("p99", WaitQuantile::P99),
    ("max", WaitQuantile::All),
];

/// How long the load lasts.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct LengthOptions {
    /// The length of the load in minutes.
    #[arg(
        long,
        value_name = "MINUTES",
        required_unless_present_any = ["hours", "days", "world", "scenario", "record"],
        value_parser = clap::value_parser!(u32).range(1..=MINUTES_MAX)
    )]
    pub(crate) minutes: Option<u32>,
    /// The length of the load in hours.
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=MINUTES_MAX / 60))]
    pub(crate) hours: Option<u32>,
    /// The length of the load in days.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: Option<u32>,
}

impl LengthOptions {
    /// The length of the load, of which one option says all; `None` if none does.
    pub(crate) fn span(self) -> Option<Duration> {
        let seconds = |count: Option<u32>, each: u64| count.map(|count| u64::from(count) * each);
        let said = seconds(self.minutes, 60).or(seconds(self.hours, 3_600)).or(seconds(self.days, 86_400));
        said.map(Duration::from_secs)
    }
}

/// Annotations of a variant, by their whole names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariantOption {
    /// As a person wrote it.
    pub(crate) text: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

pub(crate) fn service_load(text: &str) -> Result<ServiceLoad, String> {
    ServiceLoad::parse(text).map_err(|problem| problem.to_string())
}

pub(crate) fn time_distribution(text: &str) -> Result<TimeDistribution, String> {
    TimeDistribution::parse(text).map_err(|problem| problem.to_string())
}

pub(crate) fn fault(text: &str) -> Result<ScenarioFault, String> {
    ScenarioFault::parse(text).map_err(|problem| problem.to_string())
}

pub(crate) fn cores(text: &str) -> Result<CoreCount, String> {
    CoreCount::parse(text)
}

pub(crate) fn bin(text: &str) -> Result<Duration, String> {
    let bin = duration(text)?;
    if bin.is_zero() { Err("is no time at all; write 1s, 1m or 1h".to_owned()) } else { Ok(bin) }
}

pub(crate) fn objective(text: &str) -> Result<WaitObjective, String> {
    let advice = || {
        format!(
            "{} is no objective; write p50, p95, p99 or max, then wait < TIME, such as \"p99 wait < 200ms\"",
            shown(text)
        )
    };
    let (measure, limit) = text.split_once('<').ok_or_else(advice)?;
    let requests = measure.trim().strip_suffix("wait").map(str::trim);
    let quantile = QUANTILES.iter().find(|(word, _)| requests == Some(*word));
    let &(_, quantile) = quantile.ok_or_else(advice)?;
    let limit = duration(limit.trim()).map_err(|error| format!("the limit of {} {error}", shown(text)))?;
    Ok(WaitObjective { text: text.to_owned(), quantile, limit })
}

pub(crate) fn variant(text: &str) -> Result<VariantOption, String> {
    let mut annotations = BTreeMap::new();
    for part in text.split(',') {
        let setting = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) = setting
            .ok_or_else(|| format!("{} is no setting; write KEY=VALUE, such as window=30s", shown(part)))?;
        let name = annotation_named(key).ok_or_else(|| no_annotation(key))?;
        if annotations.insert(name.to_owned(), annotation_value(name, value)).is_some() {
            return Err(format!("{key} stands twice; write it once"));
        }
    }
    Ok(VariantOption { text: text.to_owned(), annotations })
}

fn no_annotation(key: &str) -> String {
    if config_map_keys().any(|known| known == key) {
        return format!(
            "{key} applies to all revisions alike: change it in a copy of ConfigMap {CONFIG_MAP_NAME}, and simulate again with that"
        );
    }
    let near = did_you_mean(key, short_names());
    format!("{} is no annotation; docs/reference/annotations.md lists those that exist{near}", shown(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_is_read_and_refused_with_what_is_allowed() {
        let read = objective("p99 wait < 200ms").expect("an objective");
        assert_eq!((read.quantile, read.limit), (WaitQuantile::P99, Duration::from_millis(200)));
        assert_eq!(objective("max wait<2s").map(|read| read.quantile), Ok(WaitQuantile::All));
        for (text, expected) in [
            ("p98 wait < 1s", "is no objective; write p50, p95, p99 or max"),
            ("p99 < 1s", "is no objective"),
            ("p99 wait > 1s", "is no objective"),
            ("p99 wait < 200", "has no unit; write \"200s\""),
        ] {
            let error = objective(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(cores("2").is_ok() && cores("0").is_err());
        assert!(bin("1m").is_ok() && bin("0s").is_err() && bin("1").is_err());
    }

    #[test]
    fn a_variant_names_annotations_with_or_without_their_prefix() {
        let read = variant("window=30s, autoscaling.knative.dev/target=5").expect("two settings");
        let names: Vec<&str> = read.annotations.keys().map(String::as_str).collect();
        assert_eq!(names, ["autoscaling.knative.dev/target", "autoscaling.knative.dev/window"]);
        let read = variant("class=ahpa").expect("a class");
        assert_eq!(read.annotations["autoscaling.knative.dev/class"], "ahpa.autoscaling.knative.dev");
        for (text, expected) in [
            ("window", "\"window\" is no setting; write KEY=VALUE"),
            ("windw=30s", "did you mean window?"),
            ("max-scale-up-rate=2", "applies to all revisions alike"),
            ("target=5,target=6", "target stands twice"),
        ] {
            let error = variant(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
