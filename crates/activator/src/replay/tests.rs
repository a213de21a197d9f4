//! Bodies that are sent again, polled by hand.

use std::task::Waker;

use http_body_util::{BodyExt, StreamBody};
use runtime::{Clock, MetricsRegistry};
use vocabulary::ReplicaName;

use super::*;
use crate::config::{ActivatorConfig, Limits};
use crate::metrics::ActivatorMetrics;

fn context(limits: Limits) -> Arc<Context> {
    let metrics = ActivatorMetrics::register(&MetricsRegistry::default());
    let name = ReplicaName::new("test");
    let (connections, clock) = (Arc::default(), Clock::start());
    let reporting = tokio::sync::watch::channel(Arc::default()).1;
    let log_format = runtime::LogFormat::Text;
    let forwarders = crate::forwarders::TrustedForwarders::default();
    let config = ActivatorConfig {
        name,
        workers: 1,
        limits,
        connections,
        clock,
        metrics,
        reporting,
        log_format,
        forwarders,
        place: crate::place::ActivatorPlace::Ebb,
    };
    Arc::new(Context::new(config))
}

/// A body of the given pieces, and trailers.
fn source(pieces: &[&'static str]) -> Body {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-end", http::HeaderValue::from_static("yes"));
    let mut frames: Vec<Result<Frame<Bytes>, BodyError>> =
        pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))).collect();
    frames.push(Ok(Frame::trailers(trailers)));
    Body::custom(StreamBody::new(futures_util::stream::iter(frames)))
}

/// Reads to the end: the bytes, and whether trailers came.
fn read(mut body: Body) -> Result<(String, bool), BodyError> {
    let mut text = String::new();
    let mut has_trailers = false;
    while let Some(frame) = next(&mut body) {
        let frame = frame?;
        has_trailers |= frame.is_trailers();
        text.extend(frame.into_data().ok().map(|piece| String::from_utf8(piece.to_vec()).expect("UTF-8")));
    }
    Ok((text, has_trailers))
}

fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, BodyError>> {
    match poll(body) {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("the source is always ready"),
    }
}

fn poll(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    Pin::new(&mut body.frame()).poll(&mut TaskContext::from_waker(Waker::noop()))
}

#[test]
fn every_attempt_sends_the_whole_body() {
    let replay = Replay::new(source(&["one ", "two ", "three"]), &context(Limits::default()));
    let mut first = replay.attempt(None).expect("nothing was read");
    assert!(next(&mut first).is_some());
    assert!(next(&mut first).is_some());
    for _ in 0..2 {
        let whole = read(replay.attempt(None).expect("all is kept")).expect("it reads");
        assert_eq!(whole, ("one two three".to_owned(), true));
    }
    assert!(matches!(next(&mut first), Some(Err(_))), "an attempt that was given up reads nothing more");
}

#[test]
fn a_body_beyond_the_limit_goes_out_once() {
    let limits = Limits { replay_bytes_per_request: 6, ..Limits::default() };
    let context = context(limits);
    let replay = Replay::new(source(&["12345", "6", "7", "8"]), &context);
    assert_eq!(read(replay.attempt(None).expect("fresh")).expect("it reads").0, "12345678");
    assert!(replay.attempt(None).is_none());
    assert_eq!(context.metrics.replay_bytes.get(), 0);
}

#[test]
fn a_piece_across_the_limit_is_divided_there() {
    let limits = Limits { replay_bytes_per_request: 6, ..Limits::default() };
    let context = context(limits);
    let replay = Replay::new(source(&["1234", "5678", "9"]), &context);
    for _ in 0..2 {
        let mut refused = replay.attempt(None).expect("the limit is not exceeded yet");
        let pieces = [next(&mut refused), next(&mut refused)].map(|frame| frame.and_then(Result::ok));
        let pieces = pieces.map(|frame| frame.and_then(|frame| frame.into_data().ok()).expect("data"));
        assert_eq!(pieces, ["1234", "56"], "as much as an HTTP/2 window of that size takes");
    }
    assert_eq!(read(replay.attempt(None).expect("all is there")).expect("it reads").0, "123456789");
    assert!(replay.attempt(None).is_none());
    assert_eq!(context.metrics.replay_bytes.get(), 0);
}

