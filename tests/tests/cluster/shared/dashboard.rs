//! `kubectl ebb dashboard`: the pages at a port of this machine, with the answers of the cluster's
//! autoscalers.

use std::process::Stdio;

use tests::client::answer_until;
use tests::cluster::{PATIENCE, WorkloadPlan, in_namespace, plugin_of_kubectl};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// What has come of the answer to `GET path` once a text is in it.
async fn asked(address: &str, path: &str, token: &str, until: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    answer_until(&mut stream, until, PATIENCE).await
}

#[test]
fn the_dashboard_of_a_cluster_shows_its_revisions_to_a_reader_with_the_token_alone() {
    in_namespace("dashboard", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_event("Adopted").await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = plugin_of_kubectl(&namespace, folder.path());
        command.args(["dashboard", "--print-only"]).stdout(Stdio::piped());
        let mut dashboard = command.spawn().expect("it runs");
        let output = dashboard.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it prints in time");
        let line = first.expect("it can be read").expect("it prints its address");
        let (address, token) =
            line.strip_prefix("http://").and_then(|rest| rest.split_once("/#")).expect("both");

        let name = format!("{}/deployment/hello", namespace.name);
        asked(address, "/v1/stream", token, &name).await;
        asked(address, &format!("/v1/revisions/{name}"), token, "\"decisions\"").await;
        asked(address, &format!("/v1/revisions/{name}/series?range=15m"), token, "\"step_ms\":1000").await;
        asked(address, "/v1/ledger?since=7d", token, &name).await;
        asked(address, "/", "", "/dashboard/app.js").await;
        let refused = asked(address, "/v1/revisions", "", "this needs the token").await;
        assert!(refused.starts_with("HTTP/1.1 401") && !refused.contains(&name), "{refused}");
    });
}
