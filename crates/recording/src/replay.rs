//! Drives a real orchestrator with what was recorded, and compares what comes out.
//!
//! From the beginning of a process the replay is exact: every call is made again, at its time, and the hash
//! of every command is compared. So it is from a state of the control loop on that the same executable wrote.
//! From a keyframe on, and with settings that are changed, the orchestrator counts its links and orders
//! otherwise and ticks at other instants: events are translated, and the counts that are decided are compared
//! over time.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use orchestration::{
    ControlCommand, ControlEvent, ControlSnapshot, Orchestrator, OrchestratorSettings, PlatformFact,
};
use vocabulary::{PodCount, ReplicaName, RevisionName, Timestamp};

use crate::count_comparison::{CountComparison, CountDivergence, CountLikeness, CountSide};
use crate::exact_keyframe::state_in;
use crate::frame_fault::FrameFault;
use crate::frames::FrameContent;
use crate::header::{SegmentHeader, SegmentStart};
use crate::keyframe::{Keyframe, keyframe_in};
use crate::outcome::CommandOutcome;
use crate::read_frame::ReadFrame;
use crate::reader::{RecordGap, RecordPart, RecordReader};
use crate::record_time::{RecordTime, WallClockReading};
use crate::rereading::SettingsChanges;
use crate::translation::NumberTranslation;

/// Events that come together are handled before what is due is done: so long at most.
const TOGETHER: Duration = Duration::from_millis(50);
/// More rounds than a control loop needs that comes to rest.
const ROUNDS_MAX: usize = 1_000;

/// What the replay of one record found.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// The autoscaler whose run it is, as the record names it last.
    pub owner: Option<ReplicaName>,
    /// The programs that wrote the record.
    pub builds: BTreeSet<String>,
    /// The first time of the record that was replayed.
    pub begins: Option<RecordTime>,
    /// The last time of the record that was replayed.
    pub ends: RecordTime,
    /// How many events and calls were replayed.
    pub calls: u64,
    /// How many decisions came out of all calls.
    pub decisions: u64,
    /// Calls after which the hash of the commands was compared.
    pub compared: u64,
    /// Those of them after which the hashes differ.
    pub differing: u64,
    /// The time of the first call after which the hashes differ.
    pub first_difference: Option<RecordTime>,
    /// Since when every command is compared, up to the end of the record; `None` if the end follows from a
    /// keyframe that every program reads.
    pub exact_from: Option<RecordTime>,
    /// How often the replay began at a keyframe.
    pub keyframes: u32,
    /// How often the replay went on with the whole state of the control loop, which only the executable that
    /// wrote it reads.
    pub states: u32,
    /// Frames of a kind that this program does not know.
    pub unknown_frames: u64,
    /// Whether hashes stand in the place of names, so that commands come in another order and only counts are
    /// compared.
    pub is_anonymous: bool,
    /// The places where frames are missing, or where a state cannot be read.
    pub gaps: Vec<RecordGap>,
    /// Whether the record ends within a block.
    pub is_cut_off: bool,
    /// How long the counts were the same, where hashes cannot be compared.
    pub likeness: CountLikeness,
    /// The first difference of each revision whose counts differ there.
    pub divergences: Vec<CountDivergence>,
}

/// The replay of one record.
#[derive(Debug)]
pub struct RecordReplay {
    reader: RecordReader,
    has_changes: bool,
    until: Option<Duration>,
    /// The executable that replays, as headers name the one that wrote.
    program: Option<String>,
    /// Whether that executable wrote the segment.
    is_own: bool,
    run: Option<ReplayRun>,
    /// The settings of the orchestrator that begins at the keyframe that comes next.
    awaiting_keyframe: Option<OrchestratorSettings>,
    clock: WallClockReading,
    now: Timestamp,
    counts: CountComparison,
    report: ReplayReport,
}

/// An orchestrator that is driven by a record.
#[derive(Debug)]
struct ReplayRun {
    orchestrator: Orchestrator,
    /// Where its numbers are not those of the recorded process.
    translation: Option<NumberTranslation>,
    /// The time of its last call.
    last: Timestamp,
    /// How many decisions came out, and the counts of those since they were taken last.
    decisions: u64,
    counts: Vec<(RevisionName, PodCount)>,
}

