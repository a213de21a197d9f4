//! Texts of which every byte is looked up in a table.

/// How many bytes at the beginning of a text are allowed, as the table says it of each.
///
/// Four are looked up without a branch between them: most names and hosts have some ten bytes, and a branch
/// for each costs more than the look-up.
pub(crate) fn allowed_length(text: &[u8], table: &[bool; 256]) -> usize {
    let allows = |byte: u8| table[usize::from(byte)];
    let (fours, _) = text.as_chunks::<4>();
    let allows_all = |four: &&[u8; 4]| four.iter().filter(|byte| allows(**byte)).count() == 4;
    let begin = 4 * fours.iter().take_while(allows_all).count();
    let rest = text[begin..].iter().position(|byte| !allows(*byte));
    rest.map_or(text.len(), |length| begin + length)
}

/// The table that allows the letters and digits of ASCII, and these other bytes.
pub(crate) const fn alphanumeric_or(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_allowed_up_to_its_first_other_byte() {
        let mut table = [false; 256];
        table[usize::from(b'a')] = true;
        for length in 0..20 {
            let text = vec![b'a'; length];
            assert_eq!(allowed_length(&text, &table), length);
            for first in 0..length {
                for second in first..length {
                    let mut text = text.clone();
                    (text[first], text[second]) = (b'b', 0xff);
                    assert_eq!(allowed_length(&text, &table), first, "{}", text.escape_ascii());
                }
            }
        }
    }
}
