//! Reads a record: its frames in their order, and the places where some are missing.
//!
//! Nothing that a file says is believed before its check number: a record may come from a machine that lost
//! its power, or whose disk was full. Where frames are missing, the reader goes on with the next segment that
//! can be replayed without them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::block::BlockFault;
use crate::frame_fault::FrameFault;
use crate::frames::{FrameContent, content_in, outcome_in};
use crate::header::{SegmentHeader, SegmentStart};
use crate::outcome::CommandOutcome;
use crate::read_frame::ReadFrame;
use crate::read_segment::{ReadSegment, SegmentFault, SegmentMessage};
use crate::rereading::{SettingsChanges, SettingsRereader};
use crate::segment_files::{SegmentFile, segments_of};
use crate::wire::proto::FrameBody;

/// The next part of a record.
#[derive(Debug)]
pub(crate) enum RecordPart {
    Frame(Box<ReadFrame>),
    /// Frames are missing here; what follows begins with a header.
    Gap(RecordGap),
}

/// A place where frames are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordGap {
    /// The segment in which, or before which, frames are missing.
    pub file: PathBuf,
    /// The reason, as a person reads it behind the name of the file.
    pub problem: String,
}

impl fmt::Display for RecordGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.file.display(), self.problem)
    }
}

/// Reads one record; see the module.
#[derive(Debug)]
pub struct RecordReader {
    files: VecDeque<SegmentFile>,
    segment: Option<ReadSegment>,
    /// The segment that was read before, and whether it was read to its end.
    former: Option<FormerSegment>,
    settings: SettingsRereader,
    has_changes: bool,
    /// Gaps that were found on the way to the present segment.
    gaps: VecDeque<RecordGap>,
    /// The calls that come next: a frame of reports has many.
    frames: VecDeque<ReadFrame>,
}

#[derive(Debug)]
struct FormerSegment {
    number: u64,
    life: u64,
    end: SegmentEnd,
}

/// How the reading of a segment ended.
#[derive(Debug)]
enum SegmentEnd {
    Whole,
    /// The program was ended, or what it wrote did not reach the disk.
    CutOff(RecordGap),
    /// A gap was said already.
    GivenUp,
}

impl RecordReader {
    /// Opens the record of one autoscaler: a folder of segments. Settings that are changed are read in the
    /// place of the recorded ones.
    pub fn open(folder: &Path, changes: SettingsChanges) -> io::Result<Self> {
        Ok(Self {
            files: segments_of(folder)?.into(),
            segment: None,
            former: None,
            has_changes: !changes.is_empty(),
            settings: SettingsRereader::new(changes),
            gaps: VecDeque::new(),
            frames: VecDeque::new(),
        })
    }

