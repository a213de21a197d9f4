//! What one request costs: the difference of a long and a short run, each as often as there are rounds.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::profile::{Profile, ProfiledFunction};
use crate::bench::statistics::Samples;

/// Profiles of runs that did the same few times and many times.
#[derive(Debug)]
pub struct RunPairs {
    /// How many requests more the long runs had.
    pub more: u32,
    /// One run for each round, in the order of the rounds.
    pub short: Vec<Profile>,
    /// As many runs with more requests.
    pub long: Vec<Profile>,
}

/// What one request costs in user space.
#[derive(Clone, Debug)]
pub struct RequestCost {
    /// All instructions in user space.
    pub instructions: f64,
    /// Those of `memcpy` and `memmove`.
    pub copying: f64,
    /// How often an allocator was asked for memory.
    pub allocations: f64,
    /// The instructions of each round by itself, which tell how much the counts differ.
    pub rounds: Samples,
    /// Instructions of each function, the most expensive first.
    functions: Vec<FunctionCost>,
}

/// The instructions of one function for each request.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCost {
    /// The function, without those that it calls.
    pub function: ProfiledFunction,
    /// Instructions for each request; below zero if the short run had more of them.
    pub instructions: f64,
}

/// A crate, with those of its functions that are among the most expensive ones of all.
#[derive(Clone, Debug, PartialEq)]
pub struct CrateCost {
    /// The crate, or the library.
    pub name: String,
    /// Instructions of all its functions for each request.
    pub instructions: f64,
    /// Those of the most expensive functions that are its own.
    pub functions: Vec<FunctionCost>,
}

impl RunPairs {
    /// The cost of one request: the difference of the least long and the least short run. Whatever disturbs
    /// a run (a timer that fires, a poll more) adds to it, so the least is the least disturbed one of its
    /// length; the least *difference* would be that of a disturbed short run.
    pub fn cost(&self) -> anyhow::Result<RequestCost> {
        ensure!(self.short.len() == self.long.len(), "each round has a short run and a long one");
        let least = |runs: &[Profile]| runs.iter().min_by_key(|run| run.total()).cloned();
        let short = least(&self.short).context("no run was made")?;
        let long = least(&self.long).context("no run was made")?;
        ensure!(
            long.instructions.keys().any(|function| function.name.contains("::")),
            "the profile names no function of Rust: is the executable stripped of its symbols?"
        );
        let functions = self.by_function(&short, &long);
        let copying = functions.iter().filter(|cost| cost.function.copies_memory());
        let allocations = self.each(allocations(&short), allocations(&long));
        let pairs = self.short.iter().zip(&self.long);
        let rounds = pairs.map(|(short, long)| self.each(short.total(), long.total()));
        Ok(RequestCost {
            instructions: self.each(short.total(), long.total()),
            copying: copying.map(|cost| cost.instructions).sum(),
            allocations,
            rounds: Samples(rounds.collect()),
            functions,
        })
    }

    fn by_function(&self, short: &Profile, long: &Profile) -> Vec<FunctionCost> {
        let mut both: BTreeMap<&ProfiledFunction, (u64, u64)> = BTreeMap::new();
        for (function, count) in &short.instructions {
            both.entry(function).or_default().0 = *count;
        }
        for (function, count) in &long.instructions {
            both.entry(function).or_default().1 = *count;
        }
        let mut functions: Vec<FunctionCost> = both
            .into_iter()
            .map(|(function, (short, long))| FunctionCost {
                function: function.clone(),
                instructions: self.each(short, long),
            })
            .collect();
        functions.sort_by(|one, other| other.instructions.total_cmp(&one.instructions));
        functions
    }

    /// The part of one request in what two runs differ by.
    fn each(&self, short: u64, long: u64) -> f64 {
        (exact(long) - exact(short)) / f64::from(self.more)
    }
}

#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 instructions: that would take years")]
fn exact(count: u64) -> f64 {
    count as f64
}