impl RecordReplay {
    /// A replay with the settings that were recorded.
    pub fn new(reader: RecordReader) -> Self {
        Self {
            reader,
            has_changes: false,
            until: None,
            program: None,
            is_own: false,
            run: None,
            awaiting_keyframe: None,
            clock: WallClockReading::default(),
            now: Timestamp::ZERO,
            counts: CountComparison::default(),
            report: ReplayReport::default(),
        }
    }

    /// A replay of a reader that reads changed settings: counts are compared, from the beginning on.
    #[must_use]
    pub fn with_changes(self, changes: &SettingsChanges) -> Self {
        Self { has_changes: !changes.is_empty(), ..self }
    }

    /// Goes on exactly wherever a record has the state of the control loop as this executable writes it
    /// ([`crate::build_of_this_program`]).
    #[must_use]
    pub fn by_program(self, build: &str) -> Self {
        Self { program: Some(build.to_owned()), ..self }
    }

    /// Ends behind the last event until then, in time since the beginning of 1970.
    #[must_use]
    pub fn until(self, until: Duration) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Replays the record. An error means that changed settings are refused, or that a keyframe that every
    /// program reads is damaged. A state that cannot be read is one of the gaps of the report.
    pub fn run(&mut self) -> Result<&ReplayReport, FrameFault> {
        while let Some(part) = self.reader.next()? {
            match part {
                RecordPart::Frame(frame) => {
                    if self.is_behind_end(frame.at) {
                        break;
                    }
                    self.take(*frame)?;
                }
                RecordPart::Gap(gap) => {
                    self.report.gaps.push(gap);
                    self.end_run();
                }
            }
        }
        self.counts.pause(self.clock.time_of(self.now));
        self.report.decisions += self.run.as_mut().map_or(0, |run| std::mem::take(&mut run.decisions));
        self.report.is_cut_off = self.reader.is_cut_off();
        self.report.likeness = self.counts.likeness();
        self.report.divergences = self.counts.divergences();
        Ok(&self.report)
    }

    /// Everything that the orchestrator knows at the end of the replay, with the time of that; `None` if
    /// nothing could be replayed.
    pub fn snapshot(&mut self) -> Option<(ControlSnapshot, RecordTime)> {
        let run = self.run.as_mut()?;
        run.orchestrator.sweep(self.now);
        Some((run.orchestrator.snapshot(self.now), self.clock.time_of(self.now)))
    }

    /// The time of the record on both axes.
    pub fn time_of(&self, at: Timestamp) -> RecordTime {
        self.clock.time_of(at)
    }

    fn is_behind_end(&self, at: Timestamp) -> bool {
        self.until.is_some_and(|until| self.report.begins.is_some() && self.clock.time_of(at).wall > until)
    }

    fn end_run(&mut self) {
        self.counts.pause(self.clock.time_of(self.now));
        self.report.decisions += self.run.take().map_or(0, |run| run.decisions);
    }

    fn take(&mut self, frame: ReadFrame) -> Result<(), FrameFault> {
        let ReadFrame { at, content, outcome } = frame;
        self.now = at;
        match content {
            FrameContent::Header(header) => self.begin_segment(*header),
            FrameContent::Keyframe(keyframe) => {
                let keyframe = keyframe_in(*keyframe, self.reader.settings())?;
                if let Some(settings) = self.awaiting_keyframe.take() {
                    self.begin_at(&keyframe, settings);
                }
            }
            FrameContent::Event(event) => {
                if let ControlEvent::WallClockRead { since_epoch } = *event {
                    self.clock = WallClockReading::new(at, since_epoch);
                }
                self.call(Some(*event), &outcome);
            }
            FrameContent::ExactState(state) => self.go_on_exactly(&state),
            FrameContent::Advance => self.call(None, &outcome),
            FrameContent::Unknown => self.report.unknown_frames += 1,
        }
        self.report.ends = self.clock.time_of(at);
        Ok(())
    }

