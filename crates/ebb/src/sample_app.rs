//! `ebb sample-app`: a small web app with the parameters of Knative's autoscaling sample, so that a first run
//! needs nothing else.
//!
//! `GET /?sleep=MS&prime=N&bloat=MB` waits, searches primes and fills memory, each only if asked, and says
//! what it did. It listens on `$PORT` (8080 if unset) and speaks HTTP/1.1 and HTTP/2 without TLS. A parameter
//! that is not a number is answered with 400.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use runtime::StopRequests;
use tokio::net::TcpListener;

/// The longest sleep that a request may ask for.
const SLEEP_MAX: Duration = Duration::from_secs(600);
/// The largest number up to which primes are searched; about a second of one core.
const PRIME_MAX: u64 = 40_000_000;
/// The most memory, in MB, that one request may fill.
const BLOAT_MAX_MB: u64 = 1_000;

/// Serves until SIGINT or SIGTERM, then finishes what it holds.
pub(crate) fn run() -> anyhow::Result<()> {
    let port = match std::env::var("PORT") {
        Ok(text) => text
            .parse()
            .with_context(|| format!("$PORT is {text:?}; it must be a port number from 1 to 65535"))?,
        Err(_) => 8080,
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the asynchronous runtime")?
        .block_on(serve(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
}

async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let mut stop_requests = StopRequests::listen()?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
    let server = auto::Builder::new(TokioExecutor::new());
    let graceful = GracefulShutdown::new();
    loop {
        // Cancel-safe: a connection that was not accepted stays in the kernel, and a signal without a waiter
        // is kept.
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The usual cause is too many open files, which passes as connections end.
                    let _ = writeln!(std::io::stderr(), "accepting a connection failed: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = stop_requests.next() => break,
        };
        // A connection that cannot be set up is the client's loss alone.
        let _ = stream.set_nodelay(true);
        let connection = server.serve_connection(TokioIo::new(stream), service_fn(answer)).into_owned();
        let connection = graceful.watch(connection);
        // A panic ends one connection, and its client sees that.
        tokio::spawn(async move {
            // An error here is a client that went away.
            let _ = connection.await;
        });
    }
    drop(listener);
    graceful.shutdown().await;
    Ok(())
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, mut body) = request.into_parts();
    // Read and thrown away: a connection whose request was not read to its end is closed after the answer,
    // and takes the next request along.
    while let Some(Ok(_)) = body.frame().await {}
    let (status, text) = match RequestedWork::parse(head.uri.query().unwrap_or_default()) {
        Ok(work) => (StatusCode::OK, work.perform().await),
        Err(problem) => (StatusCode::BAD_REQUEST, problem),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

/// What one request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestedWork {
    sleep: Option<Duration>,
    prime: Option<u64>,
    bloat_mb: Option<u64>,
}

impl RequestedWork {
    /// Reads a query string. Unknown parameters are ignored, as Knative's sample does.
    fn parse(query: &str) -> Result<Self, String> {
        let mut work = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let limit = match name {
                "sleep" => u64::try_from(SLEEP_MAX.as_millis()).unwrap_or(u64::MAX),
                "prime" => PRIME_MAX,
                "bloat" => BLOAT_MAX_MB,
                _ => continue,
            };
            let number: u64 = value.parse().ok().filter(|&number| number <= limit).ok_or_else(|| {
                format!("{name} is {value:?}; it must be a whole number from 0 to {limit}\n")
            })?;
            match name {
                "sleep" => work.sleep = Some(Duration::from_millis(number)),
                "prime" => work.prime = Some(number),
                _ => work.bloat_mb = Some(number),
            }
        }
        Ok(work)
    }

    /// Does it all at once, as concurrent work in a real app would be, and says what was done.
    async fn perform(self) -> String {
        let heavy = (self.prime.is_some() || self.bloat_mb.is_some()).then(|| {
            // The task that waits for it panics as well, and with that the one connection.
            tokio::task::spawn_blocking(move || (self.prime.map(largest_prime), self.bloat_mb.map(bloat)))
        });
        if let Some(sleep) = self.sleep {
            tokio::time::sleep(sleep).await;
        }
        let (prime, bloated) = match heavy {
            Some(task) => task.await.unwrap_or_default(),
            None => (None, None),
        };
        let mut text = String::new();
        if let Some(megabytes) = bloated {
            let _ = writeln!(text, "filled {megabytes} MB of memory");
        }
        if let (Some(limit), Some(prime)) = (self.prime, prime) {
            let _ = match prime {
                Some(prime) => writeln!(text, "the largest prime up to {limit} is {prime}"),
                None => writeln!(text, "there is no prime up to {limit}"),
            };
        }
        if let Some(sleep) = self.sleep {
            let _ = writeln!(text, "slept for {} ms", sleep.as_millis());
        }
        if text.is_empty() {
            text.push_str("hello from the sample app; try /?sleep=100&prime=10000&bloat=5\n");
        }
        text
    }
}

/// The largest prime up to `limit`, by sieve.
fn largest_prime(limit: u64) -> Option<u64> {
    let length = usize::try_from(limit).ok()?.checked_add(1)?;
    let mut composite = vec![false; length];
    let mut largest = None;
    for candidate in 2..length {
        if composite[candidate] {
            continue;
        }
        largest = u64::try_from(candidate).ok();
        let mut multiple = candidate.saturating_mul(candidate);
        while multiple < length {
            composite[multiple] = true;
            multiple += candidate;
        }
    }
    largest
}

/// Fills and touches this many MB, then gives them back.
fn bloat(megabytes: u64) -> u64 {
    let length = usize::try_from(megabytes).unwrap_or(0).saturating_mul(1_000_000);
    let memory = vec![1_u8; length];
    std::hint::black_box(&memory);
    megabytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_prime() {
        for (limit, prime) in [(0, None), (1, None), (2, Some(2)), (10, Some(7)), (10_000, Some(9973))] {
            assert_eq!(largest_prime(limit), prime, "{limit}");
        }
    }

    #[test]
    fn a_parameter_out_of_range_is_named() {
        assert_eq!(
            RequestedWork::parse("sleep=5&unknown=1").map(|work| work.sleep),
            Ok(Some(Duration::from_millis(5)))
        );
        for query in ["sleep=x", "sleep=-1", "prime=99999999999", "bloat=1.5"] {
            let problem = RequestedWork::parse(query).expect_err(query);
            assert!(problem.contains("must be a whole number from 0 to"), "{problem}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_whatever_its_requests_carry() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut client, server) = tokio::io::duplex(1024);
        let serving = auto::Builder::new(TokioExecutor::new());
        let serving = tokio::spawn(async move {
            serving.serve_connection(TokioIo::new(server), service_fn(answer)).await.is_ok()
        });
        for _ in 0..3 {
            let head = "POST /?prime=10 HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n";
            client.write_all(head.as_bytes()).await.expect("it reads");
            client.write_all(&vec![b'x'; 100_000]).await.expect("it reads to the end");
            let mut answer = Vec::new();
            while !answer.ends_with(b"is 7\n") {
                answer.push(client.read_u8().await.expect("it answers"));
            }
        }
        drop(client);
        assert!(serving.await.expect("no panic"));
    }

    #[tokio::test]
    async fn work_says_what_it_did() {
        let work = RequestedWork::parse("sleep=1&prime=100&bloat=1").expect("well-formed");
        assert_eq!(
            work.perform().await,
            "filled 1 MB of memory\nthe largest prime up to 100 is 97\nslept for 1 ms\n"
        );
    }
}
