//! What do objects of a cluster say by which names? Who writes them, and who only looks, go by the same.

/// Names a Service's workload: `KIND/NAME`, or `NAME` of a Deployment.
pub const REVISION_ANNOTATION: &str = "ebb.dev/revision";
/// Kubernetes' label of an `EndpointSlice` that says who writes it.
pub const SLICE_WRITER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
/// Its value on slices of ours.
pub const SLICE_WRITER: &str = "ebb.dev";
/// Its value on slices of Services with a selector, which are left behind when that is taken away.
pub const SELECTOR_SLICE_WRITER: &str = "endpointslice-controller.k8s.io";
/// Its value on copies of the Endpoints objects of those without.
pub const MIRROR_SLICE_WRITER: &str = "endpointslicemirroring-controller.k8s.io";
/// The Lease of whoever decides.
pub const OWNER_LEASE: &str = "ebb-autoscaler";
/// The Secret of the authority that vouches for ebb's programs, with its key.
pub const AUTHORITY_SECRET: &str = "ebb-ca";

/// In a Secret of Kubernetes' type `kubernetes.io/tls`, and in the folder that it is mounted as: a
/// certificate and those that lead to a root.
pub const TLS_CHAIN: &str = "tls.crt";
/// In the same, the certificate's key.
pub const TLS_KEY: &str = "tls.key";
/// In the same, the roots.
pub const TLS_ROOTS: &str = "ca.crt";