    fn begin_segment(&mut self, header: SegmentHeader) {
        if !header.wall_clock.is_zero() {
            self.clock = WallClockReading::new(header.at, header.wall_clock);
        }
        self.is_own = self.program.as_deref() == Some(header.build.as_str());
        self.report.builds.insert(header.build);
        self.report.owner = Some(header.owner);
        self.report.is_anonymous |= header.is_anonymous;
        match header.start {
            SegmentStart::Empty => {
                self.end_run();
                let is_exact = !self.has_changes && !header.is_anonymous;
                let translation = (!is_exact).then(NumberTranslation::default);
                self.run = Some(ReplayRun::new(header.settings, translation, header.at));
            }
            SegmentStart::Keyframe | SegmentStart::KeyframeAfterGap if self.run.is_none() => {
                self.awaiting_keyframe = Some(header.settings);
            }
            SegmentStart::Keyframe | SegmentStart::KeyframeAfterGap | SegmentStart::Continued => {}
        }
    }

    /// As after a takeover: facts first, then the words of each peer as its link is opened.
    fn begin_at(&mut self, keyframe: &Keyframe, settings: OrchestratorSettings) {
        let (now, time) = (self.now, self.clock.time_of(self.now));
        let mut run = ReplayRun::new(settings, Some(NumberTranslation::from_keyframe(keyframe)), now);
        run.handle(ControlEvent::WallClockRead { since_epoch: time.wall }, now);
        for fact in &keyframe.facts {
            if let PlatformFact::RevisionChanged(facts) = fact {
                self.counts.note(&facts.name, CountSide::Recorded, facts.wanted, time);
                self.counts.note(&facts.name, CountSide::Replayed, facts.wanted, time);
            }
            run.handle(ControlEvent::Platform(fact.clone()), now);
        }
        for history in &keyframe.histories {
            run.handle(history.clone(), now);
        }
        run.settle(now);
        self.run = Some(run);
        self.report.exact_from = None;
        self.report.keyframes += 1;
        self.report.begins.get_or_insert(time);
        self.note_replayed_counts(time);
    }

    /// Goes on with the state that the control loop had here, if this very executable wrote it.
    /// Nothing is gained where the replay is exact, or asks what other settings would have decided.
    fn go_on_exactly(&mut self, bytes: &[u8]) {
        let is_exact = self.run.as_ref().is_some_and(|run| run.translation.is_none());
        if is_exact || !self.is_own || self.has_changes || self.report.is_anonymous {
            return;
        }
        let state = match state_in(bytes) {
            Ok(state) => state,
            // The replay goes on without it, from the keyframe before it, which every program reads.
            Err(fault) => return self.note_unread_state(&fault),
        };
        let orchestrator = Orchestrator::restored(state);
        self.end_run();
        self.awaiting_keyframe = None;
        self.run = Some(ReplayRun::going_on(orchestrator, None, self.now));
        self.report.exact_from = None;
        self.report.states += 1;
    }

    fn note_unread_state(&mut self, fault: &FrameFault) {
        let file = self.reader.present_file().map(Path::to_owned).unwrap_or_default();
        self.report.gaps.push(RecordGap { file, problem: format!("{fault}; that state is left out") });
    }

    /// Makes a recorded call again: of an event, or of what was due.
    fn call(&mut self, event: Option<ControlEvent>, recorded: &CommandOutcome) {
        let (now, time) = (self.now, self.clock.time_of(self.now));
        let Some(run) = &mut self.run else { return };
        self.report.calls += 1;
        self.report.begins.get_or_insert(time);
        if run.translation.is_some() {
            run.call_translated(event, now);
            run.note_recorded(recorded);
            for (revision, count) in &recorded.counts {
                self.counts.note(revision, CountSide::Recorded, *count, time);
            }
            return self.note_replayed_counts(time);
        }
        self.report.exact_from.get_or_insert(time);
        let commands = run.call_exactly(event, now);
        let replayed = CommandOutcome::of(&commands);
        if replayed.is_empty() && recorded.is_empty() {
            return;
        }
        self.report.compared += 1;
        if replayed.commands != recorded.commands {
            self.report.differing += 1;
            self.report.first_difference.get_or_insert(time);
        }
    }

