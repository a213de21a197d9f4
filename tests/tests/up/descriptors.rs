//! A process with few file descriptors: who may keep a connection when thousands want one.

use std::net::SocketAddr;

use tests::{ConfigMap, Ebb, Service};
use tokio::net::TcpStream;

/// What a careful system gives; what a careless one allows.
const FEW: &str = "ulimit -S -n 64 && ulimit -H -n 512";

/// Half of what 512 descriptors leave beyond 128.
const CLIENTS_MAX: usize = 192;

/// How many more may be accepted in the instant that the last place is taken: one by each thread.
const AT_ONCE: usize = 8;

/// As many silent clients, ten at a time; after each ten an honest one asks something on a new connection,
/// which is accepted after theirs.
async fn crowd(address: SocketAddr, size: usize, ebb: &Ebb) -> Vec<TcpStream> {
    let mut silent = Vec::new();
    while silent.len() < size {
        for _ in 0..10 {
            silent.push(TcpStream::connect(address).await.expect("it listens"));
        }
        ebb.load("hello").one().await.assert_all_answered();
    }
    silent
}

fn metric(ebb: &Ebb, line: &str) -> usize {
    let page = tests::bench::api::get(ebb.api, "localhost", "/metrics").expect("a page");
    let value = page.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {line} in\n{page}"))
}

#[tokio::test]
async fn thousands_of_silent_clients_keep_nobody_out() {
    let hello = Service::new("hello").scaling("min-scale", "1");
    let ebb = Ebb::up_after(FEW, &[hello], &ConfigMap::short()).await;
    let revision = ebb.until_pods("hello", 1).await;
    let at_the_activator = crowd(ebb.requests, 2_000, &ebb).await;
    let closed = metric(&ebb, "activator_closed_idle_connections_total{reason=\"crowding\"}");
    assert!(closed >= at_the_activator.len() - CLIENTS_MAX - AT_ONCE, "{closed} were closed");
    assert_eq!(metric(&ebb, "activator_connections_max"), CLIENTS_MAX);
    // The queue-proxy raised its own limit, and does the same.
    let requests = revision.pods()[0]["requests"].as_str().expect("an address").parse().expect("an address");
    let at_the_pod = crowd(requests, 1_000, &ebb).await;
    drop((at_the_activator, at_the_pod));
    ebb.load("hello").one().await.assert_all_answered();
}

/// One that uses `select` breaks at the first descriptor beyond 1,023.
#[tokio::test]
async fn the_app_has_the_limits_that_ebb_was_started_with() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = folder.path().join("limits");
    let script =
        format!("echo $(ulimit -S -n) $(ulimit -H -n) >{}; exec {}", said.display(), tests::ebb::test_app());
    let hello = Service::running("hello", &["sh", "-c", &script]).scaling("min-scale", "1");
    let ebb = Ebb::up_after(FEW, &[hello], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    assert_eq!(std::fs::read_to_string(said).expect("the app wrote it"), "64 512\n");
    let own = std::fs::read_to_string(format!("/proc/{}/limits", ebb.pid())).expect("it runs");
    let own = own.lines().find(|line| line.starts_with("Max open files")).expect("there is a limit");
    assert_eq!(own.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["512", "512"], "{own}");
}
