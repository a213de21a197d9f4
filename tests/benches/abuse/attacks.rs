//! The attacks: what each one sends, and how often.

use tests::bench::proxies::Protocol;

use super::attacker::Attacker;
use super::{frames, heads, hogs, pages, texts};

/// Which of a contestant's ports is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Requests,
    /// Every other port it listens on: one of them is its link.
    Others,
    /// Its pages: the admin port of a queue-proxy, the API of `ebb up`. Honest clients ask there, too.
    Pages,
    /// The pages of a pod.
    PodPages,
}

/// What an attack may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Memory by the number of connections.
    ByConnection,
    /// The same memory for each attack, and a median beside HAProxy's under the same attack.
    BesideHaproxy,
}

/// One attack: its name, its size and what it does.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// What honest clients speak beside it, and with which the app is reached.
    pub(crate) protocol: Protocol,
    pub(crate) door: Door,
    pub(crate) bounds: Bounds,
    /// The number of connections that are open at once.
    pub(crate) connections: u32,
    /// Goes on until its time is over.
    pub(crate) carry_out: fn(&Attacker),
}

const fn http2(name: &'static str, connections: u32, carry_out: fn(&Attacker)) -> Attack {
    let bounds = Bounds::ByConnection;
    Attack { name, protocol: Protocol::H2c, door: Door::Requests, bounds, connections, carry_out }
}

const fn http1(name: &'static str, connections: u32, carry_out: fn(&Attacker)) -> Attack {
    Attack { protocol: Protocol::Http1, ..http2(name, connections, carry_out) }
}

impl Attack {
    const fn beside_haproxy(self) -> Self {
        Self { bounds: Bounds::BesideHaproxy, ..self }
    }

    const fn at(self, door: Door) -> Self {
        Self { door, ..self }
    }
}

/// Every attack, in the order of the report.
pub(crate) const ATTACKS: [Attack; 39] = [
    http2("one-byte DATA, unread", 1, hogs::bytes_that_nobody_reads),
    http2("heads of static references", 4, hogs::heads_of_references),
    http2("responses, closed window", 40, hogs::responses_that_nobody_takes),
    http2("references after a head too large", 4, frames::endless_references),
    http2("PING", 4, frames::pings),
    http2("PING, answers unread", 4, frames::pings_unread),
    http2("SETTINGS", 4, frames::settings_again),
    http2("PRIORITY", 4, frames::priorities),
    http2("WINDOW_UPDATE", 4, frames::window_updates),
    http2("unknown frames", 4, frames::unknown),
    http2("SETTINGS acknowledged", 4, frames::settings_acknowledged),
    http2("PING acknowledged", 4, frames::pings_acknowledged),
    http2("RST_STREAM again", 4, frames::resets_again),
    http2("rapid reset", 4, frames::rapid_resets),
    http2("empty CONTINUATION", 4, frames::empty_continuations),
    http2("empty DATA", 4, frames::empty_data),
    http2("DATA on reset streams", 4, frames::data_on_reset_streams),
    http2("padding", 4, frames::padding),
    http2("idle connections, HTTP/2", 5000, hogs::idle_http2),
    http2("cancels, 200/s each", 16, hogs::cancels),
    http1("idle connections, HTTP/1.1", 5000, hogs::idle_http1),
    http1("slow heads", 500, texts::slow_heads),
    http1("heads in single bytes", 4, texts::heads_in_single_bytes),
    http1("responses unread, HTTP/1.1", 200, texts::responses_unread),
    http1("what is no request", 16, texts::write_junk),
    http1("app: head in single bytes", 4, texts::answers_in_single_bytes),
    http1("app: endless 103", 4, texts::endless_interim),
    http1("fragments on the link's port", 16, hogs::fragments).at(Door::Others),
    http1("heads of 250 KB, HTTP/1.1", 8, heads::beyond_the_limit_http1).beside_haproxy(),
    http1("heads of 100 KB, HTTP/1.1", 200, heads::large_http1).beside_haproxy(),
    http1("half heads, HTTP/1.1", 800, heads::halves_http1).beside_haproxy(),
    http2("heads of 250 KB, HTTP/2", 8, heads::beyond_the_limit_http2).beside_haproxy(),
    http2("heads of 120 KB, HTTP/2", 8, heads::near_the_limit_http2).beside_haproxy(),
    http2("half heads, HTTP/2", 200, heads::halves_http2).beside_haproxy(),
    http2("table-size updates", 4, heads::table_size_updates).beside_haproxy(),
    http2("MadeYouReset", 4, frames::made_you_reset).beside_haproxy(),
    http1("pages: idle sockets", 800, hogs::idle_http1).beside_haproxy().at(Door::Pages),
    http1("pages: waits for the drain", 64, pages::waits_for_the_drain).beside_haproxy().at(Door::PodPages),
    http1("nothing", 1, texts::nothing),
];
