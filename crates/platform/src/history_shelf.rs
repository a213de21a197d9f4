//! A place of the platform in which histories of revisions outlive the autoscaler that measures them, where
//! no folder does: each bucket's owner writes what is its own, and the next owner reads it.

use std::pin::Pin;

use orchestration::Fence;
use thiserror::Error;
use vocabulary::Bucket;

/// What one bucket's revisions had in one day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShelvedDay {
    /// The day, counted since that of 1970.
    pub day: u64,
    /// Pieces that each can be read by themselves.
    pub pieces: Vec<Vec<u8>>,
}

/// Why a shelf did not do as it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShelfFault {
    /// Another autoscaler owns the bucket by now.
    #[error("another autoscaler owns the bucket")]
    NotOwner,
    /// Nothing more may be kept.
    #[error("{wanted} objects would be needed for histories, and {most} are the most that are kept")]
    Full {
        /// How many there would be.
        wanted: usize,
        /// How many there may be.
        most: usize,
    },
    /// Nobody has given the program the right to keep histories there.
    #[error("{0}")]
    Forbidden(String),
    /// In the words of the platform.
    #[error("{0}")]
    Failed(String),
}

/// An answer that takes a while.
pub type ShelfFuture<'a, Answer> = Pin<Box<dyn Future<Output = Result<Answer, ShelfFault>> + Send + 'a>>;

/// A platform that keeps histories.
pub trait HistoryShelf: Send + Sync {
    /// The most bytes that a piece may have.
    fn piece_bytes_max(&self) -> usize;

    /// All days that are kept of a bucket, the oldest first.
    fn read(&self, bucket: Bucket) -> ShelfFuture<'_, Vec<ShelvedDay>>;

    /// Writes a day in the place of all that was kept of it, by the right of the bucket's owner.
    fn write(&self, fence: Fence, day: ShelvedDay) -> ShelfFuture<'_, ()>;
}
