//! Which bytes may the target of a request have, and how does a target travel that `http::Uri` does not hold?
//!
//! An app gets its targets as their clients wrote them: every visible character of ASCII but `#`, which
//! begins what a client keeps to itself, and every byte from 0x80 on. `http::Uri` refuses some of these (`<`,
//! `>` and the backtick in a path, `<`, `>` and `"` in a query, what is not UTF-8). Of such a target it holds
//! the *encoded form*, in which they are percent-encoded: good enough for a log, a trace and the host. The
//! target itself stands beside it, among the request's extensions ([`RawTarget`]), and is what the next hop
//! gets. So only these requests pay for it.

use std::fmt;

use bytes::Bytes;
use thiserror::Error;

use crate::byte_table::allowed_length;
use crate::message::Request;

/// As long as the target of a request may be; `http::Uri` can hold no more, be it in the encoded form.
pub(crate) const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Path and query of a target that a `http::Uri` cannot hold, as they came; it begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTarget(Bytes);

/// Why a target is refused. The text is what its client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TargetProblem {
    /// Of another form than its method can have.
    #[error(
        "the target of the request is none that its method can have: it begins with a slash or a scheme, and names no user"
    )]
    Form,
    /// With a byte that stands in no target.
    #[error("{0} of the target of the request, where only visible characters other than '#' may stand")]
    Byte(MisplacedByte),
    /// With a byte that stands in no host.
    #[error("{0} of the host in the target of the request, where none may stand")]
    Host(MisplacedByte),
    /// Longer than can be held.
    #[error(
        "the target of the request is longer than {TARGET_BYTES_MAX} bytes, of which a character that should be encoded takes three"
    )]
    TooLong,
}

/// A byte that may not stand where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisplacedByte {
    /// The value of the byte, as it was sent.
    pub byte: u8,
    /// Its place; the first is 1.
    pub place: usize,
}

impl MisplacedByte {
    fn find(text: &[u8], is_allowed: impl Fn(u8) -> bool) -> Option<Self> {
        let at = text.iter().position(|byte| !is_allowed(*byte))?;
        Some(Self { byte: text[at], place: at + 1 })
    }
}

impl fmt::Display for MisplacedByte {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.byte {
            b' ' => formatter.write_str("a space")?,
            byte @ b'!'..=b'~' => write!(formatter, "'{}'", char::from(byte))?,
            byte => write!(formatter, "the byte 0x{byte:02x}")?,
        }
        write!(formatter, " stands at place {}", self.place)
    }
}

impl RawTarget {
    /// The path and the query in the target of a request, in one of its forms: with or without scheme and
    /// host.
    pub(crate) fn of(target: &Bytes) -> Self {
        let begin = path_begin(target);
        Self(match target.get(begin) {
            Some(b'/') => target.slice(begin..),
            // What goes on with its query right behind the host has the path `/`.
            Some(_) | None => Bytes::from([b"/", &target[begin..]].concat()),
        })
    }
}

/// Path and query of a request as they are written on.
pub fn path_and_query<B>(request: &Request<B>) -> &[u8] {
    match request.extensions().get::<RawTarget>() {
        Some(raw) => &raw.0,
        None => request.target().path_and_query(),
    }
}

/// The first byte that stands in no target.
pub(crate) fn misplaced_byte(target: &[u8]) -> Option<MisplacedByte> {
    MisplacedByte::find(target, may_be_in_target)
}

/// The first byte that stands in no host.
pub(crate) fn misplaced_in_host(host: &[u8]) -> Option<MisplacedByte> {
    MisplacedByte::find(host, may_be_in_host)
}

/// The encoded form of a target: what a `http::Uri` holds in its place. The same bytes if a `http::Uri` can
/// hold the target itself. All bytes of `target` may stand in a target.
pub(crate) fn percent_encode_odd_bytes(target: &[u8]) -> Result<Vec<u8>, TargetProblem> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = Vec::with_capacity(target.len() + 16);
    for &byte in target {
        if needs_percent_encoding(byte) {
            text.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        } else {
            text.push(byte);
        }
    }
    if text.len() > TARGET_BYTES_MAX { Err(TargetProblem::TooLong) } else { Ok(text) }
}

