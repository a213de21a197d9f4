//! Rows of numbers, each row the next of an axis of whole spans, in blocks of bytes.
//!
//! A block begins with the number of its first row and knows nothing of other blocks, so the oldest is
//! dropped as it is, and a gap between two blocks is a gap in the data. Within a block a row is written as a
//! set of bits, one for each number that changed, and the differences of these; an empty set stands for
//! repetitions of the row before, whose number follows. The numbers that change most come first, so that one
//! byte holds the set.
//!
//! A block that has ended is never written again, so all copies of the rows share it. What a copy costs is
//! two references; the first row that is added after that copies the open block, at most a kilobyte.

mod row_codec;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::varint;
use row_codec::{BlockFaultKind, BlockView, RunReader, write_row};

pub(super) use row_codec::{BlockFault, RowRun};

/// A block that holds as many bytes is ended. A longer block has its first row, which is written from zero,
/// and its place in the list for more rows; a shorter one is dropped sooner after its last row is too old,
/// and is copied faster while it is open.
const BLOCK_BYTES: usize = 700;
/// The room for the next rows in a copy of the open block.
const COPY_ROOM: usize = 48;

/// The rows that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowLimits {
    /// Rows that are older than so many are dropped.
    pub(super) rows: u64,
    /// The oldest rows are dropped before that where all take more bytes, as they do only if nearly every
    /// number changes wildly from each row to the next.
    pub(super) bytes: usize,
}

/// The newest rows of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PackedRows<const N: usize> {
    /// The blocks that have ended, oldest first. The list is made anew when one more ends.
    ended: Arc<[RowBlock]>,
    /// The block that rows are added to; `None` before the first row.
    open: Option<Arc<OpenBlock<N>>>,
    limits: RowLimits,
}

/// Rows without a gap, and the bytes that they are written in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RowBlock {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) bytes: Arc<[u8]>,
}

impl RowBlock {
    /// What a block takes beside its bytes: its place in the list, and the two counts of its references.
    const OVERHEAD: usize = size_of::<Self>() + 2 * size_of::<usize>();

    fn end(&self) -> u64 {
        self.first.saturating_add(self.rows)
    }

    fn heap_bytes(&self) -> usize {
        Self::OVERHEAD + self.bytes.len()
    }

    fn view(&self) -> BlockView<'_> {
        BlockView { first: self.first, rows: self.rows, bytes: &self.bytes }
    }
}

/// The newest rows, and all that is needed to add the next.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct OpenBlock<const N: usize> {
    first: u64,
    rows: u64,
    bytes: Vec<u8>,
    /// The last row that was written.
    #[serde(with = "super::long_array")]
    last: [u32; N],
    /// Repetitions of the last row that are not written yet.
    repeats: u32,
}

impl<const N: usize> Clone for OpenBlock<N> {
    /// A copy is made to be added to, and grows by one row before the next copy is made.
    fn clone(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() + COPY_ROOM);
        bytes.extend_from_slice(&self.bytes);
        Self { bytes, ..*self }
    }
}

impl<const N: usize> OpenBlock<N> {
    fn beginning_at(first: u64) -> Self {
        Self { first, rows: 0, bytes: Vec::new(), last: [0; N], repeats: 0 }
    }

    fn end(&self) -> u64 {
        self.first.saturating_add(self.rows)
    }

    fn view(&self) -> BlockView<'_> {
        BlockView { first: self.first, rows: self.rows, bytes: &self.bytes }
    }

    /// Adds a row this many times, at least once.
    fn add(&mut self, row: &[u32; N], count: u64) {
        let mut repeats = count;
        if *row != self.last {
            self.write_repeats();
            write_row(&mut self.bytes, &self.last, row);
            self.last = *row;
            repeats -= 1;
        }
        self.repeats = self.repeats.saturating_add(u32::try_from(repeats).unwrap_or(u32::MAX));
        self.rows += count;
    }

    /// Ends the block, and begins the next in the same buffer.
    fn restart_at(&mut self, first: u64) -> RowBlock {
        self.write_repeats();
        let ended = RowBlock { first: self.first, rows: self.rows, bytes: Arc::from(self.bytes.as_slice()) };
        self.bytes.clear();
        (self.first, self.rows, self.last) = (first, 0, [0; N]);
        ended
    }

    fn write_repeats(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        if repeats > 0 {
            self.bytes.push(0);
            varint::put(&mut self.bytes, repeats);
        }
    }
}

