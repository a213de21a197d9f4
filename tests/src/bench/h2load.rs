//! `h2load`, the load generator for HTTP/2 without TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::machine::spawn_on;
use super::statistics::Samples;
use super::wrk::Seen;

/// A closed loop over connections that each carry several requests at once.
#[derive(Clone, Debug)]
pub struct H2load {
    /// The number of connections that h2load opens.
    pub connections: usize,
    /// How many requests at once on each.
    pub streams: usize,
    /// The path that every request asks for.
    pub path: String,
    /// What is posted, if anything.
    pub body: Option<PathBuf>,
    /// The cores on which h2load runs.
    pub cores: Vec<usize>,
}

impl H2load {
    /// Loads a port of this machine for a time. Any failed request fails the whole.
    pub fn run(&self, port: u16, time: Duration, folder: &Path) -> anyhow::Result<Seen> {
        let log = folder.join("h2load.log");
        // It appends.
        let _ = fs::remove_file(&log);
        let mut command = Command::new("h2load");
        command
            .arg(format!("-c{}", self.connections))
            .arg(format!("-m{}", self.streams))
            .arg(format!("-D{}", time.as_secs()))
            .arg("--log-file")
            .arg(&log)
            .arg(format!("http://127.0.0.1:{port}{}", self.path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(body) = &self.body {
            command.arg("-d").arg(body);
        }
        let output = spawn_on(&self.cores, &mut command)?.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = number_before(&text, " failed,")
            .with_context(|| format!("h2load failed: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
        let latencies = latencies(&fs::read_to_string(&log).context("reading h2load's log")?)?;
        ensure!(failed == 0.0, "{failed} requests failed: {text}");
        ensure!(!latencies.0.is_empty(), "no request was answered: {text}");
        let requests = number_before(&text, " succeeded,").context("h2load says how many succeeded")?;
        Ok(Seen {
            requests,
            rate: requests / time.as_secs_f64(),
            p50: Duration::from_secs_f64(latencies.quantile(500) / 1e6),
            p99: Duration::from_secs_f64(latencies.quantile(990) / 1e6),
        })
    }
}

/// The number in front of a word of the line that begins with `requests:`.
fn number_before(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("requests:"))?;
    line.split_once(word)?.0.split_whitespace().last()?.parse().ok()
}

/// One line per request: start, status, microseconds to the end.
fn latencies(log: &str) -> anyhow::Result<Samples> {
    let mut latencies = Samples::new();
    for line in log.lines() {
        let mut fields = line.split('\t');
        let (Some(_start), Some(status), Some(time)) = (fields.next(), fields.next(), fields.next()) else {
            bail!("h2load logged {line:?}");
        };
        ensure!(status == "200", "a request was answered with {status}");
        latencies.push(time.parse().with_context(|| format!("h2load logged {line:?}"))?);
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_line_is_read() {
        let text = "finished\nrequests: 12 total, 13 started, 12 done, 11 succeeded, 1 failed, 0 errored, 0 timeout\n";
        assert_eq!(number_before(text, " failed,"), Some(1.0));
        assert_eq!(number_before(text, " succeeded,"), Some(11.0));
    }

    #[test]
    fn a_failed_stream_fails_the_measurement() {
        assert!(latencies("1\t200\t30\n").is_ok());
        assert!(latencies("1\t-1\t30\n").is_err());
    }
}
