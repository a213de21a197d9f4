//! curl, over HTTP/1.1, HTTP/2 with prior knowledge, and with the offer of an upgrade that no proxy takes.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::clients::{ALL, Door, body_file};

/// What it does below, by protocol.
pub(crate) const SHOWN: [(&str, &str, &[&str]); 2] = [("curl", "http1", ALL), ("curl", "h2c", ALL)];

/// The protocols, as options of curl.
const PROTOCOLS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

/// Without `Expect: 100-continue`, after which nothing would be written for a second.
const NO_QUESTION: [&str; 2] = ["--header", "Expect:"];

/// What it ends with when its time is over.
const TIMED_OUT: i32 = 28;

pub(crate) fn check(door: &Door) {
    for protocol in PROTOCOLS {
        body_and_trailers(door, protocol);
        duplex(door, protocol);
        cancel(door, protocol);
        println!("{}: curl {protocol}: body, trailers, duplex, cancel", door.name);
    }
    let output = curl(door, "/", &["--http2", "--write-out", "%{http_version} %{http_code}"]).output();
    let said = whole(&output.expect("curl starts"));
    assert!(said.ends_with("1.1 200"), "{}: an upgrade to HTTP/2 was offered: {said}", door.name);
}

fn curl(door: &Door, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--header", &format!("Host: {}", door.host)]);
    // Over HTTP/1.1 trailers are sent only to a client that says that it reads them.
    command.args(["--header", "TE: trailers"]).args(arguments);
    command.arg(format!("http://127.0.0.1:{}{path}", door.port));
    command
}

fn whole(output: &Output) -> String {
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{why}; curl is installed with: apt-get install -y curl");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn body_and_trailers(door: &Door, protocol: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (sent, got, head) = (body_file(folder.path()), folder.path().join("got"), folder.path().join("head"));
    let [sent_text, got_text, head_text] =
        [&sent, &got, &head].map(|path| path.to_string_lossy().into_owned());
    let files = [protocol, "--upload-file", &sent_text, "--output", &got_text, "--dump-header", &head_text];
    let read = |path| std::fs::read(path).expect("curl wrote it");
    // Over HTTP/1.1 it asks first whether the body is wanted. The second app answers before it reads, and
    // gets the body that it has not asked for.
    for path in ["/", "/stream"] {
        whole(&curl(door, path, &files).output().expect("curl starts"));
        assert!(read(&sent) == read(&got), "{}, curl {protocol}, {path}: another body came back", door.name);
    }
    let head = String::from_utf8_lossy(&read(&head)).to_ascii_lowercase();
    assert!(head.contains("grpc-status: 0"), "{}, curl {protocol}: no trailers in {head}", door.name);
}

/// What is written comes back before more is written.
fn duplex(door: &Door, protocol: &str) {
    let upload = [protocol, "--no-buffer", "--upload-file", "."];
    let mut command = curl(door, "/stream", &[&upload[..], &NO_QUESTION].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("curl starts");
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (mut stdin, mut stdout) = stdin.zip(stdout).expect("both are pipes");
    for turn in 0..10_u8 {
        let mut back = [0; 5];
        stdin.write_all(&[turn; 5]).expect("curl reads");
        stdin.flush().expect("curl reads");
        stdout.read_exact(&mut back).expect("curl writes");
        assert_eq!(back, [turn; 5], "{}, curl {protocol}", door.name);
    }
    drop(stdin);
    assert!(child.wait().expect("curl ends").success());
}

fn cancel(door: &Door, protocol: &str) {
    let asked = curl(door, "/?sleep=600000", &[protocol, "--max-time", "1"]).output().expect("curl starts");
    assert_eq!(asked.status.code(), Some(TIMED_OUT), "{}, curl {protocol}", door.name);
    // Others are served, and sooner or later alone.
    loop {
        let said = whole(&curl(door, "/", &[protocol, "--include"]).output().expect("curl starts"));
        assert!(said.ends_with("ok\n"), "{said}");
        if said.to_ascii_lowercase().contains("x-in-flight: 1\r") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
