//! Writes a record: what was handled, and what came out.
//!
//! The writer works beside the event loop, which hands over entries and waits for nothing. A block is written
//! when it is large or a second old, a segment ends when it is large or its keyframe is old, and the oldest
//! segments go when there are too many bytes. What cannot be written is given up with its segment; the next
//! segment begins with a keyframe, and the record is whole again from there on.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use orchestration::OrchestratorSettings;
use vocabulary::{ReplicaName, Timestamp};

use crate::entry::RecordEntry;
use crate::frames::{input_out, outcome_out};
use crate::header::{SegmentHeader, SegmentStart};
use crate::hidden_frames::FrameHiding;
use crate::hidden_names::{HiddenNames, RecordedNames};
use crate::keyframe::keyframe_out;
use crate::keyframe_histories::{KeyframeHistories, histories_out};
use crate::known_world::KnownWorld;
use crate::open_segment::OpenSegment;
use crate::outcome::CommandOutcome;
use crate::reports::SteadyCall;
use crate::secrets::SecretHasher;
use crate::segment_files::{create_segment, make_room};
use crate::wire::proto::{FrameBody, OutcomeMessage};

/// How often a keyframe is written, at which a replay can begin.
pub const KEYFRAME_EVERY: Duration = Duration::from_secs(600);
/// A segment of so many bytes ends.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;
/// So many segments at least are in a record, so that removing one leaves most of it.
const SEGMENTS_MIN: u64 = 4;
/// So many states of the control loop would fit into a record; a larger state is not written.
const STATES_MIN: u64 = 16;
/// A disk that was full is tried again after so long.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Which run is recorded, and where.
#[derive(Clone, Debug)]
pub struct RecordSettings {
    /// The folder of the record, which is made. Other records have other folders.
    pub folder: PathBuf,
    /// The most bytes that the record may have.
    pub bytes_max: u64,
    /// The autoscaler whose run it is.
    pub owner: ReplicaName,
    /// The settings of its orchestrator.
    pub orchestrator: OrchestratorSettings,
    /// The version and the executable of the program.
    pub build: String,
    /// Whether names and addresses are written as they are.
    pub names: RecordedNames,
}

/// How many entries are not in the record, and why.
#[derive(Debug, thiserror::Error)]
#[error("{dropped} entries are not recorded")]
pub struct RecordLoss {
    /// The entries that were given up since the writer said so last.
    pub dropped: u64,
    /// Why the segment was given up, if that happened just now.
    #[source]
    pub cause: Option<io::Error>,
}

/// Writes one record; see the module.
#[derive(Debug)]
pub struct RecordWriter {
    settings: RecordSettings,
    secrets: SecretHasher,
    life: u64,
    world: KnownWorld,
    /// Hides names in each frame, if they are to be hidden.
    hiding: Option<FrameHiding>,
    /// What was measured of revisions that predict, for keyframes.
    histories: Option<Box<dyn KeyframeHistories>>,
    segment: Option<OpenSegment>,
    /// When the last keyframe was written, or the record began.
    keyframe_at: Timestamp,
    /// How many bytes of whole segments were written since then: a ring must not be without a keyframe.
    since_keyframe: u64,
    basis: RecordBasis,
    /// No segment is begun before.
    try_again_at: Timestamp,
}

/// What a segment that begins now can build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordBasis {
    /// No entry has come yet.
    Nothing,
    /// All entries so far are recorded.
    WholeRecord,
    /// Entries before it are missing.
    Gap,
}

impl RecordWriter {
    /// A record of an autoscaler that has just begun. Nothing is written before the first entry.
    pub fn new(settings: RecordSettings) -> Self {
        let hiding = match &settings.names {
            RecordedNames::Plain => None,
            RecordedNames::Hidden(key) => Some(FrameHiding::new(HiddenNames::new(key.clone()))),
        };
        Self {
            life: RandomState::new().hash_one(&settings.folder),
            settings,
            secrets: SecretHasher::default(),
            world: KnownWorld::default(),
            hiding,
            histories: None,
            segment: None,
            keyframe_at: Timestamp::ZERO,
            since_keyframe: 0,
            basis: RecordBasis::Nothing,
            try_again_at: Timestamp::ZERO,
        }
    }

