//! Clients that wait for each answer before they ask again, the pods and activators that count their
//! requests, and the links on which these say so.
//!
//! The path of the requests changes when the plan says so, whatever is decided. A second scaler may be
//! started while the first goes on: both hear the same words from the moment at which a reporter has said
//! hello to both.

use std::sync::Arc;

use proptest::prelude::*;
use settings::hpa::MetricSpec;
use vocabulary::{MilliValue, PresentCount};

use super::hpa::settings;
use super::*;
use crate::Collector;

/// Milliseconds since the world began.
pub(super) type Millis = u64;

/// The least time in which something happens.
pub(super) const STEP: Millis = 5;
pub(super) const TARGET: f64 = 5.0;
/// Long enough for reporters that have nothing to say to have said so in a whole panic window.
pub(super) const BURST_AT: Millis = 10_000;
pub(super) const ENDS_AT: Millis = BURST_AT + 12_000;
const LATENESS_MAX: Millis = 200;
/// What happened so long ago must not be counted any more.
const COUNT_AGE_MAX: Millis = 100;
/// The least time between two early reports of a pod, and of an activator.
const POD_PACE: Millis = 100;
const ACTIVATOR_PACE: Millis = 20;
/// An activator that has held less for so long than it said says so.
const FALL_LASTS: Millis = 100;
/// So many seconds reporters remember.
const HISTORY_MAX: usize = 60;

pub(super) fn at(now: Millis) -> Timestamp {
    Timestamp::from_secs(1000) + Duration::from_millis(now)
}

/// Clients, and the ways that they are led.
#[derive(Clone, Debug)]
pub(super) struct ClosedLoopPlan {
    /// How long each client's requests take. Each client has its pod and its activator, as one that keeps its
    /// connections has.
    pub(super) requests: Vec<Millis>,
    pub(super) pods: u32,
    pub(super) activators: u32,
    /// One per reporter, in turn.
    pub(super) starts: Vec<LinkStart>,
    /// How late reporters' words come, one after the other.
    pub(super) lateness: Vec<Millis>,
    /// How long after the burst, and after each other, the path changes.
    pub(super) switches: Vec<Millis>,
    pub(super) first_path: Routing,
    pub(super) moves: Vec<ClientMove>,
}

/// Clients that break off their requests and go.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientMove {
    /// How long after the burst.
    pub(super) after: Millis,
    /// Each client whose number is a multiple of this one goes.
    pub(super) each: usize,
    pub(super) to: MoveTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveTarget {
    /// The clients connect to the activator after theirs and ask there again.
    NextActivator,
    /// The clients ask no more.
    Nowhere,
}

/// How a reporter's link begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkStart {
    /// When it says hello; a multiple of [`STEP`], at least that.
    pub(super) at: Millis,
    /// For how long its second goes on then.
    pub(super) second_rest: Millis,
    /// How late its hello comes.
    pub(super) lateness: Millis,
}

/// When reporters say hello to the scaler that was started anew.
#[derive(Clone, Copy, Debug)]
pub(super) enum Redial {
    /// All reporters say hello at once.
    AtOnce,
    /// Within a second, a whole number of seconds after their first hello: their seconds then lie where they
    /// lay before.
    InPhase,
}

/// A pod or an activator.
struct CountingReporter {
    reporter: Reporter,
    start: LinkStart,
    second_ends: Millis,
    second: u64,
    held: u32,
    /// Request-milliseconds of the running second.
    area: u64,
    told: u32,
    told_at: Millis,
    /// When an activator says that it holds less, unless it holds as much as it said until then, and in any
    /// case.
    fall_due: Option<Millis>,
    sure_fall_due: Option<Millis>,
    /// When its last word arrives: a link keeps the order.
    last_arrival: Millis,
    history: Vec<Sample>,
    redials_at: Option<Millis>,
    receivers: ReceivingScalers,
    /// When the scaler that was started anew has heard of two seconds as they ended.
    two_told_at: Option<Millis>,
}

/// Which scalers hear a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceivingScalers {
    First,
    Successor,
    Both,
}

struct WaitingClient {
    lasts: Millis,
    /// The place of the reporter that has its request, and until when.
    at: usize,
    until: Millis,
    /// How often the client has gone to the next activator.
    moves: usize,
    has_left: bool,
}

/// A request of the client at that place.
struct SentRequest {
    client: usize,
    ended_at: Option<Millis>,
}

