//! What both proxies do to a request on its way in and to a response on its way out.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::{Method, Request, Response, StatusCode, Version};

use crate::body::{Body, Held};
use crate::drain::Drain;
use crate::headers::{connection_asks_to_upgrade, has_hop_by_hop, remove_hop_by_hop};
use crate::refusal::{Reason, Refusal};
use crate::timers::Timers;
use crate::upgrade::{ClientUpgrade, relay};
use crate::upstream::Protocol;

/// A request ready for its next hop, with what its answer will need.
#[derive(Debug)]
pub struct Forwarded {
    /// What to send. Its hop-by-hop headers are gone, but for those of an upgrade.
    pub request: Request<Body>,
    /// How to send it: as it came.
    pub protocol: Protocol,
    /// The client's side of an upgrade, if it asked for one.
    pub upgrade: Option<ClientUpgrade>,
}

impl Forwarded {
    /// Ends the client's hop.
    pub fn new(mut request: Request<Body>) -> Self {
        let protocol = Protocol::of(request.version());
        let offered = request.body_mut().take_upgrade();
        let headers = request.headers_mut();
        let mut upgrade = None;
        if has_hop_by_hop(headers) {
            let token = match protocol {
                Protocol::Http1 => connection_asks_to_upgrade(headers),
                Protocol::Http2 => None,
            };
            remove_hop_by_hop(headers);
            // What the client did not offer in a way that can be taken, such as beside a body, is not offered to the app.
            if let (Some(token), Some(offered)) = (token, offered) {
                headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
                headers.insert(UPGRADE, token.clone());
                upgrade = Some(offered.offering(token));
            }
        }
        Self { request, protocol, upgrade }
    }
}

/// What makes a request ambiguous or impossible to forward, as a refusal; the connection must close after it. Two servers that disagree on where a request ends
/// disagree on what the next one is (request smuggling), so nothing doubtful is passed on.
pub fn framing_problem<B>(request: &Request<B>) -> Option<Refusal> {
    let bad = |detail: &'static str| Some(Refusal::new(Reason::BadRequest, detail));
    if *request.method() == Method::CONNECT {
        return Some(
            Refusal::new(Reason::BadRequest, "client sent unsupported CONNECT request")
                .with_status(StatusCode::BAD_GATEWAY),
        );
    }
    // One look at each header is cheaper than a search for each name.
    let (mut encoding, mut length, mut host) = (None, None, None);
    for (name, value) in request.headers() {
        let (seen, twice) = match *name {
            TRANSFER_ENCODING => (&mut encoding, "the only transfer encoding is \"chunked\", once"),
            CONTENT_LENGTH => (&mut length, "more than one Content-Length"),
            HOST => (&mut host, "more than one Host"),
            _ => continue,
        };
        if seen.replace(value).is_some() {
            return bad(twice);
        }
    }
    match encoding {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            return bad("the only transfer encoding is \"chunked\", once");
        }
        Some(_) if length.is_some() => return bad("both Content-Length and Transfer-Encoding"),
        Some(_) | None => {}
    }
    let authority = request.uri().authority();
    match host {
        _ if authority.is_some_and(|authority| authority.as_str().contains('@')) => {
            bad("a target that names a user")
        }
        // Also where the target names one (RFC 9112 §3.2): a server that looks at the header alone finds nothing.
        None if request.version() == Version::HTTP_11 => bad("no Host"),
        Some(host) if !host.as_bytes().iter().all(|&byte| may_be_in_host(byte)) => {
            bad("a Host that is not the name of a host, perhaps with a port")
        }
        Some(_) | None => None,
    }
}

/// What a host and its port are written with (RFC 3986 §3.2.2). A user before it, a path behind it or a second host would be read by some and not by others.
pub(crate) const fn may_be_in_host(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'@' | b'/' | b'\\' | b'?' | b'#' | b',' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}'
        )
}

/// The way of one request's answer.
#[derive(Debug)]
pub struct Hop<'a> {
    /// The client's side of an upgrade, from [`Forwarded`].
    pub upgrade: Option<ClientUpgrade>,
    /// The timers of the request; they go on until the answer is out.
    pub timers: Timers,
    /// Where upgraded streams are counted.
    pub drain: &'a Drain,
}

impl Hop<'_> {
    /// Turns the app's response into the client's: ends its hop, and ties timers and `guard` to whatever lasts longest, body or upgraded stream. A
    /// switch of protocols that nobody asked for is an error.
    pub fn respond<Guard: 'static>(
        self,
        mut response: Response<Body>,
        guard: Guard,
    ) -> Result<Response<Held<Option<Guard>>>, Refusal> {
        let Self { upgrade, mut timers, drain } = self;
        timers.response_started();
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let app = std::mem::take(response.body_mut()).into_switched();
            let (Some(client), Some(app)) = (upgrade, app) else {
                return Err(Refusal::new(Reason::UpstreamReset, "an unrequested switch of protocols"));
            };
            if !client.is_answered_by(response.headers()) {
                let detail = "a switch to another protocol than was asked for, or to none that is named";
                return Err(Refusal::new(Reason::UpstreamReset, detail));
            }
            relay((client, app), timers, guard, drain);
            keep_upgrade_headers(&mut response);
            return Ok(response.map(|_| Held::new(Body::empty(), None)));
        }
        remove_hop_by_hop(response.headers_mut());
        Ok(response.map(|body| {
            // Without a body there is nothing left to time, and the timer would only have to be cancelled.
            let body = if body.is_empty() { body } else { body.with_timers(timers) };
            Held::new(body, Some(guard))
        }))
    }
}

/// A switch of protocols keeps exactly the two headers that say so.
fn keep_upgrade_headers(response: &mut Response<Body>) {
    let token = response.headers().get(UPGRADE).cloned();
    let headers = response.headers_mut();
    remove_hop_by_hop(headers);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(token) = token {
        headers.insert(UPGRADE, token);
    }
}
