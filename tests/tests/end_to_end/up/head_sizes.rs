//! The size that heads may have: a key, an annotation up to it, and changes of both while programs run.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);

/// The key of this test, in KiB.
fn config(kib: u32) -> ConfigMap {
    ConfigMap::short().set("head-size-limit", &format!("{kib}Ki"))
}

/// A service whose app speaks HTTP/1.1 to every client: its library has a limit of its own over HTTP/2.
fn service(name: &str) -> Service {
    Service::new(name).scaling("min-scale", "1").container("ports:\n  - name: http1\n    containerPort: 8080")
}

/// A head of so many bytes over HTTP/1.1.
fn head_of(service: &Service, bytes: usize, connection: &str) -> String {
    let begin = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: {connection}\r\nCookie: ", service.host());
    format!("{begin}{}\r\n\r\n", "c".repeat(bytes - begin.len() - 4))
}

/// Status and text of the answer to a head of so many bytes over HTTP/1.1.
async fn over_http1(ebb: &Ebb, service: &Service, bytes: usize) -> (u16, String) {
    let mut stream = TcpStream::connect(ebb.requests).await.expect("it listens");
    // A head that is refused may be so before all of it is sent.
    let _ = stream.write_all(head_of(service, bytes, "close").as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status in {answer:?}")), answer)
}

/// The same over HTTP/2, where the fields of the head count for so many bytes in all, and some more.
async fn over_http2(ebb: &Ebb, service: &Service, bytes: usize) -> (u16, String) {
    let stream = TcpStream::connect(ebb.requests).await.expect("it listens");
    let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.expect("HTTP/2");
    let running = tokio::spawn(connection);
    let request = Request::get(format!("http://{}/", service.host()))
        .header("cookie", "c".repeat(bytes - 300))
        .body(Empty::<Bytes>::new())
        .expect("legal");
    let answer = sender.send_request(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("whole").to_bytes();
    running.abort();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Over both protocols a head of so many bytes passes, or is refused with a text that names this limit.
async fn check(ebb: &Ebb, service: &Service, bytes: usize, limit: Option<usize>) -> Result<(), String> {
    let answers = [over_http1(ebb, service, bytes).await, over_http2(ebb, service, bytes).await];
    for (status, text) in answers {
        let is_as_it_should_be = match limit {
            None => status == 200,
            Some(limit) => {
                let names_all =
                    text.contains(&format!(" than {limit} bytes")) && text.contains("head-size-limit");
                status == 431 && names_all
            }
        };
        if !is_as_it_should_be {
            let text: String = text.chars().take(500).collect();
            return Err(format!("{bytes} bytes for {}: {status} {text}", service.name()));
        }
    }
    Ok(())
}

/// One request on a connection that stays open.
async fn ask_on(stream: &mut TcpStream, head: &str) -> String {
    stream.write_all(head.as_bytes()).await.expect("open");
    let mut answer = Vec::new();
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        answer.push(stream.read_u8().await.expect("the connection goes on"));
    }
    let head = String::from_utf8_lossy(&answer).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("it has one").parse().expect("a number")];
    stream.read_exact(&mut body).await.expect("the connection goes on");
    head
}

#[tokio::test]
async fn a_key_and_an_annotation_bound_heads_and_a_change_of_the_key_holds_at_once() {
    let (plain, narrow) = (service("plain"), service("narrow"));
    let narrow = narrow.annotation("ebb.dev/head-size-limit", "16Ki");
    let ebb = Ebb::up(&[plain.clone(), narrow.clone()], &config(64)).await;
    for service in [&plain, &narrow] {
        ebb.until_pods(service.name(), 1).await;
    }
    for (service, bytes, limit) in [
        (&plain, 65_000, None),
        (&plain, 100_000, Some(64 << 10)),
        (&narrow, 16_000, None),
        (&narrow, 20_000, Some(16 << 10)),
    ] {
        check(&ebb, service, bytes, limit).await.expect("as it is set");
    }

    let mut kept = TcpStream::connect(ebb.requests).await.expect("it listens");
    assert!(ask_on(&mut kept, &head_of(&plain, 1_000, "keep-alive")).await.starts_with("HTTP/1.1 200 "));
    ebb.configure(&config(256));
    let raised = async || check(&ebb, &plain, 200_000, None).await;
    eventually("larger heads pass", PATIENCE, raised).await;
    let answer = ask_on(&mut kept, &head_of(&plain, 200_000, "keep-alive")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "a connection from before has the new limit: {answer}");
    check(&ebb, &narrow, 20_000, Some(16 << 10)).await.expect("the annotation stands");

    ebb.configure(&config(8));
    let lowered = async || check(&ebb, &plain, 10_000, Some(8 << 10)).await;
    eventually("heads are refused that passed before", PATIENCE, lowered).await;
    check(&ebb, &plain, 8_000, None).await.expect("others are not");
    // The annotation is above the key by now.
    check(&ebb, &narrow, 10_000, Some(8 << 10)).await.expect("the lower of the two counts");
}
