//! Bytes of one kind behind each other: numbers in as few bytes as they need.

use crate::frame_fault::FrameFault;

/// A number has seven bits in each byte, the least significant first, and a mark on each byte but its last.
const NUMBER_BYTES_MAX: usize = 10;
const MORE_BYTES: u8 = 0x80;

/// A column that is written.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenColumn(Vec<u8>);

impl WrittenColumn {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// A number of up to 64 bits; one below 128 takes a byte.
    pub(super) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest >= u64::from(MORE_BYTES) {
            self.0.push(rest.to_le_bytes()[0] | MORE_BYTES);
            rest >>= 7;
        }
        self.0.push(rest.to_le_bytes()[0]);
    }

    /// How far one number is from another, of either sign; one nearer than 64 takes a byte.
    pub(super) fn difference(&mut self, from: u64, to: u64) {
        self.number(zigzag(to.wrapping_sub(from)));
    }

    /// So many of the lowest bytes of a number, at most eight.
    pub(super) fn low_bytes(&mut self, number: u64, count: usize) {
        self.0.extend_from_slice(&number.to_le_bytes()[..count]);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }

    /// How many bytes are in the column.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }

    /// The bytes; the column is empty then.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// A column that is read. Nothing that it says is believed: a damaged file may say anything.
#[derive(Clone, Debug)]
pub(super) struct ReadColumn<'a> {
    name: &'static str,
    rest: &'a [u8],
}

impl<'a> ReadColumn<'a> {
    pub(super) fn new(name: &'static str, bytes: &'a [u8]) -> Self {
        Self { name, rest: bytes }
    }

    /// Refuses a column that is longer than any that is written.
    pub(super) fn check_size(&self, bytes_max: usize) -> Result<(), FrameFault> {
        if self.rest.len() > bytes_max {
            return Err(self.bad(&format!("have {} bytes, more than {bytes_max}", self.rest.len())));
        }
        Ok(())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, FrameFault> {
        let byte = self.bytes(1)?;
        Ok(byte[0])
    }

    pub(super) fn number(&mut self) -> Result<u64, FrameFault> {
        let mut number = 0;
        for place in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            // Nine bytes hold 63 bits.
            if place + 1 == NUMBER_BYTES_MAX && byte > 1 {
                break;
            }
            number |= u64::from(byte & !MORE_BYTES) << (7 * place);
            if byte < MORE_BYTES {
                return Ok(number);
            }
        }
        Err(self.bad("have a number of more than 64 bits"))
    }

    /// The number that is as far from this one as the column says.
    pub(super) fn difference(&mut self, from: u64) -> Result<u64, FrameFault> {
        Ok(from.wrapping_add(unzigzag(self.number()?)))
    }

    /// A number of so many bytes, at most eight.
    pub(super) fn low_bytes(&mut self, count: usize) -> Result<u64, FrameFault> {
        let mut bytes = [0; 8];
        bytes[..count].copy_from_slice(self.bytes(count)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, FrameFault> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let bytes = self.bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("have a name that is no text"))
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], FrameFault> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.bad("end within a report"));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// The fault of this column.
    pub(super) fn bad(&self, problem: &str) -> FrameFault {
        FrameFault::BadValue { field: self.name, problem: problem.to_owned() }
    }
}

/// A difference of either sign as a number that is small where the difference is.
pub(super) fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

/// The difference that [`zigzag`] made a number of.
pub(super) fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_of_either_sign_take_one_byte() {
        for (number, size) in [(0, 1), (127, 1), (128, 2), (u64::MAX, 10)] {
            let mut column = WrittenColumn::default();
            column.number(number);
            assert_eq!(column.size(), size, "{number}");
        }
        for (from, to, size) in [(7, 7, 1), (7, 70, 1), (70, 7, 1), (0, 64, 2), (u64::MAX, 0, 1)] {
            let mut column = WrittenColumn::default();
            column.difference(from, to);
            assert_eq!(column.size(), size, "from {from} to {to}");
        }
    }

    #[test]
    fn a_column_that_is_too_long_is_refused() {
        let column = ReadColumn::new("the heads of reports", &[0; 5]);
        assert_eq!(column.check_size(5), Ok(()));
        let fault = column.check_size(4).expect_err("it has five").to_string();
        assert_eq!(fault, "the heads of reports have 5 bytes, more than 4");
    }

    #[test]
    fn numbers_beyond_64_bits_and_cut_off_ones_are_refused() {
        for bytes in [vec![0xff; 10], vec![0xff; 12], vec![0x80; 9], Vec::new()] {
            let fault = ReadColumn::new("a column", &bytes).number().expect_err("no number");
            assert!(fault.to_string().starts_with("a column "), "{bytes:?}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn columns_are_read_as_they_were_written(
            number in any::<u64>(), from in any::<u64>(), to in any::<u64>(),
            (count, low) in (1..=8_usize, any::<u64>()), text in ".{0,20}",
        ) {
            let low = low >> (64 - 8 * count);
            let mut column = WrittenColumn::default();
            column.number(number);
            column.difference(from, to);
            column.low_bytes(low, count);
            column.text(&text);
            let bytes = column.take();
            let mut read = ReadColumn::new("a column", &bytes);
            prop_assert_eq!(read.number(), Ok(number));
            prop_assert_eq!(read.difference(from), Ok(to));
            prop_assert_eq!(read.low_bytes(count), Ok(low));
            prop_assert_eq!(read.text(), Ok(text.as_str()));
            prop_assert!(read.is_at_end());
        }
    }
}