    /// Writes the histories of this source into keyframes.
    #[must_use]
    pub fn with_histories(self, source: Box<dyn KeyframeHistories>) -> Self {
        Self { histories: Some(source), ..self }
    }

    /// Writes entries, in the order in which they happened. With an error some are not in the record; a later
    /// call goes on with a new segment.
    pub fn write(&mut self, entries: &[RecordEntry]) -> Result<(), RecordLoss> {
        let mut loss = RecordLoss { dropped: 0, cause: None };
        for entry in entries {
            match self.write_one(entry) {
                Ok(EntryFate::Recorded) => {}
                Ok(EntryFate::GivenUp) => loss.dropped += 1,
                Err(error) => {
                    loss.dropped += self.give_up(entry.at).max(1);
                    loss.cause = Some(error);
                }
            }
            self.world.note(entry);
        }
        if loss.dropped > 0 { Err(loss) } else { Ok(()) }
    }

    /// Takes in entries between which others were lost. They are not recorded: the next segment begins with a
    /// keyframe that knows of them.
    pub fn pass_over(&mut self, entries: &[RecordEntry]) {
        // All before the loss is whole. Where it cannot be written, the segment is given up all the same.
        let _ = self.flush_segment();
        self.segment = None;
        self.basis = RecordBasis::Gap;
        for entry in entries {
            self.note_hidden_orders(entry);
            self.world.note(entry);
        }
    }

    /// Later frames and keyframes name the orders of an entry, whether it is recorded or not.
    fn note_hidden_orders(&mut self, entry: &RecordEntry) {
        if let Some(hiding) = &mut self.hiding {
            hiding.note(&entry.commands);
        }
    }

