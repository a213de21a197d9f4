//! nghttp2's client and its load generator.

use std::process::{Command, Output};

use crate::clients::{Door, body_file};

/// As many requests as the load generator sends, in as many streams as a few connections take.
const REQUESTS: usize = 400;

/// How large each of their bodies is.
const LOAD_BYTES: usize = 256 * 1024;

pub(crate) fn check(door: &Door) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let sent = body_file(folder.path());
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", door.port);
    let authority = format!(":authority: {}", door.host);

    let got = Command::new("nghttp")
        .args(["--header", &authority, "--data"])
        .arg(&sent)
        .arg(url("/stream"))
        .output();
    let got = whole(got.expect("nghttp starts; install it with: apt-get install -y nghttp2-client"));
    assert!(
        got.stdout == std::fs::read(&sent).expect("we wrote it"),
        "{}, nghttp: another body came back",
        door.name
    );

    let small = folder.path().join("small");
    std::fs::write(&small, vec![b'x'; LOAD_BYTES]).expect("there is room for a body");
    let verbose = ["--null-out", "--verbose", "--trailer", "x-sent: 7", "--header", &authority, "--data"];
    let said = Command::new("nghttp").args(verbose).arg(&small).arg(url("/stream")).output();
    let said = String::from_utf8_lossy(&whole(said.expect("nghttp starts")).stdout).into_owned();
    assert!(said.contains("x-echoed: 7") && said.contains("grpc-status: 0"), "{}, nghttp: {said}", door.name);

    for protocol in ["h2c", "h1"] {
        let mut load = Command::new("h2load");
        load.args(["--requests", &REQUESTS.to_string(), "--clients", "4", "--header", &authority]);
        match protocol {
            "h1" => load.arg("--h1"),
            _ => load.args(["--max-concurrent-streams", "10"]),
        };
        let said = load.arg("--data").arg(&small).arg(url("/stream")).output().expect("h2load starts");
        let said = String::from_utf8_lossy(&whole(said).stdout).into_owned();
        let all = format!("{REQUESTS} succeeded, 0 failed, 0 errored");
        assert!(said.contains(&all), "{}, h2load over {protocol}: {said}", door.name);
    }
    println!("{}: nghttp: body, trailers; h2load over both protocols", door.name);
}

fn whole(output: Output) -> Output {
    assert!(output.status.success(), "{output:?}");
    output
}
