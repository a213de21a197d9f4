//! One page of everything that ebb promises: the latest figure, its goal, the command that finds it again and
//! the commit at which it was found.
//!
//! `cargo bench -p tests --bench report`. It measures nothing: each other benchmark has noted what it found,
//! on this machine, in `figures/NAME.json` of cargo's target folder. The page lies beside them, as
//! `report.html` and `report.md`. With `-- --document` the figures also take their places in the table of
//! `docs/design/performance.md`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Parser;
use tests::bench::executables;
use tests::bench::machine::Machine;
use tests::bench::promises::{self, Promise, document, page::PromisePage};

/// This program, which promises nothing.
const ITSELF: &str = "report";
/// Benchmarks of other crates that note figures too (`crates/simulator/benches/shared/figures.rs`).
const OF_OTHER_CRATES: [&str; 4] = ["foresight", "record", "sim", "twins"];

/// The command line of this program, which has no part, no short form and no rounds.
#[derive(Debug, Parser)]
struct ReportOptions {
    /// Writes the figures into the table of docs/design/performance.md as well.
    #[arg(long)]
    document: bool,
    /// Says that cargo runs a benchmark; `cargo bench` adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

impl ReportOptions {
    /// Reads the command line. `--only` is a mistake, as for every benchmark that has no parts.
    fn read_whole() -> Self {
        Self::parse()
    }
}

fn main() -> anyhow::Result<()> {
    let options = ReportOptions::read_whole();
    let folder = promises::folder()?;
    let (mut found, mut unmeasured) = (Vec::new(), Vec::new());
    for benchmark in benchmarks()? {
        match promises::read(&folder, &benchmark)? {
            Some(promises) => found.extend(promises),
            None => unmeasured.push(benchmark),
        }
    }
    if options.document {
        rewrite_document(&found)?;
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

/// Writes the figures into the document, where they replace those of the same goals.
fn rewrite_document(found: &[Promise]) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/design/performance.md");
    let former = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let document = document::rewritten(&former, found).with_context(|| path.display().to_string())?;
    fs::write(&path, document).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// The names of all other benchmarks, by their programs' sources.
fn benchmarks() -> anyhow::Result<Vec<String>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let mut names: Vec<String> = OF_OTHER_CRATES.map(str::to_owned).into();
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
