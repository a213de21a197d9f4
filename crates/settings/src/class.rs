//! Which algorithm scales a revision.

use serde::Serialize;

/// The value of the annotation `class`: the algorithm that scales a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Concurrency or request rate, stable and panic windows, scale to zero.
    #[default]
    Kpa,
    /// The algorithm of Kubernetes' horizontal pod autoscaler.
    Hpa,
    /// The class of another autoscaler: the revision is left alone.
    Other(String),
}

impl Class {
    const KPA: &str = "kpa.autoscaling.knative.dev";
    const HPA: &str = "hpa.autoscaling.knative.dev";
    /// Names under this domain are Knative's to give, so an unknown one is a misspelling.
    const RESERVED: &str = ".knative.dev";

    /// Reads a class; `None` for an unknown name in Knative's own domain.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            Self::KPA => Some(Self::Kpa),
            Self::HPA => Some(Self::Hpa),
            other if other.ends_with(Self::RESERVED) => None,
            other => Some(Self::Other(other.to_owned())),
        }
    }

    /// The name as it is written in `class`.
    pub fn name(&self) -> &str {
        match self {
            Self::Kpa => Self::KPA,
            Self::Hpa => Self::HPA,
            Self::Other(name) => name,
        }
    }
}
