//! Was a slot idle while a request waited? Answered from the logs of both ends, on the clock that all
//! processes of a machine share.
//!
//! The app writes down when each request began and ended in it (`test-app --journal FOLDER`), the client when
//! it sent one. A request waits from its sending to its beginning in whichever pod, wherever it is held
//! meanwhile and where it is on its way; so what is found is the worst that a client can see, the way there
//! included.
//!
//! With one request at a time in a pod, a pod is a slot, and it is idle from one request's end to the next
//! one's beginning.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::Service;

/// How many slots [`service`] has.
pub const SLOTS: usize = 10;

/// A service with so many pods, each of which takes one request at a time and writes down when, in this
/// folder. Its requests always pass the activators.
pub fn service(name: &str, app: &str, journal: &Path) -> Service {
    let slots = SLOTS.to_string();
    Service::running(name, &[app, "--journal", &journal.to_string_lossy()])
        .spec("containerConcurrency: 1")
        .scaling("min-scale", &slots)
        .scaling("max-scale", &slots)
        .scaling("target-burst-capacity", "-1")
}

/// One connection: all that is sent on it reaches the same activator.
#[derive(Debug)]
pub enum Connection {
    /// One request at a time.
    Http1(http1::SendRequest<Empty<Bytes>>),
    /// Many at once; clones share it.
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    /// Connects with HTTP/1.1 and keeps the connection.
    pub async fn http1(address: SocketAddr) -> anyhow::Result<Self> {
        let (sender, connection) = http1::handshake(connect(address).await?).await?;
        // A request that waits for an answer on it sees how it ends.
        tokio::spawn(async { connection.await.unwrap_or_default() });
        Ok(Self::Http1(sender))
    }

    /// Connects with HTTP/2 and keeps the connection.
    pub async fn http2(address: SocketAddr) -> anyhow::Result<Self> {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), connect(address).await?).await?;
        tokio::spawn(async { connection.await.unwrap_or_default() });
        Ok(Self::Http2(sender))
    }

    /// For another who sends at the same time; `None` where the protocol has no room for that.
    pub fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
        }
    }

    /// Sends a request and waits for all of its answer, which must be 200.
    pub async fn ask(&mut self, host: &str, target: &str) -> anyhow::Result<()> {
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                let request = Request::get(target).header("host", host).body(Empty::new())?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender
                    .send_request(Request::get(format!("http://{host}{target}")).body(Empty::new())?)
                    .await?
            }
        };
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status == 200, "{target} was answered with {status}: {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<TokioIo<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(stream))
}

/// One request in one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handled {
    /// What was asked for: path and query.
    pub target: String,
    /// The time at which the request began to run.
    pub begun: Duration,
    /// When it ended, if it has.
    pub ended: Option<Duration>,
}

/// What each pod handled, by its process id, in the order of the beginnings.
pub type Journal = BTreeMap<u32, Vec<Handled>>;

/// Reads what the apps wrote into this folder.
pub fn read_journal(folder: &Path) -> anyhow::Result<Journal> {
    let mut journal = Journal::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let process = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let process = process.with_context(|| format!("{} is no journal", path.display()))?;
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let handled = parse(&text).with_context(|| format!("in {}", path.display()))?;
        journal.insert(process, handled);
    }
    Ok(journal)
}

/// Lines of `begun NANOSECONDS TARGET` and `ended NANOSECONDS TARGET`. A line that is being written is not
/// there yet.
fn parse(text: &str) -> anyhow::Result<Vec<Handled>> {
    let mut all: Vec<Handled> = Vec::new();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let mut words = line.splitn(3, ' ');
        let (Some(what), Some(at), Some(target)) = (words.next(), words.next(), words.next()) else {
            bail!("{line:?} is no line of a journal");
        };
        let at = Duration::from_nanos(at.parse().with_context(|| format!("{line:?} has no time"))?);
        match what {
            "begun" => all.push(Handled { target: target.to_owned(), begun: at, ended: None }),
            "ended" => {
                let mut open = all.iter_mut().rev().filter(|handled| handled.ended.is_none());
                let begun = open.find(|handled| handled.target == target);
                begun.with_context(|| format!("{target} ended and never began"))?.ended = Some(at);
            }
            other => bail!("{other:?} is no word of a journal"),
        }
    }
    Ok(all)
}

