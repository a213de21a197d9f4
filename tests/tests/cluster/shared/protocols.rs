//! What lasts goes through a Service too: gRPC over HTTP/2 without TLS, and WebSockets.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream};
use http::{Request, Version};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tests::cluster::{PATIENCE, RequestPath, Workload, WorkloadPlan, in_namespace};
use tests::eventually;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Fails unless the answer comes in time.
async fn soon<Answer>(what: &str, answer: impl Future<Output = Answer>) -> Answer {
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

/// A call of gRPC that goes on; the app sends each message back.
pub(crate) struct EchoCall {
    messages: mpsc::Sender<Bytes>,
    answers: Incoming,
}

impl EchoCall {
    pub(crate) async fn begin(at: SocketAddr) -> Self {
        let io = TokioIo::new(TcpStream::connect(at).await.expect("somebody listens"));
        let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
        let (mut sender, connection) = shaken.expect("the server speaks HTTP/2");
        // A request that waits for an answer on it sees how a connection ends.
        tokio::spawn(async { connection.await.unwrap_or_default() });
        let (messages, receiver) = mpsc::channel::<Bytes>(1);
        let frames = stream::unfold(receiver, |mut receiver| async move {
            let message = receiver.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(Frame::data(message)), receiver))
        });
        let request = Request::post("http://hello/stream").version(Version::HTTP_2);
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        let request = request.body(StreamBody::new(frames).boxed_unsync()).expect("it is well-formed");
        let response = soon("the call begins", sender.send_request(request)).await;
        let response = response.expect("there is an answer");
        assert_eq!((response.status().as_u16(), &response.headers()["x-port"]), (200, &8080.into()));
        Self { messages, answers: response.into_body() }
    }

    pub(crate) async fn echoes(&mut self, text: &str) {
        // Five bytes before each message.
        let mut message = vec![0, 0, 0, 0, u8::try_from(text.len()).expect("it is short")];
        message.extend(text.as_bytes());
        self.messages.send(message.clone().into()).await.expect("the call goes on");
        let mut seen = Vec::new();
        while seen.len() < message.len() {
            let frame = soon("an echo", self.answers.frame()).await.expect("the call goes on");
            seen.extend(frame.expect("it is whole").into_data().expect("no trailers yet"));
        }
        assert_eq!(seen, message);
    }

    async fn ends(self) {
        drop(self.messages);
        let rest = soon("the end of the call", self.answers.collect()).await.expect("a clean end");
        assert_eq!(rest.trailers().expect("trailers come last")["grpc-status"], "0");
    }
}

pub(crate) struct EchoSocket(WebSocketStream<TcpStream>);

impl EchoSocket {
    pub(crate) async fn open(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).await.expect("somebody listens");
        let shaken = tokio_tungstenite::client_async("ws://hello/websocket", stream);
        let (socket, response) = soon("the switch of protocols", shaken).await.expect("the app switches");
        assert_eq!(response.status(), 101);
        Self(socket)
    }

    pub(crate) async fn echoes(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("the socket is open");
        let echoed = soon("an echo", self.0.next()).await.expect("the socket is open");
        assert_eq!(echoed.expect("the socket is whole"), Message::text(text));
    }

    async fn ends(mut self) {
        self.0.close(None).await.expect("the socket is open");
        let last = soon("the app's close", self.0.next()).await;
        assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
    }
}

/// One conversation of each protocol, open at once.
struct Conversations {
    call: EchoCall,
    socket: EchoSocket,
}

impl Conversations {
    async fn begin(hello: &Workload) -> Self {
        let (call, socket) = tokio::join!(EchoCall::begin(hello.address), EchoSocket::open(hello.address));
        let mut conversations = Self { call, socket };
        conversations.go_on().await;
        conversations
    }

    async fn go_on(&mut self) {
        for text in ["one", "two"] {
            tokio::join!(self.call.echoes(text), self.socket.echoes(text));
        }
    }

    async fn end(self) {
        tokio::join!(self.call.ends(), self.socket.ends());
    }
}

#[test]
fn calls_and_sockets_begin_at_zero_and_outlast_a_switch_of_the_path_and_a_deletion_of_their_pod() {
    in_namespace("protocols", async |namespace| {
        let plan = WorkloadPlan::new("hello").by(RequestPath::ThroughActivator);
        let plan =
            plan.annotated("ebb.dev/routing-dwell", "0s").template_annotated("ebb.dev/drain-limit", "30s");
        let hello = plan.create(&namespace).await;
        hello.has_pods(0).await;
        let mut through = Conversations::begin(&hello).await;
        hello.goes_by(RequestPath::Direct).await;
        hello.is_served_directly().await;
        let mut direct = Conversations::begin(&hello).await;
        through.go_on().await;

        let deleted = hello.delete_a_pod().await;
        eventually("another pod serves", PATIENCE, || async {
            let serving = hello.served_by().await;
            let is_so = !serving.contains(&deleted) && serving.iter().any(|pod| pod.starts_with("hello-"));
            if is_so { Ok(()) } else { Err(format!("{serving:?}")) }
        })
        .await;
        through.go_on().await;
        direct.go_on().await;
        Conversations::begin(&hello).await.end().await;
        through.end().await;
        direct.end().await;
        hello.has_pods(0).await;
    });
}
