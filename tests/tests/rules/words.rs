//! How names and documentation read: with a noun where a reader would ask which one, or whose.

use crate::house_rules::sources;

/// Words that stand for a noun that the name does not say.
const PRONOUNS: [&str; 7] = ["nobody", "what", "whatever", "where", "who", "whoever", "whose"];

/// The least number of words in a doc comment: fewer only repeat the name below them.
const WORDS_MIN: usize = 5;

#[test]
fn every_name_of_a_function_begins_with_its_subject() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for (name, text) in sources(&["crates", "tests"]) {
        for (at, line) in text.lines().enumerate() {
            let Some(function) = function_in(line) else { continue };
            seen += 1;
            let first = function.split('_').next().unwrap_or_default();
            // A name of one word is a keyword's namesake and no sentence.
            if PRONOUNS.contains(&first) && function.contains('_') {
                found.push(format!("{name}:{}: {function}", at + 1));
            }
        }
    }
    assert!(seen > 5000, "{seen} functions are hardly all");
    assert!(found.is_empty(), "name the subject first, then the outcome:\n{}", found.join("\n"));
}

/// The name of the function that a line begins to define.
pub(crate) fn function_in(line: &str) -> Option<&str> {
    const MODIFIERS: [&str; 6] = ["async", "const", "default", "extern", "unsafe", "\"C\""];
    let mut words = line.split_whitespace();
    words
        .by_ref()
        .find(|word| !word.starts_with("pub") && !MODIFIERS.contains(word))
        .filter(|word| *word == "fn")?;
    words.next()?.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

#[test]
fn every_doc_comment_has_five_words() {
    let (mut short, mut seen) = (Vec::new(), 0);
    for (name, text) in sources(&["crates", "tests"]) {
        for comment in doc_comments(&text) {
            seen += 1;
            if comment.words < WORDS_MIN {
                short.push(format!("{name}:{}", comment.line));
            }
        }
    }
    assert!(seen > 5000, "{seen} doc comments are hardly all");
    assert!(short.is_empty(), "say meaning, unit, range or source, or say nothing:\n{}", short.join("\n"));
}

/// A run of lines that document one thing.
struct DocComment {
    /// The number of its first line, from 1.
    line: usize,
    words: usize,
}

fn doc_comments(text: &str) -> Vec<DocComment> {
    let mut comments: Vec<DocComment> = Vec::new();
    let mut before = None;
    for (at, line) in text.lines().enumerate() {
        let marked =
            ["///", "//!"].into_iter().find_map(|mark| Some((mark, line.trim().strip_prefix(mark)?)));
        // Four slashes are a line between two parts of a file.
        let Some((mark, words)) = marked.filter(|(_, words)| !words.starts_with('/')) else {
            before = None;
            continue;
        };
        if before.replace(mark) != Some(mark) {
            comments.push(DocComment { line: at + 1, words: 0 });
        }
        let comment = comments.last_mut().expect("the line belongs to one");
        comment.words += words.split_whitespace().count();
    }
    comments
}

#[test]
fn words_are_counted_by_comment() {
    let counted = |text| doc_comments(text).iter().map(|comment| comment.words).collect::<Vec<_>>();
    assert_eq!(counted("//! One two.\n\n/// Three\n/// four.\nfn a() {}\n// no\n    /// Five.\n"), [2, 2, 1]);
    assert_eq!(function_in("    pub(crate) async fn waits_for(x: u8) {"), Some("waits_for"));
    assert_eq!(function_in("let f: fn(u8) = g;"), None);
}
