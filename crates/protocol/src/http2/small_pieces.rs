//! Which pieces of a body are too small to go on as they are?
//!
//! A piece that waits to be read costs its reader much more memory than its bytes, so readers bound what the
//! small ones among them cost. The crate `h2`, which hyper and tonic stand on, charges a connection for what
//! each unread piece lacks of 256 bytes, allows half of the connection's window in all (512 KiB with hyper's
//! defaults, some 2,000 pieces of a byte), and ends the connection with everything on it when that is spent.
//! A client that talks to such an app itself ends its own requests. Here streams of many clients share a
//! connection to the app, so one of them would end the requests of others.
//!
//! We cannot see when an app reads a piece, only that it goes on: it answers on the stream, or gives it room.
//! So what each stream has sent in small pieces since then is counted as `h2` counts it, and three things
//! follow. A stream sends a few small pieces as they come, and others at a pace that no person and few
//! programs reach; what comes faster is *joined*, for a few milliseconds or until it is no longer small. A
//! connection that may hold many small pieces is *laden*: it takes no further stream while another connection
//! can. And the more it may hold, the longer pieces are joined, so that the requests which are on their way
//! on it have the time to end.

use std::time::Duration;

use vocabulary::Timestamp;

/// From this size on a piece is not small: what `h2` takes for the cost of one.
pub const SMALL_BYTES: usize = 256;

/// How many small pieces a stream sends at once without their being joined. Those of as many streams as there
/// usually are on a connection (200 at most with hyper) stay within what `h2` allows.
const BURST: u32 = 8;

/// From then on, one small piece in this time goes on as it is: 50 a second.
const PACE: Duration = Duration::from_millis(20);

/// How long a piece waits for more of its body, while its connection holds little.
const PATIENCE: Duration = Duration::from_millis(5);

/// The longest that it waits for that.
const PATIENCE_MAX: Duration = Duration::from_secs(1);

/// From here on a connection is laden: an eighth of what hyper's servers allow.
pub(super) const LADEN_BYTES: usize = 64 * 1024;

/// The small pieces of one stream since its peer last said anything on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SmallPieces {
    /// How much they lack of not being small.
    overhead: usize,
    /// They are within the pace until then.
    paced_until: Timestamp,
}

impl SmallPieces {
    /// How much they may cost the peer, in bytes.
    pub(super) fn overhead(self) -> usize {
        self.overhead
    }

    /// Whether the next small piece may go as it is.
    pub(super) fn may_send(self, now: Timestamp) -> bool {
        self.paced_until <= now + PACE * (BURST - 1)
    }

    /// A piece of so many bytes was sent. One that is not small makes up for others, as it does with `h2`.
    pub(super) fn sent(self, bytes: usize) -> Self {
        let overhead = (self.overhead + SMALL_BYTES.saturating_sub(bytes))
            .saturating_sub(bytes.saturating_sub(SMALL_BYTES));
        Self { overhead, ..self }
    }

    /// Notes that a small piece was sent, and that more of the body follows.
    pub(super) fn paced(self, now: Timestamp) -> Self {
        let latest = now + PACE * BURST;
        Self { paced_until: (self.paced_until.max(now) + PACE).min(latest), ..self }
    }
}

/// Whether a piece of so many bytes is small. One without any, which only ends its body, is none.
pub(super) fn is_small(bytes: usize) -> bool {
    bytes > 0 && bytes < SMALL_BYTES
}

/// How long a piece waits for more of its body on a connection whose small pieces may cost so many bytes.
pub(super) fn patience(overhead: usize) -> Duration {
    let steps = u32::try_from((overhead / LADEN_BYTES).max(1)).unwrap_or(u32::MAX);
    PATIENCE.saturating_mul(steps.saturating_mul(steps)).min(PATIENCE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        Timestamp::from_duration(Duration::from_secs(3600))
    }

    #[test]
    fn a_few_go_at_once_and_further_ones_at_a_pace() {
        let mut pieces = SmallPieces::default();
        for _ in 0..BURST {
            assert!(pieces.may_send(start()));
            pieces = pieces.sent(1).paced(start());
        }
        assert!(!pieces.may_send(start()));
        assert!(!pieces.may_send(start() + PACE / 2));
        let mut now = start();
        for _ in 0..1000 {
            now += PACE;
            assert!(pieces.may_send(now), "50 a second, for ever");
            pieces = pieces.sent(1).paced(now);
            assert!(!pieces.may_send(now));
        }
        assert_eq!(pieces.overhead(), (1000 + BURST as usize) * 255);
    }

    #[test]
    fn joined_pieces_are_not_held_against_a_stream_for_long() {
        let mut pieces = SmallPieces::default();
        for _ in 0..10_000 {
            pieces = pieces.paced(start());
        }
        assert!(pieces.may_send(start() + PACE));
        assert!(!pieces.may_send(start()));
    }

    #[test]
    fn long_pieces_make_up_for_short_ones() {
        let pieces = SmallPieces::default().sent(100).sent(100);
        assert_eq!(pieces.overhead(), 312);
        assert_eq!(pieces.sent(256).overhead(), 312);
        assert_eq!(pieces.sent(356).overhead(), 212);
        assert_eq!(pieces.sent(16_384).overhead(), 0);
    }

    #[test]
    fn patience_grows_with_what_a_connection_may_hold() {
        let milliseconds = |overhead| patience(overhead).as_millis();
        assert_eq!([0, LADEN_BYTES, 2 * LADEN_BYTES, 7 * LADEN_BYTES].map(milliseconds), [5, 5, 20, 245]);
        assert_eq!(patience(usize::MAX), PATIENCE_MAX);
    }
}
