//! Documents of Kubernetes' autoscaler, read and checked: every problem of a document is reported at once.
//!
//! Four versions of the API have spelt the same thing differently: `v2` and `v2beta2` nest a target in each
//! metric, `v2beta1` writes flat fields, and `v1` knows CPU alone and carries the rest in annotations, whose
//! behavior has the names of Go's fields. All of them are read into one [`HpaDocument`]. Files are not read
//! here: a separate document comes as a [`DocumentNode`], in whichever format it was written. The one in the
//! annotation `ebb.dev/hpa` is a text, and is read here with all other annotations
//! ([`crate::RevisionSettings::read`]): a caller that reads annotations cannot forget it.
//!
//! Documents that Kubernetes' API server refuses are refused here. So are unknown fields: a setting that
//! silently does nothing is found at night.

mod api_version;
mod behavior;
mod document;
mod document_annotation;
mod document_fields;
mod flat_metrics;
mod metric_target;
mod metrics;
mod names;
mod node;
mod selectors;
mod short_form;

#[cfg(test)]
mod tests;

pub(crate) use self::document::read_annotation;
pub use self::document::{HpaDocument, JsonReader, ScaleTarget, read_document, read_spec};
pub use self::document_annotation::{DOCUMENT_ANNOTATION, annotations_beside_document};
pub use self::node::DocumentNode;
pub(crate) use self::short_form::document_of_short_form;
