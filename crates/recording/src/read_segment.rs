//! One segment that is read: its header, and its messages with their times.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use prost::Message as _;
use vocabulary::Timestamp;

use crate::block::{BlockFault, begins_as_segment, next_block};
use crate::frame_fault::FrameFault;
use crate::frames::{FrameContent, content_in};
use crate::header::SegmentHeader;
use crate::reports::ReportUnpacker;
use crate::rereading::SettingsRereader;
use crate::segment_files::SegmentFile;
use crate::wire::proto::FrameMessage;

/// A segment that is being read.
#[derive(Debug)]
pub(crate) struct ReadSegment {
    pub(crate) path: PathBuf,
    pub(crate) header: SegmentHeader,
    pub(crate) has_said_header: bool,
    /// The time of the last message.
    pub(crate) at: Timestamp,
    /// What frames of reports build on.
    pub(crate) reports: ReportUnpacker,
    file: BufReader<File>,
    frames: Vec<u8>,
    /// How many bytes of the block are read.
    read: usize,
}

/// A message of a segment with its time and that of the message before.
#[derive(Debug)]
pub(crate) struct SegmentMessage {
    pub(crate) before: Timestamp,
    pub(crate) at: Timestamp,
    pub(crate) frame: FrameMessage,
}

/// Why the next frame of a segment cannot be read.
#[derive(Debug)]
pub(crate) enum SegmentFault {
    Block(BlockFault),
    Frame(FrameFault),
}

impl ReadSegment {
    /// Opens a file and reads its header.
    pub(crate) fn open(file: &SegmentFile) -> Result<Self, BlockFault> {
        let opened = File::open(&file.path).map_err(BlockFault::Unreadable)?;
        let mut reader = BufReader::new(opened);
        if !begins_as_segment(&mut reader)? {
            return Err(BlockFault::Damaged);
        }
        let frames = next_block(&mut reader)?.ok_or(BlockFault::CutOff)?;
        let (first, read) = message_at(&frames, 0).map_err(|_| BlockFault::Damaged)?;
        let content = content_in(first.body, &mut SettingsRereader::default());
        let Ok(FrameContent::Header(header)) = content else { return Err(BlockFault::Damaged) };
        Ok(Self {
            path: file.path.clone(),
            at: header.at,
            header: *header,
            has_said_header: false,
            reports: ReportUnpacker::default(),
            file: reader,
            frames,
            read,
        })
    }

    /// The next message; `None` at the end of the segment.
    pub(crate) fn next_message(&mut self) -> Result<Option<SegmentMessage>, SegmentFault> {
        while self.read >= self.frames.len() {
            let next = next_block(&mut self.file).map_err(SegmentFault::Block)?;
            let Some(frames) = next else { return Ok(None) };
            (self.frames, self.read) = (frames, 0);
        }
        let (frame, read) = message_at(&self.frames, self.read).map_err(SegmentFault::Frame)?;
        self.read = read;
        let before = self.at;
        let at = i128::from(before.as_nanos()) + i128::from(frame.after);
        self.at = Timestamp::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX));
        Ok(Some(SegmentMessage { before, at: self.at, frame }))
    }
}

/// The message at a place of a block, and the place behind it.
fn message_at(frames: &[u8], place: usize) -> Result<(FrameMessage, usize), FrameFault> {
    let mut rest = &frames[place..];
    let message = FrameMessage::decode_length_delimited(&mut rest)
        .map_err(|error| FrameFault::Malformed(error.to_string()))?;
    Ok((message, frames.len() - rest.len()))
}