    /// Writes the frames that wait for more of them.
    pub fn flush(&mut self) -> Result<(), RecordLoss> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        let at = segment.last();
        segment
            .write_frames()
            .map_err(|error| RecordLoss { dropped: self.give_up(at).max(1), cause: Some(error) })
    }

    fn write_one(&mut self, entry: &RecordEntry) -> io::Result<EntryFate> {
        let fate = self.open_for(entry.at);
        // Behind the keyframe that was just written, if one was: it forgets the orders that have ended.
        self.note_hidden_orders(entry);
        if fate? == EntryFate::GivenUp {
            return Ok(EntryFate::GivenUp);
        }
        let mut outcome = outcome_out(&CommandOutcome::of(&entry.commands));
        if let (Some(hiding), Some(outcome)) = (&mut self.hiding, &mut outcome) {
            hiding.hide_outcome(outcome);
        }
        match SteadyCall::of(&entry.input).filter(|_| outcome.as_ref().is_none_or(SteadyCall::takes)) {
            Some(call) => self.write_call(entry.at, call, outcome.as_ref())?,
            None => self.write_frame(entry, outcome)?,
        }
        Ok(EntryFate::Recorded)
    }

    /// Writes a call into the frame of reports, with other ones.
    fn write_call(
        &mut self,
        at: Timestamp,
        mut call: SteadyCall<'_>,
        outcome: Option<&OutcomeMessage>,
    ) -> io::Result<()> {
        if let (Some(hiding), SteadyCall::ActivatorLoads { loads, .. }) = (&mut self.hiding, &mut call) {
            hiding.hide_loads(loads.to_mut());
        }
        self.segment.as_mut().map_or(Ok(()), |segment| segment.push_call(at, &call, outcome))
    }

    fn write_frame(&mut self, entry: &RecordEntry, outcome: Option<OutcomeMessage>) -> io::Result<()> {
        let Some(mut body) = input_out(&entry.input, &self.secrets) else { return Ok(()) };
        if let FrameBody::ExactState(exact) = &body {
            let bytes = u64::try_from(exact.state.len()).unwrap_or(u64::MAX);
            // The names in a state cannot be hidden, and a small record is not to be full of states.
            if self.hiding.is_some() || bytes > self.settings.bytes_max / STATES_MIN {
                return Ok(());
            }
        }
        self.hiding.iter_mut().for_each(|hiding| hiding.hide(&mut body));
        self.segment.as_mut().map_or(Ok(()), |segment| segment.push(entry.at, body, outcome))
    }

    /// Sees to it that there is a segment for an entry of that time, unless it is too early to try again.
    fn open_for(&mut self, now: Timestamp) -> io::Result<EntryFate> {
        if self.segment.as_ref().is_some_and(|segment| self.is_over(segment, now)) {
            self.flush_segment()?;
            let ended = self.segment.take().map_or(0, |segment| segment.bytes());
            self.since_keyframe = self.since_keyframe.saturating_add(ended);
        }
        if self.segment.is_none() {
            if now < self.try_again_at {
                return Ok(EntryFate::GivenUp);
            }
            self.segment = Some(self.begin(now)?);
        }
        Ok(EntryFate::Recorded)
    }

    fn is_over(&self, segment: &OpenSegment, now: Timestamp) -> bool {
        segment.bytes() >= self.segment_bytes_max()
            || now.saturating_since(self.keyframe_at) >= KEYFRAME_EVERY
    }

    fn segment_bytes_max(&self) -> u64 {
        SEGMENT_BYTES_MAX.min(self.settings.bytes_max / SEGMENTS_MIN)
    }

    fn flush_segment(&mut self) -> io::Result<()> {
        self.segment.as_mut().map_or(Ok(()), OpenSegment::write_frames)
    }

    /// A segment whose first frames say what its reader has to know.
    fn begin(&mut self, now: Timestamp) -> io::Result<OpenSegment> {
        let folder = &self.settings.folder;
        make_room(folder, self.segment_bytes_max(), self.settings.bytes_max)?;
        let (named, file) = create_segment(folder)?;
        let is_due = now.saturating_since(self.keyframe_at) >= KEYFRAME_EVERY
            || self.since_keyframe >= self.settings.bytes_max / SEGMENTS_MIN;
        let start = match self.basis {
            RecordBasis::Nothing => SegmentStart::Empty,
            RecordBasis::WholeRecord if is_due => SegmentStart::Keyframe,
            RecordBasis::WholeRecord => SegmentStart::Continued,
            RecordBasis::Gap => SegmentStart::KeyframeAfterGap,
        };
        let mut segment = OpenSegment::begin(file, now)?;
        let header = SegmentHeader {
            number: named.number,
            life: self.life,
            owner: self.settings.owner.clone(),
            build: self.settings.build.clone(),
            at: now,
            start,
            settings: self.settings.orchestrator.clone(),
            wall_clock: self.world.wall_clock.map_or(Duration::ZERO, |clock| clock.time_of(now).wall),
            is_anonymous: self.hiding.is_some(),
        };
        let mut bodies = vec![FrameBody::Header(Box::new((&header).into()))];
        if matches!(start, SegmentStart::Keyframe | SegmentStart::KeyframeAfterGap) {
            let source = self.histories.as_deref();
            let histories = source.map(|source| histories_out(source, self.settings.bytes_max));
            let keyframe = keyframe_out(&self.world, histories.unwrap_or_default(), &self.secrets);
            bodies.push(FrameBody::Keyframe(keyframe));
        }
        for mut body in bodies {
            self.hiding.iter_mut().for_each(|hiding| hiding.hide(&mut body));
            segment.push(now, body, None)?;
        }
        segment.write_frames()?;
        if start != SegmentStart::Continued {
            (self.keyframe_at, self.since_keyframe) = (now, 0);
        }
        self.basis = RecordBasis::WholeRecord;
        Ok(segment)
    }

    /// Returns how many frames were not written yet.
    fn give_up(&mut self, now: Timestamp) -> u64 {
        let waiting = self.segment.take().map_or(0, |segment| segment.waiting());
        self.basis = RecordBasis::Gap;
        self.try_again_at = now + RETRY_AFTER;
        waiting
    }
}

/// What became of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryFate {
    Recorded,
    /// The segment was given up, and none is begun yet.
    GivenUp,
}