/// One revision and all programs around it.
pub(super) struct ClosedLoop {
    plan: ClosedLoopPlan,
    spec: Arc<ScalingSpec>,
    pub(super) now: Millis,
    pub(super) multiscaler: Multiscaler,
    pub(super) successor: Option<Multiscaler>,
    /// Hears the same as the first scaler, so as to say what its evaluations count.
    pub(super) collector: Collector,
    threshold: Option<u32>,
    reporters: Vec<CountingReporter>,
    clients: Vec<WaitingClient>,
    /// The requests in flight, and those that ended so lately that a count may still have them.
    requests: Vec<SentRequest>,
    under_way: BTreeMap<(Millis, usize), (ReceivingScalers, Event)>,
    words: usize,
    path: Routing,
    next_switches: Vec<Millis>,
    wanted: u32,
    /// The largest count that more pods were ordered up to.
    pub(super) most_wanted: u32,
}

impl ClosedLoop {
    pub(super) fn new(spec: &ScalingSpec, plan: ClosedLoopPlan) -> Self {
        let pods = (0..plan.pods).map(|pod| Reporter::Pod(PodId(pod)));
        let activators = (0..plan.activators).map(|replica| Reporter::Activator(ReplicaId(replica)));
        let starts = plan.starts.iter().copied().cycle();
        let reporters =
            pods.chain(activators).zip(starts).map(|(one, start)| CountingReporter::new(one, start));
        let switches = plan.switches.iter().scan(BURST_AT, |at, gap| {
            *at += gap;
            Some(*at)
        });
        let mut world = Self {
            spec: Arc::new(spec.clone()),
            now: 0,
            multiscaler: Multiscaler::default(),
            successor: None,
            collector: Collector::new(&ScalingSpec { hpa: None, ..spec.clone() }),
            threshold: None,
            reporters: reporters.collect(),
            clients: Vec::new(),
            requests: Vec::new(),
            under_way: BTreeMap::new(),
            words: 0,
            path: plan.first_path,
            next_switches: switches.collect::<Vec<_>>().into_iter().rev().collect(),
            wanted: plan.pods,
            most_wanted: 0,
            plan,
        };
        for event in world.beginning(world.plan.pods) {
            world.deliver(ReceivingScalers::First, event);
        }
        world
    }

    /// What a scaler finds when it starts.
    fn beginning(&self, wanted: u32) -> [Event; 3] {
        let (wanted, spec) = (PodCount::new(wanted), Arc::clone(&self.spec));
        let pods = (0..self.plan.pods).map(|pod| running(PodId(pod), true)).collect();
        [
            Event::ActivatorsChanged { activators: (0..self.plan.activators).map(ReplicaId).collect() },
            Event::RevisionChanged { revision: REVISION, spec, wanted, origin: RevisionOrigin::Found },
            Event::PodsChanged { revision: REVISION, pods },
        ]
    }

    /// A scaler starts that knows nothing; all reporters will say to it what they remember.
    pub(super) fn start_successor(&mut self, redial: Redial) {
        self.successor = Some(Multiscaler::default());
        let wanted = self.multiscaler.status(REVISION, at(self.now)).expect("it is known").wanted;
        for event in self.beginning(wanted.value()) {
            self.deliver(ReceivingScalers::Successor, event);
        }
        for counting in &mut self.reporters {
            counting.redials_at = Some(match redial {
                Redial::AtOnce => self.now,
                Redial::InPhase => {
                    let since_hello = self.now.saturating_sub(counting.start.at);
                    counting.start.at + (since_hello + STEP).next_multiple_of(1_000)
                }
            });
        }
    }

    /// Whether the scaler that was started anew has heard of two whole seconds from each reporter: a present
    /// count that came before the first may have been taken for that of the second.
    pub(super) fn is_successor_informed(&self) -> bool {
        self.reporters.iter().all(|counting| counting.two_told_at.is_some_and(|at| at <= self.now))
    }

