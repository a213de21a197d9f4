//! A queue-proxy in the place of Knative's, in a pod that Knative's controller made: contract §6.3, §6.5. Who
//! asks there proves nothing: kubelet, an ingress, an activator of Knative's.

use std::time::Duration;

use prost::Message as _;
use queue_proxy::Stat;
use vocabulary::{PodState, PodWord};

use crate::world::{App, HOP_KEY, Proxy, UnlinkedProxy, ask, metric, run};

const KUBELET: (&str, &str) = ("User-Agent", "kube-probe/1.34");
const ACTIVATOR: (&str, &str) = ("User-Agent", "Knative-Activator-Probe");
const QUEUE: (&str, &str) = ("K-Network-Probe", "queue");
const PROXIED: (&str, &str) = ("K-Proxy-Request", "activator");
/// What Knative's controller writes, and a proof by which the test's autoscaler may call.
const PLACE: [(&str, &str); 4] = [
    ("SYSTEM_NAMESPACE", "knative-serving"),
    ("QUEUE_SERVING_TLS_PORT", "8112"),
    ("SERVING_NAMESPACE", "default"),
    ("EBB_LINK_TOKEN", "000102030405060708090a0b0c0d0e0f"),
];

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&PLACE[..], more].concat()
}

/// A pod whose app is ready.
async fn ready(more: &[(&str, &str)]) -> (App, Proxy) {
    let app = App::hello().await;
    let proxy = Proxy::start(app.port, &with(more)).await;
    while ask(proxy.ports.requests, "GET", "/", &[KUBELET, QUEUE], b"").await.status != 200 {}
    (app, proxy)
}

#[test]
fn probes_on_the_request_port_are_answered_without_a_key_and_never_reach_the_app() {
    run(async {
        let (app, proxy) = ready(&[]).await;
        let hash = ("K-Network-Hash", "abc");
        let ingress = ("User-Agent", "Knative-Ingress-Probe");
        for (headers, status, body) in [
            (&[KUBELET, QUEUE][..], 200, "queue"),
            (&[ACTIVATOR, QUEUE], 200, "queue"),
            (&[ingress, ("K-Network-Probe", "probe"), hash], 200, ""),
            (
                &[ingress, ("K-Network-Probe", "probe")],
                400,
                "a probe request must contain a non-empty \"K-Network-Hash\" header\n",
            ),
            (&[KUBELET, ("K-Network-Probe", "activator")], 400, "unexpected probe header value: activator\n"),
        ] {
            let answer = proxy.get("/", headers).await;
            assert_eq!((answer.status, answer.body.as_str()), (status, body), "{headers:?}");
        }
        let echo = proxy.get("/healthz", &[ingress, ("K-Network-Probe", "probe"), hash]).await;
        assert_eq!(echo.header("k-network-hash"), "abc");
        assert_eq!(app.state.seen.get(), 0);
        // A health check of a client is the app's.
        assert_eq!(proxy.get("/", &[KUBELET]).await.body, "hello");
        assert_eq!(metric(&proxy, "queue_proxy_requests_total{outcome=\"answered\"}").await, "1");
    });
}

/// Kubelet asks once in ten seconds: an answer at once would delay the pod's readiness by so much.
#[test]
fn a_question_about_a_starting_app_is_answered_as_soon_as_it_is_ready() {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ready");
        let probe = format!("{{\"exec\":{{\"command\":[\"test\",\"-e\",\"{}\"]}}}}", path.display());
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &with(&[("SERVING_READINESS_PROBE", &probe)])).await;
        // Neither waits for ever, and the one of an activator less long.
        for agent in [ACTIVATOR, KUBELET] {
            assert_eq!(proxy.get("/", &[agent, QUEUE]).await.status, 503, "{agent:?}");
        }
        let asked = tokio::task::spawn_local({
            let port = proxy.ports.requests;
            async move {
                // As kubelet asks again and again.
                loop {
                    let answer = ask(port, "GET", "/", &[KUBELET, QUEUE], b"").await;
                    if answer.status == 200 {
                        return answer.body;
                    }
                }
            }
        });
        std::fs::write(&path, "").expect("writable");
        assert_eq!(asked.await.expect("no panic"), "queue");
        assert_eq!(app.state.seen.get(), 0);
    });
}

