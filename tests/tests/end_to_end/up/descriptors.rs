//! Connections as the kernel has them: who may keep one when thousands want one and file descriptors are few,
//! and which peers are asked whether they live.

use std::net::SocketAddr;
use std::time::Duration;

use tests::world::{ROUTINGS, warm};
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a careful system gives; what a careless one allows.
const FEW: &str = "ulimit -S -n 64 && ulimit -H -n 512";

/// Half of what 512 descriptors leave beyond 168.
const CLIENTS_MAX: usize = 172;

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
    let raised = "the limit of open files and sockets was raised found=64 present=512";
    assert!(ebb.output().contains(raised), "{}", ebb.output());
}

/// Every established TCP connection of this machine: both ports, and whether the kernel is to ask the peer
/// when it is silent for long (`tr` in proc(5)).
fn connections() -> Vec<(u16, u16, bool)> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let connection = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_established = columns.get(3) == Some(&"01");
        let is_asked = columns.get(5)?.starts_with("02:");
        Some((port(columns.get(1)?)?, port(columns.get(2)?)?, is_asked)).filter(|_| is_established)
    };
    table.lines().filter_map(connection).collect()
}

/// After which times is tested beside them, and so is the way to an app on another machine (`dataplane`).
#[tokio::test]
async fn clients_that_are_silent_are_asked_whether_they_live() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        let mut stream = TcpStream::connect(ebb.requests).await.expect("it listens");
        // First it owes a request, then it waits for an answer.
        for path in ["/", "/?sleep=60000"] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", routing.host());
            stream.write_all(request.as_bytes()).await.expect("it is read");
            let mut answer = Vec::new();
            while path == "/" && !answer.ends_with(b"ok\n") {
                assert!(stream.read_buf(&mut answer).await.expect("it answers") > 0, "{answer:?}");
            }
            let client = stream.local_addr().expect("it is connected").port();
            eventually("the client's connection is watched", Duration::from_secs(10), || async {
                let all = connections();
                let is_so = all.contains(&(ebb.requests.port(), client, true));
                if is_so { Ok(()) } else { Err(format!("{client} at {}: {all:?}", ebb.requests)) }
            })
            .await;
        }
    }
}
