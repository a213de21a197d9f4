//! Where does a record begin, and when was that?

use std::io;

use orchestration::ControlEvent;

use crate::frames::FrameContent;
use crate::header::SegmentStart;
use crate::read_frame::ReadFrame;
use crate::reader::{RecordPart, RecordReader};
use crate::record_time::{RecordTime, WallClockReading};

/// The first time that a record says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordBeginning {
    pub(crate) time: RecordTime,
    /// Whether the recorded process has begun then.
    pub(crate) is_of_process: bool,
}

/// Where a record begins; `None` if it never says a time.
pub(crate) fn first_time(mut reader: RecordReader) -> io::Result<Option<RecordBeginning>> {
    let mut first_start = None;
    while let Some(part) = reader.next().map_err(io::Error::other)? {
        let RecordPart::Frame(frame) = part else { continue };
        if let FrameContent::Header(header) = &frame.content {
            first_start.get_or_insert(header.start);
        }
        if let Some(clock) = clock_in(&frame) {
            let is_of_process = first_start == Some(SegmentStart::Empty);
            return Ok(Some(RecordBeginning { time: clock.time_of(frame.at), is_of_process }));
        }
    }
    Ok(None)
}

/// The wall clock as a frame says it; `None` if the frame does not.
pub(crate) fn clock_in(frame: &ReadFrame) -> Option<WallClockReading> {
    match &frame.content {
        FrameContent::Header(header) if !header.wall_clock.is_zero() => {
            Some(WallClockReading::new(frame.at, header.wall_clock))
        }
        FrameContent::Event(event) => match **event {
            ControlEvent::WallClockRead { since_epoch } => Some(WallClockReading::new(frame.at, since_epoch)),
            ControlEvent::Platform(_)
            | ControlEvent::PodSpoke { .. }
            | ControlEvent::ActivatorSpoke { .. }
            | ControlEvent::MetricsAnswered { .. }
            | ControlEvent::LinkChanged { .. }
            | ControlEvent::ZoneRead { .. }
            | ControlEvent::HistoryRestored { .. }
            | ControlEvent::DemandImported { .. } => None,
        },
        FrameContent::Header(_)
        | FrameContent::Keyframe(_)
        | FrameContent::ExactState(_)
        | FrameContent::Advance
        | FrameContent::Unknown => None,
    }
}
