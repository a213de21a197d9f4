//! Clients that wait for each answer before they ask again are so many, whichever way their requests take: no
//! decision counts one of them with pods and with activators at once while the path changes.

use std::sync::Arc;

use proptest::prelude::*;
use vocabulary::{MilliValue, PresentCount};

use super::hpa::settings;
use super::*;
use crate::Collector;
use crate::hpa::MetricSpec;

/// Milliseconds since the world began.
type Millis = u64;

const STEP: Millis = 5;
const TARGET: f64 = 5.0;
/// Long enough for reporters that have nothing to say to have said so in a whole panic window.
const BURST_AT: Millis = 10_000;
const BURST_LASTS: Millis = 12_000;
/// What happened so long ago must not be counted any more.
const COUNT_AGE_MAX: Millis = 100;
const LATENESS_MAX: Millis = 200;
/// The least time between two early reports of a pod, and of an activator.
const POD_PACE: Millis = 100;
const ACTIVATOR_PACE: Millis = 20;

fn at(now: Millis) -> Timestamp {
    Timestamp::from_secs(1000) + Duration::from_millis(now)
}

/// Clients, and the ways that they are led.
#[derive(Clone, Debug)]
struct Plan {
    /// How long each client's requests take. Each client has its pod and its activator, as one that keeps
    /// its connections has.
    requests: Vec<Millis>,
    pods: u32,
    activators: u32,
    /// When each reporter's link comes up, and for how long its second goes on then.
    starts: Vec<(Millis, Millis)>,
    /// How late reporters' words come, one after the other.
    lateness: Vec<Millis>,
    /// How long after the burst, and after each other, the path changes.
    switches: Vec<Millis>,
    first_path: Routing,
}

/// A pod or an activator.
struct CountingReporter {
    reporter: Reporter,
    starts_at: Millis,
    second_ends: Millis,
    second: u64,
    held: u32,
    /// Request-milliseconds of the running second.
    area: u64,
    told: u32,
    told_at: Millis,
    /// When its last word arrives: a link keeps the order.
    last_arrival: Millis,
}

struct WaitingClient {
    lasts: Millis,
    /// The place of the reporter that has its request, and until when.
    at: usize,
    until: Millis,
}

/// One revision and everybody around it.
struct Crowd {
    plan: Plan,
    now: Millis,
    multiscaler: Multiscaler,
    /// Hears the same, so as to say what evaluations count.
    collector: Collector,
    threshold: Option<u32>,
    reporters: Vec<CountingReporter>,
    clients: Vec<WaitingClient>,
    /// When each request ended, of those that may matter.
    requests: Vec<(usize, Option<Millis>)>,
    under_way: BTreeMap<(Millis, usize), Event>,
    words: usize,
    path: Routing,
    most_wanted: u32,
}

impl Crowd {
    fn new(spec: &ScalingSpec, plan: Plan) -> Self {
        let pods = (0..plan.pods).map(|pod| Reporter::Pod(PodId(pod)));
        let activators = (0..plan.activators).map(|replica| Reporter::Activator(ReplicaId(replica)));
        let reporters =
            pods.chain(activators).zip(plan.starts.iter().cycle()).map(|(reporter, &(starts_at, rest))| {
                let second_ends = starts_at + rest.max(STEP);
                let (second, held, area, told, told_at, last_arrival) = (0, 0, 0, 0, 0, 0);
                CountingReporter {
                    reporter,
                    starts_at,
                    second_ends,
                    second,
                    held,
                    area,
                    told,
                    told_at,
                    last_arrival,
                }
            });
        let mut crowd = Self {
            now: 0,
            multiscaler: Multiscaler::default(),
            collector: Collector::new(&observed(spec)),
            threshold: None,
            reporters: reporters.collect(),
            clients: Vec::new(),
            requests: Vec::new(),
            under_way: BTreeMap::new(),
            words: 0,
            path: plan.first_path,
            most_wanted: 0,
            plan,
        };
        crowd.begin(spec);
        crowd
    }

