//! Asking servers small questions, without a client that would cost more than the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::clock;

/// The body of the answer to a GET; anything but 200 is an error.
pub fn get(address: SocketAddr, host: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{address}{path}: {}", head.lines().next().unwrap_or_default());
    }
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    if is_chunked { unchunked(body) } else { Ok(body.to_owned()) }
}

fn unchunked(mut rest: &str) -> anyhow::Result<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").context("a chunk has no size")?;
        let size = usize::from_str_radix(size.trim(), 16).context("a chunk's size is no number")?;
        if size == 0 {
            return Ok(body);
        }
        body.push_str(after.get(..size).context("a chunk is cut off")?);
        rest = after.get(size + 2..).context("a chunk is cut off")?;
    }
}

/// The same, read as JSON.
pub fn get_json(address: SocketAddr, path: &str) -> anyhow::Result<Value> {
    serde_json::from_str(&get(address, "localhost", path)?)
        .with_context(|| format!("reading the answer to {path}"))
}

/// Repeats `attempt` every few milliseconds until it succeeds, and returns the last error if that takes too
/// long.
pub fn until<Value>(
    limit: Duration,
    mut attempt: impl FnMut() -> anyhow::Result<Value>,
) -> anyhow::Result<Value> {
    let end = clock::now() + limit;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if clock::now() > end => return Err(error.context(format!("gave up after {limit:?}"))),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        assert_eq!(unchunked("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n").unwrap(), "abcd");
        assert!(unchunked("3\r\nab").is_err());
    }
}
