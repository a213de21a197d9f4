//! Apps whose heads come in odd ways.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// An app that answers each request with these bytes, in pieces of so many, and closes.
async fn app_saying(answer: Vec<u8>, piece: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("open");
            assert!(stream.read(&mut [0; 4096]).await.expect("a request") > 0);
            for bytes in answer.chunks(piece) {
                // A client that has heard enough has closed.
                if stream.write_all(bytes).await.is_err() {
                    break;
                }
            }
        }
    });
    address
}

async fn answer(text: String, piece: usize) -> Result<protocol::Response<Body>, SendErrorKind> {
    let address = app_saying(text.into_bytes(), piece).await;
    let upstreams = pool(UpstreamLimits::default());
    let sent = upstreams.send(address, Protocol::Http1, request(Protocol::Http1)).await;
    sent.map_err(|error| error.kind)
}

#[test]
fn a_head_is_found_in_whatever_pieces_it_comes_also_after_interim_ones() {
    run(async {
        let text = "\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\
                    Content-Length: 4\r\nA: b\r\n\r\nbody";
        for piece in [1, 2, 3, 7, 40, text.len()] {
            let response = answer(text.to_owned(), piece).await.expect("an answer");
            assert_eq!(
                (response.status().as_u16(), &response.headers()["a"]),
                (201, &"b".parse().expect("legal"))
            );
            assert_eq!(response.into_body().collect().await.expect("whole").to_bytes(), "body", "{piece}");
        }
    });
}

#[test]
fn interim_responses_without_end_are_no_answer() {
    run(async {
        let interim = "HTTP/1.1 102 Processing\r\n\r\n";
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let most = interim.repeat(1_000);
        for piece in [1_000, usize::MAX] {
            assert!(answer(most.clone() + last, piece).await.is_ok());
            let more = most.clone() + interim + last;
            let error = answer(more, piece).await.expect_err("too many");
            assert_eq!(error, SendErrorKind::MalformedAnswer(crate::MalformedMessage::Interim));
            assert!(error.to_string().contains("more than 1000 interim responses (1xx)"), "{error}");
        }
        let long = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(100_000)).repeat(3);
        let error = answer(long, usize::MAX).await.expect_err("too long");
        assert_eq!(error, SendErrorKind::MalformedAnswer(crate::MalformedMessage::Interim));
        let error = answer("\r\n".repeat(200_000), usize::MAX).await.expect_err("no head at all");
        assert_eq!(error, SendErrorKind::MalformedAnswer(crate::MalformedMessage::Interim));
    });
}

#[test]
fn a_head_without_end_is_no_answer() {
    run(async {
        let text = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(50_000));
        for piece in [5_000, usize::MAX] {
            let error = answer(text.clone(), piece).await.expect_err("too large");
            let too_large = crate::MalformedMessage::HeadTooLarge(HeadLimits::OUTER);
            assert_eq!(error, SendErrorKind::MalformedAnswer(too_large));
        }
    });
}
