//! What Prometheus' own checker says of our pages.

use std::io::Write;
use std::process::{Command, Stdio};

use tests::{ConfigMap, Ebb, Service};

use crate::stopwatch::Stopwatch;

/// A page as plain text.
fn page(port: u16) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--fail", "--noproxy", "*", "--header", "Accept: text/plain"])
        .arg(format!("http://127.0.0.1:{port}/metrics"))
        .output()
        .expect("curl is there; install it with: apt-get install -y curl");
    assert!(output.status.success(), "no page on port {port}");
    String::from_utf8(output.stdout).expect("a page is text")
}

fn check(page: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`promtool` is there; install it with: apt-get install -y prometheus");
    promtool.stdin.take().expect("it is piped").write_all(page.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}\n{page}");
}

#[tokio::test]
async fn promtool_finds_nothing_to_say_about_our_pages() {
    let _timed = Stopwatch::of("promtool finds nothing to say about our pages");
    let ebb = Ebb::up(&[Service::new("hello").scaling("min-scale", "1")], &ConfigMap::short()).await;
    let revision = ebb.until_pods("hello", 1).await;
    ebb.load("hello").burst(20).await.assert_all_answered();
    let all = page(ebb.api.port());
    let labels = "{namespace=\"default\",revision=\"service/hello\",class=\"2xx\"}";
    assert!(all.contains(&format!("\nactivator_responses_total{labels} 20\n")), "{all}");
    assert!(all.contains("\nactivator_request_duration_seconds_count{namespace=\"default\",revision=\"service/hello\"} 20\n"), "{all}");
    check(&all);
    let port = revision.pods()[0]["details"]["metrics_port"].as_str().and_then(|port| port.parse().ok());
    let own = page(port.expect("a pod says where its metrics are"));
    assert!(own.contains("\nqueue_proxy_responses_total{class=\"2xx\"} 20\n"), "{own}");
    check(&own);
}
