//! Many revisions in the real multiscaler, each in a state that lasts.

use std::sync::Arc;
use std::time::Duration;

use scaling::{Command, Event, Multiscaler, PodFact, PodPhase, RevisionOrigin};
use settings::ScalingSpec;
use vocabulary::{BootId, PodCount, PodId, ReplicaId, Reporter, RevisionId, Timestamp};

use super::work::sample;

/// The load of a revision, which lasts over all ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// One pod under a load for one pod, reported by the pod.
    Serving,
    /// No pod and no load, by the word of an activator.
    AtZero,
}

/// Enough for a schedule worth the name, and a divisor of all counts of repetitions.
const REVISIONS: u32 = 50;
/// Ticks of two revisions lie this far apart.
const APART: Duration = Duration::from_millis(2000 / 50);
const START: Timestamp = Timestamp::from_secs(1000);
/// How long everything lasts before the first repetition: routes, windows and the grace period have come to
/// rest.
const SECONDS: u64 = 150;
const ACTIVATOR: Reporter = Reporter::Activator(ReplicaId(0));

pub(crate) struct Ticks {
    multiscaler: Multiscaler,
    state: State,
    /// The first second that was not reported yet.
    second: u64,
    /// How many ticks were measured, and how many have come: those that sleep are looked at together.
    measured: u128,
    come: u128,
}

impl Ticks {
    pub(crate) fn of(state: State) -> Self {
        let mut multiscaler = Multiscaler::default();
        let spec = Arc::new(ScalingSpec::default());
        multiscaler.handle(Event::ActivatorsChanged { activators: vec![ReplicaId(0)] }, START);
        multiscaler.handle(started(ACTIVATOR), START);
        for number in 0..REVISIONS {
            let (revision, now) = (RevisionId(number), START + APART * number);
            let wanted = if state == State::Serving { PodCount::ONE } else { PodCount::ZERO };
            let (spec, origin) = (Arc::clone(&spec), RevisionOrigin::Found);
            multiscaler.handle(Event::RevisionChanged { revision, spec, wanted, origin }, now);
            if state == State::Serving {
                let pod = PodId(number);
                let phase = PodPhase::Running;
                let fact = PodFact { pod, phase, is_ready: true, is_reachable: true, is_outdated: false };
                multiscaler.handle(Event::PodsChanged { revision, pods: vec![fact] }, now);
                multiscaler.handle(started(Reporter::Pod(pod)), now);
            }
        }
        let mut ticks = Self { multiscaler, state, second: START.whole_secs(), measured: 0, come: 0 };
        while ticks.second < START.whole_secs() + SECONDS {
            ticks.next();
            while let Some(command) = ticks.multiscaler.next_command() {
                if let Command::SetRouting { revision, .. } = command {
                    let event = Event::PathAcknowledged { revision, acknowledged: true };
                    ticks.multiscaler.handle(event, Timestamp::from_secs(ticks.second));
                }
            }
        }
        ticks.measured = ticks.come;
        ticks
    }

    pub(crate) fn once(&mut self) {
        self.measured += 1;
        while self.come < self.measured {
            self.next();
        }
        if let Some(command) = self.multiscaler.next_command() {
            panic!("nothing was to change: {command:?}");
        }
    }

    /// The next tick, or several that are due together, after the reports of all seconds over by then.
    fn next(&mut self) {
        let now = self.multiscaler.next_deadline().expect("each revision has its next tick");
        while self.second < now.whole_secs() {
            self.report();
            self.second += 1;
        }
        self.multiscaler.advance(now);
        // There is one in each of these times, be it looked at then or a little later.
        self.come = now.saturating_since(START).as_nanos() / APART.as_nanos();
    }

    fn report(&mut self) {
        let (second, now) = (self.second, Timestamp::from_secs(self.second + 1));
        self.multiscaler.handle(Event::ReporterHeard { reporter: ACTIVATOR, second }, now);
        if self.state == State::AtZero {
            return;
        }
        for number in 0..REVISIONS {
            let (reporter, revision) = (Reporter::Pod(PodId(number)), RevisionId(number));
            self.multiscaler.handle(Event::LoadReported { reporter, revision, sample: sample(second) }, now);
        }
    }
}

fn started(reporter: Reporter) -> Event {
    Event::ReporterStarted {
        reporter,
        boot: BootId(1),
        current_second: START.whole_secs(),
        history: Vec::new(),
    }
}
