//! What each benchmark promises and found last: one file for each benchmark in cargo's folder
//! (`target/figures/NAME.json`), one line of JSON for each promise, from which `--bench report` makes a page.
//!
//! A run writes the promises that it looked at and keeps the others: `--only` looks at a part. Runs of the
//! short form write nothing, for their numbers mean little. The commit stands with each promise, so a page
//! shows which of them are old; deleting a file forgets them.

pub mod document;
pub mod page;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::executables;

/// A goal, what was found last, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The name of the benchmark.
    pub benchmark: String,
    /// The goal as a sentence. A benchmark has each goal once, and says it in the same words every time.
    pub goal: String,
    /// The number or the fact that was found, with its limit.
    pub found: String,
    /// The same as a number, if it is one. Files of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<GoalNumber>,
    /// Whether the goal was reached by what was found.
    pub verdict: Verdict,
    /// The command that finds it again.
    pub command: String,
    /// The commit of the working tree, where git knew.
    pub commit: Option<String>,
    /// The processor of the machine, as the kernel names it.
    pub processor: String,
}

/// The number that was found of a goal, and the most that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalNumber {
    /// The number that was found, in the unit that the goal names.
    pub value: f64,
    /// The most that the number may be.
    pub limit: f64,
}

impl GoalNumber {
    /// `None` where one of the two is not finite: JSON has no word for that.
    pub fn of(value: f64, limit: f64) -> Option<Self> {
        (value.is_finite() && limit.is_finite()).then_some(Self { value, limit })
    }

    /// How much of its limit the number takes: more than 1 beyond it. With a limit of 0 it is the number.
    pub fn share_of_limit(self) -> f64 {
        if self.limit > 0.0 { self.value / self.limit } else { self.value }
    }
}

/// What became of a goal, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The goal was reached in this run.
    Met,
    /// The number is beyond its limit by less than these rounds can tell: more of them would decide.
    Even,
    /// The goal was not reached in this run.
    Missed,
}

impl Verdict {
    /// Of a number that may be at most `limit`, and is known but for `uncertainty`.
    pub fn at_most(value: f64, limit: f64, uncertainty: f64) -> Self {
        if value <= limit {
            Self::Met
        } else if value <= limit + uncertainty {
            Self::Even
        } else {
            Self::Missed
        }
    }

    /// The word for it in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Even => "even",
            Self::Missed => "MISSED",
        }
    }
}

/// Where the files of all benchmarks lie.
pub fn folder() -> anyhow::Result<PathBuf> {
    Ok(executables::target_folder()?.join("figures"))
}

/// The command by which this process was started, as a person would type it.
pub fn command(benchmark: &str) -> String {
    let executable = std::env::var("EBB_EXECUTABLE").ok();
    command_of(benchmark, executable.as_deref(), std::env::args().skip(1))
}

