//! The app: where it listens, what it speaks, and the connections to it.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dataplane::{
    Body, ClientUpgrade, HeadLimits, PeerStart, Protocol, Request, Response, SendError, SendErrorKind,
    Upstreams, set_host, translate,
};
use vocabulary::AppProtocol;

/// The app's address and protocol, and the pool of connections to it.
pub(crate) struct AppEnd {
    upstreams: Upstreams,
    /// The loopback address at which the app answered last (L47): some apps listen at one of the two only.
    address: Cell<SocketAddr>,
    /// The host of a request without one, such as an HTTP/1.0 client's.
    host: String,
    /// The protocol that the configuration says the app speaks.
    protocol: AppProtocol,
    /// The protocol is not configured, and the app was found not to speak HTTP/2.
    is_without_http2: Cell<bool>,
}

impl AppEnd {
    pub(crate) fn new(upstreams: Upstreams, port: u16, protocol: AppProtocol) -> Self {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let host = address.to_string();
        Self { upstreams, address: Cell::new(address), host, protocol, is_without_http2: Cell::default() }
    }

    /// The host for a request that names none.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The protocol for a request that came over `came`. An offer to switch to another protocol (a WebSocket)
    /// goes on as it came: HTTP/2 has no such thing, and many apps that speak it speak HTTP/1.1 on the same
    /// port.
    pub(super) fn protocol_for(&self, came: Protocol, upgrade: Option<&ClientUpgrade>) -> Protocol {
        match self.protocol {
            AppProtocol::Unsaid if self.is_without_http2.get() => Protocol::Http1,
            AppProtocol::Unsaid => came,
            AppProtocol::Http1 => Protocol::Http1,
            AppProtocol::H2c if upgrade.is_some() => Protocol::Http1,
            AppProtocol::H2c => Protocol::Http2,
        }
    }

    /// Sets how large the head of a response of the app may be from now on.
    pub(super) fn limit_heads(&self, limits: HeadLimits) {
        self.upstreams.limit_heads(limits);
    }

    /// Sends the request to the loopback address at which the app listens.
    pub(super) async fn send(
        &self,
        mut protocol: Protocol,
        mut request: Box<Request<Body>>,
    ) -> Result<Response<Body>, SendError> {
        let usual = self.address.get();
        let mut to = usual;
        loop {
            let error = match self.upstreams.send(to, protocol, request).await {
                Ok(response) => {
                    self.address.set(to);
                    return Ok(response);
                }
                Err(error) => error,
            };
            request = match error {
                SendError { kind: SendErrorKind::NotHttp2, request: Some(unsent), .. }
                    if self.protocol == AppProtocol::Unsaid =>
                {
                    protocol = Protocol::Http1;
                    request = unsent;
                    self.over_http1(&mut request);
                    continue;
                }
                SendError { kind: SendErrorKind::ConnectRefused, request: Some(unsent), .. }
                    if to == usual =>
                {
                    unsent
                }
                // What the usual address said is what people want to read, unless the other one heard the
                // request.
                SendError { started: PeerStart::No, kind, request }
                    if to != usual && kind != SendErrorKind::NotHttp2 =>
                {
                    return Err(SendError {
                        kind: SendErrorKind::ConnectRefused,
                        started: PeerStart::No,
                        request,
                    });
                }
                error => {
                    // It may be another by now that listens there.
                    if matches!(error.kind, SendErrorKind::MalformedAnswer(_)) {
                        self.is_without_http2.set(false);
                    }
                    return Err(error);
                }
            };
            self.is_without_http2.set(false);
            // Not the other one of what is usual by now: another request may have found out meanwhile, and
            // this one would never get there.
            to = other_address(usual);
        }
    }

    /// Whether a connection to the app can be made. The connection is closed at once.
    pub(super) async fn is_listening(&self) -> bool {
        tokio::net::TcpStream::connect(self.address.get()).await.is_ok()
    }

    /// Rewrites a request of an HTTP/2 client for an app that speaks HTTP/1.1 alone.
    fn over_http1(&self, request: &mut Request<Body>) {
        if !self.is_without_http2.replace(true) {
            tracing::info!(
                "the app does not speak HTTP/2; requests of HTTP/2 clients go to the app over HTTP/1.1"
            );
        }
        translate(request, Protocol::Http1);
        set_host(request, None, &self.host);
    }
}

/// The loopback address of the other family.
fn other_address(address: SocketAddr) -> SocketAddr {
    let other = match address.ip() {
        IpAddr::V4(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    SocketAddr::new(other, address.port())
}
