//! Connections that stop speaking HTTP, as WebSockets do: the next hop is asked for the same, and bytes go
//! both ways until both ends are done (data plane §2.7 and §2.8).

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::request_gate::text;

/// A protocol that a client asks for, and its connection once that has switched.
pub(super) struct AskedUpgrade {
    protocol: HeaderValue,
    client: OnUpgrade,
}

impl AskedUpgrade {
    /// Takes the wish of a client out of its request; `None` for an ordinary request.
    pub(super) fn take(request: &mut Request<Incoming>) -> Option<Self> {
        let protocol = protocol(request.version(), request.headers())?;
        Some(Self { protocol, client: hyper::upgrade::on(request) })
    }

    /// Asks the next hop, too. The headers have been cleared of those that end at a hop.
    pub(super) fn ask_onward(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// The head of the answer for the client, where the next hop has switched protocols. Bytes are carried
    /// from then on; `guard` lives as long.
    pub(super) fn switch<Guard>(self, mut answer: Response<Incoming>, guard: Guard) -> Response<()>
    where
        Guard: Send + 'static,
    {
        let next = hyper::upgrade::on(&mut answer);
        // Ends when either end breaks off or both are done, which the client sees.
        tokio::spawn(carry(self.client, next, guard));
        answer.map(drop)
    }
}

/// The protocol that a request asks to switch to.
fn protocol(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut words = text(headers, CONNECTION.as_str()).split(',');
    let is_asked = words.any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| is_asked && version == Version::HTTP_11).cloned()
}

async fn carry<Guard>(client: OnUpgrade, next: OnUpgrade, guard: Guard) {
    if let Ok((client, next)) = tokio::try_join!(client, next) {
        let (mut client, mut next) = (TokioIo::new(client), TokioIo::new(next));
        let _ = tokio::io::copy_bidirectional(&mut client, &mut next).await;
    }
    drop(guard);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_asked_for_by_two_headers_of_http1() {
        let asked = |version, pairs: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (http::HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            protocol(version, &pairs.iter().map(pair).collect::<HeaderMap>()).is_some()
        };
        let whole = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        assert!(asked(Version::HTTP_11, &whole));
        assert!(!asked(Version::HTTP_2, &whole));
        assert!(!asked(Version::HTTP_11, &whole[..1]) && !asked(Version::HTTP_11, &whole[1..]));
    }
}
