//! The classic ways to smuggle a request: each is refused, or reaches the app so that the strictest reader
//! finds in it what ebb found.
//!
//! The app notes what arrives as [`tests::strict`] reads it. Behind each request of doubtful length comes
//! another, `/smuggled-N`; a server that ends the first one elsewhere than ebb does finds it in the wrong
//! place.

mod http1;
mod http2;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::Ebb;

use crate::protocols::client::RawClient;
use crate::protocols::world::{ROUTINGS, Routing, warm};

/// What may become of a case. Refusing is always right.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// Nothing of it reaches the app whole.
    Refused,
    /// It may be passed on with this body, but the connection ends with it: what is behind it is no request.
    AloneWith(&'static str),
    /// It may be passed on with this body, and what is behind it is a request of its own.
    PassedWith(&'static str),
}

/// A request up to its end, with `HOST` and `PATH` where they belong, and what may become of it.
type Case = (&'static str, &'static str, Verdict);

#[tokio::test]
async fn every_request_is_refused_or_unambiguous() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = ROUTINGS.map(|routing| folder.path().join(routing.service()));
    let cases: Vec<Case> = http1::LINES.iter().chain(http1::LENGTHS).chain(http1::CHUNKS).copied().collect();
    let ebb = recorded(&files).await;
    for (routing, file) in ROUTINGS.into_iter().zip(&files) {
        let mut exchanges = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            exchanges.push(exchange(&ebb, routing, number, case).await);
        }
        let noted = read_notes(file);
        let judged = cases.iter().zip(&exchanges).enumerate();
        let wrong: Vec<String> = judged
            .filter_map(|(number, (case, seen))| {
                let why = problem(case.2, seen, &of_case(&noted, number))?;
                Some(format!("{}: {why}", case.0))
            })
            .collect();
        assert!(wrong.is_empty(), "{routing:?}:\n{}", wrong.join("\n"));
        let ambiguous: Vec<_> = noted.iter().filter(|line| !line["ambiguous"].is_null()).collect();
        assert!(ambiguous.is_empty(), "{routing:?}: {ambiguous:#?}");
    }
}

/// Both routings before apps that note what they get, each in a file.
pub(crate) async fn recorded(files: &[PathBuf; 2]) -> Ebb {
    warm(|service| {
        let file = files.iter().find(|file| file.ends_with(service.name())).expect("each service has a file");
        let file = file.to_string_lossy().into_owned();
        service.args(&["--record", &file])
    })
    .await
}

/// Everything that ebb says to a case and the request behind it, until it closes the connection.
async fn exchange(ebb: &Ebb, routing: Routing, number: usize, (_, first, _): &Case) -> String {
    let host = routing.host();
    let mut client = RawClient::connect(ebb).await;
    let behind = format!("GET /smuggled-{number} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let first = first.replace("HOST", &host).replace("PATH", &format!("/first-{number}"));
    client.write(&format!("{first}{behind}")).await;
    client.read_rest().await
}

fn read_notes(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("the app writes JSON")).collect()
}

/// The whole requests of a case that the app got, in their order.
fn of_case(noted: &[Value], number: usize) -> Vec<&Value> {
    let targets = [format!("/first-{number}"), format!("/smuggled-{number}")];
    let is_of_case = |line: &&Value| {
        line["target"].as_str().is_some_and(|target| targets.iter().any(|own| target.ends_with(own)))
    };
    noted.iter().filter(is_of_case).collect()
}

/// What is wrong with what became of a case, if anything is.
fn problem(verdict: Verdict, seen: &str, got: &[&Value]) -> Option<String> {
    let answers = seen.matches("HTTP/1.1 200 ").count();
    let bodies: Vec<&str> = got.iter().map(|request| request["body"].as_str().unwrap_or_default()).collect();
    let is_refused = got.is_empty() && (seen.starts_with("HTTP/1.1 4") || seen.starts_with("HTTP/1.1 501 "));
    let is_as_allowed = match verdict {
        Verdict::Refused => false,
        Verdict::AloneWith(body) => bodies == [body],
        Verdict::PassedWith(body) => bodies == [body, ""],
    };
    let is_right = answers == got.len() && (is_refused || is_as_allowed);
    (!is_right).then(|| format!("{verdict:?}, but the app got {got:?} and the client {seen:?}"))
}
