//! The page server: `hyper` at the places that `runtime` keeps.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use runtime::{PageConnection, PageKind, PageListener, PagePlaces, PageSeat, PageStream, PageTurn};
use tower::ServiceExt as _;

/// The pages of one listener. Whatever has to be looked at before a page is a layer on its router.
#[derive(Clone)]
pub struct PageServer {
    router: Router,
    kind_of: fn(&Uri) -> PageKind,
    refuse: fn(StatusCode, String) -> Response,
}

impl PageServer {
    /// Pages none of which is a long read. Probes are told from others by their usual paths.
    pub fn new(router: Router) -> Self {
        let refuse = |status, why| (status, format!("{why}\n")).into_response();
        Self { router, kind_of: |uri| PageKind::of_path(uri.path()), refuse }
    }

    /// The same where this function tells the kinds of requests.
    #[must_use]
    pub fn with_kinds(self, kind_of: fn(&Uri) -> PageKind) -> Self {
        Self { kind_of, ..self }
    }

    /// The same with errors in the form that its other pages give them.
    #[must_use]
    pub fn with_refusals(self, refuse: fn(StatusCode, String) -> Response) -> Self {
        Self { refuse, ..self }
    }

    /// Serves pages at this listener until dropped. Connections live on as tasks of their own. Fails at once
    /// if the listener cannot be used.
    pub fn serve(
        self,
        listener: std::net::TcpListener,
        places: &PagePlaces,
    ) -> io::Result<impl Future<Output = Infallible> + use<>> {
        let mut door = PageListener::new(listener, places)?;
        let server = Arc::new(self);
        let head_bytes = places.limits().head_bytes;
        Ok(async move {
            loop {
                let connection = door.accept().await;
                // A panic ends this connection alone.
                tokio::spawn(Arc::clone(&server).serve_connection(connection, head_bytes));
            }
        })
    }

    async fn serve_connection(self: Arc<Self>, connection: PageConnection, head_bytes: usize) {
        let PageConnection { stream, peer, seat } = connection;
        // Answers are whole pieces, and nothing follows for which a small one should wait.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let (server, seat) = (Arc::clone(&self), seat.clone());
            async move { Ok::<_, Infallible>(server.answer(request, &seat).await) }
        });
        let mut http = http1::Builder::new();
        // The seat keeps the time of heads, and that of connections without one.
        http.max_buf_size(head_bytes).header_read_timeout(None);
        let serving = http.serve_connection(TokioIo::new(PageStream::new(stream, seat.clone())), service);
        // Cancelling is what a connection that must go is for. What has arrived by then is answered.
        tokio::select! {
            biased;
            ended = serving => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a connection to a page ended early");
                }
            }
            () = seat.must_go() => tracing::debug!(%peer, "a connection to a page was closed by its limits"),
        }
    }

    async fn answer(&self, request: Request<Incoming>, seat: &PageSeat) -> Response {
        let kind = (self.kind_of)(request.uri());
        let turn = match seat.begin(kind).await {
            Ok(turn) => turn,
            Err(busy) => {
                return closing((self.refuse)(StatusCode::SERVICE_UNAVAILABLE, busy.to_string()));
            }
        };
        let response = match self.router.clone().oneshot(request.map(Body::new)).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let response = response.map(|body| Body::new(TurnBody { body, _turn: turn }));
        match kind {
            PageKind::Probe | PageKind::Ordinary => response,
            // Its connection would come back to the places of others, where there may be no room.
            PageKind::LongRead | PageKind::OwnLongRead => closing(response),
        }
    }
}

/// The last answer of its connection.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The body of an answer. The request keeps its place until the body is written or dropped.
struct TurnBody {
    body: Body,
    _turn: PageTurn,
}

impl HttpBody for TurnBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
