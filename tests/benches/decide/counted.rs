//! Instructions and allocations of one repetition, by valgrind: the difference between two runs of this
//! executable that repeat few and many times.

use std::process::Command;

use anyhow::{Context, ensure};
use tests::bench::guard;

use super::work::Work;

/// Says which work this process repeats, and how often.
const WORK: &str = "DECIDE_WORK";
const TIMES: &str = "DECIDE_TIMES";
const FEW: u32 = 1000;
const MANY: u32 = 3000;

/// The instructions and the allocations of one repetition.
pub(crate) struct Counts {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// Whether this process was started to be counted.
pub(crate) fn is_child() -> bool {
    std::env::var_os(WORK).is_some()
}

pub(crate) fn repeat_in_child() -> anyhow::Result<()> {
    let name = std::env::var(WORK)?;
    let times: u32 = std::env::var(TIMES)?.parse()?;
    let work = Work::all().into_iter().find(|work| work.name() == name).context("there is no such work")?;
    let mut bench = work.reduced().prepare();
    (0..times).for_each(|_| bench.once());
    // How much is freed at the end depends on nothing that is counted.
    std::process::exit(0);
}

pub(crate) fn count(work: Work) -> anyhow::Result<Counts> {
    let each = |of: fn(Work, u32) -> anyhow::Result<f64>| -> anyhow::Result<f64> {
        Ok((of(work, MANY)? - of(work, FEW)?) / f64::from(MANY - FEW))
    };
    Ok(Counts { instructions: each(instructions)?, allocations: each(allocations)? })
}

fn instructions(work: Work, times: u32) -> anyhow::Result<f64> {
    let arguments = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    number_after(&valgrind(work, times, &arguments)?, "Collected :")
}

fn allocations(work: Work, times: u32) -> anyhow::Result<f64> {
    let arguments = ["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"];
    number_after(&valgrind(work, times, &arguments)?, "total heap usage:")
}

/// What valgrind says of a run.
fn valgrind(work: Work, times: u32, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("valgrind");
    command.args(arguments).arg(std::env::current_exe()?);
    command.env(WORK, work.name()).env(TIMES, times.to_string());
    guard::protect(&mut command)?;
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "valgrind failed: {said}");
    Ok(said)
}

/// The first number behind some words; thousands are separated by commas.
fn number_after(text: &str, words: &str) -> anyhow::Result<f64> {
    let rest = text.split_once(words).with_context(|| format!("valgrind said no {words:?}: {text}"))?.1;
    let number = rest.split_whitespace().next().unwrap_or_default().replace(',', "");
    number.parse().with_context(|| format!("{number:?} is no number"))
}
