//! Class hpa acts: by what others measure and by requests, as fast as its document allows, to zero and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, ebb, in_namespace};
use tests::eventually;

use crate::metrics_adapter::{Adapter, Answer, Answering};
use crate::metrics_apis;

/// Each direction's policy allows one pod in so long.
const RISES_EACH: Duration = Duration::from_secs(3);
const FALLS_EACH: Duration = Duration::from_secs(4);
/// A count may be seen so much later than it was written, on a busy machine.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// One metric of each API, and an own one.
fn document() -> Value {
    let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let one_pod = |period: Duration| json!([{"type": "Pods", "value": 1, "periodSeconds": period.as_secs()}]);
    json!({
        "minReplicas": 0, "maxReplicas": 3,
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": average("100m")}},
            {"type": "Pods", "pods": {"metric": {"name": "ebb.concurrency"}, "target": average("4")}},
            {"type": "Pods", "pods": {"metric": {"name": "packets"}, "target": average("10")}},
            {"type": "External", "external": {"metric": {"name": "jobs"}, "target": average("10")}},
        ],
        "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 0, "policies": one_pod(RISES_EACH)},
            "scaleDown": {"stabilizationWindowSeconds": 2, "policies": one_pod(FALLS_EACH)},
        },
    })
}

/// As metrics-server and an adapter answer: the pods of `hello` use so many thousandths of a core between
/// them, no packet arrives, and no job waits.
fn answering(namespace: &TestNamespace, milli_cores: &Arc<AtomicU64>) -> Answering {
    let (namespace, milli_cores) = (namespace.clone(), Arc::clone(milli_cores));
    Arc::new(move |asked: String| {
        let (namespace, milli_cores) = (namespace.clone(), milli_cores.load(Ordering::Relaxed));
        async move {
            // Times of the API are whole seconds.
            let now = jiff::Timestamp::try_from(runtime::wall_time()).unwrap_or_default().as_second();
            let now = jiff::Timestamp::from_second(now).unwrap_or_default().to_string();
            if asked.starts_with("/apis/external.metrics.k8s.io/") {
                let item = json!({"metricName": "jobs", "metricLabels": {}, "timestamp": now, "value": "0"});
                return Some(list("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1", &[item]));
            }
            let selected = ListParams::default().labels("app=hello");
            let pods = namespace.api::<Pod>().list(&selected).await.ok()?.items.into_iter();
            let names: Vec<String> = pods.filter_map(|pod| pod.metadata.name).collect();
            if asked.starts_with("/apis/custom.metrics.k8s.io/") {
                let item = |name: &String| {
                    let pod = json!({"kind": "Pod", "apiVersion": "/v1", "name": name});
                    json!({"describedObject": pod, "metric": {"name": "packets"}, "timestamp": now, "value": "0"})
                };
                let items: Vec<Value> = names.iter().map(item).collect();
                return Some(list("MetricValueList", "custom.metrics.k8s.io/v1beta2", &items));
            }
            let of_each = milli_cores / u64::try_from(names.len()).unwrap_or_default().max(1);
            let item = |name: &String| {
                let usage = |cpu: u64| json!({"cpu": format!("{cpu}m"), "memory": "1Mi"});
                let containers = json!([
                    {"name": "app", "usage": usage(of_each)}, {"name": "queue-proxy", "usage": usage(0)},
                ]);
                json!({
                    "metadata": {"name": name, "namespace": namespace.name, "labels": {"app": "hello"}},
                    "timestamp": now, "window": "1s", "containers": containers,
                })
            };
            let items: Vec<Value> = names.iter().map(item).collect();
            Some(list("PodMetricsList", "metrics.k8s.io/v1beta1", &items))
        }
        .boxed()
    })
}

fn list(kind: &str, api_version: &str, items: &[Value]) -> Answer {
    Answer::found(&json!({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}))
}

/// What `ebb get` prints; another suite may just be ending the one that answers.
async fn ebb_get(namespace: &TestNamespace, format: &str) -> Result<String, String> {
    let output = ebb(namespace, &["get", "-o", format]).await;
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if output.status.success() { Ok(out) } else { Err(errors) }
}

