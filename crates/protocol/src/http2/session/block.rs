//! A head of which not all frames have come.

use bytes::BytesMut;

use super::super::head::HeadProblem;
use super::super::hpack::UnwantedHead;

/// The fields of a head whose end has not come.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) is_end: bool,
    /// Whether the stream was said to depend on itself.
    pub(super) is_circular: bool,
    /// The bytes of the fields; of a refused head, those that were not yet stepped over.
    pub(super) fields: BytesMut,
    /// How long all of them were.
    pub(super) bytes: usize,
    pub(super) frames: u32,
    /// Why nothing of it is kept, if that is so.
    pub(super) refused: Option<(HeadProblem, UnwantedHead)>,
}
