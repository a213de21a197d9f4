//! The graph of one crate's source files: which file names an item that another file defines.
//!
//! An edge is a path in a file's code (in an import, an expression, a type, a pattern, an attribute or the
//! tokens of a macro) to an item of another file. Paths are resolved as the compiler does, through imports,
//! re-exports and globs, to the file in which the item is defined; variants and associated items count as
//! their type. Three things make no edge: the declaration of a module, a re-export (an import with a
//! visibility), and a method that is called on a value. Code that only tests compile is left out.
//!
//! What a macro expands to is unknown here: its definition and its arguments are read, as far as they are
//! Rust.
//!
//! ```text
//!   sources ──► modules ──► resolution ──► paths ──► edges ──► circles
//!               (names)     (a path's      (every
//!                            items)         path)
//!                               ▲             │
//!                            scopes ◄─────────┘ what a function's blocks hide
//! ```
//!
//! Types are not inferred, on purpose: a method call would need them, and a call on a value that was handed
//! in says nothing about the order in which two files can be read.

mod modules;
mod paths;
mod resolution;
mod scopes;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use modules::CrateModules;

/// The text of each source file, by its path below the crate's `src`, with slashes.
pub(crate) type SourceTexts = BTreeMap<String, String>;

/// The names of another file's items that a file uses, by the other file.
type UsedNames = BTreeMap<String, BTreeSet<String>>;

/// For each file the other files of its crate that it uses.
pub(crate) struct FileGraph {
    edges: BTreeMap<String, UsedNames>,
}

/// Files of which each one reaches every other one, with the edges between them.
pub(crate) struct FileCircle {
    pub(crate) files: BTreeSet<String>,
    edges: Vec<(String, String, BTreeSet<String>)>,
}

impl FileGraph {
    /// The graph of the crate whose manifest lies in this folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let name = folder.file_name().expect("a crate's folder has a name").to_string_lossy();
        let mut sources = SourceTexts::new();
        read_sources(&folder.join("src"), "", &mut sources);
        Self::of(&name, &sources)
    }

    /// The graph of a crate of this name with these sources.
    pub(crate) fn of(name: &str, sources: &SourceTexts) -> Self {
        Self { edges: paths::edges(&CrateModules::parse(name, sources)) }
    }

    /// Every circle, the largest strongly connected sets of files.
    pub(crate) fn circles(&self) -> Vec<FileCircle> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|file| (file.as_str(), self.reached_from(file))).collect();
        let mut circles = Vec::new();
        let mut told: BTreeSet<&str> = BTreeSet::new();
        for (file, others) in &reached {
            if !others.contains(file) || told.contains(file) {
                continue;
            }
            let returns = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
            let members: BTreeSet<&str> = others.iter().filter(returns).copied().collect();
            told.extend(&members);
            circles.push(self.circle(&members));
        }
        circles
    }

    /// The files that one file uses, and those that these use, without end. The file itself is one of them if
    /// it stands in a circle.
    fn reached_from(&self, file: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(next) = open.pop() {
            for other in self.edges.get(next).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(other.as_str()) {
                    open.push(other);
                }
            }
        }
        reached
    }

    fn circle(&self, members: &BTreeSet<&str>) -> FileCircle {
        let mut edges = Vec::new();
        for file in members {
            let used = self.edges.get(*file).into_iter().flatten();
            for (other, names) in used.filter(|(other, _)| members.contains(other.as_str())) {
                edges.push(((*file).to_owned(), other.clone(), names.clone()));
            }
        }
        FileCircle { files: members.iter().map(|file| (*file).to_owned()).collect(), edges }
    }
}

impl fmt::Display for FileCircle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        writeln!(formatter, "circle of {} files: {}", files.len(), files.join(", "))?;
        for (file, other, names) in &self.edges {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            writeln!(formatter, "  {file} -> {other}: {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// Adds every source file below a folder.
fn read_sources(folder: &Path, prefix: &str, sources: &mut SourceTexts) {
    for entry in std::fs::read_dir(folder).expect("a crate has a folder of sources").flatten() {
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            read_sources(&path, &format!("{name}/"), sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(name, std::fs::read_to_string(&path).expect("a source file is text"));
        }
    }
}
