//! The reasons of refusals, with what each says to programs: its word, its status, and when to try again.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

use crate::timers::ExceededLimit;

/// Why a request was refused, as it stands in `ebb-error` and in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalReason {
    /// A named limit on waiting requests is reached.
    QueueFull,
    /// No pod took the request within its deadline.
    NoReadyPod,
    /// The response did not begin in time.
    ResponseStartTimeout,
    /// Nothing moved for too long.
    IdleTimeout,
    /// The request took too long as a whole.
    RequestTimeout,
    /// A pod starts, and a browser is shown a page meanwhile.
    Starting,
    /// Nothing is known under that host or port.
    NoSuchRevision,
    /// The app closed, or could not be reached, before it answered.
    UpstreamClosed,
    /// The app broke its answer, or sent none that makes sense.
    UpstreamReset,
    /// The request is malformed, ambiguous, or asks for what we do not do.
    BadRequest,
}

impl RefusalReason {
    /// Every reason, for metrics and documentation.
    pub const ALL: [Self; 10] = [
        Self::QueueFull,
        Self::NoReadyPod,
        Self::ResponseStartTimeout,
        Self::IdleTimeout,
        Self::RequestTimeout,
        Self::Starting,
        Self::NoSuchRevision,
        Self::UpstreamClosed,
        Self::UpstreamReset,
        Self::BadRequest,
    ];

    /// The value of the header `ebb-error`, which programs read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::NoReadyPod => "no-ready-pod",
            Self::ResponseStartTimeout => "response-start-timeout",
            Self::IdleTimeout => "idle-timeout",
            Self::RequestTimeout => "request-timeout",
            Self::Starting => "starting",
            Self::NoSuchRevision => "no-such-revision",
            Self::UpstreamClosed => "upstream-closed",
            Self::UpstreamReset => "upstream-reset",
            Self::BadRequest => "bad-request",
        }
    }

    /// The status that the reason has by default.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::QueueFull | Self::Starting => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoReadyPod | Self::ResponseStartTimeout | Self::IdleTimeout | Self::RequestTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::NoSuchRevision => StatusCode::NOT_FOUND,
            Self::UpstreamClosed | Self::UpstreamReset => StatusCode::BAD_GATEWAY,
            Self::BadRequest => StatusCode::BAD_REQUEST,
        }
    }

    /// The time after which a new attempt may help: a full queue moves on, and a start ends; of the other
    /// reasons that is unknown.
    pub(super) const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::QueueFull | Self::Starting => Some(Duration::from_secs(1)),
            Self::NoReadyPod
            | Self::ResponseStartTimeout
            | Self::IdleTimeout
            | Self::RequestTimeout
            | Self::NoSuchRevision
            | Self::UpstreamClosed
            | Self::UpstreamReset
            | Self::BadRequest => None,
        }
    }

    /// What a gRPC client is told: 4 ("deadline exceeded") for a timer, 14 ("unavailable") for the rest.
    pub(super) const fn grpc_status(self) -> &'static str {
        match self {
            Self::ResponseStartTimeout | Self::IdleTimeout | Self::RequestTimeout => "4",
            Self::NoReadyPod
            | Self::QueueFull
            | Self::Starting
            | Self::UpstreamClosed
            | Self::UpstreamReset
            | Self::NoSuchRevision
            | Self::BadRequest => "14",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<ExceededLimit> for RefusalReason {
    fn from(expired: ExceededLimit) -> Self {
        match expired {
            ExceededLimit::Request => Self::RequestTimeout,
            ExceededLimit::ResponseStart => Self::ResponseStartTimeout,
            ExceededLimit::Idle => Self::IdleTimeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_a_row_for_each_reason_with_its_statuses() {
        let manual = include_str!("../../../../docs/reference/events.md");
        for reason in RefusalReason::ALL {
            let begin = format!("| `{reason}` | {}", reason.status().as_u16());
            let row = manual.lines().find(|line| line.starts_with(&begin));
            let row = row.unwrap_or_else(|| panic!("docs/reference/events.md has no row {begin}"));
            assert!(row.contains(&format!("| {} |", reason.grpc_status())), "{row}");
            assert_eq!(row.contains("`Retry-After: 1`"), reason.retry_after().is_some(), "{row}");
        }
    }
}
