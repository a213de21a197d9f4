//! Reads a head whose target is none to `httparse` or to `http::Uri`: it may be one to an app all the same,
//! and if it is not, its client is told which byte is wrong.
//!
//! The head is read once more with the encoded form of its target (see [`crate::target`]), so that no second
//! reader of heads is needed. That copies it, which nearly no request pays for.

use bytes::Bytes;
use http::Method;

use super::HeadLimits;
use super::request_head::{RequestHead, UnreadableRequest, read_plain};
use crate::fields::is_token_byte;
use crate::target::{
    RawTarget, TargetProblem, misplaced_byte, misplaced_in_host, path_begin, percent_encode_odd_bytes,
};

/// Reads a head that was refused because of `why`.
#[cold]
pub(super) fn read(
    bytes: &Bytes,
    limits: HeadLimits,
    why: UnreadableRequest,
) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
    let line = match RequestLine::of(bytes) {
        RequestLine::Whole { begin, end } => &bytes[begin..end],
        // It was refused for bytes that may stand there: more of it is waited for.
        RequestLine::Begun if why == UnreadableRequest::RequestLine => return Ok(None),
        RequestLine::Begun | RequestLine::Other => return Err(why),
    };
    let target = bytes.slice_ref(line);
    if let Some(misplaced) = misplaced_byte(&target) {
        return Err(TargetProblem::Byte(misplaced).into());
    }
    let text = percent_encode_odd_bytes(&target)?;
    let wrong_host = wrong_host(&target).map(UnreadableRequest::from);
    if text == target {
        return Err(wrong_host.unwrap_or(why));
    }
    let at = target.as_ptr().addr() - bytes.as_ptr().addr();
    let copy = [&bytes[..at], &text, &bytes[at + target.len()..]].concat();
    let read = read_plain(&Bytes::from(copy), limits);
    let Some((mut head, length)) = read.map_err(|error| {
        let is_form = error == UnreadableRequest::Target(TargetProblem::Form);
        wrong_host.filter(|_| is_form).unwrap_or(error)
    })?
    else {
        return Ok(None);
    };
    // Between brackets a `http::Uri` takes the encoded form of a byte that stands in no host. The host of a
    // CONNECT is no matter: the method is refused.
    if let Some(wrong_host) = wrong_host.filter(|_| head.request.method() != Method::CONNECT) {
        return Err(wrong_host);
    }
    let longer = text.len() - target.len();
    head.request.extensions_mut().insert(RawTarget::of(&target));
    head.bytes = length - longer;
    Ok(Some((head, length - longer)))
}

/// The byte that makes the host in a target none. A user is no such byte: names of users are another form.
fn wrong_host(target: &[u8]) -> Option<TargetProblem> {
    let end = path_begin(target);
    let scheme = target[..end].windows(3).position(|three| three == b"://")?;
    let misplaced = misplaced_in_host(&target[scheme + 3..end])?;
    (misplaced.byte != b'@').then_some(TargetProblem::Host(misplaced))
}

/// What the beginning of a head says of its target.
enum RequestLine {
    /// The target lies between these two places of the head.
    Whole { begin: usize, end: usize },
    /// Its end, or that of its line, is missing, and so far nothing is wrong with it.
    Begun,
    /// Nothing: the line is not one of HTTP/1.1.
    Other,
}

