//! The head of a message, put together from its fields and checked (RFC 9113 §8).

use std::ops::ControlFlow;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue, TE, UPGRADE};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Extensions, Method, StatusCode, Uri, Version};

use super::hpack::Field;
use super::memory::head_memory;
use crate::fields::{AmbiguousLength, FieldList, FieldName, Fields};
use crate::message::{Request, RequestParts, Response, ResponseParts};
use crate::target::{RawTarget, TargetProblem, percent_encode_odd_bytes};

/// Why a head is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadProblem {
    Malformed,
    TooLarge,
    /// There is no memory for it now.
    NoMemory,
    /// Its target is none; with its method, as far as that is known.
    Target(TargetProblem, Option<Method>),
}

/// How large a head may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadBounds {
    /// With everything that its fields count for (RFC 9113 §6.5.2).
    pub(super) bytes: usize,
    pub(super) headers: usize,
}

/// What was read of a head.
#[derive(Debug, Default)]
pub(super) struct Head {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<PathAndQuery>,
    /// The path as it came, where `path` holds its encoded form. Boxed, because hardly any head has one.
    raw_path: Option<Box<RawTarget>>,
    /// The head is read on, because the answer depends on its method.
    refused: Option<TargetProblem>,
    status: Option<StatusCode>,
    headers: FieldList,
    has_headers: bool,
    bytes: usize,
    headers_seen: usize,
    problem: Option<HeadProblem>,
}

/// A head up to this size, as nearly all are, is not counted among what a connection holds.
const UNCOUNTED_BYTES: usize = 1024;

/// How much memory a head with these headers takes while it waits to be written out, if that is much: its
/// letters, in a buffer that grows by doubling.
pub(super) fn waiting_memory(fields: &Fields) -> usize {
    let mut bytes = 0;
    fields.each(|name, value| bytes += name.as_str().len() + value.len());
    memory_of_letters(bytes)
}

/// As [`waiting_memory`], for the trailers of a message.
pub(super) fn waiting_memory_of_trailers(trailers: &HeaderMap) -> usize {
    memory_of_letters(trailers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum())
}

fn memory_of_letters(bytes: usize) -> usize {
    if bytes <= UNCOUNTED_BYTES { 0 } else { 2 * bytes }
}

