//! A keyframe, to its message and back.

use orchestration::{ControlEvent, LinkId, OrderId, PlatformFact};

use crate::frame_fault::FrameFault;
use crate::history_frames::history_in;
use crate::known_world::KnownWorld;
use crate::last_words::{LastWords, PeerWord};
use crate::peers::PeerName;
use crate::rereading::SettingsRereader;
use crate::secrets::SecretHasher;
use crate::wire::proto::{GivenOrderMessage, HistoryMessage, KeyframeMessage, LinkStateMessage};
use crate::wire::{fact_in, fact_out, opened_out, peer_in};

/// What an owner that takes over finds, as a record holds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyframe {
    /// In the order in which a platform tells them.
    pub(crate) facts: Vec<PlatformFact>,
    pub(crate) links: Vec<(LinkId, PeerName)>,
    pub(crate) last_words: LastWords,
    /// Orders whose end was not told yet, each with the hash of its errand.
    pub(crate) orders: Vec<(OrderId, u64)>,
    /// What was measured of revisions that predict.
    pub(crate) histories: Vec<ControlEvent>,
}

/// The keyframe of what is known.
pub(crate) fn keyframe_out(
    world: &KnownWorld,
    histories: Vec<HistoryMessage>,
    secrets: &SecretHasher,
) -> KeyframeMessage {
    let links = world.links.iter().map(|(link, peer)| LinkStateMessage {
        link: Some(opened_out(link.0, peer)),
        words: world.last_words.of(peer).iter().map(PeerWord::encoded).collect(),
    });
    KeyframeMessage {
        facts: world.facts().iter().map(|fact| fact_out(fact, secrets)).collect(),
        links: links.collect(),
        orders: world.orders().map(|(id, errand)| GivenOrderMessage { id: id.0, errand }).collect(),
        histories,
    }
}

/// The keyframe that a record holds. The reader of settings keeps its configuration.
pub(crate) fn keyframe_in(
    message: KeyframeMessage,
    settings: &mut SettingsRereader,
) -> Result<Keyframe, FrameFault> {
    let mut keyframe = Keyframe::default();
    for fact in message.facts {
        keyframe.facts.push(fact_in(fact, settings)?);
    }
    for state in message.links {
        let link = state.link.ok_or(FrameFault::Missing { field: "the link of a keyframe" })?;
        let peer = peer_in(&link)?;
        for word in &state.words {
            keyframe.last_words.note(&peer, &PeerWord::decoded(&peer, word)?);
        }
        keyframe.links.push((LinkId(link.link), peer));
    }
    keyframe.orders = message.orders.iter().map(|order| (OrderId(order.id), order.errand)).collect();
    keyframe.histories = message.histories.iter().map(history_in).collect::<Result<_, _>>()?;
    Ok(keyframe)
}
