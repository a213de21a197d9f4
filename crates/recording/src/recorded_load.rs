//! Which load did a run have that is in a record, and what did it decide?
//!
//! No single request is in a record, but what each pod and each activator measured in each second. All
//! requests of a revision in a second are those that came to an activator and those that came to a pod past
//! every activator. When some of them came is known, because an activator says at once that it holds more. A
//! request takes, on average, what its pods held at once divided by what arrived there (Little's law), waits
//! before an activator not included: those follow from the counts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use orchestration::{ControlEvent, LinkId, PlatformFact, PodFacts};
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, Load, PodHello, PodName, PodState, PodWord, RevisionLoad,
    RevisionName, Timestamp,
};

use crate::frames::FrameContent;
use crate::header::SegmentStart;
use crate::keyframe::{Keyframe, keyframe_in};
use crate::known_presence::KnownPresences;
use crate::last_words::PeerWord;
use crate::outcome::CommandOutcome;
use crate::peers::PeerName;
use crate::read_frame::ReadFrame;
use crate::reader::{RecordGap, RecordPart, RecordReader};
use crate::record_beginning::{RecordBeginning, clock_in, first_time};
use crate::record_time::{RecordTime, WallClockReading};
use crate::recorded_revision::RecordedRevision;
use crate::rereading::SettingsChanges;
use crate::seen_seconds::SeenSeconds;

const SECOND: Duration = Duration::from_secs(1);
/// A load has a number for each second of its record: 126 MB of a year and a Service. A record that tells of
/// more time is none, or its machine had no right time when it began.
const DAYS_MAX: u64 = 366;
const SECONDS_PER_DAY: u64 = 86_400;

/// The loads and the counts of a recorded run.
#[derive(Clone, Debug, Default)]
pub struct RecordedLoad {
    /// When the record begins, as a time since the beginning of 1970.
    pub begins: Duration,
    /// How long before the record the running second of the process's clock began. Activators close their
    /// seconds with those of the clock, so the seconds of all revisions are counted from there.
    pub past_second: Duration,
    /// Whether the autoscaler begins with the record; otherwise its first part is missing.
    pub begins_with_autoscaler: bool,
    /// How much time the record tells of.
    pub length: Duration,
    /// What is known of each revision.
    pub revisions: BTreeMap<RevisionName, RecordedRevision>,
    /// The places where a part of the record is missing; nothing is known to have arrived there.
    pub gaps: Vec<RecordGap>,
    /// When autoscalers ended and began again.
    pub restarts: Vec<RecordedRestart>,
}

/// Another process of an autoscaler, in the place of one whose record has ended. Times are those since the
/// beginning of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRestart {
    /// The last time of the former process.
    pub ended: Duration,
    /// The first time of the next one.
    pub began: Duration,
}

impl RecordedLoad {
    /// Reads the records of all autoscalers of one run. `None` if none of them says when it begins.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read, a keyframe that no program has written, or a time that is 366 days or
    /// more after the beginning of the record.
    pub fn read(folders: &[PathBuf]) -> io::Result<Option<Self>> {
        let mut beginning: Option<RecordBeginning> = None;
        for folder in folders {
            let found = [beginning, first_time(opened(folder)?)?];
            beginning = found.into_iter().flatten().min_by_key(|beginning| beginning.time.wall);
        }
        let Some(RecordBeginning { time: RecordTime { at, wall }, is_of_process }) = beginning else {
            return Ok(None);
        };
        let load = Self {
            begins: wall,
            past_second: at.saturating_since(Timestamp::from_secs(at.whole_secs())),
            begins_with_autoscaler: is_of_process,
            ..Self::default()
        };
        let mut collector = LoadCollector { load, ..LoadCollector::default() };
        for folder in folders {
            collector.take_record(folder)?;
        }
        let mut load = collector.load;
        for revision in load.revisions.values_mut() {
            revision.finish();
        }
        Ok(Some(load))
    }
}

