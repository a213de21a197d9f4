//! What both proxies do to a request on its way in and to a response on its way out.

pub(crate) mod app_refusals;
pub(crate) mod bridge;
pub(crate) mod failed_hop;

use http::StatusCode;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use protocol::{Request, Response, connection_asks_to_upgrade, end_hop, has_hop_by_hop, remove_hop_by_hop};

use crate::body::upgrade::{ClientUpgrade, relay};
use crate::body::{Body, GuardedBody};
use crate::connection::drain::Drain;
use crate::refusal::{Refusal, RefusalReason};
use crate::timers::Timers;
use crate::upstream::Protocol;

/// How a request goes on to its next hop, and what its answer will need of it.
#[derive(Debug)]
pub struct ForwardingTerms {
    /// How to send it: as it came.
    pub protocol: Protocol,
    /// The client's side of an upgrade, if it asked for one.
    pub upgrade: Option<ClientUpgrade>,
}

impl ForwardingTerms {
    /// Removes the headers of `request` that concern the client's hop alone, except those of an upgrade, and
    /// takes the upgrade that the client offers out of its body.
    pub fn prepare(request: &mut Request<Body>) -> Self {
        let protocol = Protocol::of(request.version());
        let offered = request.body_mut().take_upgrade();
        let mut upgrade = None;
        match request.fields_mut().of_hops_mut() {
            None => end_hop(request.fields_mut()),
            Some(headers) if has_hop_by_hop(headers) => {
                let token = match protocol {
                    Protocol::Http1 => connection_asks_to_upgrade(headers),
                    Protocol::Http2 => None,
                };
                remove_hop_by_hop(headers);
                // An upgrade that the client did not offer in a way that can be taken, such as beside a body,
                // is not offered to the app.
                if let (Some(token), Some(offered)) = (token, offered) {
                    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
                    headers.insert(UPGRADE, token.clone());
                    upgrade = Some(offered.offering(token));
                }
            }
            Some(_) => {}
        }
        Self { protocol, upgrade }
    }
}

/// The way of one request's answer.
#[derive(Debug)]
pub struct Hop<'a> {
    /// The client's side of an upgrade, from [`ForwardingTerms`].
    pub upgrade: Option<ClientUpgrade>,
    /// The timers of the request; they go on until the answer is out.
    pub timers: Timers,
    /// Where upgraded streams are counted.
    pub drain: &'a Drain,
}

impl Hop<'_> {
    /// Turns the app's response into the client's: ends its hop, and ties timers and `guard` to whatever
    /// lasts longest, body or upgraded stream. A switch of protocols that the client did not ask for is an
    /// error.
    pub fn respond<Guard: 'static>(
        self,
        mut response: Response<Body>,
        guard: Guard,
    ) -> Result<Response<GuardedBody<Option<Guard>>>, Refusal> {
        let Self { upgrade, mut timers, drain } = self;
        timers.response_started();
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let app = std::mem::take(response.body_mut()).into_switched();
            let (Some(client), Some(app)) = (upgrade, app) else {
                return Err(Refusal::new(RefusalReason::UpstreamReset, "an unrequested switch of protocols"));
            };
            if !client.is_answered_by(response.headers()) {
                let detail = "a switch to another protocol than was asked for, or to none that is named";
                return Err(Refusal::new(RefusalReason::UpstreamReset, detail));
            }
            relay((client, app), timers, guard, drain);
            keep_upgrade_headers(&mut response);
            return Ok(response.map(|_| GuardedBody::new(Body::empty(), None)));
        }
        end_hop(response.fields_mut());
        Ok(response.map(|body| {
            // Without a body there is nothing left to time, and the timer would only have to be cancelled.
            let body = if body.is_empty() { body } else { body.with_timers(timers) };
            GuardedBody::new(body, Some(guard))
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
