//! Rows that were found, in a file, so that a run that was stopped goes on where it was.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::PathBuf;

/// What one contestant did to one series: late request-seconds or cold starts, and pod-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowNumbers {
    pub(crate) late: f64,
    pub(crate) pod_seconds: f64,
}

/// The rows by their names: table, series and contestant.
pub(crate) type Rows = BTreeMap<String, RowNumbers>;

/// The file of rows, and what is in it.
#[derive(Debug)]
pub(crate) struct RowFile {
    path: PathBuf,
    rows: Rows,
}

impl RowFile {
    /// The rows that this very program has found with these series.
    pub(crate) fn beside_program(origin: &str, is_quick: bool) -> Self {
        let program = std::env::current_exe().expect("the program knows its file");
        let mut hasher = DefaultHasher::new();
        hasher.write(&fs::read(&program).expect("the program reads its file"));
        hasher.write(origin.as_bytes());
        let heading = format!("# {:016x}", hasher.finish());
        let form = if is_quick { "quick" } else { "rows" };
        let path = program.with_file_name(format!("foresight-{form}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() == Some(heading.as_str()) {
            let rows: Rows = lines.filter_map(row_in).collect();
            println!("{} rows were found before ({})", rows.len(), path.display());
            return Self { path, rows };
        }
        fs::write(&path, format!("{heading}\n")).expect("the folder of the program can be written");
        Self { path, rows: Rows::new() }
    }

    /// The row of this name, if it was found before.
    pub(crate) fn get(&self, name: &str) -> Option<RowNumbers> {
        self.rows.get(name).copied()
    }

    /// Keeps rows that belong together.
    pub(crate) fn keep(&mut self, found: Rows) {
        let lines: Vec<String> = found
            .iter()
            .map(|(name, numbers)| format!("{name} {} {}\n", numbers.late, numbers.pod_seconds))
            .collect();
        let file = OpenOptions::new().append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(lines.concat().as_bytes()))
            .expect("the file of rows can be written");
        self.rows.extend(found);
    }
}

/// A name and two numbers; `None` for a line that was cut off.
fn row_in(line: &str) -> Option<(String, RowNumbers)> {
    let mut words = line.rsplitn(3, ' ');
    let pod_seconds = words.next()?.parse().ok()?;
    let late = words.next()?.parse().ok()?;
    Some((words.next()?.to_owned(), RowNumbers { late, pod_seconds }))
}
