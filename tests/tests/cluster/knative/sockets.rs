//! An open-loop load of short conversations over WebSockets, each of which is accounted for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use tests::cluster::PATIENCE;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

/// Between the messages of a conversation, so that some are open whenever a program is replaced.
const PAUSE: Duration = Duration::from_millis(250);

/// Conversations that go on until they are ended.
pub(crate) struct SocketLoad {
    is_over: Arc<AtomicBool>,
    running: JoinHandle<SocketTally>,
}

/// How conversations ended, as their clients saw it.
#[derive(Debug, Default)]
pub(crate) struct SocketTally {
    /// The number of conversations that were begun.
    pub(crate) begun: usize,
    /// What went wrong, for each that did not end as it should.
    pub(crate) broken: Vec<String>,
}

impl SocketLoad {
    /// One conversation with the host each `gap`, over a connection of its own.
    pub(crate) fn begin(to: SocketAddr, host: &str, gap: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let url = format!("ws://{host}/websocket");
        // The test that ends it notices a panic of it.
        let running = tokio::spawn(async move {
            let (mut talking, mut tally) = (JoinSet::new(), SocketTally::default());
            let mut ticks = tokio::time::interval(gap);
            while !asked.load(Ordering::Relaxed) {
                ticks.tick().await;
                tally.begun += 1;
                let url = url.clone();
                talking.spawn(async move { talk(to, &url).await });
            }
            for ended in talking.join_all().await {
                tally.broken.extend(ended.err().map(|error| format!("{error:#}")));
            }
            tally
        });
        Self { is_over, running }
    }

    /// Begins no more, and waits for those that are under way.
    pub(crate) async fn end(self) -> SocketTally {
        self.is_over.store(true, Ordering::Relaxed);
        self.running.await.expect("no conversation panics")
    }
}

/// A whole conversation: both messages come back, and the closing handshake reaches both ends.
async fn talk(to: SocketAddr, url: &str) -> anyhow::Result<()> {
    let talking = async {
        let stream = TcpStream::connect(to).await.context("connecting")?;
        let (mut socket, _) = client_async(url, stream).await.context("switching protocols")?;
        for text in ["one", "two"] {
            socket.send(Message::text(text)).await.with_context(|| format!("sending {text}"))?;
            match socket.next().await {
                Some(Ok(echoed)) if echoed == Message::text(text) => {}
                other => bail!("instead of {text} came {other:?}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        socket.close(None).await.context("closing")?;
        let last = socket.next().await;
        if !matches!(last, Some(Ok(Message::Close(_)))) {
            bail!("instead of the app's close came {last:?}");
        }
        Ok::<(), anyhow::Error>(())
    };
    tokio::time::timeout(PATIENCE, talking).await.context("a conversation took too long")?
}
