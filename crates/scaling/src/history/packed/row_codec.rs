//! How rows stand in the bytes of a block: the numbers that changed, and by how much.

use super::super::varint;

/// A block as it is read.
#[derive(Clone, Copy, Debug)]
pub(in crate::history) struct BlockView<'b> {
    pub(in crate::history) first: u64,
    pub(in crate::history) rows: u64,
    pub(in crate::history) bytes: &'b [u8],
}

/// Equal rows that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::history) struct RowRun<const N: usize> {
    pub(in crate::history) first: u64,
    pub(in crate::history) count: u64,
    pub(in crate::history) row: [u32; N],
}

pub(super) fn write_row<const N: usize>(bytes: &mut Vec<u8>, before: &[u32; N], row: &[u32; N]) {
    let pairs = || before.iter().zip(row).enumerate().filter(|(_, (before, now))| before != now);
    varint::put(bytes, pairs().fold(0, |changed, (place, _)| changed | 1 << place));
    for (_, (&before, &now)) in pairs() {
        varint::put(bytes, varint::difference(before, now));
    }
}

/// Reads a block from its first row on.
pub(super) struct RunReader<'b, const N: usize> {
    pub(super) bytes: &'b [u8],
    next: u64,
    pub(super) row: [u32; N],
}

impl<'b, const N: usize> RunReader<'b, N> {
    pub(super) fn new(block: BlockView<'b>) -> Self {
        Self { bytes: block.bytes, next: block.first, row: [0; N] }
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
pub(in crate::history) struct BlockFault {
    pub(in crate::history) block: usize,
    pub(in crate::history) offset: usize,
    pub(in crate::history) kind: BlockFaultKind,
}

/// The nature of a fault in restored blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::history) enum BlockFaultKind {
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
    pub(in crate::history) fn sentence(self) -> &'static str {
        match self {
            Self::CutOff => "the bytes end within a row",
            Self::Field => "a row changes a number that no row has",
            Self::Count => "the number of rows is not the one that the block gives",
            Self::Overlap => "the block begins before the one before it ends",
        }
    }
}
