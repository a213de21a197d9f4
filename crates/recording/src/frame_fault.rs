//! Why a frame of a record is refused.

use thiserror::Error;

/// Why a frame cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The bytes of a frame are no message.
    #[error("a frame is no message: {0}")]
    Malformed(String),
    /// A part of a frame that every program wrote so far is absent.
    #[error("{field} is missing")]
    Missing {
        /// The part, as the messages call it.
        field: &'static str,
    },
    /// A value that no program wrote so far, or a damaged one.
    #[error("{field} {problem}")]
    BadValue {
        /// The part, as the messages call it.
        field: &'static str,
        /// The reason why the value is refused.
        problem: String,
    },
    /// Recorded or changed settings that the readers of settings refuse.
    #[error("the settings of {owner} are refused: {}", .problems.join("; "))]
    SettingsRefused {
        /// The revision, or the ConfigMap.
        owner: String,
        /// One line for each problem.
        problems: Vec<String>,
    },
}
