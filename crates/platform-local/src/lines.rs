//! A stream of bytes as lines of bounded length.

/// Cuts bytes into lines. A line longer than the limit is handed out in pieces, so that an app's output
/// cannot fill the memory of `ebb`.
#[derive(Debug)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    longest: usize,
}

impl Lines {
    /// Lines of at most `longest` bytes.
    pub(crate) fn of_at_most(longest: usize) -> Self {
        Self { begun: Vec::new(), longest }
    }

    /// The same, after another process has read these bytes, which complete no line.
    pub(crate) fn continued(begun: Vec<u8>, longest: usize) -> Self {
        Self { begun, longest }
    }

    /// Takes in bytes and hands out each line that they complete, without its end.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut complete: impl FnMut(&str)) {
        while !bytes.is_empty() {
            let room = self.longest.saturating_sub(self.begun.len());
            let window = &bytes[..room.min(bytes.len())];
            let (line, skip, ends) = match window.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&window[..end], end + 1, true),
                None => (window, window.len(), window.len() == room),
            };
            self.begun.extend_from_slice(line);
            bytes = &bytes[skip..];
            if ends {
                self.complete(&mut complete);
            }
        }
    }

    /// The bytes of a line that is not complete yet.
    pub(crate) fn begun(&self) -> &[u8] {
        &self.begun
    }

    /// Hands out a line that was begun and will not be completed.
    pub(crate) fn finish(&mut self, mut complete: impl FnMut(&str)) {
        if !self.begun.is_empty() {
            self.complete(&mut complete);
        }
    }

    fn complete(&mut self, complete: &mut impl FnMut(&str)) {
        complete(String::from_utf8_lossy(&self.begun).trim_end_matches('\r'));
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&str], longest: usize) -> Vec<String> {
        let mut lines = Lines::of_at_most(longest);
        let mut all = Vec::new();
        for chunk in chunks {
            lines.push(chunk.as_bytes(), |line| all.push(line.to_owned()));
        }
        lines.finish(|line| all.push(line.to_owned()));
        all
    }

    #[test]
    fn lines_are_joined_over_chunks_and_cut_at_the_limit() {
        assert_eq!(cut(&["a\nb", "c\r\n", "\n", "d"], 10), ["a", "bc", "", "d"]);
        assert_eq!(cut(&["abcdefgh\n"], 3), ["abc", "def", "gh"]);
        assert_eq!(cut(&["ab", "c", "d"], 3), ["abc", "d"]);
    }

    #[test]
    fn a_line_that_somebody_else_began_is_completed() {
        let mut first = Lines::of_at_most(10);
        first.push(b"a\nbe", |_| {});
        let mut second = Lines::continued(first.begun().to_vec(), 10);
        let mut all = Vec::new();
        second.push(b"gun\n", |line| all.push(line.to_owned()));
        assert_eq!(all, ["begun"]);
    }
}