    fn begin(&mut self, spec: &ScalingSpec) {
        let activators = (0..self.plan.activators).map(ReplicaId).collect();
        self.deliver(Event::ActivatorsChanged { activators });
        let (wanted, spec) = (PodCount::new(self.plan.pods), Arc::new(spec.clone()));
        self.deliver(Event::RevisionChanged {
            revision: REVISION,
            spec,
            wanted,
            origin: RevisionOrigin::Found,
        });
        let pods = (0..self.plan.pods).map(|pod| running(PodId(pod), true)).collect();
        self.deliver(Event::PodsChanged { revision: REVISION, pods });
    }

    /// A word of a reporter arrives.
    fn deliver(&mut self, event: Event) {
        let now = at(self.now);
        match &event {
            Event::ReporterStarted { reporter, boot, current_second, .. } => {
                self.collector.start_reporter(*reporter, *boot, *current_second, now);
            }
            Event::LoadReported { reporter, sample, .. } => self.collector.record(*reporter, *sample, now),
            Event::ReporterHeard { reporter: Reporter::Pod(pod), second } => {
                self.collector.idle(*pod, *second, now);
            }
            Event::ReporterHeard { reporter, second } => self.collector.heard(*reporter, *second, now),
            Event::PresentReported { reporter, count, .. } => self.collector.present(*reporter, *count, now),
            Event::RevisionChanged { .. }
            | Event::RevisionRemoved { .. }
            | Event::PodsChanged { .. }
            | Event::PodChanged { .. }
            | Event::UsageReported { .. }
            | Event::MetricsAnswered { .. }
            | Event::ScaleEnded { .. }
            | Event::LinkLost { .. }
            | Event::ActivatorsChanged { .. }
            | Event::PathAcknowledged { .. }
            | Event::AdoptedConnectionsReported { .. }
            | Event::RoutingObserved { .. } => {}
        }
        self.multiscaler.handle(event, now);
        self.obey();
    }

    fn obey(&mut self) {
        while let Some(command) = self.multiscaler.next_command() {
            match command {
                Command::ScaleTo { count, .. } => self.most_wanted = self.most_wanted.max(count.value()),
                Command::SetSurgeThreshold { threshold, .. } => self.threshold = threshold,
                Command::SetRouting { .. }
                | Command::SetActivatorCount { .. }
                | Command::AskMetrics { .. }
                | Command::Warn { .. }
                | Command::TellOfHold { .. }
                | Command::Publish { .. } => {}
            }
        }
    }

    fn say(&mut self, index: usize, event: Event) {
        let lateness = self.plan.lateness[self.words % self.plan.lateness.len()];
        let counting = &mut self.reporters[index];
        counting.last_arrival = counting.last_arrival.max(self.now + lateness);
        self.under_way.insert((counting.last_arrival, self.words), event);
        self.words += 1;
    }

