//! Rules about the code that no compiler knows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// All source files below these folders, with their text.
pub(crate) fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a source file is text");
        let name = path.strip_prefix(root()).expect("it lies below the root");
        (name.display().to_string(), text)
    };
    let mut found: Vec<(String, String)> = files_ending(folders, ".rs").into_iter().map(read).collect();
    found.sort();
    assert!(found.len() > 10, "{folders:?} hold {} files", found.len());
    found
}

/// The comment right above a line, if there is one.
fn comment_above<'t>(lines: &[&'t str], at: usize) -> Vec<&'t str> {
    lines[..at].iter().rev().map(|line| line.trim()).take_while(|line| line.starts_with("//")).collect()
}

/// `select!` drops every branch but one, wherever that stands. Whether that loses anything is the first
/// question of its reader.
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

/// What a panic in a task or thread of its own leaves behind is the first question at night. Either it is
/// vital, and the process ends loudly with an exit code of its own, or a comment says who notices.
#[test]
fn every_task_is_vital_or_says_who_notices_its_panic() {
    const STARTS: [&str; 6] =
        ["tokio::spawn(", "spawn_local(", "thread::spawn(", "spawn_blocking(", ".spawn(async", ".spawn(move"];
    let (mut silent, mut seen) = (Vec::new(), 0);
    for (name, text) in sources(&["crates"]) {
        if name.contains("/tests/") || name.ends_with("tests.rs") || name.ends_with("/vital.rs") {
            continue;
        }
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let lines: Vec<&str> = text[..end].lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.trim_start().starts_with("//") || !STARTS.iter().any(|start| line.contains(start)) {
                continue;
            }
            seen += 1;
            // What is started may stand on the next lines.
            let call = lines[at..].iter().take(3).copied().collect::<String>();
            let is_vital = ["vital(", "vital_thread(", "relied_on("].iter().any(|name| call.contains(name));
            let is_said = comment_above(&lines, at).iter().any(|line| line.contains("panic"));
            if !is_vital && !is_said {
                silent.push(format!("{name}:{}", at + 1));
            }
        }
    }
    assert!(seen > 40, "{seen} are hardly all");
    assert!(silent.is_empty(), "neither vital nor a comment about a panic:\n{}", silent.join("\n"));
}

/// A property that failed once is tried with the same input again, on every machine: the seeds stand in
/// `proptest-regressions`, beside the sources.
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

/// The files below these folders whose names end so.
pub(crate) fn files_ending(folders: &[&str], ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.display().to_string().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found
}

/// A property finds its seeds by where its source file lies: below a folder with a `lib.rs` or `main.rs`, by
/// the same path below `proptest-regressions` beside that folder. Who moves the one has to move the other.
#[test]
fn seeds_lie_where_their_property_looks_for_them() {
    const FOLDER: &str = "/proptest-regressions/";
    let (mut seen, mut orphans) = (0, Vec::new());
    for seeds in files_ending(&["crates", "tests"], ".txt") {
        let path = seeds.display().to_string();
        let Some((beside, name)) = path.split_once(FOLDER) else { continue };
        seen += 1;
        let source = Path::new(name).with_extension("rs");
        let is_tried = std::fs::read_dir(beside).expect("it holds the seeds").flatten().any(|entry| {
            let folder = entry.path();
            ["lib.rs", "main.rs"].iter().any(|root| folder.join(root).exists())
                && std::fs::read_to_string(folder.join(&source))
                    .is_ok_and(|text| text.contains("proptest! {"))
        });
        if !is_tried {
            orphans.push(path);
        }
    }
    assert!(seen > 2, "{seen} files of seeds are hardly all");
    assert!(orphans.is_empty(), "no property tries these seeds:\n{}", orphans.join("\n"));
}

/// A person who asks for a part, and measures the whole without a word, takes the numbers for that part's.
#[test]
fn every_benchmark_measures_a_part_or_says_that_it_has_none() {
    let benches = sources(&["tests/benches"]);
    let programs = benches.iter().filter(|(name, _)| name.matches('/').count() == 2);
    let (has_parts, whole): (Vec<_>, Vec<_>) =
        programs.partition(|(_, text)| text.contains("Options::read()") && text.contains("includes("));
    assert!(has_parts.len() > 7, "{} are hardly all", has_parts.len());
    for (name, text) in whole {
        let parts = format!("{}/", name.trim_end_matches(".rs"));
        let is_elsewhere =
            benches.iter().any(|(other, text)| other.starts_with(&parts) && text.contains("includes("));
        let is_refused = text.contains("Options::read_whole()") && !text.contains("Options::read()");
        assert!(is_elsewhere || is_refused, "{name} neither looks at --only nor refuses it");
    }
}

fn all_sources() -> Vec<(String, String)> {
    sources(&["crates", "tests/src", "tests/tests", "tests/benches"])
}

