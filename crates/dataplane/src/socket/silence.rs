//! Peers that are gone without a word while bytes are on their way to them.
//!
//! Of a connection on which nothing is under way the kernel asks whether its peer lives
//! ([`keep_alive`](crate::socket::options::keep_alive)). Bytes that the peer has not acknowledged it sends
//! again instead, by default for a quarter of an hour, and so long a dead client would keep its request, its
//! slot and its pod. HTTP/2 has pings. For HTTP/1.1, and for what follows a switch of protocols, the kernel
//! says of a socket how often it has tried since it last heard of the peer: hardly ever more than once for
//! one that lives and only does not read, which is what tells a paused download from a dead client.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use vocabulary::Timestamp;

/// How many looks one silence takes.
pub(crate) const LOOKS_PER_SILENCE: u32 = 4;

/// One attempt may be on its way, and its answer too. A second one is made only where the first had none.
const ATTEMPTS_MIN: u32 = 2;

/// The two addresses by which the kernel knows a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionEnds {
    pub(crate) own: SocketAddr,
    pub(crate) peer: SocketAddr,
}

impl ConnectionEnds {
    pub(crate) fn of(stream: &TcpStream) -> io::Result<Self> {
        Self::with(stream, stream.peer_addr()?)
    }

    /// The addresses of a stream whose peer is known.
    pub(crate) fn with(stream: &TcpStream, peer: SocketAddr) -> io::Result<Self> {
        Ok(Self { own: stream.local_addr()?, peer })
    }
}

/// The connections whose peers left bytes unacknowledged, at the last look.
#[derive(Debug, Default)]
pub(crate) struct SilenceLog(BTreeMap<ConnectionEnds, PeerSilence>);

#[derive(Clone, Copy, Debug)]
struct PeerSilence {
    since: Timestamp,
    attempts: u32,
}

impl SilenceLog {
    /// Takes a look: of each connection, how often the kernel has tried in vain.
    pub(crate) fn note(&mut self, now: Timestamp, attempts: impl IntoIterator<Item = (ConnectionEnds, u32)>) {
        let before = std::mem::take(&mut self.0);
        let silence = |(ends, attempts)| {
            // The kernel begins to count anew whenever it hears of the peer.
            let goes_on = before.get(&ends).filter(|silence| silence.attempts <= attempts);
            (ends, PeerSilence { since: goes_on.map_or(now, |silence| silence.since), attempts })
        };
        self.0 = attempts.into_iter().filter(|(_, attempts)| *attempts > 0).map(silence).collect();
    }

    /// The connections whose peers have been silent since that time, or longer.
    pub(crate) fn silent_since(&self, latest: Timestamp) -> Vec<ConnectionEnds> {
        let is_dead = |silence: &PeerSilence| silence.since <= latest && silence.attempts >= ATTEMPTS_MIN;
        self.0.iter().filter(|(_, silence)| is_dead(silence)).map(|(ends, _)| *ends).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1000 + second)
    }

    /// Looks at one connection, a second apart, and whether it is silent for three seconds after the last.
    fn is_silent_after(looks: &[u32]) -> bool {
        let [own, peer] = [80, 7].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let ends = ConnectionEnds { own, peer };
        let mut log = SilenceLog::default();
        let mut now = at(0);
        for (second, attempts) in (0..).zip(looks) {
            now = at(second);
            log.note(now, [(ends, *attempts)]);
        }
        log.silent_since(now - Duration::from_secs(3)) == [ends]
    }

    #[test]
    fn silent_is_whoever_answers_nothing_for_the_whole_time() {
        assert!(is_silent_after(&[1, 3, 4, 5]));
        assert!(is_silent_after(&[0, 0, 2, 2, 2, 2]), "the kernel tries more and more seldom");
        assert!(is_silent_after(&[5, 1, 2, 3, 4]), "an answer, and then none");
        assert!(!is_silent_after(&[1, 3, 4]), "not for long enough");
        assert!(!is_silent_after(&[3, 4, 2, 3, 4]), "an answer two looks ago");
        assert!(!is_silent_after(&[3, 4, 0, 5, 6]), "all was acknowledged in between");
        assert!(!is_silent_after(&[1, 1, 1, 1, 1]), "a single question may be answered in a moment");
        assert!(!is_silent_after(&[]));
    }
}
