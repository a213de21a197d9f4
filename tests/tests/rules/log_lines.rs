//! Lines of the log are for people: no debug form of a type of Rust stands in a line of level INFO or above.

use crate::house_rules::sources;

/// The macros that write lines of these levels.
const MACROS: [&str; 3] = ["info!(", "warn!(", "error!("];

#[test]
fn no_line_of_the_log_has_a_debug_form() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for (name, text) in sources(&["crates"]) {
        if name.contains("/tests/") || name.ends_with("tests.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for start in MACROS {
            for (at, _) in code.match_indices(start) {
                seen += 1;
                let call = arguments(&code[at + start.len()..]);
                if has_debug_form(call) {
                    let words: Vec<&str> = call.split_whitespace().collect();
                    found.push(format!("{name}: {}", words.join(" ")));
                }
            }
        }
    }
    assert!(seen > 100, "{seen} lines are hardly all");
    assert!(found.is_empty(), "write these in words:\n{}", found.join("\n"));
}

/// A text up to the parenthesis that closes it. Parentheses in strings do not count.
fn arguments(text: &str) -> &str {
    let (mut depth, mut is_in_string, mut is_escaped) = (0_u32, false, false);
    for (at, letter) in text.char_indices() {
        if is_in_string {
            is_in_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        match letter {
            '"' => is_in_string = true,
            '(' => depth += 1,
            ')' if depth == 0 => return &text[..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Whether arguments have a field as `?field`, or a string with `{field:?}`. A question mark behind a call
/// is the operator.
fn has_debug_form(arguments: &str) -> bool {
    let begins_name = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let mut marks = arguments.match_indices('?').map(|(at, _)| (&arguments[..at], &arguments[at + 1..]));
    let is_field = marks.any(|(before, after)| {
        let last = before.chars().next_back();
        last.is_none_or(|last| " \n(=".contains(last)) && after.starts_with(begins_name)
    });
    is_field || arguments.contains(":?}") || arguments.contains(":#?}")
}

#[test]
fn debug_forms_are_told_from_operators_and_questions() {
    let code = r#"%name, why = find("a ) b")?, ?buckets, "moved"); other(1)"#;
    assert_eq!(arguments(code), r#"%name, why = find("a ) b")?, ?buckets, "moved""#);
    for (call, has_one) in [
        ("?buckets, \"moved\"", true),
        ("part = ?order.part, \"failed\"", true),
        ("\"{limit:?} is too long\"", true),
        ("%name, count = read(x)?, \"is this it? yes\"", false),
    ] {
        assert_eq!(has_debug_form(call), has_one, "{call}");
    }
}
