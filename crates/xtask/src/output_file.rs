//! Files that tasks write, each in a folder that may not be there yet.

use std::path::Path;

use anyhow::Context;

/// Writes a file, and makes the folder that it lies in.
pub(crate) fn write(file: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    std::fs::write(file, content).with_context(|| format!("writing {}", file.display()))
}
