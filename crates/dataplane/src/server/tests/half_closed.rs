//! Clients that end their sending side behind a whole request, clients that were closed, which look the same,
//! and clients that reset their connection.

use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};

use super::silent::die;
use super::*;
use crate::body::BodyError;
use crate::server::limits::HalfClosedLimits;

/// The shortest interval that the kernel knows between two questions.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

const SILENCE: Duration = Duration::from_millis(300);

/// Where a request is when its client goes.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// No response has begun: in a queue, or in the app.
    Held,
    /// A response has begun, and nothing of it comes.
    QuietStream,
}

const PLACES: [Place; 2] = [Place::Held, Place::QuietStream];

impl Place {
    fn path(self) -> &'static str {
        match self {
            Self::Held => "/held",
            Self::QuietStream => "/quiet",
        }
    }
}

/// Answers with the path; on `/held` when it is told to, on `/quiet` with a piece and then with another when
/// it is told to. Knows how many requests are under way.
#[derive(Default)]
struct Exchanges {
    gate: Rc<Notify>,
    under_way: Rc<RefCell<Vec<String>>>,
}

/// One request that is under way.
struct UnderWay {
    all: Rc<RefCell<Vec<String>>>,
    path: String,
}

impl UnderWay {
    fn begin(all: &Rc<RefCell<Vec<String>>>, path: &str) -> Self {
        all.borrow_mut().push(path.to_owned());
        Self { all: Rc::clone(all), path: path.to_owned() }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut all = self.all.borrow_mut();
        let at = all.iter().position(|path| *path == self.path).expect("it was put there");
        all.remove(at);
    }
}

/// Pieces that come when the gate opens, between long pauses.
struct QuietBody {
    next: Option<Pin<Box<dyn Future<Output = ()>>>>,
    is_first: bool,
    _under_way: UnderWay,
}

impl HttpBody for QuietBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if std::mem::take(&mut self.is_first) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"<begun>")))));
        }
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        if next.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.next = None;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"<ended>")))))
    }
}

impl Service for Exchanges {
    type Body = Body;

    async fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> Result<Response<Body>, Abort> {
        let path = request.uri().path().to_owned();
        let under_way = UnderWay::begin(&self.under_way, &path);
        let gate = Rc::clone(&self.gate);
        match path.as_str() {
            "/held" => gate.notified().await,
            "/hop" => {
                connection.mark_as_hop();
                gate.notified().await;
            }
            "/quiet" => {
                let next = Some(Box::pin(async move { gate.notified().await }) as Pin<Box<_>>);
                let body = QuietBody { next, is_first: true, _under_way: under_way };
                return Ok(Response::new(Body::custom(body)));
            }
            "/dripping" => {
                // Longer than the silence, and never silent for as long.
                let (pieces, body) = tokio::sync::mpsc::channel(1);
                tokio::task::spawn_local(async move {
                    for _ in 0..12 {
                        tokio::time::sleep(SILENCE / 4).await;
                        let _ = pieces.send(Bytes::from_static(b".")).await;
                    }
                    let _ = pieces.send(Bytes::from_static(b"<dripped>")).await;
                });
                return Ok(Response::new(Body::custom(ChannelBody(body))));
            }
            _ => {}
        }
        Ok(Response::new(Body::full(format!("<{path}>"))))
    }
}

struct ChannelBody(tokio::sync::mpsc::Receiver<Bytes>);

impl HttpBody for ChannelBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

struct HalfClosingServer {
    address: SocketAddr,
    drain: Drain,
    service: Rc<Exchanges>,
}

impl HalfClosingServer {
    fn start(half_closed: HalfClosedLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let (drain, service) = (Drain::new(), Rc::<Exchanges>::default());
        let limits = ServerLimits { half_closed, ..ServerLimits::default() };
        let serving = serve(listener, Rc::clone(&service), drain.clone(), limits);
        tokio::task::spawn_local(async move { serving.await.expect("a listener") });
        Self { address, drain, service }
    }

