//! Each class of autoscaler is behind one enum, whose variants one file names: a third class changes that
//! file.

use std::collections::BTreeSet;

use crate::house_rules::sources;

#[test]
fn the_variants_of_algorithm_are_named_in_one_file() {
    let files = sources(&["crates"]);
    let declared = files.iter().find_map(|(name, text)| Some((name, variants_of(text, "enum Algorithm {")?)));
    let (home, variants) = declared.expect("scaling has the enum `Algorithm`");
    assert!(variants.len() > 1, "{variants:?} are hardly all");
    let names_one =
        |text: &str| variants.iter().any(|variant| text.contains(&format!("Algorithm::{variant}")));
    let elsewhere: Vec<&str> = files
        .iter()
        .filter(|(name, text)| name != home && names_one(text))
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(
        elsewhere.is_empty(),
        "ask a method of `Algorithm` ({home}) instead in:\n{}",
        elsewhere.join("\n")
    );
}

/// The variants of an enum that a text declares.
fn variants_of<'t>(text: &'t str, declaration: &str) -> Option<BTreeSet<&'t str>> {
    let (_, body) = text.split_once(declaration)?;
    let body = body.split("\n}").next()?;
    let names = body.lines().filter(|line| line.starts_with("    ")).map(str::trim);
    Some(
        names
            .filter(|line| line.starts_with(|letter: char| letter.is_ascii_uppercase()))
            .filter_map(|line| line.split(|letter: char| !letter.is_alphanumeric()).next())
            .collect(),
    )
}
