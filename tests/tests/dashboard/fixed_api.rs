//! An API whose answers are the same in each run, for pictures: the real one measures, and no two pictures of
//! it are alike. The pages are the real ones, and the answers have the types of the real API.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::f64::consts::TAU;
use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use autoscaler::api_types::{
    API_VERSION, ChangeEvent, ForecastHourView, ForecastView, LedgerList, LedgerView, RevisionDetail,
    RevisionSummary, SeriesView,
};
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use vocabulary::{PodCount, RevisionName};

/// The revision that has a page of its own.
pub(crate) const CHECKOUT: &str = "shop/service/checkout";
const TARGET: f64 = 7.0;
/// The present is at 13:20.
const MINUTE_OF_DAY: u32 = 13 * 60 + 20;
const DAY: u32 = 24 * 60;

/// The revisions that an API tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fleet {
    Empty,
    /// One that is in panic mode.
    One,
    /// One in panic mode, one in trouble, one asleep, and some that are well.
    Usual,
    /// The usual ones, of an autoscaler that is rebuilt once: the first stream ends.
    Rebuilt,
    Thousand,
    /// Twenty revisions that change in each of so many events.
    Changing {
        events: u32,
    },
}

/// Serves the pages and the answers at a port of this machine.
pub(crate) async fn serve(fleet: Fleet) -> SocketAddr {
    let revision = "/v1/revisions/{namespace}/{kind}/{name}";
    let streams = Arc::new(AtomicU32::new(0));
    let stream = move || ready(changes(fleet, streams.fetch_add(1, Ordering::Relaxed)));
    let router = Router::new()
        .route("/v1/stream", get(stream))
        .route("/v1/ledger", get(|| ready(Json(ledger()))))
        .route(revision, get(|| ready(Json(detail()))))
        .route(&format!("{revision}/forecast"), get(|| ready(Json(forecast()))))
        .route(&format!("{revision}/series"), get(asked_series))
        .merge(dashboard::pages());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    // The pages ask this server while the test drives the browser. It ends with the test's runtime; if it
    // ended before, the test would wait for a page in vain and fail.
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn asked_series(Query(parameters): Query<BTreeMap<String, String>>) -> Json<SeriesView> {
    Json(series(parameters.get("range").map_or("", String::as_str)))
}

/// The stream of changes after so many others: an event with all revisions; of a fleet that changes as many
/// events as it says. The stream stays open after the last one, unless it is that of an autoscaler before it
/// is rebuilt.
fn changes(fleet: Fleet, before: u32) -> Response {
    let count = match fleet {
        Fleet::Changing { events } => events,
        Fleet::Empty | Fleet::One | Fleet::Usual | Fleet::Rebuilt | Fleet::Thousand => 1,
    };
    let event = move |number| Ok::<_, Infallible>(event(fleet, number));
    let events = stream::iter((1..=count).map(event));
    let is_ending = matches!(fleet, Fleet::Rebuilt) && before == 0;
    let body = if is_ending {
        Body::from_stream(events)
    } else {
        Body::from_stream(events.chain(stream::pending()))
    };
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The event of this number, from 1 on, as it is written.
fn event(fleet: Fleet, number: u32) -> Bytes {
    let event = ChangeEvent {
        version: API_VERSION,
        snapshot: number.into(),
        whole: number == 1,
        revisions: revisions(fleet, number),
        problems: problems(fleet),
        ..ChangeEvent::default()
    };
    let data = serde_json::to_string(&event).expect("an event is plain data");
    Bytes::from(format!("id: {number}\nevent: change\ndata: {data}\n\n"))
}

fn problems(fleet: Fleet) -> Vec<String> {
    match fleet {
        Fleet::Usual | Fleet::Rebuilt => vec![
            "ConfigMap config-autoscaler: stable-window is \"5\", which has no unit; write \"5s\"".to_owned(),
            "Service shop/basket: annotation autoscaling.knative.dev/target is \"<b>many</b>\"; write a number"
                .to_owned(),
        ],
        Fleet::Empty | Fleet::One | Fleet::Thousand | Fleet::Changing { .. } => Vec::new(),
    }
}

/// The revisions in the event of this number.
fn revisions(fleet: Fleet, number: u32) -> Vec<RevisionSummary> {
    let app = |index: u32, load: f64| {
        summary(&json!({"name": format!("ns-{}/service/app-{index:04}", index % 7), "stable_value": load}))
    };
    match fleet {
        Fleet::Empty => Vec::new(),
        Fleet::One => vec![summary(&checkout())],
        Fleet::Usual | Fleet::Rebuilt => [checkout()].iter().chain(&neighbours()).map(summary).collect(),
        Fleet::Thousand => (0..1000).map(|index| app(index, f64::from(index * 37 % 100) / 10.0)).collect(),
        Fleet::Changing { .. } => (0..20).map(|index| app(index, number.into())).collect(),
    }
}

fn checkout() -> Value {
    json!({
        "name": CHECKOUT, "wanted": 9, "desired": 9, "ready_pods": 6, "not_ready_pods": 3, "early_pods": 1,
        "mode": "panic", "stable_value": 48.5, "panic_value": 58.0, "waiting": 12,
        "last_reason": "panic mode: 58 in flight need 9 pods",
    })
}

fn neighbours() -> [Value; 5] {
    [
        json!({"name": "shop/service/cart", "stable_value": 9.8, "wanted": 2, "ready_pods": 2}),
        json!({"name": "shop/service/catalogue", "stable_value": 21.3, "wanted": 4, "ready_pods": 4}),
        json!({
            "name": "mail/service/newsletter", "stable_value": 0.0, "wanted": 0, "ready_pods": 0,
            "why_not_zero": null, "last_reason": "no request for 1m30s",
        }),
        json!({
            "name": "mail/service/outbox", "wanted": 2, "not_ready_pods": 1, "waiting": 3,
            "why_not_ready": "pod outbox-2 failed: it ended with code 1",
        }),
        json!({
            "name": "ops/service/reports", "metric": "rps", "stable_value": 120.5, "target_per_pod": 105.0,
            "wanted": 2, "ready_pods": 2,
        }),
    ]
}

/// A revision with these fields, and usual ones beside them.
fn summary(changed: &Value) -> RevisionSummary {
    serde_json::from_value(with_usual(changed)).expect("a summary as the API has it")
}

fn with_usual(changed: &Value) -> Value {
    let mut one = json!({
        "template": "00001", "wanted": 1, "desired": 1, "ready_pods": 1, "not_ready_pods": 0,
        "pending_pods": 0, "terminating_pods": 0, "mode": "stable", "class": "kpa", "metric": "concurrency",
        "stable_value": 4.2, "panic_value": 4.2, "target_per_pod": TARGET, "routing": "direct", "waiting": 0,
        "activity": "active", "last_reason": "the stable average needs 1 pod",
        "why_not_zero": "requests came within the stable window",
    });
    for (field, value) in changed.as_object().into_iter().flatten() {
        one[field] = value.clone();
    }
    one
}

fn detail() -> RevisionDetail {
    let mut detail = with_usual(&checkout());
    detail["version"] = json!(API_VERSION);
    detail["hosts"] = json!(["checkout.shop.example.com"]);
    detail["container_concurrency"] = json!(10);
    detail["min_scale"] = json!(1);
    detail["pods"] = (1..=9_u64).map(pod).collect();
    detail["ended_pods"] = json!([{
        "name": "checkout-10", "known_ms_ago": 800_000, "ready_ms_ago": 797_000, "ending_ms_ago": 300_000,
        "gone_ms_ago": 270_000, "why": "the count went down",
    }]);
    detail["decisions"] = json!([
        decision(280_000, "stable", 5, "the stable average of 34.9 needs 5 pods"),
        decision(230_000, "stable", 6, "the stable average of 36.2 needs 6 pods"),
        decision(130_000, "panic", 9, "panic mode: 58 in flight need 9 pods"),
    ]);
    detail["problems"] = json!([]);
    serde_json::from_value(detail).expect("a revision as the API has it")
}

/// The last three of nine pods are slow to start.
fn pod(number: u64) -> Value {
    let is_ready = number <= 6;
    let known = if is_ready { 930_000 - number * 90_000 } else { 128_000 };
    json!({
        "name": format!("checkout-{number}"), "phase": "running", "leaving": false, "outdated": false,
        "state": if is_ready { "ready" } else { "starting" }, "linked": true, "in_flight": 6.5, "queued": 0,
        "heard_ms_ago": 200, "known_ms_ago": known, "ready_ms_ago": is_ready.then(|| known - 2_000),
        "details": {},
    })
}

fn decision(age_ms: u64, mode: &str, wanted: u32, text: &str) -> Value {
    json!({
        "age_ms": age_ms, "trigger": "load", "mode": mode, "desired": wanted, "wanted": wanted,
        "inputs": {
            "ready_pods": 6, "unheard_pods": 0, "stable_value": 48.5, "panic_value": 58.0,
            "target_per_pod": TARGET, "total_per_pod": 10.0, "present_count": null,
        },
        "reasons": [{"stage": "window", "before": 6, "after": wanted, "text": text}],
        "excess_burst_capacity": 5, "routing": "direct", "activators": 2,
        "why_not_zero": "requests came within the stable window",
    })
}

/// The demand of a minute of the day: a hump by day, and restless.
fn demand(minute: u32) -> f64 {
    let minute = f64::from(minute % DAY);
    let day = 18.0 + 16.0 * ((minute - 480.0) / f64::from(DAY) * TAU).sin();
    (day + 3.0 * (minute / 7.0).sin() + 2.0 * (minute / 3.0).sin()).max(0.0)
}

fn series(range: &str) -> SeriesView {
    // A surge began 130 s ago, and pods take longer than that to start.
    let (steps, step_ms, surge, start): (u32, u64, u32, u32) = match range {
        "15m" => (900, 1_000, 770, 140),
        "24h" => (DAY, 60_000, DAY - 2, 3),
        _ => (720, 3_600_000, 720, 1),
    };
    let at = |step: u32| match range {
        _ if step >= surge => 58.0 + 2.0 * (f64::from(step) / 20.0).sin(),
        "15m" => 38.0 + 4.0 * (f64::from(step) / 60.0).sin(),
        "24h" => demand(MINUTE_OF_DAY + step),
        _ => demand(step * 60),
    };
    let pods = |step: u32| f64::from(PodCount::ceil_from(at(step) / TARGET).value().max(1));
    let column = |value: &dyn Fn(u32) -> f64| (0..steps).map(|step| Some(value(step))).collect::<Vec<_>>();
    let cold_start = |value: f64| column(&|step| if step == steps / 5 { value } else { 0.0 });
    SeriesView {
        version: API_VERSION,
        range: range.to_owned(),
        step_ms,
        first_ms_ago: u64::from(steps) * step_ms,
        seconds: column(&|_| 1.0),
        concurrency: column(&at),
        rate: column(&at),
        wanted: column(&pods),
        ready: column(&|step| pods(step.saturating_sub(start))),
        cold_starts: cold_start(1.0),
        cold_start_wait_ms: cold_start(1_900.0),
        ..SeriesView::default()
    }
}

/// The hours that come are the past ones, a little higher.
fn forecast() -> ForecastView {
    let hour = |number: u32| {
        let begins = if number == 0 { 0 } else { number * 60 - MINUTE_OF_DAY % 60 };
        let minute = (MINUTE_OF_DAY + begins) % DAY;
        let greatest = (minute..minute + 60).map(demand).fold(0.0, f64::max);
        ForecastHourView {
            begins_in_ms: u64::from(begins) * 60_000,
            local_time: format!("{:02}:{:02}", minute / 60, minute % 60),
            usual: Some(greatest * 0.9),
            high: Some(greatest * 1.2),
            pods: Some(PodCount::ceil_from(greatest * 1.2 / TARGET)),
        }
    };
    let known = json!({
        "version": API_VERSION, "name": CHECKOUT, "mode": "auto", "metric": "concurrency",
        "target_per_pod": TARGET, "known_ms": 702_000_000, "look_ahead_ms": 128_000, "rule_ms": 172_800_000,
        "prediction": {
            "rule": "day-rise-0.8-total", "late_request_seconds": 310.0, "extra_pod_seconds": 7_200,
            "late_without_request_seconds": 2_400.0, "used_pod_seconds": 5_400, "budget_left_pod_seconds": 600,
        },
        "saved_max": 0.9, "cold_starts_avoided": 4, "hours": [],
    });
    let known: ForecastView = serde_json::from_value(known).expect("a forecast as the API has it");
    ForecastView { hours: (0..24).map(hour).collect(), ..known }
}

fn ledger() -> LedgerList {
    let names = revisions(Fleet::Usual, 1).into_iter().map(|one| one.name);
    let ledger = |(number, name): (u64, RevisionName)| -> LedgerView {
        let one = json!({
            "name": name, "min_scale": number % 2, "first_ms_ago": 604_800_000, "seconds": 604_800,
            "pod_seconds": {
                "starting": 900 * number, "busy": 300_000 / number, "idle": 90_000 * number, "ending": 3_000,
            },
            "cold_starts": {"from_zero": 4 * number, "growth": 12, "rollout": 2, "failed_pod": number % 2},
            "cold_starts_ended": 4 * number, "cold_start_wait_ms": 7_600 * number,
            "cold_start_wait_ms_max": 3_100, "requests": 100_000.0, "waited": 40 * number,
            "waiting_seconds": 77 * number, "pod_price": 0.01, "cost": 1.25, "what_if": [],
            "advice": "min-scale 1 costs 23.1 pod-hours a day more and avoids 4 cold starts of 1.9 s: keep 0",
        });
        serde_json::from_value(one).expect("a ledger as the API has it")
    };
    LedgerList {
        version: API_VERSION,
        since_ms: 604_800_000,
        currency: Some("USD".to_owned()),
        cold_start_worth_ms: 1_200_000,
        revisions: (1..).zip(names).map(ledger).collect(),
        unanswered: Vec::new(),
    }
}
