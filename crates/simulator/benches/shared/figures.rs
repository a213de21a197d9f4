//! Figures for the page of all promises, which `cargo bench -p tests --bench report` makes: a line of JSON
//! for each goal in `figures/NAME.json` of cargo's folder, as the benchmarks of `tests` write them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A goal and what was found of it.
pub(crate) struct Figure {
    /// The goal, in the same words in every run; words before a colon name the cell.
    pub(crate) goal: String,
    pub(crate) found: String,
    /// The number that was found and the most that it may be, where the goal is such a limit.
    pub(crate) at_most: Option<[f64; 2]>,
    pub(crate) is_met: bool,
}

impl Figure {
    /// That a number does not exceed a limit.
    pub(crate) fn at_most(goal: &str, value: f64, limit: f64) -> Self {
        Self {
            goal: goal.to_owned(),
            found: format!("{value:.3} (limit {limit})"),
            at_most: Some([value, limit]).filter(|numbers| numbers.iter().all(|number| number.is_finite())),
            is_met: value <= limit,
        }
    }

    /// The figure as JSON; `origin` is the part that all figures of a run have alike.
    fn line(&self, benchmark: &str, origin: &str) -> String {
        let number = self
            .at_most
            .map(|[value, limit]| format!(r#""number":{{"value":{value:?},"limit":{limit:?}}},"#))
            .unwrap_or_default();
        let verdict = if self.is_met { "met" } else { "missed" };
        let [benchmark, goal, found] = [benchmark, self.goal.as_str(), self.found.as_str()].map(quoted);
        format!(
            r#"{{"benchmark":{benchmark},"goal":{goal},"found":{found},{number}"verdict":"{verdict}",{origin}}}"#
        )
    }
}

/// Keeps these figures in the place of earlier ones of the same goals.
pub(crate) fn keep(package: &str, benchmark: &str, figures: &[Figure]) {
    let folder = target_folder().join("figures");
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let path = folder.join(format!("{benchmark}.json"));
    let former = fs::read_to_string(&path).unwrap_or_default();
    let is_of = |line: &str, figure: &Figure| line.contains(&format!(r#""goal":{},"#, quoted(&figure.goal)));
    let others = former.lines().filter(|line| !figures.iter().any(|figure| is_of(line, figure)));
    let origin = origin(package, benchmark);
    let lines: Vec<String> = others
        .map(str::to_owned)
        .chain(figures.iter().map(|figure| figure.line(benchmark, &origin)))
        .map(|line| line + "\n")
        .collect();
    fs::write(&path, lines.concat()).expect("cargo's folder can be written");
}

/// The command, the commit and the processor of this run, as parts of a JSON object.
fn origin(package: &str, benchmark: &str) -> String {
    let commit = commit().map_or_else(|| "null".to_owned(), |commit| quoted(&commit));
    let [command, processor] = [command(package, benchmark), processor()].map(|text| quoted(&text));
    format!(r#""command":{command},"commit":{commit},"processor":{processor}"#)
}

/// The command by which this process was started, as a person would type it.
fn command(package: &str, benchmark: &str) -> String {
    // Cargo adds the first word by itself.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    let traces = if std::env::var_os("EBB_TRACES").is_some() { "EBB_TRACES=FOLDER " } else { "" };
    format!("{traces}cargo bench -p {package} --bench {benchmark}{separator}{}", arguments.join(" "))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

/// The folder of the figures, for benchmarks lie in `target/PROFILE/deps`.
fn target_folder() -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    this.ancestors().nth(3).expect("cargo's folder is above it").to_owned()
}

/// The commit of the working tree, where git knows it.
fn commit() -> Option<String> {
    let told = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

/// The processor of the machine, as the kernel names it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}
