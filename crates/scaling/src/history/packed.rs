//! Rows of numbers, each row the next of an axis of whole spans, in blocks of bytes.
//!
//! A block begins with the number of its first row and knows nothing of other blocks, so the oldest is
//! dropped as it is, and a gap between two blocks is a gap in the data. Within a block a row is written as a
//! set of bits, one for each number that changed, and the differences of these; an empty set stands for
//! repetitions of the row before, whose number follows. The numbers that change most come first, so that one
//! byte holds the set.

use std::collections::VecDeque;

use super::varint;

/// A block that holds as many bytes is ended, so that with its last row it fits into 512: few enough that
/// what is too old is dropped soon, enough that what a block costs beside its bytes is little.
const BLOCK_BYTES: usize = 440;

/// The rows that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLimits {
    /// Rows that are older than so many are dropped.
    pub(super) rows: u64,
    /// The oldest rows are dropped before that where all take more bytes, as they do only if nearly every
    /// number changes wildly from each row to the next.
    pub(super) bytes: usize,
}

/// The newest rows of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PackedRows<const N: usize> {
    blocks: VecDeque<RowBlock>,
    /// The last row that was written into the last block.
    last: [u32; N],
    /// Repetitions of the last row that are not written yet.
    repeats: u32,
    limits: RowLimits,
}

/// Rows without a gap, and the bytes that they are written in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RowBlock {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) bytes: Vec<u8>,
}

impl RowBlock {
    fn end(&self) -> u64 {
        self.first.saturating_add(self.rows)
    }
}

/// Equal rows that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowRun<const N: usize> {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) row: [u32; N],
}

impl<const N: usize> PackedRows<N> {
    pub(super) fn new(limits: RowLimits) -> Self {
        Self { blocks: VecDeque::new(), last: [0; N], repeats: 0, limits }
    }

    /// Adds equal rows. Rows before the newest are ignored: what was written is never written again.
    pub(super) fn push(&mut self, run: RowRun<N>) {
        let RowRun { first, count, row } = run;
        if count == 0 || self.end().is_some_and(|end| first < end) {
            return;
        }
        let goes_on = |block: &RowBlock| block.end() == first && block.bytes.len() < BLOCK_BYTES;
        if !self.blocks.back().is_some_and(goes_on) {
            self.begin_block(first);
        }
        let mut count_left = count;
        if row != self.last {
            self.write_repeats();
            if let Some(block) = self.blocks.back_mut() {
                write_row(&mut block.bytes, &self.last, &row);
            }
            self.last = row;
            count_left -= 1;
        }
        self.repeats = self.repeats.saturating_add(u32::try_from(count_left).unwrap_or(u32::MAX));
        if let Some(block) = self.blocks.back_mut() {
            block.rows += count;
        }
    }

    /// The row after the newest; `None` without any.
    pub(super) fn end(&self) -> Option<u64> {
        self.blocks.back().map(RowBlock::end)
    }

    /// All that is kept, the oldest first. The oldest run may reach further back than rows are kept.
    pub(super) fn runs(&self) -> impl Iterator<Item = RowRun<N>> {
        let written = self.blocks.iter().flat_map(|block| {
            // What stands here was written here, or looked through when it was restored.
            RunReader::new(block).map_while(Result::ok)
        });
        let unwritten = self.end().filter(|_| self.repeats > 0).map(|end| RowRun {
            first: end - u64::from(self.repeats),
            count: u64::from(self.repeats),
            row: self.last,
        });
        written.chain(unwritten)
    }

    /// Forgets every row from this one on.
    pub(super) fn truncate(&mut self, from: u64) {
        let mut kept = Self::new(self.limits);
        for run in self.runs().take_while(|run| run.first < from) {
            kept.push(RowRun { count: run.count.min(from - run.first), ..run });
        }
        *self = kept;
    }