impl<const N: usize> PackedRows<N> {
    pub(super) fn new(limits: &RowLimits) -> Self {
        Self { ended: Arc::default(), open: None, limits: *limits }
    }

    /// Adds equal rows. Rows before the newest are ignored: what was written is never written again.
    pub(super) fn push(&mut self, run: RowRun<N>) {
        let RowRun { first, count, row } = run;
        if count == 0 || self.end().is_some_and(|end| first < end) {
            return;
        }
        let goes_on = self.end() == Some(first);
        let open = self.open.get_or_insert_with(|| Arc::new(OpenBlock::beginning_at(first)));
        let open = Arc::make_mut(open);
        if open.rows > 0 && (!goes_on || open.bytes.len() >= BLOCK_BYTES) {
            let ended = open.restart_at(first);
            self.ended = with_newest(&self.ended, ended, first, &self.limits);
        }
        open.add(&row, count);
    }

    /// The row after the newest; `None` without any.
    pub(super) fn end(&self) -> Option<u64> {
        self.open.as_deref().map(OpenBlock::end)
    }

    /// All that is kept, the oldest first. The oldest run may reach further back than rows are kept.
    pub(super) fn runs(&self) -> impl Iterator<Item = RowRun<N>> {
        // What stands here was written here, or looked through when it was restored.
        let written = self.blocks().flat_map(|block| RunReader::<N>::new(block).map_while(Result::ok));
        let unwritten = self.open.iter().filter(|open| open.repeats > 0).map(|open| RowRun {
            first: open.end() - u64::from(open.repeats),
            count: u64::from(open.repeats),
            row: open.last,
        });
        written.chain(unwritten)
    }

    /// Forgets every row from this one on.
    pub(super) fn truncate(&mut self, from: u64) {
        let mut kept = Self::new(&self.limits);
        for run in self.runs().take_while(|run| run.first < from) {
            kept.push(RowRun { count: run.count.min(from - run.first), ..run });
        }
        *self = kept;
    }

    /// The rows from this one on.
    pub(super) fn since(&self, from: u64) -> Self {
        let mut rows = Self::new(&self.limits);
        for RowRun { first, count, row } in self.runs() {
            let skipped = from.saturating_sub(first).min(count);
            rows.push(RowRun { first: first + skipped, count: count - skipped, row });
        }
        rows
    }

    /// Goes on with rows that were written later. Those before the newest are ignored.
    pub(super) fn extend(&mut self, later: &Self) {
        let end = self.end().unwrap_or(0);
        for RowRun { first, count, row } in later.runs() {
            let skipped = end.saturating_sub(first).min(count);
            self.push(RowRun { first: first + skipped, count: count - skipped, row });
        }
    }

    /// Whether a block has ended of which no row is kept any more once `next` is the next row.
    pub(super) fn has_old(&self, next: u64) -> bool {
        self.ended.first().is_some_and(|oldest| oldest.end() <= next.saturating_sub(self.limits.rows))
    }

    /// Drops the blocks of which no row is kept any more.
    pub(super) fn forget_old(&mut self, next: u64) {
        if self.has_old(next) {
            let oldest = next.saturating_sub(self.limits.rows);
            self.ended = self.ended.iter().skip_while(|block| block.end() <= oldest).cloned().collect();
        }
    }

    /// The bytes in use beside those of this value itself; those that copies share are in each of them.
    pub(super) fn heap_bytes(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        let list = if self.ended.is_empty() { 0 } else { counts };
        let ended: usize = self.ended.iter().map(RowBlock::heap_bytes).sum();
        let open =
            self.open.as_ref().map_or(0, |open| counts + size_of::<OpenBlock<N>>() + open.bytes.capacity());
        list + ended + open
    }

