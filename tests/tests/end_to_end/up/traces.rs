//! OpenTelemetry's traces from client to app, on the executable.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tests::client::whole_answer;
use tests::ports::unused_address;
use tests::traces::{Collector, SeenSpan, ask, config_map};
use tests::{ConfigMap, Ebb, Service, eventually};

const PATIENCE: Duration = Duration::from_secs(60);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// `ebb up` with a Service that has no pod yet and notes what it is sent in `journal`, and with traces sent
/// there.
async fn up(folder: &Path, collector: SocketAddr, rate: &str) -> Ebb {
    let file = folder.join("observability.yaml");
    std::fs::write(&file, config_map(collector, rate)).expect("the folder can be written");
    let journal = folder.join("journal").to_string_lossy().into_owned();
    let service = Service::new("hello").args(&["--record", &journal]).scaling("initial-scale", "0");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true");
    Ebb::up_with(&[service], &config, &["-f", file.to_str().expect("UTF-8")]).await
}

/// What the app was sent last as this header.
fn header(folder: &Path, name: &str) -> Option<String> {
    let journal = std::fs::read_to_string(folder.join("journal")).ok()?;
    let line: Value = serde_json::from_str(journal.lines().last()?).ok()?;
    let of_name = |header: &Value| {
        header[0].as_str()?.eq_ignore_ascii_case(name).then(|| header[1].as_str().map(str::to_owned))?
    };
    line["headers"].as_array()?.iter().find_map(of_name)
}

/// The spans of one trace, the activator's first.
async fn until_whole(collector: &Collector, is_of_it: impl Fn(&SeenSpan) -> bool) -> [SeenSpan; 2] {
    eventually("a span of each hop", PATIENCE, || async {
        let spans: Vec<SeenSpan> = collector.spans().into_iter().filter(&is_of_it).collect();
        let of = |service: &str| spans.iter().find(|span| span.service() == service).cloned();
        match (of("activator"), of("queue-proxy")) {
            (Some(activator), Some(queue_proxy)) if spans.len() == 2 => Ok([activator, queue_proxy]),
            _ => Err(format!("{spans:#?}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_trace_goes_from_the_client_through_every_hop_to_the_app_and_shows_the_cold_start() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let collector = Collector::start().await;
    let ebb = up(folder.path(), collector.address, "0").await;
    let host = Service::new("hello").host();
    let parent = format!("00-{TRACE}-{CLIENT}-01");
    let answer = ask(&ebb, &host, "/cold?a=b", &[("traceparent", &parent), ("tracestate", "a=b")]).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let [activator, queue_proxy] = until_whole(&collector, |span| span.trace == TRACE).await;
    // One behind the other, the app behind both.
    assert_eq!((activator.parent.as_str(), &queue_proxy.parent), (CLIENT, &activator.span));
    assert_eq!(header(folder.path(), "traceparent"), Some(format!("00-{TRACE}-{}-01", queue_proxy.span)));
    assert_eq!(header(folder.path(), "tracestate").as_deref(), Some("a=b"));
    for span in [&activator, &queue_proxy] {
        assert_eq!((span.name.as_str(), span.trace_state.as_str(), span.is_error), ("GET", "a=b", false));
        assert_eq!(
            (&span.attributes["url.path"], &span.attributes["http.response.status_code"]),
            (&"/cold".into(), &200.into())
        );
        assert!(span.began <= span.ended, "{span:?}");
    }
    assert!(activator.began <= queue_proxy.began && queue_proxy.ended <= activator.ended);
    // What the activator waited for, and where the time went.
    assert_eq!(activator.attributes["ebb.cold_start"], true);
    assert_eq!(activator.attributes["ebb.revision"], "default/service/hello");
    assert_eq!(activator.events, ["waiting", "granted", "answered"]);
    assert!(activator.seconds("ebb.wait_seconds").is_some_and(|seconds| seconds > 0.0), "{activator:?}");
    assert_eq!(queue_proxy.events, ["admitted", "answered"]);
    assert!(queue_proxy.seconds("ebb.app_seconds").is_some_and(|seconds| seconds > 0.0), "{queue_proxy:?}");
    assert_eq!(queue_proxy.program["kn.service.name"], "hello");
    // A request whose client does not ask for a trace has none at a share of 0, and every hop hears that it
    // has none.
    let before = collector.spans().len();
    for _ in 0..3 {
        assert!(ask(&ebb, &host, "/none", &[]).await.starts_with("HTTP/1.1 200"));
    }
    let sent = header(folder.path(), "traceparent").expect("the first hop has decided");
    assert!(sent.ends_with("-00"), "{sent}");
    // Something later in the same queues shows that nothing came before it.
    let later = format!("00-{}-{CLIENT}-01", "1".repeat(32));
    ask(&ebb, &host, "/later", &[("traceparent", &later)]).await;
    let [warm, _] = until_whole(&collector, |span| span.trace == "1".repeat(32)).await;
    assert_eq!((collector.spans().len(), warm.attributes.get("ebb.cold_start")), (before + 2, None));
    // All of them from now on, also in pods that start from now on; the trace begins here.
    let file = folder.path().join("observability.yaml");
    std::fs::write(file, config_map(collector.address, "1")).expect("the folder can be written");
    eventually("a trace of its own", PATIENCE, || async {
        ask(&ebb, &host, "/all", &[("tracestate", "of=nothing")]).await;
        let spans = collector.spans();
        let all = || spans.iter().filter(|span| span.attributes["url.path"] == "/all");
        let first = all().find(|span| span.service() == "activator" && span.parent.is_empty());
        let second = first.and_then(|first| all().find(|span| span.parent == first.span));
        if second.is_some_and(|second| second.service() == "queue-proxy") {
            Ok(())
        } else {
            Err(format!("{spans:#?}"))
        }
    })
    .await;
    assert_eq!(header(folder.path(), "tracestate"), None);
}

#[tokio::test]
async fn a_refusal_of_the_activator_is_a_span_that_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let collector = Collector::start().await;
    let ebb = up(folder.path(), collector.address, "1").await;
    assert!(ask(&ebb, "nobody.example.com", "/", &[]).await.starts_with("HTTP/1.1 404"));
    let span = eventually("its span", PATIENCE, || async {
        collector.spans().first().cloned().ok_or_else(|| "none".to_owned())
    })
    .await;
    assert_eq!(
        (span.service(), span.is_error),
        ("activator", false),
        "by OpenTelemetry's rules a 404 is no error of the server"
    );
    assert_eq!(span.attributes["error.type"], "no-such-revision");
    assert_eq!(span.attributes["http.response.status_code"], 404);
}

#[tokio::test]
async fn a_collector_that_is_gone_loses_spans_which_are_counted_and_no_request() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = up(folder.path(), unused_address(), "1").await;
    ebb.load("hello").burst(200).await.assert_all_answered();
    ebb.load("hello").closed_loop(8, Duration::from_secs(2)).await.assert_all_answered();
    eventually("both programs count what they lost", PATIENCE, || async {
        let page = whole_answer(ebb.api, "localhost", "/metrics").await.expect("there is a page");
        let has_lost = |program: &str| {
            page.lines().any(|line| {
                let is_its = line.starts_with(&format!("{program}_dropped_spans_total{{"));
                is_its && line.contains("reason=\"not_delivered\"") && !line.ends_with(" 0")
            })
        };
        if has_lost("activator") && has_lost("queue_proxy") { Ok(()) } else { Err(page) }
    })
    .await;
    assert!(ebb.output().contains("traces cannot be delivered"), "{}", ebb.output());
}
