//! Which algorithm scales a revision.

use serde::{Deserialize, Serialize};

/// The value of the annotation `class`: the algorithm that scales a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Concurrency or request rate, stable and panic windows, scale to zero.
    #[default]
    Kpa,
    /// As class kpa, with pods before demand rises where the past tells of it.
    Ahpa,
    /// The algorithm of Kubernetes' horizontal pod autoscaler.
    Hpa,
    /// The class of another autoscaler: the revision is left alone.
    Other(String),
}

impl Class {
    const KPA: &str = "kpa.autoscaling.knative.dev";
    const AHPA: &str = "ahpa.autoscaling.knative.dev";
    const HPA: &str = "hpa.autoscaling.knative.dev";
    /// Names under this domain are Knative's to give, so an unknown one is a misspelling.
    const RESERVED: &str = ".knative.dev";

    /// Reads a class; `None` for an unknown name in Knative's own domain.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            Self::KPA => Some(Self::Kpa),
            Self::AHPA => Some(Self::Ahpa),
            Self::HPA => Some(Self::Hpa),
            other if other.ends_with(Self::RESERVED) => None,
            other => Some(Self::Other(other.to_owned())),
        }
    }

    /// Whether requests alone decide, by windows of concurrency or request rate.
    pub fn is_of_requests(&self) -> bool {
        match self {
            Self::Kpa | Self::Ahpa => true,
            Self::Hpa | Self::Other(_) => false,
        }
    }

    /// The name as it is written in `class`.
    pub fn name(&self) -> &str {
        match self {
            Self::Kpa => Self::KPA,
            Self::Ahpa => Self::AHPA,
            Self::Hpa => Self::HPA,
            Self::Other(name) => name,
        }
    }
}
