//! A small world around one revision: an activator, pods, a clock.

use std::sync::Arc;
use std::time::Duration;

use settings::ScalingSpec;
use vocabulary::{Concurrency, Load, PodState, PresentCount, RequestRate};

use super::super::*;

pub(super) const REVISION: RevisionId = RevisionId(0);
pub(super) const ACTIVATOR: Reporter = Reporter::Activator(ReplicaId(0));

/// One revision, one activator, and what was ordered so far.
pub(super) struct World {
    pub(super) multiscaler: Multiscaler,
    pub(super) spec: Arc<ScalingSpec>,
    pub(super) now: Timestamp,
    /// Every order, with the time at which it was given.
    pub(super) log: Vec<(Timestamp, Command)>,
    /// What the activator holds; the reports are made from it.
    pub(super) in_activator: u32,
    pub(super) waiting: u32,
    /// What each pod holds that did not come through the activator.
    pub(super) in_pods: BTreeMap<PodId, u32>,
    /// What each pod holds beside that: streams, of which none arrives any more.
    pub(super) streams: BTreeMap<PodId, u32>,
    /// The same of the activator.
    pub(super) streams_in_activator: u32,
    /// How many activators refuse requests under a hold, in each second.
    pub(super) refusing_activators: u32,
    /// Pods whose link is up.
    pub(super) linked: BTreeSet<PodId>,
    /// The pods that are ready, and so take requests.
    ready: BTreeSet<PodId>,
    activator_linked: bool,
    /// The last that was said of the path.
    pub(super) is_acknowledged: bool,
}

impl World {
    pub(super) fn new(spec: ScalingSpec) -> Self {
        Self {
            multiscaler: Multiscaler::default(),
            spec: Arc::new(spec),
            now: Timestamp::from_secs(1000),
            log: Vec::new(),
            in_activator: 0,
            waiting: 0,
            in_pods: BTreeMap::new(),
            streams: BTreeMap::new(),
            streams_in_activator: 0,
            refusing_activators: 0,
            linked: BTreeSet::new(),
            ready: BTreeSet::new(),
            activator_linked: false,
            is_acknowledged: false,
        }
    }

    /// Hands over an event, and returns (and logs) the orders that follow from it at once.
    pub(super) fn handle(&mut self, event: Event) -> Vec<Command> {
        self.multiscaler.handle(event, self.now);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Command> {
        let commands: Vec<Command> = std::iter::from_fn(|| self.multiscaler.next_command()).collect();
        self.log.extend(commands.iter().map(|command| (self.now, command.clone())));
        commands
    }

    pub(super) fn forget(&mut self) {
        self.log.clear();
    }

    pub(super) fn create(&mut self, wanted: u32) -> Vec<Command> {
        let (spec, wanted) = (Arc::clone(&self.spec), PodCount::new(wanted));
        self.handle(Event::RevisionChanged {
            revision: REVISION,
            spec,
            wanted,
            origin: RevisionOrigin::Found,
        })
    }

    /// As [`World::create`], but it has just been made.
    pub(super) fn make(&mut self, wanted: u32) -> Vec<Command> {
        let (spec, wanted) = (Arc::clone(&self.spec), PodCount::new(wanted));
        self.handle(Event::RevisionChanged { revision: REVISION, spec, wanted, origin: RevisionOrigin::New })
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut ScalingSpec)) -> Vec<Command> {
        let mut spec = ScalingSpec::clone(&self.spec);
        change(&mut spec);
        self.spec = Arc::new(spec);
        let wanted = self.status().wanted;
        self.create(wanted.value())
    }

    pub(super) fn activator_starts(&mut self) -> Vec<Command> {
        let Reporter::Activator(activator) = ACTIVATOR else { unreachable!("it is one") };
        self.handle(Event::ActivatorsChanged { activators: vec![activator] });
        self.activator_linked = true;
        self.starts(ACTIVATOR, Vec::new())
    }

    pub(super) fn starts(&mut self, reporter: Reporter, history: Vec<(RevisionId, Sample)>) -> Vec<Command> {
        let current_second = self.now.whole_secs();
        self.handle(Event::ReporterStarted { reporter, boot: BootId(1), current_second, history })
    }

    /// Sets the pods: all of them running, with the platform having no word on their readiness.
    pub(super) fn pods(&mut self, count: u32) -> Vec<Command> {
        let pods = (0..count).map(PodId);
        self.linked.retain(|pod| pod.0 < count);
        self.ready.retain(|pod| pod.0 < count);
        self.in_pods.retain(|pod, _| pod.0 < count);
        self.streams.retain(|pod, _| pod.0 < count);
        let facts = pods.map(|pod| running(pod, self.ready.contains(&pod))).collect();
        self.handle(Event::PodsChanged { revision: REVISION, pods: facts })
    }

    /// Runs `count` pods, all of them ready and linked.
    pub(super) fn ready(&mut self, count: u32) {
        self.pods(count);
        for pod in (0..count).map(PodId) {
            self.pod_is(pod, PodState::Ready);
        }
    }

    pub(super) fn pod_is(&mut self, pod: PodId, state: PodState) -> Vec<Command> {
        if self.linked.insert(pod) {
            self.starts(Reporter::Pod(pod), Vec::new());
        }
        let is_ready = state == PodState::Ready;
        if is_ready {
            self.ready.insert(pod);
        } else {
            self.ready.remove(&pod);
        }
        self.handle(Event::PodChanged { pod: running(pod, is_ready) })
    }

