//! Strings as HPACK compresses them (RFC 7541 §5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their symbols. So the
//! lengths say everything, and a code that is longer than a byte is found by comparing it with the last one
//! of each length.

use std::sync::LazyLock;

use super::CompressionError;

/// How many bits each byte takes, and at last the end of the string, which may only be hinted at by padding.
#[rustfmt::skip]
const BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const BITS_MAX: usize = 30;

/// Codes up to this length are looked up at once.
const SHORT_BITS: u32 = 8;

static CODE: LazyLock<Code> = LazyLock::new(Code::new);

struct Code {
    /// By the next eight bits: the symbol and the length of its code; length 0 where the code is longer.
    short: [(u8, u8); 256],
    /// All symbols by their codes.
    symbols: [u16; BITS.len()],
    /// By length: one more than the last code of that length, at the upper end of 32 bits.
    ends: [u64; BITS_MAX + 1],
    /// By length: the first code.
    firsts: [u32; BITS_MAX + 1],
    /// By length: where its symbols begin.
    offsets: [usize; BITS_MAX + 1],
}

impl Code {
    fn new() -> Self {
        let mut code = Self {
            short: [(0, 0); 256],
            symbols: [0; BITS.len()],
            ends: [0; BITS_MAX + 1],
            firsts: [0; BITS_MAX + 1],
            offsets: [0; BITS_MAX + 1],
        };
        let (mut next, mut count) = (0_u32, 0);
        for bits in 1..=BITS_MAX {
            next <<= 1;
            code.firsts[bits] = next;
            code.offsets[bits] = count;
            let of_this_length = (0_u16..).zip(BITS).filter(|(_, length)| usize::from(*length) == bits);
            for (symbol, length) in of_this_length {
                code.symbols[count] = symbol;
                count += 1;
                if u32::from(length) <= SHORT_BITS {
                    let spare = SHORT_BITS - u32::from(length);
                    let from = (next << spare) as usize;
                    let symbol = u8::try_from(symbol).unwrap_or_default();
                    code.short[from..from + (1 << spare)].fill((symbol, length));
                }
                next += 1;
            }
            code.ends[bits] = u64::from(next) << (32 - bits);
        }
        code
    }

    /// The symbol that `window` (32 bits) begins with, and the length of its code.
    fn long(&self, window: u32) -> (u16, usize) {
        let bits = (SHORT_BITS as usize + 1..=BITS_MAX)
            .find(|bits| u64::from(window) < self.ends[*bits])
            .unwrap_or(BITS_MAX);
        let code = window >> (32 - bits);
        (self.symbols[self.offsets[bits] + (code - self.firsts[bits]) as usize], bits)
    }
}

/// Appends what `compressed` stands for.
pub(super) fn decode(compressed: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let code = &*CODE;
    let mut input = compressed.iter();
    // The next bits, from the top down.
    let (mut window, mut have) = (0_u64, 0_usize);
    loop {
        while have <= 56
            && let Some(&byte) = input.next()
        {
            window |= u64::from(byte) << (56 - have);
            have += 8;
        }
        if have == 0 {
            return Ok(());
        }
        let top = (window >> 32) as u32;
        let (symbol, bits) = match code.short[(top >> 24) as usize] {
            (_, 0) => code.long(top),
            (symbol, bits) => (u16::from(symbol), usize::from(bits)),
        };
        if bits > have {
            // What is left is padding: fewer than eight bits, all of them set.
            let is_padding = have < 8 && window >> (64 - have) == (1 << have) - 1;
            return if is_padding { Ok(()) } else { Err(CompressionError::Huffman) };
        }
        out.push(u8::try_from(symbol).map_err(|_| CompressionError::Huffman)?);
        window <<= bits;
        have -= bits;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn decoded(compressed: &[u8]) -> Result<String, CompressionError> {
        let mut out = Vec::new();
        decode(compressed, &mut out)?;
        Ok(out.iter().map(|byte| char::from(*byte)).collect())
    }

    /// RFC 7541 appendix C.4 and C.6.
    #[test]
    fn strings_of_the_rfc() {
        for (compressed, text) in [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], "custom-value"),
            (&[0x64, 0x02], "302"),
            (
                &[
                    0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81,
                    0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
                ],
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (&[], ""),
        ] {
            assert_eq!(decoded(compressed).as_deref(), Ok(text));
        }
    }

    /// Every byte, encoded with the same lengths but bit by bit.
    #[test]
    fn every_byte_comes_back() {
        let mut ordered: Vec<usize> = (0..BITS.len()).collect();
        ordered.sort_by_key(|symbol| (BITS[*symbol], *symbol));
        let (mut code, mut length) = (0_u64, 0);
        let mut bits = String::new();
        let mut expected = Vec::new();
        for symbol in ordered {
            code <<= BITS[symbol] - length;
            length = BITS[symbol];
            if let Ok(byte) = u8::try_from(symbol) {
                write!(bits, "{code:0width$b}", width = usize::from(length)).expect("text grows");
                expected.push(byte);
            }
            code += 1;
        }
        bits.push_str(&"1".repeat((8 - bits.len() % 8) % 8));
        let compressed: Vec<u8> = (0..bits.len() / 8)
            .map(|at| u8::from_str_radix(&bits[at * 8..][..8], 2).expect("eight bits"))
            .collect();
        let mut out = Vec::new();
        decode(&compressed, &mut out).expect("a code");
        assert_eq!(out, expected);
    }

    /// RFC 7541 §5.2: padding is shorter than a byte and all ones; the end of the string is never spelled
    /// out.
    #[test]
    fn wrong_endings_are_refused() {
        for compressed in [&[0xff][..], &[0x1f, 0xff], &[0xff, 0xff, 0xff, 0xff], &[0x00]] {
            assert_eq!(decoded(compressed), Err(CompressionError::Huffman), "{compressed:x?}");
        }
    }
}
