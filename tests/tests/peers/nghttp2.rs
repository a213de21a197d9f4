//! nghttp2's client and its load generator.
//!
//! `nghttp` reads all of a body before it sends any, so it has no turns; `h2load` sends no trailers and shows
//! no app's, and counts what comes back without a look at it.

use std::process::{Command, Output};
use std::time::Duration;

use crate::clients::{Door, body_file, megabytes};

/// What they do below, by protocol.
pub(crate) const SHOWN: [(&str, &str, &[&str]); 3] = [
    ("nghttp", "h2c", &["body", "trailers", "cancel"]),
    ("h2load", "http1", &["body", "cancel"]),
    ("h2load", "h2c", &["body", "cancel"]),
];

/// As many requests as the load generator sends, in as many streams as a few connections take.
const REQUESTS: usize = 400;

/// How large each of their bodies is.
const LOAD_BYTES: usize = 256 * 1024;

pub(crate) fn check(door: &Door) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let large = body_file(folder.path());
    let got = nghttp(door, "/stream").arg("--data").arg(&large).output();
    let got = whole(got.expect("nghttp starts; install it with: apt-get install -y nghttp2-client"));
    assert!(
        got.stdout == std::fs::read(&large).expect("we wrote it"),
        "{}, nghttp: another body came back",
        door.name
    );

    let small = folder.path().join("small");
    std::fs::write(&small, vec![b'x'; LOAD_BYTES]).expect("there is room for a body");
    // To an app of HTTP/1.1 a body of a known length has no trailers, and it sends some to a client that says
    // that they are read.
    let with_trailers = ["--no-content-length", "--header", "te: trailers", "--trailer", "x-sent: 7"];
    let verbose = ["--null-out", "--verbose", "--data"];
    let said = text(nghttp(door, "/stream").args(with_trailers).args(verbose).arg(&small));
    assert!(said.contains("x-echoed: 7") && said.contains("grpc-status: 0"), "{}, nghttp: {said}", door.name);
    // It gives up after a second.
    let left = nghttp(door, "/?sleep=600000").args(["--timeout", "1"]).output().expect("nghttp starts");
    let why = String::from_utf8_lossy(&whole(left).stderr).into_owned();
    assert!(why.contains("Some requests were not processed"), "{}, nghttp: {why}", door.name);
    until_alone(door);
    println!("{}: nghttp: body, trailers, cancel", door.name);

    for protocol in ["h2c", "h1"] {
        let load = |path: &str| h2load(door, protocol, path);
        let many = ["--requests", &REQUESTS.to_string(), "--clients", "4", "--data"];
        check_load(&text(load("/stream").args(many).arg(&small)), REQUESTS, REQUESTS * LOAD_BYTES);
        let one = ["--requests", "1", "--clients", "1", "--data"];
        check_load(&text(load("/stream").args(one).arg(&large)), 1, megabytes() * 1024 * 1024);
        let leaving = ["--requests", "1", "--clients", "1", "--connection-active-timeout", "1"];
        let said = text(load("/?sleep=600000").args(leaving));
        assert!(said.contains("0 succeeded"), "{}, h2load over {protocol}: {said}", door.name);
        until_alone(door);
    }
    println!("{}: h2load over both protocols: body, cancel", door.name);
}

fn nghttp(door: &Door, path: &str) -> Command {
    let mut command = Command::new("nghttp");
    command.args(["--header", &format!(":authority: {}", door.host)]);
    command.arg(format!("http://127.0.0.1:{}{path}", door.port));
    command
}

fn h2load(door: &Door, protocol: &str, path: &str) -> Command {
    let mut command = Command::new("h2load");
    command.args(["--header", &format!(":authority: {}", door.host)]);
    match protocol {
        "h1" => command.arg("--h1"),
        _ => command.args(["--max-concurrent-streams", "10"]),
    };
    command.arg(format!("http://127.0.0.1:{}{path}", door.port));
    command
}

/// Fails unless so many requests were answered, with so many bytes in all.
fn check_load(said: &str, requests: usize, bytes: usize) {
    for all in [format!("{requests} succeeded, 0 failed, 0 errored"), format!("({bytes}) data")] {
        assert!(said.contains(&all), "h2load does not say {all:?}: {said}");
    }
}

/// A client that went is gone at the app, sooner or later.
fn until_alone(door: &Door) {
    let said = || text(nghttp(door, "/").args(["--null-out", "--verbose"]));
    while !said().contains("x-in-flight: 1\n") {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn text(command: &mut Command) -> String {
    let output = whole(command.output().expect("nghttp2's programs start"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn whole(output: Output) -> Output {
    assert!(output.status.success(), "{output:?}");
    output
}