    pub(super) fn acknowledged(&mut self, acknowledged: bool) -> Vec<Command> {
        self.is_acknowledged = acknowledged;
        self.handle(Event::PathAcknowledged { revision: REVISION, acknowledged })
    }

    /// The activator holds this much now, and says so at once.
    pub(super) fn present(&mut self, in_flight: u32, waiting: u32) -> Vec<Command> {
        (self.in_activator, self.waiting) = (in_flight, waiting);
        let count = PresentCount { in_flight, waiting };
        self.handle(Event::PresentReported { reporter: ACTIVATOR, revision: REVISION, count })
    }

    /// No reporter says anything from now on.
    pub(super) fn falls_silent(&mut self) {
        self.activator_linked = false;
        self.linked.clear();
    }

    /// Lets time pass to `until` (seconds after the world's start), with every reporter reporting at each
    /// whole second what it holds, and every deadline kept.
    pub(super) fn run_until(&mut self, seconds: f64) {
        let until = Timestamp::from_secs(1000) + Duration::from_secs_f64(seconds);
        while self.now < until {
            let report_at = Timestamp::from_secs(self.now.whole_secs() + 1);
            let deadline = self.multiscaler.next_deadline().unwrap_or(Timestamp::MAX);
            self.now = until.min(report_at).min(deadline.max(self.now));
            if self.now == report_at {
                self.report();
            }
            self.multiscaler.advance(self.now);
            self.drain();
        }
    }

    /// Every reporter says what it measured in the second that just ended.
    fn report(&mut self) {
        let second = self.now.whole_secs() - 1;
        if self.activator_linked {
            self.reported(ACTIVATOR, second, (self.in_activator, self.streams_in_activator), self.waiting);
            self.report_refusals(second);
            self.handle(Event::ReporterHeard { reporter: ACTIVATOR, second });
        }
        for pod in self.linked.clone() {
            let of = |held: &BTreeMap<PodId, u32>| held.get(&pod).copied().unwrap_or(0);
            self.reported(Reporter::Pod(pod), second, (of(&self.in_pods), of(&self.streams)), 0);
            self.handle(Event::ReporterHeard { reporter: Reporter::Pod(pod), second });
        }
    }

    /// One report for all activators: the multiscaler adds theirs up.
    fn report_refusals(&mut self, second: u64) {
        if self.refusing_activators > 0 {
            let of_one = Load::default().with_refused_requests().concurrency.value();
            let sample = sample(second, of_one * f64::from(self.refusing_activators), 0);
            self.handle(Event::LoadReported { reporter: ACTIVATOR, revision: REVISION, sample });
        }
    }

    /// Does what is due now.
    pub(super) fn run_due(&mut self) {
        self.multiscaler.advance(self.now);
        self.drain();
    }

    /// Every pod says that it held nothing of its own in the second that just ended.
    pub(super) fn pods_report_rest(&mut self) {
        let second = self.now.whole_secs() - 1;
        for pod in self.linked.clone() {
            self.handle(Event::ReporterHeard { reporter: Reporter::Pod(pod), second });
        }
    }

    /// `requests` arrive anew each second, streams do not.
    fn reported(&mut self, reporter: Reporter, second: u64, (requests, streams): (u32, u32), queued: u32) {
        if requests + streams > 0 {
            let mut sample = sample(second, f64::from(requests + streams), queued);
            sample.load.request_rate = RequestRate::clamped(f64::from(requests));
            self.handle(Event::LoadReported { reporter, revision: REVISION, sample });
        }
    }

    pub(super) fn status(&self) -> RevisionStatus {
        self.multiscaler.status(REVISION, self.now).expect("the revision was created")
    }

    /// The counts that were ordered, with the seconds since the start.
    pub(super) fn scale_orders(&self) -> Vec<(f64, u32)> {
        let orders = self.log.iter().filter_map(|(at, command)| match command {
            Command::ScaleTo { count, .. } => Some((since_start(*at), count.value())),
            Command::SetRouting { .. }
            | Command::SetActivatorCount { .. }
            | Command::SetSurgeThreshold { .. }
            | Command::AskMetrics { .. }
            | Command::Warn { .. }
            | Command::ReportConnectionHold { .. }
            | Command::Publish { .. } => None,
        });
        orders.collect()
    }

    /// The routes that were ordered, with the seconds since the start.
    pub(super) fn route_orders(&self) -> Vec<(f64, Routing)> {
        let orders = self.log.iter().filter_map(|(at, command)| match command {
            Command::SetRouting { routing, .. } => Some((since_start(*at), *routing)),
            Command::ScaleTo { .. }
            | Command::SetActivatorCount { .. }
            | Command::SetSurgeThreshold { .. }
            | Command::AskMetrics { .. }
            | Command::Warn { .. }
            | Command::ReportConnectionHold { .. }
            | Command::Publish { .. } => None,
        });
        orders.collect()
    }
}

/// The fact of a running pod that clients reach.
pub(super) fn running(pod: PodId, is_ready: bool) -> PodFact {
    PodFact { pod, phase: PodPhase::Running, is_ready, is_reachable: true, is_outdated: false }
}

fn since_start(at: Timestamp) -> f64 {
    let milliseconds = at.saturating_since(Timestamp::from_secs(1000)).as_millis();
    f64::from(u32::try_from(milliseconds).expect("tests last less than a month")) / 1000.0
}

pub(super) fn sample(second: u64, concurrency: f64, queued: u32) -> Sample {
    let load = Load {
        concurrency: Concurrency::clamped(concurrency),
        request_rate: RequestRate::clamped(concurrency),
        queued,
        ..Load::default()
    };
    Sample { second, load }
}
