use std::path::PathBuf;

use super::*;

/// Writes the texts as `0.yaml`, `1.yaml`, … and loads them.
fn load_texts(texts: &[&str]) -> Result<Loaded, Vec<String>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let file = directory.path().join(format!("{index}.yaml"));
            std::fs::write(&file, text).expect("writing");
            file
        })
        .collect();
    let prefix = format!("{}/", directory.path().display());
    load(&files, "example.com")
        .map_err(|troubles| troubles.iter().map(|trouble| trouble.to_string().replace(&prefix, "")).collect())
}

const MINIMAL: &str = "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: hello
spec:
  template:
    spec:
      containers:
        - command: [\"ebb\", \"sample-app\"]
";