impl Head {
    /// One whose fields were not kept.
    pub(super) fn refused(problem: HeadProblem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    /// Takes a field that counts for so many bytes. Breaks off when nothing can be made of the head any more.
    pub(super) fn take(&mut self, field: Field, bytes: usize, limits: HeadBounds) -> ControlFlow<()> {
        self.bytes += bytes;
        self.headers_seen += usize::from(matches!(field, Field::Header(..)));
        if self.bytes > limits.bytes || self.headers_seen > limits.headers {
            self.problem.get_or_insert(HeadProblem::TooLarge);
        }
        if self.problem.is_some() {
            return ControlFlow::Break(());
        }
        let is_legal = match field {
            Field::Method(method) => self.first(|head| &mut head.method, method),
            Field::Scheme(scheme) => self.first(|head| &mut head.scheme, scheme),
            Field::Authority(authority) => self.first(|head| &mut head.authority, authority),
            Field::Path(path) => self.first(|head| &mut head.path, path),
            Field::OddPath(path) => self.odd_path(&path),
            Field::RefusedTarget(problem) => {
                self.refused.get_or_insert(problem);
                !self.has_headers
            }
            Field::Status(status) => self.first(|head| &mut head.status, status),
            Field::Header(name, value) => self.header(name, value),
            Field::Malformed => false,
        };
        if is_legal {
            return ControlFlow::Continue(());
        }
        self.problem = Some(HeadProblem::Malformed);
        ControlFlow::Break(())
    }

    /// A pseudo-header comes once, before all others.
    fn first<T>(&mut self, slot: impl FnOnce(&mut Self) -> &mut Option<T>, value: T) -> bool {
        !self.has_headers && slot(self).replace(value).is_none()
    }

    fn odd_path(&mut self, path: &Bytes) -> bool {
        let encoded = percent_encode_odd_bytes(path)
            .ok()
            .and_then(|text| PathAndQuery::from_maybe_shared(Bytes::from(text)).ok());
        let Some(encoded) = encoded else { return false };
        self.raw_path = Some(Box::new(RawTarget::of(path)));
        self.first(|head| &mut head.path, encoded)
    }

    /// What concerns one connection only has no place in HTTP/2 (§8.2.2).
    fn header(&mut self, name: HeaderName, value: HeaderValue) -> bool {
        self.has_headers = true;
        let field = FieldName::of(name.as_str().as_bytes());
        let is_allowed = match field {
            // `Dropped` are `Keep-Alive` and `Proxy-Connection`.
            FieldName::Connection | FieldName::TransferEncoding | FieldName::Dropped => false,
            FieldName::OfHops => name != UPGRADE && (name != TE || value == "trailers"),
            FieldName::Passing
            | FieldName::Host
            | FieldName::ContentLength
            | FieldName::Date
            | FieldName::UserAgent
            | FieldName::ContentType
            | FieldName::Expect => true,
        };
        if is_allowed {
            self.headers.push(field, name, value);
        }
        is_allowed
    }

    /// How many bytes its fields count for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it takes of memory, if that is much.
    pub(super) fn memory(&self) -> usize {
        if self.bytes <= UNCOUNTED_BYTES { 0 } else { head_memory(self.bytes, self.headers_seen) }
    }

    /// Whether it is larger than the bounds, and nothing else is wrong with it.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self.problem, Some(HeadProblem::TooLarge))
    }

    /// Whether nothing can be made of it.
    pub(super) fn is_useless(&self) -> bool {
        match self.problem {
            Some(HeadProblem::NoMemory) => false,
            Some(HeadProblem::Malformed | HeadProblem::TooLarge | HeadProblem::Target(..)) => true,
            None => self.refused.is_some(),
        }
    }

    fn has_request_fields(&self) -> bool {
        self.refused.is_some()
            || self.method.is_some()
            || self.scheme.is_some()
            || self.authority.is_some()
            || self.path.is_some()
    }

    /// The request that it is, taken out of it: to move the head would cost more than to read it.
    pub(super) fn take_request(&mut self) -> Result<Request<()>, HeadProblem> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        if self.status.is_some() {
            return Err(HeadProblem::Malformed);
        }
        let Self { method, scheme, authority, path, raw_path, refused, headers, bytes, .. } = self;
        if let Some(problem) = refused.take() {
            return Err(HeadProblem::Target(problem, method.take()));
        }
        let method = method.take().ok_or(HeadProblem::Malformed)?;
        let mut parts = Parts::default();
        if method == Method::CONNECT {
            // It is refused later, with an answer; as it stands it names an authority and nothing else
            // (§8.5).
            if scheme.is_some() || path.is_some() || authority.is_none() {
                return Err(HeadProblem::Malformed);
            }
            parts.authority = authority.take();
        } else {
            let (Some(scheme), Some(path)) = (scheme.take(), path.take()) else {
                return Err(HeadProblem::Malformed);
            };
            if authority.is_some() {
                parts.scheme = Some(scheme);
            }
            parts.authority = authority.take();
            parts.path_and_query = Some(path);
        }
        let uri = Uri::from_parts(parts).map_err(|_| HeadProblem::Malformed)?;
        let mut head = RequestParts {
            method,
            target: uri.into(),
            version: Version::HTTP_2,
            fields: fields_of(std::mem::take(headers), *bytes),
            extensions: Extensions::new(),
        };
        if let Some(raw) = raw_path.take() {
            head.extensions.insert(*raw);
        }
        Ok(Request::from_parts(head, ()))
    }

    /// The response that it is, taken out of it.
    pub(super) fn take_response(&mut self) -> Result<Response<()>, HeadProblem> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        if self.has_request_fields() {
            return Err(HeadProblem::Malformed);
        }
        let status = self.status.ok_or(HeadProblem::Malformed)?;
        let fields = fields_of(std::mem::take(&mut self.headers), self.bytes);
        let head = ResponseParts { status, version: Version::HTTP_2, fields };
        Ok(Response::from_parts(head, ()))
    }

    /// The trailers that it is, taken out of it.
    pub(super) fn take_trailers(&mut self) -> Result<HeaderMap, HeadProblem> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let is_legal = !self.has_request_fields() && self.status.is_none();
        if is_legal { Ok(std::mem::take(&mut self.headers).into_map()) } else { Err(HeadProblem::Malformed) }
    }
}

