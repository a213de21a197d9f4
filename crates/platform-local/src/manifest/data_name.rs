//! The name of a document that holds data.

use std::fmt;

/// What kind of document holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataKind {
    /// A document whose values are texts.
    ConfigMap,
    /// The same in base64, or, under `stringData`, as they are.
    Secret,
}

impl fmt::Display for DataKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        })
    }
}

/// By which a document is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataName {
    pub(crate) kind: DataKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl fmt::Display for DataName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the {} {} of namespace {}", self.kind, self.name, self.namespace)
    }
}
