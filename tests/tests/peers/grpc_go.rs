//! grpc-go with its bandwidth estimation, as fast as it can in both directions: no stream breaks.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::bench::machine::Cores;
use tests::bench::process::Process;
use tests::bench::proxies::{Place, Protocol, Target, queue_proxy};
use tests::world::{ROUTINGS, warm};

use crate::programs::built;
use crate::stopwatch::Stopwatch;

#[test]
fn no_stream_breaks_at_the_queue_proxy() {
    let _timed = Stopwatch::of("no stream breaks at the queue proxy");
    let program = program();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let cores = Cores::divide().expect("this process runs on some core").all();
    let place = Place { folder: folder.path(), cores: &cores };
    let mut command = Command::new(&program);
    command.args(["server", "--port", "0"]);
    let mut server =
        Process::start(command, "grpc-go", place.folder, place.cores).expect("the server starts");
    let said = server.first_line().expect("the server says where it listens");
    let port = serde_json::from_str::<Value>(&said).expect("it is JSON")["port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok()).expect("it is a port");
    let target = Target { protocol: Protocol::H2c, port };
    let ours = queue_proxy(&tests::ebb::executable(), target, 0, place).expect("the queue-proxy serves");
    check("the queue-proxy alone", &run(&program, ours.port, "localhost"));
}

#[tokio::test]
async fn no_stream_breaks_in_either_routing() {
    let _timed = Stopwatch::of("no stream breaks in either routing");
    let program = program();
    let name = program.to_string_lossy().into_owned();
    let ebb = warm(|service| service.command(&[&name, "server"])).await;
    for routing in ROUTINGS {
        let (program, port) = (program.clone(), ebb.requests.port());
        let running = tokio::task::spawn_blocking(move || run(&program, port, &routing.host()));
        check(&format!("{routing:?}"), &running.await.expect("it runs"));
    }
}

fn program() -> PathBuf {
    built("grpc-go", ".")
}

/// What the client says of its streams and calls.
fn run(program: &Path, port: u16, authority: &str) -> Value {
    let seconds = std::env::var("PEERS_SECONDS").unwrap_or_else(|_| "10".to_owned());
    let output = Command::new(program)
        .args(["client", "--target", &format!("127.0.0.1:{port}"), "--authority", authority])
        .args(["--time", &format!("{seconds}s")])
        .output()
        .expect("the client starts");
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("the client says {said:?} {}", String::from_utf8_lossy(&output.stderr)))
}

fn check(way: &str, said: &Value) {
    let failures = said["failures"].as_array().expect("the client lists failures");
    let shown: Vec<String> = failures.iter().take(5).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{way}: {} streams and calls broke:\n{}", failures.len(), shown.join("\n"));
    let count = |what: &str| said[what].as_u64().unwrap_or(0);
    // Two connections with four streams of each of three kinds.
    assert_eq!(count("streams"), 24, "{way}: {said}");
    assert!(count("calls") > 0 && count("megabytes") > 0, "{way}: nothing flowed: {said}");
    println!("{way}: {} MB in {} streams beside {} calls", count("megabytes"), 24, count("calls"));
}