    fn note_replayed_counts(&mut self, time: RecordTime) {
        let counts = self.run.as_mut().map(|run| std::mem::take(&mut run.counts)).unwrap_or_default();
        for (revision, count) in counts {
            self.counts.note(&revision, CountSide::Replayed, count, time);
        }
    }
}

impl ReplayRun {
    fn new(settings: OrchestratorSettings, translation: Option<NumberTranslation>, now: Timestamp) -> Self {
        Self::going_on(Orchestrator::new(settings), translation, now)
    }

    fn going_on(orchestrator: Orchestrator, translation: Option<NumberTranslation>, now: Timestamp) -> Self {
        Self { orchestrator, translation, last: now, decisions: 0, counts: Vec::new() }
    }

    fn call_exactly(&mut self, event: Option<ControlEvent>, now: Timestamp) -> Vec<ControlCommand> {
        match event {
            Some(event) => self.orchestrator.handle(event, now),
            None => self.orchestrator.advance(now),
        }
        self.last = now;
        self.commands()
    }

    fn call_translated(&mut self, event: Option<ControlEvent>, now: Timestamp) {
        self.catch_up(now);
        match event {
            Some(event) => {
                if let Some(event) = self.translation.as_mut().and_then(|known| known.translated(event)) {
                    self.handle(event, now);
                }
            }
            None => self.advance_if_due(now),
        }
        self.last = now;
    }

    fn note_recorded(&mut self, outcome: &CommandOutcome) {
        if let Some(translation) = &mut self.translation {
            translation.note_recorded(outcome);
        }
    }

    /// Does what was due before `now`, at its own times: the recorded process may have had nothing to do
    /// then.
    fn catch_up(&mut self, now: Timestamp) {
        for _ in 0..ROUNDS_MAX {
            let due = self.orchestrator.next_deadline().map(|due| due.max(self.last));
            let acknowledged = self.translation.as_mut().and_then(|known| known.due_acknowledgement(now));
            if let Some((at, event)) = acknowledged {
                self.handle(event, at.max(self.last));
            } else if let Some(due) = due.filter(|&due| due + TOGETHER < now) {
                self.last = due;
                self.orchestrator.advance(due);
                self.follow_up(due);
            } else {
                return;
            }
        }
    }

    /// Does what is due by now, until nothing is.
    fn settle(&mut self, now: Timestamp) {
        for _ in 0..ROUNDS_MAX {
            if self.orchestrator.next_deadline().is_none_or(|due| due > now) {
                return;
            }
            self.orchestrator.advance(now);
            self.follow_up(now);
        }
    }

    fn advance_if_due(&mut self, now: Timestamp) {
        if self.orchestrator.next_deadline().is_some_and(|due| due <= now) {
            self.orchestrator.advance(now);
            self.follow_up(now);
        }
    }

    /// Takes in an event, and the words that are heard because of what follows from it.
    fn handle(&mut self, event: ControlEvent, now: Timestamp) {
        self.orchestrator.handle(event, now);
        self.follow_up(now);
    }

    fn follow_up(&mut self, now: Timestamp) {
        let mut heard = VecDeque::new();
        loop {
            for command in self.commands() {
                if let Some(translation) = &mut self.translation {
                    heard.extend(translation.note_own(&command, now));
                }
            }
            let Some(event) = heard.pop_front() else { return };
            self.orchestrator.handle(event, now);
        }
    }

    /// All commands that wait. Decisions are counted.
    fn commands(&mut self) -> Vec<ControlCommand> {
        let commands: Vec<ControlCommand> = std::iter::from_fn(|| self.orchestrator.next_command()).collect();
        for command in &commands {
            if let ControlCommand::Publish { revision, decision } = command {
                self.decisions += 1;
                if self.translation.is_none() {
                    continue;
                }
                self.counts.extend(decision.wanted.map(|count| (revision.clone(), count)));
            }
        }
        commands
    }
}