    /// With a silence that no test reaches.
    fn patient() -> Self {
        Self::start(HalfClosedLimits { probe_interval: PROBE_INTERVAL, silence: FOR_EVER })
    }

    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(text.as_bytes()).await.expect("open");
        stream
    }

    /// A client whose request has come to `place`.
    async fn client_at(&self, place: Place) -> TcpStream {
        let path = place.path();
        let mut stream = self.send(&get(path)).await;
        match place {
            Place::Held => self.until_under_way(path, 1).await,
            Place::QuietStream => {
                let begun = answer(&mut stream).await;
                assert!(begun.ends_with("<begun>"), "{begun}");
                // The end of the chunk.
                stream.read_u16().await.expect("open");
            }
        }
        stream
    }

    async fn until_under_way(&self, path: &str, count: usize) {
        let under_way = || self.service.under_way.borrow().iter().filter(|other| *other == path).count();
        until(&format!("{count} of {path} under way"), || under_way() == count).await;
    }

    /// Waits until the server has read the end of its one client.
    async fn until_half_closed(&self) {
        until("the end was read", || self.drain.budget().open() > self.drain.connections()).await;
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

async fn end_sending(stream: &mut TcpStream) {
    stream.shutdown().await.expect("open");
}

/// Closes a connection so that its server is told by a reset.
fn reset(stream: TcpStream) {
    stream.set_zero_linger().expect("open");
    drop(stream);
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("it closes in order");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_whole_request_is_answered_when_the_client_has_ended_its_sending_side() {
    run(async {
        let server = HalfClosingServer::patient();
        let two = get("/1") + &get("/2");
        let old = "GET /old HTTP/1.0\r\n\r\n";
        let post = "POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
        let chunked =
            "POST /chunked HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
        for (text, last) in [
            (&*get("/x"), "</x>"),
            (&two, "</2>"),
            (old, "</old>"),
            (post, "</post>"),
            (chunked, "</chunked>"),
        ] {
            let mut stream = server.send(text).await;
            end_sending(&mut stream).await;
            let answer = rest(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.") && answer.ends_with(last), "{text:?}: {answer:?}");
            assert_eq!(answer.matches(" 200 OK\r\n").count(), text.matches(" HTTP/1.").count(), "{answer}");
        }
    });
}

#[test]
fn a_request_of_a_half_closed_client_is_answered_however_long_it_takes() {
    run(async {
        // Side by side, for the kernel asks no more often than each second.
        let tried = PLACES.map(|place| async move {
            let server = HalfClosingServer::patient();
            let mut stream = server.client_at(place).await;
            end_sending(&mut stream).await;
            server.until_half_closed().await;
            // The kernel has asked the client and was answered, more than once.
            tokio::time::sleep(PROBE_INTERVAL * 3).await;
            server.service.gate.notify_waiters();
            let answer = rest(&mut stream).await;
            let end = match place {
                Place::Held => "\r\nconnection: close\r\n",
                Place::QuietStream => "<ended>\r\n0\r\n\r\n",
            };
            assert!(answer.contains(end), "{place:?}: {answer:?}");
            until("it is closed", || server.drain.connections() == 0).await;
            assert_eq!(server.drain.budget().open(), 0, "the second descriptor is given back");
        });
        futures_util::future::join_all(tried).await;
    });
}

#[test]
fn a_client_that_answers_no_question_after_its_end_loses_its_place() {
    run(async {
        // Side by side, for the kernel asks no more often than each second.
        let tried = PLACES.map(|place| async move {
            let server = HalfClosingServer::patient();
            let mut stream = server.client_at(place).await;
            end_sending(&mut stream).await;
            server.until_half_closed().await;
            // From here on nothing reaches it, as if its machine were gone.
            die(&stream);
            server.until_under_way(place.path(), 0).await;
            until("it is closed", || server.drain.connections() == 0).await;
        });
        futures_util::future::join_all(tried).await;
    });
}

#[test]
fn a_reset_cancels_at_once_before_and_after_the_end_of_the_sending_side() {
    run(async {
        // Questions that come too late to tell.
        let server =
            HalfClosingServer::start(HalfClosedLimits { probe_interval: FOR_EVER, silence: FOR_EVER });
        for place in PLACES {
            reset(server.client_at(place).await);
            server.until_under_way(place.path(), 0).await;
            let mut stream = server.client_at(place).await;
            end_sending(&mut stream).await;
            server.until_half_closed().await;
            reset(stream);
            server.until_under_way(place.path(), 0).await;
            until("it is closed", || server.drain.connections() == 0).await;
        }
    });
}

#[test]
fn a_reset_is_noticed_behind_bytes_that_nobody_reads() {
    run(async {
        let server = HalfClosingServer::patient();
        let upload = "POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nthe beginning";
        for text in [get("/held") + &get("/next"), upload.to_owned()] {
            let stream = server.send(&text).await;
            server.until_under_way("/held", 1).await;
            reset(stream);
            server.until_under_way("/held", 0).await;
        }
    });
}

#[test]
fn a_request_that_is_not_whole_ends_with_its_client() {
    run(async {
        let server = HalfClosingServer::patient();
        let mut stream = server.send("POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n").await;
        server.until_under_way("/held", 1).await;
        end_sending(&mut stream).await;
        assert_eq!(rest(&mut stream).await, "");
        server.until_under_way("/held", 0).await;
    });
}

#[test]
fn a_hop_that_ends_its_sending_side_is_gone() {
    run(async {
        let server = HalfClosingServer::patient();
        let mut stream = server.send(&get("/hop")).await;
        server.until_under_way("/hop", 1).await;
        end_sending(&mut stream).await;
        assert_eq!(rest(&mut stream).await, "");
        server.until_under_way("/hop", 0).await;
    });
}

#[test]
fn a_quiet_stream_to_a_half_closed_client_ends_and_one_that_goes_on_does_not() {
    run(async {
        let server =
            HalfClosingServer::start(HalfClosedLimits { probe_interval: FOR_EVER, silence: SILENCE });
        let mut quiet = server.client_at(Place::QuietStream).await;
        end_sending(&mut quiet).await;
        let mut dripping = server.send(&get("/dripping")).await;
        end_sending(&mut dripping).await;
        // No terminator: it must not look whole.
        assert_eq!(rest(&mut quiet).await, "");
        server.until_under_way("/quiet", 0).await;
        assert!(rest(&mut dripping).await.ends_with("<dripped>\r\n0\r\n\r\n"));
        // A request that has no response yet may wait for as long as it takes.
        let mut held = server.client_at(Place::Held).await;
        end_sending(&mut held).await;
        server.until_half_closed().await;
        tokio::time::sleep(SILENCE * 2).await;
        server.service.gate.notify_waiters();
        assert!(rest(&mut held).await.ends_with("</held>"));
    });
}
