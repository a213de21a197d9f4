//! What there is to say of a part of a file: it is refused, or accepted with a warning.

use std::fmt;
use std::path::PathBuf;

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
