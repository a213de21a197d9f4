//! One frame of a record, to its message and back.

use std::time::Duration;

use bytes::BytesMut;
use link::Message;
use orchestration::{ControlEvent, LinkId, OrderId};
use scaling::{HistoryRecord, RevisionHistory};
use vocabulary::{ActivatorWord, PodCount, PodWord, RevisionName};

use crate::entry::RecordInput;
use crate::frame_fault::FrameFault;
use crate::header::SegmentHeader;
use crate::outcome::CommandOutcome;
use crate::rereading::SettingsRereader;
use crate::secrets::SecretHasher;
use crate::wire::proto::{
    FrameBody, GivenOrderMessage, HistoryMessage, KeyframeMessage, OutcomeMessage, WantedCountMessage,
    WordMessage,
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
    Event(Box<ControlEvent>),
    Advance,
    /// A later program wrote a frame of a kind that this one does not know.
    Unknown,
}

/// The call of the orchestrator, as a record holds it.
pub(crate) fn input_out(input: &RecordInput, secrets: &SecretHasher) -> FrameBody {
    match input {
        RecordInput::Event(event) => event_out(event, secrets),
        RecordInput::Advance => FrameBody::Advanced(NothingMessage {}),
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
        ControlEvent::HistoryRestored { revision, history } => {
            FrameBody::HistoryRestored(history_out(revision, history))
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
        Some(FrameBody::Advanced(NothingMessage {})) => return Ok(FrameContent::Advance),
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
        Some(FrameBody::HistoryRestored(history)) => history_in(&history)?,
    };
    Ok(FrameContent::Event(Box::new(event)))
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

fn history_out(revision: &RevisionName, history: &RevisionHistory) -> HistoryMessage {
    HistoryMessage {
        revision: revision.as_str().to_owned(),
        history: serde_json::to_vec(&history.export()).expect("a history is numbers and bytes"),
    }
}

fn history_in(message: &HistoryMessage) -> Result<ControlEvent, FrameFault> {
    let bad = |problem: String| FrameFault::BadValue { field: "a history", problem };
    let record: HistoryRecord = serde_json::from_slice(&message.history)
        .map_err(|error| bad(format!("is no record of one: {error}")))?;
    let history = RevisionHistory::restore(record).map_err(|fault| bad(format!("is refused: {fault}")))?;
    Ok(ControlEvent::HistoryRestored {
        revision: revision_name(&message.revision)?,
        history: Box::new(history),
    })
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
