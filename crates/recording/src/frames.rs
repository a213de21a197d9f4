//! One frame of a record, to its message and back.

use std::time::Duration;

use bytes::BytesMut;
use forecasting::ZoneOffsets;
use link::Message;
use orchestration::{ControlEvent, LinkId, OrderId};
use vocabulary::{ActivatorWord, PodCount, PodWord, TimeZoneName};

use crate::entry::RecordInput;
use crate::exact_keyframe::state_out;
use crate::frame_fault::FrameFault;
use crate::header::SegmentHeader;
use crate::history_frames::{demand_in, demand_out, history_in, history_out};
use crate::outcome::CommandOutcome;
use crate::rereading::SettingsRereader;
use crate::secrets::SecretHasher;
use crate::wire::proto::{
    ExactStateMessage, FrameBody, GivenOrderMessage, KeyframeMessage, OutcomeMessage, WantedCountMessage,
    WordMessage, ZoneChangeMessage, ZoneMessage,
};
use crate::wire::shared_proto::NothingMessage;
use crate::wire::{
    answers_in, answers_out, change_in, change_out, fact_in, fact_out, opened_out, peer_in, revision_name,
};

/// The content of a frame that was read.
#[derive(Clone, Debug)]
pub(crate) enum FrameContent {
    Header(Box<SegmentHeader>),
    Keyframe(Box<KeyframeMessage>),
    /// The state between two calls, as bytes that only the program of the header reads.
    ExactState(Vec<u8>),
    Event(Box<ControlEvent>),
    Advance,
    /// A later program wrote a frame of a kind that this one does not know.
    Unknown,
}

/// The call of the orchestrator, or its state, as a record holds it; `None` for a state that is too large.
pub(crate) fn input_out(input: &RecordInput, secrets: &SecretHasher) -> Option<FrameBody> {
    match input {
        RecordInput::Event(event) => Some(event_out(event, secrets)),
        RecordInput::Advance => Some(FrameBody::Advanced(NothingMessage {})),
        RecordInput::State(state) => {
            state_out(state, secrets).map(|state| FrameBody::ExactState(ExactStateMessage { state }))
        }
    }
}

