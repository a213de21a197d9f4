//! What a segment says of itself in its first frame.

use std::time::Duration;

use orchestration::{ActivatorChoice, OrchestratorSettings};
use vocabulary::{ReplicaName, Timestamp};

use crate::frame_fault::FrameFault;
use crate::wire::proto::HeaderMessage;

/// The first frame of a segment.
#[derive(Clone, Debug)]
pub struct SegmentHeader {
    /// One greater than the number of the segment before.
    pub number: u64,
    /// Drawn once for each life of an autoscaler.
    pub life: u64,
    /// The autoscaler whose run it is.
    pub owner: ReplicaName,
    /// The version and the executable of the program that wrote it.
    pub build: String,
    /// The time on the axis of that process.
    pub at: Timestamp,
    /// What a reader has to know before it can replay the segment.
    pub start: SegmentStart,
    /// The settings of the orchestrator.
    pub settings: OrchestratorSettings,
    /// The time since the beginning of 1970; zero where no clock was read before.
    pub wall_clock: Duration,
    /// Whether hashes stand in the place of names and addresses.
    pub is_anonymous: bool,
}

/// What a reader has to know before it can replay a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentStart {
    /// Nothing: the autoscaler had just begun.
    Empty,
    /// Nothing: a keyframe follows the header.
    Keyframe,
    /// The segment before, to its end.
    Continued,
    /// Nothing: a keyframe follows. Entries before it are missing, because they could not be written.
    KeyframeAfterGap,
}

impl From<&SegmentHeader> for HeaderMessage {
    fn from(header: &SegmentHeader) -> Self {
        let nanoseconds = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self {
            number: header.number,
            life: header.life,
            owner: header.owner.as_str().to_owned(),
            build: header.build.clone(),
            at: header.at.as_nanos(),
            start: match header.start {
                SegmentStart::Empty => 1,
                SegmentStart::Keyframe => 2,
                SegmentStart::Continued => 3,
                SegmentStart::KeyframeAfterGap => 4,
            },
            release_after: nanoseconds(header.settings.release_after),
            choice: match header.settings.choice {
                ActivatorChoice::All => 1,
                ActivatorChoice::AsManyAsNeeded => 2,
                ActivatorChoice::AllOfWhichSomeShare => 3,
            },
            wall_clock: nanoseconds(header.wall_clock),
            is_anonymous: header.is_anonymous,
        }
    }
}

impl TryFrom<HeaderMessage> for SegmentHeader {
    type Error = FrameFault;
    fn try_from(header: HeaderMessage) -> Result<Self, FrameFault> {
        let unknown = |field, number| FrameFault::BadValue {
            field,
            problem: format!("is {number}, which this program does not know"),
        };
        Ok(Self {
            number: header.number,
            life: header.life,
            owner: ReplicaName::new(&header.owner),
            build: header.build,
            at: Timestamp::from_nanos(header.at),
            start: match header.start {
                1 => SegmentStart::Empty,
                2 => SegmentStart::Keyframe,
                3 => SegmentStart::Continued,
                4 => SegmentStart::KeyframeAfterGap,
                other => return Err(unknown("the start of a segment", other)),
            },
            settings: OrchestratorSettings {
                release_after: Duration::from_nanos(header.release_after),
                choice: match header.choice {
                    1 => ActivatorChoice::All,
                    2 => ActivatorChoice::AsManyAsNeeded,
                    3 => ActivatorChoice::AllOfWhichSomeShare,
                    other => return Err(unknown("the choice of activators", other)),
                },
            },
            wall_clock: Duration::from_nanos(header.wall_clock),
            is_anonymous: header.is_anonymous,
        })
    }
}