#[test]
fn a_draining_pod_tells_every_prober_and_serves_what_still_comes() {
    run(async {
        let (_app, mut proxy) = ready(&[("EBB_DRAIN_LINGER", "30s")]).await;
        proxy.leaving.cancel();
        while !matches!(proxy.heard().await, PodWord::State { state: PodState::Draining, .. }) {}
        let network = [("K-Network-Probe", "probe"), ("K-Network-Hash", "abc")];
        for headers in [&[KUBELET, QUEUE][..], &[ACTIVATOR, QUEUE], &network] {
            let answer = proxy.get("/", headers).await;
            assert_eq!((answer.status, answer.body.as_str()), (503, "shutting down\n"), "{headers:?}");
        }
        assert_eq!(proxy.get("/", &[]).await.status, 200);
    });
}

#[test]
fn knatives_words_are_believed_and_ours_are_not() {
    run(async {
        let (app, proxy) = ready(&[]).await;
        let sent = [
            ("K-Original-Host", "mapped.example.org"),
            ("Knative-Serving-Revision", "hello-00001"),
            ("Knative-Serving-Namespace", "default"),
            ("Knative-Serving-Tag", "blue"),
            ("Ebb-Hop-Key", "no key"),
            ("Ebb-Unmeasured", "1"),
            PROXIED,
        ];
        assert_eq!(proxy.get("/", &sent).await.status, 200);
        let seen = [
            "host",
            "k-original-host",
            "knative-serving-revision",
            "knative-serving-namespace",
            "knative-serving-tag",
            "ebb-hop-key",
            "ebb-unmeasured",
            "k-proxy-request",
        ]
        .map(|name| app.state.saw(name));
        assert_eq!(seen, ["mapped.example.org", "-", "-", "-", "blue", "-", "-", "activator"]);
        // Of one of our hops as everywhere.
        let hop = [("Ebb-Hop-Key", HOP_KEY), ("K-Original-Host", "shop"), PROXIED];
        assert_eq!(proxy.get("/", &hop).await.status, 200);
        assert_eq!((app.state.saw("host"), app.state.saw("ebb-hop-key")), ("shop".into(), "-".into()));
    });
}

/// How many requests came through activators, as Knative's page says of the first second that had any.
async fn proxied(stat: u16) -> f64 {
    loop {
        let page = ask(stat, "GET", "/metrics", &[("Accept", "application/protobuf")], b"").await;
        let stat = Stat::decode(page.bytes.as_slice()).expect("a stat");
        if stat.request_count > 0.0 {
            assert_eq!(stat.pod_name, "hello-1", "as Knative's is called");
            return stat.proxied_request_count;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An activator of Knative's counts its requests itself. Once the pod has keys of an owner it has none in the
/// path, and the word is a client's.
#[test]
fn requests_of_knatives_activators_count_there_until_the_pod_knows_keys() {
    run(async {
        let app = App::hello().await;
        let unlinked = UnlinkedProxy::start(app.port, &with(&[]));
        assert_eq!(ask(unlinked.ports.requests, "GET", "/", &[PROXIED], b"").await.status, 200);
        assert_eq!(proxied(unlinked.ports.stat).await, 1.0);
        let (_app, linked) = ready(&[]).await;
        assert_eq!(linked.get("/", &[PROXIED]).await.status, 200);
        assert_eq!(proxied(linked.ports.stat).await, 0.0);
    });
}

/// A container of the app may have the port of the link, and no authority need be known.
#[test]
fn a_pod_serves_without_a_link_where_none_can_be_had() {
    run(async {
        let occupied = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = occupied.local_addr().expect("bound").port().to_string();
        for changes in
            [("EBB_LINK_PORT", port.as_str()), ("EBB_LINK_TOKEN", ""), ("ROOT_CA", "no certificate")]
        {
            let app = App::hello().await;
            let proxy = UnlinkedProxy::start(app.port, &with(&[changes]));
            assert_eq!(proxy.ports.link, 0, "{changes:?}");
            assert_eq!(ask(proxy.ports.requests, "GET", "/", &[], b"").await.status, 200, "{changes:?}");
            let page = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.body;
            assert!(page.contains("queue_proxy_link_port 0"), "{changes:?} {page}");
        }
    });
}
