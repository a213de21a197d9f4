//! Records with numbers that no run has, and records that were given up in between.

use orchestration::ControlCommand;

use super::*;

/// An entry that reads the wall clock.
fn clock_read(at: Duration, since_epoch: Duration) -> RecordEntry {
    let event = ControlEvent::WallClockRead { since_epoch };
    let input = RecordInput::Event(Box::new(event));
    RecordEntry { at: Timestamp::ZERO + at, input, commands: Vec::new() }
}

#[test]
fn a_load_of_more_than_a_year_is_refused_with_its_place() {
    let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
    // A machine without a battery begins at 1970, and its clock is set a second later.
    let entries = [clock_read(second, day), clock_read(2 * second, 20_000 * day)];
    let folder = recorded(&entries, 256 << 20);
    let error = RecordedLoad::read(&[folder.path().to_owned()]).expect_err("so long a load is refused");
    let place = files(&folder)[0].display().to_string();
    let problem =
        "a time in it is 19999 days after the beginning of the record, and at most 366 days are read";
    let advice = "if the clock of the machine was set meanwhile, remove the segments before this one";
    assert_eq!(error.to_string(), format!("{place}: {problem}; {advice}"));
    // The last day that is read is read whole.
    let entries = [clock_read(second, day), clock_read(2 * second, 366 * day)];
    let folder = recorded(&entries, 256 << 20);
    let load = RecordedLoad::read(&[folder.path().to_owned()]).expect("it is short enough");
    assert_eq!(load.map(|load| load.length), Some(365 * day));
}

#[test]
fn orders_that_were_lost_are_known_behind_the_gap_of_an_anonymous_record() {
    let entries = entries(&calls());
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = RecordWriter::new(RecordSettings {
        names: RecordedNames::Hidden(NameKey::default()),
        ..settings(folder.path(), 256 << 20)
    });
    let gives_order = |entry: &RecordEntry| {
        entry.commands.iter().any(|command| matches!(command, ControlCommand::Order(_)))
    };
    // The entry that gives an order is lost, and the end of the order is not.
    let quarter = entries.len() / 4;
    let lost = entries.iter().skip(quarter).position(gives_order).expect("counts change");
    let (first, rest) = entries.split_at(quarter + lost);
    writer.write(first).expect("the disk has room");
    writer.pass_over(&rest[..1]);
    writer.write(&rest[1..]).expect("the disk has room");
    writer.flush().expect("the disk has room");
    let report = replayed(&folder);
    assert!(report.is_anonymous && report.keyframes == 1 && report.gaps.len() == 1, "{report:?}");
    assert!(report.likeness.compared > Duration::from_secs(800), "{report:?}");
    assert!(report.likeness.share() > 0.97, "{report:?}");
}