    /// Lets everything happen until the end, and shows the world after each step.
    pub(super) fn run(&mut self, mut look: impl FnMut(&mut Self)) {
        while self.now < ENDS_AT {
            self.now += STEP;
            if self.next_switches.last().is_some_and(|at| *at <= self.now) {
                self.next_switches.pop();
                self.path = match self.path {
                    Routing::Direct => Routing::ThroughActivator,
                    Routing::ThroughActivator => Routing::Direct,
                };
            }
            self.move_clients();
            self.serve();
            for index in 0..self.reporters.len() {
                self.report(index);
            }
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (receivers, event) = entry.remove();
                self.deliver(receivers, event);
            }
            let now = at(self.now);
            std::iter::once(&mut self.multiscaler)
                .chain(&mut self.successor)
                .for_each(|one| one.advance(now));
            self.obey();
            look(self);
        }
    }

    /// A word of a reporter arrives.
    fn deliver(&mut self, receivers: ReceivingScalers, event: Event) {
        let now = at(self.now);
        if receivers != ReceivingScalers::First
            && let Some(successor) = &mut self.successor
        {
            successor.handle(event.clone(), now);
        }
        if receivers != ReceivingScalers::Successor {
            self.count(&event);
            self.multiscaler.handle(event, now);
        }
        self.obey();
    }

    fn count(&mut self, event: &Event) {
        let (collector, now) = (&mut self.collector, at(self.now));
        match event {
            Event::ReporterStarted { reporter, boot, current_second, .. } => {
                collector.start_reporter(*reporter, *boot, *current_second, now);
            }
            Event::LoadReported { reporter, sample, .. } => collector.record(*reporter, *sample, now),
            Event::ReporterHeard { reporter: Reporter::Pod(pod), second } => {
                collector.idle(*pod, *second, now);
            }
            Event::ReporterHeard { reporter, second } => collector.heard(*reporter, *second, now),
            Event::PresentReported { reporter, count, .. } => collector.present(*reporter, *count, now),
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
            | Event::RoutingObserved { .. }
            | Event::WallClockRead { .. }
            | Event::ZoneRead { .. }
            | Event::HistoryRestored { .. }
            | Event::DemandImported { .. } => {}
        }
    }

    /// How many requests there are, and were within the last 100 ms and so much longer.
    pub(super) fn requests_within(&self, longer: Millis) -> f64 {
        let oldest = self.now.saturating_sub(COUNT_AGE_MAX + longer);
        let existed = self.requests.iter().filter(|request| request.ended_at.is_none_or(|at| at >= oldest));
        f64::from(u32::try_from(existed.count()).expect("few"))
    }

    fn obey(&mut self) {
        while let Some(command) = self.multiscaler.next_command() {
            match command {
                Command::ScaleTo { count, .. } => {
                    if count.value() > self.wanted {
                        self.most_wanted = self.most_wanted.max(count.value());
                    }
                    self.wanted = count.value();
                }
                Command::SetSurgeThreshold { threshold, .. } => self.threshold = threshold,
                Command::SetRouting { .. }
                | Command::SetActivatorCount { .. }
                | Command::AskMetrics { .. }
                | Command::Warn { .. }
                | Command::ReportConnectionHold { .. }
                | Command::Publish { .. } => {}
            }
        }
        // Only what it measures is looked at.
        while self.successor.as_mut().and_then(Multiscaler::next_command).is_some() {}
    }

    /// Requests end, and their clients send the next ones.
    fn serve(&mut self) {
        for counting in &mut self.reporters {
            counting.area += u64::from(counting.held) * STEP;
        }
        if self.now >= BURST_AT && self.clients.is_empty() {
            for lasts in self.plan.requests.clone() {
                self.clients.push(WaitingClient { lasts, at: 0, until: 0, moves: 0, has_left: false });
                self.send(self.clients.len() - 1);
            }
        }
        for index in 0..self.clients.len() {
            if !self.clients[index].has_left && self.clients[index].until <= self.now {
                self.end_request(index);
                self.send(index);
            }
        }
        let oldest = self.now.saturating_sub(COUNT_AGE_MAX + LATENESS_MAX);
        self.requests.retain(|request| request.ended_at.is_none_or(|at| at >= oldest));
    }

    /// Clients go to the next activator, at once where that has their requests, or leave altogether.
    fn move_clients(&mut self) {
        let now = self.now;
        let is_due = |one: &ClientMove| BURST_AT + one.after.next_multiple_of(STEP) == now;
        let due: Vec<_> = self.plan.moves.iter().copied().filter(is_due).collect();
        for ClientMove { each, to, .. } in due {
            for index in (0..self.clients.len()).step_by(each) {
                self.move_client(index, to);
            }
        }
    }

    fn move_client(&mut self, index: usize, to: MoveTarget) {
        let client = &mut self.clients[index];
        let is_at_activator = matches!(self.reporters[client.at].reporter, Reporter::Activator(_));
        match to {
            MoveTarget::NextActivator | MoveTarget::Nowhere if client.has_left => {}
            MoveTarget::NextActivator => {
                client.moves += 1;
                if is_at_activator {
                    self.end_request(index);
                    self.send(index);
                }
            }
            MoveTarget::Nowhere => {
                client.has_left = true;
                self.end_request(index);
            }
        }
    }

    fn end_request(&mut self, index: usize) {
        self.reporters[self.clients[index].at].held -= 1;
        let mut of_client = self.requests.iter_mut().rev().filter(|request| request.client == index);
        of_client.next().expect("the client has sent one").ended_at = Some(self.now);
    }

    fn send(&mut self, index: usize) {
        let pods = usize::try_from(self.plan.pods).expect("few");
        let client = &mut self.clients[index];
        client.at = match self.path {
            Routing::Direct => index % pods,
            Routing::ThroughActivator => pods + (index + client.moves) % (self.reporters.len() - pods),
        };
        client.until = self.now + client.lasts;
        self.reporters[client.at].held += 1;
        self.requests.push(SentRequest { client: index, ended_at: None });
    }

    /// A reporter says what queue-proxies and activators say.
    fn report(&mut self, index: usize) {
        let counting = &self.reporters[index];
        if self.now < counting.start.at {
            return;
        }
        if self.now < counting.start.at + STEP {
            self.say_hello(index, ReceivingScalers::First);
        }
        self.report_present(index);
        if self.now >= self.reporters[index].second_ends {
            self.end_second(index);
        }
        // After the end of a second, so that a hello a whole number of seconds later names the second that
        // runs as the first one did.
        if self.reporters[index].redials_at.is_some_and(|at| at <= self.now) {
            self.say_hello(index, ReceivingScalers::Successor);
        }
    }

    fn say_hello(&mut self, index: usize, to: ReceivingScalers) {
        let counting = &mut self.reporters[index];
        let reporter = counting.reporter;
        let history = counting.history.iter().map(|sample| (REVISION, *sample)).collect();
        // A new link: nothing that was said on another holds it up.
        let arrival = self.now + counting.start.lateness;
        counting.last_arrival = counting.last_arrival.max(arrival);
        let hello =
            Event::ReporterStarted { reporter, boot: BootId(1), current_second: counting.second, history };
        match to {
            ReceivingScalers::First | ReceivingScalers::Both => {}
            ReceivingScalers::Successor => {
                counting.redials_at = None;
                counting.receivers = ReceivingScalers::Both;
                counting.two_told_at = Some(counting.second_ends + 1_000 + STEP + LATENESS_MAX);
            }
        }
        self.under_way.insert((arrival, self.words), (to, hello));
        self.words += 1;
    }

    fn say(&mut self, index: usize, event: Event) {
        let lateness = self.plan.lateness[self.words % self.plan.lateness.len()];
        let counting = &mut self.reporters[index];
        counting.last_arrival = counting.last_arrival.max(self.now + lateness);
        self.under_way.insert((counting.last_arrival, self.words), (counting.receivers, event));
        self.words += 1;
    }

    fn report_present(&mut self, index: usize) {
        let counting = &mut self.reporters[index];
        let (reporter, held) = (counting.reporter, counting.held);
        let is_surge = self.threshold.is_some_and(|threshold| held >= threshold.max(1));
        // A pod that has told of a surge tells on until it has told of its end.
        let (is_due, next_told, pace) = match reporter {
            Reporter::Pod(_) => (is_surge || counting.told > 0, if is_surge { held } else { 0 }, POD_PACE),
            Reporter::Activator(_) => {
                let due = counting.fall_due.unwrap_or(self.now + FALL_LASTS);
                counting.fall_due = (held < counting.told).then_some(due);
                let falls_due = counting.fall_due.into_iter().chain(counting.sure_fall_due);
                let is_due = held > counting.told || falls_due.min().is_some_and(|due| due <= self.now);
                (is_due, held, ACTIVATOR_PACE)
            }
        };
        if is_due && self.now >= counting.told_at + pace {
            (counting.told, counting.told_at) = (next_told, self.now);
            (counting.fall_due, counting.sure_fall_due) = (None, None);
            let count = PresentCount { in_flight: held, waiting: 0 };
            self.say(index, Event::PresentReported { reporter, revision: REVISION, count });
        }
    }

    /// A second without anything is a heartbeat, and a pod remembers it.
    fn end_second(&mut self, index: usize) {
        let counting = &mut self.reporters[index];
        let (reporter, second) = (counting.reporter, counting.second);
        let area = u32::try_from(std::mem::take(&mut counting.area)).expect("a second's requests");
        counting.second += 1;
        counting.second_ends += 1_000;
        let is_mentioned = area > 0;
        let sample = sample(second, f64::from(area) / 1_000.0, 0);
        let is_activator = matches!(reporter, Reporter::Activator(_));
        if is_activator {
            counting.told = counting.held;
            counting.sure_fall_due = counting.sure_fall_due.into_iter().chain(counting.fall_due.take()).min();
        }
        if is_mentioned || !is_activator {
            counting.history.push(sample);
            let too_old = counting.history.len().saturating_sub(HISTORY_MAX);
            counting.history.drain(..too_old);
        }
        if is_mentioned {
            self.say(index, Event::LoadReported { reporter, revision: REVISION, sample });
        }
        if is_activator || !is_mentioned {
            self.say(index, Event::ReporterHeard { reporter, second });
        }
    }
}