    /// All blocks, the oldest first; the last is open.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockView<'_>> {
        self.ended.iter().map(RowBlock::view).chain(self.open.iter().map(|open| open.view()))
    }

    /// Repetitions of the last row of the open block that are not among its bytes.
    pub(super) fn repeats(&self) -> u32 {
        self.open.as_ref().map_or(0, |open| open.repeats)
    }

    /// Takes in blocks that were written elsewhere; the place and the nature of the first fault otherwise.
    pub(super) fn restored(
        limits: &RowLimits,
        mut blocks: Vec<RowBlock>,
        repeats: u32,
    ) -> Result<Self, BlockFault> {
        let mut last = [0; N];
        let (mut end, count) = (0, blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let unwritten = if index + 1 == count { u64::from(repeats) } else { 0 };
            let fault = |offset, kind| BlockFault { block: index, offset, kind };
            if block.first < end || block.first.checked_add(block.rows).is_none() {
                return Err(fault(0, BlockFaultKind::Overlap));
            }
            let mut reader = RunReader::<N>::new(block.view());
            let mut rows = 0_u64;
            while let Some(run) = reader.next() {
                let run = run.map_err(|kind| fault(block.bytes.len() - reader.bytes.len(), kind))?;
                rows = rows.saturating_add(run.count);
            }
            if rows.saturating_add(unwritten) != block.rows || block.rows == 0 {
                return Err(fault(block.bytes.len(), BlockFaultKind::Count));
            }
            (last, end) = (reader.row, block.end());
        }
        let Some(newest) = blocks.pop() else {
            let fault = BlockFault { block: 0, offset: 0, kind: BlockFaultKind::Count };
            return if repeats > 0 { Err(fault) } else { Ok(Self::new(limits)) };
        };
        let RowBlock { first, rows, bytes } = newest;
        let open = OpenBlock { first, rows, bytes: bytes.to_vec(), last, repeats };
        Ok(Self { ended: blocks.into(), open: Some(Arc::new(open)), limits: *limits })
    }
}

/// The list with one more block, without the oldest ones as far as they are too old at the row `next`, or
/// take too much memory.
fn with_newest(blocks: &[RowBlock], newest: RowBlock, next: u64, limits: &RowLimits) -> Arc<[RowBlock]> {
    let oldest = next.saturating_sub(limits.rows);
    let mut in_use = BLOCK_BYTES + newest.heap_bytes();
    in_use += blocks.iter().map(RowBlock::heap_bytes).sum::<usize>();
    let all = blocks.iter().cloned().chain([newest]);
    let kept = all.skip_while(|block| {
        let goes = block.end() <= oldest || in_use > limits.bytes;
        if goes {
            in_use -= block.heap_bytes();
        }
        goes
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const KEPT: RowLimits = RowLimits { rows: 1000, bytes: 50_000 };

    /// Rows of which no two are equal, in several blocks.
    fn filled(rows: u64) -> PackedRows<3> {
        let mut packed = PackedRows::new(&KEPT);
        add(&mut packed, 0..rows);
        packed
    }

    fn add(packed: &mut PackedRows<3>, rows: Range<u64>) {
        for first in rows {
            let number = u32::try_from(first).expect("it is small");
            let row = [number.wrapping_mul(2_654_435_761) >> 20, number, 7];
            packed.push(RowRun { first, count: 1, row });
        }
    }

    #[test]
    fn a_copy_shares_the_blocks_that_have_ended_and_stays_as_it_was() {
        let mut packed = filled(600);
        let copy = packed.clone();
        add(&mut packed, 600..900);
        assert!(copy.runs().map(|run| run.first).eq(0..600));
        assert!(packed.runs().map(|run| run.first).eq(0..900));
        assert!(copy.ended.len() >= 2 && packed.ended.len() > copy.ended.len());
        let mut pairs = copy.ended.iter().zip(packed.ended.iter());
        assert!(pairs.all(|(one, other)| Arc::ptr_eq(&one.bytes, &other.bytes)));
    }

    #[test]
    fn blocks_are_given_back_once_no_row_of_them_is_kept() {
        let mut packed = filled(900);
        let full = packed.heap_bytes();
        assert!(!packed.has_old(1000));
        packed.forget_old(1000);
        assert_eq!(packed.heap_bytes(), full);
        assert!(packed.has_old(1400));
        packed.forget_old(1400);
        assert!(packed.heap_bytes() < full);
        // Rows from 400 on are kept, and with them the earlier ones of their block.
        let first = packed.runs().next().map(|run| run.first);
        assert!(first.is_some_and(|first| (1..=400).contains(&first)), "{first:?}");
        packed.forget_old(1_000_000);
        assert_eq!((packed.ended.len(), packed.end()), (0, Some(900)), "the open block goes on");
    }

    #[test]
    fn a_gap_longer_than_what_is_kept_leaves_nothing_of_before() {
        let mut packed = filled(600);
        add(&mut packed, 5000..5010);
        assert!(packed.runs().map(|run| run.first).eq(5000..5010));
    }
}
