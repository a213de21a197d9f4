//! One page of everything that ebb promises: the latest figure, its goal, the command that finds it again and
//! the commit at which it was found.
//!
//! `cargo bench -p tests --bench report`. It measures nothing: each other benchmark has noted what it found,
//! on this machine, in `figures/NAME.json` of cargo's target folder. The page lies beside them, as
//! `report.html` and `report.md`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::Context;
use tests::bench::machine::Machine;
use tests::bench::promises::{self, page::PromisePage};
use tests::bench::{Options, executables};

/// This program, which promises nothing.
const ITSELF: &str = "report";

fn main() -> anyhow::Result<()> {
    // It has no part, no short form and no rounds.
    Options::read_whole();
    let folder = promises::folder()?;
    let (mut found, mut unmeasured) = (Vec::new(), Vec::new());
    for benchmark in benchmarks()? {
        match promises::read(&folder, &benchmark)? {
            Some(promises) => found.extend(promises),
            None => unmeasured.push(benchmark),
        }
    }
    let page = PromisePage { promises: found, unmeasured, commit: Machine::this().commit };
    let markdown = page.markdown();
    println!("{markdown}");
    let target = executables::target_folder()?;
    for (name, text) in [("report.md", markdown), ("report.html", page.html())] {
        let path = target.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// The names of all other benchmarks, by their programs' sources.
fn benchmarks() -> anyhow::Result<Vec<String>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let mut names = Vec::new();
    for entry in fs::read_dir(&sources).with_context(|| format!("reading {}", sources.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension() == Some(OsStr::new("rs")) && name != ITSELF {
            names.push(name.into_owned());
        }
    }
    names.sort();
    Ok(names)
}
