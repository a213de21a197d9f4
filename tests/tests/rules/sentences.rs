//! The source of a document has a line for each sentence, so that a diff shows sentences.

use crate::documents::{documents, prose};

#[test]
fn each_sentence_of_a_document_has_its_own_line() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for (name, text) in &documents() {
        if !name.starts_with("docs/") && name != "README.md" {
            continue;
        }
        for (number, line) in prose(text) {
            // Commands, tables, headings and HTML stay as they are.
            let is_text = !line.starts_with("    ") && !line.trim_start().starts_with(['|', '#', '<']);
            seen += usize::from(is_text);
            if is_text && has_two_sentences(line) {
                found.push(format!("{name}:{number}"));
            }
        }
    }
    assert!(seen > 2000, "{seen} lines are hardly all");
    assert!(found.is_empty(), "begin a line with each sentence:\n{}", found.join("\n"));
}

/// Whether a sentence ends in a line and another one begins behind it, outside of parentheses.
fn has_two_sentences(line: &str) -> bool {
    let text = outside(without_marker(line.trim_start()));
    let begins = |letter: char| letter.is_ascii_uppercase() || "`[(*\"".contains(letter);
    text.match_indices(' ').any(|(at, _)| {
        let (before, after) = (text[..at].trim_end_matches(['*', '"']), &text[at + 1..]);
        before.ends_with(['.', '!', '?']) && (after.starts_with(begins) || after.starts_with("ebb "))
    })
}

/// The letters outside of brackets and parentheses. Of words in grave accents only the first accent stays.
fn outside(line: &str) -> String {
    let (mut text, mut depth, mut is_code) = (String::new(), 0_u32, false);
    for letter in line.chars() {
        let is_shown = depth == 0 && !is_code;
        match letter {
            '`' => is_code = !is_code,
            _ if is_code => continue,
            '[' | '(' => depth += 1,
            ']' | ')' => {
                depth = depth.saturating_sub(1);
                continue;
            }
            _ => {}
        }
        if is_shown {
            text.push(letter);
        }
    }
    text
}

/// A line without the marker of an item of a list.
fn without_marker(line: &str) -> &str {
    let Some((marker, rest)) = line.split_once(' ') else { return line };
    let number = marker.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || ["*", "-", "+"].contains(&marker) { rest } else { line }
}

#[test]
fn sentences_are_told_from_dots_of_other_kinds() {
    for (line, has_two) in [
        ("One sentence. Another one.", true),
        ("* An item ends. `ebb up` begins.", true),
        ("**Bold.** And more.", true),
        ("It ends. ebb begins.", true),
        ("1. One sentence of a list.", false),
        ("`a. B` and [a link. To it](x.md) and version 1.2 (In short. Yes.) end here.", false),
    ] {
        assert_eq!(has_two_sentences(line), has_two, "{line}");
    }
}
