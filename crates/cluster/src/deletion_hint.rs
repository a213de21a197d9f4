//! Which pods should end before others, as ebb writes it on them?

/// The deletion cost that is to be written on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionHint {
    /// The pod's name in its namespace.
    pub pod: String,
    /// To end before others; else what we wrote before is taken away.
    pub is_chosen: bool,
}
