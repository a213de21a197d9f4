//! What does a peer make us do, and does it bring anything for it?
//!
//! Some frames make work and bring nothing: pings, settings, window for data that is never sent, empty
//! pieces, streams that are broken off. One of them takes a tenth of a microsecond, so a peer that sends
//! nothing else keeps a core busy for the price of its bandwidth. None of them may be limited by a rate: a
//! peer that measures the bandwidth of a connection by pings, as gRPC does at both ends, sends one in each
//! round trip while data flows, thousands in a second where a round trip is short, and the faster all goes
//! the more. So frames are *paid for*. What brings something (a head, a piece of a body, in either direction)
//! gives a peer credit, every frame that does not takes some, and a peer without credit is sent away. nginx
//! weighs the bytes of all frames against those of heads and bodies in the same way, and Envoy counts room
//! for data against pieces of data sent.
//!
//! Time refills little: a peer without credit gets back the cost of work that a core does not notice, so that
//! pings between requests, for months, add up to nothing. This is the only use of a clock here, and the clock
//! is read only when the credit is gone: otherwise a frame costs an addition.
//!
//! What is *not* counted here, because other limits bound it: answers that a peer does not take (it is not
//! read while they wait, see `transport` of `dataplane`), and how long others wait meanwhile (a connection
//! handles so many frames in a turn, see there too).

use std::time::Duration;

use vocabulary::Timestamp;

/// The credit of a new peer, and the most to which time refills it: about a millisecond of a core.
const ALLOWANCE: u64 = 10_000;

/// The credit that time gives back in a millisecond: a thousandth of a core. At [`CANCELLED`] it allows a
/// client to break off 1,000 requests in a second for ever.
const GIVEN_BACK_PER_MILLISECOND: u64 = 10;

/// The cost of a frame that brings nothing: the unit of all costs here.
const FRAME: u64 = 1;

/// So many bytes of a frame that brings nothing cost as much as the frame itself.
const BYTES_PER_UNIT: usize = 1024;

/// A request that its client breaks off, beyond what its head has brought. We may have begun to send it on by
/// then, and close the app's connection for it.
const CANCELLED: u64 = 10;

/// A stream that has to be refused because of what its peer sent, before a service works on it: a head was
/// read for it, and an answer is written. One that is open costs as much as one that the peer breaks off
/// itself: a client that makes us break its requests off (by room beyond all bounds, or data behind the end)
/// has us begin and stop the same work.
const REFUSED: u64 = 8;

/// Window for a few bytes where there was none: a task is woken to write a piece that is hardly longer than
/// its frame.
const DRIBBLE: u64 = 8;

/// So many bytes of a head that is of no use cost a unit: each may stand for a field.
const HEAD_BYTES_PER_UNIT: usize = 64;

/// So many streams that are looked at for one frame cost a unit.
const STREAMS_PER_UNIT: usize = 8;

/// What heads that are too large leave of the credit: the frames of a connection's other requests, and those
/// of the next such head, need some.
const RESERVE: u64 = 1_000;

/// The credit for a head or a piece of a body. Beside each piece gRPC's ends send up to three frames (a ping,
/// room in its stream and in its connection), and those of others that give room for every read four. Envoy
/// allows ten frames that give room for each piece.
const USEFUL: u64 = 16;

/// So many bytes of a body bring a further unit: a piece may be read in many small parts, with room given
/// back for each.
const USEFUL_BYTES_PER_UNIT: usize = 256;

/// So many bytes of a body bring a unit where the peer's own lack of room has cut them off.
const CUT_BYTES_PER_UNIT: usize = 64;

/// The kind of peer at the other end, which changes the price of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerRole {
    /// A client of the first hop, whose streams are its own requests.
    Client,
    /// An end that many share: one of our own hops, which passes on what clients do, or an app, which goes on
    /// for a moment with what we broke off. Streams that end early are counted where a client opens them:
    /// here one client's would end another's.
    Shared,
}

/// Work that a peer makes for us and that brings nothing, with what decides its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// A frame with so many bytes.
    Frame(usize),
    /// A frame for which so many streams were looked at.
    Streams(usize),
    /// A piece of a body without a reader: its stream was broken off, or its reader is gone.
    LatePiece,
    /// A window update of very few bytes where the window was empty.
    Dribble,
    /// The peer broke off a stream that was open.
    Cancelled,
    /// We had to refuse a stream, or to answer for one that is over.
    Refused,
    /// We had to break a stream off that was open.
    BrokenOff,
    /// A head with so many bytes that is of no use.
    UselessHead(usize),
    /// A head with so many bytes that was taken for one that brings something, and is larger than its sender
    /// may send.
    OversizeHead(usize),
}

