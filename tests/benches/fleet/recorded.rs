//! What a record costs: the second autoscaler of a fleet writes one, and is compared with the first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::bench::{Goal, Report, Samples, Table};

/// The most cores and megabytes that a record may cost, and the most bytes of it for each report.
const COST_MAX: f64 = 0.05;
const MEGABYTES_MAX: f64 = 40.0;
const REPORT_BYTES_MAX: f64 = 12.0;

/// The folder of a fleet's record.
#[derive(Clone, Debug)]
pub(crate) struct RecordFolder(PathBuf);

impl RecordFolder {
    /// The record below the folder of a benchmark.
    pub(crate) fn below(folder: &Path) -> Self {
        Self(folder.join("record"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// How many bytes are written.
    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.0)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    }
}

/// An autoscaler that records, beside one that does not.
pub(crate) struct BesideRecord {
    pub(crate) without: f64,
    pub(crate) with: Samples,
    /// The megabytes of memory without a record, and with one.
    pub(crate) megabytes: [f64; 2],
    /// The bytes that were written in a time, and the reports that came in it: one a second on each link.
    pub(crate) bytes: u64,
    pub(crate) links: u32,
    pub(crate) time: Duration,
}

impl BesideRecord {
    fn bytes_of_report(&self) -> f64 {
        let bytes = f64::from(u32::try_from(self.bytes).unwrap_or(u32::MAX));
        bytes / (f64::from(self.links) * self.time.as_secs_f64())
    }

    pub(crate) fn rows(&self, table: &mut Table) {
        table.row(["CPU while it records, cores".to_owned(), self.with.summary(3)]);
        table.row(["memory while it records, MB: resident".to_owned(), format!("{:.0}", self.megabytes[1])]);
        table.row([
            "bytes of the record for each report".to_owned(),
            format!("{:.1}", self.bytes_of_report()),
        ]);
    }

    pub(crate) fn fill(&self, report: &mut Report, name: &str) {
        report.measured(name, "recording", "cores", &self.with);
        let title = |goal: &str| format!("{name}: {goal}");
        let more = self.with.median() - self.without;
        report.goal(Goal::at_most(&title("cores more while it records"), more, COST_MAX));
        let [before, now] = self.megabytes;
        report.goal(Goal::at_most(&title("MB more while it records"), now - before, MEGABYTES_MAX));
        let bytes = self.bytes_of_report();
        report.goal(Goal::at_most(&title("bytes of the record for each report"), bytes, REPORT_BYTES_MAX));
    }
}
