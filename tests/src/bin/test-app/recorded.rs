//! An app that notes every request as it arrived, as the strictest reader understands it, and what it cannot
//! understand.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tests::http2::PREFACE;
use tests::strict::{self, StrictRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Serves a connection. Each request is a line of JSON in `file`, written before it is answered with its
/// target:
///
/// | What came | Line |
/// |---|---|
/// | a request | `{"target", "headers", "body", "trailers"}` |
/// | something that two servers could read differently | `{"ambiguous": why, "bytes"}`; the connection ends |
/// | something that is not whole when the connection ends | `{"incomplete": bytes}` |
/// | HTTP/2 | `{"http2": true}`; the connection ends |
pub(crate) async fn serve(mut stream: TcpStream, file: &Path) {
    let mut bytes = Vec::new();
    loop {
        if bytes.starts_with(PREFACE) {
            return note(file, &json!({ "http2": true }));
        }
        match strict::read(&bytes) {
            Ok(Some((request, length))) => {
                note(file, &line(&request));
                bytes.drain(..length);
                let body = request.target;
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            Ok(None) => {
                if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                    break;
                }
            }
            // What becomes HTTP/2 looks like an odd request until its preface is whole.
            Err(_) if PREFACE.starts_with(&bytes) => {
                if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                    break;
                }
            }
            Err(why) => {
                return note(file, &json!({ "ambiguous": why, "bytes": String::from_utf8_lossy(&bytes) }));
            }
        }
    }
    // A connection that carried nothing was a probe.
    if !bytes.is_empty() {
        note(file, &json!({ "incomplete": String::from_utf8_lossy(&bytes) }));
    }
}

fn line(request: &StrictRequest) -> Value {
    json!({
        "target": request.target,
        "headers": request.headers,
        "body": String::from_utf8_lossy(&request.body),
        "trailers": request.trailers,
    })
}

fn note(file: &Path, line: &Value) {
    let file = OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.expect("the test made the folder"), "{line}").expect("the file can be written");
}