/// How far a peer's credit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    Full,
    Partial,
}

/// What a peer sends or takes that is worth our work: it pays for frames that bring nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credit {
    Head,
    /// A piece of a body, in either direction.
    Body(usize),
    /// A piece that ended where the peer's room ended.
    CutBody(usize),
}

/// A peer makes work out of all proportion to what it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreditExhaustion;

/// The credit of one peer.
#[derive(Debug)]
pub(super) struct PeerAccount {
    peer: PeerRole,
    credit: u64,
    /// The time up to which credit was given back.
    since: Timestamp,
}

impl PeerAccount {
    pub(super) fn new(peer: PeerRole, now: Timestamp) -> Self {
        Self { peer, credit: ALLOWANCE, since: now }
    }

    /// From now on the peer counts as one that passes on the streams of many clients.
    pub(super) fn share(&mut self) {
        self.peer = PeerRole::Shared;
    }

    pub(super) fn is_shared(&self) -> bool {
        self.peer == PeerRole::Shared
    }

    pub(super) fn earn(&mut self, credit: Credit) {
        let units = match credit {
            Credit::Head => USEFUL,
            Credit::Body(bytes) => USEFUL + units_of(bytes, USEFUL_BYTES_PER_UNIT),
            Credit::CutBody(bytes) => units_of(bytes, CUT_BYTES_PER_UNIT),
        };
        self.credit = self.credit.saturating_add(units);
    }

    pub(super) fn charge(
        &mut self,
        cost: Cost,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(), CreditExhaustion> {
        let units = self.price(cost);
        self.refill_for(units, now);
        self.credit = self.credit.checked_sub(units).ok_or(CreditExhaustion)?;
        Ok(())
    }

    /// Like [`Self::charge`] for work with which the peer may go on more slowly: what the credit lacks is not
    /// owed, and [`RESERVE`] is not touched.
    pub(super) fn pay(&mut self, cost: Cost, now: impl FnOnce() -> Timestamp) -> Payment {
        let units = self.price(cost);
        self.refill_for(units + RESERVE, now);
        if let Some(rest) = self.credit.checked_sub(units).filter(|rest| *rest >= RESERVE) {
            self.credit = rest;
            Payment::Full
        } else {
            self.credit = self.credit.min(RESERVE);
            Payment::Partial
        }
    }

    fn price(&self, cost: Cost) -> u64 {
        match (cost, self.peer) {
            (Cost::Frame(bytes), _) => FRAME + units_of(bytes, BYTES_PER_UNIT),
            (Cost::LatePiece, PeerRole::Client) | (Cost::Refused | Cost::BrokenOff, PeerRole::Shared) => {
                FRAME
            }
            (Cost::Streams(streams), _) => FRAME + units_of(streams, STREAMS_PER_UNIT),
            (Cost::Dribble, _) => DRIBBLE,
            (Cost::Cancelled | Cost::BrokenOff, PeerRole::Client) => USEFUL + CANCELLED,
            (Cost::Refused, PeerRole::Client) => REFUSED,
            (Cost::Cancelled | Cost::LatePiece, PeerRole::Shared) => 0,
            (Cost::UselessHead(bytes), _) => FRAME + units_of(bytes, HEAD_BYTES_PER_UNIT),
            (Cost::OversizeHead(bytes), _) => USEFUL + FRAME + units_of(bytes, HEAD_BYTES_PER_UNIT),
        }
    }

    /// Gives back what time has paid, if the credit does not suffice.
    fn refill_for(&mut self, units: u64, now: impl FnOnce() -> Timestamp) {
        if self.credit < units {
            self.refill(now());
        }
    }

    fn refill(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.since);
        // What is less than a millisecond is not lost, but counts the next time.
        let milliseconds = whole_milliseconds(passed);
        if milliseconds > 0 {
            self.since = now;
            let given_back = milliseconds.saturating_mul(GIVEN_BACK_PER_MILLISECOND).min(ALLOWANCE);
            self.credit = (self.credit + given_back).min(ALLOWANCE);
        }
    }
}

