//! A stream that lasts keeps its pod, whatever the metric.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tests::bench::clock;
use tests::{ConfigMap, Ebb, Revision, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Four windows and a grace period of [`ConfigMap::short`]: without a reason to stay the pod is wanted no
/// more after 9 s.
const LONG: Duration = Duration::from_secs(25);

/// How many pieces a download has, of which one comes each 100 ms: it ends 5 s after [`LONG`].
const PIECES: usize = 300;

/// A service whose streams may last, and which ends them soon when its pod is wanted no more.
fn service(name: &str, metric: &str) -> Service {
    let service = Service::new(name).scaling("metric", metric).spec("timeoutSeconds: 0");
    service.annotation("ebb.dev/drain-limit", "1s")
}

fn config() -> ConfigMap {
    ConfigMap::short().set("routing-dwell", "0s")
}

/// The count is one, whatever the metric says.
fn assert_one_is_wanted(revision: &Revision, name: &str, opened: Duration) {
    let after = clock::since(opened);
    assert_eq!(revision.wanted(), 1, "{name} after {after:?}: {}", revision.decisions());
}

/// A download whose first piece has come.
struct Download {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Download {
    async fn begin(ebb: &Ebb, service: &Service, agent: &str) -> Self {
        let stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
        let mut download = Self { stream, received: Vec::new() };
        let head = format!(
            "GET /drip?pieces={PIECES} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n",
            service.host()
        );
        download.stream.write_all(head.as_bytes()).await.expect("open");
        while !download.text().contains("drip\n") {
            let read = download.stream.read_buf(&mut download.received).await.expect("open");
            assert!(read > 0, "the app answers: {}", download.text());
        }
        download
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// All that comes until the connection ends, in order or not.
    async fn end(mut self) -> String {
        let _ = self.stream.read_to_end(&mut self.received).await;
        self.text()
    }
}

async fn connect(ebb: &Ebb, service: &Service) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let url = format!("ws://{}/websocket", service.host());
    let (socket, response) = tokio_tungstenite::client_async(url, stream).await.expect("the app upgrades");
    assert_eq!(response.status(), 101);
    socket
}

async fn expect_echo(socket: &mut WebSocketStream<TcpStream>, name: &str) {
    let message = Message::text("ping");
    socket.send(message.clone()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let echo = tokio::time::timeout(Duration::from_secs(10), socket.next()).await;
    let echo = echo.unwrap_or_else(|_| panic!("{name}: no echo")).expect("the socket is open");
    assert_eq!(echo.unwrap_or_else(|error| panic!("{name}: {error}")), message, "{name}");
}

#[tokio::test]
async fn an_open_websocket_keeps_its_pod_under_metric_rps_as_under_concurrency() {
    let services = ["rps", "concurrency"].map(|metric| service(metric, metric));
    let ebb = Ebb::up(&services, &config()).await;
    let mut sockets = Vec::new();
    // A pod that has ended again by then is started for the socket.
    for service in &services {
        sockets.push((service.name(), connect(&ebb, service).await));
    }
    let opened = clock::now();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    while clock::since(opened) < LONG {
        second.tick().await;
        for (name, socket) in &mut sockets {
            expect_echo(socket, name).await;
            assert_one_is_wanted(&ebb.revision(name).await.expect("ebb answers"), name, opened);
        }
    }
    let (_, text, _) = ebb.run(&["explain", "rps"]).await;
    assert!(text.contains("not zero   1 request in flight for "), "{text}");
    drop(sockets);
    for service in &services {
        ebb.until_pods(service.name(), 0).await;
    }
}

#[tokio::test]
async fn a_download_keeps_its_pod_under_metric_rps_and_comes_whole() {
    let service = service("download", "rps");
    let ebb = Ebb::up(std::slice::from_ref(&service), &config()).await;
    let download = Download::begin(&ebb, &service, "curl/8").await;
    let opened = clock::now();
    let download = tokio::spawn(download.end());
    let mut second = tokio::time::interval(Duration::from_secs(1));
    while clock::since(opened) < LONG {
        second.tick().await;
        assert_one_is_wanted(&ebb.revision("download").await.expect("ebb answers"), "download", opened);
    }
    let answer = download.await.expect("no panic");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("0\r\n\r\n"), "{answer}");
    assert_eq!(answer.matches("drip\n").count(), PIECES);
    ebb.until_pods("download", 0).await;
}

#[tokio::test]
async fn an_open_stream_of_an_ignored_user_agent_holds_nothing_under_metric_rps() {
    let service = service("scraped", "rps");
    let ebb = Ebb::up(std::slice::from_ref(&service), &config().set("ignore-user-agents", "Scraper/")).await;
    ebb.until_pods("scraped", 1).await;
    let download = Download::begin(&ebb, &service, "Scraper/2.1").await;
    let download = tokio::spawn(download.end());
    ebb.until_within("scraped", "zero beside the stream", LONG, |revision| revision.wanted() == 0).await;
    assert!(!download.is_finished(), "the stream was over before the count was zero");
    download.abort();
    ebb.until_pods("scraped", 0).await;
}
