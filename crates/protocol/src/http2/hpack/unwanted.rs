//! Steps over a head that is refused, as it comes.
//!
//! The head is read all the same, because the peer's table goes on with it. But nothing of it is kept:
//! neither its fields, nor its bytes beyond the one field that has not come to its end. Of a string that is
//! too long for any entry of the table not even that is kept.

use super::CompressionError;
use super::decode::{HeadBytes, HeadStart, HpackDecoder, Literal};
use super::table::TABLE_BYTES;

/// A string of so many bytes is longer than the table, however it is compressed: no code has more than 30
/// bits (RFC 7541 appendix B), so there are more letters than `TABLE_BYTES`.
const LONG_BYTES: usize = TABLE_BYTES * 4;

/// How far a head was stepped over.
#[derive(Debug, Default)]
pub struct UnwantedHead {
    start: HeadStart,
    /// What is to come of a long string.
    string_left: usize,
    /// The value of a field with a long name is to come.
    awaits_value: bool,
}

impl UnwantedHead {
    /// Whether no field is half here, but for bytes that were not stepped over.
    pub fn is_whole(&self) -> bool {
        self.string_left == 0 && !self.awaits_value
    }
}

impl HpackDecoder {
    /// Steps over what is there of a head. Returns how many bytes are done with; those behind them begin a
    /// field of which more is to come, and are handed in again with that.
    pub fn step_over_part(
        &mut self,
        head: &mut UnwantedHead,
        bytes: &[u8],
    ) -> Result<usize, CompressionError> {
        let mut input = HeadBytes(bytes);
        loop {
            let skipped = head.string_left.min(input.0.len());
            input.0 = &input.0[skipped..];
            head.string_left -= skipped;
            if input.0.is_empty() {
                return Ok(bytes.len());
            }
            let done = bytes.len() - input.0.len();
            match self.step_over_field(head, &mut input) {
                Ok(()) => {}
                Err(CompressionError::Truncated) => return Ok(done),
                Err(error) => return Err(error),
            }
        }
    }

    /// One field, or its beginning up to a long string. Changes nothing if less than that is here.
    fn step_over_field(
        &mut self,
        head: &mut UnwantedHead,
        input: &mut HeadBytes<'_>,
    ) -> Result<(), CompressionError> {
        if head.awaits_value {
            head.string_left = input.number(7)?;
            head.awaits_value = false;
            return Ok(());
        }
        let (literal, bits) = match input.0.first().copied().unwrap_or_default() {
            0x80.. => {
                let index = input.number(7)?;
                head.start.has_fields = true;
                return if self.table.has(index) { Ok(()) } else { Err(CompressionError::Index) };
            }
            0x40.. => (Literal::Indexed, 6),
            0x20.. => return self.change_table(input, &mut head.start),
            0x10.. => (Literal::Secret, 4),
            _ => (Literal::Plain, 4),
        };
        let mut ahead = HeadBytes(input.0);
        let index = ahead.number(bits)?;
        if index == 0 {
            let name_bytes = ahead.number(7)?;
            if name_bytes >= LONG_BYTES {
                self.step_over_long(head, literal, name_bytes);
                head.awaits_value = true;
                *input = ahead;
                return Ok(());
            }
            ahead.0 = ahead.0.get(name_bytes..).ok_or(CompressionError::Truncated)?;
        } else if !self.table.has(index) {
            return Err(CompressionError::Index);
        }
        let value_bytes = ahead.number(7)?;
        if value_bytes >= LONG_BYTES {
            self.step_over_long(head, literal, value_bytes);
            *input = ahead;
            return Ok(());
        }
        if ahead.0.len() < value_bytes {
            return Err(CompressionError::Truncated);
        }
        head.start.has_fields = true;
        if literal == Literal::Indexed {
            // Later heads refer to the entry that it makes.
            self.literal(input, literal)?;
        } else {
            self.step_over(input)?;
        }
        Ok(())
    }

    /// A string that is longer than the table: its field empties the table if it was to enter it.
    fn step_over_long(&mut self, head: &mut UnwantedHead, literal: Literal, bytes: usize) {
        head.start.has_fields = true;
        head.string_left = bytes;
        if literal == Literal::Indexed {
            self.table.clear();
        }
    }
}
