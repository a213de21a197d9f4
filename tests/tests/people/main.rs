//! The things that people have of ebb besides its programs: the Helm chart beside the kustomization, the
//! pages as a site, and the workflows.
//!
//! `cargo suite people`. It needs `tests/people/build`, which builds Helm, mdBook and actionlint, and
//! `tests/cluster/build`, for its kubectl.

mod chart;
mod programs;
mod site;
mod values;
mod workflows;
