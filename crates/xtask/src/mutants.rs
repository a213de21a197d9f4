//! Which small changes of the control loop would no test notice? `cargo xtask mutants`.
//!
//! Each mutant is the program with one change (`mutation`). It is built and tested in a copy of the sources
//! (`copy`), so that nobody's work is touched, and its fate is written down at once (`ledger`): a run that
//! was ended goes on where it was. A mutant that passes every test survives. It is either the same program in
//! other words, or a test is missing; docs/design/proof.md lists each with the reason.

mod copy;
mod ledger;
mod mutation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use self::copy::{SourceCopy, TestEnd};
use self::ledger::{Ledger, MutantFate, MutantRecord};
use self::mutation::{Mutation, mutations};

/// The parts of `scaling` whose mutants are tried, each a file and the files of a folder beside it.
const PARTS: [&str; 5] = ["decider", "panic", "bounds", "scale_to_zero", "window"];
const SOURCES: &str = "crates/scaling/src";
/// Of the mutants that compile so many percent may survive.
const SURVIVORS_MAX: f64 = 5.0;

#[derive(Debug, Args)]
pub(crate) struct MutantOptions {
    /// Only these parts of crate `scaling`.
    #[arg(long, value_name = "PART", value_parser = PARTS)]
    only: Vec<String>,
    /// Try so many mutants that were not tried yet, and no more.
    #[arg(long, value_name = "NUMBER")]
    most: Option<usize>,
    /// Show the mutants and what is known of them, and try none.
    #[arg(long)]
    list: bool,
    /// Forget what is known, for tests that have changed.
    #[arg(long)]
    again: bool,
}

/// One change of one file.
struct Mutant {
    /// The file, below the root of the workspace.
    file: PathBuf,
    mutation: Mutation,
    /// The whole text of the file with the change.
    text: String,
    /// Names the change in this text of the file: another text has other mutants.
    key: u64,
}

/// Tries the mutants that were not tried yet, and prints those that survive. Fails if they are too many.
pub(crate) fn run(options: &MutantOptions, root: &Path, target: &Path) -> anyhow::Result<()> {
    let folder = target.join("mutants");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let mutants = mutants(root, &options.only)?;
    let mut ledger = Ledger::open(&folder.join("fates.jsonl"), options.again)?;
    if !options.list {
        try_unknown(&mutants, options.most, root, &folder, &mut ledger)?;
    }
    let known = mutants.iter().map(|mutant| (mutant, ledger.fate(mutant.key)));
    let fates: Vec<(&Mutant, Option<MutantFate>)> = known.collect();
    if options.list {
        for (mutant, fate) in &fates {
            println!("{}: {}", fate.map_or("not tried", MutantFate::word), mutant.name());
        }
    }
    summarize(&fates)
}

fn try_unknown(
    mutants: &[Mutant],
    most: Option<usize>,
    root: &Path,
    folder: &Path,
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    let unknown: Vec<&Mutant> = mutants.iter().filter(|mutant| ledger.fate(mutant.key).is_none()).collect();
    let tried = most.unwrap_or(usize::MAX).min(unknown.len());
    if tried == 0 {
        return Ok(());
    }
    let copy = SourceCopy::new(root, folder)?;
    println!(
        "{} mutants, {} not tried yet; the tests pass without a change in …",
        mutants.len(),
        unknown.len()
    );
    let patience = copy.patience()?;
    println!(
        "… {:.0} s, so each mutant has {:.0} s",
        patience.unchanged.as_secs_f64(),
        patience.limit.as_secs_f64()
    );
    for (place, mutant) in unknown.into_iter().take(tried).enumerate() {
        let end = copy.with_change(&mutant.file, &mutant.text, |copy| copy.test(patience.limit))?;
        let fate = match end {
            TestEnd::NotBuilt => MutantFate::NotBuilt,
            TestEnd::Failed => MutantFate::Caught,
            TestEnd::Passed => MutantFate::Survived,
        };
        println!("{} of {tried}: {}: {}", place + 1, fate.word(), mutant.name());
        ledger.note(MutantRecord { key: mutant.key, fate, name: mutant.name() })?;
    }
    Ok(())
}

/// Prints counts by part, and each survivor as a row of the table in docs/design/proof.md.
fn summarize(fates: &[(&Mutant, Option<MutantFate>)]) -> anyhow::Result<()> {
    let mut by_fate: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, fate) in fates {
        *by_fate.entry(fate.map_or("not tried", MutantFate::word)).or_default() += 1;
    }
    let counts: Vec<String> = by_fate.iter().map(|(word, count)| format!("{count} {word}")).collect();
    println!("{} mutants: {}", fates.len(), counts.join(", "));
    let survivors: Vec<&Mutant> = fates
        .iter()
        .filter(|(_, fate)| *fate == Some(MutantFate::Survived))
        .map(|(mutant, _)| *mutant)
        .collect();
    for survivor in &survivors {
        println!(
            "| `{}` | `{}` | `{}` |",
            survivor.place(),
            survivor.mutation.line.trim(),
            survivor.mutation.changed.trim()
        );
    }
    let caught = fates.iter().filter(|(_, fate)| *fate == Some(MutantFate::Caught)).count();
    let share = percentage(survivors.len(), caught + survivors.len());
    println!("{share:.1} % of those that compile survive (at most {SURVIVORS_MAX:.0} %)");
    ensure!(
        share <= SURVIVORS_MAX,
        "too many mutants survive: write tests, or say in docs/design/proof.md why not"
    );
    Ok(())
}

fn percentage(part: usize, whole: usize) -> f64 {
    let real = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    real(part) / real(whole.max(1)) * 100.0
}

/// All mutants of some parts, or of all.
fn mutants(root: &Path, only: &[String]) -> anyhow::Result<Vec<Mutant>> {
    let parts = PARTS.iter().filter(|part| only.is_empty() || only.iter().any(|name| name == *part));
    let mut found = Vec::new();
    for part in parts {
        for file in files_of(root, part)? {
            let path = root.join(&file);
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            for mutation in mutations(&text) {
                let changed = mutation.applied_to(&text);
                let key = ledger::key_of(&file, &changed);
                found.push(Mutant { file: file.clone(), mutation, text: changed, key });
            }
        }
    }
    Ok(found)
}

/// The file of a part and those of its folder, without tests.
fn files_of(root: &Path, part: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = vec![PathBuf::from(format!("{SOURCES}/{part}.rs"))];
    let folder = PathBuf::from(format!("{SOURCES}/{part}"));
    if root.join(&folder).is_dir() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let name = entry?.file_name();
            let is_source = Path::new(&name).extension().is_some_and(|extension| extension == "rs");
            if is_source && name != "tests.rs" {
                files.push(folder.join(name));
            }
        }
    }
    files.sort();
    Ok(files)
}

impl Mutant {
    fn place(&self) -> String {
        let file = self.file.strip_prefix(SOURCES).unwrap_or(&self.file);
        format!("{}:{}", file.display(), self.mutation.number)
    }

    fn name(&self) -> String {
        format!("{}: {} -> {}", self.place(), self.mutation.line.trim(), self.mutation.changed.trim())
    }
}
