//! Strangers at the API of `ebb up` take nothing from its front door, nor from one another.

use std::net::SocketAddr;
use std::time::Duration;

use tests::bench::process::open_files;
use tests::client::whole_answer;
use tests::{ConfigMap, Ebb, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::neighbours::api_token::{read, token_file};

/// What a careless system allows.
const FEW: &str = "ulimit -S -n 64 && ulimit -H -n 512";
/// Places of the API: connections, probes and long reads.
const PLACES: [usize; 3] = [64, 4, 32];

async fn asked(api: SocketAddr, path: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(api).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    stream
}

/// The status line, and what came with it.
async fn begun(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut answer)).await;
    let read = read.expect("it answers in time").expect("it is open");
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn idle_sockets_at_the_api_take_neither_its_readers_places_nor_the_front_doors_descriptors() {
    let hello = Service::new("hello").scaling("min-scale", "1");
    let ebb = Ebb::up_after(FEW, &[hello], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    let before = open_files(ebb.pid());
    let mut idle = Vec::new();
    for number in 0..1_000 {
        let mut stream = TcpStream::connect(ebb.api).await.expect("it listens");
        if number % 4 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHo").await.expect("it is open");
        }
        idle.push(stream);
    }
    for _ in 0..3 {
        ebb.load("hello").one().await.assert_all_answered();
        for page in ["/healthz", "/v1/revisions"] {
            let answer = whole_answer(ebb.api, "localhost", page).await.expect("there is a page");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    let taken = open_files(ebb.pid()).saturating_sub(before);
    // One request more, and the connection that it took to a pod.
    assert!(taken <= PLACES.iter().sum::<usize>() + 8, "{taken} descriptors");
}

#[tokio::test]
async fn readers_that_follow_logs_have_places_of_their_own_and_the_33rd_is_refused() {
    let hello = Service::new("hello").scaling("min-scale", "1");
    let ebb = Ebb::up(&[hello], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    let token = read(&token_file(&ebb).await);
    let [connections, _, long_reads] = PLACES;
    let mut following = Vec::new();
    for number in 0..=long_reads {
        // A server decodes the query before it reads it.
        let query = if number % 2 == 0 { "follow=true" } else { "%66ollow=%74rue" };
        let mut stream = asked(ebb.api, &format!("/v1/logs/default/service/hello?{query}"), &token).await;
        let answer = begun(&mut stream).await;
        if number < long_reads {
            assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
        } else {
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            assert!(answer.contains("32 long reads are under way"), "{answer}");
        }
        following.push(stream);
    }
    let mut idle = Vec::new();
    for _ in 0..2 * connections {
        idle.push(TcpStream::connect(ebb.api).await.expect("it listens"));
    }
    for page in ["/healthz", "/ready", "/metrics", "/v1/revisions"] {
        let answer = whole_answer(ebb.api, "localhost", page).await.expect("there is a page");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let first = &mut following[0];
    let waits = tokio::time::timeout(Duration::from_millis(200), async {
        while first.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
    });
    assert!(waits.await.is_err(), "those that read go on reading");
}
