//! Histories in files: written by the minute, cut off, damaged, twice, over days and under a wrong clock.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use forecasting::PastDemand as _;
use proptest::prelude::*;
use scaling::{Event, Multiscaler, PodFact, PodPhase, RevisionOrigin};
use settings::{PredictionSettings, ScalingSpec};
use tempfile::TempDir;
use vocabulary::{
    BootId, Concurrency, Load, Percentage, PodCount, PodId, Reporter, RevisionId, Sample, ScaleUpForward,
    Timestamp,
};

use super::*;

const REVISION: RevisionId = RevisionId(0);
const REPORTER: Reporter = Reporter::Pod(PodId(0));
/// Midnight of a day, in seconds since 1970.
const MIDNIGHT: u64 = 20_003 * DAY_SECONDS;

/// A revision that is measured, whose demand is remembered.
struct MeasuredRevision {
    multiscaler: Multiscaler,
    begun: u64,
    second: u64,
}

impl MeasuredRevision {
    fn beginning_at(begun: u64) -> Self {
        let mut measured = Self { multiscaler: Multiscaler::default(), begun, second: 0 };
        let prediction = PredictionSettings {
            observes_only: false,
            budget: Percentage::clamped(10.0),
            cold_start_worth: Duration::from_mins(20),
            scale_up_forward: ScaleUpForward::Measured,
            bin: Duration::from_mins(1),
        };
        let spec = Arc::new(ScalingSpec { prediction: Some(prediction), ..ScalingSpec::default() });
        let (wanted, origin) = (PodCount::ONE, RevisionOrigin::Found);
        measured.tell(Event::WallClockRead { since_epoch: Duration::from_secs(begun) });
        measured.tell(Event::RevisionChanged { revision: REVISION, spec, wanted, origin });
        let phase = PodPhase::Running;
        let pod = PodFact { pod: PodId(0), phase, is_ready: true, is_reachable: true, is_outdated: false };
        measured.tell(Event::PodsChanged { revision: REVISION, pods: vec![pod] });
        let (boot, history) = (BootId(1), Vec::new());
        measured.tell(Event::ReporterStarted { reporter: REPORTER, boot, current_second: 0, history });
        measured
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_secs(self.second)
    }

    fn tell(&mut self, event: Event) {
        self.multiscaler.handle(event, self.now());
        while self.multiscaler.next_command().is_some() {}
    }

    /// Lives on with so many requests in flight.
    fn live(&mut self, seconds: u64, in_flight: f64) {
        for _ in 0..seconds {
            let load = Load { concurrency: Concurrency::clamped(in_flight), ..Load::default() };
            let sample = Sample { second: self.second, load };
            self.second += 1;
            self.tell(Event::LoadReported { reporter: REPORTER, revision: REVISION, sample });
            self.multiscaler.advance(self.now());
            while self.multiscaler.next_command().is_some() {}
        }
    }

    /// What has come since that second since 1970; all of it without one.
    fn record(&self, since: Option<u64>) -> HistoryRecord {
        let history = self.multiscaler.published_history(REVISION).expect("it is measured");
        let forecast = self.multiscaler.published_forecast(REVISION).map(|forecast| forecast.record());
        let record = since
            .map_or_else(|| history.record(self.now()), |second| history.record_since(second, self.now()));
        record.with_forecast(forecast)
    }

    fn wall_second(&self) -> u64 {
        self.begun + self.second
    }
}

fn name(word: &str) -> RevisionName {
    RevisionName::new("default", "service", word).expect("a name")
}

fn stored(record: HistoryRecord) -> StoredHistory {
    StoredHistory { revision: name("hello"), record }
}

fn opened(folder: &TempDir) -> HistoryFolder {
    HistoryFolder::open(folder.path()).expect("no other process writes there")
}

/// The demand of each minute from midnight on, as a store has it.
fn demand(histories: &PastHistories, minutes: u64) -> Vec<Option<f64>> {
    let history = histories.histories.get(&name("hello"));
    let first = MIDNIGHT / 60;
    let demand = |minute| Some(history?.demand()?.minute(minute)?.mean);
    (first..first + minutes).map(demand).collect()
}

/// Lives for some minutes and writes each of them; the demand of the minute is its number.
fn write_minutes(folder: &mut HistoryFolder, measured: &mut MeasuredRevision, minutes: std::ops::Range<u32>) {
    let mut since = None;
    for minute in minutes {
        measured.live(60, f64::from(minute));
        let record = measured.record(since);
        since = Some(record.end());
        folder.append(&[stored(record)], measured.wall_second()).expect("the disk has room");
    }
}

