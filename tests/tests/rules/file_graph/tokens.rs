//! What reads as a path among tokens that are not parsed as Rust: the arguments of macros and attributes.

use std::collections::BTreeSet;

use syn::LitStr;
use syn::buffer::Cursor;
use syn::ext::IdentExt as _;

/// One part of a stretch of tokens.
pub(super) enum TokenPiece<'t> {
    Path(TokenPath),
    /// The tokens between two brackets.
    Group(Cursor<'t>),
    /// The text of a string literal.
    Text(String),
}

/// A path as it stands among tokens: names joined by `::`.
pub(super) struct TokenPath {
    pub(super) segments: Vec<String>,
    pub(super) follower: PathFollower,
}

/// The token behind a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathFollower {
    /// An exclamation mark: the path names a macro.
    Bang,
    /// Parentheses: the path names a function, or a variant or struct without field names.
    Parentheses,
    Other,
}

impl TokenPath {
    /// Whether this can only be a path: a lone name in small letters may be a variable, a field or a word of
    /// the macro's own.
    pub(super) fn is_certain(&self) -> bool {
        self.segments.len() > 1
            || self.follower != PathFollower::Other
            || self.segments.iter().any(|name| name.starts_with(|letter: char| letter.is_uppercase()))
    }
}

/// The parts of a stretch of tokens, in their order.
pub(super) fn pieces(mut cursor: Cursor<'_>) -> Vec<TokenPiece<'_>> {
    let mut pieces = Vec::new();
    // The punctuation right before the cursor.
    let mut before = String::new();
    while !cursor.eof() {
        if let Some((_, after)) = cursor.lifetime() {
            cursor = after;
        } else if let Some((segments, after)) = path_at(cursor) {
            if let Some(segments) = whole_path(segments, &before) {
                pieces.push(TokenPiece::Path(TokenPath { segments, follower: follower(after) }));
            }
            cursor = after;
        } else if let Some((inside, _, _, after)) = cursor.any_group() {
            pieces.push(TokenPiece::Group(inside));
            cursor = after;
        } else if let Some((punctuation, after)) = cursor.punct() {
            before.push(punctuation.as_char());
            cursor = after;
            continue;
        } else if let Some((literal, after)) = cursor.literal() {
            if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) {
                pieces.push(TokenPiece::Text(text.value()));
            }
            cursor = after;
        } else {
            break;
        }
        before.clear();
    }
    pieces
}

/// Every name that stands alone, at any depth.
pub(super) fn lone_names(cursor: Cursor<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for piece in pieces(cursor) {
        match piece {
            TokenPiece::Path(path) if path.segments.len() == 1 => names.extend(path.segments),
            TokenPiece::Path(_) | TokenPiece::Text(_) => {}
            TokenPiece::Group(inside) => names.extend(lone_names(inside)),
        }
    }
    names
}

/// Names joined by `::` that begin at the cursor, and what stands behind them.
fn path_at(cursor: Cursor<'_>) -> Option<(Vec<String>, Cursor<'_>)> {
    let (first, mut after) = cursor.ident()?;
    let mut segments = vec![first.unraw().to_string()];
    while let Some((name, behind)) = path_separator(after).and_then(Cursor::ident) {
        segments.push(name.unraw().to_string());
        after = behind;
    }
    Some((segments, after))
}

/// What stands behind `::`, if the cursor is at one.
fn path_separator(cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, after) = cursor.punct()?;
    let (second, after) = after.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(after)
}

/// A path that is whole with the punctuation before it: none that is a method, a field, a parameter of a
/// macro, or a part of something longer. `$crate` means the crate.
fn whole_path(segments: Vec<String>, before: &str) -> Option<Vec<String>> {
    let is_method = before.ends_with('.') && !before.ends_with("..");
    let is_parameter = before.ends_with('$') && segments[0] != "crate";
    (!is_method && !is_parameter && !before.ends_with("::")).then_some(segments)
}

fn follower(after: Cursor<'_>) -> PathFollower {
    if let Some((punctuation, behind)) = after.punct()
        && punctuation.as_char() == '!'
        && behind.punct().is_none_or(|(next, _)| next.as_char() != '=')
    {
        return PathFollower::Bang;
    }
    let is_call =
        after.any_group().is_some_and(|(_, delimiter, _, _)| format!("{delimiter:?}") == "Parenthesis");
    if is_call { PathFollower::Parentheses } else { PathFollower::Other }
}