fn command_of(benchmark: &str, executable: Option<&str>, arguments: impl Iterator<Item = String>) -> String {
    // A benchmark of a cluster cannot run without one, which its script brings up.
    let (program, separator) = if benchmark.starts_with("cluster-") {
        (format!("tests/cluster/bench {benchmark}"), None)
    } else {
        (format!("cargo bench -p tests --bench {benchmark}"), Some("--".to_owned()))
    };
    // Cargo adds this word by itself.
    let mut arguments = arguments.filter(|argument| argument != "--bench").peekable();
    let separator = separator.filter(|_| arguments.peek().is_some());
    let executable = executable.map(|executable| format!("EBB_EXECUTABLE={executable}"));
    executable.into_iter().chain([program]).chain(separator).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Notes what a run of one benchmark found, in the place of what was known of the same promises.
pub fn keep(folder: &Path, benchmark: &str, found: &[Promise]) -> anyhow::Result<()> {
    let path = file(folder, benchmark);
    let mut known = if path.exists() { read_file(&path)? } else { Vec::new() };
    for promise in found {
        match known.iter_mut().find(|known| known.goal == promise.goal) {
            Some(known) => known.clone_from(promise),
            None => known.push(promise.clone()),
        }
    }
    let lines = known.iter().map(|promise| serde_json::to_string(promise).map(|line| line + "\n"));
    let text = lines.collect::<serde_json::Result<String>>().context("promises are plain data")?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // In one step: a reader finds the old lines or the new ones.
    let new = path.with_extension("new");
    fs::write(&new, text).with_context(|| format!("writing {}", new.display()))?;
    fs::rename(&new, &path).with_context(|| format!("writing {}", path.display()))
}

/// What is known of a benchmark's promises; `None` if it was never measured here.
pub fn read(folder: &Path, benchmark: &str) -> anyhow::Result<Option<Vec<Promise>>> {
    let path = file(folder, benchmark);
    path.exists().then(|| read_file(&path)).transpose()
}

fn file(folder: &Path, benchmark: &str) -> PathBuf {
    folder.join(format!("{benchmark}.json"))
}

fn read_file(path: &Path) -> anyhow::Result<Vec<Promise>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let promise = |(at, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| {
            format!("line {} of {} is no promise; delete the file and measure again", at + 1, path.display())
        })
    };
    text.lines().enumerate().map(promise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A promise of the benchmark `hop`.
    pub(super) fn promise(goal: &str, found: &str, verdict: Verdict) -> Promise {
        Promise {
            benchmark: "hop".to_owned(),
            goal: goal.to_owned(),
            found: found.to_owned(),
            number: None,
            verdict,
            command: "cargo bench -p tests --bench hop".to_owned(),
            commit: Some("4d881d9".to_owned()),
            processor: "AMD EPYC".to_owned(),
        }
    }

    #[test]
    fn a_run_of_a_part_keeps_what_is_known_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("figures");
        assert_eq!(read(&place, "hop").unwrap(), None);
        let (one, two) = (promise("one", "1", Verdict::Met), promise("two", "2", Verdict::Missed));
        keep(&place, "hop", &[one.clone(), two]).unwrap();
        let (again, three) = (promise("two", "3", Verdict::Even), promise("three", "3", Verdict::Met));
        keep(&place, "hop", &[again.clone(), three.clone()]).unwrap();
        assert_eq!(read(&place, "hop").unwrap(), Some(vec![one, again, three]));
        assert_eq!(read(&place, "wake").unwrap(), None, "another benchmark");
        let text = fs::read_to_string(place.join("hop.json")).unwrap();
        assert_eq!(text.lines().count(), 3, "a line for each: {text}");
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), "hop", &[promise("one", "1", Verdict::Met)]).unwrap();
        let path = folder.path().join("hop.json");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
        let error = read(folder.path(), "hop").unwrap_err().to_string();
        assert!(error.starts_with("line 2 of ") && error.contains("delete the file"), "{error}");
    }

    #[test]
    fn commands_are_those_that_a_person_types() {
        let of = |benchmark, executable, arguments: &[&str]| {
            command_of(benchmark, executable, arguments.iter().map(ToString::to_string))
        };
        assert_eq!(of("hop", None, &["--bench"]), "cargo bench -p tests --bench hop");
        let part = ["--only", "h2c", "--bench"];
        assert_eq!(of("hop", None, &part), "cargo bench -p tests --bench hop -- --only h2c");
        let on_a_cluster = of("cluster-wake", None, &["--rounds", "2", "--bench"]);
        assert_eq!(on_a_cluster, "tests/cluster/bench cluster-wake --rounds 2");
        let given = of("wake", Some("/opt/ebb"), &[]);
        assert_eq!(given, "EBB_EXECUTABLE=/opt/ebb cargo bench -p tests --bench wake");
    }

    #[test]
    fn promises_of_earlier_versions_are_read_without_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let number = GoalNumber::of(0.9, 1.0);
        let one = Promise { number, ..promise("one", "0.90 (limit 1.00)", Verdict::Met) };
        keep(folder.path(), "hop", std::slice::from_ref(&one)).unwrap();
        assert_eq!(read(folder.path(), "hop").unwrap(), Some(vec![one.clone()]));
        let path = folder.path().join("hop.json");
        let text = fs::read_to_string(&path).unwrap();
        let older = text.replace(r#""number":{"value":0.9,"limit":1.0},"#, "");
        assert_ne!(older, text);
        fs::write(&path, older).unwrap();
        assert_eq!(read(folder.path(), "hop").unwrap(), Some(vec![Promise { number: None, ..one }]));
    }

    #[test]
    fn only_finite_numbers_stand_beside_a_goal() {
        assert_eq!(GoalNumber::of(f64::NAN, 1.0), None);
        assert_eq!(GoalNumber::of(1.0, f64::INFINITY), None);
        let share = |value, limit| GoalNumber::of(value, limit).map(GoalNumber::share_of_limit);
        assert_eq!(share(3.0, 2.0), Some(1.5));
        assert_eq!(share(-0.5, 0.0), Some(-0.5));
    }

    #[test]
    fn a_number_that_is_none_misses_its_goal() {
        assert_eq!(Verdict::at_most(f64::NAN, 1.0, 0.2), Verdict::Missed);
    }
}
