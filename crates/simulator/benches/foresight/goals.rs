//! What must hold of the tables.

use crate::contestant::Contestant;
use crate::figures::{self, Figure};
use crate::warm_table::{WarmShares, WarmTable};

/// Prints the goals of warm revisions. Returns whether all are met.
pub(crate) fn print_warm(tables: &[WarmTable]) -> bool {
    let goals = tables.iter().flat_map(goals_of);
    let ways = tables.iter().flat_map(|table| [contestants(table), choices(table)].into_iter().flatten());
    print(&goals.chain(ways).collect::<Vec<_>>())
}

/// Prints whether the budget was kept for each series.
pub(crate) fn print_budget(table: &WarmTable) -> bool {
    let budget = 1.0 + f64::from(table.setting.budget) / 100.0;
    let shares = table.shares(Contestant::Ahpa).unwrap_or_default();
    print(&[Figure::at_most("pod-hours, each", shares.pods_most(), budget)])
}

/// Prints goals of sparse revisions: cold starts and pod-minutes as parts of those of class kpa.
pub(crate) fn print_sparse(worth: &str, group: &str, found: [f64; 2], most: [f64; 2]) -> bool {
    let goals = ["cold starts", "pod-minutes"].iter().zip(found.into_iter().zip(most));
    let figure = |(name, (found, most)): (&&str, (f64, f64))| {
        Figure::at_most(&format!("{group}, cold-start-worth {worth}: {name}"), found, most)
    };
    print(&goals.map(figure).collect::<Vec<_>>())
}

fn goals_of(table: &WarmTable) -> Vec<Figure> {
    let Some(shares) = table.shares(Contestant::Ahpa) else { return Vec::new() };
    let setting = &table.setting;
    let goal = |what: &str, found: f64, most: f64| {
        Figure::at_most(&format!("{}: {what}", setting.name()), found, most)
    };
    let late = |most: f64| goal("late demand, median", shares.late_median(), most);
    match (setting.start_up, setting.budget, setting.peak) {
        (180, 10, 20) => vec![
            late(0.35),
            goal("late demand, of the sum", shares.late_of_sum(), 0.5),
            goal("pod-hours, mean", shares.pods_mean(), 1.05),
            goal("pod-hours, each", shares.pods_most(), 1.10),
            goal("pod-hours without a period, each", shares.pods_most_without_period(), 1.08),
        ],
        (60, ..) => vec![late(0.6)],
        (_, 3, _) => vec![late(0.7), goal("pod-hours, each", shares.pods_most(), 1.03)],
        _ => vec![late(0.5)],
    }
}

fn print(figures: &[Figure]) -> bool {
    for Figure { goal, found, is_met, .. } in figures {
        println!("{}: {goal} {found}", if *is_met { "met" } else { "NOT MET" });
    }
    // The short form shows that the benchmark works, and series that were generated are no promise.
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    if !is_quick && std::env::var_os("EBB_TRACES").is_some() {
        figures::keep("simulator", "foresight", figures);
    }
    figures.iter().all(|figure| figure.is_met)
}

/// A rule that is chosen each midnight is not both less late and cheaper than one that is chosen each hour;
/// `None` where they were not compared.
fn choices(table: &WarmTable) -> Option<Figure> {
    let sums = |contestant: Contestant| {
        table.shares(contestant).map(|shares| [shares.late_of_sum(), shares.pods_mean()])
    };
    let (hour, midnight) = (sums(Contestant::EachHour)?, sums(Contestant::EachMidnight)?);
    Some(Figure {
        goal: format!("{}: rules of each midnight are not less late and cheaper", table.setting.name()),
        found: format!("late and pod-hours {midnight:.3?}, of each hour {hour:.3?}"),
        at_most: None,
        is_met: midnight[0] >= hour[0] || midnight[1] >= hour[1],
    })
}

/// No contestant but the oracle is both less late and cheaper than class ahpa.
fn contestants(table: &WarmTable) -> Option<Figure> {
    let medians = |shares: &WarmShares| [shares.late_median(), shares.pods_median()];
    let [late, pods] = table.shares(Contestant::Ahpa).as_ref().map(medians)?;
    let better = |contestant: &&Contestant| {
        let is_judged = match contestant {
            // The first three are this class, as a whole and in part; the last one knows what will be.
            Contestant::Ahpa | Contestant::EachHour | Contestant::EachMidnight | Contestant::Oracle => false,
            Contestant::Kpa
            | Contestant::Yesterday
            | Contestant::SevenDays
            | Contestant::LastSlope
            | Contestant::Mstl
            | Contestant::FixedMinScale => true,
        };
        let found = table.shares(**contestant).as_ref().map(medians);
        is_judged && found.is_some_and(|[other_late, other_pods]| other_late < late && other_pods < pods)
    };
    let better: Vec<&str> =
        table.setting.contestants.iter().filter(better).map(|contestant| contestant.name()).collect();
    Some(Figure {
        goal: format!("{}: no contestant is less late and cheaper", table.setting.name()),
        found: if better.is_empty() { "none is".to_owned() } else { better.join(", ") },
        at_most: None,
        is_met: better.is_empty(),
    })
}
