//! No files of one crate use each other in a circle: each file can be read and moved with those below it
//! alone.
//!
//! What an edge is stands in [`crate::file_graph`].

use std::collections::BTreeSet;
use std::path::Path;

use crate::file_graph::{FileGraph, SourceTexts};

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("crates");
    let mut circles = BTreeSet::new();
    for entry in std::fs::read_dir(crates).expect("the workspace has crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let found = FileGraph::read(&entry.path()).circles();
        circles.extend(found.iter().map(|circle| format!("{name}: {circle}")));
    }
    let circles = circles.into_iter().collect::<Vec<_>>().join("\n");
    assert!(circles.is_empty(), "move what two files need to a file below both:\n{circles}");
}

/// The circle that each small crate holds, as [`crate::file_graph::FileCircle`] prints it; nothing for none.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let sources: SourceTexts =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let circles = FileGraph::of("made-up", &sources).circles();
    let found: Vec<String> = circles.iter().map(ToString::to_string).collect();
    let edges: Vec<&str> = found.iter().flat_map(|circle| circle.lines().skip(1)).map(str::trim).collect();
    assert_eq!(edges, expected);
}

/// The root of most examples.
const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b;");
/// The other half of most circles.
const B_USES_A: (&str, &str) = ("b.rs", "use crate::a::A; pub struct B { a: A } pub fn b() {}");

