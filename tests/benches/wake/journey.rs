//! One request to a sleeping service, and what can be known about its way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use tests::bench::clock;
use tests::bench::executions::Execution;

use crate::Stages;

/// Places in the list of watched executables.
pub(crate) const EBB: usize = 0;
pub(crate) const APP: usize = 1;
/// The longest wait for a wake: more than any takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// When a wake reached its stages, on the machine's clock.
pub(crate) struct Seen {
    /// Just before the client wrote, or whoever starts processes by hand began.
    pub(crate) began: Duration,
    /// The time at which the app began to listen.
    pub(crate) listening: Duration,
    /// When the app got its first byte.
    pub(crate) first_byte: Duration,
    /// When the client had the answer.
    pub(crate) answered: Duration,
}

/// Sends a request and waits for the answer, which says when the app did what.
pub(crate) fn send(address: SocketAddr, host: &str) -> anyhow::Result<Seen> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET /times HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let began = clock::now();
    stream.write_all(request.as_bytes())?;
    let body = body(&mut stream)?;
    let answered = clock::now();
    Seen::new(began, &body, answered)
}

/// The body of a response with a length.
fn body(stream: &mut TcpStream) -> anyhow::Result<String> {
    let mut response = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "the connection was closed before the answer was whole");
        response.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&response);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if !head.starts_with("HTTP/1.1 200") {
            bail!("refused: {text}");
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.context("the answer has no length")? {
            return Ok(body.to_owned());
        }
    }
}

impl Seen {
    fn new(began: Duration, times: &str, answered: Duration) -> anyhow::Result<Self> {
        let times: Value = serde_json::from_str(times)?;
        let time = |name: &str| {
            times[name].as_u64().map(Duration::from_nanos).with_context(|| format!("{times} has no {name}"))
        };
        Ok(Self { began, listening: time("listening")?, first_byte: time("first_byte")?, answered })
    }

    /// Adds the stages of this wake, in which these programs were executed.
    pub(crate) fn split(&self, executions: &[Execution], stages: &mut Stages) -> anyhow::Result<()> {
        let first = |program: usize| {
            executions.iter().find(|execution| execution.program == program).map(|execution| execution.at)
        };
        let app = first(APP).context("the app was not executed")?;
        let ebb = first(EBB).context("no process of ebb's was executed")?;
        let gap = |from: Duration, to: Duration| clock::millis(to) - clock::millis(from);
        let process = ebb.min(app);
        stages.start.push(gap(self.began, process));
        stages.app_start.push(gap(process, app));
        stages.app_listens.push(gap(app, self.listening));
        stages.forwarded.push(gap(self.listening, self.first_byte));
        stages.answered.push(gap(self.first_byte, self.answered));
        stages.whole.push(gap(self.began, self.answered));
        Ok(())
    }
}
