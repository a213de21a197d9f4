//! Every attack on every contestant, and what is asked of ours.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;
use tests::bench::{Goal, Options, Report, Samples, Table};

use super::attacker::{self, Deeds};
use super::attacks::{ATTACKS, Attack, Door};
use super::contestants::{Ground, NAMES, Name};
use super::honest::{self, Seen};

/// What an attack may cost for each of its connections, and in all, in MB.
const MEMORY_EACH: f64 = 32.0;
const MEMORY_IN_ALL: f64 = 256.0;
/// What honest clients may wait at the median, in milliseconds.
const MEDIAN: f64 = 20.0;

/// What the short form tries on every contestant.
const SHORT: [&str; 4] = ["rapid reset", "cancels, 200/s each", "slow heads", "fragments on the link's port"];

/// What one contestant's turns under one attack gave.
#[derive(Default)]
struct Turns {
    /// What the attack added to the memory, at most.
    memory: Samples,
    cpu: Samples,
    median: Samples,
    p99: Samples,
    lost: u32,
    asked: u32,
    why: Option<String>,
    deeds: Deeds,
}

impl Turns {
    fn add(&mut self, seen: Seen, memory: f64, cpu: f64, deeds: Deeds) {
        self.memory.push(memory);
        self.cpu.push(cpu);
        self.median.push(seen.latency.median());
        self.p99.push(seen.latency.quantile(990));
        self.lost += seen.lost;
        self.asked += seen.asked;
        self.why = self.why.take().or(seen.why);
        self.deeds = deeds;
    }
}

pub(crate) fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let ground = Ground::prepare(folder.path())?;
    let columns = [
        "attack",
        "contestant",
        "MB more",
        "CPU s",
        "honest: median ms",
        "p99 ms",
        "lost",
        "connections (ended), MB sent",
    ];
    let mut table =
        Table::new("Attacks: what they cost, and what honest clients beside them notice", &columns);
    for attack in &ATTACKS {
        for &name in &NAMES {
            let cell = format!("{}, {}", attack.name, name.text());
            if !is_asked(&cell, attack, name, options) {
                continue;
            }
            let turns = all_rounds(&ground, attack, name, options);
            let Some(turns) = report.unless_failed(&cell, turns) else { continue };
            println!("{}", fill(&mut table, attack, name, &turns));
            note(report, &cell, attack, name, &turns);
        }
    }
    report.table(table);
    Ok(())
}

fn is_asked(cell: &str, attack: &Attack, name: Name, options: &Options) -> bool {
    // Nobody but ebb has a link.
    let has_door = attack.door == Door::Requests || name != Name::Haproxy;
    // The short form needs not everybody to show that attacks attack.
    let is_in_form = !options.quick || name == Name::QueueProxy || SHORT.contains(&attack.name);
    options.includes(cell) && has_door && is_in_form
}

fn all_rounds(ground: &Ground<'_>, attack: &Attack, name: Name, options: &Options) -> anyhow::Result<Turns> {
    let mut turns = Turns::default();
    let time = options.choose(options.turn(3), Duration::from_millis(500));
    for _ in 0..options.rounds(1, 1) {
        turn(ground, attack, name, time, &mut turns)?;
    }
    Ok(turns)
}

fn turn(
    ground: &Ground<'_>,
    attack: &Attack,
    name: Name,
    time: Duration,
    turns: &mut Turns,
) -> anyhow::Result<()> {
    let contestant = ground.start(name, attack.protocol)?;
    let ports = match attack.door {
        Door::Requests => vec![contestant.port()],
        Door::Others => contestant.other_ports()?,
    };
    // Once, so that what everybody needs once is not counted as the attack's.
    honest::ask(attack.protocol, contestant.port(), Duration::from_millis(100))?;
    let (memory, cpu) = (contestant.peak_memory()?, contestant.cpu_seconds()?);
    let mut attacker = attacker::start(attack, ports, time, ground.folder, &ground.cores.load)?;
    let seen = honest::ask(attack.protocol, contestant.port(), time)?;
    let deeds = attacker.first_line().context("the attacker")?;
    let deeds = serde_json::from_str(&deeds).context("what the attacker says")?;
    // A process that is gone has neither.
    let memory = contestant.peak_memory()? - memory;
    let cpu = contestant.cpu_seconds()? - cpu;
    turns.add(seen, memory, cpu, deeds);
    Ok(())
}

/// Adds a row to the table, and says it at once: the whole takes minutes.
fn fill(table: &mut Table, attack: &Attack, name: Name, turns: &Turns) -> String {
    let row = [
        attack.name.to_owned(),
        name.text().to_owned(),
        turns.memory.summary(1),
        turns.cpu.summary(2),
        turns.median.summary(1),
        turns.p99.summary(1),
        format!("{} of {}", turns.lost, turns.asked),
        format!("{} ({}), {}", turns.deeds.opened, turns.deeds.ended, turns.deeds.bytes / 1_000_000),
    ];
    let mut line = row.join(" | ");
    if let Some(why) = &turns.why {
        let _ = write!(line, " | first lost: {why}");
    }
    table.row(row);
    line
}

fn note(report: &mut Report, cell: &str, attack: &Attack, name: Name, turns: &Turns) {
    for (quantity, samples) in [
        ("MB more", &turns.memory),
        ("CPU s", &turns.cpu),
        ("honest median ms", &turns.median),
        ("honest p99 ms", &turns.p99),
        ("honest lost", &Samples(vec![turns.lost.into()])),
    ] {
        report.measured(attack.name, name.text(), quantity, samples);
    }
    match name {
        Name::Haproxy => {}
        Name::QueueProxy | Name::Activator => {
            let memory = MEMORY_IN_ALL.min(MEMORY_EACH * f64::from(attack.connections));
            report.goal(Goal::at_most(&format!("{cell}: MB more"), turns.memory.most(), memory));
            report.goal(Goal::at_most(&format!("{cell}: lost"), turns.lost.into(), 0.0));
            report.goal(Goal::at_most(&format!("{cell}: median ms"), turns.median.median(), MEDIAN));
        }
    }
}
