//! What became of each mutant: one line of JSON for each, written as soon as it is known.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MutantFate {
    /// The compiler refuses the change.
    NotBuilt,
    /// A test fails, or takes far longer than without the change.
    Caught,
    /// Every test passes with the change.
    Survived,
}

/// Every fate with its word, in files and for people.
const WORDS: [(MutantFate, &str); 3] = [
    (MutantFate::NotBuilt, "do not compile"),
    (MutantFate::Caught, "caught"),
    (MutantFate::Survived, "survived"),
];

impl MutantFate {
    pub(super) fn word(self) -> &'static str {
        WORDS.iter().find(|(fate, _)| *fate == self).map_or("", |(_, word)| word)
    }
}

/// A line of the file.
pub(super) struct MutantRecord {
    pub(super) key: u64,
    pub(super) fate: MutantFate,
    /// For people who read the file.
    pub(super) name: String,
}

/// The fates that are known.
pub(super) struct Ledger {
    file: File,
    fates: BTreeMap<u64, MutantFate>,
}

impl Ledger {
    /// Reads what is known; with `forgets` the file begins anew.
    pub(super) fn open(path: &Path, forgets: bool) -> anyhow::Result<Self> {
        if forgets && path.exists() {
            std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        let named = || format!("opening {}", path.display());
        let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(named)?;
        let text = std::fs::read_to_string(path).with_context(named)?;
        // The last line of a run that was killed may be half a line: that mutant is tried again, and the next
        // fate begins a line of its own.
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file).with_context(named)?;
        }
        let fates = text.lines().filter_map(fate_in).collect();
        Ok(Self { file, fates })
    }

    pub(super) fn fate(&self, key: u64) -> Option<MutantFate> {
        self.fates.get(&key).copied()
    }

    pub(super) fn note(&mut self, record: MutantRecord) -> anyhow::Result<()> {
        let MutantRecord { key, fate, name } = record;
        let line = json!({ "key": format!("{key:016x}"), "fate": fate.word(), "mutant": name });
        writeln!(self.file, "{line}").context("writing the fate of a mutant")?;
        self.fates.insert(key, fate);
        Ok(())
    }
}

fn fate_in(line: &str) -> Option<(u64, MutantFate)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let key = u64::from_str_radix(value["key"].as_str()?, 16).ok()?;
    let word = value["fate"].as_str()?;
    WORDS.iter().find(|(_, known)| *known == word).map(|(fate, _)| (key, *fate))
}

/// The hash FNV-1a of a file's name and of its text with a change.
pub(super) fn key_of(file: &Path, text: &str) -> u64 {
    let name = file.to_string_lossy();
    let bytes = name.bytes().chain([0]).chain(text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_read_again_but_for_a_line_that_is_cut_off() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("fates.jsonl");
        let mut ledger = Ledger::open(&path, false).expect("the folder is there");
        for (key, fate) in [(1, MutantFate::Caught), (u64::MAX, MutantFate::Survived)] {
            let name = "panic.rs:3: a < b -> a <= b".to_owned();
            ledger.note(MutantRecord { key, fate, name }).expect("the disk has room");
        }
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::write(&path, format!("{text}{{\"key\": \"00")).expect("the disk has room");
        let mut ledger = Ledger::open(&path, false).expect("the file is there");
        let name = "panic.rs:4: a < b -> a > b".to_owned();
        ledger.note(MutantRecord { key: 3, fate: MutantFate::NotBuilt, name }).expect("the disk has room");
        let ledger = Ledger::open(&path, false).expect("the file is there");
        assert_eq!(ledger.fate(3), Some(MutantFate::NotBuilt), "it does not stand behind the half line");
        assert_eq!((ledger.fate(1), ledger.fate(2)), (Some(MutantFate::Caught), None));
        assert_eq!(ledger.fate(u64::MAX), Some(MutantFate::Survived));
        assert_eq!(Ledger::open(&path, true).expect("it begins anew").fate(1), None);
    }
}
