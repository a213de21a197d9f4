//! News of links, their peers and their addresses, to the record and back.

use orchestration::LinkNews;
use vocabulary::{LinkAddress, LinkChannel, Timestamp};

use super::facts_proto::LinkAddressMessage;
use super::fields;
use super::proto::{LinkChangeBody, LinkChangeMessage, LinkPeerBody, OpenedLinkMessage};
use super::shared_proto::NothingMessage;
use crate::frame_fault::FrameFault;
use crate::peers::PeerName;
use crate::secrets::{SecretHasher, stand_in_token};

/// The news of a link, as a record holds it.
pub(crate) fn change_out(link: u64, news: &LinkNews) -> LinkChangeMessage {
    let news = match news {
        LinkNews::Lost => LinkChangeBody::Lost(NothingMessage {}),
        LinkNews::Refused => LinkChangeBody::Refused(NothingMessage {}),
        LinkNews::Blocked(reason) => LinkChangeBody::Blocked(reason.clone()),
        LinkNews::Unreachable { since } => LinkChangeBody::Unreachable(since.as_nanos()),
        LinkNews::Accepting => LinkChangeBody::Accepting(NothingMessage {}),
    };
    LinkChangeMessage { link, news: Some(news) }
}

/// The news that a record holds.
pub(crate) fn change_in(change: LinkChangeMessage) -> Result<LinkNews, FrameFault> {
    Ok(match fields::present("the news of a link", change.news)? {
        LinkChangeBody::Lost(NothingMessage {}) => LinkNews::Lost,
        LinkChangeBody::Refused(NothingMessage {}) => LinkNews::Refused,
        LinkChangeBody::Blocked(reason) => LinkNews::Blocked(reason),
        LinkChangeBody::Unreachable(since) => LinkNews::Unreachable { since: Timestamp::from_nanos(since) },
        LinkChangeBody::Accepting(NothingMessage {}) => LinkNews::Accepting,
    })
}

/// A link with its peer, as a record holds them.
pub(crate) fn opened_out(link: u64, peer: &PeerName) -> OpenedLinkMessage {
    let peer = match peer {
        PeerName::Pod(name) => LinkPeerBody::Pod(name.as_str().to_owned()),
        PeerName::Activator(name) => LinkPeerBody::Activator(name.as_str().to_owned()),
    };
    OpenedLinkMessage { link, peer: Some(peer) }
}

/// The peer of a link that a record holds.
pub(crate) fn peer_in(opened: &OpenedLinkMessage) -> Result<PeerName, FrameFault> {
    Ok(match fields::present("the peer of a link", opened.peer.as_ref())? {
        LinkPeerBody::Pod(name) => PeerName::Pod(fields::pod(name)),
        LinkPeerBody::Activator(name) => PeerName::Activator(fields::replica(name)),
    })
}

pub(super) fn address_out(address: &LinkAddress, secrets: &SecretHasher) -> LinkAddressMessage {
    LinkAddressMessage {
        socket: address.socket.to_string(),
        token: address.token.map(|token| secrets.hash(token.expose())),
        channel: match address.channel {
            LinkChannel::Plain => 1,
            LinkChannel::TlsOfPod => 2,
            LinkChannel::TlsOfActivator => 3,
            LinkChannel::Scraped => 4,
            LinkChannel::Pushed => 5,
            LinkChannel::Unasked => 6,
        },
    }
}

/// The address, with a token that is another one wherever the recorded token was.
pub(super) fn address_in(address: &LinkAddressMessage) -> Result<LinkAddress, FrameFault> {
    Ok(LinkAddress {
        socket: fields::socket("the address of a link", &address.socket)?,
        token: address.token.map(stand_in_token),
        channel: match address.channel {
            1 => LinkChannel::Plain,
            2 => LinkChannel::TlsOfPod,
            3 => LinkChannel::TlsOfActivator,
            4 => LinkChannel::Scraped,
            5 => LinkChannel::Pushed,
            6 => LinkChannel::Unasked,
            other => return Err(fields::unknown("the channel of a link", other)),
        },
    })
}