fn opened(folder: &Path) -> io::Result<RecordReader> {
    RecordReader::open(folder, SettingsChanges::default())
}

fn too_late(days: u64, reader: &RecordReader) -> io::Error {
    let file = reader.present_file().map_or_else(String::new, |file| format!("{}: ", file.display()));
    io::Error::other(format!(
        "{file}a time in it is {days} days after the beginning of the record, and at most {DAYS_MAX} days \
         are read; if the clock of the machine was set meanwhile, remove the segments before this one"
    ))
}

/// Takes in the records of a run, frame by frame.
#[derive(Debug, Default)]
struct LoadCollector {
    load: RecordedLoad,
    clock: WallClockReading,
    /// The time of the present frame, since the beginning of 1970.
    now: Duration,
    links: BTreeMap<LinkId, ReportingPeer>,
    seen: BTreeMap<(PeerName, BootId), SeenSeconds>,
    presences: KnownPresences,
    /// The last time of a process, until the next one says when it begins.
    process_ended: Option<Duration>,
    pods: BTreeMap<PodName, PodOfRecord>,
    /// Whether the platform has told what was there when the autoscaler began.
    is_synced: bool,
}

/// The peer of a link, and its present start.
#[derive(Clone, Debug)]
struct ReportingPeer {
    peer: PeerName,
    boot: BootId,
}

#[derive(Clone, Debug)]
struct PodOfRecord {
    revision: RevisionName,
    start: StartOfRecord,
}

/// How far the start of a pod has come, as far as it is recorded.
#[derive(Clone, Copy, Debug)]
enum StartOfRecord {
    /// It was there when the record began, or is ready: there is nothing to measure.
    Over,
    /// It was told first then, which is when the platform took its order.
    Since(Duration),
}

/// One completed second of a reporter.
#[derive(Clone, Copy, Debug)]
struct ReportedSecond {
    number: u64,
    /// How many seconds of the reporter have ended since.
    age: u64,
}

impl ReportedSecond {
    fn just_ended(number: u64) -> Self {
        Self { number, age: 0 }
    }

    /// A past second that a reporter repeats in its hello, while its second `current` runs.
    fn repeated(number: u64, current: u64) -> Self {
        Self { number, age: current.saturating_sub(number).saturating_sub(1) }
    }
}

