use std::collections::BTreeMap;

use serde_json::Value;
use vocabulary::{PodName, PodState};

use super::*;

const DOCUMENTED: &str = include_str!("../../../../docs/reference/api.md");

pub(crate) fn summary() -> RevisionSummary {
    RevisionSummary {
        name: RevisionName::parse("default/service/hello").unwrap(),
        template: "hello-00001".to_owned(),
        url: Some("http://hello.localhost:8080".to_owned()),
        wanted: PodCount::new(3),
        early_pods: PodCount::ONE,
        prediction: Some(PredictionView {
            rule: "day-rise-0.8-total".to_owned(),
            late_request_seconds: 50.0,
            late_without_request_seconds: 300.0,
            extra_pod_seconds: 600,
            used_pod_seconds: 480,
            budget_left_pod_seconds: 120,
        }),
        desired: Some(PodCount::new(2)),
        ready_pods: PodCount::ONE,
        not_ready_pods: PodCount::new(2),
        pending_pods: PodCount::ONE,
        awaiting_core_pods: PodCount::ONE,
        terminating_pods: PodCount::ZERO,
        mode: "panic".to_owned(),
        class: "hpa".to_owned(),
        metrics: Some("cpu 45%/80%".to_owned()),
        other_autoscaler: Some(OtherAutoscalerView {
            name: "hello-hpa".to_owned(),
            desired: PodCount::new(3),
            current: PodCount::ONE,
            metrics: "cpu 45%/80%".to_owned(),
            why: "ScalingActive: ValidMetricFound".to_owned(),
        }),
        shadow: Some(ShadowView {
            compared_ms: 9000,
            compared: 4,
            differed: 1,
            differs_ms: Some(2000),
            last_difference: Some(ShadowDifferenceView {
                age_ms: 2000,
                ours: PodCount::new(3),
                theirs: PodCount::ONE,
                why: "more".to_owned(),
            }),
        }),
        left_alone: Some("paused".to_owned()),
        metric: "rps".to_owned(),
        stable_value: Some(1.5),
        panic_value: None,
        target_per_pod: 7.0,
        routing: Routing::ThroughActivator,
        waiting: 4,
        activity: "active".to_owned(),
        last_reason: "more".to_owned(),
        why_not_zero: None,
        why_not_ready: Some("waits".to_owned()),
        links: Some(LinkTallyView { expected: 2, up: 1, down: vec!["hello-2".to_owned()] }),
        owner: Some(OwnerView { name: "autoscaler-1".to_owned(), bucket: 0, buckets: 1, epoch: 1 }),
    }
}

fn status_of_hpa() -> HpaView {
    HpaView {
        current: PodCount::ONE,
        desired: Some(PodCount::new(2)),
        last_scale_ms: Some(30_000),
        conditions: vec![HpaConditionView {
            kind: "ScalingActive".to_owned(),
            status: false,
            reason: "FailedGetExternalMetric".to_owned(),
            age_ms: 9,
        }],
        metrics: vec![HpaMetricView {
            metric: "jobs".to_owned(),
            value: None,
            target: "30".to_owned(),
            ratio: Some(0.5),
            count: Some(PodCount::ONE),
            failure: Some("no series".to_owned()),
        }],
    }
}

fn pod() -> PodView {
    PodView {
        name: PodName::new("p"),
        phase: "running".to_owned(),
        state: PodState::Ready,
        leaving: false,
        outdated: true,
        linked: true,
        in_flight: 2.5,
        queued: 1,
        late_bytes: Some(LateBytesView { connections: 3, reuse_in_ms: 590_000 }),
        heard_ms_ago: Some(7),
        asked_ms_ago: Some(9010),
        known_ms_ago: Some(9000),
        running_ms_ago: Some(8600),
        ready_ms_ago: Some(8000),
        ending_ms_ago: None,
        requests: Some(([127, 0, 0, 1], 8012).into()),
        link: None,
        awaits_core: false,
        trouble: None,
        details: BTreeMap::from([("app_pid".to_owned(), "4711".to_owned())]),
    }
}

fn ended_pod() -> EndedPodView {
    EndedPodView {
        name: PodName::new("q"),
        asked_ms_ago: None,
        known_ms_ago: 90_000,
        running_ms_ago: Some(89_500),
        ready_ms_ago: Some(89_000),
        ending_ms_ago: Some(20_000),
        gone_ms_ago: 10_000,
        why: "it ran an older template".to_owned(),
    }
}

