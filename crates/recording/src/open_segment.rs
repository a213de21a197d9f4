//! One segment that is written: frames are gathered into blocks, and reports into frames.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use prost::Message as _;
use vocabulary::Timestamp;

use crate::block::{MAGIC, block_of};
use crate::reports::{ReportPacker, SteadyCall};
use crate::wire::proto::{FrameBody, FrameMessage, OutcomeMessage};

/// Frames of so many bytes are a block.
const BLOCK_BYTES: usize = 64 << 10;
/// A process that is killed loses so much at most.
const BLOCK_AGE_MAX: Duration = Duration::from_secs(1);

/// A segment that is being written.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    file: File,
    written: u64,
    /// The time of the last frame that was encoded.
    framed: Timestamp,
    /// The time of the last call or frame, which may wait in the reports.
    last: Timestamp,
    /// Frames that are not written yet.
    frames: Vec<u8>,
    /// Calls behind all frames, which have no frame yet.
    reports: ReportPacker,
    /// How many frames and calls are not written yet, and since when there are some.
    waiting: u64,
    since: Timestamp,
}

impl OpenSegment {
    /// Begins the file of a segment whose first frame is of this time.
    pub(crate) fn begin(mut file: File, now: Timestamp) -> io::Result<Self> {
        file.write_all(&MAGIC)?;
        Ok(Self {
            file,
            written: u64::try_from(MAGIC.len()).unwrap_or_default(),
            framed: now,
            last: now,
            frames: Vec::new(),
            reports: ReportPacker::default(),
            waiting: 0,
            since: now,
        })
    }

    /// The time of the last call or frame.
    pub(crate) fn last(&self) -> Timestamp {
        self.last
    }

    /// How many bytes the segment has, with those that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.saturating_add(u64::try_from(self.waiting_bytes()).unwrap_or(u64::MAX))
    }

    /// How many frames and calls are not written yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Adds a frame behind all that was added before.
    pub(crate) fn push(
        &mut self,
        at: Timestamp,
        body: FrameBody,
        outcome: Option<OutcomeMessage>,
    ) -> io::Result<()> {
        self.frame_reports();
        self.note_waiting(at);
        self.last = at;
        self.encode(body, outcome);
        self.write_if_due(at)
    }

    /// Adds a call to the frame of reports.
    pub(crate) fn push_call(
        &mut self,
        at: Timestamp,
        call: &SteadyCall<'_>,
        outcome: Option<&OutcomeMessage>,
    ) -> io::Result<()> {
        self.note_waiting(at);
        self.reports.push(self.last, at, call, outcome);
        self.last = at;
        self.write_if_due(at)
    }

    /// Writes all that waits, as one block.
    pub(crate) fn write_frames(&mut self) -> io::Result<()> {
        self.frame_reports();
        if self.frames.is_empty() {
            return Ok(());
        }
        let block = block_of(&self.frames);
        self.file.write_all(&block)?;
        self.frames.clear();
        self.waiting = 0;
        self.written = self.written.saturating_add(u64::try_from(block.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn note_waiting(&mut self, at: Timestamp) {
        if self.waiting == 0 {
            self.since = at;
        }
        self.waiting += 1;
    }

    fn write_if_due(&mut self, at: Timestamp) -> io::Result<()> {
        let is_due = self.waiting_bytes() >= BLOCK_BYTES || at.saturating_since(self.since) >= BLOCK_AGE_MAX;
        if is_due { self.write_frames() } else { Ok(()) }
    }

    fn waiting_bytes(&self) -> usize {
        self.frames.len() + self.reports.size()
    }

    /// Ends the frame of the calls that wait, if some do. Its time is that of the last one.
    fn frame_reports(&mut self) {
        if let Some(reports) = self.reports.take() {
            self.encode(FrameBody::Reports(reports), None);
        }
    }

    /// Encodes a frame of the last time.
    fn encode(&mut self, body: FrameBody, outcome: Option<OutcomeMessage>) {
        let after = nanoseconds(self.last).saturating_sub(nanoseconds(self.framed));
        self.framed = self.last;
        let frame = FrameMessage { after, body: Some(body), outcome };
        frame.encode_length_delimited(&mut self.frames).expect("a growing buffer has room");
    }
}

/// A time of any process fits: 292 years.
fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}