    /// Lets everything happen until the burst has lasted. Says at which instants the present counts said more
    /// than there was.
    fn run(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut switches = self.plan.switches.clone().into_iter().scan(BURST_AT, |at, gap| {
            *at += gap;
            Some(*at)
        });
        let mut next_switch = switches.next();
        while self.now < BURST_AT + BURST_LASTS {
            self.now += STEP;
            if next_switch.is_some_and(|at| at <= self.now) {
                next_switch = switches.next();
                self.path = match self.path {
                    Routing::Direct => Routing::ThroughActivator,
                    Routing::ThroughActivator => Routing::Direct,
                };
            }
            self.serve();
            self.report();
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.deliver(event);
            }
            self.multiscaler.advance(at(self.now));
            self.obey();
            problems.extend(self.miscount());
        }
        problems
    }

    /// Requests end, and their clients send the next ones.
    fn serve(&mut self) {
        for counting in &mut self.reporters {
            counting.area += u64::from(counting.held) * STEP;
        }
        if self.now >= BURST_AT && self.clients.is_empty() {
            for lasts in self.plan.requests.clone() {
                self.clients.push(WaitingClient { lasts, at: 0, until: 0 });
                self.send(self.clients.len() - 1);
            }
        }
        for index in 0..self.clients.len() {
            if self.clients[index].until <= self.now {
                self.reporters[self.clients[index].at].held -= 1;
                let request =
                    self.requests.iter_mut().find(|(client, end)| *client == index && end.is_none());
                request.expect("the client has sent one").1 = Some(self.now);
                self.send(index);
            }
        }
        let oldest = self.now.saturating_sub(COUNT_AGE_MAX);
        self.requests.retain(|(_, end)| end.is_none_or(|end| end >= oldest));
    }

    fn send(&mut self, index: usize) {
        let pods = usize::try_from(self.plan.pods).expect("few");
        let client = &mut self.clients[index];
        client.at = match self.path {
            Routing::Direct => index % pods,
            Routing::ThroughActivator => pods + index % (self.reporters.len() - pods),
        };
        client.until = self.now + client.lasts;
        self.reporters[client.at].held += 1;
        self.requests.push((index, None));
    }

    /// Reporters say what queue-proxies and activators say.
    fn report(&mut self) {
        for index in 0..self.reporters.len() {
            let counting = &self.reporters[index];
            let reporter = counting.reporter;
            if self.now < counting.starts_at {
                continue;
            }
            if self.now < counting.starts_at + STEP {
                let history = Vec::new();
                self.say(
                    index,
                    Event::ReporterStarted { reporter, boot: BootId(1), current_second: 0, history },
                );
            }
            self.report_present(index);
            if self.now >= self.reporters[index].second_ends {
                self.end_second(index);
            }
        }
    }

    fn report_present(&mut self, index: usize) {
        let counting = &mut self.reporters[index];
        let (reporter, held, told) = (counting.reporter, counting.held, counting.told);
        let is_surge = self.threshold.is_some_and(|threshold| held >= threshold.max(1));
        // A pod that has told of a surge tells on until it has told of its end.
        let (is_due, next_told, pace) = match reporter {
            Reporter::Pod(_) => (is_surge || told > 0, if is_surge { held } else { 0 }, POD_PACE),
            Reporter::Activator(_) => (held > told, held, ACTIVATOR_PACE),
        };
        if is_due && self.now >= counting.told_at + pace {
            (counting.told, counting.told_at) = (next_told, self.now);
            let count = PresentCount { in_flight: held, waiting: 0 };
            self.say(index, Event::PresentReported { reporter, revision: REVISION, count });
        }
    }

    fn end_second(&mut self, index: usize) {
        let counting = &mut self.reporters[index];
        let (reporter, second) = (counting.reporter, counting.second);
        let area = u32::try_from(std::mem::take(&mut counting.area)).expect("a second's requests");
        counting.second += 1;
        counting.second_ends += 1_000;
        if matches!(reporter, Reporter::Activator(_)) {
            counting.told = counting.held;
        }
        if area > 0 {
            let sample = sample(second, f64::from(area) / 1_000.0, 0);
            self.say(index, Event::LoadReported { reporter, revision: REVISION, sample });
        }
        self.say(index, Event::ReporterHeard { reporter, second });
    }

    /// How many more requests the present counts say than there were lately.
    fn miscount(&self) -> Option<String> {
        let counted = self.collector.surge_total(at(self.now)).unwrap_or(0.0);
        let existed = f64::from(u32::try_from(self.requests.len()).expect("few"));
        (counted > existed + 1e-9).then(|| format!("at {} ms {counted} are counted of {existed}", self.now))
    }

    /// One more than the clients need.
    fn bound(&self) -> u32 {
        let clients = f64::from(u32::try_from(self.plan.requests.len()).expect("few"));
        PodCount::ceil_from(clients / TARGET).value() + 1
    }
}

