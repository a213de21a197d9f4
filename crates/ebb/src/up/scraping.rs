//! The metrics of every pod of this machine, for a Prometheus that knows of one address: as a part of our own
//! page, and as a list of where to ask (`http_sd_configs`).
//!
//! A queue-proxy's port is another at each start, and a pod's page does not name the pod. Here both are
//! known.

mod merging;
mod scraped_pod;

use std::time::Duration;

use autoscaler::api_types::{RevisionDetail, RevisionList};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use futures_util::StreamExt;
use futures_util::stream;
use serde::de::DeserializeOwned;
use tower::ServiceExt as _;

use crate::client;
use merging::MergedMetrics;
use scraped_pod::ScrapedPod;
pub(super) use scraped_pod::targets;

/// How many pods are asked for one page: each has about a hundred series.
const PODS_MAX: usize = 200;
/// How many are asked at once.
const AT_ONCE: usize = 16;
/// How long one may take. It answers from memory; one that is ending does not answer at all.
const PATIENCE: Duration = Duration::from_secs(1);
/// No answer of ours is longer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The pods that the autoscaler behind `api` knows of, in the order of their names.
pub(super) async fn pods(api: &Router) -> Vec<ScrapedPod> {
    let Some(list) = answer::<RevisionList>(api, "/v1/revisions").await else { return Vec::new() };
    let mut pods = Vec::new();
    for revision in list.revisions {
        // It may be gone by now.
        let path = format!("/v1/revisions/{}", revision.name);
        let Some(detail) = answer::<RevisionDetail>(api, &path).await else { continue };
        pods.extend(detail.pods.into_iter().filter_map(|pod| {
            let port = pod.details.get("metrics_port")?.parse().ok()?;
            Some(ScrapedPod { revision: revision.name.clone(), pod: pod.name, port })
        }));
    }
    pods
}

/// Our own page, and behind it what the pods' pages say, each line with its pod's name.
pub(super) async fn page(own: String, pods: Vec<ScrapedPod>) -> String {
    if pods.is_empty() {
        return own;
    }
    let mut left_out = pods.len().saturating_sub(PODS_MAX);
    let asked = pods.into_iter().take(PODS_MAX).map(|pod| async move {
        let page = ask(&pod).await;
        (pod, page)
    });
    let mut answers = stream::iter(asked).buffered(AT_ONCE);
    let mut merged = MergedMetrics::default();
    while let Some((pod, page)) = answers.next().await {
        match page {
            Some(page) => merged.add(&pod, &page),
            None => left_out += 1,
        }
    }
    merged.behind(own, left_out)
}

async fn ask(pod: &ScrapedPod) -> Option<String> {
    let address = format!("127.0.0.1:{}", pod.port);
    let asking = client::page(&address, "/metrics");
    let bytes = tokio::time::timeout(PATIENCE, asking).await.ok()?.ok()?;
    String::from_utf8(bytes.into()).ok()
}

/// What the API answers itself.
async fn answer<Answer: DeserializeOwned>(api: &Router, path: &str) -> Option<Answer> {
    serde_json::from_slice(&body(api, path).await?).ok()
}

/// The text of a page of the API; `None` if there is none.
pub(super) async fn text(api: &Router, path: &str) -> Option<String> {
    String::from_utf8(body(api, path).await?).ok()
}

async fn body(api: &Router, path: &str) -> Option<Vec<u8>> {
    let request = Request::get(path).body(Body::empty()).ok()?;
    let response = api.clone().oneshot(request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    Some(to_bytes(response.into_body(), ANSWER_BYTES_MAX).await.ok()?.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use autoscaler::PageServer;
    use axum::routing::get;
    use runtime::{Clock, PageLimits, PagePlaces};
    use vocabulary::{PodName, RevisionName};

    use super::*;

    #[tokio::test]
    async fn one_page_holds_no_more_pods_than_may_be_and_counts_the_others() {
        let asked = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&asked);
        let pod_page = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            std::future::ready(
                "# HELP queue_proxy_ready Ready.\n# TYPE queue_proxy_ready gauge\nqueue_proxy_ready 1\n# EOF\n",
            )
        };
        let listener = runtime::listen(([127, 0, 0, 1], 0).into()).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let router = Router::new().route("/metrics", get(pod_page));
        let places = PagePlaces::new(PageLimits::STANDARD, Clock::start());
        let serving = PageServer::new(router).serve(listener, &places).expect("it listens");
        // A panic of it would be seen below: no answer would come.
        let server = tokio::spawn(serving);
        let pods = (0..PODS_MAX + 50).map(|number| ScrapedPod {
            revision: RevisionName::parse("default/service/hello").expect("a name"),
            pod: PodName::new(&format!("hello-{number}")),
            port,
        });
        let page = page("# EOF\n".to_owned(), pods.collect()).await;
        server.abort();
        assert_eq!(asked.load(Ordering::Relaxed), PODS_MAX);
        assert_eq!(
            page.lines().filter(|line| line.starts_with("queue_proxy_ready{")).count(),
            PODS_MAX,
            "{page}"
        );
        assert!(page.lines().any(|line| line == "supervisor_unscraped_pods 50"), "{page}");
    }
}