/// The fields of a head of so many bytes. A large one counts as a map of them does, and is one.
fn fields_of(headers: FieldList, bytes: usize) -> Fields {
    if bytes <= UNCOUNTED_BYTES { headers.into() } else { headers.into_map().into() }
}

/// How long a body is said to be; an error if that is no number, or several.
pub(super) fn content_length(fields: &Fields) -> Result<Option<u64>, HeadProblem> {
    fields.announced_length().map_err(|AmbiguousLength| HeadProblem::Malformed)
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_LENGTH;

    use super::super::hpack::HpackDecoder;
    use super::*;
    use crate::target::{MisplacedByte, path_and_query};

    /// A head of these lines, as a peer would write it: every field a literal with a new name.
    fn head(lines: &[(&str, &str)]) -> Head {
        let mut block = Vec::new();
        for (name, value) in lines {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).expect("short"));
                block.extend_from_slice(text.as_bytes());
            }
        }
        let mut head = Head::default();
        let bounds = HeadBounds { bytes: 300, headers: 5 };
        HpackDecoder::default()
            .decode(&block, |field, bytes| head.take(field, bytes, bounds))
            .expect("legal HPACK");
        head
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "http"), (":authority", "h:1"), (":path", "/a?b")];

    #[test]
    fn a_request_has_the_uri_that_its_fields_say() {
        let request = head(&GET).take_request().expect("legal");
        assert_eq!(request.method(), Method::GET);
        assert_eq!(request.uri(), "http://h:1/a?b");
        let request = head(&[GET[0], GET[1], GET[3], ("host", "h")]).take_request().expect("legal");
        assert_eq!(request.uri(), "/a?b");
        assert_eq!(request.headers()["host"], "h");
        let request = head(&[(":method", "OPTIONS"), GET[1], GET[2], (":path", "*")]).take_request();
        assert_eq!(request.expect("legal").uri().path(), "*");
    }

    #[test]
    fn heads_that_http_2_forbids_are_malformed() {
        let with = |extra: (&'static str, &'static str)| [&GET[..], &[extra]].concat();
        for lines in [
            &GET[..3],
            &GET[1..],
            &[GET[0], GET[2], GET[3]],
            &with((":path", "/again")),
            &with((":status", "200")),
            &with((":unknown", "x")),
            &with(("Large", "x")),
            &with(("connection", "close")),
            &with(("keep-alive", "1")),
            &with(("proxy-connection", "x")),
            &with(("transfer-encoding", "chunked")),
            &with(("upgrade", "x")),
            &with(("te", "gzip")),
            &with(("a", "b\nc")),
            &with(("a", "b\n")),
            &with(("a", "\rb")),
            &with(("a", "b\x0c")),
            &with(("a", "\0")),
            &with(("a", " b")),
            &with(("a", "b\t")),
            &[GET[0], (":scheme", ""), GET[2], GET[3]],
            &[("a", "b"), GET[0], GET[1], GET[2], GET[3]],
            &[GET[0], GET[1], GET[2], (":path", "")],
            &[(":method", "CONNECT"), GET[1], GET[2], GET[3]],
        ] {
            assert_eq!(
                head(lines).take_request().expect_err("malformed"),
                HeadProblem::Malformed,
                "{lines:?}"
            );
        }
        let long = "x".repeat(120);
        let lines = [&GET[..], &[("a", &long), ("b", "")]].concat();
        assert_eq!(head(&lines).take_request().expect_err("too large"), HeadProblem::TooLarge);
        let many = [("a", ""); 3];
        assert!(head(&[&GET[..2], &GET[3..], &many].concat()).take_request().is_ok());
        let lines = [&GET[..2], &GET[3..], &many, &many].concat();
        assert_eq!(head(&lines).take_request().expect_err("too many"), HeadProblem::TooLarge);
        assert!(head(&with(("te", "trailers"))).take_request().is_ok());
    }

    #[test]
    fn a_target_that_is_refused_is_named_and_a_strange_one_is_kept() {
        let byte = |byte, place| TargetProblem::Byte(MisplacedByte { byte, place });
        for (field, expected) in [
            ((":path", "/a#b"), byte(b'#', 3)),
            ((":path", "/a b"), byte(b' ', 3)),
            ((":path", "/\x7f"), byte(0x7f, 2)),
            ((":path", "/a HTTP/1.1\r\nX: y"), byte(b' ', 3)),
            ((":path", "relative"), TargetProblem::Form),
            ((":path", "<"), TargetProblem::Form),
            ((":authority", "user@h"), TargetProblem::Form),
            ((":authority", "h x"), TargetProblem::Host(MisplacedByte { byte: b' ', place: 2 })),
            ((":scheme", "ht~p"), TargetProblem::Form),
            ((":scheme", "1ttp"), TargetProblem::Form),
        ] {
            let others = GET.into_iter().filter(|(name, _)| *name != field.0);
            // Whether it comes before the method or behind it.
            let lines: Vec<_> = std::iter::once(field).chain(others).collect();
            for lines in [lines.clone(), lines.into_iter().rev().collect()] {
                let refused = head(&lines).take_request().expect_err("refused");
                assert_eq!(refused, HeadProblem::Target(expected, Some(Method::GET)), "{lines:?}");
                assert!(head(&lines).is_useless() && head(&lines).take_response().is_err());
            }
        }
        for path in ["/<a>?\"b\"", "/`", "/?<"] {
            let mut lines = GET;
            lines[3].1 = path;
            let request = head(&lines).take_request().expect("legal");
            assert_eq!(path_and_query(&request), path.as_bytes());
            assert_eq!(request.uri().host(), Some("h"));
            let twice = [&lines[..], &[(":path", path)]].concat();
            assert_eq!(head(&twice).take_request().expect_err("twice"), HeadProblem::Malformed);
        }
        let late = [&GET[..3], &[("a", "b"), (":path", "/#")]].concat();
        assert_eq!(head(&late).take_request().expect_err("too late"), HeadProblem::Malformed);
    }

    #[test]
    fn responses_and_trailers_have_fields_of_their_own() {
        let response = head(&[(":status", "204"), ("a", "b")]).take_response().expect("legal");
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(response.headers()["a"], "b");
        assert!(head(&[("a", "b")]).take_response().is_err());
        assert!(head(&[(":status", "200"), (":path", "/")]).take_response().is_err());
        assert_eq!(head(&[("a", "b")]).take_trailers().expect("legal")["a"], "b");
        assert!(head(&[(":status", "200")]).take_trailers().is_err());
    }

    #[test]
    fn a_length_is_one_number() {
        let length = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            content_length(&Fields::from(headers))
        };
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&["12", "12"]), Ok(Some(12)));
        for wrong in [&["12", "13"][..], &["+1"], &[""], &["1,1"], &["99999999999999999999"]] {
            assert_eq!(length(wrong), Err(HeadProblem::Malformed), "{wrong:?}");
        }
    }
}