/// One right margin for code, which rustfmt keeps, and comments, which no tool did. Pictures, tables and
/// words that are longer by themselves may cross it.
#[test]
fn comments_keep_the_right_margin() {
    const MARGIN: usize = 110;
    let mut long = Vec::new();
    for (name, text) in all_sources() {
        let mut is_picture = false;
        for (at, line) in text.lines().enumerate() {
            let comment = line.trim_start();
            is_picture = comment.starts_with("//") && (is_picture != comment.contains("```"));
            let is_table = comment.starts_with("/// |") || comment.starts_with("//! |");
            if comment.starts_with("//")
                && !is_table
                && !is_picture
                && line.chars().count() > MARGIN
                && comment.matches(' ').count() > 1
            {
                long.push(format!("{name}:{}", at + 1));
            }
        }
    }
    assert!(long.is_empty(), "longer than {MARGIN} columns:\n{}", long.join("\n"));
}

/// Words that look like participles and are nouns of the field, or of English.
const NOUNS: [&str; 8] = ["Embed", "Greeting", "Need", "Reading", "Ring", "Routing", "Spelling", "Standing"];

/// A type is a thing. A bare participle or verb (`Held`, `Said`, `Asking`) tells a mood:
/// whose, and of what?
#[test]
fn no_type_is_a_bare_participle() {
    const IRREGULAR: [&str; 16] = [
        "Begun",
        "Bound",
        "Broken",
        "Found",
        "Gone",
        "Held",
        "Kept",
        "Known",
        "Left",
        "Overdrawn",
        "Said",
        "Seen",
        "Sent",
        "Spent",
        "Taken",
        "Woken",
    ];
    const VERBS_AND_ADVERBS: [&str; 17] = [
        "After",
        "Afterwards",
        "Announce",
        "Direct",
        "Hold",
        "How",
        "Lossy",
        "Next",
        "Now",
        "Reach",
        "Remains",
        "CountChange",
        "Start",
        "Stop",
        "Unhealthy",
        "Wake",
        "Wish",
    ];
    const WITHOUT_MEANING: [&str; 3] = ["Helper", "Manager", "Util"];
    let mut moods = Vec::new();
    for (name, text) in all_sources() {
        for type_name in text.lines().filter_map(|line| type_in(line, &["struct", "enum", "trait"])) {
            let is_one_word = type_name.chars().filter(char::is_ascii_uppercase).count() == 1;
            let is_participle = type_name.ends_with("ed") || type_name.ends_with("ing");
            let is_mood = is_participle
                || [&IRREGULAR[..], &VERBS_AND_ADVERBS[..]].iter().any(|words| words.contains(&type_name));
            let is_empty = WITHOUT_MEANING.iter().any(|word| type_name.ends_with(word));
            if (is_one_word && is_mood || is_empty)
                && !NOUNS.contains(&type_name)
                && !name.contains("/tests")
                && !name.starts_with("tests/")
            {
                moods.push(format!("{name}: {type_name}"));
            }
        }
    }
    assert!(moods.is_empty(), "what things are these?\n{}", moods.join("\n"));
}

/// The name of the type that a line declares with one of these keywords.
fn type_in<'l>(line: &'l str, keywords: &[&str]) -> Option<&'l str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    words.next().filter(|word| keywords.contains(word))?;
    words.next()?.split(|letter: char| !letter.is_alphanumeric()).next()
}

/// One name means one thing: who searches the workspace for a type finds it, and not its namesakes. The types
/// of the wire are the mirror of ours, by the same names on purpose; tests may call theirs as they like.
#[test]
fn no_two_types_have_one_name() {
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, text) in all_sources() {
        let is_test = ["tests/", "/tests.rs", "/vectors.rs"].iter().any(|part| name.contains(part));
        if is_test || name.ends_with("/wire/proto.rs") {
            continue;
        }
        // What stands behind this is a file's tests, in whole or in part.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        // What is indented is a trait's or an implementation's associated type.
        for line in code.lines().filter(|line| !line.starts_with(' ')) {
            if let Some(type_name) = type_in(line, &["struct", "enum", "trait", "type"]) {
                homes.entry(type_name.to_owned()).or_default().insert(name.clone());
            }
        }
    }
    assert!(homes.len() > 500, "{} types are hardly all", homes.len());
    homes.retain(|_, files| files.len() > 1);
    assert!(homes.is_empty(), "which of them is meant?\n{homes:#?}");
}

/// No crate has tests of its documentation (`doctest = false`): an example there would be read and never run.
#[test]
fn documentation_shows_pictures_and_no_examples() {
    let mut examples = Vec::new();
    for (name, text) in sources(&["crates", "tests/src"]) {
        let mut is_open = false;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let words = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).unwrap_or_default();
            if let Some(language) = words.trim_start().strip_prefix("```") {
                if !is_open && language != "text" {
                    examples.push(format!("{name}:{}", at + 1));
                }
                is_open = !is_open;
            }
        }
    }
    assert!(examples.is_empty(), "mark these as text, or test them:\n{}", examples.join("\n"));
}
