//! What do slices of other writers say: which addresses of a Service do they name?

use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::{MIRROR_SLICE_WRITER, SELECTOR_SLICE_WRITER, SLICE_WRITER_LABEL};

use crate::resources::ObjectKey;
use crate::slices::SERVICE_LABEL;

/// An `EndpointSlice` of a Service that ebb did not write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherSlice {
    /// The slice's own key, not that of its Service.
    pub key: ObjectKey,
    /// The name of the Service of which the slice is, by its label.
    pub(crate) service: String,
    pub(crate) writer: SliceWriter,
    /// The uid, if the API server gave one.
    pub uid: Option<String>,
    /// The version that was read, if there is one.
    pub resource_version: Option<String>,
    /// The pods that are ready there.
    pub(crate) pods: Vec<String>,
    pub(crate) has_ready: bool,
}

/// The program that writes a slice, as the slice's label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SliceWriter {
    /// Kubernetes' own controller, from the Service's selector.
    Controller,
    /// Kubernetes, from an Endpoints object.
    Mirror,
    /// Another writer, whose slices ebb leaves alone.
    Stranger(String),
}

/// `None` for one of no Service.
pub fn read(slice: &EndpointSlice) -> Option<OtherSlice> {
    let label = |key: &str| slice.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let writer = match label(SLICE_WRITER_LABEL).as_deref() {
        Some(SELECTOR_SLICE_WRITER) => SliceWriter::Controller,
        Some(MIRROR_SLICE_WRITER) => SliceWriter::Mirror,
        other => SliceWriter::Stranger(other.unwrap_or("a program that does not say its name").to_owned()),
    };
    // An endpoint without the condition is ready.
    let ready = slice.endpoints.iter().filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    });
    let pods = ready.clone().filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone());
    Some(OtherSlice {
        key: ObjectKey::of(&slice.metadata),
        service: label(SERVICE_LABEL)?,
        writer,
        uid: slice.metadata.uid.clone(),
        resource_version: slice.metadata.resource_version.clone(),
        pods: pods.collect(),
        has_ready: ready.count() > 0,
    })
}
