use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::otlp::{AnyValue, ExportRequest};
use super::*;
use crate::body::Body;
use crate::connection::Connection;
use crate::refusal::{Refusal, RefusalReason};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const FLUSH: Duration = Duration::from_secs(60);

/// An address on which no collector listens any more.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.and_then(|listener| listener.local_addr()).expect("a port")
}

/// A collector that answers with each of these statuses in turn, then with 200, and hands on what it takes.
async fn collector(refusals: &'static [u16]) -> (SocketAddr, mpsc::Receiver<ExportRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (taken, batches) = mpsc::channel(16);
    let asked = Rc::new(Cell::new(0));
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (taken, asked) = (taken.clone(), Rc::clone(&asked));
            let service = service_fn(move |request: Request<Incoming>| {
                let (taken, asked) = (taken.clone(), Rc::clone(&asked));
                async move {
                    assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/v1/traces"));
                    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
                    let body = request.into_body().collect().await.expect("whole").to_bytes();
                    let mut response = Response::new(Full::<Bytes>::default());
                    match refusals.get(asked.replace(asked.get() + 1)) {
                        Some(&status) => {
                            *response.status_mut() = StatusCode::from_u16(status).expect("legal");
                        }
                        None => taken
                            .try_send(ExportRequest::decode(body).expect("a batch"))
                            .expect("a test sends few"),
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let serving = hyper::server::conn::http1::Builder::new();
            tokio::task::spawn_local(serving.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, batches)
}

struct World {
    tracer: Tracer,
    registry: Registry,
}

/// A tracer that keeps this share, for a collector there.
fn tracer(collector: SocketAddr, rate: f64) -> World {
    let (mut registry, counts) = (Registry::default(), SpanCounts::default());
    counts.register(&mut registry, "");
    let tracer = Tracer::new(Clock::start(), &[("service.name", "test"), ("service.namespace", "")], counts);
    let (host, port) = (collector.ip().to_string(), collector.port());
    let endpoint = TraceEndpoint { host, port, path: "/v1/traces".to_owned() };
    tracer.follow(Some(&TracePlan { endpoint, sampling: SampleRate::new(rate).expect("a rate") }));
    World { tracer, registry }
}

impl World {
    fn begin(&self, request: &mut protocol::Request<Body>) -> Option<Box<Span>> {
        self.tracer.begin(request, &Connection::new(([10, 0, 0, 7], 1).into()))
    }

    fn delivering(&self) {
        tokio::task::spawn_local(self.tracer.clone().deliver());
    }

    fn counts(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("counters are text");
        text
    }
}

fn request(parent: Option<&str>) -> protocol::Request<Body> {
    let request = Request::get("/a?b").header("host", "hello").body(Body::empty()).expect("legal");
    let mut request = protocol::Request::from(request);
    if let Some(parent) = parent {
        request.headers_mut().insert("traceparent", parent.parse().expect("legal"));
        request.headers_mut().insert("tracestate", "a=b".parse().expect("legal"));
    }
    request
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

fn spans(batch: &ExportRequest) -> &[SpanRecord] {
    &batch.resources[0].scopes[0].spans
}

fn attribute<'s>(span: &'s SpanRecord, key: &str) -> Option<&'s AttributeValue> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    attribute.value.as_ref().and_then(|AnyValue { value }| value.as_ref())
}

#[test]
fn a_span_arrives_with_what_was_told_behind_its_parent() {
    run(async {
        let (address, mut batches) = collector(&[]).await;
        let world = tracer(address, 0.0);
        world.delivering();
        let mut request = request(Some(PARENT));
        let mut span = world.begin(&mut request).expect("its client wants a trace");
        span.event_about("waiting", Some("a pod"));
        span.answered(StatusCode::NOT_FOUND);
        drop(span);
        let batch = batches.recv().await.expect("a batch");
        let program = batch.resources[0].resource.as_ref().expect("a resource");
        assert_eq!(
            program.attributes,
            [KeyValue::new("service.name", AttributeValue::Text("test".to_owned()))]
        );
        let [span] = spans(&batch) else { panic!("{batch:?}") };
        let said = request.headers()["traceparent"].to_str().expect("text");
        let id = u64::from_be_bytes(span.span.clone().try_into().expect("eight bytes"));
        assert_eq!(said, format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{id:016x}-01"));
        assert_eq!(span.parent, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
        assert_eq!((span.trace_state.as_str(), span.name.as_str(), span.kind), ("a=b", "GET", 2));
        assert_eq!(attribute(span, "url.path"), Some(&AttributeValue::Text("/a".to_owned())));
        assert_eq!(attribute(span, "client.address"), Some(&AttributeValue::Text("10.0.0.7".to_owned())));
        assert_eq!(attribute(span, "http.response.status_code"), Some(&AttributeValue::Whole(404)));
        assert_eq!((span.status.as_ref(), span.events[0].name.as_str()), (None, "waiting"));
        assert!(span.began <= span.events[0].at && span.events[0].at <= span.ended);
    });
}

#[test]
fn the_first_hop_decides_for_all_behind_it() {
    run(async {
        let collector = nowhere().await;
        let (all, none) = (tracer(collector, 1.0), tracer(collector, 0.0));
        let mut request = request(None);
        request.headers_mut().insert("tracestate", "of=nothing".parse().expect("legal"));
        assert!(none.begin(&mut request).is_none());
        let decided = request.headers()["traceparent"].clone();
        assert!(decided.to_str().expect("text").ends_with("-00"));
        assert!(!request.headers().contains_key("tracestate"), "it is of another trace");
        // Not even one that keeps all decides again, and what is not kept is not touched.
        assert!(all.begin(&mut request).is_none());
        assert_eq!(request.headers()["traceparent"], decided);
        // The other way round.
        let mut request = self::request(None);
        let first = all.begin(&mut request).expect("all are kept");
        let second = none.begin(&mut request).expect("the first has decided");
        assert_eq!(second.record.trace, first.record.trace);
        assert_eq!(second.record.parent, first.record.span);
        assert!(first.record.parent.is_empty(), "it is the first");
    });
}

#[test]
fn without_settings_nothing_is_told_and_no_header_touched() {
    run(async {
        let world = tracer(nowhere().await, 1.0);
        world.tracer.follow(None);
        let mut request = request(Some("nonsense"));
        assert!(world.begin(&mut request).is_none());
        assert_eq!(
            (&request.headers()["traceparent"], &request.headers()["tracestate"]),
            (&"nonsense".parse().expect("legal"), &"a=b".parse().expect("legal"))
        );
    });
}

#[test]
fn a_refusal_is_an_error_and_a_client_that_leaves_a_cancelled_request() {
    run(async {
        let (address, mut batches) = collector(&[]).await;
        let world = tracer(address, 1.0);
        let mut span = world.begin(&mut request(None)).expect("all are kept");
        span.refused(&Refusal::new(RefusalReason::QueueFull, "x".repeat(10_000)));
        drop(span);
        drop(world.begin(&mut request(None)));
        world.delivering();
        world.tracer.flush(FLUSH).await;
        let batch = batches.recv().await.expect("a batch");
        let [refused, cancelled] = spans(&batch) else { panic!("{batch:?}") };
        assert_eq!(attribute(refused, "error.type"), Some(&AttributeValue::Text("queue-full".to_owned())));
        assert_eq!(attribute(refused, "http.response.status_code"), Some(&AttributeValue::Whole(503)));
        let status = refused.status.as_ref().expect("an error");
        assert_eq!((status.code, status.message.len()), (2, 512), "long texts are cut");
        assert_eq!(attribute(cancelled, "error.type"), Some(&AttributeValue::Text("cancelled".to_owned())));
    });
}

#[test]
fn a_batch_is_sent_again_if_the_collector_is_busy_and_not_if_it_refuses() {
    run(async {
        let (address, mut batches) = collector(&[503, 400]).await;
        let world = tracer(address, 1.0);
        world.delivering();
        drop(world.begin(&mut request(None)));
        // The second answer is for good.
        while !world.counts().contains("dropped_spans_total{reason=\"not_delivered\"} 1") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(world.begin(&mut request(None)));
        assert_eq!(spans(&batches.recv().await.expect("a batch")).len(), 1);
        world.tracer.flush(FLUSH).await;
        assert!(world.counts().contains("delivered_spans_total 1"), "{}", world.counts());
    });
}

#[test]
fn a_collector_that_is_not_there_costs_a_bounded_queue_and_is_counted() {
    run(async {
        let world = tracer(nowhere().await, 1.0);
        for _ in 0..queue::SPANS_MAX + 3 {
            drop(world.begin(&mut request(None)).expect("all are kept"));
        }
        assert!(
            world.counts().contains("dropped_spans_total{reason=\"queue_full\"} 3"),
            "{}",
            world.counts()
        );
        world.delivering();
        world.tracer.flush(FLUSH).await;
        let lost = format!("dropped_spans_total{{reason=\"not_delivered\"}} {}", queue::SPANS_MAX);
        assert!(world.counts().contains(&lost), "{}", world.counts());
    });
}
