//! An app made of prepared bytes: it says what no HTTP library lets one say, and shows a request exactly as
//! it arrived.
//!
//! Every connection carries one exchange. What the client still sends afterwards is read and thrown away, but
//! where the contrary is asked for: closing earlier makes the kernel reset the connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The largest head of a request that is read.
const HEAD_LIMIT: usize = 64 * 1024;

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Answers the one request of a connection by its path:
///
/// | Path | Answer |
/// |---|---|
/// | `/early-hints` | 103, then 404 |
/// | `/continue` | 100, then 200 with the body |
/// | `/continue-then-404` | 100, then, after the body, 404 |
/// | `/refuse-expectation` | 417 before the body |
/// | `/refuse-upload` | 413 before the body |
/// | `/refuse-upload-rudely` | the same, and the connection is closed with the body unread, which resets it |
/// | `/short` | 200 with fewer bytes than it promises |
/// | `/unterminated` | 200 in chunks, without the last one |
/// | `/nothing` | none: the connection is closed |
/// | `/garbage` | something that is not HTTP |
/// | `/late-bytes` | 200, and bytes behind its body |
/// | `/trailers` | 200 in chunks with an announced trailer `x-checksum` |
/// | any other | 200 with the head of the request |
pub(crate) async fn serve(mut stream: TcpStream) {
    let Some((head, begun_body)) = read_head(&mut stream).await else { return };
    let path = head.split([' ', '?']).nth(1).unwrap_or_default();
    let answer = match path {
        "/early-hints" => {
            let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
            format!("{hints}{}", plain("404 Not Found", "nothing here\n"))
        }
        "/continue" => match continued(&mut stream, &head, begun_body).await {
            Some(body) => plain("200 OK", &body),
            None => return,
        },
        "/continue-then-404" => match continued(&mut stream, &head, begun_body).await {
            Some(_) => plain("404 Not Found", "nothing here\n"),
            None => return,
        },
        "/refuse-expectation" => plain("417 Expectation Failed", "unexpected\n"),
        "/refuse-upload" | "/refuse-upload-rudely" => plain("413 Content Too Large", "too large\n"),
        "/short" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n7 bytes".to_owned(),
        "/unterminated" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n7 bytes\r\n".to_owned(),
        "/nothing" => String::new(),
        "/garbage" => "SSH-2.0-not-a-web-server\r\n".to_owned(),
        "/late-bytes" => plain("200 OK", "ok\n") + "HTTP/1.1 200 OK\r\n",
        "/trailers" => trailers(),
        _ => plain("200 OK", &head),
    };
    // A client that is gone needs no answer.
    let _ = stream.write_all(answer.as_bytes()).await;
    if path == "/refuse-upload-rudely" {
        return;
    }
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

fn plain(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

fn trailers() -> String {
    let head =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\nConnection: close\r\n\r\n";
    format!("{head}5\r\nhello\r\n0\r\nX-Checksum: 5d41402a\r\n\r\n")
}

/// The head, and what was read of the body with it.
async fn read_head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            return Some((String::from_utf8(read).ok()?, body));
        }
        if read.len() > HEAD_LIMIT || stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// Says "100 Continue", then reads a body of the length that the head gives.
async fn continued(stream: &mut TcpStream, head: &str, mut body: Vec<u8>) -> Option<String> {
    stream.write_all(CONTINUE.as_bytes()).await.ok()?;
    let length: usize = header(head, "content-length")?.parse().ok()?;
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(body).ok()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}
