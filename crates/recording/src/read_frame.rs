//! One call of a record, as its reader gives it.

use vocabulary::Timestamp;

use crate::frames::FrameContent;
use crate::outcome::CommandOutcome;

/// A frame with the time at which it was written.
#[derive(Clone, Debug)]
pub(crate) struct ReadFrame {
    pub(crate) at: Timestamp,
    pub(crate) content: FrameContent,
    pub(crate) outcome: CommandOutcome,
}