impl CountingReporter {
    fn new(reporter: Reporter, start: LinkStart) -> Self {
        Self {
            reporter,
            start,
            second_ends: start.at + start.second_rest.max(STEP),
            second: 0,
            held: 0,
            area: 0,
            told: 0,
            told_at: 0,
            fall_due: None,
            sure_fall_due: None,
            last_arrival: 0,
            history: Vec::new(),
            redials_at: None,
            receivers: ReceivingScalers::First,
            two_told_at: None,
        }
    }
}

/// Both classes with that target, with long windows and with the shortest ones.
pub(super) fn settings_of_both_classes() -> Vec<ScalingSpec> {
    let own = MetricSpec::Own { metric: settings::Metric::Concurrency, target: MilliValue::new(5_000) };
    let of = |spec: ScalingSpec| ScalingSpec { target_per_pod: TARGET, total_per_pod: TARGET, ..spec };
    let (kpa, hpa) = (of(spec()), of(settings(1, 100, vec![own])));
    let with_short_windows = |spec: &ScalingSpec| ScalingSpec {
        stable_window: Duration::from_secs(6),
        panic_window: Duration::from_secs(1),
        ..spec.clone()
    };
    vec![with_short_windows(&kpa), with_short_windows(&hpa), kpa, hpa]
}

