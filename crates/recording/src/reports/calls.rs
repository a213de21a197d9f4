//! The calls of an orchestrator that come each second, and those of them that a frame of reports takes.

use std::borrow::Cow;
use std::time::Duration;

use orchestration::{ControlEvent, LinkId};
use vocabulary::{ActivatorWord, PodWord, ResourceUsage, RevisionLoad, Sample};

use super::loads::is_usual;
use crate::entry::RecordInput;
use crate::frames::FrameContent;
use crate::wire::proto::OutcomeMessage;

/// No reporter has run for longer, in seconds; links take no greater number.
pub(super) const SECOND_MAX: u64 = 1 << 40;

/// A call that a frame of reports takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SteadyCall<'a> {
    /// A pod told of a second.
    PodLoad { link: u64, sample: Sample, usage: Option<ResourceUsage> },
    /// An activator told of a second, without its callers.
    ActivatorLoads { link: u64, second: u64, loads: Cow<'a, [RevisionLoad]> },
    /// The orchestrator did what was due.
    Advance,
}

impl<'a> SteadyCall<'a> {
    /// The call, if it is one and nothing about it is unusual: anything else has a frame of its own.
    pub(crate) fn of(input: &'a RecordInput) -> Option<Self> {
        let event = match input {
            RecordInput::Event(event) => event,
            RecordInput::Advance => return Some(Self::Advance),
            RecordInput::State(_) => return None,
        };
        if let ControlEvent::PodSpoke { link, word: PodWord::Load { sample, usage, late_bytes: None } } =
            &**event
        {
            let is_usual = is_usual(&sample.load)
                && sample.second <= SECOND_MAX
                && usage.is_none_or(|usage| has_nanoseconds(usage.window));
            return is_usual.then_some(Self::PodLoad { link: link.0, sample: *sample, usage: *usage });
        }
        let ControlEvent::ActivatorSpoke { link, word: ActivatorWord::Loads { second, loads } } = &**event
        else {
            return None;
        };
        let is_usual = |load: &RevisionLoad| {
            let is_wait_usual = load.load.queued > 0 || load.oldest_wait.is_zero();
            is_usual(&load.load)
                && load.callers.is_empty()
                && is_wait_usual
                && has_nanoseconds(load.oldest_wait)
        };
        let loads = loads.as_slice();
        (*second <= SECOND_MAX && loads.iter().all(is_usual)).then_some(Self::ActivatorLoads {
            link: link.0,
            second: *second,
            loads: Cow::Borrowed(loads),
        })
    }

    /// Whether an outcome is no more than decisions: links and orders are named in frames of their own.
    pub(crate) fn takes(outcome: &OutcomeMessage) -> bool {
        outcome.opened.is_empty() && outcome.orders.is_empty()
    }

    /// The call as a reader of a record gives it.
    pub(super) fn into_content(self) -> FrameContent {
        let event = match self {
            Self::PodLoad { link, sample, usage } => ControlEvent::PodSpoke {
                link: LinkId(link),
                word: PodWord::Load { sample, usage, late_bytes: None },
            },
            Self::ActivatorLoads { link, second, loads } => ControlEvent::ActivatorSpoke {
                link: LinkId(link),
                word: ActivatorWord::Loads { second, loads: loads.into_owned() },
            },
            Self::Advance => return FrameContent::Advance,
        };
        FrameContent::Event(Box::new(event))
    }
}

/// A duration of 584 years or more has none in 64 bits.
fn has_nanoseconds(duration: Duration) -> bool {
    u64::try_from(duration.as_nanos()).is_ok()
}
