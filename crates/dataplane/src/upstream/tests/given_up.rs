//! Requests over HTTP/1.1 without a waiting client.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// An app that answers with the beginning of a response and tells how its connection ends.
async fn connection_end_of(
    begun: &'static [u8],
) -> (SocketAddr, tokio::sync::oneshot::Receiver<io::Result<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (told, ended) = tokio::sync::oneshot::channel();
    tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.expect("open");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("open"));
        }
        stream.write_all(begun).await.expect("open");
        told.send(stream.read(&mut [0]).await).expect("the test waits for it");
    });
    (address, ended)
}

/// How the peer of a request that is given up sees its connection end, before a response and within one.
async fn ends_of_given_up(given_up: GivenUpRequests) -> Vec<Result<usize, io::ErrorKind>> {
    let mut ends = Vec::new();
    for begun in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun"] {
        let (address, ended) = connection_end_of(begun).await;
        let upstreams = pool(UpstreamLimits { given_up, ..UpstreamLimits::default() });
        let mut sent = Box::pin(upstreams.send(address, Protocol::Http1, request(Protocol::Http1)));
        if begun.is_empty() {
            let waited = tokio::time::timeout(Duration::from_millis(50), &mut sent).await;
            assert!(waited.is_err(), "nobody answers");
        } else {
            drop(sent.as_mut().await.expect("it has begun"));
        }
        drop(sent);
        ends.push(ended.await.expect("it ends").map_err(|error| error.kind()));
    }
    ends
}

#[test]
fn a_request_that_is_given_up_is_told_by_a_close_to_an_app_and_by_a_reset_to_a_hop() {
    run(async {
        assert_eq!(ends_of_given_up(GivenUpRequests::Closed).await, [Ok(0); 2]);
        let reset = Err(io::ErrorKind::ConnectionReset);
        assert_eq!(ends_of_given_up(GivenUpRequests::Reset).await, [reset; 2]);
    });
}

#[test]
fn a_connection_whose_exchange_is_over_is_closed_in_order() {
    run(async {
        let (address, ended) = connection_end_of(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        let given_up = GivenUpRequests::Reset;
        let upstreams = pool(UpstreamLimits { given_up, ..UpstreamLimits::default() });
        exchange(&upstreams, address, Protocol::Http1).await;
        drop(upstreams);
        assert_eq!(ended.await.expect("it ends").expect("an orderly end"), 0);
    });
}
