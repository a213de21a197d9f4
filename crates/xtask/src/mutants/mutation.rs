//! The small changes of a source file.
//!
//! A change replaces one operator, word or method by its opposite, or leaves a statement out. It is found in
//! the text: the formatter has put a space on each side of every binary operator, and none within generics,
//! so ` < ` is a comparison. Comments, attributes, strings and the tests of the file are passed over.

/// One change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutation {
    /// The number of the line, from 1 on.
    pub(super) number: usize,
    /// The line as it is.
    pub(super) line: String,
    /// The line with the change.
    pub(super) changed: String,
}

/// What is replaced, and by what.
const REPLACEMENTS: [(&str, &str); 27] = [
    (" < ", " <= "),
    (" < ", " > "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" > ", " < "),
    (" >= ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" += ", " -= "),
    (" -= ", " += "),
    (".max(", ".min("),
    (".min(", ".max("),
    (".any(", ".all("),
    (".all(", ".any("),
    (".is_some(", ".is_none("),
    (".is_none(", ".is_some("),
    (".is_some_and(", ".is_none_or("),
    (".saturating_sub(", ".saturating_add("),
    (".saturating_add(", ".saturating_sub("),
    ("PodCount::ZERO", "PodCount::ONE"),
    ("PodCount::ONE", "PodCount::ZERO"),
];
/// The same of words that are no part of a longer name.
const WORDS: [(&str, &str); 2] = [("true", "false"), ("false", "true")];

impl Mutation {
    /// The whole text with this change.
    pub(super) fn applied_to(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n').zip(1..);
        let line = |(line, number): (&str, usize)| {
            if number == self.number { line.replacen(&self.line, &self.changed, 1) } else { line.to_owned() }
        };
        lines.map(line).collect()
    }
}

/// All changes of a text of Rust that the formatter has written.
pub(super) fn mutations(text: &str) -> Vec<Mutation> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with("#[cfg(test)]") || line.starts_with("mod tests") {
            break;
        }
        let code = code_of(line);
        if code.trim_start().starts_with("#[") || code.trim_start().starts_with("use ") {
            continue;
        }
        for changed in changes(line, code) {
            found.push(Mutation { number, line: line.to_owned(), changed });
        }
    }
    found
}

/// A line without its comment.
fn code_of(line: &str) -> &str {
    let mut is_text = false;
    let mut before = '\0';
    for (place, letter) in line.char_indices() {
        match letter {
            '"' if before != '\\' && before != '\'' => is_text = !is_text,
            '/' if before == '/' && !is_text => return &line[..place - 1],
            _ => {}
        }
        before = letter;
    }
    line
}

fn changes(line: &str, code: &str) -> Vec<String> {
    let mut changes = Vec::new();
    let mut replace = |place: usize, from: &str, to: &str| {
        changes.push(format!("{}{to}{}", &line[..place], &line[place + from.len()..]));
    };
    for (from, to) in REPLACEMENTS {
        for place in places(code, from) {
            replace(place, from, to);
        }
    }
    for (from, to) in WORDS {
        for place in places(code, from).filter(|place| is_whole_word(code, *place, from.len())) {
            replace(place, from, to);
        }
    }
    for place in places(code, "!").filter(|place| is_negation(code, *place)) {
        replace(place, "!", "");
    }
    if is_effect(code) {
        let indent = code.len() - code.trim_start().len();
        replace(indent, &code[indent..], "");
    }
    changes
}

/// Where a text stands outside of strings.
fn places<'c>(code: &'c str, text: &'static str) -> impl Iterator<Item = usize> + use<'c> {
    let is_code = |place: &usize| code[..*place].matches('"').count().is_multiple_of(2);
    code.match_indices(text).map(|(place, _)| place).filter(is_code)
}

fn is_whole_word(code: &str, place: usize, length: usize) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    !code[..place].ends_with(is_part) && !code[place + length..].starts_with(is_part)
}

/// Whether an exclamation mark negates what follows: it is no part of `!=` and of no macro.
fn is_negation(code: &str, place: usize) -> bool {
    let follows = code[place + 1..].starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '(');
    follows && (place == 0 || code[..place].ends_with([' ', '(', '|', '&']))
}

/// Whether a line is a whole statement that changes the value that it is called on.
fn is_effect(code: &str) -> bool {
    let code = code.trim();
    code.ends_with(';') && (code.starts_with("self.") || code.starts_with("*self"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(line: &str) -> Vec<String> {
        mutations(line).into_iter().map(|mutation| mutation.changed).collect()
    }

    #[test]
    fn operators_words_and_effects_are_changed() {
        assert_eq!(changed("if a < b {"), ["if a <= b {", "if a > b {"]);
        assert_eq!(
            changed("if !is_ready && a == b {"),
            ["if !is_ready && a != b {", "if !is_ready || a == b {", "if is_ready && a == b {",]
        );
        assert_eq!(changed("let held = true;"), ["let held = false;"]);
        assert_eq!(
            changed("    self.most = self.most.max(count);"),
            ["    self.most = self.most.min(count);", "    ",]
        );
    }

    #[test]
    fn generics_comments_texts_and_attributes_stay() {
        for line in [
            "fn map<Key, Value>(of: BTreeMap<Key, Value>) -> Vec<Value> {",
            "// a < b && c",
            "#[expect(dead_code, reason = \"a < b\")]",
            "let text = \"a < b // c\";",
            "let isnt = is_true_enough;",
            "assert!(holds);",
            "use crate::a::{self, b};",
        ] {
            assert_eq!(changed(line), Vec::<String>::new(), "{line}");
        }
        assert_eq!(changed("let b = a + 1; // a < b"), ["let b = a - 1; // a < b"]);
    }

    #[test]
    fn a_change_is_of_one_line_and_tests_are_passed_over() {
        let text = "a + b\na + b\n\n#[cfg(test)]\nmod tests {\n    a + b\n";
        let found = mutations(text);
        let numbers: Vec<usize> = found.iter().map(|mutation| mutation.number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(found[1].applied_to(text), text.replacen("\na + b", "\na - b", 1));
    }
}