/// Waits until each metric stands beside its target, with three pods that use as much as they may.
async fn shows_each_metric(namespace: &TestNamespace) {
    eventually("three pods, and each metric beside its target", PATIENCE, || async {
        let list = ebb_get(namespace, "json").await?;
        let list: Value = serde_json::from_str(&list).map_err(|error| error.to_string())?;
        let hello = &list["revisions"][0];
        let shown = hello["metrics"].as_str().unwrap_or_default();
        let is_so = match shown.split(", ").collect::<Vec<_>>()[..] {
            ["cpu 0.086/0.1", own, "packets 0/10", "jobs 0/10"] => {
                own.starts_with("concurrency ") && own.ends_with("/4")
            }
            _ => false,
        };
        let is_so = is_so && hello["class"] == "hpa" && hello["wanted"] == 3;
        if !is_so {
            return Err(hello.to_string());
        }
        let table = ebb_get(namespace, "wide").await?;
        if table.contains("METRICS") && table.contains("cpu 0.086/0.1") { Ok(()) } else { Err(table) }
    })
    .await;
}

/// The counts that stood at some time between the two.
fn standing(counts: &[(Duration, i32)], since: Duration, until: Duration) -> impl Iterator<Item = i32> {
    let ends = counts[1..].iter().map(|(end, _)| *end).chain([Duration::MAX]);
    let spans = counts.iter().zip(ends);
    spans.filter(move |((begin, _), end)| *begin <= until && since <= *end).map(|((_, count), _)| *count)
}

/// That from one count to the next it was one pod, and that each is within one pod of the count with which
/// its policy's period began. Who turns within a period may go two at once, as in Kubernetes: only the latter
/// holds then. From zero and to it no policy counts.
fn assert_paced(counts: &[(Duration, i32)]) {
    let mut last_step = 0;
    for pair in counts.windows(2) {
        let [(_, former), (at, count)] = pair else { unreachable!("windows of two") };
        let step = count - former;
        let has_turned = step.signum() == -last_step;
        last_step = step.signum();
        let is_at_zero = *former == 0 || *count == 0;
        if !has_turned || is_at_zero {
            assert_eq!(step.abs(), 1, "{at:?}: {counts:?}");
        }
        if is_at_zero {
            continue;
        }
        let period = if count > former { RISES_EACH } else { FALLS_EACH };
        let since = at.saturating_sub(period + SEEN_WITHIN);
        let mut begun_with = standing(counts, since, (*at + SEEN_WITHIN).saturating_sub(period));
        assert!(begun_with.any(|begun| (begun - count).abs() <= 1), "{at:?}: {counts:?}");
    }
}

#[test]
fn a_deployment_of_class_hpa_follows_each_of_its_metrics_to_zero_and_back_and_loses_nothing() {
    let _turn = metrics_apis::turn();
    in_namespace("hpa-acts", async |namespace| {
        let milli_cores = Arc::new(AtomicU64::new(0));
        let adapter = Adapter::start(&namespace, answering(&namespace, &milli_cores)).await;
        let plan = WorkloadPlan::new("hello").with_default_windows();
        let plan = plan.annotated("ebb.dev/hpa", &document().to_string());
        let plan = plan.annotated("ebb.dev/hpa-sync-period", "1s").annotated("ebb.dev/stable-window", "6s");
        let hello = plan.create(&namespace).await;
        hello.has_pods(0).await;

        // Requests alone: twelve at once, four for each pod.
        let watch = hello.watch_counts();
        let load = hello.load().path("/?sleep=500");
        let traffic = tokio::spawn(async move { load.steady(24, Duration::from_secs(25)).await });
        hello.has_pods(3).await;
        traffic.await.expect("the client does not panic").assert_all_answered();
        hello.has_pods(0).await;
        let counts = watch.end();
        let all: Vec<i32> = counts.iter().map(|(_, count)| *count).collect();
        assert_eq!(all, [0, 1, 2, 3, 2, 1, 0]);
        assert_paced(&counts);

        // CPU alone: two requests a second are one pod's.
        let watch = hello.watch_counts();
        let traffic = hello.load().in_background(2);
        hello.has_pods(1).await;
        milli_cores.store(260, Ordering::Relaxed);
        shows_each_metric(&namespace).await;
        milli_cores.store(0, Ordering::Relaxed);
        hello.has_pods(1).await;
        traffic.end().await.assert_all_answered();
        hello.has_pods(0).await;
        assert_paced(&watch.end());
        adapter.stop().await;
    });
}