#[test]
fn the_activators_own_limit_counts_too_and_is_given_back() {
    let limits = Limits { replay_bytes_in_all: 8, ..Limits::default() };
    let context = context(limits);
    let (first, second) =
        (Replay::new(source(&["12345"]), &context), Replay::new(source(&["12345"]), &context));
    assert_eq!(read(first.attempt(None).expect("fresh")).expect("it reads").0, "12345");
    assert_eq!(read(second.attempt(None).expect("fresh")).expect("it reads").0, "12345");
    assert!(first.attempt(None).is_some());
    assert!(second.attempt(None).is_none(), "there was no room for it");
    drop(first);
    assert_eq!(context.metrics.replay_bytes.get(), 0);
}

#[test]
fn a_started_request_keeps_no_bytes_for_a_repeat() {
    let context = context(Limits::default());
    let replay = Replay::new(source(&["12345", "678"]), &context);
    let mut body = replay.attempt(None).expect("fresh");
    assert!(next(&mut body).is_some());
    assert_eq!(context.metrics.replay_bytes.get(), 5);
    replay.started();
    assert_eq!(read(body).expect("it reads").0, "678");
    assert_eq!(context.metrics.replay_bytes.get(), 0);
    assert!(replay.attempt(None).is_none());
}

#[test]
fn room_is_set_aside_for_a_body_of_known_length_that_fits() {
    let limits = Limits { replay_bytes_per_request: 6, replay_bytes_in_all: 10, ..Limits::default() };
    let context = context(limits);
    let sized = |length: usize| Replay::new(Body::full(vec![b'x'; length]), &context);
    let first = sized(6);
    assert!(first.reserve() && first.reserve(), "the second attempt needs no more");
    assert_eq!(context.metrics.replay_bytes.get(), 6);
    assert!(!sized(7).reserve(), "it is longer than what may be kept");
    assert!(!Replay::new(source(&["1"]), &context).reserve(), "it may be as long");
    assert!(!sized(5).reserve(), "no room");
    assert!(sized(4).reserve());
    assert_eq!(context.metrics.replay_bytes.get(), 6, "what is not needed any more is given back");
    for _ in 0..2 {
        assert_eq!(read(first.attempt(None).expect("all is kept")).expect("it reads").0, "xxxxxx");
        assert_eq!(context.metrics.replay_bytes.get(), 6, "it is kept where there is room for it");
    }
    drop(first);
    assert_eq!(context.metrics.replay_bytes.get(), 0);
}

#[test]
fn a_closed_gate_holds_every_byte_back() {
    let replay = Replay::new(source(&["12345"]), &context(Limits::default()));
    let gate = Gate::default();
    let mut body = replay.attempt(Some(gate.clone())).expect("fresh");
    assert!(poll(&mut body).is_pending());
    gate.open();
    assert_eq!(read(body).expect("it reads").0, "12345");
}

/// Each would cost many times its bytes.
#[test]
fn small_pieces_are_kept_together() {
    let replay = Replay::new(source(&vec!["x"; 10_000]), &context(Limits::default()));
    assert_eq!(read(replay.attempt(None).expect("fresh")).expect("it reads").0.len(), 10_000);
    let mut again = replay.attempt(None).expect("all is kept");
    let pieces = std::iter::from_fn(|| next(&mut again)).count();
    assert!(pieces <= 3, "{pieces} pieces and trailers");
    assert_eq!(
        read(replay.attempt(None).expect("all is kept")).expect("it reads"),
        ("x".repeat(10_000), true)
    );
}
