//! What is said about a setting: refusals, and warnings about what was accepted.

use std::fmt;

/// One thing wrong with what was written: where, what, what is allowed and what to do, in one line. The message names no file and no
/// revision; who read the file knows those and says them in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key as the user wrote it, for finding the line. Of several keys at odds with each other, the one to look at first.
    pub key: String,
    /// The whole message, naming key, value, range and remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// What was read, and what should be said about it though it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<Value> {
    /// The value.
    pub value: Value,
    /// Accepted, but worth a word (historic keys, for one).
    pub warnings: Vec<Problem>,
}