/// How long, each time, a slot was idle while something waited, within `window`: one entry for each pod and
/// each time that both held without a break. Requests are those that `sent` says, and no others may reach
/// these pods.
pub fn idle_while_waiting(journal: &Journal, sent: &[Duration], window: Range<Duration>) -> Vec<Duration> {
    let waits = waits(journal, sent);
    let overlap = |one: &Range<Duration>, other: &Range<Duration>| {
        one.end.min(other.end).saturating_sub(one.start.max(other.start))
    };
    let mut idle = Vec::new();
    for pod in journal.values() {
        for gap in gaps(pod, &window) {
            let met = waits.iter().map(|wait| overlap(wait, &gap)).filter(|met| !met.is_zero());
            idle.extend(met);
        }
    }
    idle
}

/// When at least one request waited, without a break.
fn waits(journal: &Journal, sent: &[Duration]) -> Vec<Range<Duration>> {
    let begun = journal.values().flatten().map(|handled| (handled.begun, Change::Begun));
    // Of what happens at one instant the sending comes first.
    let mut changes: Vec<(Duration, Change)> =
        sent.iter().map(|&at| (at, Change::Sent)).chain(begun).collect();
    changes.sort_unstable();
    let (mut waiting, mut since) = (0_i64, Duration::ZERO);
    let mut waits = Vec::new();
    for (at, change) in changes {
        let before = waiting;
        waiting += match change {
            Change::Sent => 1,
            Change::Begun => -1,
        };
        if before == 0 && waiting == 1 {
            since = at;
        } else if before == 1 && waiting == 0 {
            waits.push(since..at);
        }
    }
    if waiting > 0 {
        waits.push(since..Duration::MAX);
    }
    waits
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Sent,
    Begun,
}

/// When a pod handled nothing.
fn gaps(pod: &[Handled], window: &Range<Duration>) -> Vec<Range<Duration>> {
    let mut idle_since = window.start;
    let mut gaps = Vec::new();
    for handled in pod {
        gaps.push(idle_since..handled.begun.min(window.end));
        idle_since = idle_since.max(handled.ended.unwrap_or(Duration::MAX));
    }
    gaps.push(idle_since..window.end);
    gaps.retain(|gap| gap.start < gap.end);
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn handled(begun: u64, ended: u64) -> Handled {
        Handled { target: "/".to_owned(), begun: ms(begun), ended: Some(ms(ended)) }
    }

    #[test]
    fn a_slot_is_idle_while_something_waits_from_its_last_end_to_its_next_beginning() {
        let busy = vec![handled(10, 200)];
        // Ends at 40, and takes the next one at 100.
        let idle = vec![handled(10, 40), handled(100, 200)];
        let journal = Journal::from([(1, busy), (2, idle)]);
        let found = |third| idle_while_waiting(&journal, &[ms(5), ms(6), ms(third)], ms(20)..ms(200));
        assert_eq!(found(30), [ms(60)], "it waited all the time");
        assert_eq!(found(90), [ms(10)], "nothing waited before 90");
        assert_eq!(found(100), [Duration::ZERO; 0], "it began at once");
    }

    #[test]
    fn a_request_that_never_begins_waits_to_the_end_and_a_pod_that_never_worked_was_idle() {
        let journal = Journal::from([(1, vec![handled(10, 40)]), (2, Vec::new())]);
        let found = idle_while_waiting(&journal, &[ms(5), ms(50)], ms(0)..ms(70));
        assert_eq!(found, [ms(5), ms(20), ms(5), ms(20)]);
    }

    #[test]
    fn a_journal_is_read_up_to_its_last_whole_line() {
        let text = "begun 5 /a\nbegun 6 /b?c=1 2\nended 7 /a\nend";
        let at = |nanoseconds| Duration::from_nanos(nanoseconds);
        let expected = [
            Handled { target: "/a".to_owned(), begun: at(5), ended: Some(at(7)) },
            Handled { target: "/b?c=1 2".to_owned(), begun: at(6), ended: None },
        ];
        assert_eq!(parse(text).expect("a journal"), expected);
        for wrong in ["ended 7 /a\n", "begun x /a\n", "paused 7 /a\n", "begun\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
