//! An open-loop client that accounts for every request.
//!
//! Requests leave at their planned instants whether or not earlier ones were answered, because a client that
//! waits for answers hides exactly the stalls that a test looks for. Every request ends in one [`Outcome`];
//! [`Tally`] adds them up, and what is neither an answer, nor a refusal that names its reason, nor one of the
//! product's three stated exceptions is *lost*.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};

use crate::bench::clock;

/// A request without an answer after this long is lost, unless the test says otherwise.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many requests of one load may be written in the very instant in which their idle connection is closed:
/// programs say before they close one, so that this takes a server that does not (an app that ends).
const CLOSED_AT_MOST: usize = 3;

/// How one request ended, as the client saw it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// 200 with the whole, right body.
    Answered,
    /// A refusal of ebb's, with its reason: status and the first word of `ebb-error`.
    Refused(u16, String),
    /// Exception: the response had begun and broke off visibly.
    BrokenAfterStart,
    /// Exception: written on an idle connection that closed in that instant, or on one not yet accepted.
    ClosedWhileIdle,
    /// No process listened, so nothing was sent. A program that has ended is not to blame for that; a Service
    /// is, for a node refuses so a connection without an endpoint.
    ConnectionRefused,
    /// Anything else, with what was seen.
    Lost(String),
}

/// A request that was not answered; times as [`clock::now`] counts.
#[derive(Clone, Debug)]
pub struct Unanswered {
    /// The time at which the request was begun.
    pub begun: Duration,
    /// The time at which the outcome was known.
    pub ended: Duration,
    /// How the request ended, with what was seen.
    pub outcome: Outcome,
    /// The headers of what was answered instead; of a request that waited for a pod they say how long.
    pub headers: HeaderMap,
}

/// How often each outcome happened, and what the answers said.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of requests that were sent.
    pub sent: usize,
    /// The number of requests by their outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Those that were not answered.
    pub unanswered: Vec<Unanswered>,
    /// When each was begun that was, as [`clock::now`] counts.
    pub answered_since: Vec<Duration>,
    /// The largest number of requests that any app process reported to have held at once.
    pub most_in_one_pod: usize,
    /// The number of answered requests that an activator had let wait for a slot or a pod.
    pub waited: usize,
    /// Requests answered by each app process.
    pub by_process: BTreeMap<u32, usize>,
    /// When each pod's first answer had come, as [`clock::now`] counts. Pods name themselves on a cluster
    /// alone.
    pub pods_since: BTreeMap<String, Duration>,
}

impl Tally {
    /// Requests with the whole, right answer.
    pub fn answered(&self) -> usize {
        self.outcomes.get(&Outcome::Answered).copied().unwrap_or(0)
    }

