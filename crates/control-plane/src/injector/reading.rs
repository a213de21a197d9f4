//! How a review is read: how much of it, for how long, and how many at once.
//!
//! How long a review is stands in its head, as API servers write it. Large ones have a turn of their own, so
//! that those that wait for it hold nothing, and keep no other waiting.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt as _;

/// An object may have 1.5 MiB in etcd, and a review holds two of them.
const REVIEW_BYTES_MAX: usize = 4 << 20;
/// What is not large: pods have some kilobytes, and Deployments with what their owners wrote some dozens.
const ORDINARY_BYTES_MAX: usize = 256 << 10;
/// How long an ordinary review may take to arrive once it is read. An API server has it whole when it begins.
const ORDINARY_TIME_MAX: Duration = Duration::from_secs(1);
/// The same of a large one.
const LARGE_TIME_MAX: Duration = Duration::from_secs(2);

/// Which turn a review takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewSize {
    Ordinary,
    Large,
}

impl ReviewSize {
    /// As its head says. One that says nothing is ordinary, and is not read further than that.
    pub(super) fn of(request: &Request) -> Self {
        if announced(request.body()) > ORDINARY_BYTES_MAX { Self::Large } else { Self::Ordinary }
    }
}

fn announced(body: &Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The text of one review, and whether it counts as large.
pub(super) struct ReviewBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) size: ReviewSize,
}

/// Why a review could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadReview {
    TooLarge,
    TooSlow,
    Broken,
}

impl UnreadReview {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a review that has its turn.
pub(super) async fn read(request: Request) -> Result<ReviewBytes, UnreadReview> {
    let size = ReviewSize::of(&request);
    let (bytes_max, time_max) = match size {
        ReviewSize::Ordinary => (ORDINARY_BYTES_MAX, ORDINARY_TIME_MAX),
        ReviewSize::Large => (REVIEW_BYTES_MAX, LARGE_TIME_MAX),
    };
    let reading = read_whole(request.into_body(), bytes_max);
    let bytes = tokio::time::timeout(time_max, reading).await.unwrap_or(Err(UnreadReview::TooSlow))?;
    Ok(ReviewBytes { bytes, size })
}

async fn read_whole(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, UnreadReview> {
    let announced = announced(&body);
    if announced > bytes_max {
        return Err(UnreadReview::TooLarge);
    }
    let mut bytes = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| UnreadReview::Broken)?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if bytes.len() > bytes_max {
            return Err(UnreadReview::TooLarge);
        }
    }
    Ok(bytes)
}