fn only_file(folder: &TempDir) -> PathBuf {
    let files = fs::read_dir(folder.path()).expect("it is there").flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == EXTENSION)).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn minutes_that_were_written_are_read_and_the_files_are_of_the_user_alone() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
    write_minutes(&mut folder, &mut measured, 1..8);
    let past = folder.read().expect("it is ours");
    assert!(past.faults.is_empty(), "{:?}", past.faults);
    // The last minute was not closed when it was written.
    let known = demand(&past, 7);
    for (minute, mean) in (1..7).zip(&known) {
        let expected = f64::from(minute);
        assert!(mean.is_some_and(|mean| (mean - expected).abs() < 0.5), "{minute}: {known:?}");
    }
    assert_eq!(known[6], None);
    let read = past.histories[&name("hello")].export();
    let whole = measured.record(None);
    assert_eq!((read.end(), read.forecast()), (whole.end(), whole.forecast()));
    let mode = fs::metadata(only_file(&place)).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(folder);
    // The next process begins with a file that has one block, and goes on.
    let mut folder = opened(&place);
    write_minutes(&mut folder, &mut measured, 8..10);
    assert!(demand(&folder.read().expect("it is ours"), 8).iter().all(Option::is_some));
}

#[test]
fn a_block_that_was_written_twice_changes_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
    write_minutes(&mut folder, &mut measured, 1..4);
    let once = folder.read().expect("it is ours").histories[&name("hello")].export();
    let again = stored(measured.record(Some(measured.wall_second() - 60)));
    folder.append(&[again.clone(), again], measured.wall_second()).expect("the disk has room");
    assert_eq!(folder.read().expect("it is ours").histories[&name("hello")].export().end(), once.end());
    assert_eq!(demand(&folder.read().expect("it is ours"), 3).iter().flatten().count(), 2);
}

#[test]
fn a_clock_that_is_put_back_keeps_the_greater_of_what_was_written_twice() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    write_minutes(&mut folder, &mut MeasuredRevision::beginning_at(MIDNIGHT), 1..8);
    // The next process begins while the clock shows an earlier time.
    write_minutes(&mut folder, &mut MeasuredRevision::beginning_at(MIDNIGHT), 5..8);
    let known: Vec<f64> =
        demand(&folder.read().expect("it is ours"), 6).into_iter().map(|mean| mean.unwrap_or(0.0)).collect();
    for (mean, expected) in known.iter().zip([5.0, 6.0, 3.0, 4.0, 5.0, 6.0]) {
        assert!((mean - expected).abs() < 0.5, "{known:?}");
    }
}

#[test]
fn a_day_begins_a_file_and_removed_revisions_are_forgotten_after_fifteen_days() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
    write_minutes(&mut folder, &mut measured, 1..3);
    for day in 1..=14 {
        folder.append(&[], MIDNIGHT + day * DAY_SECONDS).expect("the disk has room");
        assert_eq!(folder.read().expect("it is ours").histories.len(), 1, "day {day}");
    }
    folder.append(&[], MIDNIGHT + 16 * DAY_SECONDS).expect("the disk has room");
    assert!(folder.read().expect("it is ours").histories.is_empty());
    assert_eq!(folder.files().expect("it is ours").len(), FILES_KEPT);
    // A clock that was wrong by years: its file is not read for ever.
    folder.append(&[], MIDNIGHT).expect("the disk has room");
    let days: Vec<u64> = folder.files().expect("it is ours").into_iter().map(|(day, _)| day).collect();
    assert_eq!(days, [MIDNIGHT / DAY_SECONDS]);
}

#[test]
fn only_one_process_writes_and_a_foreign_file_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = opened(&place);
    let error = HistoryFolder::open(place.path()).expect_err("it is locked");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    fs::write(place.path().join("20003.history"), "no histories").expect("the disk has room");
    let past = folder.read().expect("it is ours");
    assert!(past.histories.is_empty(), "{past:?}");
    let [fault] = &past.faults[..] else { panic!("one fault: {:?}", past.faults) };
    assert!(fault.contains("20003.history: it is no file of histories"), "{fault}");
}

/// Damages the block that begins behind so many bytes of a file.
fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("it is ours");
    bytes[at + 20] ^= 1;
    fs::write(path, &bytes).expect("the disk has room");
}

