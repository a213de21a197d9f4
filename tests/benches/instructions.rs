//! What a forwarded request and a wake cost in instructions of user space, which do not depend on how busy
//! the machine is.
//!
//! `cargo bench -p tests --bench instructions`. Callgrind counts a queue-proxy, the activator's threads in
//! `ebb up`, and `ebb up` as a whole while services wake; each as the difference of a short and a long run,
//! of which the least of three each counts. Beside the instructions stand those of `memcpy`, the calls of the
//! allocator, and the most expensive functions by crate. Counts are compared with those that are committed in
//! `instructions/figures.txt` for the same rustc, target and profile. The short form makes one round of a few
//! parts and compares them too: a count is no less true there.

mod instructions {
    pub(super) mod comparison;
    pub(super) mod field;
    pub(super) mod work;
}

use tests::bench::callgrind::cost::RequestCost;
use tests::bench::callgrind::figures::{BuildKind, CommittedFigures};
use tests::bench::{Options, Report, Samples, Table, callgrind, executables, machine};

use instructions::comparison::Comparison;
use instructions::field::Field;
use instructions::work::Work;

/// How many of the most expensive functions are shown.
const FUNCTIONS: usize = 10;

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    machine::require(&[callgrind::NEEDED])?;
    machine::raise_open_files()?;
    let ebb = executables::ebb()?;
    let build = BuildKind::of(&ebb)?;
    let committed = CommittedFigures::read(include_str!("instructions/figures.txt"), &build)?;
    let rounds = options.rounds(3, 1);
    let mut report = Report::new("instructions", options.quick, rounds);
    let mut comparison = Comparison::new(build, committed);
    let works: Vec<Work> = Work::all()
        .into_iter()
        .filter(|work| options.includes(&work.name()))
        .filter(|work| !options.quick || options.only.is_some() || work.is_of_the_short_form())
        .collect();
    if !works.is_empty() {
        let field = Field::start(&ebb)?;
        for work in &works {
            let counted = work.count(&field, rounds);
            let Some(cost) = report.unless_failed(&work.name(), counted) else { continue };
            show(&mut report, &work.name(), &cost);
            comparison.add(work, &cost);
        }
    }
    comparison.fill(&mut report);
    report.finish(options.json.as_deref())?;
    comparison.require()
}

/// The functions of one part, and its numbers for the JSON.
fn show(report: &mut Report, name: &str, cost: &RequestCost) {
    let share = |instructions: f64| format!("{:.1} %", 100.0 * instructions / cost.instructions);
    let columns = ["crate", "function", "instructions", "of all"];
    let mut table = Table::new(&format!("{name}: the {FUNCTIONS} most expensive functions"), &columns);
    for of_crate in cost.most_expensive(FUNCTIONS) {
        let whole = of_crate.instructions;
        table.row([of_crate.name, "(all of it)".to_owned(), format!("{whole:.0}"), share(whole)]);
        for function in of_crate.functions {
            let own = function.instructions;
            table.row([String::new(), function.function.name, format!("{own:.0}"), share(own)]);
        }
    }
    report.table(table);
    for (quantity, samples) in [
        ("instructions", cost.rounds.clone()),
        ("instructions of memcpy", Samples(vec![cost.copying])),
        ("allocations", Samples(vec![cost.allocations])),
    ] {
        report.measured(name, "ebb", quantity, &samples);
    }
}
