//! How do the pages become a site? mdBook makes it of a copy of `docs/`, with a list of all pages that is
//! made here: a page is in the list by the folder that it lies in, so a new one cannot be forgotten. Pages
//! without a heading are old paths that lead to new ones, and no part of the site.

mod links;
mod pages;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::output_file::write;

/// The settings with which mdBook runs.
const BOOK: &str = concat!(
    "[book]\ntitle = \"ebb\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[output.html]\ngit-repository-url = \"",
    env!("CARGO_PKG_REPOSITORY"),
    "\"\n"
);

#[derive(Debug, Args)]
pub(crate) struct SiteOptions {
    /// Where the site is written; what is there is replaced. By default target/site.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// The executable of mdBook (`cargo install mdbook`).
    #[arg(long, value_name = "FILE", default_value = "mdbook")]
    mdbook: PathBuf,
}

/// Writes the sources of the book, and has mdBook make the site.
pub(crate) fn run(options: &SiteOptions, root: &Path, target: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let pages = pages::of_folder(&root.join("docs"))?;
    write_sources(&pages, folder.path())?;
    let output = options.output.clone().unwrap_or_else(|| target.join("site"));
    let output = std::path::absolute(&output).with_context(|| format!("naming {}", output.display()))?;
    let status =
        Command::new(&options.mdbook).arg("build").arg(folder.path()).arg("--dest-dir").arg(&output).status();
    let status = status.with_context(|| {
        format!("starting {}; `cargo install mdbook` or --mdbook FILE", options.mdbook.display())
    })?;
    ensure!(status.success(), "mdBook ended with {status}");
    println!("{} ({} pages)", output.display(), pages.len());
    Ok(())
}

fn write_sources(pages: &[pages::SitePage], folder: &Path) -> anyhow::Result<()> {
    write(&folder.join("book.toml"), BOOK)?;
    let source = folder.join("src");
    write(&source.join("SUMMARY.md"), pages::summary(pages))?;
    for page in pages {
        let text = links::for_site(&page.path, &page.text, env!("CARGO_PKG_REPOSITORY"));
        write(&source.join(&page.path), text)?;
    }
    Ok(())
}
