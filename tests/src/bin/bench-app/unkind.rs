//! What an app can do to the proxy before it. Each way ends by itself.

use std::time::Duration;

use tests::bench::clock;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// How long the head is that comes in single bytes.
const HEAD: usize = 32 * 1024;
/// How many of its bytes leave before others have their turn.
const TURN: usize = 64;
/// How long an answer may be about to come.
const INTERIM_MAX: Duration = Duration::from_secs(10);
/// How many say so in a millisecond.
const INTERIMS: usize = 100;

/// One kind of misbehaviour of the app.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// `/unread/MS`: for so long, the request's body is not read; then the connection ends.
    Unread(Duration),
    /// `/bytewise`: a long head in single bytes (HTTP/1.1).
    Bytewise,
    /// `/interims`: 103, for ever (HTTP/1.1).
    Interims,
}

impl Way {
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path {
            "/bytewise" => Some(Self::Bytewise),
            "/interims" => Some(Self::Interims),
            _ => {
                let milliseconds = path.strip_prefix("/unread/")?.parse().ok()?;
                Some(Self::Unread(Duration::from_millis(milliseconds)))
            }
        }
    }

    /// Answers over HTTP/1.1, and ends the connection.
    pub(crate) async fn go(self, stream: &mut TcpStream) -> anyhow::Result<()> {
        match self {
            Self::Unread(time) => tokio::time::sleep(time).await,
            Self::Bytewise => {
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: {}\r\n\r\n", "a".repeat(HEAD));
                for turn in head.as_bytes().chunks(TURN) {
                    for byte in turn {
                        stream.write_all(&[*byte]).await?;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Self::Interims => {
                let many = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(INTERIMS);
                let end = clock::now() + INTERIM_MAX;
                while clock::now() < end {
                    stream.write_all(many.as_bytes()).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        Ok(())
    }

    /// Over HTTP/2, keeps a body without looking at it.
    pub(crate) async fn keep<Body>(self, body: Body) {
        if let Self::Unread(time) = self {
            tokio::time::sleep(time).await;
        }
        drop(body);
    }
}