fn units_of(bytes: usize, bytes_per_unit: usize) -> u64 {
    u64::try_from(bytes / bytes_per_unit).unwrap_or(u64::MAX)
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(milliseconds)
    }

    fn account(peer: PeerRole) -> PeerAccount {
        PeerAccount::new(peer, at(0))
    }

    const PING: Cost = Cost::Frame(8);

    /// How often a peer may do this in an instant.
    fn allowed(account: &mut PeerAccount, cost: Cost, now: Timestamp) -> u64 {
        (0..1_000_000).take_while(|_| account.charge(cost, || now).is_ok()).count() as u64
    }

    #[test]
    fn useless_frames_are_allowed_for_a_while_and_time_forgives_them() {
        let mut peer = account(PeerRole::Client);
        assert_eq!(allowed(&mut peer, PING, at(0)), 10_000);
        assert_eq!(allowed(&mut peer, PING, at(100)), 1_000);
        assert_eq!(allowed(&mut peer, PING, at(100)), 0, "once only");
        assert_eq!(allowed(&mut peer, PING, at(100_000)), 10_000, "and no more than a new peer has");
    }

    /// The pattern of gRPC's estimate of bandwidth, a million times faster than any network: nothing of it
    /// depends on time.
    #[test]
    fn pieces_of_bodies_pay_for_the_frames_beside_them_without_any_time() {
        let mut peer = account(PeerRole::Client);
        for _ in 0..1_000_000 {
            peer.earn(Credit::Body(1));
            for _ in 0..4 {
                peer.charge(Cost::Frame(4), || unreachable!("there is credit")).expect("it is paid for");
            }
        }
        for _ in 0..10_000 {
            peer.earn(Credit::Body(16_384));
            for _ in 0..64 {
                peer.charge(PING, || unreachable!("there is credit")).expect("small parts of a large piece");
            }
        }
    }

    #[test]
    fn a_peer_that_takes_a_byte_at_a_time_pays_for_it() {
        let mut peer = account(PeerRole::Client);
        let dribbles = (0..100_000)
            .take_while(|_| {
                peer.earn(Credit::CutBody(1));
                peer.charge(Cost::Dribble, || at(0)).is_ok()
            })
            .count();
        assert_eq!(dribbles, 1_250);
    }

    #[test]
    fn cancelled_requests_count_for_a_client_and_not_for_an_end_that_many_share() {
        let mut client = account(PeerRole::Client);
        let cancelled = (0..100_000)
            .take_while(|_| {
                client.earn(Credit::Head);
                client.charge(Cost::Cancelled, || at(0)).is_ok()
            })
            .count();
        assert_eq!(cancelled, 1_000);
        let mut hop = account(PeerRole::Client);
        hop.share();
        for cost in [Cost::Cancelled, Cost::LatePiece] {
            assert_eq!(allowed(&mut hop, cost, at(0)), 1_000_000);
        }
        assert_eq!(allowed(&mut hop, PING, at(0)), 10_000, "pings are its own");
    }

    #[test]
    fn streams_that_a_client_has_us_break_off_cost_as_much_as_those_that_it_cancels() {
        let ended_after = |cost| {
            let mut client = account(PeerRole::Client);
            (0..100_000)
                .take_while(|_| {
                    client.earn(Credit::Head);
                    client.charge(cost, || at(0)).is_ok()
                })
                .count()
        };
        assert_eq!(ended_after(Cost::BrokenOff), ended_after(Cost::Cancelled));
        assert_eq!(allowed(&mut account(PeerRole::Client), Cost::Refused, at(0)), 1_250);
    }

    #[test]
    fn long_frames_and_useless_heads_cost_more() {
        let times = |cost| allowed(&mut account(PeerRole::Client), cost, at(0));
        assert_eq!(times(Cost::Frame(16_384)), 10_000 / 17);
        assert_eq!(times(Cost::UselessHead(256 * 1024)), 2);
        assert_eq!(times(Cost::Streams(250)), 10_000 / 32);
    }

    #[test]
    fn a_head_that_is_too_large_takes_what_credit_there_is_beyond_the_reserve() {
        let mut peer = account(PeerRole::Client);
        let paid: Vec<_> = (0..4).map(|_| peer.pay(Cost::UselessHead(250_000), || at(0))).collect();
        assert_eq!(paid, [Payment::Full, Payment::Full, Payment::Partial, Payment::Partial]);
        assert_eq!(allowed(&mut peer, PING, at(250)), RESERVE + 2_500, "nothing is owed");
    }
}