    /// Requests refused with a reason.
    pub fn refused(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Refused(..)))
    }

    /// Requests that ended in one of the stated exceptions.
    pub fn excepted(&self) -> usize {
        let is_excepted = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::BrokenAfterStart | Outcome::ClosedWhileIdle | Outcome::ConnectionRefused
            )
        };
        self.count(is_excepted)
    }

    /// Requests that have no excuse.
    pub fn lost(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Lost(_)))
    }

    /// The number of requests whose outcome `counts`.
    pub fn count(&self, counts: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes.iter().filter(|(outcome, _)| counts(outcome)).map(|(_, count)| count).sum()
    }

    /// Panics unless sent = answered + refused + excepted, that is unless nothing was lost.
    pub fn assert_none_lost(&self) {
        assert!(self.sent > 0, "no request was sent");
        assert_eq!(
            self.sent,
            self.answered() + self.refused() + self.excepted() + self.lost(),
            "{:?}",
            self.outcomes
        );
        assert_eq!(self.lost(), 0, "lost requests: {:?}", self.outcomes);
    }

    /// Panics unless every request to a Service was answered, but for a few on idle connections that closed
    /// in that instant, which are printed.
    pub fn assert_nothing_missing(&self) {
        assert!(self.sent > 0, "no request was sent");
        let closed = self.count(|outcome| *outcome == Outcome::ClosedWhileIdle);
        assert_eq!(self.answered() + closed, self.sent, "{:?}; {:?}", self.outcomes, self.unanswered);
        assert!(closed <= CLOSED_AT_MOST, "{:?}; {:?}", self.outcomes, self.unanswered);
        if closed > 0 {
            println!("{closed} of {} were written as an idle connection closed", self.sent);
        }
    }

    /// Panics unless every request was answered with 200.
    pub fn assert_all_answered(&self) {
        assert!(self.sent > 0, "no request was sent");
        assert_eq!(self.answered(), self.sent, "{:?}", self.outcomes);
    }

    fn add(&mut self, (times, result): (RequestTimes, RequestResult)) {
        let RequestTimes { begun, ended } = times;
        if result.outcome == Outcome::Answered {
            self.answered_since.push(begun);
            let timings = result.headers.get_all("server-timing");
            self.waited +=
                usize::from(timings.iter().any(|timing| timing.as_bytes().starts_with(b"ebb-wait")));
        } else {
            let (outcome, headers) = (result.outcome.clone(), result.headers);
            self.unanswered.push(Unanswered { begun, ended, outcome, headers });
        }
        *self.outcomes.entry(result.outcome).or_default() += 1;
        self.most_in_one_pod = self.most_in_one_pod.max(result.in_flight);
        if let Some(process) = result.process {
            *self.by_process.entry(process).or_default() += 1;
        }
        if let Some(pod) = result.pod {
            self.note_pod(pod, ended);
        }
    }

    /// Adds the requests of another tally to this one.
    pub fn merge(&mut self, other: Self) {
        self.sent += other.sent;
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.unanswered.extend(other.unanswered);
        self.answered_since.extend(other.answered_since);
        self.most_in_one_pod = self.most_in_one_pod.max(other.most_in_one_pod);
        self.waited += other.waited;
        for (process, count) in other.by_process {
            *self.by_process.entry(process).or_default() += count;
        }
        for (pod, since) in other.pods_since {
            self.note_pod(pod, since);
        }
    }

    fn note_pod(&mut self, pod: String, answered: Duration) {
        let since = self.pods_since.entry(pod).or_insert(answered);
        *since = answered.min(*since);
    }
}

/// What to send, and when.
#[derive(Clone, Debug)]
pub struct Load {
    target: SocketAddr,
    host: String,
    path: String,
    body: Bytes,
    method: Method,
    headers: HeaderMap,
    patience: Duration,
    connections: Connections,
    pool: Arc<Pool>,
}

/// How long a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    /// As long as both ends like it.
    Kept,
    /// A connection of its own for each request.
    OneEach,
}

