//! One request to a Deployment at zero, and what is seen of its way: by the client, by a watch of the pods,
//! by the API server's audit log, and by the app.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tests::bench::{Samples, Table, clock};
use tests::cluster::{TestNamespace, Workload, audit_log};
use tokio::task::JoinHandle;

/// How long one wake may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The stages of a wake, in milliseconds.
#[derive(Default)]
pub(crate) struct Stages {
    /// From the first byte of the request to the order at the API server.
    pub(crate) ordered: Samples,
    /// From there to its answer.
    pub(crate) answered_order: Samples,
    /// From the order to the pod's object.
    made: Samples,
    /// From there to its node.
    scheduled: Samples,
    /// From there to its address.
    addressed: Samples,
    /// From there until the app listens; negative where it listened first.
    listening: Samples,
    /// From the later of both to the request at the app.
    pub(crate) forwarded: Samples,
    /// From there to the answer at the client.
    answered: Samples,
    /// The whole journey, from the request to the answer.
    pub(crate) whole: Samples,
}

impl Stages {
    fn rows(&self) -> [(&'static str, &Samples); 9] {
        [
            ("first byte → order at the API server", &self.ordered),
            ("(→ answer to the order)", &self.answered_order),
            ("order → pod made", &self.made),
            ("→ scheduled", &self.scheduled),
            ("→ its address seen by a watch", &self.addressed),
            ("→ app listens (negative: before)", &self.listening),
            ("later of both → request at the app", &self.forwarded),
            ("→ answer at the client", &self.answered),
            ("the whole wake", &self.whole),
        ]
    }

    pub(crate) fn table(&self, title: &str) -> Table {
        let columns = ["stage, in ms", "p50", "p90", "p99", "most"];
        let mut table = Table::new(&format!("{title}: {} wakes", self.whole.0.len()), &columns);
        for (stage, samples) in self.rows() {
            let numbers =
                [samples.quantile(500), samples.quantile(900), samples.quantile(990), samples.most()];
            let numbers = numbers.map(|number| format!("{number:.1}"));
            table.row([stage.to_owned()].into_iter().chain(numbers));
        }
        table
    }
}

/// When a pod was seen to get how far.
struct PodTimes {
    made: Duration,
    scheduled: Duration,
    addressed: Duration,
}

/// What client and app say.
struct RequestTimes {
    began: Duration,
    /// The same instant on the clock of the audit log.
    began_at: Timestamp,
    listening: Duration,
    asked: Duration,
    answered: Duration,
}

/// One request to who sleeps.
pub(crate) async fn wake(
    namespace: &TestNamespace,
    workload: &Workload,
    stages: &mut Stages,
) -> anyhow::Result<f64> {
    workload.has_pods(0).await;
    let watched = follow(namespace, workload.name()).await?;
    let address = workload.address;
    let asked = tokio::task::spawn_blocking(move || ask(address)).await??;
    let pod = watched.await??;
    let (ordered, answered) = order(namespace, workload.name(), &asked)?;
    let gap = |from: Duration, to: Duration| clock::millis(to) - clock::millis(from);
    stages.ordered.push(gap(asked.began, ordered));
    stages.answered_order.push(gap(ordered, answered));
    stages.made.push(gap(ordered, pod.made));
    stages.scheduled.push(gap(pod.made, pod.scheduled));
    stages.addressed.push(gap(pod.scheduled, pod.addressed));
    stages.listening.push(gap(pod.addressed, asked.listening));
    stages.forwarded.push(gap(pod.addressed.max(asked.listening), asked.asked));
    stages.answered.push(gap(asked.asked, asked.answered));
    let whole = gap(asked.began, asked.answered);
    stages.whole.push(whole);
    Ok(whole)
}

/// A request of its own connection, which is there before it begins.
fn ask(address: std::net::SocketAddr) -> anyhow::Result<RequestTimes> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (began_at, began) = (Timestamp::now(), clock::now());
    stream.write_all(b"GET /times HTTP/1.1\r\nHost: hello\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let answered = clock::now();
    ensure!(answer.starts_with("HTTP/1.1 200"), "refused: {answer}");
    let body = answer.split_once("\r\n\r\n").context("the answer has a body")?.1;
    // Whole or in one chunk: from the first brace to the last one.
    let json = body.find('{').zip(body.rfind('}')).and_then(|(first, last)| body.get(first..=last));
    let times: Value = serde_json::from_str(json.context("the answer has times")?)?;
    let time = |name: &str| {
        times[name].as_u64().map(Duration::from_nanos).with_context(|| format!("{times} has no {name}"))
    };
    Ok(RequestTimes { began, began_at, listening: time("listening")?, asked: time("asked")?, answered })
}

/// Notes how far the next pod of a workload gets.
async fn follow(
    namespace: &TestNamespace,
    name: &str,
) -> anyhow::Result<JoinHandle<anyhow::Result<PodTimes>>> {
    let pods = namespace.api::<Pod>();
    let labels = format!("app={name}");
    let present = pods.list(&ListParams::default().labels(&labels)).await?.metadata.resource_version;
    let present = present.context("a list has a version")?;
    let events = pods.watch(&WatchParams::default().labels(&labels), &present).await?.boxed();
    Ok(tokio::spawn(async move {
        let times = tokio::time::timeout(PATIENCE, times_of_pod(events));
        times.await.context("a pod gets an address")?
    }))
}

async fn times_of_pod(events: impl Stream<Item = kube::Result<WatchEvent<Pod>>>) -> anyhow::Result<PodTimes> {
    let mut events = pin!(events);
    let (mut made, mut scheduled) = (None, None);
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event? else { continue };
        let at = clock::now();
        let made = *made.get_or_insert(at);
        if pod.spec.and_then(|spec| spec.node_name).is_some() {
            scheduled.get_or_insert(at);
        }
        if pod.status.and_then(|status| status.pod_ip).is_some() {
            return Ok(PodTimes { made, scheduled: scheduled.unwrap_or(at), addressed: at });
        }
    }
    anyhow::bail!("the watch ended before the pod had an address")
}

/// When the API server had the order for the pod, and when it had answered it.
fn order(
    namespace: &TestNamespace,
    name: &str,
    asked: &RequestTimes,
) -> anyhow::Result<(Duration, Duration)> {
    let log = audit_log();
    for line in log.lines().rev() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let object = &entry["objectRef"];
        let is_it = entry["verb"] == "patch"
            && object["subresource"] == "scale"
            && object["name"] == name
            && object["namespace"] == namespace.name.as_str();
        if !is_it {
            continue;
        }
        let time = |field: &str| -> anyhow::Result<Duration> {
            let at: Timestamp = entry[field].as_str().context("a time")?.parse()?;
            let later = at.duration_since(asked.began_at);
            Ok(asked.began + Duration::try_from(later).context("the order came before the request")?)
        };
        return Ok((time("requestReceivedTimestamp")?, time("stageTimestamp")?));
    }
    anyhow::bail!("the audit log has no order for {name}: is the cluster that of the tests?")
}
