//! A slice with our label, and its writer.

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::slice_key::SliceKey;
use crate::slices::{self, SliceAuthor};

/// A slice with our label, and its writer: its signature is verified once, when it comes.
#[derive(Clone, Debug)]
pub(super) struct KnownSlice {
    pub(super) object: EndpointSlice,
    pub(super) author: SliceAuthor,
}

impl KnownSlice {
    pub(super) fn new(object: EndpointSlice, key: &SliceKey) -> Self {
        Self { author: slices::author_of(&object, key), object }
    }
}
