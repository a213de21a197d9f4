//! Who sent the requests of a revision lately? For people who want to know what keeps it awake.
//!
//! A sample is enough for that, so a busy revision pays one load of a number for nearly every request.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dataplane::Fields;
use http::header::HeaderName;
use parking_lot::Mutex;
use vocabulary::{Caller, Timestamp};

/// How long after a request was looked at the next one is.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// For how long after its request a caller is named: the word about a second is sent once it has ended.
const TOLD_FOR: Duration = Duration::from_secs(2);
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The last callers of a revision, the latest first.
#[derive(Debug, Default)]
pub(crate) struct CallerLog {
    /// When a request is looked at next, in nanoseconds of the activator's clock.
    sample_at: AtomicU64,
    /// Each caller once, with the time of its last request that was looked at.
    seen: Mutex<Vec<(Timestamp, Caller)>>,
}

impl CallerLog {
    /// Notes the sender of a request with these headers that came at `now`, unless another one was looked at
    /// just before. The sender's address is the first that `X-Forwarded-For` names if `peer`, the other end
    /// of the connection, is trusted to set it, and else that of `peer`.
    pub(crate) fn note(&self, now: Timestamp, fields: &Fields, peer: IpAddr, trusts: impl FnOnce() -> bool) {
        if now.as_nanos() < self.sample_at.load(Ordering::Relaxed) {
            return;
        }
        self.sample_at.store((now + SAMPLE_EVERY).as_nanos(), Ordering::Relaxed);
        let address = if trusts() { forwarded_for(fields).unwrap_or(peer) } else { peer };
        let agent = fields.user_agent().unwrap_or_default();
        let mut seen = self.seen.lock();
        let is_this =
            |caller: &Caller| caller.address == address && beginning(agent).eq(caller.user_agent.bytes());
        // Nearly always the sender is known: a text is made of it only when it is new.
        if let Some(place) = seen.iter().position(|(_, caller)| is_this(caller)) {
            seen[..=place].rotate_right(1);
            seen[0].0 = now;
        } else {
            let user_agent: String = beginning(agent).map(char::from).collect();
            seen.insert(0, (now, Caller { user_agent: user_agent.into(), address }));
            seen.truncate(Caller::NAMED_MAX);
        }
    }

    /// The callers of the last two seconds, the latest first.
    pub(crate) fn lately(&self, now: Timestamp) -> Vec<Caller> {
        let seen = self.seen.lock();
        let lately = seen.iter().filter(|(at, _)| now.saturating_since(*at) <= TOLD_FOR);
        lately.map(|(_, caller)| caller.clone()).collect()
    }
}

fn forwarded_for(fields: &Fields) -> Option<IpAddr> {
    let value = fields.of_hops()?.get(FORWARDED_FOR)?.as_bytes();
    let first = std::str::from_utf8(value).ok()?.split(',').next()?;
    first.trim().trim_matches(['[', ']']).parse().ok()
}

/// The beginning of a `User-Agent`, with `?` for each byte that people cannot read.
fn beginning(agent: &[u8]) -> impl Iterator<Item = u8> {
    agent.iter().take(Caller::AGENT_BYTES_MAX).map(|&byte| match byte {
        b' '..=b'~' => byte,
        _ => b'?',
    })
}

#[cfg(test)]
mod tests {
    use http::header::USER_AGENT;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn fields(pairs: &[(HeaderName, &'static str)]) -> Fields {
        let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        Fields::from(pairs.collect::<HeaderMap>())
    }

    #[test]
    fn callers_are_told_of_while_their_requests_are_new_the_latest_first() {
        let log = CallerLog::default();
        let at = |number: u64| Timestamp::from_millis(1000 + number * 100);
        let peer: IpAddr = [10, 0, 0, 7].into();
        for (number, agent) in [(0, "a"), (1, "b"), (2, "a")] {
            log.note(at(number), &fields(&[(USER_AGENT, agent)]), peer, || true);
        }
        let agents = |now| log.lately(now).into_iter().map(|caller| caller.user_agent).collect::<Vec<_>>();
        assert_eq!(agents(at(2)), ["a".into(), "b".into()]);
        assert_eq!(agents(at(22)), ["a".into()]);
        for number in 3..20 {
            let agent: &str = ["c", "d", "e", "f", "g", "h"][usize::try_from(number % 6).expect("small")];
            let agent = HeaderValue::from_str(agent).expect("visible");
            log.note(at(number), &Fields::from(HeaderMap::from_iter([(USER_AGENT, agent)])), peer, || true);
        }
        assert_eq!(agents(at(19)).len(), Caller::NAMED_MAX);
    }

    #[test]
    fn most_requests_of_a_busy_revision_are_not_looked_at() {
        let log = CallerLog::default();
        let at = Timestamp::from_millis(1000);
        log.note(at, &Fields::default(), [10, 0, 0, 7].into(), || true);
        log.note(at + Duration::from_millis(9), &Fields::default(), [10, 0, 0, 8].into(), || true);
        assert_eq!(log.lately(at).len(), 1);
    }

    #[test]
    fn the_address_is_that_of_trusted_proxies() {
        let peer: IpAddr = [10, 0, 0, 7].into();
        let rows = [
            ("192.0.2.1, 10.1.1.1", true, "192.0.2.1"),
            ("[fd00::1]", true, "fd00::1"),
            ("unknown", true, "10.0.0.7"),
            ("192.0.2.1", false, "10.0.0.7"),
        ];
        for (forwarded, is_trusted, expected) in rows {
            let log = CallerLog::default();
            let at = Timestamp::from_millis(1000);
            log.note(at, &fields(&[(FORWARDED_FOR, forwarded)]), peer, || is_trusted);
            assert_eq!(log.lately(at)[0].address.to_string(), expected);
        }
    }

    #[test]
    fn an_agent_is_the_same_caller_however_much_of_it_is_unreadable_or_cut_off() {
        let (log, peer) = (CallerLog::default(), IpAddr::from([10, 0, 0, 7]));
        let longest = "a".repeat(Caller::AGENT_BYTES_MAX);
        let user_agents = [&b"curl\xc3\xbc\t"[..], longest.as_bytes(), b"curl?\xff?", b"curl", b""];
        let longer = [longest.as_bytes(), b"b"].concat();
        for (number, agent) in (0..).zip(user_agents.into_iter().chain([&longer[..], user_agents[0]])) {
            let agent = HeaderValue::from_bytes(agent).expect("legal");
            let fields = Fields::from(HeaderMap::from_iter([(USER_AGENT, agent)]));
            log.note(Timestamp::from_millis(1000 + number * 100), &fields, peer, || true);
        }
        let seen = log.lately(Timestamp::from_millis(2000));
        let agents: Vec<&str> = seen.iter().map(|caller| &*caller.user_agent).collect();
        assert_eq!(agents, ["curl???", &longest, "", "curl"]);
    }
}
