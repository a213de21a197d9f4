//! What is repeated: reports and decisions in steady state, at windows of 60 s.

use std::hint::black_box;
use std::time::Duration;

use scaling::{Collector, Decider, Observation};
use settings::{Aggregation, ScalingSpec};
use vocabulary::{BootId, Concurrency, Load, PodCount, PodId, Reporter, RequestRate, Sample, Timestamp};

use super::minutes::Minutes;
use super::passes::Passes;
use super::ticks::{State, Ticks};

/// The kinds of work whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reports of this many revisions with one pod each in turn: each finds its revision as cold as a second
    /// later.
    Report { revisions: u32 },
    /// One evaluation of ten pods: what the windows say, and what follows.
    Decision { aggregation: Aggregation },
    /// Two seconds of one of many revisions in the multiscaler, in which nothing changes: it is reported on
    /// twice and evaluated once.
    Tick { state: State },
    /// One pass of class hpa with four metrics over this many pods, in which nothing changes.
    Pass { pods: u32 },
    /// A minute of a forecast: 21 rules are played against what came, and the next minute has a floor.
    ForecastMinute,
}

/// How long everything has been measured before the first repetition.
const SECONDS: u64 = 60;
const PODS: u32 = 10;
/// On average in each pod; of 70 aimed at, so that the count stays.
const LOAD: f64 = 65.0;

impl Work {
    pub(crate) fn all() -> [Self; 9] {
        [
            Self::Report { revisions: 1 },
            Self::Report { revisions: 10_000 },
            Self::Decision { aggregation: Aggregation::Linear },
            Self::Decision { aggregation: Aggregation::WeightedExponential },
            Self::Tick { state: State::Serving },
            Self::Tick { state: State::AtZero },
            Self::Pass { pods: 10 },
            Self::Pass { pods: 1_000 },
            Self::ForecastMinute,
        ]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Report { revisions: 1 } => "report, one revision",
            Self::Report { .. } => "report, one of 10,000 revisions",
            Self::Decision { aggregation: Aggregation::Linear } => "decision, linear windows",
            Self::Decision { aggregation: Aggregation::WeightedExponential } => "decision, weighted windows",
            Self::Tick { state: State::Serving } => "two reports and a tick, serving",
            Self::Tick { state: State::AtZero } => "two heartbeats and a tick, at zero",
            Self::Pass { pods: ..=10 } => "pass of class hpa, 4 metrics, 10 pods",
            Self::Pass { .. } => "pass of class hpa, 4 metrics, 1,000 pods",
            Self::ForecastMinute => "minute of a forecast",
        }
    }

    /// The same with less to set up. Caches, for which there are so many revisions, change no count.
    pub(crate) fn reduced(self) -> Self {
        match self {
            Self::Report { revisions } => Self::Report { revisions: revisions.min(50) },
            Self::Decision { .. } | Self::Tick { .. } | Self::Pass { .. } | Self::ForecastMinute => self,
        }
    }

    /// How many times longer it takes than the others: so many times less often it is repeated.
    pub(crate) fn weight(self) -> u32 {
        match self {
            Self::Report { .. } | Self::Decision { .. } | Self::Tick { .. } => 1,
            Self::Pass { pods } => pods.max(10) / 10,
            Self::ForecastMinute => 20,
        }
    }

    pub(crate) fn prepare(self) -> Bench {
        match self {
            Self::Report { revisions } => Bench::Report(Reports {
                collectors: (0..revisions).map(|_| measured(&ScalingSpec::default(), 1)).collect(),
                next: 0,
                second: SECONDS,
            }),
            Self::Decision { aggregation } => Bench::Decision(Box::new(Decisions::of(aggregation))),
            Self::Tick { state } => Bench::Tick(Box::new(Ticks::of(state))),
            Self::Pass { pods } => Bench::Pass(Box::new(Passes::over(pods))),
            Self::ForecastMinute => Bench::ForecastMinute(Box::new(Minutes::new())),
        }
    }
}

/// Work that is set up.
pub(crate) enum Bench {
    Report(Reports),
    Decision(Box<Decisions>),
    Tick(Box<Ticks>),
    Pass(Box<Passes>),
    ForecastMinute(Box<Minutes>),
}

impl Bench {
    pub(crate) fn once(&mut self) {
        match self {
            Self::Report(reports) => reports.once(),
            Self::Decision(decisions) => decisions.once(),
            Self::Tick(ticks) => ticks.once(),
            Self::Pass(passes) => passes.once(),
            Self::ForecastMinute(minutes) => minutes.once(),
        }
    }
}

pub(crate) struct Reports {
    collectors: Vec<Collector>,
    next: usize,
    second: u64,
}

impl Reports {
    fn once(&mut self) {
        let now = Timestamp::from_secs(self.second + 1);
        self.collectors[self.next].record(pod(0), sample(self.second), now);
        self.next += 1;
        if self.next == self.collectors.len() {
            self.next = 0;
            self.second += 1;
        }
    }
}

pub(crate) struct Decisions {
    spec: ScalingSpec,
    collector: Collector,
    decider: Decider,
    ready: Vec<PodId>,
    now: Timestamp,
}

impl Decisions {
    fn of(aggregation: Aggregation) -> Self {
        let spec = ScalingSpec { aggregation, ..ScalingSpec::default() };
        let count = PodCount::new(PODS);
        Self {
            collector: measured(&spec, PODS),
            // Begun long ago, so that the panic of the beginning is over.
            decider: Decider::new(&spec, count, Timestamp::ZERO),
            ready: (0..PODS).map(PodId).collect(),
            now: Timestamp::from_secs(SECONDS) + Duration::from_millis(500),
            spec,
        }
    }

    fn once(&mut self) {
        let averages = self.collector.observe(&self.ready, self.now).expect("the pods have just reported");
        let count = PodCount::new(PODS);
        let observation =
            Observation { ready: count, reachable: count, wanted: count, averages, present_count: None };
        black_box(self.decider.decide(&self.spec, &observation, self.now));
    }
}

fn measured(spec: &ScalingSpec, pods: u32) -> Collector {
    let mut collector = Collector::new(spec);
    for reporter in (0..pods).map(pod) {
        collector.start_reporter(reporter, BootId(1), 0, Timestamp::ZERO);
        for second in 0..SECONDS {
            collector.record(reporter, sample(second), Timestamp::from_secs(second + 1));
        }
    }
    collector
}

fn pod(number: u32) -> Reporter {
    Reporter::Pod(PodId(number))
}

pub(super) fn sample(second: u64) -> Sample {
    let wobble = f64::from(u32::try_from(second % 5).unwrap_or(0)) - 2.0;
    let load = Load {
        concurrency: Concurrency::clamped(LOAD + wobble),
        request_rate: RequestRate::clamped(10.0 * (LOAD + wobble)),
        ..Load::default()
    };
    Sample { second, load }
}
