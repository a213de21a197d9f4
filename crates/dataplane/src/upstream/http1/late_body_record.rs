//! May a connection be used again after a response that has no body?
//!
//! Some apps send one all the same, behind the head of the answer to a HEAD, behind a 204 or a 304: a moment
//! later, or when they come to it. What comes then stands before the next answer and is taken for its
//! beginning, and since such a body is often made of what its client sent, that client would answer the next
//! one's request. No look at the socket tells that nothing more will come, however late it is. So:
//!
//! * A head that speaks of a body (a length, chunks) is the last on its connection.
//! * After one that does not, a connection is used again only if the app has proved that it sends none: the
//!   first [`SILENCES_NEEDED`] such connections are closed on our side alone and read until the app closes
//!   its own, which nothing can come after.
//! * An app that was ever seen to send such a body is never trusted again.
//!
//! What is left is an app that proves itself with some of its answers and sends bodies with others: of those
//! the first can still be too late to be seen.

use protocol::http1::BodilessResponse;

/// How many connections have to end in silence before an app is trusted. The proof costs the app as many
/// connections once, and cover a handful of different handlers.
const SILENCES_NEEDED: u32 = 20;

/// How many connections to an app are watched at once, at most; others are closed.
const WATCHED_MAX: u32 = 8;

/// What is known of an app: whether it sends bodies behind responses that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum LateBodyRecord {
    /// So many connections ended in silence, and so many are watched.
    Unproven { silent: u32, watched: u32 },
    /// The app sends no bodies behind responses that have none.
    Proven,
    /// The app was seen to send a body behind a response that has none.
    SendsBodies,
}

impl Default for LateBodyRecord {
    fn default() -> Self {
        Self::Unproven { silent: 0, watched: 0 }
    }
}

/// What becomes of a connection after a response without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodilessOutcome {
    Kept,
    Watched,
    Closed,
}

impl LateBodyRecord {
    /// What becomes of a connection after a response without a body. One that is to be watched counts until
    /// [`LateBodyRecord::watched`].
    pub(super) fn afterwards(&mut self, bodiless: BodilessResponse) -> BodilessOutcome {
        match (self, bodiless) {
            (_, BodilessResponse::Announcing) | (Self::SendsBodies, BodilessResponse::Silent) => {
                BodilessOutcome::Closed
            }
            (Self::Proven, BodilessResponse::Silent) => BodilessOutcome::Kept,
            (Self::Unproven { watched, .. }, BodilessResponse::Silent) if *watched >= WATCHED_MAX => {
                BodilessOutcome::Closed
            }
            (Self::Unproven { watched, .. }, BodilessResponse::Silent) => {
                *watched += 1;
                BodilessOutcome::Watched
            }
        }
    }

    /// A watched connection has ended, in silence or not.
    pub(super) fn watched(&mut self, was_silent: bool) {
        let Self::Unproven { silent, watched } = self else { return };
        *watched = watched.saturating_sub(1);
        *silent += u32::from(was_silent);
        if *silent >= SILENCES_NEEDED {
            *self = Self::Proven;
        }
    }

    /// Whether nothing is known that is worth keeping.
    pub(in crate::upstream) fn is_unknown(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_earned_by_silence_and_lost_for_good() {
        let mut late_body_record = LateBodyRecord::default();
        for _ in 0..SILENCES_NEEDED {
            assert_eq!(late_body_record.afterwards(BodilessResponse::Announcing), BodilessOutcome::Closed);
            assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Watched);
            late_body_record.watched(true);
        }
        assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Kept);
        assert_eq!(late_body_record.afterwards(BodilessResponse::Announcing), BodilessOutcome::Closed);
        late_body_record = LateBodyRecord::SendsBodies;
        late_body_record.watched(true);
        assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Closed);
    }

    #[test]
    fn few_connections_are_watched_at_once() {
        let mut late_body_record = LateBodyRecord::default();
        for _ in 0..WATCHED_MAX {
            assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Watched);
        }
        assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Closed);
        late_body_record.watched(false);
        assert_eq!(late_body_record.afterwards(BodilessResponse::Silent), BodilessOutcome::Watched);
    }
}
