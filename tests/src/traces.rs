//! A collector of traces, and what it has seen.
//!
//! It reads OpenTelemetry's messages by an own idea of them, which the suite `peers` compares with that of
//! the field's own decoder.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::{Message, Oneof};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Ebb;

/// One hop of one request.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SeenSpan {
    /// Whose attributes they are: the program's.
    pub program: BTreeMap<String, Value>,
    /// The id of the trace, in hexadecimal digits.
    pub trace: String,
    /// The id of the span, in hexadecimal digits.
    pub span: String,
    /// Empty for the first of a trace.
    pub parent: String,
    /// The name of the span, as viewers show it.
    pub name: String,
    /// What other tools say in the header `tracestate`.
    pub trace_state: String,
    /// The beginning, in nanoseconds since the epoch.
    pub began: u64,
    /// The end, in nanoseconds since the epoch.
    pub ended: u64,
    /// What it says of its request.
    pub attributes: BTreeMap<String, Value>,
    /// The names of what happened, in order.
    pub events: Vec<String>,
    /// Whether the span says that something went wrong.
    pub is_error: bool,
}

impl SeenSpan {
    /// The program that tells it.
    pub fn service(&self) -> &str {
        self.program.get("service.name").and_then(Value::as_str).unwrap_or_default()
    }

    /// How long something took, in seconds.
    pub fn seconds(&self, attribute: &str) -> Option<f64> {
        self.attributes.get(attribute)?.as_f64()
    }
}

/// Takes every batch that it is sent.
#[derive(Debug)]
pub struct Collector {
    /// The address at which the collector listens.
    pub address: SocketAddr,
    spans: Arc<Mutex<Vec<SeenSpan>>>,
}

impl Collector {
    /// Starts the collector on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let spans = Arc::<Mutex<Vec<SeenSpan>>>::default();
        let seen = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                let service = service_fn(move |request: Request<Incoming>| {
                    let seen = Arc::clone(&seen);
                    async move {
                        assert_eq!(request.uri().path(), "/v1/traces");
                        // A program that is killed breaks off what it sends.
                        if let Ok(body) = request.into_body().collect().await {
                            let batch = Batch::decode(body.to_bytes()).expect("it is a batch");
                            seen.lock().unwrap_or_else(PoisonError::into_inner).extend(batch.spans());
                        }
                        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, spans }
    }

    /// Every span that has come so far.
    pub fn spans(&self) -> Vec<SeenSpan> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The ConfigMap that has traces sent there.
pub fn config_map(collector: SocketAddr, sampling_rate: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-observability\ndata:\n  tracing-protocol: http/protobuf\n  \
         tracing-endpoint: http://{collector}/v1/traces\n  tracing-sampling-rate: \"{sampling_rate}\"\n"
    )
}

/// Sends one request with these further headers, and returns the whole answer.
pub async fn ask(ebb: &Ebb, host: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("ebb reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the answer is whole");
    answer
}

#[derive(Clone, PartialEq, Message)]
struct Batch {
    #[prost(message, repeated, tag = "1")]
    of_programs: Vec<OfProgram>,
}

#[derive(Clone, PartialEq, Message)]
struct OfProgram {
    #[prost(message, required, tag = "1")]
    program: Program,
    #[prost(message, repeated, tag = "2")]
    of_libraries: Vec<OfLibrary>,
}

#[derive(Clone, PartialEq, Message)]
struct Program {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct OfLibrary {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<WrittenSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct WrittenSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    began: u64,
    #[prost(fixed64, tag = "8")]
    ended: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<WrittenEvent>,
    #[prost(message, optional, tag = "15")]
    status: Option<WrittenStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct WrittenEvent {
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct WrittenStatus {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, required, tag = "2")]
    value: AnyValue,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4")]
    content: Option<Content>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

impl Batch {
    fn spans(self) -> Vec<SeenSpan> {
        let mut seen = Vec::new();
        for of_program in self.of_programs {
            let program = as_map(of_program.program.attributes);
            let spans = of_program.of_libraries.into_iter().flat_map(|of_library| of_library.spans);
            seen.extend(spans.map(|span| span.seen(program.clone())));
        }
        seen
    }
}

impl WrittenSpan {
    fn seen(self, program: BTreeMap<String, Value>) -> SeenSpan {
        SeenSpan {
            program,
            trace: hex(&self.trace),
            span: hex(&self.span),
            parent: hex(&self.parent),
            name: self.name,
            trace_state: self.trace_state,
            began: self.began,
            ended: self.ended,
            attributes: as_map(self.attributes),
            events: self.events.into_iter().map(|event| event.name).collect(),
            is_error: self.status.is_some_and(|status| status.code == 2),
        }
    }
}

fn as_map(attributes: Vec<Attribute>) -> BTreeMap<String, Value> {
    let value = |value: AnyValue| match value.content {
        Some(Content::Text(text)) => json!(text),
        Some(Content::Bool(truth)) => json!(truth),
        Some(Content::Int(whole)) => json!(whole),
        Some(Content::Double(number)) => json!(number),
        None => Value::Null,
    };
    attributes.into_iter().map(|attribute| (attribute.key, value(attribute.value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}