/// Where the path, or the query without one, of a target begins.
pub(crate) fn path_begin(target: &[u8]) -> usize {
    if target.starts_with(b"/") {
        return 0;
    }
    let scheme = target.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    let host = target[scheme..].iter().position(|byte| b"/?".contains(byte));
    host.map_or(target.len(), |length| scheme + length)
}

const fn may_be_in_target(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && byte != b'#'
}

/// Whether `http::Uri` may refuse a byte that may stand in a target, wherever it stands.
const fn needs_percent_encoding(byte: u8) -> bool {
    byte >= 0x80 || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

/// Whether each byte may stand in a host, see [`may_be_in_host`].
pub(crate) fn may_be_host(text: &[u8]) -> bool {
    allowed_length(text, &MAY_BE_IN_HOST) == text.len()
}

/// The answers of [`may_be_in_host`], because every request has a host, and a look is cheaper than the
/// comparisons.
static MAY_BE_IN_HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = may_be_in_host(byte);
        byte += 1;
    }
    table
};

/// What a host and its port are written with (RFC 3986 §3.2.2). A user before it, a path behind it or a
/// second host would be read by some and not by others.
const fn may_be_in_host(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'@' | b'/' | b'\\' | b'?' | b'#' | b',' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}'
        )
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;

    #[test]
    fn a_uri_holds_every_target_in_its_encoded_form() {
        for byte in (0..=u8::MAX).filter(|byte| may_be_in_target(*byte)) {
            for before in ["/", "/?", "http://h/", "http://h?"] {
                let target = [before.as_bytes(), &[byte], b"x"].concat();
                let text = percent_encode_odd_bytes(&target).expect("short");
                let uri = Uri::from_maybe_shared(Bytes::from(text.clone()));
                let uri = uri.unwrap_or_else(|error| panic!("{}: {error}", text.escape_ascii()));
                let path = uri.path_and_query().expect("there is one").as_str();
                assert_eq!(path.as_bytes(), &text[path_begin(&target)..], "{}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn a_host_has_no_byte_that_may_not_stand_in_one() {
        for byte in 0..=u8::MAX {
            assert_eq!(may_be_host(&[b'h', byte, b':']), may_be_in_host(byte), "{byte}");
        }
    }

    #[test]
    fn the_raw_target_is_what_follows_the_host() {
        for (target, expected) in [
            ("/<a>?\"b\"", "/<a>?\"b\""),
            ("http://h:80/<a>", "/<a>"),
            ("http://h?<a>", "/?<a>"),
            ("http://h", "/"),
            ("//a?http://b/c", "//a?http://b/c"),
        ] {
            assert_eq!(RawTarget::of(&Bytes::from(target)).0, expected, "{target}");
        }
    }

    #[test]
    fn a_byte_is_named_with_its_place() {
        for (target, expected) in [
            (&b"/a#b"[..], Some("'#' stands at place 3")),
            (b"/a b", Some("a space stands at place 3")),
            (b"\x01", Some("the byte 0x01 stands at place 1")),
            (b"/\x7f", Some("the byte 0x7f stands at place 2")),
            (b"/<a>?\"`{|}\\^\x80\xff", None),
        ] {
            let named = misplaced_byte(target).map(|byte| byte.to_string());
            assert_eq!(named.as_deref(), expected, "{}", target.escape_ascii());
        }
    }

    #[test]
    fn a_target_whose_encoded_form_is_too_long_is_refused() {
        let target = "<".repeat(TARGET_BYTES_MAX / 3);
        assert!(percent_encode_odd_bytes(target.as_bytes()).is_ok());
        assert_eq!(percent_encode_odd_bytes(format!("{target}<").as_bytes()), Err(TargetProblem::TooLong));
    }
}
