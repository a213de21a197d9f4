//! What is wrong with a document or a setting: every problem at once, each in one line.
//!
//! Annotations, ConfigMaps, documents, manifests and environments are read in different ways, and what is
//! wrong with them is said in one: a reader goes on after a mistake and collects, so that no person has to
//! mend a file line by line, and each message names the place, the value, what is allowed and what to do.

use std::fmt;

use crate::likeness::nearest;

/// Longer values are shown cut: a message is one line.
const SHOWN_CHARS_MAX: usize = 80;

/// One thing wrong with what was written. The message names no file and no revision; the reader of the file
/// knows those and says them in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key as the user wrote it, for finding the line. Of several keys at odds with each other, the one
    /// to look at first.
    pub key: String,
    /// The whole message, naming place, value, range and remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// What was read, and what should be said about it though it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedValue<Value> {
    /// The value as it was read and checked.
    pub value: Value,
    /// Accepted, but worth a word (historic keys, for one).
    pub warnings: Vec<Problem>,
}

/// Everything there is to say so far. A reader of files keeps with each item where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings<Item = Problem> {
    /// Refused: each makes the whole unusable.
    pub problems: Vec<Item>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Item>,
}

impl<Item> Default for Findings<Item> {
    fn default() -> Self {
        Self { problems: Vec::new(), warnings: Vec::new() }
    }
}

impl Findings {
    /// `place` is both where to look and what the message calls it. `flaw` continues the sentence that names
    /// place and value, and ends in the remedy.
    pub fn refuse(&mut self, place: &str, value: &impl fmt::Display, flaw: &str) {
        self.refuse_place(place, &format!("is {value}, which {flaw}"));
    }

    /// `flaw` continues the sentence that names the place.
    pub fn refuse_place(&mut self, place: &str, flaw: &str) {
        self.problems.push(Problem { key: place.to_owned(), message: format!("{place} {flaw}") });
    }

    /// The same of something that is accepted.
    pub fn warn(&mut self, place: &str, flaw: &str) {
        self.warnings.push(Problem { key: place.to_owned(), message: format!("{place} {flaw}") });
    }

    /// The value, or everything that is wrong.
    pub fn finish<Value>(self, value: Value) -> Result<CheckedValue<Value>, Vec<Problem>> {
        if self.problems.is_empty() {
            Ok(CheckedValue { value, warnings: self.warnings })
        } else {
            Err(self.problems)
        }
    }
}

/// `; did you mean …?` with the nearest of the known names, or nothing if none is near.
pub fn did_you_mean<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(written, known).map_or_else(String::new, |likely| format!("; did you mean {}?", likely.name))
}

/// A key cut to a length that can be read and without what would break the line or hide something.
pub fn printable(key: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '\u{2028}' | '\u{2029}');
    cut(key)
        .chars()
        .flat_map(|letter| {
            let plain = is_plain(letter).then_some(letter);
            let escaped = if plain.is_none() { Some(letter.escape_unicode()) } else { None };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// A text in quotes, on one line.
pub fn shown(text: &str) -> String {
    format!("{:?}", cut(text))
}

fn cut(text: &str) -> String {
    let mut letters = text.chars();
    let mut cut: String = letters.by_ref().take(SHOWN_CHARS_MAX).collect();
    if letters.next().is_some() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_wrong_is_said_and_only_what_is_right_is_given() {
        let mut findings = Findings::default();
        findings.warn("PORT", "is old; write port");
        let checked = findings.clone().finish(7).expect("only a word about it");
        assert_eq!((checked.value, checked.warnings[0].to_string().as_str()), (7, "PORT is old; write port"));
        findings.refuse("port", &shown("x"), "is no number; write one");
        findings.refuse_place("name", "is missing");
        let problems = findings.finish(7).expect_err("two are wrong");
        let said: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(said, ["port is \"x\", which is no number; write one", "name is missing"]);
        assert_eq!(problems[1].key, "name");
    }

    #[test]
    fn a_shown_text_is_one_line_of_a_bounded_length() {
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
        assert_eq!(printable("a\u{7}b\u{2028}"), "a\\u{7}b\\u{2028}");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), SHOWN_CHARS_MAX + 3);
        assert_eq!(did_you_mean("prot", ["port", "name"]), "; did you mean port?");
        assert_eq!(did_you_mean("zzzz", ["port", "name"]), "");
    }
}
