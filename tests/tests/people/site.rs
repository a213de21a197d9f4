//! The pages become a site, each of them.

use std::path::{Path, PathBuf};

use tests::bench::executables;

use crate::links::pages;
use crate::programs::{printed_by, tool};

#[test]
fn each_page_with_a_heading_is_a_page_of_the_site() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = executables::cargo();
    command.args(["xtask", "site", "--output"]).arg(folder.path());
    command.arg("--mdbook").arg(tool("mdbook").get_program());
    let said = printed_by(&mut command);
    let mut seen = 0;
    for page in pages().iter().filter(|page| page.text.lines().any(|line| line.starts_with("# "))) {
        let Ok(path) = page.path.strip_prefix("docs") else { continue };
        seen += 1;
        let html = folder.path().join(on_site(path));
        assert!(html.exists(), "{} is missing\n{said}", html.display());
    }
    assert!(seen > 15, "{seen} pages are hardly all");
    assert!(folder.path().join("index.html").exists(), "the site has a first page\n{said}");
}

/// mdBook calls the page README.md of a folder index.html.
fn on_site(path: &Path) -> PathBuf {
    let is_first = path.file_name().is_some_and(|name| name == "README.md");
    if is_first { path.with_file_name("index.html") } else { path.with_extension("html") }
}
