//! A link of a page leads to a file that is there, and to a heading in it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::programs::root;

/// A page of the documentation.
pub(crate) struct DocumentPage {
    /// The path below the folder of the workspace.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All pages below `docs/`, and the README.
pub(crate) fn pages() -> Vec<DocumentPage> {
    let mut paths = vec![root().join("README.md")];
    let mut open = vec![root().join("docs")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a page is text");
        let path = path.strip_prefix(root()).expect("it lies below the root").to_owned();
        DocumentPage { path, text }
    };
    paths.into_iter().map(read).collect()
}

/// The lines of a page that are no block of code, with inline code as it stands.
fn prose(text: &str) -> Vec<&str> {
    let (mut is_code, mut lines) = (false, Vec::new());
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_code && !is_fence {
            lines.push(line);
        }
        is_code = is_code != is_fence;
    }
    lines
}

/// The targets of the links of a page, without those to other hosts.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text).join("\n");
    let targets = prose.split("](").skip(1).filter_map(|part| part.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains(':') && !target.contains(' ')).map(str::to_owned).collect()
}

/// The names of a page's headings in links, as GitHub and mdBook make them: lower case, words with dashes
/// between them, and no other punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in prose(text).into_iter().filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim();
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
        let name: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        // A second heading of one name gets a number.
        let mut number = 0;
        let mut unique = name.clone();
        while !names.insert(unique) {
            number += 1;
            unique = format!("{name}-{number}");
        }
    }
    names
}

fn joined(folder: &Path, target: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let (pages, mut seen, mut broken) = (pages(), 0, Vec::new());
    for page in &pages {
        for target in targets(&page.text) {
            seen += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let folder = page.path.parent().unwrap_or(Path::new(""));
            let path = if file.is_empty() { page.path.clone() } else { joined(folder, file) };
            let is_heading = || {
                let text = pages.iter().find(|other| other.path == path).map(|other| &other.text);
                text.is_some_and(|text| anchors(text).contains(heading))
            };
            if !root().join(&path).exists() || !heading.is_empty() && !is_heading() {
                broken.push(format!("{}: {target}", page.path.display()));
            }
        }
    }
    assert!(seen > 100, "{seen} links are hardly all");
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn headings_are_named_as_links_name_them() {
    let text = "# A `ebb up`, and more\n```text\n# no heading\n```\n## B\n## B\n[a](b.md#c) [d](https://e) [f]( g)\n";
    let expected = ["a-ebb-up-and-more", "b", "b-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(targets(text), ["b.md#c"]);
    assert_eq!(joined(Path::new("docs/tasks"), "../start/./x.md"), Path::new("docs/start/x.md"));
}