impl RequestLine {
    fn of(bytes: &[u8]) -> Self {
        let method = bytes.iter().take_while(|byte| is_token_byte(**byte)).count();
        if method == 0 || bytes.get(method) != Some(&b' ') {
            return Self::Other;
        }
        let begin = method + 1;
        let Some(length) = bytes.windows(2).position(|two| two == b"\r\n") else {
            let target = bytes[begin..].split(|byte| *byte == b' ').next().unwrap_or_default();
            let is_target = !target.is_empty() && misplaced_byte(target).is_none();
            return if is_target { Self::Begun } else { Self::Other };
        };
        // The last space: of a target with a space in it, the rest is no version.
        let end = bytes[..length].iter().rposition(|byte| *byte == b' ').unwrap_or(begin);
        let is_versioned = matches!(&bytes[end..length], b" HTTP/1.1" | b" HTTP/1.0");
        let is_framed = end > begin && bytes[begin] != b' ' && bytes[end - 1] != b' ';
        if is_versioned && is_framed { Self::Whole { begin, end } } else { Self::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request_reader::read_request;
    use super::*;
    use crate::target::{MisplacedByte, path_and_query};

    fn read(head: &[u8]) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
        read_request(&Bytes::copy_from_slice(head), HeadLimits::OUTER)
    }

    fn asking(target: &[u8]) -> Vec<u8> {
        [b"GET ", target, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat()
    }

    #[test]
    fn every_visible_byte_but_one_and_every_high_one_is_passed_as_it_came() {
        for byte in (b'!'..=b'~').filter(|byte| *byte != b'#').chain(0x80..=u8::MAX) {
            for before in [&b"/a"[..], b"/?b=", b"http://h/a", b"http://h?b="] {
                let target = [before, &[byte], b"c"].concat();
                let text = asking(&target);
                let shown = target.escape_ascii();
                let (head, length) = read(&text).expect("legal").expect("whole");
                let path = &target[path_begin(&target)..];
                // A query right behind the host gets its slash where it is written, if it has none yet.
                let written = path_and_query(&head.request);
                assert_eq!(
                    written.strip_prefix(b"/?").map_or(written, |_| &written[1..]),
                    { path.strip_prefix(b"/?").map_or(path, |_| &path[1..]) },
                    "{shown}"
                );
                assert_eq!(length, text.len(), "{shown}");
                let host = head.request.uri().host();
                assert_eq!(host.is_some(), target.starts_with(b"http"), "{shown}");
            }
        }
    }

    #[test]
    fn a_refused_byte_is_named_with_its_place() {
        let byte = |byte, place| TargetProblem::Byte(MisplacedByte { byte, place });
        let host = |byte, place| TargetProblem::Host(MisplacedByte { byte, place });
        for (target, expected) in [
            (&b"/a#b"[..], byte(b'#', 3)),
            (b"http://h/a#b", byte(b'#', 11)),
            (b"/<#>", byte(b'#', 3)),
            (b"/a b", byte(b' ', 3)),
            (b"/a b c", byte(b' ', 3)),
            (b"/a\x01b", byte(1, 3)),
            (b"/\xff\x7f", byte(0x7f, 3)),
            (b"/a\tb", byte(b'\t', 3)),
            (b"/a\rb", byte(b'\r', 3)),
            (b"http://h<i/", host(b'<', 2)),
            (b"http://h\\i/", host(b'\\', 2)),
            (b"http://h\xffi/", host(0xff, 2)),
            (b"http://a<b@h/", host(b'<', 2)),
            (b"http://h[\\]3/x", host(b'\\', 3)),
            (b"http://[<]/?`", host(b'<', 2)),
            (b"http://user@h/<", TargetProblem::Form),
            (b"x<y", TargetProblem::Form),
            (b"\xff", TargetProblem::Form),
        ] {
            let shown = target.escape_ascii();
            let refused = read(&asking(target)).expect_err(&shown.to_string());
            assert_eq!(refused, UnreadableRequest::Target(expected), "{shown}");
        }
    }

    #[test]
    fn an_odd_target_in_pieces_is_waited_for() {
        for target in [&b"/<\xff>?\"a\""[..], b"/\xe4\xf6", b"http://h?`<"] {
            let text = asking(target);
            for length in 0..text.len() {
                let so_far = read(&text[..length]);
                assert!(so_far.expect("so far so good").is_none(), "{length} of {}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn connect_is_read_whatever_its_target_is() {
        for target in [&b"h:80"[..], b"user@h:80", b"/", b"http://h/", b"\xff<"] {
            let text = [b"CONNECT ", target, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
            let (head, _) = read(&text).expect("legal").expect("whole");
            assert_eq!(head.request.method(), http::Method::CONNECT, "{}", target.escape_ascii());
        }
    }
}
