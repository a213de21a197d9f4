//! An app that writes down when each request began and ended in it, for a test that compares that with what
//! clients saw (`tests::slots`).

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use tests::bench::clock;

/// One file per process, named by its id, a line for each beginning and each end.
#[derive(Debug)]
pub(crate) struct Journal(File);

impl Journal {
    /// Begins it in this folder, which is made if it is not there.
    pub(crate) fn begin(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        let path = folder.join(std::process::id().to_string());
        Self(OpenOptions::new().create(true).append(true).open(path).expect("the folder can be written"))
    }

    /// A request for this began. It ends when the returned value is dropped, also if its client goes away.
    pub(crate) fn note<'j>(&'j self, target: &str) -> Noted<'j> {
        self.write("begun", target);
        Noted { journal: self, target: target.to_owned() }
    }

    fn write(&self, what: &str, target: &str) {
        let line = format!("{what} {} {target}\n", clock::now().as_nanos());
        (&self.0).write_all(line.as_bytes()).expect("the journal can be written");
    }
}

/// A request that the app is answering; its end is noted when this is dropped.
pub(crate) struct Noted<'j> {
    journal: &'j Journal,
    target: String,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.journal.write("ended", &self.target);
    }
}
