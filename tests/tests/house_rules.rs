//! Rules about the code that no compiler knows.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// All source files below these folders, with their text.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file is text");
                let name = path.strip_prefix(root()).expect("it lies below the root");
                found.push((name.display().to_string(), text));
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "{folders:?} hold {} files", found.len());
    found
}

/// The comment right above a line, if there is one.
fn comment_above<'t>(lines: &[&'t str], at: usize) -> Vec<&'t str> {
    lines[..at].iter().rev().map(|line| line.trim()).take_while(|line| line.starts_with("//")).collect()
}

/// `select!` drops every branch but one, wherever that stands. Whether that loses anything is the first question of whoever reads it.
#[test]
fn every_select_says_why_its_branches_may_be_cancelled() {
    let (mut silent, mut seen) = (Vec::new(), 0);
    for (name, text) in sources(&["crates", "tests/src"]) {
        if name.contains("/tests/") || name.ends_with("tests.rs") {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        // The tests of a file stand at its end, in a module with a body.
        let end = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1] == "mod tests {");
        for (at, line) in lines[..end.unwrap_or(lines.len())].iter().enumerate() {
            if !line.contains("select! {") {
                continue;
            }
            seen += 1;
            let said = comment_above(&lines, at);
            let words = ["ancel", "may go on", "goes on", "stays", "only waited"];
            if !said.iter().any(|line| words.iter().any(|word| line.contains(word))) {
                silent.push(format!("{name}:{}", at + 1));
            }
        }
    }
    assert!(seen > 40, "{seen} are hardly all");
    assert!(silent.is_empty(), "no comment right above says what is cancelled there:\n{}", silent.join("\n"));
}

/// A property that failed once is tried with the same input again, on every machine: the seeds stand in `proptest-regressions`, beside the sources.
#[test]
fn seeds_of_failed_properties_are_kept() {
    let mut seen = 0;
    for (name, text) in sources(&["crates", "tests/src", "tests/tests"]) {
        if name.ends_with("house_rules.rs") {
            continue;
        }
        seen += usize::from(text.contains("proptest! {"));
        assert!(!text.contains("failure_persistence: None"), "{name} forgets the seeds of its failures");
    }
    assert!(seen > 15, "{seen} files with properties are hardly all");
    let ignored = std::fs::read_to_string(root().join(".gitignore")).expect("there is one");
    assert!(!ignored.contains("proptest"), "seeds that are ignored are kept by nobody");
}
