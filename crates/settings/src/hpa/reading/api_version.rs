//! The versions of the API in which a document may be written.

/// The version of the API group `autoscaling` in which a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HpaApiVersion {
    /// `v1`: CPU stands in the spec, everything else in annotations.
    V1,
    /// `v2beta1`: targets are flat fields, and there is no behavior.
    V2beta1,
    /// `v2beta2`: as `v2`, but without tolerances in a behavior.
    V2beta2,
    /// `v2`: the present version, with every field.
    V2,
}
