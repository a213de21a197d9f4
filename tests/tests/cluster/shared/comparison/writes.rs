//! When has Kubernetes' autoscaler written? As the API server has noted it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use jiff::Timestamp as WallTime;
use serde_json::Value;
use tests::cluster::audit_log_path;

/// What was written of one autoscaler and its target, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) counts: Vec<Write>,
    pub(crate) statuses: Vec<Write>,
}

/// One request that writes a replica count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) received: WallTime,
    pub(crate) answered: WallTime,
    /// Otherwise another client wrote meanwhile, and it is tried again, or it is refused.
    pub(crate) is_carried_out: bool,
}

impl Writes {
    /// When the first of them was received.
    pub(crate) fn first(&self) -> Option<WallTime> {
        let firsts = [self.counts.first(), self.statuses.first()];
        firsts.into_iter().flatten().map(|write| write.received).min()
    }
}

/// The API server's log, as far as it was read.
#[derive(Debug)]
pub(crate) struct WriteLog {
    log: BufReader<File>,
    /// The beginning of a line whose end is not there yet.
    rest: String,
    namespace: String,
    found: BTreeMap<String, Writes>,
}

impl WriteLog {
    /// From now on, in one namespace.
    pub(crate) fn open(namespace: &str) -> Self {
        let path = audit_log_path();
        let mut file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.seek(SeekFrom::End(0)).expect("a file has an end");
        let namespace = namespace.to_owned();
        Self { log: BufReader::new(file), rest: String::new(), namespace, found: BTreeMap::new() }
    }

    /// What was written of this autoscaler from then on.
    pub(crate) fn take(&mut self, autoscaler: &str, since: WallTime) -> Writes {
        while self.log.read_line(&mut self.rest).expect("the log can be read") > 0 {
            if self.rest.ends_with('\n') {
                let line = std::mem::take(&mut self.rest);
                self.note(&line);
            }
        }
        let mut writes = self.found.remove(autoscaler).unwrap_or_default();
        for list in [&mut writes.counts, &mut writes.statuses] {
            list.retain(|write| write.received >= since);
        }
        writes
    }

    fn note(&mut self, line: &str) {
        if !line.contains(&self.namespace) {
            return;
        }
        let entry: Value = serde_json::from_str(line).expect("a line is an object");
        let object = &entry["objectRef"];
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        if text("namespace") != self.namespace {
            return;
        }
        let time = |field: &str| -> WallTime {
            entry[field].as_str().unwrap_or_default().parse().expect("it says when")
        };
        let writes = self.found.entry(text("name").to_owned()).or_default();
        let list = match (text("resource"), text("subresource")) {
            ("targets", "scale") => &mut writes.counts,
            ("horizontalpodautoscalers", "status") => &mut writes.statuses,
            _ => return,
        };
        list.push(Write {
            received: time("requestReceivedTimestamp"),
            answered: time("stageTimestamp"),
            is_carried_out: entry["responseStatus"]["code"] == 200,
        });
    }
}
