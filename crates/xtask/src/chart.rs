//! How is the Helm chart made? Of the manifests in `deploy/base`, as text: the places that a value changes
//! become templates (`templates`), and the rest stays as it is, with its comments. So the chart and the
//! kustomization cannot say two things. The chart is committed, and a test compares it with the manifests.
//!
//! The parts that no manifest holds are written by hand: `templates/_helpers.tpl` and `templates/NOTES.txt`
//! of the chart, and here the values and their schema without the facts of the manifests
//! (`chart/values.yaml`, `chart/values.schema.json`).

mod config_keys;
mod manifests;
mod templates;
mod text;
mod values;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::output_file;

/// Where the chart lies, below the root of the workspace.
const CHART: &str = "deploy/helm/ebb";

#[derive(Debug, Args)]
pub(crate) struct HelmChartOptions {
    /// Where the files that are made of the manifests are written. By default deploy/helm/ebb.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
}

/// One file of the chart that is made of the manifests.
struct HelmChartFile {
    /// The path of the file, below the folder of the chart.
    path: String,
    text: String,
}

/// Writes the files of the chart that are made of the manifests, and prints their names.
pub(crate) fn run(options: &HelmChartOptions, root: &Path) -> anyhow::Result<()> {
    let folder = options.output.clone().unwrap_or_else(|| root.join(CHART));
    for file in files(root)? {
        let path = folder.join(&file.path);
        output_file::write(&path, file.text)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn files(root: &Path) -> anyhow::Result<Vec<HelmChartFile>> {
    let manifests = manifests::of_workspace(root)?;
    let mut files = Vec::new();
    for manifest in &manifests {
        let text = templates::template(manifest)?;
        files.push(HelmChartFile { path: format!("templates/{}", manifest.name), text });
    }
    let mut add = |path: &str, text| files.push(HelmChartFile { path: path.to_owned(), text });
    add("Chart.yaml", description());
    add("values.yaml", values::values(&manifests)?);
    add("values.schema.json", values::schema(&manifests)?);
    Ok(files)
}

/// The description of the chart for Helm. Its version is that of the workspace, as are the tags of the
/// images.
fn description() -> String {
    let (version, home) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY"));
    format!(
        "# Made by `cargo xtask chart`.\napiVersion: v2\nname: ebb\ndescription: Scales web services with their traffic, down to zero and back\ntype: \
         application\nversion: {version}\nappVersion: \"{version}\"\nkubeVersion: \">=1.29.0-0\"\nhome: {home}\nsources:\n- {home}\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// JSON is compared as values: the order of fields depends on the features of other crates' dependencies.
    #[test]
    fn the_chart_is_made_of_the_manifests_as_they_are() {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let files = files(&root).expect("the manifests have the places that values change");
        assert!(files.len() > 10, "{} files are hardly all", files.len());
        for file in files {
            let path = root.join(CHART).join(&file.path);
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            let is_same = match path.extension().and_then(|ending| ending.to_str()) {
                Some("json") => json(&committed) == json(&file.text),
                _ => committed == file.text,
            };
            assert!(is_same, "{} is not of these manifests: run `cargo xtask chart`", path.display());
        }
    }

    fn json(text: &str) -> Option<Value> {
        serde_json::from_str(text).ok()
    }
}
