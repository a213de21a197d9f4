//! What people read: each link of the documents leads to a page and a heading that exist, each page that a
//! message or a comment names is there, and the index finds the questions that people ask.

use std::collections::{BTreeMap, BTreeSet};

use crate::house_rules::{files_ending, root, sources};

/// A page whose contents have moved begins so, and says in its one line where they are now.
const POINTER: &str = "Moved to ";

const README: &str = include_str!("../../../README.md");

const INDEX: &str = include_str!("../../../docs/README.md");

/// A longer first page is read by no newcomer: what goes further stands in the documents.
const README_LINES_MAX: usize = 90;

/// Questions that people ask, by the words of which a link of the index has all.
const QUESTIONS: [&[&str]; 20] = [
    &["keep", "one", "pod", "warm"],
    &["scale", "cpu", "requests"],
    &["limit", "concurrency"],
    &["several", "windows", "one", "service"],
    &["behind", "nginx", "caddy", "load balancer", "tls"],
    &["systemd", "upgrade", "without a lost request"],
    &["run", "container", "images"],
    &["own", "host", "names"],
    &["logs", "metrics", "traces", "latency percentiles", "promql"],
    &["find out why"],
    &["what happens to requests in flight", "deploy"],
    &["move", "knative"],
    &["move", "keda"],
    &["move", "hpa"],
    &["gitops"],
    &["networkpolicies"],
    &["default", "target", "utilisation"],
    &["why did it scale to 5"],
    &["what is different from knative"],
    &["how big can it get"],
];

/// The text of each document, by its path from the root.
pub(crate) fn documents() -> BTreeMap<String, String> {
    let files = files_ending(&["docs", "tests/cluster"], ".md");
    let others = [root().join("README.md"), root().join("tests/flaky.md")];
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a document is text");
        (path.strip_prefix(root()).expect("it lies below the root").display().to_string(), text)
    };
    let documents: BTreeMap<String, String> = files.into_iter().chain(others).map(read).collect();
    assert!(documents.len() > 30, "{} documents are hardly all", documents.len());
    documents
}

fn is_pointer(text: &str) -> bool {
    text.starts_with(POINTER)
}

/// The lines of a document outside of its examples between fences, each with its number from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_example = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_example ^= is_fence;
        (!is_fence && !is_example).then_some((at + 1, line))
    })
}

/// The words and the target of each link of a line. Brackets between grave accents make none.
fn links(line: &str) -> Vec<(String, String)> {
    let plain: String = line.split('`').step_by(2).collect();
    let middles = plain.match_indices("](");
    let words_and_target = |(at, middle): (usize, &str)| {
        let target = plain[at + middle.len()..].split(')').next()?;
        let words = plain[..at].rsplit('[').next()?;
        Some((words.to_owned(), target.to_owned()))
    };
    middles.filter_map(words_and_target).collect()
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    let letters = heading.trim().chars().filter(is_kept).flat_map(char::to_lowercase);
    letters.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The anchors of all headings of a page. The second heading of a name has `-1` behind it.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let rest = line.trim_start_matches('#');
        rest.strip_prefix(' ').filter(|_| (1..=6).contains(&(line.len() - rest.len())))
    });
    let anchor_of = |heading: &str| {
        let slug = slug(heading);
        let count = seen.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    };
    headings.map(anchor_of).collect()
}

/// The path from the root that a link of this document names.
fn resolved(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// What is wrong with a link of a document, if anything is.
fn fault(documents: &BTreeMap<String, String>, document: &str, target: &str) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let page = if path.is_empty() { document.to_owned() } else { resolved(document, path) };
    let Some(text) = documents.get(&page) else {
        return (!root().join(&page).exists()).then_some("leads to no file");
    };
    if is_pointer(text) {
        return Some("leads to a page that has moved");
    }
    (!anchor.is_empty() && !anchors(text).contains(anchor)).then_some("names no heading of its page")
}

