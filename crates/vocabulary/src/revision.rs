//! Names and ids. Names are what people read and what travels between programs; ids are small integers that a
//! process hands out (see [`crate::Interner`]), so that a report costs no string comparison.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::findings::shown;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// A revision name has three non-empty parts.
    #[error("{} is not namespace/kind/name", shown(.0))]
    NotThreeParts(String),
}

/// A revision's full name, `namespace/kind/name` (`default/service/hello`): one workload, whatever its
/// current template. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RevisionName(Arc<str>);

impl RevisionName {
    /// Joins the three parts, each of which must be non-empty and hold no `/`.
    pub fn new(namespace: &str, kind: &str, name: &str) -> Result<Self, NameError> {
        Self::parse(&format!("{namespace}/{kind}/{name}"))
    }

    /// Reads a whole name, `namespace/kind/name`; all three parts must be there.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() == 3 && parts.iter().all(|part| !part.is_empty()) {
            Ok(Self(text.into()))
        } else {
            Err(NameError::NotThreeParts(text.to_owned()))
        }
    }

    /// The whole name, which is `namespace/kind/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace, which is the first part of the name.
    pub fn namespace(&self) -> &str {
        self.part(0)
    }

    /// The second part: `service` locally, else a workload kind such as `deployment`.
    pub fn kind(&self) -> &str {
        self.part(1)
    }

    /// The workload's own name, which is the last part.
    pub fn name(&self) -> &str {
        self.part(2)
    }

    fn part(&self, index: usize) -> &str {
        self.0.split('/').nth(index).expect("the constructor checked that there are three parts")
    }
}

impl TryFrom<String> for RevisionName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<RevisionName> for String {
    fn from(name: RevisionName) -> Self {
        name.0.as_ref().to_owned()
    }
}

macro_rules! plain_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes any text as a name, without a check.
            pub fn new(text: &str) -> Self {
                Self(text.into())
            }

            /// The name as a text, as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

plain_name!(
    /// The name of one pod. It identifies the pod for its whole life and is never given to another. Cheap to
    /// clone.
    PodName
);
plain_name!(
    /// The name of one copy of our own activator or autoscaler. Cheap to clone.
    ReplicaName
);

macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }
    )*};
}
shown_as_text!(RevisionName, PodName, ReplicaName);

macro_rules! small_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl From<u32> for $name {
            fn from(index: u32) -> Self {
                Self(index)
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> u32 {
                id.0
            }
        }
    };
}

small_id!(
    /// Stands for a [`RevisionName`] within one process.
    RevisionId
);
small_id!(
    /// Stands for a [`PodName`] within one process.
    PodId
);
small_id!(
    /// Stands for one copy of our activator within one process.
    ReplicaId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_name_has_three_parts() {
        let name = RevisionName::parse("default/service/hello").expect("three parts");
        assert_eq!((name.namespace(), name.kind(), name.name()), ("default", "service", "hello"));
        for text in ["hello", "default/hello", "default//hello", "a/b/c/d", ""] {
            assert_eq!(RevisionName::parse(text), Err(NameError::NotThreeParts(text.to_owned())));
        }
    }
}
