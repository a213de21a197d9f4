//! Every attack on every contestant, and what is asked of ours.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::{Goal, Options, Report, Samples, Table};

use super::attacker::{self, Deeds};
use super::attacks::{ATTACKS, Attack, Bounds, Door};
use super::contestants::{CONTAINER_BYTES, Contestant, Ground, NAMES, Name};
use super::honest::{self, Destinations, Seen};

/// What an attack may cost for each of its connections, and in all, in MB.
const MEMORY_EACH: f64 = 32.0;
const MEMORY_IN_ALL: f64 = 256.0;
/// What an attack may cost that is judged beside HAProxy, in MB.
const MEMORY_BESIDE_HAPROXY: f64 = 64.0;
/// What honest clients may wait at the median, in milliseconds, and how many times HAProxy's where that is
/// more.
const MEDIAN: f64 = 20.0;
const TIMES_HAPROXY: f64 = 2.0;
/// How long honest clients ask before and after an attack.
const BESIDE: Duration = Duration::from_millis(100);

/// What the short form tries on every contestant.
const SHORT: [&str; 4] = ["rapid reset", "cancels, 200/s each", "slow heads", "fragments on the link's port"];

/// What one contestant's turns under one attack gave.
#[derive(Default)]
struct Turns {
    /// What the attack added to the memory, at most.
    memory: Samples,
    /// The most that was ever resident.
    peak: Samples,
    cpu: Samples,
    median: Samples,
    p99: Samples,
    lost: u32,
    asked: u32,
    why: Option<String>,
    deeds: Deeds,
}

/// What one turn cost the contestant.
struct TurnCost {
    memory: f64,
    peak: f64,
    cpu: f64,
}

impl Turns {
    fn add(&mut self, seen: Seen, cost: &TurnCost, deeds: Deeds) {
        self.memory.push(cost.memory);
        self.peak.push(cost.peak);
        self.cpu.push(cost.cpu);
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
        let mut row = Vec::new();
        for &name in &NAMES {
            let cell = format!("{}, {}", attack.name, name.text());
            if !is_asked(&cell, attack, name, options) {
                continue;
            }
            if !has_door(attack, name) {
                println!("{}", fill_without_counterpart(&mut table, attack, name));
                continue;
            }
            let turns = all_rounds(&ground, attack, name, options);
            let Some(turns) = report.unless_failed(&cell, turns) else { continue };
            println!("{}", fill(&mut table, attack, name, &turns));
            row.push((name, turns));
        }
        note_row(report, attack, &row);
    }
    report.table(table);
    Ok(())
}

fn is_asked(cell: &str, attack: &Attack, name: Name, options: &Options) -> bool {
    // The short form needs not everybody to show that attacks attack. One in a container has the least room.
    let is_in_form = !options.quick || name == Name::QueueProxyIn128 || SHORT.contains(&attack.name);
    options.includes(cell) && is_in_form
}

/// Whether the contestant has what is attacked: HAProxy has neither a link nor pages, and only a pod drains.
fn has_door(attack: &Attack, name: Name) -> bool {
    match name {
        Name::QueueProxy | Name::QueueProxyIn128 => true,
        Name::Activator => attack.door != Door::PodPages,
        Name::Haproxy => attack.door == Door::Requests,
    }
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
    let mut contestant = ground.start(name, attack.protocol)?;
    let (ports, destinations) = doors(attack, &contestant)?;
    // Once, so that what everybody needs once is not counted as the attack's.
    honest::ask(destinations, BESIDE)?;
    let (before, cpu) = (contestant.peak_memory()?, contestant.cpu_seconds()?);
    let mut attacker = attacker::start(attack, ports, time, ground.folder, &ground.cores.load)?;
    let seen = honest::ask(destinations, time)?;
    let deeds = attacker.first_line().context("the attacker")?;
    let deeds = serde_json::from_str(&deeds).context("what the attacker says")?;
    contestant.check_alive()?;
    let peak = contestant.peak_memory()?;
    let cost = TurnCost { memory: peak - before, peak, cpu: contestant.cpu_seconds()? - cpu };
    turns.add(seen, &cost, deeds);
    if name == Name::QueueProxyIn128 {
        let after = honest::ask(destinations, BESIDE)?;
        ensure!(after.lost < after.asked, "nothing is served after the attack: {:?}", after.why);
        contestant.check_alive()?;
    }
    Ok(())
}

/// The ports that are attacked, and those where honest clients ask.
fn doors(attack: &Attack, contestant: &Contestant) -> anyhow::Result<(Vec<u16>, Destinations)> {
    let requests = contestant.port();
    let (ports, pages) = match attack.door {
        Door::Requests => (vec![requests], None),
        Door::Others => (contestant.other_ports()?, None),
        Door::Pages | Door::PodPages => {
            let pages = contestant.pages()?;
            (vec![pages], Some(pages))
        }
    };
    Ok((ports, Destinations { protocol: attack.protocol, requests, pages }))
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

/// The row of a contestant that has nothing of the kind to attack.
fn fill_without_counterpart(table: &mut Table, attack: &Attack, name: Name) -> String {
    let mut row = [attack.name, name.text(), "no counterpart", "–", "–", "–", "–", "–"];
    if name == Name::Activator {
        row[2] = "no drain";
    }
    let line = row.join(" | ");
    table.row(row.map(str::to_owned));
    line
}

/// Notes what all contestants cost under one attack, and what is asked of ours.
fn note_row(report: &mut Report, attack: &Attack, row: &[(Name, Turns)]) {
    let haproxy = row.iter().find(|(name, _)| *name == Name::Haproxy);
    let haproxy = haproxy.map(|(_, turns)| turns.median.median());
    for (name, turns) in row {
        for (quantity, samples) in [
            ("MB more", &turns.memory),
            ("peak MB", &turns.peak),
            ("CPU s", &turns.cpu),
            ("honest median ms", &turns.median),
            ("honest p99 ms", &turns.p99),
            ("honest lost", &Samples(vec![turns.lost.into()])),
        ] {
            report.measured(attack.name, name.text(), quantity, samples);
        }
        let cell = format!("{}, {}", attack.name, name.text());
        match name {
            Name::Haproxy => {}
            // That it lives and serves was asked of it before.
            Name::QueueProxyIn128 => {
                let most = f64::from(CONTAINER_BYTES) / 1e6;
                report.goal(Goal::at_most(&format!("{cell}: peak MB"), turns.peak.most(), most));
            }
            Name::QueueProxy | Name::Activator => {
                let (memory, median) = limits(attack, haproxy);
                report.goal(Goal::at_most(&format!("{cell}: MB more"), turns.memory.most(), memory));
                report.goal(Goal::at_most(&format!("{cell}: lost"), turns.lost.into(), 0.0));
                report.goal(Goal::at_most(&format!("{cell}: median ms"), turns.median.median(), median));
            }
        }
    }
}

/// The most memory in MB, and the longest median in milliseconds. `haproxy` is HAProxy's median, if it took
/// part.
fn limits(attack: &Attack, haproxy: Option<f64>) -> (f64, f64) {
    match attack.bounds {
        Bounds::ByConnection => (MEMORY_IN_ALL.min(MEMORY_EACH * f64::from(attack.connections)), MEDIAN),
        Bounds::BesideHaproxy => {
            (MEMORY_BESIDE_HAPROXY, haproxy.map_or(MEDIAN, |median| MEDIAN.max(TIMES_HAPROXY * median)))
        }
    }
}
