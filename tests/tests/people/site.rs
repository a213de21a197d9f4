//! The pages become a site, each of them.

use std::path::{Path, PathBuf};

use tests::bench::executables;

use crate::programs::{printed_by, root, tool};

/// The pages of `docs/` with a heading, by their paths below it. Those without one are old paths that lead to
/// new ones, and no part of the site.
fn pages() -> Vec<PathBuf> {
    let docs = root().join("docs");
    let (mut pages, mut open) = (Vec::new(), vec![docs.clone()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let text = std::fs::read_to_string(&path).expect("a page is text");
                if text.lines().any(|line| line.starts_with("# ")) {
                    pages.push(path.strip_prefix(&docs).expect("it lies below docs").to_owned());
                }
            }
        }
    }
    pages
}

#[test]
fn each_page_with_a_heading_is_a_page_of_the_site() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = executables::cargo();
    command.args(["xtask", "site", "--output"]).arg(folder.path());
    command.arg("--mdbook").arg(tool("mdbook").get_program());
    let said = printed_by(&mut command);
    let pages = pages();
    assert!(pages.len() > 15, "{} pages are hardly all", pages.len());
    for page in &pages {
        let html = folder.path().join(on_site(page));
        assert!(html.exists(), "{} is missing\n{said}", html.display());
    }
    assert!(folder.path().join("index.html").exists(), "the site has a first page\n{said}");
}

/// mdBook calls the page README.md of a folder index.html.
fn on_site(path: &Path) -> PathBuf {
    let is_first = path.file_name().is_some_and(|name| name == "README.md");
    if is_first { path.with_file_name("index.html") } else { path.with_extension("html") }
}
