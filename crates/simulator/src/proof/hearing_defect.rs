//! A control loop that takes in other words than were said.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{ControlCommand, ControlEvent, LinkId};
use vocabulary::{ActivatorWord, Concurrency, Load, PodState, PodWord, RequestRate, Sample, Timestamp};

use super::planted_defect::HearingDefect;

/// A pod that was not heard for so long is silent.
const SILENCE: Duration = Duration::from_secs(2);
/// A word of before is heard again so long after the one that follows it.
const LATE: Duration = Duration::from_secs(1);

/// The defect, and what it remembers.
#[derive(Debug)]
pub(crate) struct DefectiveHearing {
    defect: HearingDefect,
    seconds: u64,
    /// Of each pod, by its link: the last second, and when it was heard or made up.
    heard: BTreeMap<LinkId, HeardSecond>,
    /// The word of each pod, by its link, that it is ready.
    ready_words: BTreeMap<LinkId, ControlEvent>,
    /// Words that are heard again.
    late: Vec<LateWord>,
    invented: Vec<ControlEvent>,
}

#[derive(Debug)]
struct HeardSecond {
    second: u64,
    at: Timestamp,
}

#[derive(Debug)]
struct LateWord {
    at: Timestamp,
    event: ControlEvent,
}

impl DefectiveHearing {
    pub(crate) fn new(defect: HearingDefect) -> Self {
        Self {
            defect,
            seconds: 0,
            heard: BTreeMap::new(),
            ready_words: BTreeMap::new(),
            late: Vec::new(),
            invented: Vec::new(),
        }
    }

    /// What is taken in instead of an event.
    pub(crate) fn hear(&mut self, mut event: ControlEvent, now: Timestamp) -> ControlEvent {
        match self.defect {
            HearingDefect::LoadsCleared => {
                self.seconds += 1;
                if !self.seconds.is_multiple_of(4) {
                    scale_loads(&mut event, 0.0);
                }
            }
            HearingDefect::LoadsDoubled => scale_loads(&mut event, 2.0),
            HearingDefect::SilenceIsZero => self.note_second(&event, now),
            HearingDefect::ReadyInvented => call_ready(&mut event),
            HearingDefect::WordRepeatedLate => self.repeat_later(&event, now),
            HearingDefect::AcknowledgementInvented => {}
        }
        event
    }

    fn repeat_later(&mut self, event: &ControlEvent, now: Timestamp) {
        let ControlEvent::PodSpoke { link, word: PodWord::State { state, .. } } = event else { return };
        if *state == PodState::Ready {
            self.ready_words.insert(*link, event.clone());
        } else if let Some(event) = self.ready_words.remove(link) {
            self.late.push(LateWord { at: now + LATE, event });
        }
    }

    fn note_second(&mut self, event: &ControlEvent, now: Timestamp) {
        if let ControlEvent::PodSpoke { link, word: PodWord::Load { sample, .. } } = event {
            self.heard.insert(*link, HeardSecond { second: sample.second, at: now });
        }
    }

    /// A command of the control loop comes out.
    pub(crate) fn note_command(&mut self, command: &ControlCommand) {
        if self.defect != HearingDefect::AcknowledgementInvented {
            return;
        }
        if let ControlCommand::Assign { activator, assignment, .. } = command {
            let (revision, version) = (assignment.revision.clone(), assignment.version);
            let word = ActivatorWord::Acknowledged { revision, version };
            self.invented.push(ControlEvent::ActivatorSpoke { link: *activator, word });
        }
    }

    /// Whether something is taken in that was not said.
    pub(crate) fn has_invented(&self) -> bool {
        !self.invented.is_empty()
    }

    /// What is taken in without having been said.
    pub(crate) fn take_invented(&mut self, now: Timestamp) -> Vec<ControlEvent> {
        let mut taken = std::mem::take(&mut self.invented);
        let is_due = |late: &mut LateWord| late.at <= now;
        taken.extend(self.late.extract_if(.., is_due).map(|late| late.event));
        if self.defect == HearingDefect::SilenceIsZero {
            for (link, heard) in &mut self.heard {
                if heard.at + SILENCE <= now {
                    (heard.second, heard.at) = (heard.second + 1, heard.at + Duration::from_secs(1));
                    let sample = Sample { second: heard.second, load: Load::default() };
                    let word = PodWord::Load { sample, usage: None, late_bytes: None };
                    taken.push(ControlEvent::PodSpoke { link: *link, word });
                }
            }
        }
        taken
    }
}

fn scale_loads(event: &mut ControlEvent, factor: f64) {
    if let ControlEvent::PodSpoke { word: PodWord::Load { sample, .. }, .. } = event {
        sample.load = times(sample.load, factor);
    }
    if let ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { loads, .. }, .. } = event {
        for of in loads {
            of.load = times(of.load, factor);
        }
    }
}

fn times(load: Load, factor: f64) -> Load {
    Load {
        concurrency: Concurrency::clamped(load.concurrency.value() * factor),
        proxied_concurrency: Concurrency::clamped(load.proxied_concurrency.value() * factor),
        request_rate: RequestRate::clamped(load.request_rate.value() * factor),
        proxied_request_rate: RequestRate::clamped(load.proxied_request_rate.value() * factor),
        ..load
    }
}

fn call_ready(event: &mut ControlEvent) {
    if let ControlEvent::PodSpoke { word: PodWord::Hello(hello), .. } = event
        && hello.state == PodState::Starting
    {
        hello.state = PodState::Ready;
    }
}
