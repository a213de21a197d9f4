//! A metric's name inside of sentences: short enough to be copied with the numbers around it.

use std::fmt;
use std::str;

use serde::{Deserialize, Serialize};

/// The bytes that fit. Of longer names the beginning is shown; the whole name stands in the spec.
const BYTES_MAX: usize = 31;

/// The name of a metric, cut where it is very long.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MetricLabel {
    bytes: [u8; BYTES_MAX],
    length: u8,
}

impl MetricLabel {
    pub(crate) fn new(name: &str) -> Self {
        const CUT: &str = "…";
        let mut label = Self { bytes: [0; BYTES_MAX], length: 0 };
        if name.len() <= BYTES_MAX {
            label.append(name);
        } else {
            label.append(&name[..name.floor_char_boundary(BYTES_MAX - CUT.len())]);
            label.append(CUT);
        }
        label
    }

    fn append(&mut self, text: &str) {
        let start = usize::from(self.length);
        self.bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
        self.length += u8::try_from(text.len()).expect("no more than 31 bytes are ever appended");
    }
}

impl fmt::Display for MetricLabel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = &self.bytes[..usize::from(self.length)];
        to.write_str(str::from_utf8(written).expect("it is cut between letters only"))
    }
}

impl fmt::Debug for MetricLabel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_up_to_31_bytes_and_cut_between_letters_beyond() {
        for (name, shown) in [
            ("cpu", "cpu"),
            ("", ""),
            ("http_requests_per_second_total_", "http_requests_per_second_total_"),
            ("http_requests_per_second_total_x", "http_requests_per_second_tot…"),
            ("ääääääääääääääää", "ääääääääääääää…"),
        ] {
            assert_eq!(MetricLabel::new(name).to_string(), shown);
        }
    }
}