fn detail() -> RevisionDetail {
    let inputs = InputsView {
        ready_pods: PodCount::ONE,
        unheard_pods: PodCount::ZERO,
        stable_value: 1.0,
        panic_value: 2.0,
        target_per_pod: 7.0,
        total_per_pod: 10.0,
        present_count: None,
    };
    let reason = ReasonView {
        stage: "surge".to_owned(),
        before: Some(PodCount::ONE),
        after: None,
        text: "because".to_owned(),
    };
    RevisionDetail {
        version: API_VERSION,
        summary: summary(),
        hosts: vec!["hello.default.example.com".to_owned()],
        container_concurrency: 10,
        min_scale: PodCount::ZERO,
        max_scale: None,
        hpa: Some(status_of_hpa()),
        platform: PlatformTermsView::default(),
        asked: vec![AskedMetricView {
            metric: "jobs".to_owned(),
            query: Some("sum({__name__=\"jobs\"})".to_owned()),
            answer: "no series".to_owned(),
        }],
        callers: vec![CallerView {
            user_agent: "curl/8.5".to_owned(),
            address: [10, 0, 0, 7].into(),
            age_ms: 3000,
        }],
        pods: vec![pod()],
        ended_pods: vec![ended_pod()],
        decisions: vec![DecisionView {
            age_ms: 12,
            trigger: "tick".to_owned(),
            inputs: Some(inputs),
            reasons: vec![reason],
            mode: "stable".to_owned(),
            desired: None,
            wanted: Some(PodCount::new(3)),
            excess_burst_capacity: -4,
            routing: Routing::Direct,
            activators: PodCount::ONE,
            why_not_zero: None,
        }],
        last_failure: Some(FailureView {
            pod: PodName::new("p"),
            age_ms: 3,
            reason: "the app exited with code 3".to_owned(),
            last_lines: vec!["no such table".to_owned()],
            withheld: None,
        }),
        last_kill: Some(KillView {
            pod: PodName::new("p"),
            age_ms: 4,
            reason: "the app was killed 10 s after TERM".to_owned(),
        }),
        problems: Vec::new(),
    }
}

pub(crate) fn links() -> LinksView {
    let all_up = LinkTallyView { expected: 2, up: 2, down: Vec::new() };
    let down = vec!["hello-1".to_owned()];
    let to_pods = LinkTallyView { expected: 3, up: 2, down };
    LinksView { autoscaler: "autoscaler-0".to_owned(), to_activators: all_up, to_pods }
}

pub(crate) fn ledger(name: &str) -> LedgerView {
    LedgerView {
        name: RevisionName::parse(name).unwrap(),
        owner: summary().owner,
        min_scale: PodCount::ZERO,
        first_ms_ago: 7_200_000,
        seconds: 7000,
        pod_seconds: PodSecondsView { starting: 60, busy: 600, idle: 6000, ending: 6 },
        cold_starts: ColdStartsView { from_zero: 4, growth: 3, rollout: 2, failed_pod: 1 },
        cold_starts_ended: 4,
        cold_start_wait_ms: 7600,
        cold_start_wait_ms_max: 2500,
        requests: 1234.0,
        waited: 5,
        waiting_seconds: 9,
        pod_price: Some(0.03),
        cost: Some(0.05),
        what_if: vec![WhatIfView {
            min_scale: PodCount::ONE,
            extra_pod_seconds: 334,
            avoided_cold_starts: 4,
            extra_cost: Some(0.003),
        }],
        cold_start_worth_ms: 1_200_000,
        advised_min_scale: Some(PodCount::ONE),
        advice: Some("min-scale 1 costs less than that".to_owned()),
    }
}

/// All names of fields, at any depth, but those inside `details`, which are the platform's.
fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                found.push(name.clone());
                if name != "details" {
                    fields(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_is_documented() {
    let (problems, unanswered, links) = (Vec::new(), Vec::new(), vec![links()]);
    let (version, revisions) = (API_VERSION, vec![summary()]);
    let list = RevisionList { version, snapshot: 0, revisions, problems, unanswered, links };
    let error = ApiError { version: API_VERSION, error: String::new() };
    let mut found = Vec::new();
    let series = serde_json::to_value(SeriesView::default());
    let ledgers = LedgerList { revisions: vec![ledger("default/service/hello")], ..LedgerList::default() };
    let ledgers = serde_json::to_value(ledgers);
    let change = serde_json::to_value(ChangeEvent::default());
    let others = [serde_json::to_value(list), serde_json::to_value(error), series, ledgers, change];
    for value in [serde_json::to_value(detail())].into_iter().chain(others) {
        fields(&value.unwrap(), &mut found);
    }
    let missing: Vec<_> = found.iter().filter(|name| !DOCUMENTED.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/api.md lacks {missing:?}");
}

#[test]
fn readers_get_what_was_written_and_ignore_what_they_do_not_know() {
    let mut value = serde_json::to_value(detail()).unwrap();
    assert_eq!(serde_json::from_value::<RevisionDetail>(value.clone()).unwrap(), detail());
    value["a_field_of_the_future"] = Value::Bool(true);
    assert_eq!(serde_json::from_value::<RevisionDetail>(value).unwrap(), detail());
}
