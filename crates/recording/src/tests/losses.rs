//! Entries that cannot be written, or that are lost on their way to the writer.

use super::*;

#[test]
fn entries_that_are_lost_begin_a_new_segment_with_a_keyframe() {
    let entries = entries(&calls());
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = RecordWriter::new(settings(folder.path(), 256 << 20));
    let (first, rest) = entries.split_at(entries.len() / 4);
    let (lost, rest) = rest.split_at(50);
    writer.write(first).expect("the disk has room");
    writer.flush().expect("the disk has room");
    writer.pass_over(lost);
    writer.write(rest).expect("the disk has room");
    writer.flush().expect("the disk has room");
    let report = replayed(&folder);
    assert_eq!((report.differing, report.keyframes), (0, 1), "{report:?}");
    let [gap] = report.gaps.as_slice() else { panic!("one gap: {:?}", report.gaps) };
    assert_eq!(gap.problem, "entries before the segment were not written");
}

#[test]
fn a_folder_that_cannot_be_written_loses_entries_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let occupied = folder.path().join("record");
    fs::write(&occupied, "a file").expect("the disk has room");
    let entries = entries(&calls()[..200]);
    let mut writer = RecordWriter::new(settings(&occupied, 256 << 20));
    let loss = writer.write(&entries).expect_err("it is no folder");
    assert_eq!((loss.dropped, loss.cause.is_some()), (200, true));
    assert_eq!(loss.to_string(), "200 entries are not recorded");
}
