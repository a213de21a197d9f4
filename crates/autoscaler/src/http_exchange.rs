//! One question over HTTP/1.1 and its answer, in a connection that ends with them.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// Asks over a stream that was opened for this. An answer with more bytes than `bytes_max` is an error.
pub(crate) async fn exchange<Stream>(
    stream: Stream,
    request: Request<Empty<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), String>
where
    Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok::<_, String>((status, body.to_bytes()))
    };
    // The connection is driven here, so that it ends with the question, however that ends.
    tokio::pin!(exchange);
    // The exchange is pinned outside, so it is not cancelled when the connection ends first; the connection
    // may be, once there is an answer.
    tokio::select! {
        answered = &mut exchange => answered,
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(error.to_string()),
        },
    }
}
