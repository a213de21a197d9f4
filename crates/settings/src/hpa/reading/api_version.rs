//! The versions of the API in which a document may be written.

/// The versions of `autoscaling/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HpaApiVersion {
    /// CPU in the spec, the rest in annotations.
    V1,
    /// Flat targets, no behavior.
    V2beta1,
    /// As `v2`, without tolerances.
    V2beta2,
    /// The present one.
    V2,
}
