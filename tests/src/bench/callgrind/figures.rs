//! Committed counts, by which a change shows that costs more, or less, than its author thought.
//!
//! Counts are a compiler's and a target's: another release of rustc inlines other functions. So the file has
//! a section for each build, and a build without one has nothing to be compared with: its counts are printed
//! as a section to commit.
//!
//! ```text
//! # a comment
//! [rustc 1.95.0 (59807616e 2026-04-14), x86_64-unknown-linux-gnu, release]
//! hop http1 64x12B = 19700
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// What an executable was built by. Counts of two builds that differ in it cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildKind {
    /// As `rustc -V` says it.
    pub compiler: String,
    /// The target that rustc builds for by itself.
    pub target: String,
    /// Cargo's profile, by the folder in which the executable lies.
    pub profile: String,
}

impl BuildKind {
    /// The build of an executable that was made here: `rustc` is that of the working tree.
    pub fn of(executable: &Path) -> anyhow::Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .arg("-vV")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("asking rustc for its version")?;
        ensure!(output.status.success(), "`rustc -vV` ended with {}", output.status);
        let folder = executable.parent().and_then(Path::file_name).unwrap_or_default();
        Self::new(&String::from_utf8_lossy(&output.stdout), &folder.to_string_lossy())
    }

    fn new(said: &str, profile: &str) -> anyhow::Result<Self> {
        let compiler = said.lines().next().context("`rustc -vV` said nothing")?;
        let target = said.lines().find_map(|line| line.strip_prefix("host: "));
        let target = target.with_context(|| format!("`rustc -vV` named no host: {said}"))?;
        Ok(Self {
            compiler: compiler.trim().to_owned(),
            target: target.trim().to_owned(),
            profile: profile.to_owned(),
        })
    }
}

/// The head of a section, without its brackets.
impl fmt::Display for BuildKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}, {}", self.compiler, self.target, self.profile)
    }
}

/// The committed figures of one build, by the name of what is counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommittedFigures(BTreeMap<String, f64>);

impl CommittedFigures {
    /// Reads the section of a build; nothing is in it if the file has none. Any line that is wrong fails the
    /// whole, in a section of another build too.
    pub fn read(text: &str, build: &BuildKind) -> anyhow::Result<Self> {
        let wanted = build.to_string();
        let mut figures = BTreeMap::new();
        let mut section = None;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = || format!("line {} of the committed figures: {line:?}", at + 1);
            if let Some(head) = line.strip_prefix('[') {
                section = Some(head.strip_suffix(']').context("no ] at the end").with_context(bad)?);
                continue;
            }
            let section = section.context("no line [BUILD] stands above").with_context(bad)?;
            let (name, figure) = line.rsplit_once('=').context("not NAME = FIGURE").with_context(bad)?;
            let (name, figure) = (name.trim(), figure.trim());
            let figure: u32 =
                figure.parse().with_context(|| format!("{figure:?} is no figure")).with_context(bad)?;
            if section == wanted && figures.insert(name.to_owned(), f64::from(figure)).is_some() {
                bail!("{}: it is there twice", bad());
            }
        }
        Ok(Self(figures))
    }

    /// The committed figure of what has this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
}

/// What a count says beside its committed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureVerdict {
    /// No figure is committed for this build.
    Unknown,
    /// The count differs by no more than it may.
    Same,
    /// The count is larger, which a change has to justify by committing the new figure.
    Dearer,
    /// The count is smaller: the new figure keeps it so.
    Cheaper,
}

impl FigureVerdict {
    /// Compares a count with the committed figure, from which it may differ by this part.
    pub fn of(count: f64, committed: Option<f64>, tolerance: f64) -> Self {
        let Some(committed) = committed else { return Self::Unknown };
        if count > committed * (1.0 + tolerance) || count.is_nan() {
            Self::Dearer
        } else if count < committed * (1.0 - tolerance) {
            Self::Cheaper
        } else {
            Self::Same
        }
    }
}

/// The lines to commit for counts of a build: a section, without what is committed already.
pub fn section(build: &BuildKind, counts: &BTreeMap<String, f64>) -> String {
    let lines = counts.iter().map(|(name, count)| format!("{name} = {count:.0}\n"));
    format!("[{build}]\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
    const FIGURES: &str = "\
# Instructions for each request.
[rustc 1.94.0 (000000000 2026-03-01), x86_64-unknown-linux-gnu, release]
hop http1 64x12B = 20100

[rustc 1.95.0 (59807616e 2026-04-14), x86_64-unknown-linux-gnu, release]
hop http1 64x12B = 19700
one wake = 2500000
";

    fn build(profile: &str) -> BuildKind {
        BuildKind::new(SAID, profile).unwrap()
    }

    #[test]
    fn builds_are_told_by_compiler_target_and_profile() {
        let shown = build("release").to_string();
        assert_eq!(shown, "rustc 1.95.0 (59807616e 2026-04-14), x86_64-unknown-linux-gnu, release");
        assert!(BuildKind::new("", "release").is_err());
        assert!(
            BuildKind::new("rustc 1.95.0\n", "release").unwrap_err().to_string().contains("named no host")
        );
    }

    #[test]
    fn figures_are_those_of_the_build() {
        let figures = CommittedFigures::read(FIGURES, &build("release")).unwrap();
        assert_eq!(figures.figure("hop http1 64x12B"), Some(19_700.0));
        assert_eq!(figures.figure("one wake"), Some(2_500_000.0));
        assert_eq!(figures.figure("hop h2c 64x12B"), None);
        assert_eq!(CommittedFigures::read(FIGURES, &build("dist")).unwrap(), CommittedFigures::default());
    }

    #[test]
    fn printed_sections_are_read_again() {
        let counts = BTreeMap::from([("a = b".to_owned(), 12.4), ("c".to_owned(), 99.6)]);
        let text = section(&build("dist"), &counts);
        assert_eq!(
            text.lines().next(),
            Some("[rustc 1.95.0 (59807616e 2026-04-14), x86_64-unknown-linux-gnu, dist]")
        );
        let figures = CommittedFigures::read(&text, &build("dist")).unwrap();
        assert_eq!((figures.figure("a = b"), figures.figure("c")), (Some(12.0), Some(100.0)));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (added, expected) in [
            ("one wake = 3\n", "line 8 of the committed figures: \"one wake = 3\": it is there twice"),
            ("new = many\n", "line 8 of the committed figures: \"new = many\": \"many\" is no figure"),
            ("new 7\n", "not NAME = FIGURE"),
            ("[rustc\n", "no ] at the end"),
        ] {
            let text = format!("{FIGURES}{added}");
            let error = format!("{:#}", CommittedFigures::read(&text, &build("release")).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        let error = format!("{:#}", CommittedFigures::read("a = 1\n", &build("release")).unwrap_err());
        assert!(error.contains("no line [BUILD] stands above"), "{error}");
    }

    #[test]
    fn counts_beyond_the_tolerance_are_dearer_or_cheaper() {
        for (count, committed, expected) in [
            (100.0, None, FigureVerdict::Unknown),
            (103.0, Some(100.0), FigureVerdict::Same),
            (97.0, Some(100.0), FigureVerdict::Same),
            (103.1, Some(100.0), FigureVerdict::Dearer),
            (96.9, Some(100.0), FigureVerdict::Cheaper),
            (f64::NAN, Some(100.0), FigureVerdict::Dearer),
        ] {
            assert_eq!(FigureVerdict::of(count, committed, 0.03), expected, "{count}");
        }
    }
}
