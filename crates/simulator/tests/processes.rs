//! The same seeds in two processes give the same hashes: no address, order of a map or clock decides
//! anything.

use std::process::Command;

use simulator::{WorldPlan, try_world};

const SEEDS: std::ops::Range<u64> = 100..104;
/// Before the hashes in what a process prints.
const MARK: &str = "hashes of worlds:";

fn hashes() -> String {
    let hashes: Vec<String> =
        SEEDS.map(|seed| format!("{:016x}", try_world(&WorldPlan::of_seed(seed), None).hash)).collect();
    format!("{MARK} {}", hashes.join(" "))
}

/// Run by itself the test prints what the other test compares.
#[test]
fn hashes_are_printed_for_another_process() {
    println!("{}", hashes());
}

#[test]
fn the_same_seeds_in_two_processes_give_the_same_hashes() {
    let program = std::env::current_exe().expect("a test has an executable");
    let output = Command::new(program)
        .args(["--exact", "hashes_are_printed_for_another_process", "--nocapture"])
        .output()
        .expect("a test can start its own executable");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = printed.lines().find_map(|line| line.find(MARK).map(|from| &line[from..]));
    assert_eq!(line, Some(hashes().as_str()), "{printed}");
}