/// The settings of what is observed of these.
fn observed(spec: &ScalingSpec) -> ScalingSpec {
    ScalingSpec { hpa: None, ..spec.clone() }
}

/// Both classes with that target, with long windows and with the shortest ones.
fn settings_of_both_classes() -> Vec<ScalingSpec> {
    let own = MetricSpec::Own { metric: crate::Metric::Concurrency, target: MilliValue::new(5_000) };
    let of = |spec: ScalingSpec| ScalingSpec { target_per_pod: TARGET, total_per_pod: TARGET, ..spec };
    let (kpa, hpa) = (of(spec()), of(settings(1, 100, vec![own])));
    let with_short_windows = |spec: &ScalingSpec| ScalingSpec {
        stable_window: Duration::from_secs(6),
        panic_window: Duration::from_secs(1),
        ..spec.clone()
    };
    vec![with_short_windows(&kpa), with_short_windows(&hpa), kpa, hpa]
}

fn name_of(spec: &ScalingSpec) -> String {
    format!("class {}, window {:?}", if spec.hpa.is_some() { "hpa" } else { "kpa" }, spec.stable_window)
}

fn plan() -> impl Strategy<Value = Plan> {
    let clients = prop::collection::vec(20_u64..1_500, 1..=80);
    let reporters = (1_u32..=4, 1_u32..=3, prop::collection::vec((0_u64..2_000, 1_u64..=1_000), 7));
    let lateness = prop::collection::vec(0_u64..=LATENESS_MAX, 1..20);
    // Two changes lie further apart than the seconds of two reporters do.
    let switches = (10_u64..1_500, prop::collection::vec(3_000_u64..5_000, 0..4));
    let first_path = prop_oneof![Just(Routing::Direct), Just(Routing::ThroughActivator)];
    (clients, reporters, lateness, switches, first_path).prop_map(
        |(requests, (pods, activators, starts), lateness, (first, further), first_path)| Plan {
            requests,
            pods,
            activators,
            starts,
            lateness,
            switches: std::iter::once(first).chain(further).collect(),
            first_path,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn present_counts_never_say_more_than_there_was_while_the_path_changes(plan in plan()) {
        for spec in settings_of_both_classes() {
            let problems = Crowd::new(&spec, plan.clone()).run();
            prop_assert!(problems.is_empty(), "{}: {problems:?}", name_of(&spec));
        }
    }

    #[test]
    fn no_more_than_one_pod_too_many_is_wanted_while_the_path_changes(plan in plan()) {
        for spec in settings_of_both_classes() {
            let mut crowd = Crowd::new(&spec, plan.clone());
            crowd.run();
            let most = crowd.bound().max(plan.pods);
            prop_assert!(crowd.most_wanted <= most, "{}: {} of {most}", name_of(&spec), crowd.most_wanted);
        }
    }
}

/// As a burst does that puts activators into the path of a revision that was served directly.
#[test]
fn twenty_clients_at_target_five_want_at_most_five_pods_while_the_path_changes() {
    for spec in settings_of_both_classes() {
        for first_path in [Routing::Direct, Routing::ThroughActivator] {
            for (lasts, switch) in [(100, 50), (300, 100), (1_000, 100), (1_000, 700)] {
                let mut crowd = Crowd::new(
                    &spec,
                    Plan {
                        requests: vec![lasts; 20],
                        pods: 1,
                        activators: 2,
                        starts: vec![(400, 700), (900, 300), (100, 1_000)],
                        lateness: vec![1, 3],
                        switches: vec![switch],
                        first_path,
                    },
                );
                crowd.run();
                let wanted = crowd.most_wanted;
                let name = name_of(&spec);
                assert!((4..=5).contains(&wanted), "{name} {first_path:?} {lasts} {switch}: {wanted}");
            }
        }
    }
}
