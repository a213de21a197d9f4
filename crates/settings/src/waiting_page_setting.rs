//! What a person wants a browser to be shown while a pod starts.

use serde::{Deserialize, Serialize};
use vocabulary::WaitingPage;

/// The value of the annotation `ebb.dev/waiting-page`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitingPageSetting {
    /// A browser waits as programs do.
    Off,
    /// The small page of ebb.
    Auto,
    /// The page in this file, which only one machine has.
    File(Box<str>),
}

impl WaitingPageSetting {
    /// The page, where a file cannot be had.
    pub fn without_file(&self) -> WaitingPage {
        match self {
            Self::Off | Self::File(_) => WaitingPage::Off,
            Self::Auto => WaitingPage::Auto,
        }
    }
}