#[test]
fn imports_close_a_circle() {
    let files = [ROOT, ("a.rs", "use super::b::{B as Other}; pub struct A(Option<Box<Other>>);"), B_USES_A];
    check(&files, &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
}

#[test]
fn a_full_path_in_an_expression_closes_a_circle() {
    let files = [ROOT, ("a.rs", "pub struct A; fn f() { let b = 1; crate::b::b() }"), B_USES_A];
    check(&files, &["a.rs -> b.rs: b", "b.rs -> a.rs: A"]);
}

#[test]
fn a_type_in_a_signature_closes_a_circle() {
    let files = [ROOT, ("a.rs", "pub struct A; fn f(all: &[super::b::B]) {}"), B_USES_A];
    check(&files, &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
}

#[test]
fn a_re_export_is_resolved_to_the_file_of_the_item() {
    let root =
        ("lib.rs", "mod a; mod b; pub use b::B; pub use facade::c; mod facade { pub use crate::b::b as c; }");
    let files = [root, ("a.rs", "pub struct A; use crate::B;"), B_USES_A];
    check(&files, &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
    let files = [root, ("a.rs", "pub struct A; fn f() { made_up(crate::c) }"), B_USES_A];
    check(&files, &["a.rs -> b.rs: b", "b.rs -> a.rs: A"]);
}

#[test]
fn a_name_that_a_glob_brings_in_closes_a_circle() {
    let files = [ROOT, ("a.rs", "use crate::b::*; pub struct A; fn f() -> B { todo!() }"), B_USES_A];
    check(&files, &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
    let files = [ROOT, ("a.rs", "use crate::b::*; pub struct A;"), B_USES_A];
    check(&files, &[]);
}

#[test]
fn a_parent_and_its_child_make_a_circle() {
    let root = ("lib.rs", "mod a;");
    let parent = ("a.rs", "mod b; pub struct A(Vec<b::B>);");
    let files = [root, parent, ("a/b.rs", "pub(super) struct B; impl super::A { fn f(&self) {} }")];
    check(&files, &["a.rs -> a/b.rs: B", "a/b.rs -> a.rs: A"]);
}

#[test]
fn the_tokens_of_a_macro_close_a_circle() {
    for tokens in [
        "assert!(crate::b::b() == 1, \"text\");",
        "select! { word = next() => crate::b::b(), else => {} }",
        "vec![{ use crate::b::b; b() }];",
    ] {
        let code = format!("pub struct A; fn f() {{ {tokens} }}");
        check(&[ROOT, ("a.rs", &code), B_USES_A], &["a.rs -> b.rs: b", "b.rs -> a.rs: A"]);
    }
    let root = ("lib.rs", "mod b; mod a;");
    let b = ("b.rs", "use crate::a::A; macro_rules! list { () => { A } }");
    let files = [root, ("a.rs", "pub struct A; fn f() { list!() }"), b];
    check(&files, &["a.rs -> b.rs: list", "b.rs -> a.rs: A"]);
}

#[test]
fn variants_and_associated_items_count_as_their_type() {
    let b = ("b.rs", "use crate::a::A; pub enum B { One(A), Two } impl B { pub const C: u8 = 1; }");
    for code in
        ["crate::b::B::C", "matches!(x, crate::b::B::Two)", "{ use crate::b::B::*; match x { Two => 1 } }"]
    {
        let a = format!("pub struct A; fn f() {{ {code}; }}");
        check(&[ROOT, ("a.rs", &a), b], &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
    }
}

#[test]
fn a_path_in_an_attribute_closes_a_circle() {
    for field in ["#[serde(default = \"crate::b::b\")] x: u8", "#[arg(value_parser = crate::b::b)] x: u8"] {
        let a = format!("pub struct A {{ {field} }}");
        check(&[ROOT, ("a.rs", &a), B_USES_A], &["a.rs -> b.rs: b", "b.rs -> a.rs: A"]);
    }
}

#[test]
fn a_constant_in_a_pattern_closes_a_circle() {
    let b = ("b.rs", "use crate::a::A; pub const LIMIT: u8 = 1;");
    let a = (
        "a.rs",
        "use crate::b::*; pub struct A; fn f(x: u8) -> bool { match x { LIMIT => true, b => false } }",
    );
    check(&[ROOT, a, b], &["a.rs -> b.rs: LIMIT", "b.rs -> a.rs: A"]);
}

#[test]
fn code_that_only_tests_compile_makes_no_edge() {
    let inline =
        "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(all(test, unix))] use crate::b::B;";
    check(&[ROOT, ("a.rs", inline), B_USES_A], &[]);
    let files = [
        ROOT,
        ("a.rs", "pub struct A; #[cfg(test)] mod tests;"),
        ("a/tests.rs", "use crate::b::B;"),
        B_USES_A,
    ];
    check(&files, &[]);
    let files = [ROOT, ("a.rs", "pub struct A; #[cfg(not(test))] use crate::b::B;"), B_USES_A];
    check(&files, &["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
}

#[test]
fn declarations_and_re_exports_make_no_edge() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; mod c; pub use b::B; pub(crate) use c::*;"),
        ("a/b.rs", "use super::C; pub struct B;"),
        ("a/c.rs", "pub struct C;"),
    ];
    check(&files, &[]);
}

#[test]
fn a_method_that_is_called_makes_no_edge() {
    let b = ("b.rs", "use crate::a::A; impl A { pub fn b(&self) {} }");
    check(
        &[ROOT, ("a.rs", "pub struct A; fn f(a: &A) { a.b(); assert!(a.b()); select! { a.b() => 1 } }"), b],
        &[],
    );
}

#[test]
fn a_local_name_hides_that_of_the_module() {
    for code in [
        "fn f(b: fn()) { b() }",
        "fn f() { for b in [1] { g(b) } }",
        "fn f() { if let Some(b) = g() && b > 1 { b } else { 1 } }",
        "fn f() { |b: u8| b + 1 }",
        "fn f() { fn b() {} b() }",
        "fn f<B>(x: B) {}",
    ] {
        let a = format!("use crate::b::*; pub struct A; {code}");
        check(&[ROOT, ("a.rs", &a), B_USES_A], &[]);
    }
    let a = ("a.rs", "use crate::b::*; pub struct A; fn f() { let b = b(); g(b) }");
    check(&[ROOT, a, B_USES_A], &["a.rs -> b.rs: b", "b.rs -> a.rs: A"]);
}