#[test]
fn every_link_of_the_documents_leads_to_a_page_and_a_heading() {
    let documents = documents();
    let (mut faults, mut seen) = (Vec::new(), 0);
    for (name, text) in &documents {
        for (number, line) in prose(text) {
            for (_, target) in links(line).into_iter().filter(|(_, target)| !target.contains("://")) {
                seen += 1;
                if let Some(fault) = fault(&documents, name, &target) {
                    faults.push(format!("{name}:{number}: {target} {fault}"));
                }
            }
        }
    }
    assert!(seen > 200, "{seen} links are hardly all");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The pages below `docs/` that a text names, as messages and comments do.
fn pages_named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(move |(at, _)| {
        let rest = &text[at..];
        let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
        let end = rest.find(|letter: char| !is_of_path(letter)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches('.');
        path.strip_suffix(".md").map(|_| path)
    })
}

#[test]
fn every_page_that_sources_and_manifests_name_is_there() {
    let documents = documents();
    let mut texts = sources(&["crates", "tests/src"]);
    let others = [files_ending(&["deploy", "config"], ".yaml"), files_ending(&["deploy", "config"], ".json")];
    for path in others.into_iter().flatten().chain(files_ending(&["crates/ebb"], ".html")) {
        let text = std::fs::read_to_string(&path).expect("it is text");
        texts.push((path.display().to_string(), text));
    }
    let (mut faults, mut seen) = (Vec::new(), 0);
    for (name, text) in &texts {
        for page in pages_named(text) {
            seen += 1;
            if documents.get(page).is_none_or(|text| is_pointer(text)) {
                faults.push(format!("{name}: {page}"));
            }
        }
    }
    assert!(seen > 30, "{seen} names are hardly all");
    assert!(faults.is_empty(), "these pages are not there, or have moved:\n{}", faults.join("\n"));
}

#[test]
fn the_index_finds_each_question_by_its_words() {
    let all = prose(INDEX).flat_map(|(_, line)| links(line));
    let links: Vec<String> = all.map(|(words, _)| words.to_lowercase()).collect();
    for question in QUESTIONS {
        let is_found = links.iter().any(|link| question.iter().all(|word| link.contains(word)));
        assert!(is_found, "no link of docs/README.md has all of {question:?}");
    }
}

#[test]
fn the_index_leads_to_every_page() {
    let all = prose(INDEX).flat_map(|(_, line)| links(line));
    let linked: BTreeSet<String> = all
        .map(|(_, target)| resolved("docs/README.md", target.split('#').next().unwrap_or_default()))
        .collect();
    let documents = documents();
    let pages = documents.iter().filter(|(name, text)| name.starts_with("docs/") && !is_pointer(text));
    let missing: Vec<&String> = pages
        .map(|(name, _)| name)
        .filter(|name| *name != "docs/README.md" && !linked.contains(*name))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not lead to {missing:?}");
}

#[test]
fn the_first_page_is_short_and_leads_to_the_index() {
    let lines = README.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines, and may have {README_LINES_MAX}");
    let mut all = prose(README).flat_map(|(_, line)| links(line));
    assert!(all.any(|(_, target)| target == "docs/README.md"));
}

#[test]
fn every_event_has_a_row_in_the_reference() {
    const NOTICES: &str = include_str!("../../../crates/cluster/src/notice.rs");
    const CODES: &str = include_str!("../../../crates/orchestration/src/orders.rs");
    const EVENTS: &str = include_str!("../../../docs/reference/events.md");
    let notices = NOTICES.lines().filter_map(|line| line.split_once(": &str = \"")?.1.strip_suffix("\";"));
    let codes = CODES.lines().filter_map(|line| line.split_once(" => \"")?.1.strip_suffix("\","));
    let rows: Vec<&str> = EVENTS.lines().filter(|line| line.starts_with("| `")).collect();
    let mut seen = 0;
    for word in notices.chain(codes) {
        seen += 1;
        let word = format!("`{word}`");
        assert!(rows.iter().any(|row| row.contains(&word)), "docs/reference/events.md has no row of {word}");
    }
    assert!(seen > 20, "{seen} events are hardly all");
}

/// Whether a text is written as names of variables of an environment are, with at least two words.
fn is_variable(text: &str) -> bool {
    let is_kept = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let is_name = text.chars().all(is_kept) && !text.ends_with('_');
    is_name && text.contains('_') && text.starts_with(|letter: char| letter.is_ascii_uppercase())
}

#[test]
fn every_variable_that_a_program_reads_stands_in_the_reference() {
    const ENVIRONMENT: &str = include_str!("../../../docs/reference/environment.md");
    const READERS: [&str; 5] = [
        "crates/activator/src/program.rs",
        "crates/control-plane/src/config.rs",
        "crates/control-plane/src/injector/config.rs",
        "crates/queue-proxy/src/config.rs",
        "crates/queue-proxy/src/config/reading.rs",
    ];
    let mut seen = 0;
    for reader in READERS {
        let text = std::fs::read_to_string(root().join(reader)).expect("it reads an environment");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for variable in code.split('"').skip(1).step_by(2).filter(|text| is_variable(text)) {
            seen += 1;
            let shown = format!("`{variable}`");
            assert!(ENVIRONMENT.contains(&shown), "docs/reference/environment.md has no {shown} of {reader}");
        }
    }
    assert!(seen > 60, "{seen} variables are hardly all");
}

#[test]
fn anchors_are_those_of_the_web_pages() {
    let text = "# The API of `ebb up`\n\n## Signals\n```sh\n# no heading\n```\n## Signals\n#also none\n";
    let expected = ["signals", "signals-1", "the-api-of-ebb-up"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(slug("What differs from Kubernetes, and why"), "what-differs-from-kubernetes-and-why");
    assert_eq!(slug("The queue-proxy's environment"), "the-queue-proxys-environment");
}

#[test]
fn links_are_those_outside_of_code() {
    let found = links("[a](b.md#c), `[no](x)` and [the `up` page](../d.md)");
    let expected = [("a", "b.md#c"), ("the  page", "../d.md")];
    assert_eq!(found, expected.map(|(words, target)| (words.to_owned(), target.to_owned())));
    assert_eq!(resolved("pages/tasks/a.md", "../reference/b.md"), "pages/reference/b.md");
    assert_eq!(resolved("README.md", "pages/a.md"), "pages/a.md");
}