    /// Whether the folder holds no segment.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.segment.is_none()
    }

    /// Whether the last segment ends within a block, because its program was killed.
    pub fn is_cut_off(&self) -> bool {
        self.former.as_ref().is_some_and(|former| matches!(former.end, SegmentEnd::CutOff(_)))
    }

    /// The segment of the frame that was read last; `None` before the first one and between two segments.
    pub(crate) fn present_file(&self) -> Option<&Path> {
        self.segment.as_ref().map(|segment| segment.path.as_path())
    }

    /// Leaves out the oldest segments.
    pub fn skip_segments(&mut self, number: usize) {
        self.files.drain(..number.min(self.files.len()));
    }

    /// The settings reader, for keyframes.
    pub(crate) fn settings(&mut self) -> &mut SettingsRereader {
        &mut self.settings
    }

    /// The next part; `None` at the end of the record. An error means that changed settings are refused.
    pub(crate) fn next(&mut self) -> Result<Option<RecordPart>, FrameFault> {
        loop {
            if let Some(gap) = self.gaps.pop_front() {
                return Ok(Some(RecordPart::Gap(gap)));
            }
            if let Some(frame) = self.frames.pop_front() {
                return Ok(Some(RecordPart::Frame(Box::new(frame))));
            }
            let Some(segment) = &mut self.segment else {
                if self.open_next() {
                    continue;
                }
                return Ok(None);
            };
            if !segment.has_said_header {
                segment.has_said_header = true;
                let content = FrameContent::Header(Box::new(segment.header.clone()));
                let frame = ReadFrame { at: segment.at, content, outcome: CommandOutcome::default() };
                return Ok(Some(RecordPart::Frame(Box::new(frame))));
            }
            match segment.next_message() {
                Ok(Some(message)) => match self.read(message) {
                    Ok(()) => {}
                    Err(fault) if self.has_changes && is_refusal(&fault) => return Err(fault),
                    Err(fault) => self.give_segment_up(&fault.to_string()),
                },
                Ok(None) => self.end_segment(SegmentEnd::Whole),
                Err(SegmentFault::Block(BlockFault::CutOff)) => {
                    let gap = RecordGap { file: segment.path.clone(), problem: CUT_OFF.to_owned() };
                    self.end_segment(SegmentEnd::CutOff(gap));
                }
                Err(SegmentFault::Block(fault)) => self.give_segment_up(&with_cause(&fault)),
                Err(SegmentFault::Frame(fault)) => self.give_segment_up(&fault.to_string()),
            }
        }
    }

    /// Reads a message into the frames that come next.
    fn read(&mut self, message: SegmentMessage) -> Result<(), FrameFault> {
        let SegmentMessage { before, at, frame } = message;
        match (frame.body, &mut self.segment) {
            (Some(FrameBody::Reports(reports)), Some(segment)) => {
                self.frames.extend(segment.reports.unpack(&reports, before, at)?);
            }
            (body, _) => {
                let content = content_in(body, &mut self.settings)?;
                self.frames.push_back(ReadFrame { at, content, outcome: outcome_in(frame.outcome)? });
            }
        }
        Ok(())
    }

    fn give_segment_up(&mut self, problem: &str) {
        if let Some(segment) = &self.segment {
            let problem = format!("{problem}; what follows in the segment is left out");
            self.gaps.push_back(RecordGap { file: segment.path.clone(), problem });
        }
        self.end_segment(SegmentEnd::GivenUp);
    }

    fn end_segment(&mut self, end: SegmentEnd) {
        self.former = self.segment.take().map(|segment| FormerSegment {
            number: segment.header.number,
            life: segment.header.life,
            end,
        });
    }

    /// Opens the next segment that can be replayed; false if there is none.
    fn open_next(&mut self) -> bool {
        while let Some(file) = self.files.pop_front() {
            let path = file.path.clone();
            match ReadSegment::open(&file) {
                Ok(segment) => {
                    if self.can_begin(&segment) {
                        self.segment = Some(segment);
                        return true;
                    }
                }
                Err(fault) => {
                    let problem = format!("{}; the segment is left out", with_cause(&fault));
                    self.gaps.push_back(RecordGap { file: path, problem });
                    self.former = None;
                }
            }
        }
        // What was written last was cut off by the end of the program.
        !self.gaps.is_empty()
    }

    /// Whether a segment can be replayed after the former one. Notes what is missing between them.
    fn can_begin(&mut self, segment: &ReadSegment) -> bool {
        let SegmentHeader { number, life, start, .. } = segment.header;
        let former = self.former.take();
        let follows = former.as_ref().is_some_and(|former| {
            former.number + 1 == number && former.life == life && matches!(former.end, SegmentEnd::Whole)
        });
        let missing = match former {
            // Another life of the autoscaler: the end of its former life is as it is.
            Some(_) if start == SegmentStart::Empty => None,
            Some(FormerSegment { end: SegmentEnd::CutOff(gap), .. }) => Some(gap),
            Some(FormerSegment { number: before, .. }) if before + 1 < number => Some(RecordGap {
                file: segment.path.clone(),
                problem: format!("the segments between {before:08} and {number:08} are missing"),
            }),
            Some(FormerSegment { .. }) if start == SegmentStart::KeyframeAfterGap => Some(RecordGap {
                file: segment.path.clone(),
                problem: "entries before the segment were not written".to_owned(),
            }),
            None | Some(FormerSegment { .. }) => None,
        };
        self.gaps.extend(missing);
        match start {
            SegmentStart::Empty | SegmentStart::Keyframe | SegmentStart::KeyframeAfterGap => true,
            SegmentStart::Continued if follows => true,
            SegmentStart::Continued => {
                let problem = "the segment goes on from one that is not there, and is left out".to_owned();
                self.gaps.push_back(RecordGap { file: segment.path.clone(), problem });
                false
            }
        }
    }
}

const CUT_OFF: &str = "the file ends within a block; what is whole before that is read";

fn is_refusal(fault: &FrameFault) -> bool {
    match fault {
        FrameFault::SettingsRefused { .. } => true,
        FrameFault::Malformed(_) | FrameFault::Missing { .. } | FrameFault::BadValue { .. } => false,
    }
}

fn with_cause(fault: &BlockFault) -> String {
    match fault {
        BlockFault::Unreadable(error) => format!("{fault}: {error}"),
        BlockFault::CutOff | BlockFault::Damaged => fault.to_string(),
    }
}