fn event_out(event: &ControlEvent, secrets: &SecretHasher) -> FrameBody {
    match event {
        ControlEvent::Platform(fact) => FrameBody::Fact(Box::new(fact_out(fact, secrets))),
        ControlEvent::PodSpoke { link, word } => {
            FrameBody::PodSpoke(WordMessage { link: link.0, word: word_out(word) })
        }
        ControlEvent::ActivatorSpoke { link, word } => {
            FrameBody::ActivatorSpoke(WordMessage { link: link.0, word: word_out(word) })
        }
        ControlEvent::MetricsAnswered { revision, round, answers } => {
            FrameBody::MetricsAnswered(answers_out(revision, *round, answers))
        }
        ControlEvent::LinkChanged { link, news } => FrameBody::LinkChanged(change_out(link.0, news)),
        ControlEvent::WallClockRead { since_epoch } => {
            FrameBody::WallClock(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
        }
        ControlEvent::ZoneRead { zone, offsets } => FrameBody::ZoneRead(zone_out(zone, offsets)),
        ControlEvent::HistoryRestored { revision, history } => {
            FrameBody::HistoryRestored(history_out(revision, &history.export()))
        }
        ControlEvent::DemandImported { revision, demand } => {
            FrameBody::DemandImported(demand_out(revision, demand))
        }
    }
}

/// The content of a frame. The reader of settings keeps the configuration for the frames behind it.
pub(crate) fn content_in(
    body: Option<FrameBody>,
    settings: &mut SettingsRereader,
) -> Result<FrameContent, FrameFault> {
    let event = match body {
        None => return Ok(FrameContent::Unknown),
        Some(FrameBody::Header(header)) => return Ok(FrameContent::Header(Box::new((*header).try_into()?))),
        Some(FrameBody::Keyframe(keyframe)) => return Ok(FrameContent::Keyframe(Box::new(keyframe))),
        Some(FrameBody::ExactState(exact)) => return Ok(FrameContent::ExactState(exact.state)),
        Some(FrameBody::Advanced(NothingMessage {})) => return Ok(FrameContent::Advance),
        Some(FrameBody::Reports(_)) => {
            let problem = "stands outside of the segment that has its names".to_owned();
            return Err(FrameFault::BadValue { field: "a frame of reports", problem });
        }
        Some(FrameBody::Fact(fact)) => ControlEvent::Platform(fact_in(*fact, settings)?),
        Some(FrameBody::PodSpoke(spoken)) => {
            ControlEvent::PodSpoke { link: LinkId(spoken.link), word: word_in::<PodWord>(&spoken.word)? }
        }
        Some(FrameBody::ActivatorSpoke(spoken)) => ControlEvent::ActivatorSpoke {
            link: LinkId(spoken.link),
            word: word_in::<ActivatorWord>(&spoken.word)?,
        },
        Some(FrameBody::LinkChanged(change)) => {
            ControlEvent::LinkChanged { link: LinkId(change.link), news: change_in(change)? }
        }
        Some(FrameBody::MetricsAnswered(answers)) => ControlEvent::MetricsAnswered {
            revision: revision_name(&answers.revision)?,
            round: answers.round,
            answers: answers_in(answers)?,
        },
        Some(FrameBody::WallClock(since_epoch)) => {
            ControlEvent::WallClockRead { since_epoch: Duration::from_nanos(since_epoch) }
        }
        Some(FrameBody::ZoneRead(message)) => zone_in(&message),
        Some(FrameBody::HistoryRestored(message)) => history_in(&message)?,
        Some(FrameBody::DemandImported(message)) => demand_in(&message)?,
    };
    Ok(FrameContent::Event(Box::new(event)))
}

fn zone_out(zone: &TimeZoneName, offsets: &ZoneOffsets) -> ZoneMessage {
    let changes = offsets.changes().map(|(minute, offset)| ZoneChangeMessage { minute, offset });
    ZoneMessage { zone: zone.as_str().to_owned(), first: offsets.first(), changes: changes.collect() }
}

fn zone_in(message: &ZoneMessage) -> ControlEvent {
    let mut offsets = ZoneOffsets::fixed(message.first);
    for change in &message.changes {
        offsets.change_at(change.minute, change.offset);
    }
    ControlEvent::ZoneRead { zone: TimeZoneName::new(&message.zone), offsets }
}

/// A word as its link encodes it.
pub(crate) fn word_out<Word: Message>(word: &Word) -> Vec<u8> {
    let mut bytes = BytesMut::with_capacity(word.encoded_len());
    word.encode(&mut bytes);
    bytes.to_vec()
}

/// A word that its link encoded.
pub(crate) fn word_in<Word: Message>(bytes: &[u8]) -> Result<Word, FrameFault> {
    let bad = |error: link::WireError| FrameFault::BadValue {
        field: "a word",
        problem: format!("is refused by its link: {error}"),
    };
    Word::decode(bytes).map_err(bad)
}

/// The outcome of a call, as a record holds it; `None` where no command came out.
pub(crate) fn outcome_out(outcome: &CommandOutcome) -> Option<OutcomeMessage> {
    if outcome.is_empty() {
        return None;
    }
    let orders = outcome.orders.iter().map(|&(id, errand)| GivenOrderMessage { id: id.0, errand });
    let counts = outcome.counts.iter().map(|(revision, count)| WantedCountMessage {
        revision: revision.as_str().to_owned(),
        count: count.value(),
    });
    Some(OutcomeMessage {
        commands: outcome.commands,
        decided: outcome.decided,
        opened: outcome.opened.iter().map(|(link, peer)| opened_out(link.0, peer)).collect(),
        orders: orders.collect(),
        counts: counts.collect(),
    })
}

/// The outcome that a record holds.
pub(crate) fn outcome_in(outcome: Option<OutcomeMessage>) -> Result<CommandOutcome, FrameFault> {
    let outcome = outcome.unwrap_or_default();
    let opened = outcome.opened.iter().map(|opened| Ok((LinkId(opened.link), peer_in(opened)?)));
    let counts = outcome.counts.iter();
    let counts = counts.map(|count| Ok((revision_name(&count.revision)?, PodCount::new(count.count))));
    Ok(CommandOutcome {
        commands: outcome.commands,
        decided: outcome.decided,
        opened: opened.collect::<Result<_, FrameFault>>()?,
        orders: outcome.orders.iter().map(|order| (OrderId(order.id), order.errand)).collect(),
        counts: counts.collect::<Result<_, FrameFault>>()?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use orchestration::{
        ActivatorFacts, ActivatorLife, Entrance, LinkNews, OrderOutcome, PlatformFact, PodFacts, PodFailure,
        PodKill, RevisionFacts, RouteInForce, Subject,
    };
    use scaling::hpa::{
        ConditionReason, HpaPod, HpaPodPhase, HpaPods, MetricAnswers, MetricFailure, MetricSamples,
        NoProposal, PodSample, PodSamples, ReadyCondition, ReadyStatus, Selection, TargetPods,
    };
    use scaling::{PodPhase, RevisionOrigin};
    use settings::hpa::{ContainerRequests, PodRequests, ResourceRequests, UsageSource};
    use settings::{ClusterConfig, FloorCause, RevisionSettings};
    use vocabulary::{
        AdoptionId, Bucket, Epoch, HopKey, LinkAddress, LinkChannel, LinkToken, MilliValue, Ownership,
        PodExits, PodId, PodName, PodState, ReplicaName, RequestTimeouts, RevisionName, Routing, Timestamp,
    };

    use super::*;
    use crate::wire::proto::FrameMessage;
    use prost::Message as _;

    fn name() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("three parts")
    }

    fn settings() -> RevisionSettings {
        let annotations = BTreeMap::from([
            ("autoscaling.knative.dev/target".to_owned(), "7".to_owned()),
            ("autoscaling.knative.dev/minScale".to_owned(), "2".to_owned()),
        ]);
        let read = RevisionSettings::read(&annotations, &ClusterConfig::default(), None);
        let amounts = ResourceRequests {
            cpu: Some(MilliValue::new(1500)),
            memory: None,
            others: vec![("example.com/gpu".into(), MilliValue::new(2000))],
        };
        let container = ContainerRequests { name: "app".into(), requests: amounts.clone() };
        RevisionSettings {
            requests: PodRequests { pod_level: Some(amounts), containers: vec![container] },
            usage: UsageSource::Questions,
            ..read.expect("good annotations").value
        }
    }

    fn revision() -> RevisionFacts {
        RevisionFacts {
            name: name(),
            settings: settings(),
            container_concurrency: 9,
            timeouts: RequestTimeouts { request: Some(Duration::from_secs(300)), ..Default::default() },
            progress_deadline: Duration::from_secs(600),
            entrances: vec![Entrance::Host("hello.example.com".to_owned()), Entrance::Port(8081)],
            url: None,
            hop_keys: vec![HopKey::new("secret".to_owned())],
            wanted: PodCount::new(3),
            may_write: true,
            reachable: true,
            floor: PodCount::ONE,
            floor_cause: FloorCause::Bypass,
            waiting_page: vocabulary::WaitingPage::Off,
            hold: Some("paused".to_owned()),
            origin: RevisionOrigin::New,
            template: "hello-00001".to_owned(),
            other_autoscaler: None,
        }
    }

    fn address() -> LinkAddress {
        LinkAddress {
            socket: ([127, 0, 0, 1], 3).into(),
            token: Some(LinkToken::new([7; LinkToken::BYTES])),
            channel: LinkChannel::TlsOfPod,
        }
    }

    fn pod() -> PodFacts {
        PodFacts {
            name: PodName::new("hello-1"),
            phase: PodPhase::Running,
            leaving: true,
            ends_in: Some(Duration::from_secs(3)),
            platform_ready: Some(false),
            requests: Some(([10, 0, 0, 1], 80).into()),
            exits: PodExits(BTreeMap::from([(8081, 9090)])),
            link: Some(address()),
            adoption: Some(AdoptionId(4)),
            outdated: true,
            awaits_core: true,
            trouble: Some("the app exited".to_owned()),
            trouble_without_output: None,
            hold: Some("it failed".to_owned()),
            details: BTreeMap::new(),
        }
    }

    fn facts() -> Vec<PlatformFact> {
        let (revision_name, pod_name, at) = (name(), PodName::new("hello-1"), Timestamp::from_secs(5));
        let failure = PodFailure {
            pod: pod_name.clone(),
            at,
            reason: "exit code 3".to_owned(),
            last_lines: Vec::new(),
        };
        let kill = PodKill { pod: pod_name.clone(), at, reason: "10 s after TERM".to_owned() };
        let activator = ActivatorFacts {
            name: ReplicaName::new("activator-1"),
            link: LinkAddress { token: None, channel: LinkChannel::TlsOfActivator, ..address() },
            life: ActivatorLife::NotReady,
        };
        let route =
            RouteInForce { routing: Routing::Direct, activators: vec![ReplicaName::new("activator-1")] };
        let subjects = [
            Subject::Configuration,
            Subject::Revision(name()),
            Subject::Pod(pod_name),
            Subject::Activator(ReplicaName::new("activator-1")),
        ];
        let problems = subjects
            .map(|about| PlatformFact::ProblemsChanged { about, problems: vec!["it is wrong".to_owned()] });
        let outcomes = [
            OrderOutcome::Done,
            OrderOutcome::Superseded,
            OrderOutcome::Conflict { found: PodCount::ONE },
            OrderOutcome::Gone,
            OrderOutcome::NotOwner,
            OrderOutcome::Refused("a".to_owned()),
            OrderOutcome::Forbidden("b".to_owned()),
            OrderOutcome::Retrying("c".to_owned()),
        ];
        let ends = outcomes.map(|outcome| PlatformFact::OrderEnded { order: OrderId(5), outcome });
        let ownership = Ownership { epochs: BTreeMap::from([(Bucket(3), Epoch(9))]), buckets: 8 };
        let others = [
            PlatformFact::ConfigChanged(Arc::default()),
            PlatformFact::OwnershipChanged(ownership),
            PlatformFact::RevisionChanged(Arc::new(revision())),
            PlatformFact::RevisionRemoved(name()),
            PlatformFact::RevisionGivenBack(name()),
            PlatformFact::PodsChanged { revision: name(), pods: vec![pod()] },
            PlatformFact::PodFailed { revision: name(), failure },
            PlatformFact::PodKilled { revision: name(), kill },
            PlatformFact::ActivatorsChanged(vec![activator]),
            PlatformFact::RouteFound { revision: revision_name, route },
            PlatformFact::Synced,
        ];
        problems.into_iter().chain(ends).chain(others).collect()
    }

    fn answers() -> MetricAnswers {
        let sample = PodSample {
            pod: PodId(1),
            value: MilliValue::new(-5),
            at: Timestamp::from_secs(3),
            window: Duration::from_secs(30),
        };
        let failure =
            MetricFailure { reason: ConditionReason::FailedGetExternalMetric, why: NoProposal::NotReported };
        let pod = HpaPod {
            pod: PodId(1),
            phase: HpaPodPhase::Unknown,
            is_deleted: true,
            started: Some(Timestamp::from_secs(1)),
            ready: Some(ReadyCondition { status: ReadyStatus::False, since: Timestamp::from_secs(2) }),
            requests: settings().requests,
        };
        MetricAnswers {
            samples: vec![
                (0, MetricSamples::PerPod(PodSamples::new(vec![sample]))),
                (1, MetricSamples::Series(vec![MilliValue::new(3), MilliValue::new(-4)])),
                (2, MetricSamples::Decided { count: PodCount::ONE, average: MilliValue::new(7) }),
                (3, MetricSamples::Failed(failure)),
                (4, MetricSamples::NotAsked),
            ],
            target: Some(TargetPods {
                pods: HpaPods::new(vec![pod]),
                present: PodCount::new(2),
                selection: Selection::Ambiguous,
            }),
        }
    }

    fn summer_in_berlin() -> ZoneOffsets {
        let mut offsets = ZoneOffsets::fixed(60);
        offsets.change_at(29_916_060, 120);
        offsets
    }

    fn events() -> Vec<ControlEvent> {
        let link = LinkId(70_000);
        let news = [
            LinkNews::Lost,
            LinkNews::Refused,
            LinkNews::Blocked("no route".to_owned()),
            LinkNews::Unreachable { since: Timestamp::from_millis(1) },
            LinkNews::Accepting,
        ];
        let state = PodWord::State { state: PodState::Ready, detail: "ready".to_owned() };
        let others = [
            ControlEvent::PodSpoke { link, word: state },
            ControlEvent::ActivatorSpoke { link, word: ActivatorWord::Emptied { revision: name() } },
            ControlEvent::MetricsAnswered { revision: name(), round: 8, answers: answers() },
            ControlEvent::WallClockRead { since_epoch: Duration::from_nanos(1_795_000_000_123_456_789) },
            ControlEvent::ZoneRead { zone: TimeZoneName::new("Europe/Berlin"), offsets: summer_in_berlin() },
        ];
        let changes = news.map(|news| ControlEvent::LinkChanged { link, news });
        facts().into_iter().map(ControlEvent::Platform).chain(changes).chain(others).collect()
    }

    /// The texts are no part of the events, and secrets show themselves as dots.
    fn shown(event: &ControlEvent) -> String {
        format!("{event:?}")
    }

    #[test]
    fn every_event_is_read_as_it_was_written() {
        let (secrets, mut rereader) = (SecretHasher::default(), SettingsRereader::default());
        for event in events() {
            let input = RecordInput::Event(Box::new(event.clone()));
            let frame = FrameMessage { after: -3, body: input_out(&input, &secrets), outcome: None };
            let bytes = frame.encode_to_vec();
            let read = FrameMessage::decode(bytes.as_slice()).expect("it was just written");
            assert_eq!(read, frame);
            let content = content_in(read.body, &mut rereader).unwrap_or_else(|fault| panic!("{fault}"));
            let FrameContent::Event(again) = content else { panic!("it is an event: {content:?}") };
            assert_eq!(shown(&again), shown(&event));
        }
    }

    #[test]
    fn a_frame_of_a_later_program_is_read_as_far_as_it_is_known() {
        // Field 100 with the number 5, beside a known field.
        let frame = FrameMessage { after: 9, body: None, outcome: None };
        let bytes = [frame.encode_to_vec(), vec![0xa0, 0x06, 5]].concat();
        let read = FrameMessage::decode(bytes.as_slice()).expect("unknown fields are passed over");
        assert_eq!(read, frame);
        let content = content_in(read.body, &mut SettingsRereader::default()).expect("it is no fault");
        assert!(matches!(content, FrameContent::Unknown));
    }

    #[test]
    fn equal_secrets_are_equal_in_a_record_and_others_are_not() {
        let secrets = SecretHasher::default();
        let token = |byte| LinkAddress { token: Some(LinkToken::new([byte; 16])), ..address() };
        let read = |link: LinkAddress| {
            let pods = vec![PodFacts { link: Some(link), ..pod() }];
            let fact = fact_out(&PlatformFact::PodsChanged { revision: name(), pods }, &secrets);
            let fact = fact_in(fact, &mut SettingsRereader::default()).expect("it was just written");
            let PlatformFact::PodsChanged { pods, .. } = fact else { panic!("it is about pods: {fact:?}") };
            pods[0].link
        };
        assert_eq!(read(token(1)), read(token(1)));
        assert_ne!(read(token(1)), read(token(2)));
        assert_ne!(read(token(1)), Some(token(1)), "the token itself is not in the record");
        assert_eq!(BTreeSet::from([secrets.hash(b"a"), secrets.hash(b"a"), secrets.hash(b"b")]).len(), 2);
    }
}
