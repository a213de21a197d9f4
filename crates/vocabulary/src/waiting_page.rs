//! What a browser is shown while a pod starts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What the navigation of a browser gets that would wait for a pod; programs wait in any case.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitingPage {
    /// Nothing: it waits as programs do.
    #[default]
    Off,
    /// A small page that says what starts.
    Auto,
    /// This page, which is written in HTML.
    Text(Arc<str>),
}

impl WaitingPage {
    /// The longest page, in bytes: with all its styles a page that is shown for seconds fits easily.
    pub const BYTES_MAX: usize = 64 << 10;
}

impl fmt::Debug for WaitingPage {
    /// Not which page: it may be long, it decides nothing, and so a record of a run has none. Commands are
    /// compared there by the hash of this text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WaitingPage(…)")
    }
}
