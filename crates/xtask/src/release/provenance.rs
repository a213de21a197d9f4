//! Where do the files of a release come from? A statement in the form of in-toto, with the predicate of SLSA:
//! <https://slsa.dev/spec/v1.0/provenance>. It is not signed here: the workflow of releases has its forge
//! attest the same checksums.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::checksums::{self, FileSum, PROVENANCE};

/// The meaning of the statement's fields: the steps of a release, as a document describes them.
const BUILD_TYPE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/CONTRIBUTING.md#releases");

#[derive(Debug, Args)]
pub(crate) struct ProvenanceOptions {
    /// The folder with the files of the release and their SHA256SUMS.
    #[arg(value_name = "DIRECTORY")]
    folder: PathBuf,
    /// The URL that names the machine or the workflow that made the files.
    #[arg(long, value_name = "URL", default_value = "local")]
    builder: String,
}

/// The sources of a build.
struct SourceState {
    commit: String,
    /// Whether files differ from those of the commit.
    is_modified: bool,
}

/// Writes the statement beside the checksums.
pub(super) fn write(options: &ProvenanceOptions, root: &Path) -> anyhow::Result<()> {
    let sums = checksums::written(&options.folder)?;
    let source = SourceState {
        commit: git(root, &["rev-parse", "HEAD"])?,
        is_modified: !git(root, &["status", "--porcelain", "--untracked-files=no"])?.is_empty(),
    };
    let statement = statement(&sums, &source, &options.builder);
    let path = options.folder.join(PROVENANCE);
    let text = serde_json::to_string_pretty(&statement)? + "\n";
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn statement(sums: &[FileSum], source: &SourceState, builder: &str) -> Value {
    let subjects = sums.iter().map(|file| json!({"name": file.name, "digest": {"sha256": file.sum}}));
    let mut repository = json!({
        "uri": concat!("git+", env!("CARGO_PKG_REPOSITORY")),
        "digest": {"gitCommit": source.commit},
    });
    if source.is_modified {
        repository["annotations"] = json!({"modified": true});
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects.collect::<Vec<_>>(),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": env!("CARGO_PKG_VERSION")},
                "resolvedDependencies": [repository],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    })
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().context("starting git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`git {}` failed: {said}", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_each_file_its_commit_and_the_builder() {
        let sums = [FileSum { name: "ebb".to_owned(), sum: "00ff".to_owned() }];
        for is_modified in [false, true] {
            let source = SourceState { commit: "c0ffee".to_owned(), is_modified };
            let statement = statement(&sums, &source, "https://builder.example/1");
            assert_eq!(statement["subject"], json!([{"name": "ebb", "digest": {"sha256": "00ff"}}]));
            let predicate = &statement["predicate"];
            assert_eq!(predicate["runDetails"]["builder"]["id"], "https://builder.example/1");
            let repository = &predicate["buildDefinition"]["resolvedDependencies"][0];
            assert_eq!(repository["digest"]["gitCommit"], "c0ffee");
            assert_eq!(repository["annotations"]["modified"] == true, is_modified);
        }
    }
}
