//! The page server with real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::routing::get;
use futures_util::stream;
use runtime::{Clock, PageLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// Pages of every kind: one that answers, one that waits for a word, and a stream without an end.
struct Pages {
    address: SocketAddr,
    places: PagePlaces,
    word: watch::Sender<bool>,
    _server: JoinHandle<Infallible>,
}

impl Pages {
    fn start(limits: PageLimits) -> Self {
        let places = PagePlaces::new(limits, Clock::start());
        let (word, said) = watch::channel(false);
        let waiting = move || {
            let mut said = said.clone();
            async move { said.wait_for(|is_said| *is_said).await.map(|_| "said\n").unwrap_or_default() }
        };
        let endless = || async {
            let first = stream::iter([Ok::<_, Infallible>("first\n")]);
            Body::from_stream(futures_util::StreamExt::chain(first, stream::pending()))
        };
        let large = || async { vec![b'x'; 16 << 20] };
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/page", get(|| async { "page\n" }))
            .route("/waiting", get(waiting))
            .route("/large", get(large))
            .route("/stream", get(endless));
        let server = PageServer::new(router).with_kinds(|uri| match uri.path() {
            "/stream" => PageKind::LongRead,
            path => PageKind::of_path(path),
        });
        let listener = runtime::listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let serving = server.serve(listener, &places).expect("it listens");
        Self { address, places, word, _server: tokio::spawn(serving) }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    /// A connection on which a page was asked for.
    async fn asked(&self, path: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("open");
        stream
    }

    /// The beginning of the answer, up to a line.
    async fn answer(&self, path: &str, last: &str) -> String {
        let mut stream = self.asked(path).await;
        read_until(&mut stream, last).await
    }
}

async fn read_until(stream: &mut TcpStream, last: &str) -> String {
    let mut answer = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&answer).contains(last) {
            if stream.read_buf(&mut answer).await.unwrap_or_default() == 0 {
                break;
            }
        }
    };
    let in_time = timeout(PATIENCE, reading).await.is_ok();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(in_time, "no {last:?} in {answer:?}");
    answer
}

/// How long it takes until the server has closed a connection.
async fn lasts(stream: &mut TcpStream) -> Duration {
    let clock = Clock::start();
    let began_at = clock.now();
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(90), stream.read_to_end(&mut rest)).await.expect("it is closed");
    clock.now().saturating_since(began_at)
}

#[tokio::test]
async fn silent_connections_keep_no_reader_out() {
    let pages = Pages::start(PageLimits::STANDARD);
    let mut silent = Vec::new();
    for _ in 0..800 {
        silent.push(pages.connect().await);
    }
    for path in ["/page", "/healthz"] {
        assert!(pages.answer(path, "\n").await.starts_with("HTTP/1.1 200"));
    }
    let PageLimits { connections, probes, .. } = PageLimits::STANDARD;
    assert!(pages.places.open() <= connections + probes, "{}", pages.places.open());
}

#[tokio::test]
async fn half_heads_keep_no_reader_out() {
    let pages = Pages::start(PageLimits::STANDARD);
    let mut half = Vec::new();
    for _ in 0..200 {
        let mut stream = pages.connect().await;
        stream.write_all(b"GET /page HTTP/1.1\r\nhost: x\r\nx-").await.expect("it is open");
        half.push(stream);
    }
    assert!(pages.answer("/page", "page\n").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn probes_are_answered_while_every_other_place_works() {
    let pages = Pages::start(PageLimits::STANDARD);
    let mut waiting = Vec::new();
    for _ in 0..PageLimits::STANDARD.connections {
        waiting.push(pages.asked("/waiting").await);
    }
    let mut streams = Vec::new();
    for number in 0..=PageLimits::STANDARD.long_reads {
        let mut stream = pages.asked("/stream").await;
        let answer = read_until(&mut stream, "\n\r\n").await;
        let expected = if number < PageLimits::STANDARD.long_reads { "200" } else { "503" };
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{number}: {answer}");
        streams.push(stream);
    }
    for _ in 0..20 {
        assert!(pages.answer("/healthz", "ok\n").await.starts_with("HTTP/1.1 200"));
    }
    let refused = pages.answer("/page", "moment\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("connection: close"), "{refused}");
    pages.word.send_replace(true);
    for mut stream in waiting {
        assert!(read_until(&mut stream, "said\n").await.starts_with("HTTP/1.1 200"), "none lost its place");
    }
    assert!(pages.answer("/page", "page\n").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_long_read_that_ends_gives_its_place_back() {
    let pages = Pages::start(PageLimits { long_reads: 1, ..PageLimits::STANDARD });
    for _ in 0..5 {
        let mut stream = pages.asked("/stream").await;
        let mut answer = read_until(&mut stream, "first\n").await;
        // The one before was hung up a moment ago.
        while answer.starts_with("HTTP/1.1 503") {
            stream = pages.asked("/stream").await;
            answer = read_until(&mut stream, "first\n").await;
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn a_head_has_its_time_and_sixteen_kilobytes() {
    assert_eq!(PageLimits::STANDARD.head_time, Duration::from_secs(5));
    let pages = Pages::start(PageLimits { head_time: Duration::from_secs(2), ..PageLimits::STANDARD });
    let mut slow = pages.connect().await;
    slow.write_all(b"GET /page HTTP/1.1\r\n").await.expect("it is open");
    let took = lasts(&mut slow).await;
    assert!((1..5).contains(&took.as_secs()), "{took:?}");
    for (bytes, status) in [(15 << 10, "200"), (17 << 10, "431")] {
        let mut stream = pages.connect().await;
        let head = format!("GET /page HTTP/1.1\r\nhost: x\r\nx-y: {}\r\n\r\n", "z".repeat(bytes));
        stream.write_all(head.as_bytes()).await.expect("it is open");
        let answer = read_until(&mut stream, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
    }
}

#[tokio::test]
async fn connections_are_kept_between_requests_and_closed_when_they_rest_for_too_long() {
    let limits = PageLimits { idle_time: Duration::from_secs(2), ..PageLimits::STANDARD };
    let pages = Pages::start(limits);
    let mut stream = pages.connect().await;
    for _ in 0..3 {
        stream.write_all(b"GET /page HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
        assert!(read_until(&mut stream, "page\n").await.starts_with("HTTP/1.1 200"));
    }
    let took = lasts(&mut stream).await;
    assert!((1..8).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_holds_its_connection_for_a_while_and_a_slow_reader_gets_all_of_it() {
    let limits = PageLimits { stall_time: Duration::from_secs(2), ..PageLimits::STANDARD };
    let pages = Pages::start(limits);
    let stuck = pages.asked("/large").await;
    let mut slow = pages.asked("/large").await;
    let mut read = 0;
    let mut piece = vec![0; 2 << 20];
    // Longer in all than a connection may rest.
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        read += slow.read_exact(&mut piece).await.expect("it is sent");
    }
    assert_eq!(read, 16 << 20);
    let gone = async {
        while pages.places.open() > 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the place is free");
    drop(stuck);
}