pub(super) fn name_of(spec: &ScalingSpec) -> String {
    format!("class {}, window {:?}", if spec.hpa.is_some() { "hpa" } else { "kpa" }, spec.stable_window)
}

/// Up to 80 clients, 4 pods and 3 activators whose words are late by up to 200 ms.
pub(super) fn plan() -> impl Strategy<Value = ClosedLoopPlan> {
    let clients = prop::collection::vec(20_u64..1_500, 1..=80);
    let start = (1..=2_000 / STEP, 1_u64..=1_000, 0..=LATENESS_MAX)
        .prop_map(|(steps, second_rest, lateness)| LinkStart { at: steps * STEP, second_rest, lateness });
    let reporters = (1_u32..=4, 1_u32..=3, prop::collection::vec(start, 7));
    let lateness = prop::collection::vec(0..=LATENESS_MAX, 1..20);
    // Two changes lie further apart than the seconds of two reporters do.
    let switches = (10_u64..1_500, prop::collection::vec(3_000_u64..5_000, 0..4));
    let first_path = prop_oneof![Just(Routing::Direct), Just(Routing::ThroughActivator)];
    (clients, reporters, lateness, switches, first_path).prop_map(
        |(requests, (pods, activators, starts), lateness, (first, further), first_path)| ClosedLoopPlan {
            requests,
            pods,
            activators,
            starts,
            lateness,
            switches: std::iter::once(first).chain(further).collect(),
            first_path,
            moves: Vec::new(),
        },
    )
}

/// As [`plan`], and clients go from one activator to another, or leave, and the path changes, at any moment.
pub(super) fn restless_plan() -> impl Strategy<Value = ClosedLoopPlan> {
    let to = prop_oneof![4 => Just(MoveTarget::NextActivator), 1 => Just(MoveTarget::Nowhere)];
    let moves = prop::collection::vec(
        (0_u64..8_000, 1_usize..4, to).prop_map(|(after, each, to)| ClientMove { after, each, to }),
        0..6,
    );
    let switches = prop::collection::vec(100_u64..4_000, 0..8);
    (plan(), moves, switches).prop_map(|(plan, moves, switches)| ClosedLoopPlan { switches, moves, ..plan })
}
