//! `wrk`, the load generator for HTTP/1.1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::machine::spawn_on;

/// What wrk is told beside its command line; `SETUP` is what differs.
const SCRIPT: &str = r#"
SETUP
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("measured %d %d %d %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), latency.max, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"#;

/// The kind of request that wrk sends.
#[derive(Clone, Debug)]
pub enum Requests {
    /// A GET request of one path, without a body.
    Get,
    /// POST of this many bytes.
    Post(usize),
    /// For each of these hosts in turn: POST of this many bytes, or GET if there are none.
    Hosts(Vec<String>, usize),
}

/// A closed loop: each connection sends its next request when the former is answered.
#[derive(Clone, Debug)]
pub struct Wrk {
    script: PathBuf,
    path: String,
    connections: usize,
    cores: Vec<usize>,
}

/// What a generator of load saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The number of requests that were answered.
    pub requests: f64,
    /// The number of answered requests per second.
    pub rate: f64,
    /// The median latency of the answered requests.
    pub p50: Duration,
    /// What 99 of 100 requests did not exceed.
    pub p99: Duration,
}

impl Wrk {
    /// Prepares a script in `folder`.
    pub fn new(folder: &Path, name: &str, requests: &Requests) -> anyhow::Result<Self> {
        let setup = match requests {
            Requests::Get => String::new(),
            Requests::Post(bytes) => posting(*bytes),
            Requests::Hosts(hosts, bytes) => rotating(hosts, *bytes),
        };
        let script = folder.join(format!("{name}.lua"));
        fs::write(&script, SCRIPT.replace("SETUP", &setup))?;
        Ok(Self { script, path: "/".to_owned(), connections: 1, cores: vec![0] })
    }

    /// Sends every request for this path.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Spreads the requests over this many connections.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Runs wrk on these cores alone.
    #[must_use]
    pub fn cores(mut self, cores: &[usize]) -> Self {
        cores.clone_into(&mut self.cores);
        self
    }

    /// Loads a port of this machine for a time. Any failed request fails the whole.
    pub fn run(&self, port: u16, time: Duration) -> anyhow::Result<Seen> {
        // One core is left to the app where there is more than one.
        let threads = self.cores.len().saturating_sub(1).clamp(1, self.connections);
        let mut command = Command::new("wrk");
        command
            .arg(format!("-t{threads}"))
            .arg(format!("-c{}", self.connections))
            .arg(format!("-d{}s", time.as_secs()))
            .args(["--timeout", "60s", "-s"])
            .arg(&self.script)
            .arg(format!("http://127.0.0.1:{port}{}", self.path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = spawn_on(&self.cores, &mut command)?.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("measured "));
        let Some(line) = line else { bail!("wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr)) };
        seen(line)
    }
}

fn posting(bytes: usize) -> String {
    format!("wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", {bytes})")
}

/// Precomputed requests, for building one costs more than sending it.
fn rotating(hosts: &[String], bytes: usize) -> String {
    let list: Vec<String> = hosts.iter().map(|host| format!("{host:?}")).collect();
    // Method and body of all are wrk's own.
    let body = if bytes > 0 { posting(bytes) } else { String::new() };
    format!(
        "{body}\nlocal hosts = {{ {} }}\nlocal prepared = {{}}\nlocal turn = 0\n\
         init = function() for i, host in ipairs(hosts) do prepared[i] = wrk.format(nil, nil, {{ Host = host }}) end end\n\
         request = function() turn = turn % #prepared + 1; return prepared[turn] end",
        list.join(", ")
    )
}

fn seen(line: &str) -> anyhow::Result<Seen> {
    let numbers: Vec<f64> =
        line.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("reading what wrk says")?;
    let [requests, duration_us, p50_us, p99_us, _max_us, bad_status, failed] = numbers[..] else {
        bail!("wrk said {line:?}")
    };
    ensure!(requests > 0.0, "no request was answered");
    ensure!(
        bad_status == 0.0 && failed == 0.0,
        "of {requests} requests {bad_status} were answered with an error, {failed} not at all"
    );
    Ok(Seen {
        requests,
        rate: requests / (duration_us / 1e6),
        p50: Duration::from_secs_f64(p50_us / 1e6),
        p99: Duration::from_secs_f64(p99_us / 1e6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_request_fails_the_measurement() {
        assert!(seen("100 2000000 10 20 30 0 0").is_ok());
        assert!(seen("100 2000000 10 20 30 1 0").is_err());
        assert!(seen("100 2000000 10 20 30 0 1").is_err());
        assert!(seen("0 2000000 10 20 30 0 0").is_err());
    }
}
