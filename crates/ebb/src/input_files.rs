//! The files that a person names to a command, and the documents in them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

/// The named files, and the manifests in the named directories.
pub(crate) fn files_of(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            let found = platform_local::manifests_in(path);
            let found = found.with_context(|| format!("reading {}", path.display()))?;
            if found.is_empty() {
                bail!("{} holds no manifest (*.yaml, *.yml, *.json)", path.display());
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The text of a file, or of standard input.
pub(crate) fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    if file.is_dir() {
        bail!("is a directory; name its files");
    }
    Ok(platform_local::text_of(std::fs::read(file)?)?)
}

/// The documents of a file of YAML, as Kubernetes reads them.
pub(crate) fn yaml_documents(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| format!("it is not YAML: {error}"))
}

/// The name of an object for people, such as `Deployment hello`.
pub(crate) fn title_of(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&document["kind"]), text(&document["metadata"]["name"]))
}
