//! What h2spec, in its strict form, says of both proxies.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tests::bench::machine::Cores;
use tests::bench::proxies::{App, Place, Protocol, queue_proxy};
use tests::bench::up::service;
use tests::{ConfigMap, Ebb};

use crate::programs::{app, built};
use crate::stopwatch::Stopwatch;

/// How many cases this version has.
const CASES: usize = 146;

/// The cases that fail for good reason. A connection that does not begin with HTTP/2's preface is one of
/// HTTP/1.1, for the port speaks both, and gets the 400 that HTTP/1.1 has for what cannot be read.
const EXCEPTIONS: [&str; 1] = ["http2/3.5: Sends invalid connection preface"];

/// How long a case may wait on a slow machine for what it wants to see, in seconds. Only a failing case waits
/// for it.
const PATIENCE: &str = "10";

#[tokio::test]
async fn the_activator_is_as_strict_as_the_standard() {
    let _timed = Stopwatch::of("the activator is as strict as the standard");
    let services = [service("spec", &app()).scaling("target-burst-capacity", "-1").scaling("min-scale", "1")];
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    ebb.until_pods("spec", 1).await;
    let port = ebb.requests.port();
    check("the activator", &tokio::task::spawn_blocking(move || report(port)).await.expect("it runs"));
}

#[test]
fn the_queue_proxy_is_as_strict_as_the_standard() {
    let _timed = Stopwatch::of("the queue proxy is as strict as the standard");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let cores = Cores::divide().expect("this process runs on some core").all();
    let place = Place { folder: folder.path(), cores: &cores };
    let app = App::start(place.folder, place.cores).expect("the app starts");
    let ours = queue_proxy(&tests::ebb::executable(), app.target(Protocol::H2c), 0, place);
    check("the queue-proxy", &report(ours.expect("the queue-proxy serves").port));
}

/// What h2spec writes for programs to read. The response that some cases want has five bytes or more.
fn report(port: u16) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("report.xml");
    let output = Command::new(built("h2spec", "github.com/summerwind/h2spec/cmd/h2spec"))
        .args(["--strict", "--host", "localhost", "--path", "/bytes/1000", "--timeout", PATIENCE])
        .args(["--port", &port.to_string(), "--junit-report"])
        .arg(&file)
        .output()
        .expect("h2spec starts");
    fs::read_to_string(&file).unwrap_or_else(|_| panic!("h2spec wrote no report: {output:?}"))
}

fn check(proxy: &str, report: &str) {
    let cases: Vec<&str> = report.split("<testcase ").skip(1).collect();
    assert_eq!(cases.len(), CASES, "{proxy}: h2spec ran another number of cases");
    // A case that passed has nothing within it. One that was skipped proves nothing either.
    let failed: BTreeSet<String> =
        cases.iter().filter(|case| !case.contains("></testcase>")).map(|case| title(case)).collect();
    let expected: BTreeSet<String> = EXCEPTIONS.map(str::to_owned).into();
    assert_eq!(failed, expected, "{proxy}: the cases that fail (left) and those that may (right)");
}

/// The title of a case, as `section: what it does`.
fn title(case: &str) -> String {
    let attribute = |name: &str| {
        let (_, value) = case.split_once(name).expect("each case has its attributes");
        value.split('"').next().unwrap_or_default()
    };
    format!("{}: {}", attribute("package=\""), attribute("classname=\""))
}