impl LoadCollector {
    fn take_record(&mut self, folder: &Path) -> io::Result<()> {
        let mut reader = opened(folder)?;
        self.clock = WallClockReading::default();
        (self.now, self.process_ended) = (Duration::ZERO, None);
        while let Some(part) = reader.next().map_err(io::Error::other)? {
            match part {
                RecordPart::Gap(gap) => self.load.gaps.push(gap),
                RecordPart::Frame(frame) => self.take(*frame, &mut reader)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, frame: ReadFrame, reader: &mut RecordReader) -> io::Result<()> {
        if let FrameContent::Header(header) = &frame.content
            && header.start == SegmentStart::Empty
        {
            self.process_ended = self.now.checked_sub(self.load.begins);
            self.links.clear();
            self.is_synced = false;
        }
        let clock = clock_in(&frame);
        self.clock = clock.unwrap_or(self.clock);
        let ReadFrame { at, content, outcome } = frame;
        self.reach(at).map_err(|days| too_late(days, reader))?;
        if let Some(ended) = clock.and_then(|_| self.process_ended.take()) {
            let began = self.now.saturating_sub(self.load.begins).max(ended);
            self.load.restarts.push(RecordedRestart { ended, began });
        }
        match content {
            FrameContent::Keyframe(keyframe) => {
                let keyframe = keyframe_in(*keyframe, reader.settings()).map_err(io::Error::other)?;
                self.note_keyframe(&keyframe);
            }
            FrameContent::Event(event) => self.note_event(*event),
            FrameContent::Header(_)
            | FrameContent::ExactState(_)
            | FrameContent::Advance
            | FrameContent::Unknown => {}
        }
        self.note_outcome(outcome);
        Ok(())
    }

    /// An error is how many days after the beginning of the record the time is, where those are too many.
    fn reach(&mut self, at: Timestamp) -> Result<(), u64> {
        self.now = self.clock.time_of(at).wall;
        let passed = self.now.saturating_sub(self.load.begins);
        let days = passed.as_secs() / SECONDS_PER_DAY;
        if days >= DAYS_MAX {
            return Err(days);
        }
        self.load.length = self.load.length.max(passed);
        Ok(())
    }

    fn note_outcome(&mut self, outcome: CommandOutcome) {
        for (link, peer) in outcome.opened {
            self.links.insert(link, ReportingPeer { peer, boot: BootId::default() });
        }
        let at = self.now.saturating_sub(self.load.begins);
        for (revision, count) in outcome.counts {
            self.revision(&revision).note_count(at, count);
        }
    }

    /// What an owner that takes over finds. Its pods may have been ready for long.
    fn note_keyframe(&mut self, keyframe: &Keyframe) {
        self.is_synced = false;
        for fact in &keyframe.facts {
            self.note_fact(fact);
        }
        self.is_synced = true;
        self.links.clear();
        for (link, peer) in &keyframe.links {
            self.links.insert(*link, ReportingPeer { peer: peer.clone(), boot: BootId::default() });
            for word in keyframe.last_words.of(peer) {
                match word {
                    PeerWord::Pod(word) => self.pod_spoke(*link, &word),
                    PeerWord::Activator(word) => self.activator_spoke(*link, &word),
                }
            }
        }
    }

    fn note_event(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Platform(fact) => self.note_fact(&fact),
            ControlEvent::PodSpoke { link, word } => self.pod_spoke(link, &word),
            ControlEvent::ActivatorSpoke { link, word } => {
                self.activator_spoke(link, &word);
                self.note_presence(link, &word);
            }
            ControlEvent::MetricsAnswered { .. }
            | ControlEvent::LinkChanged { .. }
            | ControlEvent::WallClockRead { .. }
            | ControlEvent::ZoneRead { .. }
            | ControlEvent::HistoryRestored { .. }
            | ControlEvent::DemandImported { .. } => {}
        }
    }

    fn note_fact(&mut self, fact: &PlatformFact) {
        match fact {
            PlatformFact::PodsChanged { revision, pods } => self.note_pods(revision, pods),
            PlatformFact::Synced => self.is_synced = true,
            PlatformFact::ConfigChanged(_)
            | PlatformFact::ProblemsChanged { .. }
            | PlatformFact::OwnershipChanged(_)
            | PlatformFact::RevisionChanged(_)
            | PlatformFact::RevisionRemoved(_)
            | PlatformFact::RevisionGivenBack(_)
            | PlatformFact::PodFailed { .. }
            | PlatformFact::PodKilled { .. }
            | PlatformFact::ActivatorsChanged(_)
            | PlatformFact::RouteFound { .. }
            | PlatformFact::OrderEnded { .. } => {}
        }
    }

    fn note_pods(&mut self, revision: &RevisionName, pods: &[PodFacts]) {
        let start = if self.is_synced { StartOfRecord::Since(self.now) } else { StartOfRecord::Over };
        for pod in pods {
            let new = || PodOfRecord { revision: revision.clone(), start };
            self.pods.entry(pod.name.clone()).or_insert_with(new);
        }
    }

    fn pod_spoke(&mut self, link: LinkId, word: &PodWord) {
        match word {
            PodWord::Hello(PodHello { boot, state, current_second, history, .. }) => {
                self.note_boot(link, *boot);
                for sample in history {
                    let second = ReportedSecond::repeated(sample.second, *current_second);
                    self.note_pod_load(link, second, &sample.load);
                }
                self.note_state(link, *state);
            }
            PodWord::Load { sample, .. } => {
                self.note_pod_load(link, ReportedSecond::just_ended(sample.second), &sample.load);
            }
            PodWord::State { state, .. } => self.note_state(link, *state),
            PodWord::Present(_) | PodWord::SettingsAcknowledged(_) | PodWord::Adopted(_) => {}
        }
    }

    fn activator_spoke(&mut self, link: LinkId, word: &ActivatorWord) {
        match word {
            ActivatorWord::Hello(ActivatorHello { boot, current_second, history, .. }) => {
                self.note_boot(link, *boot);
                for (number, loads) in history {
                    let second = ReportedSecond::repeated(*number, *current_second);
                    self.note_activator_loads(link, second, loads);
                }
            }
            ActivatorWord::Loads { second, loads } => {
                self.note_activator_loads(link, ReportedSecond::just_ended(*second), loads);
            }
            ActivatorWord::Present { .. }
            | ActivatorWord::Acknowledged { .. }
            | ActivatorWord::Emptied { .. }
            | ActivatorWord::Draining => {}
        }
    }

    /// That an activator holds more than before tells when requests have arrived.
    fn note_presence(&mut self, link: LinkId, word: &ActivatorWord) {
        let Some(ReportingPeer { peer, .. }) = self.links.get(&link) else { return };
        let arrivals = self.presences.hear(peer, word, self.now.saturating_sub(self.load.begins));
        if let ActivatorWord::Present { revision, .. } = word {
            self.revision(revision).known_arrivals.extend(arrivals);
        }
    }

    fn note_boot(&mut self, link: LinkId, boot: BootId) {
        if let Some(peer) = self.links.get_mut(&link) {
            peer.boot = boot;
        }
    }

    fn note_state(&mut self, link: LinkId, state: PodState) {
        let Some(ReportingPeer { peer: PeerName::Pod(name), .. }) = self.links.get(&link) else { return };
        let Some(pod) = self.pods.get_mut(name).filter(|_| state == PodState::Ready) else { return };
        if let StartOfRecord::Since(ordered) = std::mem::replace(&mut pod.start, StartOfRecord::Over) {
            let revision = pod.revision.clone();
            let took = self.now.saturating_sub(ordered);
            self.revision(&revision).start_ups.push(took);
        }
    }

    fn note_pod_load(&mut self, link: LinkId, second: ReportedSecond, load: &Load) {
        let Some(ReportingPeer { peer: PeerName::Pod(name), .. }) = self.links.get(&link) else { return };
        let Some(revision) = self.pods.get(name).map(|pod| pod.revision.clone()) else { return };
        let Some(place) = self.place_of(link, second) else { return };
        let direct = load.request_rate.value() - load.proxied_request_rate.value();
        let revision = self.revision(&revision);
        revision.note_arrivals(place, direct.max(0.0));
        revision.note_work(place, load.concurrency.value(), load.request_rate.value());
    }

    fn note_activator_loads(&mut self, link: LinkId, second: ReportedSecond, loads: &[RevisionLoad]) {
        let Some(place) = self.place_of(link, second) else { return };
        for RevisionLoad { revision, load, .. } in loads {
            self.revision(revision).note_arrivals(place, load.request_rate.value());
        }
    }

    /// The second of the record that is the nearest to that of the reporter; `None` if it was before the
    /// record, or is counted already.
    fn place_of(&mut self, link: LinkId, second: ReportedSecond) -> Option<usize> {
        let ReportingPeer { peer, boot } = self.links.get(&link)?.clone();
        if !self.seen.entry((peer, boot)).or_default().insert(second.number) {
            return None;
        }
        let ended = self.now.checked_sub(Duration::from_secs(second.age))?;
        let since = ended.checked_sub(self.load.begins)? + self.load.past_second;
        let after = since.checked_sub(SECOND / 2)?;
        usize::try_from(after.as_secs()).ok()
    }

    fn revision(&mut self, name: &RevisionName) -> &mut RecordedRevision {
        self.load.revisions.entry(name.clone()).or_default()
    }
}
