//! The map of the crates that people read, `docs/design/architecture.md`, says what the table of the compiled
//! rules says.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{EVERYTHING, MAY_USE};

const MAP: &str = include_str!("../../../docs/design/architecture.md");

/// A longer map is a manual: explanations stand in the documents beside the map.
const LINES_MAX: usize = 120;

/// Stands in the place of a list for crates that may use all of the product on one machine.
const WHOLE_PRODUCT: &str = "the whole product but `platform-kubernetes`, `cluster` and `control-plane`";

#[test]
fn the_map_names_each_crate_with_the_crates_that_it_may_use() {
    let shown: BTreeMap<&str, BTreeSet<&str>> = rows_of_crates(MAP).collect();
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        MAY_USE.iter().map(|(name, used)| (*name, used.iter().copied().collect())).collect();
    assert_eq!(shown, allowed, "the map is on the left, `MAY_USE` of architecture.rs on the right");
}

#[test]
fn the_map_is_short() {
    let lines = MAP.lines().count();
    assert!(lines <= LINES_MAX, "docs/design/architecture.md has {lines} lines, and may have {LINES_MAX}");
}

/// The name of each crate in the map's table, with the crates that its row allows.
fn rows_of_crates(map: &str) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
    let table = map.split("\n## ").find(|part| part.starts_with("The crates\n"));
    let rows = table.expect("the map has a table of crates").lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _question, used] = cells[..] else { panic!("a row has three cells: {row}") };
        let used: BTreeSet<&str> =
            if used == WHOLE_PRODUCT { EVERYTHING.iter().copied().collect() } else { code_words(used) };
        (name.trim_matches('`'), used)
    })
}

/// The words of a text that stand between grave accents.
fn code_words(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
