//! Which pages are there, and in which order does a reader meet them? By folder: begin, do, look up, run,
//! understand; then the pages about the project.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;

/// The folders in the order of the site, with their titles. The last one is `docs/` itself.
const FOLDERS: [(&str, &str); 6] = [
    ("start", "Start"),
    ("tasks", "Tasks"),
    ("reference", "Reference"),
    ("operate", "Operate"),
    ("design", "Design"),
    ("", "The project"),
];
/// The page with which the site begins.
const FIRST: &str = "README.md";

/// A page of the site.
pub(super) struct SitePage {
    /// The path below `docs/`, such as `tasks/images.md`.
    pub(super) path: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// The pages with a heading, in the order of the site.
pub(super) fn of_folder(docs: &Path) -> anyhow::Result<Vec<SitePage>> {
    let mut pages = Vec::new();
    for (folder, _) in FOLDERS {
        let path = docs.join(folder);
        if !path.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<std::io::Result<Vec<String>>>()?;
        names.sort();
        for name in
            names.iter().filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        {
            let file = path.join(name);
            let text =
                std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            pages.extend(title(&text).map(|title| SitePage { path, title, text }));
        }
    }
    Ok(pages)
}

fn title(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("# ")).map(|title| title.trim().to_owned())
}

/// The list of pages, as mdBook reads it.
pub(super) fn summary(pages: &[SitePage]) -> String {
    let mut text = "# Summary\n".to_owned();
    // A string takes whatever is written to it.
    for page in pages.iter().filter(|page| page.path == FIRST) {
        let _ = writeln!(text, "\n[{}]({})", page.title, page.path);
    }
    for (folder, name) in FOLDERS {
        let _ = writeln!(text, "\n# {name}\n");
        for page in pages.iter().filter(|page| page.path != FIRST && folder_of(&page.path) == folder) {
            let _ = writeln!(text, "- [{}]({})", page.title, page.path);
        }
    }
    text
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_listed_by_their_folders_and_old_paths_are_not() {
        let docs = tempfile::tempdir().expect("a temporary folder can be made");
        for (folder, _) in FOLDERS {
            std::fs::create_dir_all(docs.path().join(folder)).expect("a folder");
        }
        for (path, text) in [
            ("README.md", "# ebb\n"),
            ("SECURITY.md", "# Security\n"),
            ("old.md", "Moved to [tasks/b.md](tasks/b.md).\n"),
            ("tasks/b.md", "<!-- a note -->\n# B `x`\n"),
            ("tasks/a.md", "# A\n"),
            ("start/one.md", "# One\n"),
            ("tasks/picture.png", ""),
        ] {
            std::fs::write(docs.path().join(path), text).expect("a file");
        }
        let pages = of_folder(docs.path()).expect("they are read");
        let expected = "# Summary\n\n[ebb](README.md)\n\n# Start\n\n- [One](start/one.md)\n\n# Tasks\n\n- [A](tasks/a.md)\n- [B `x`](tasks/b.md)\n\n# Reference\n\n\n# Operate\n\n\n# Design\n\n\n# The project\n\n- [Security](SECURITY.md)\n";
        assert_eq!(summary(&pages), expected);
    }
}
