//! Answers to questions of class hpa, to the record and back.

use std::time::Duration;

use scaling::hpa::{
    ConditionReason, HpaPod, HpaPodPhase, HpaPods, MetricAnswers, MetricFailure, MetricSamples, NoProposal,
    PodSample, PodSamples, ReadyCondition, ReadyStatus, Selection, TargetPods,
};
use vocabulary::{MilliValue, PodCount, PodId, RevisionName, Timestamp};

use super::answers_proto::{
    AnswersMessage, DecidedMessage, FailureMessage, HpaPodMessage, PodSampleMessage, PodSamplesMessage,
    ReadyMessage, SamplesBody, SamplesMessage, SeriesMessage, TargetMessage,
};
use super::shared_proto::NothingMessage;
use super::{fields, revisions};
use crate::frame_fault::FrameFault;

/// The answers of one round, as a record holds them.
pub(crate) fn answers_out(revision: &RevisionName, round: u64, answers: &MetricAnswers) -> AnswersMessage {
    let samples = answers.samples.iter().map(|(place, samples)| SamplesMessage {
        place: u32::try_from(*place).unwrap_or(u32::MAX),
        samples: Some(samples_out(samples)),
    });
    AnswersMessage {
        revision: revision.as_str().to_owned(),
        round,
        samples: samples.collect(),
        target: answers.target.as_ref().map(target_out),
    }
}

/// The answers that a record holds.
pub(crate) fn answers_in(answers: AnswersMessage) -> Result<MetricAnswers, FrameFault> {
    let samples = answers.samples.into_iter().map(|answer| {
        let samples = fields::present("the samples of a metric", answer.samples)?;
        // A number of 32 bits fits on every machine that runs ebb.
        let place = usize::try_from(answer.place).unwrap_or(usize::MAX);
        Ok((place, samples_in(samples)?))
    });
    Ok(MetricAnswers {
        samples: samples.collect::<Result<_, FrameFault>>()?,
        target: answers.target.map(target_in).transpose()?,
    })
}

fn samples_out(samples: &MetricSamples) -> SamplesBody {
    match samples {
        MetricSamples::PerPod(samples) => {
            let samples = samples.iter().map(|sample| PodSampleMessage {
                pod: sample.pod.0,
                value: sample.value.value(),
                at: sample.at.as_nanos(),
                window: fields::nanoseconds(sample.window),
            });
            SamplesBody::PerPod(PodSamplesMessage { samples: samples.collect() })
        }
        MetricSamples::Series(values) => {
            SamplesBody::Series(SeriesMessage { values: values.iter().map(|value| value.value()).collect() })
        }
        MetricSamples::Decided { count, average } => {
            SamplesBody::Decided(DecidedMessage { count: count.value(), average: average.value() })
        }
        MetricSamples::Failed(MetricFailure { reason, why }) => SamplesBody::Failed(FailureMessage {
            reason: number_of(&REASONS, *reason),
            why: number_of(&CAUSES, *why),
        }),
        MetricSamples::NotAsked => SamplesBody::NotAsked(NothingMessage {}),
    }
}

fn samples_in(samples: SamplesBody) -> Result<MetricSamples, FrameFault> {
    Ok(match samples {
        SamplesBody::PerPod(samples) => {
            let samples = samples.samples.into_iter().map(|sample| PodSample {
                pod: PodId(sample.pod),
                value: MilliValue::new(sample.value),
                at: Timestamp::from_nanos(sample.at),
                window: Duration::from_nanos(sample.window),
            });
            MetricSamples::PerPod(PodSamples::new(samples.collect()))
        }
        SamplesBody::Series(series) => {
            MetricSamples::Series(series.values.into_iter().map(MilliValue::new).collect())
        }
        SamplesBody::Decided(DecidedMessage { count, average }) => {
            MetricSamples::Decided { count: PodCount::new(count), average: MilliValue::new(average) }
        }
        SamplesBody::Failed(FailureMessage { reason, why }) => MetricSamples::Failed(MetricFailure {
            reason: at_number("the reason of a failure", &REASONS, reason)?,
            why: at_number("the cause of a failure", &CAUSES, why)?,
        }),
        SamplesBody::NotAsked(NothingMessage {}) => MetricSamples::NotAsked,
    })
}

