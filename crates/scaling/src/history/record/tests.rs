//! Records that were changed after they were written, with the check number of what they are now.

use proptest::prelude::*;

use super::*;

/// Why a record is refused that was changed and then given the right check number.
fn refused(change: impl FnOnce(&mut HistoryRecord)) -> String {
    let mut record = RevisionHistory::beginning_at(500).export();
    change(&mut record);
    record.check = record.content_hash();
    RevisionHistory::restore(record).expect_err("it was changed").to_string()
}

fn rows(first: u64, rows: u64, bytes: &[u8]) -> RowsRecord {
    let block = RowBlockRecord { first, rows, bytes: bytes.to_vec() };
    RowsRecord { blocks: vec![block], repeats: 0 }
}

#[test]
fn a_fault_is_told_with_its_level_block_and_byte() {
    assert_eq!(
        refused(|record| record.seconds = rows(10, 1, &[0x80])),
        "the history is damaged in its seconds, block 0, byte 0: the bytes end within a row"
    );
    assert_eq!(
        refused(|record| record.seconds = rows(10, 1, &[0x80, 0x40])),
        "the history is damaged in its seconds, block 0, byte 2: a row changes a number that no row has"
    );
    assert_eq!(
        refused(|record| record.hours.repeats = 3),
        "the history is damaged in its hours, block 0, byte 0: the number of rows is not the one that \
         the block gives"
    );
    assert_eq!(
        refused(|record| record.minutes = rows(9, 1, &[0, 1])),
        "the history is damaged in its minutes, block 0, byte 0: its rows end behind the record"
    );
    assert_eq!(
        refused(|record| record.minute.numbers = vec![1]),
        "the history is damaged: the open minute has bytes or numbers that none can have"
    );
}

/// Rows of one level of a record, whatever they say.
fn any_rows() -> impl Strategy<Value = RowsRecord> {
    let bytes = prop::collection::vec(any::<u8>(), 0..48);
    (0_u64..2000, 0_u64..40, bytes, 0_u32..3).prop_map(|(first, rows, bytes, repeats)| {
        let block = RowBlockRecord { first, rows, bytes };
        RowsRecord { blocks: vec![block], repeats }
    })
}

/// Demand of one day from a minute on, the same byte in each minute; perhaps a byte too much.
fn any_demand() -> impl Strategy<Value = DemandRecord> {
    (any::<u64>(), 0_u16..1500, any::<u8>(), any::<bool>()).prop_map(|(day, from, byte, is_longer)| {
        let pairs = 1440_usize.saturating_sub(from.into());
        let bytes = vec![byte; 2 * pairs + usize::from(is_longer)];
        let days = vec![DemandDayRecord { day, from, bytes }];
        DemandRecord { metric: DemandMetricWord::Cpu, is_by_second: false, days }
    })
}

proptest! {
    #[test]
    fn a_record_of_any_bytes_is_refused_or_can_be_written_again(
        next in any::<u64>(),
        (seconds, minutes, hours) in (any_rows(), any_rows(), any_rows()),
        numbers in prop::collection::vec(any::<u64>(), 0..40),
        demand in prop::option::of(any_demand()),
        level in 0..5,
    ) {
        let mut record = RevisionHistory::beginning_at(next).export();
        match level {
            0 => record.seconds = seconds,
            1 => record.minutes = minutes,
            2 => record.hours = hours,
            3 => record.minute.numbers = numbers,
            _ => record.demand = demand,
        }
        record.check = record.content_hash();
        if let Ok(history) = RevisionHistory::restore(record) {
            let again = RevisionHistory::restore(history.export());
            prop_assert!(again.is_ok(), "{:?}", again.err());
        }
    }
}
