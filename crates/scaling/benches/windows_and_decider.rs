//! What the parts of a report and a decision cost, with their allocations. Run with `cargo bench -p scaling`;
//! the whole is measured against its goals by `cargo bench -p tests --bench decide`.

use std::sync::Arc;
use std::time::Duration;

use scaling::{
    Averages, Collector, Decider, Event, Multiscaler, Observation, PodFact, PodPhase, RevisionOrigin,
};
use settings::{Aggregation, ScalingSpec};
use vocabulary::{
    BootId, Concurrency, Load, PodCount, PodId, Reporter, RequestRate, RevisionId, Sample, Timestamp,
};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// Revisions with one pod each, reporting in turn, so that each report finds its revision as cold as a second
/// later.
const REVISIONS: usize = 10_000;

#[divan::bench]
fn report_of_one_of_ten_thousand_revisions(bencher: divan::Bencher) {
    let mut collectors: Vec<Collector> = (0..REVISIONS).map(|_| measured(1, 60)).collect();
    let (mut index, mut second) = (0, 60);
    bencher.bench_local(|| {
        let sample = Sample { second, load: load(second) };
        collectors[index].record(Reporter::Pod(PodId(0)), sample, Timestamp::from_secs(second + 1));
        index += 1;
        if index == REVISIONS {
            index = 0;
            second += 1;
        }
    });
}

#[divan::bench(args = [1, 10, 100])]
fn report_of_one_pod_of(bencher: divan::Bencher, pods: u32) {
    let mut collector = measured(pods, 60);
    let (mut pod, mut second) = (0, 60);
    bencher.bench_local(|| {
        let sample = Sample { second, load: load(second) };
        collector.record(Reporter::Pod(PodId(pod)), sample, Timestamp::from_secs(second + 1));
        pod += 1;
        if pod == pods {
            pod = 0;
            second += 1;
        }
    });
}

#[divan::bench(args = [Aggregation::Linear, Aggregation::WeightedExponential], consts = [1, 10])]
fn observe<const PODS: u32>(bencher: divan::Bencher, aggregation: Aggregation) {
    let mut collector = measured(PODS, 60);
    let now = Timestamp::from_millis(60_500);
    collector.update(&ScalingSpec { aggregation, ..ScalingSpec::default() }, now);
    let ready: Vec<PodId> = (0..PODS).map(PodId).collect();
    bencher.bench_local(|| collector.observe(&ready, now));
}

#[divan::bench]
fn decide(bencher: divan::Bencher) {
    let spec = ScalingSpec { scale_down_delay: Duration::from_mins(1), ..ScalingSpec::default() };
    let mut decider = Decider::new(&spec, PodCount::new(8), Timestamp::ZERO);
    let mut now = Timestamp::ZERO;
    let observation = Observation {
        ready: PodCount::new(8),
        reachable: PodCount::new(8),
        wanted: PodCount::new(8),
        averages: Averages::complete(510.0, 490.0),
        present_count: None,
    };
    bencher.bench_local(|| {
        now += Duration::from_secs(2);
        decider.decide(&spec, &observation, now)
    });
}

/// The history of one revision with one pod, whose load is never the same twice: `max alloc` of an hour, a
/// day and 35 days, less that of no hour, is the memory that the history takes.
#[divan::bench(args = [0, 1, 24, 35 * 24], sample_count = 1, sample_size = 1)]
fn history_of_hours(hours: u64) -> Multiscaler {
    let (revision, pod) = (RevisionId(0), PodId(0));
    let mut multiscaler = Multiscaler::default();
    let spec = Arc::new(ScalingSpec::default());
    let phase = PodPhase::Running;
    let pods = vec![PodFact { pod, phase, is_ready: true, is_reachable: true, is_outdated: false }];
    let facts = [
        Event::RevisionChanged { revision, spec, wanted: PodCount::ONE, origin: RevisionOrigin::Found },
        Event::PodsChanged { revision, pods },
        Event::ReporterStarted {
            reporter: Reporter::Pod(pod),
            boot: BootId(1),
            current_second: 0,
            history: Vec::new(),
        },
    ];
    for fact in facts {
        multiscaler.handle(fact, Timestamp::ZERO);
    }
    for second in 0..hours * 3600 {
        let now = Timestamp::from_secs(second + 1);
        let sample = Sample { second, load: load(second.wrapping_mul(2_654_435_761) >> 7) };
        multiscaler.handle(Event::LoadReported { reporter: Reporter::Pod(pod), revision, sample }, now);
        multiscaler.advance(now);
        while multiscaler.next_command().is_some() {}
    }
    multiscaler
}

/// A collector that each of `pods` has reported to for `seconds`.
fn measured(pods: u32, seconds: u64) -> Collector {
    let mut collector = Collector::new(&ScalingSpec::default());
    for pod in (0..pods).map(|pod| Reporter::Pod(PodId(pod))) {
        collector.start_reporter(pod, BootId(1), 0, Timestamp::ZERO);
        for second in 0..seconds {
            collector.record(pod, Sample { second, load: load(second) }, Timestamp::from_secs(second + 1));
        }
    }
    collector
}

fn load(second: u64) -> Load {
    let concurrency = f64::from(u32::try_from(second % 17).unwrap_or(0));
    Load {
        concurrency: Concurrency::clamped(concurrency),
        request_rate: RequestRate::clamped(10.0 * concurrency),
        ..Load::default()
    }
}