/// One request, and everything that was answered to it as it came over the wire.
pub async fn whole_answer(target: SocketAddr, host: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(target).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What has come of an answer once a text is in it. Panics if the answer ends before, or the limit passes.
pub async fn answer_until(stream: &mut TcpStream, text: &str, limit: Duration) -> String {
    let mut answer = Vec::new();
    let reading = async {
        let mut piece = vec![0; 1 << 16];
        while !String::from_utf8_lossy(&answer).contains(text) {
            let length = stream.read(&mut piece).await.expect("it is open");
            assert!(length > 0, "the answer ended: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..length]);
        }
    };
    tokio::time::timeout(limit, reading).await.expect("it comes in time");
    String::from_utf8_lossy(&answer).into_owned()
}

impl Load {
    /// Requests to the Host of `service` at `target`.
    pub fn new(target: SocketAddr, host: &str) -> Self {
        Self {
            target,
            host: host.to_owned(),
            path: "/".to_owned(),
            body: Bytes::new(),
            method: Method::GET,
            headers: HeaderMap::new(),
            patience: PATIENCE,
            connections: Connections::Kept,
            pool: Arc::default(),
        }
    }

    /// Asks for this path and query.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// POSTs a body of this many bytes, which the test app sends back.
    #[must_use]
    pub fn body(mut self, bytes: usize) -> Self {
        self.method = Method::POST;
        self.body = Bytes::from(
            (0..bytes).map(|index| b'a' + u8::try_from(index % 26).unwrap_or(0)).collect::<Vec<u8>>(),
        );
        self
    }

    /// Shares no connection with other clones: for a runtime of its own, whose end is the end of the
    /// connections that it drives.
    #[must_use]
    pub fn with_own_connections(mut self) -> Self {
        self.pool = Arc::default();
        self
    }

    /// Sends one more header with every request.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Each request has a connection of its own: for servers that close kept ones without a word.
    #[must_use]
    pub fn one_connection_each(mut self) -> Self {
        self.connections = Connections::OneEach;
        self
    }

    /// Gives up on a request after this long.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends one request and tells how it ended.
    pub async fn one(&self) -> Tally {
        self.burst(1).await
    }

    /// This many requests at the same instant.
    pub async fn burst(&self, count: usize) -> Tally {
        self.paced(count, Duration::ZERO).await
    }

    /// `per_second` requests each second, evenly, for `duration`.
    pub async fn steady(&self, per_second: u32, duration: Duration) -> Tally {
        let gap = Duration::from_secs(1) / per_second;
        let count = usize::try_from(duration.as_nanos() / gap.as_nanos()).unwrap_or(usize::MAX);
        self.paced(count, gap).await
    }

    /// The same beside the test, over connections of its own, until the test ends it.
    pub fn in_background(&self, per_second: u32) -> BackgroundLoad {
        let load = self.clone().with_own_connections();
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let gap = Duration::from_secs(1) / per_second;
        // The task that ends it notices a panic of it.
        let running =
            tokio::spawn(async move { load.paced_while(gap, |_| !asked.load(Ordering::Relaxed)).await });
        BackgroundLoad { is_over, running }
    }

    /// `count` requests, one each `gap`.
    pub async fn paced(&self, count: usize, gap: Duration) -> Tally {
        self.paced_while(gap, |sent| sent < count).await
    }

    /// One request each `gap` while more are wanted than these.
    async fn paced_while(&self, gap: Duration, is_more_wanted: impl Fn(usize) -> bool) -> Tally {
        let mut running = JoinSet::new();
        let mut tally = Tally::default();
        let mut ticks = (!gap.is_zero()).then(|| tokio::time::interval(gap));
        while is_more_wanted(tally.sent) {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            tally.sent += 1;
            let load = self.clone();
            running.spawn(async move { load.request().await });
            while let Some(done) = running.try_join_next() {
                tally.add(done.expect("a request task does not panic"));
            }
        }
        while let Some(done) = running.join_next().await {
            tally.add(done.expect("a request task does not panic"));
        }
        tally
    }

    /// `clients` that each send their next request when the former is answered, for `duration` (what `hey`
    /// does).
    pub async fn closed_loop(&self, clients: usize, duration: Duration) -> Tally {
        // It does nothing but end after that time.
        let over = tokio::spawn(tokio::time::sleep(duration));
        self.closed_loop_while(clients, move || !over.is_finished()).await
    }

    /// The same beside the test, over connections of its own, until the test ends it.
    pub fn closed_loop_in_background(&self, clients: usize) -> BackgroundLoad {
        let load = self.clone().with_own_connections();
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let is_more_wanted = move || !asked.load(Ordering::Relaxed);
        // The task that ends it notices a panic of it.
        let running = tokio::spawn(async move { load.closed_loop_while(clients, is_more_wanted).await });
        BackgroundLoad { is_over, running }
    }

    async fn closed_loop_while(
        &self,
        clients: usize,
        is_more_wanted: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Tally {
        let is_more_wanted = Arc::new(is_more_wanted);
        let mut running = JoinSet::new();
        for _ in 0..clients {
            let (load, is_more_wanted) = (self.clone(), Arc::clone(&is_more_wanted));
            running.spawn(async move {
                let mut tally = Tally::default();
                while is_more_wanted() {
                    tally.sent += 1;
                    tally.add(load.request().await);
                }
                tally
            });
        }
        let mut tally = Tally::default();
        while let Some(done) = running.join_next().await {
            tally.merge(done.expect("a client task does not panic"));
        }
        tally
    }

    async fn request(&self) -> (RequestTimes, RequestResult) {
        let begun = clock::now();
        let result = tokio::time::timeout(self.patience, self.attempt()).await.unwrap_or_else(|_| {
            RequestResult::from(Outcome::Lost(format!("no answer within {:?}", self.patience)))
        });
        (RequestTimes { begun, ended: clock::now() }, result)
    }

    async fn attempt(&self) -> RequestResult {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.parse().expect("tests use well-formed paths");
        request.headers_mut().extend(self.headers.clone());
        request
            .headers_mut()
            .insert(http::header::HOST, self.host.parse().expect("tests use well-formed hosts"));
        loop {
            let (mut sender, reused) = match self.pool.sender(self.target).await {
                Ok(sender) => sender,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    return RequestResult::from(Outcome::ConnectionRefused);
                }
                Err(error) => return RequestResult::from(Outcome::Lost(format!("connecting: {error}"))),
            };
            match sender.try_send_request(request).await {
                Ok(response) => return self.read(response, sender).await,
                Err(mut error) => match error.take_message() {
                    // The connection was found closed before a byte of the request was written: send it on
                    // another.
                    Some(unsent) if reused => request = unsent,
                    _ if reused => return RequestResult::from(Outcome::ClosedWhileIdle),
                    _ => {
                        return RequestResult::from(Outcome::Lost(format!(
                            "no response: {:?}",
                            error.error()
                        )));
                    }
                },
            }
        }
    }

    async fn read(
        &self,
        response: http::Response<Incoming>,
        sender: SendRequest<Full<Bytes>>,
    ) -> RequestResult {
        let (head, body) = response.into_parts();
        let number =
            |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
        let in_flight = number("x-in-flight").and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let process = number("x-process");
        let pod = head.headers.get("x-pod").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let Ok(body) = body.collect().await else {
            let headers = head.headers;
            return RequestResult { outcome: Outcome::BrokenAfterStart, in_flight, process, pod, headers };
        };
        let body = body.to_bytes();
        let is_kept = self.connections == Connections::Kept;
        if is_kept && head.headers.get(http::header::CONNECTION).is_none_or(|value| value != "close") {
            self.pool.give_back(sender).await;
        }
        let outcome = match (head.status, head.headers.get("ebb-error")) {
            (StatusCode::OK, None) if self.body.is_empty() || body == self.body => Outcome::Answered,
            (StatusCode::OK, None) => {
                Outcome::Lost(format!("a body of {} bytes came back as {}", self.body.len(), body.len()))
            }
            (status, Some(error)) => {
                let error = error.to_str().unwrap_or_default();
                Outcome::Refused(status.as_u16(), error.split(';').next().unwrap_or_default().to_owned())
            }
            (status, None) => {
                Outcome::Lost(format!("{status} without a reason: {}", String::from_utf8_lossy(&body)))
            }
        };
        RequestResult { outcome, in_flight, process, pod, headers: head.headers }
    }
}

/// Requests that go on until they are ended.
#[derive(Debug)]
pub struct BackgroundLoad {
    is_over: Arc<AtomicBool>,
    running: JoinHandle<Tally>,
}

impl BackgroundLoad {
    /// Goes on for a second after what the test has seen, so that requests meet that too, and then ends.
    pub async fn end_after_a_second(self) -> Tally {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.end().await
    }

    /// Sends no more, and waits for what is under way.
    pub async fn end(self) -> Tally {
        self.is_over.store(true, Ordering::Relaxed);
        self.running.await.expect("the client does not panic")
    }
}

struct RequestTimes {
    begun: Duration,
    ended: Duration,
}

struct RequestResult {
    outcome: Outcome,
    in_flight: usize,
    process: Option<u32>,
    pod: Option<String>,
    headers: HeaderMap,
}

impl From<Outcome> for RequestResult {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, in_flight: 0, process: None, pod: None, headers: HeaderMap::new() }
    }
}

/// Idle connections of one client.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<SendRequest<Full<Bytes>>>>);

impl Pool {
    /// A connection, and whether it was used before.
    async fn sender(&self, target: SocketAddr) -> std::io::Result<(SendRequest<Full<Bytes>>, bool)> {
        while let Some(mut sender) = self.0.lock().await.pop() {
            if sender.ready().await.is_ok() {
                return Ok((sender, true));
            }
        }
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(async move {
            // A request that waits for a response on it sees how the connection ends.
            let _ = connection.await;
        });
        Ok((sender, false))
    }

    async fn give_back(&self, sender: SendRequest<Full<Bytes>>) {
        self.0.lock().await.push(sender);
    }
}