#[test]
fn a_file_that_is_damaged_in_its_first_block_hides_no_older_one() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
    write_minutes(&mut folder, &mut measured, 1..6);
    folder.append(&[], MIDNIGHT + DAY_SECONDS).expect("the disk has room");
    let files = folder.files().expect("it is ours");
    assert_eq!(files.len(), 2, "{files:?}");
    damage(&files[0].1, MAGIC.len());
    let past = folder.read().expect("it is ours");
    assert_eq!(demand(&past, 5).iter().flatten().count(), 4, "{past:?}");
    let [fault] = &past.faults[..] else { panic!("one fault: {:?}", past.faults) };
    assert!(fault.contains("a block is damaged; what stands before that in the file counts"), "{fault}");
    // The next process writes all of it anew, and tells what it could not read.
    drop(folder);
    let lost = opened(&place).append(&[], MIDNIGHT + DAY_SECONDS).expect("the disk has room");
    assert_eq!(lost, past.faults);
    let mended = opened(&place).read().expect("it is ours");
    assert!(mended.faults.is_empty() && demand(&mended, 5) == demand(&past, 5), "{mended:?}");
}

#[test]
fn a_file_that_was_cut_off_in_its_first_block_hides_no_older_one() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    write_minutes(&mut folder, &mut MeasuredRevision::beginning_at(MIDNIGHT), 1..6);
    folder.append(&[], MIDNIGHT + DAY_SECONDS).expect("the disk has room");
    let files = folder.files().expect("it is ours");
    fs::write(&files[0].1, [&MAGIC[..], &[7; 5]].concat()).expect("the disk has room");
    assert_eq!(demand(&folder.read().expect("it is ours"), 5).iter().flatten().count(), 4);
}

#[test]
fn lines_of_what_is_lost_are_told_by_the_next_call_that_succeeds() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    write_minutes(&mut folder, &mut MeasuredRevision::beginning_at(MIDNIGHT), 1..6);
    drop(folder);
    damage(&only_file(&place), MAGIC.len());
    // A folder with the name of a file of days to come cannot be removed as a file: the call fails once the
    // file of the day is written anew.
    let obstacle = place.path().join("99999.history");
    fs::create_dir(&obstacle).expect("the disk has room");
    let mut folder = opened(&place);
    folder.append(&[], MIDNIGHT + 600).expect_err("a folder is no file");
    fs::remove_dir(&obstacle).expect("it is empty");
    let lost = folder.append(&[], MIDNIGHT + 660).expect("the disk has room");
    assert!(lost.iter().any(|line| line.contains("a block is damaged")), "{lost:?}");
    let lost = folder.append(&[], MIDNIGHT + 720).expect("the disk has room");
    assert!(lost.is_empty(), "a line is told once: {lost:?}");
}

#[test]
fn nothing_is_appended_behind_a_block_that_could_not_be_cut_off() {
    let place = tempfile::tempdir().expect("a folder");
    let mut folder = opened(&place);
    let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
    write_minutes(&mut folder, &mut measured, 1..4);
    let path = only_file(&place);
    // Of a file that is open for reading nothing can be written, and nothing can be cut off.
    let present = folder.present.as_mut().expect("it was written to");
    present.file = File::open(&path).expect("it is ours");
    let history = stored(measured.record(None));
    folder.append(&[history], measured.wall_second()).expect_err("it is not open for writing");
    // A part of the block is in the file all the same.
    let mut bytes = fs::read(&path).expect("it is ours");
    bytes.extend([7; 30]);
    fs::write(&path, bytes).expect("the disk has room");
    write_minutes(&mut folder, &mut measured, 4..7);
    let past = folder.read().expect("it is ours");
    assert_eq!((demand(&past, 6).iter().flatten().count(), past.faults.len()), (5, 0), "{past:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_file_that_was_cut_off_or_damaged_gives_what_stands_before(
        at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        is_cut in any::<bool>(),
    ) {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = opened(&place);
        let mut measured = MeasuredRevision::beginning_at(MIDNIGHT);
        write_minutes(&mut folder, &mut measured, 1..6);
        let whole = demand(&folder.read().expect("it is ours"), 5);
        let path = only_file(&place);
        let mut bytes = fs::read(&path).expect("it is ours");
        let at = at.index(bytes.len());
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        fs::write(&path, &bytes).expect("the disk has room");
        let past = folder.read().expect("it is ours");
        let known = demand(&past, 5);
        let count = known.iter().flatten().count();
        prop_assert_eq!(&known[..count], &whole[..count], "what was read is as it was written");
        // The next process writes on, and that is read again.
        drop(folder);
        let mut folder = opened(&place);
        write_minutes(&mut folder, &mut measured, 6..8);
        let again = folder.read().expect("it is ours");
        prop_assert!(demand(&again, 7)[..6].iter().all(Option::is_some), "{again:?}");
    }
}
