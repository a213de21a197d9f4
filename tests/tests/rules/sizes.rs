//! How long functions and files are, without their tests: a reader holds one of each in mind.

use crate::house_rules::sources;
use crate::words::function_in;

/// What 95 of 100 may not exceed, and what none may, in lines.
struct SizeLimits {
    usual: usize,
    most: usize,
}

const FUNCTIONS: SizeLimits = SizeLimits { usual: 28, most: 70 };
/// The goal for 95 of 100 is 320; `orchestration`, `autoscaler` and `cluster` have the files that
/// are above it.
const FILES: SizeLimits = SizeLimits { usual: 360, most: 450 };

/// A function or a file with its number of lines.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MeasuredPart {
    lines: usize,
    place: String,
}

#[test]
fn functions_and_files_are_short() {
    let (mut functions, mut files) = (Vec::new(), Vec::new());
    for (name, text) in sources(&["crates"]) {
        let is_test = ["/tests/", "/benches/"].iter().any(|part| name.contains(part));
        if is_test || name.ends_with("tests.rs") || name.ends_with("vectors.rs") {
            continue;
        }
        let lines = product_lines(&text);
        files.push(MeasuredPart { lines: lines.len(), place: name.clone() });
        functions.extend(function_sizes(&lines).map(|(function, length)| MeasuredPart {
            lines: length,
            place: format!("{function} in {name}"),
        }));
    }
    assert!(functions.len() > 4000 && files.len() > 500, "{} functions are hardly all", functions.len());
    let problems = [complaint("functions", functions, &FUNCTIONS), complaint("files", files, &FILES)];
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What is wrong with the sizes of these parts, with the ten longest.
fn complaint(kind: &str, mut parts: Vec<MeasuredPart>, limits: &SizeLimits) -> Option<String> {
    parts.sort_by(|one, other| other.cmp(one));
    let most = parts.first()?.lines;
    let usual = parts[parts.len() * 5 / 100].lines;
    if most <= limits.most && usual <= limits.usual {
        return None;
    }
    let longest: Vec<String> =
        parts.iter().take(10).map(|part| format!("  {} {}", part.lines, part.place)).collect();
    let SizeLimits { usual: usual_limit, most: most_limit } = limits;
    Some(format!(
        "{kind}: 95 of 100 have at most {usual} lines (limit {usual_limit}), the longest {most} (limit {most_limit}):\n{}",
        longest.join("\n")
    ))
}

/// The lines of a file before the tests at its end.
fn product_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_tests).unwrap_or(lines.len());
    lines[..end].to_vec()
}

/// The name and the lines of each function with a body, from its signature to its last brace. rustfmt indents
/// both alike.
fn function_sizes<'t>(lines: &[&'t str]) -> impl Iterator<Item = (&'t str, usize)> {
    lines.iter().enumerate().filter_map(|(at, line)| {
        let name = function_in(line)?;
        if line.ends_with('}') {
            return Some((name, 1));
        }
        let indent = line.len() - line.trim_start().len();
        let is_beside = |line: &str| line.len() > indent && line.len() - line.trim_start().len() == indent;
        let mut beside = lines[at..].iter().enumerate().filter(|(_, line)| is_beside(line));
        // A declaration without a body ends before any brace.
        beside
            .find(|(_, line)| line.ends_with('{') || line.ends_with(';'))
            .filter(|(_, line)| line.ends_with('{'))?;
        let (length, _) = beside.find(|(_, line)| line.trim_start().starts_with('}'))?;
        Some((name, length + 1))
    })
}

#[test]
fn a_function_is_measured_from_its_signature_to_its_last_brace() {
    let text = "fn a() {}\nfn b(\n    c: u8,\n) -> u8 {\n    if c > 1 {\n    }\n    c\n}\ntrait T {\n    fn d();\n    fn e() {\n        1\n    }\n}\n";
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<(&str, usize)> = function_sizes(&lines).collect();
    assert_eq!(found, [("a", 1), ("b", 7), ("e", 3)]);
}