fn allocations(run: &Profile) -> u64 {
    run.calls.iter().filter(|(call, _)| call.asks_for_memory()).map(|(_, times)| times).sum()
}

impl RequestCost {
    /// The `count` most expensive functions by crate, the most expensive crate first.
    pub fn most_expensive(&self, count: usize) -> Vec<CrateCost> {
        let mut crates: BTreeMap<&str, CrateCost> = BTreeMap::new();
        for (place, cost) in self.functions.iter().enumerate() {
            let name = cost.function.crate_name();
            let known = crates.entry(name).or_insert_with(|| CrateCost {
                name: name.to_owned(),
                instructions: 0.0,
                functions: Vec::new(),
            });
            known.instructions += cost.instructions;
            if place < count {
                known.functions.push(cost.clone());
            }
        }
        let mut shown: Vec<CrateCost> =
            crates.into_values().filter(|known| !known.functions.is_empty()).collect();
        shown.sort_by(|one, other| other.instructions.total_cmp(&one.instructions));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: u32 = 100;

    /// A run of so many requests. Its start costs 5,000 instructions, and something disturbs it.
    fn run(requests: u64, disturbance: u64) -> Profile {
        let text = format!(
            "events: Ir\nob=ebb\nfn=(1) main\n1 {}\nfn=(2) dataplane::serve\n1 {}\n\
             cfn=(3) mi_malloc\ncalls={} 1\n1 9\n\
             fn=(4) dataplane::read\n1 {}\nfn=(3)\n1 {}\nob=libc.so.6\nfn=(5) memcpy\n1 {}\ntotals: {}\n",
            5_000 + disturbance,
            requests * 70,
            requests * 2,
            requests * 30,
            requests * 20,
            requests * 40,
            5_000 + disturbance + requests * 160,
        );
        Profile::read(&text).unwrap()
    }

    fn pairs(short: [u64; 2], long: [u64; 2]) -> RunPairs {
        RunPairs {
            more: REQUESTS,
            short: short.map(|disturbance| run(50, disturbance)).into(),
            long: long.map(|disturbance| run(150, disturbance)).into(),
        }
    }

    #[test]
    fn start_and_end_go_in_the_difference() {
        let cost = pairs([0, 0], [0, 0]).cost().unwrap();
        assert_eq!((cost.instructions, cost.copying, cost.allocations), (160.0, 40.0, 2.0));
    }

    #[test]
    fn the_least_run_of_each_length_counts() {
        let cost = pairs([700, 0], [300, 0]).cost().unwrap();
        assert_eq!(cost.instructions, 160.0);
        assert_eq!(cost.rounds.0, [156.0, 160.0]);
    }

    #[test]
    fn functions_are_grouped_by_crate_and_crates_have_all_their_cost() {
        let cost = pairs([0, 0], [0, 0]).cost().unwrap();
        let shown = cost.most_expensive(2);
        let names: Vec<&str> = shown.iter().map(|known| known.name.as_str()).collect();
        assert_eq!(names, ["dataplane", "libc.so.6"]);
        assert_eq!(shown[0].instructions, 100.0, "its second function is not shown and counts");
        assert_eq!(shown[0].functions.len(), 1);
        assert_eq!(shown[1].functions[0].function.name, "memcpy");
    }

    #[test]
    fn runs_that_cannot_be_compared_are_refused() {
        let mut unpaired = pairs([0, 0], [0, 0]);
        unpaired.long.pop();
        assert!(unpaired.cost().unwrap_err().to_string().contains("a short run and a long one"));
        let none = RunPairs { more: REQUESTS, short: Vec::new(), long: Vec::new() };
        assert!(none.cost().unwrap_err().to_string().contains("no run was made"));
        let stripped = Profile::read("events: Ir\nfn=0x1230\n1 5\ntotals: 5\n").unwrap();
        let stripped = RunPairs { more: REQUESTS, short: vec![stripped.clone()], long: vec![stripped] };
        assert!(stripped.cost().unwrap_err().to_string().contains("stripped of its symbols"));
    }
}