    /// The bytes in use beside those of this value itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.block_bytes() + self.blocks.capacity() * size_of::<RowBlock>()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &RowBlock> {
        self.blocks.iter()
    }

    pub(super) fn repeats(&self) -> u32 {
        self.repeats
    }

    /// Takes in blocks that were written elsewhere; the place and the nature of the first fault otherwise.
    pub(super) fn restored(
        limits: RowLimits,
        blocks: Vec<RowBlock>,
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
            let mut reader = RunReader::<N>::new(block);
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
        if count == 0 && repeats > 0 {
            return Err(BlockFault { block: 0, offset: 0, kind: BlockFaultKind::Count });
        }
        Ok(Self { blocks: blocks.into(), last, repeats, limits })
    }

    /// A buffer of a block that is too old serves the next, so a series that is full allocates nothing.
    fn begin_block(&mut self, first: u64) {
        self.write_repeats();
        let mut bytes = Vec::new();
        let oldest = first.saturating_sub(self.limits.rows);
        let mut in_use = self.block_bytes() + BLOCK_BYTES;
        while let Some(old) =
            self.blocks.pop_front_if(|block| block.end() <= oldest || in_use > self.limits.bytes)
        {
            in_use -= old.bytes.capacity();
            bytes = old.bytes;
            bytes.clear();
        }
        self.blocks.push_back(RowBlock { first, rows: 0, bytes });
        self.last = [0; N];
    }

    fn block_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes.capacity()).sum()
    }

    fn write_repeats(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        if let Some(block) = self.blocks.back_mut().filter(|_| repeats > 0) {
            block.bytes.push(0);
            varint::put(&mut block.bytes, repeats);
        }
    }
}

fn write_row<const N: usize>(bytes: &mut Vec<u8>, before: &[u32; N], row: &[u32; N]) {
    let pairs = || before.iter().zip(row).enumerate().filter(|(_, (before, now))| before != now);
    varint::put(bytes, pairs().fold(0, |changed, (place, _)| changed | 1 << place));
    for (_, (&before, &now)) in pairs() {
        varint::put(bytes, varint::difference(before, now));
    }
}

/// Reads a block from its first row on.
struct RunReader<'b, const N: usize> {
    bytes: &'b [u8],
    next: u64,
    row: [u32; N],
}

impl<'b, const N: usize> RunReader<'b, N> {
    fn new(block: &'b RowBlock) -> Self {
        Self { bytes: &block.bytes, next: block.first, row: [0; N] }
    }

    fn read(&mut self) -> Result<RowRun<N>, BlockFaultKind> {
        let mut number = || varint::take(&mut self.bytes).ok_or(BlockFaultKind::CutOff);
        let changed = number()?;
        let mut count = 1;
        if changed == 0 {
            count = u64::from(number()?);
        } else if u64::from(changed) >> N != 0 {
            return Err(BlockFaultKind::Field);
        }
        for (place, field) in self.row.iter_mut().enumerate() {
            if changed & (1 << place) != 0 {
                *field = varint::moved(*field, number()?);
            }
        }
        let first = self.next;
        self.next = first.saturating_add(count);
        Ok(RowRun { first, count, row: self.row })
    }
}

impl<const N: usize> Iterator for RunReader<'_, N> {
    type Item = Result<RowRun<N>, BlockFaultKind>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() { None } else { Some(self.read()) }
    }
}

/// The place of a fault in restored blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockFault {
    pub(super) block: usize,
    pub(super) offset: usize,
    pub(super) kind: BlockFaultKind,
}

/// The nature of a fault in restored blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockFaultKind {
    /// The bytes end within a row.
    CutOff,
    /// A row changes a number that no row has.
    Field,
    /// There are more or fewer rows than the block says.
    Count,
    /// The block begins before the one before it ends.
    Overlap,
}

impl BlockFaultKind {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::CutOff => "the bytes end within a row",
            Self::Field => "a row changes a number that no row has",
            Self::Count => "the number of rows is not the one that the block gives",
            Self::Overlap => "the block begins before the one before it ends",
        }
    }
}