fn target_out(target: &TargetPods) -> TargetMessage {
    TargetMessage {
        pods: target.pods.iter().map(pod_out).collect(),
        present: target.present.value(),
        selection: match target.selection {
            Selection::Unique => 1,
            Selection::Absent => 2,
            Selection::Unreadable => 3,
            Selection::Ambiguous => 4,
        },
    }
}

fn target_in(target: TargetMessage) -> Result<TargetPods, FrameFault> {
    let pods = target.pods.into_iter().map(pod_in).collect::<Result<_, FrameFault>>()?;
    Ok(TargetPods {
        pods: HpaPods::new(pods),
        present: PodCount::new(target.present),
        selection: match target.selection {
            1 => Selection::Unique,
            2 => Selection::Absent,
            3 => Selection::Unreadable,
            4 => Selection::Ambiguous,
            other => return Err(fields::unknown("the selection of pods", other)),
        },
    })
}

fn pod_out(pod: &HpaPod) -> HpaPodMessage {
    HpaPodMessage {
        pod: pod.pod.0,
        phase: match pod.phase {
            HpaPodPhase::Pending => 1,
            HpaPodPhase::Running => 2,
            HpaPodPhase::Succeeded => 3,
            HpaPodPhase::Failed => 4,
            HpaPodPhase::Unknown => 5,
        },
        is_deleted: pod.is_deleted,
        started: pod.started.map(Timestamp::as_nanos),
        ready: pod.ready.map(|ready| ReadyMessage {
            status: match ready.status {
                ReadyStatus::True => 1,
                ReadyStatus::False => 2,
                ReadyStatus::Unknown => 3,
            },
            since: ready.since.as_nanos(),
        }),
        requests: Some(revisions::requests_out(&pod.requests)),
    }
}

fn pod_in(pod: HpaPodMessage) -> Result<HpaPod, FrameFault> {
    Ok(HpaPod {
        pod: PodId(pod.pod),
        phase: match pod.phase {
            1 => HpaPodPhase::Pending,
            2 => HpaPodPhase::Running,
            3 => HpaPodPhase::Succeeded,
            4 => HpaPodPhase::Failed,
            5 => HpaPodPhase::Unknown,
            other => return Err(fields::unknown("the phase of a pod of class hpa", other)),
        },
        is_deleted: pod.is_deleted,
        started: pod.started.map(Timestamp::from_nanos),
        ready: pod.ready.map(ready_in).transpose()?,
        requests: revisions::requests_in(pod.requests.unwrap_or_default()),
    })
}

fn ready_in(ready: ReadyMessage) -> Result<ReadyCondition, FrameFault> {
    let status = match ready.status {
        1 => ReadyStatus::True,
        2 => ReadyStatus::False,
        3 => ReadyStatus::Unknown,
        other => return Err(fields::unknown("the readiness of a pod of class hpa", other)),
    };
    Ok(ReadyCondition { status, since: Timestamp::from_nanos(ready.since) })
}

/// The reasons of failures by their numbers, from 1. A reason is added at the end and never moved. Reasons of
/// conditions that no metric has are not among them.
const REASONS: [ConditionReason; 6] = [
    ConditionReason::FailedGetResourceMetric,
    ConditionReason::FailedGetContainerResourceMetric,
    ConditionReason::FailedGetPodsMetric,
    ConditionReason::FailedGetObjectMetric,
    ConditionReason::FailedGetExternalMetric,
    ConditionReason::InvalidMetricSourceType,
];

/// The causes of failures by their numbers, from 1. A cause is added at the end and never moved.
const CAUSES: [NoProposal; 11] = [
    NoProposal::NoPods,
    NoProposal::NoSamples,
    NoProposal::NoRequest,
    NoProposal::NoOverlap,
    NoProposal::NoSeries,
    NoProposal::NotMeasured,
    NoProposal::Refused,
    NoProposal::NoAnswer,
    NoProposal::NoReporter,
    NoProposal::NoContainer,
    NoProposal::NotReported,
];

/// The number of an entry of a list, from 1; 0 for one that is not in it.
fn number_of<Entry: PartialEq + Copy>(list: &[Entry], entry: Entry) -> u32 {
    let place = list.iter().position(|other| *other == entry);
    place.and_then(|place| u32::try_from(place + 1).ok()).unwrap_or_default()
}

fn at_number<Entry: Copy>(field: &'static str, list: &[Entry], number: u32) -> Result<Entry, FrameFault> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    place.and_then(|place| list.get(place)).copied().ok_or_else(|| fields::unknown(field, number))
}
