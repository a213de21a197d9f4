//! Which manifests is the chart made of? Those that the kustomization lists, as text.

use std::path::Path;

use anyhow::{Context, ensure};

/// The folder of the manifests, below the root of the workspace.
const FOLDER: &str = "deploy/base";

/// One file of the manifests, as text.
pub(super) struct ManifestText {
    /// The name of the file, such as `activator.yaml`.
    pub(super) name: String,
    pub(super) text: String,
}

impl ManifestText {
    /// The lines of each object in the file.
    pub(super) fn documents(&self) -> Vec<Vec<&str>> {
        let lines: Vec<&str> = self.text.lines().collect();
        lines.split(|line| *line == "---").map(<[&str]>::to_vec).collect()
    }
}

/// The manifests, in the order of the kustomization.
pub(super) fn of_workspace(root: &Path) -> anyhow::Result<Vec<ManifestText>> {
    let folder = root.join(FOLDER);
    let names = listed(&read(&folder.join("kustomization.yaml"))?);
    ensure!(!names.is_empty(), "the kustomization of {FOLDER} lists no manifest");
    names.into_iter().map(|name| Ok(ManifestText { text: read(&folder.join(&name))?, name })).collect()
}

/// The manifest of this name.
pub(super) fn named<'m>(manifests: &'m [ManifestText], name: &str) -> anyhow::Result<&'m ManifestText> {
    let found = manifests.iter().find(|manifest| manifest.name == name);
    found.with_context(|| format!("the kustomization of {FOLDER} lists no {name}"))
}

fn listed(kustomization: &str) -> Vec<String> {
    let after = kustomization.lines().skip_while(|line| *line != "resources:").skip(1);
    after.map_while(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_those_that_the_kustomization_lists() {
        assert_eq!(listed("kind: K\nresources:\n- a.yaml\n- b.yaml\nlabels:\n- c\n"), ["a.yaml", "b.yaml"]);
        assert!(listed("kind: K\n").is_empty());
    }

    #[test]
    fn documents_are_told_apart_by_lines_and_not_by_dashes() {
        let text = "a: 1\n# --- a title ---\n---\nb: 2\n".to_owned();
        let manifest = ManifestText { name: "x.yaml".to_owned(), text };
        assert_eq!(manifest.documents(), [vec!["a: 1", "# --- a title ---"], vec!["b: 2"]]);
    }
}
