//! Blocks of frames in a file: compressed, with a check number, and whole or not there.
//!
//! A file begins with [`MAGIC`]. Each block is its length as it is stored, its length as it is read, the
//! CRC-32 of both lengths and of what is stored (four bytes each, the least significant first), and the
//! frames, compressed by LZ4. A process that is killed leaves at most one block that is cut off, at the end
//! of its last file.

use std::io::{self, Read};

use flate2::Crc;
use thiserror::Error;

/// The first bytes of each segment; the digit is the version of this form of a file.
pub(crate) const MAGIC: [u8; 8] = *b"ebbrec1\n";

/// Two lengths and a check number.
const PREFIX_BYTES: usize = 12;
/// A block holds a whole frame, and the longest one is a keyframe. One that says to be longer is damaged.
const BLOCK_BYTES_MAX: usize = 1 << 30;

/// Why the next block cannot be read.
#[derive(Debug, Error)]
pub(crate) enum BlockFault {
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the file ends within a block")]
    CutOff,
    #[error("a block is damaged")]
    Damaged,
}

/// The block of these frames, as it is stored.
pub(crate) fn block_of(frames: &[u8]) -> Vec<u8> {
    let stored = lz4_flex::block::compress(frames);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut block = Vec::with_capacity(PREFIX_BYTES + stored.len());
    block.extend(length(&stored));
    block.extend(length(frames));
    let number = check_number(&block, &stored);
    block.extend(number.to_le_bytes());
    block.extend(stored);
    block
}

/// The next block of frames; `None` at the end of the file.
pub(crate) fn next_block(file: &mut impl Read) -> Result<Option<Vec<u8>>, BlockFault> {
    let mut prefix = [0; PREFIX_BYTES];
    match filled(file, &mut prefix)? {
        0 => return Ok(None),
        PREFIX_BYTES => {}
        _ => return Err(BlockFault::CutOff),
    }
    let number = |place: usize| {
        u32::from_le_bytes([prefix[place], prefix[place + 1], prefix[place + 2], prefix[place + 3]])
    };
    let length = |place| usize::try_from(number(place)).unwrap_or(usize::MAX);
    let (stored_length, plain_length) = (length(0), length(4));
    if stored_length > BLOCK_BYTES_MAX || plain_length > BLOCK_BYTES_MAX {
        return Err(BlockFault::Damaged);
    }
    // Not as much as the prefix says: what says so may be damaged.
    let mut stored = Vec::new();
    let limit = u64::try_from(stored_length).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut stored).map_err(BlockFault::Unreadable)?;
    if stored.len() < stored_length {
        return Err(BlockFault::CutOff);
    }
    if check_number(&prefix[..8], &stored) != number(8) {
        return Err(BlockFault::Damaged);
    }
    let frames = lz4_flex::block::decompress(&stored, plain_length).map_err(|_| BlockFault::Damaged)?;
    Ok(Some(frames))
}

/// Whether a file begins as a segment does.
pub(crate) fn begins_as_segment(file: &mut impl Read) -> Result<bool, BlockFault> {
    let mut first = [0; MAGIC.len()];
    Ok(filled(file, &mut first)? == MAGIC.len() && first == MAGIC)
}

/// Reads as many bytes as there are; returns how many.
fn filled(file: &mut impl Read, bytes: &mut [u8]) -> Result<usize, BlockFault> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read(&mut bytes[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BlockFault::Unreadable(error)),
        }
    }
    Ok(read)
}

fn check_number(lengths: &[u8], stored: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(lengths);
    crc.update(stored);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_of(mut file: &[u8]) -> (Vec<Vec<u8>>, Option<BlockFault>) {
        let mut blocks = Vec::new();
        loop {
            match next_block(&mut file) {
                Ok(Some(block)) => blocks.push(block),
                Ok(None) => return (blocks, None),
                Err(fault) => return (blocks, Some(fault)),
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_are_read_as_they_were_written(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..6),
        ) {
            let file: Vec<u8> = contents.iter().flat_map(|content| block_of(content)).collect();
            let (blocks, fault) = all_of(&file);
            prop_assert_eq!(blocks, contents);
            prop_assert!(fault.is_none());
        }

        #[test]
        fn a_file_that_is_cut_off_gives_the_blocks_before(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let file: Vec<u8> = contents.iter().flat_map(|content| block_of(content)).collect();
            let kept = cut.index(file.len());
            let (blocks, fault) = all_of(&file[..kept]);
            prop_assert!(contents.starts_with(&blocks));
            let whole: usize = contents[..blocks.len()].iter().map(|content| block_of(content).len()).sum();
            prop_assert_eq!(matches!(fault, Some(BlockFault::CutOff)), whole < kept);
        }

        #[test]
        fn a_damaged_byte_is_found(
            content in prop::collection::vec(any::<u8>(), 1..200),
            place in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let mut file = block_of(&content);
            let place = place.index(file.len());
            file[place] ^= 1 << bit;
            let (blocks, fault) = all_of(&file);
            prop_assert!(fault.is_some() && blocks.is_empty());
        }
    }
}
