//! Lines of a manifest, and how a place among them is found and written anew. A place that is not there, or
//! there twice, is an error: the manifest has changed, and the chart must not silently keep a part of it.

use anyhow::bail;

/// A line that becomes others.
pub(super) struct LineRule {
    /// The begin of the line, with its indentation.
    pub(super) start: &'static str,
    /// The lines in its place.
    pub(super) written: &'static str,
}

/// The index of the only line that begins so.
pub(super) fn only<L: AsRef<str>>(lines: &[L], start: &str) -> anyhow::Result<usize> {
    let found = lines.iter().enumerate().filter(|(_, line)| line.as_ref().starts_with(start));
    let found: Vec<usize> = found.map(|(at, _)| at).collect();
    let [at] = found[..] else {
        bail!("{} lines begin with `{start}`, and the chart needs exactly one", found.len());
    };
    Ok(at)
}

/// The rest of the first line that begins so.
pub(super) fn field<'l>(lines: &'l [&str], start: &str) -> anyhow::Result<&'l str> {
    let found = lines.iter().find_map(|line| line.strip_prefix(start));
    let Some(found) = found else { bail!("no line begins with `{start}`") };
    Ok(found.trim())
}

/// The index behind the block that the line at `at` begins: behind the lines that are indented deeper.
pub(super) fn end_of_block<L: AsRef<str>>(lines: &[L], at: usize) -> usize {
    let own = indentation(lines[at].as_ref());
    let inside = lines[at + 1..].iter().take_while(|line| indentation(line.as_ref()) > own);
    at + 1 + inside.count()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 5] = ["a:", "  b: 1", "    # c", "    d: 2", "  e: 3"];

    #[test]
    fn a_block_ends_at_the_first_line_that_is_not_deeper() {
        assert_eq!(end_of_block(&LINES, 0), 5);
        assert_eq!(end_of_block(&LINES, 1), 4);
        assert_eq!(end_of_block(&LINES, 4), 5);
    }

    #[test]
    fn a_place_that_is_absent_or_there_twice_is_an_error() {
        assert_eq!(only(&LINES, "  b: ").expect("it is there once"), 1);
        assert_eq!(field(&LINES, "  e: ").expect("it is there"), "3");
        for start in ["  f: ", "    "] {
            let error = only(&LINES, start).expect_err("it is not there once").to_string();
            assert!(error.contains(start), "{error}");
        }
        assert!(field(&LINES, "f").is_err());
    }
}
