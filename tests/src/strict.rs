//! Where does a request end? The strictest possible answer: a reader of HTTP/1.1 requests that refuses
//! everything of which another reader could think differently. What a proxy sends to an app is judged by it.
//!
//! It takes what RFC 9112 lets a sender write and none of what it lets a recipient tolerate: no bare line
//! feeds, no folded lines, no blanks around names, one length or one `Transfer-Encoding: chunked`, chunks
//! without extensions.

use std::ops::Range;

/// A whole request as a strict reader understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrictRequest {
    /// The target of its first line.
    pub target: String,
    /// The header fields as names and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body, without the framing of chunks.
    pub body: Vec<u8>,
    /// The fields behind its last chunk.
    pub trailers: Vec<(String, String)>,
}

/// Why bytes are no request that all servers read alike.
pub type Ambiguity = String;

/// The first request of `bytes` and how long it is; `None` while it is not whole.
pub fn read(bytes: &[u8]) -> Result<Option<(StrictRequest, usize)>, Ambiguity> {
    let mut cursor = Cursor { bytes, at: 0 };
    let Some(line) = cursor.line()? else { return Ok(None) };
    let target = target(line)?;
    let Some(headers) = cursor.fields()? else { return Ok(None) };
    let mut request = StrictRequest { target, headers, ..StrictRequest::default() };
    match framing(&request.headers)? {
        BodyFraming::Length(length) => {
            let Some(body) = cursor.exactly(length) else { return Ok(None) };
            request.body = body.to_vec();
        }
        BodyFraming::Chunks => {
            let Some(body) = cursor.chunks()? else { return Ok(None) };
            request.body = body;
            let Some(trailers) = cursor.fields()? else { return Ok(None) };
            request.trailers = trailers;
        }
    }
    Ok(Some((request, cursor.at)))
}

enum BodyFraming {
    Length(usize),
    Chunks,
}

fn framing(headers: &[(String, String)]) -> Result<BodyFraming, Ambiguity> {
    let values = |name: &str| -> Vec<&str> {
        let of_name = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        of_name.map(|(_, value)| value.as_str()).collect()
    };
    if values("host").len() != 1 {
        return Err(format!("{} Host fields", values("host").len()));
    }
    match (&values("content-length")[..], &values("transfer-encoding")[..]) {
        ([], []) => Ok(BodyFraming::Length(0)),
        ([length], []) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(BodyFraming::Length).map_err(|error| format!("length {length:?}: {error}"))
        }
        ([], ["chunked"]) => Ok(BodyFraming::Chunks),
        (lengths, codings) => Err(format!("lengths {lengths:?} and transfer codings {codings:?}")),
    }
}

fn target(line: &[u8]) -> Result<String, Ambiguity> {
    let shown = || format!("the request line {:?}", String::from_utf8_lossy(line));
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, b"HTTP/1.1"] = parts[..] else { return Err(shown()) };
    let is_clean = is_token(method) && !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
    if is_clean { Ok(String::from_utf8_lossy(target).into_owned()) } else { Err(shown()) }
}

/// Bytes, and how far they were read.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A line without its end. Controls other than a tab belong into no line.
    fn line(&mut self) -> Result<Option<&'a [u8]>, Ambiguity> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let line = &rest[..end.unwrap_or(rest.len())];
        // The carriage return at the end of an unfinished line may be half of its end.
        let settled = if end.is_none() { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        if settled.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return Err(format!("a control in the line {:?}", String::from_utf8_lossy(line)));
        }
        let Some(end) = end else { return Ok(None) };
        self.at += end + 2;
        Ok(Some(line))
    }

    /// Fields, and the empty line behind them.
    fn fields(&mut self) -> Result<Option<Vec<(String, String)>>, Ambiguity> {
        let mut fields = Vec::new();
        loop {
            match self.line()? {
                None => return Ok(None),
                Some([]) => return Ok(Some(fields)),
                Some(line) => fields.push(field(line)?),
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Option<&'a [u8]> {
        let range: Range<usize> = self.at..self.at.checked_add(length)?;
        let bytes = self.bytes.get(range.clone())?;
        self.at = range.end;
        Some(bytes)
    }

    fn chunks(&mut self) -> Result<Option<Vec<u8>>, Ambiguity> {
        let mut body = Vec::new();
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            let text = String::from_utf8_lossy(line);
            let is_hexadecimal = !line.is_empty() && line.iter().all(u8::is_ascii_hexdigit);
            let size = is_hexadecimal.then(|| usize::from_str_radix(&text, 16).ok()).flatten();
            let size = size.ok_or_else(|| format!("the chunk size {text:?}"))?;
            if size == 0 {
                return Ok(Some(body));
            }
            let Some(data) = self.exactly(size) else { return Ok(None) };
            body.extend_from_slice(data);
            match self.exactly(2) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(other) => return Err(format!("a chunk of {size} bytes is followed by {other:?}")),
            }
        }
    }
}

fn field(line: &[u8]) -> Result<(String, String), Ambiguity> {
    let text = String::from_utf8_lossy(line);
    let (name, value) = text.split_once(':').ok_or_else(|| format!("the field {text:?} has no colon"))?;
    if !is_token(name.as_bytes()) {
        return Err(format!("a field is called {name:?}"));
    }
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

fn is_token(name: &[u8]) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rest: &str) -> String {
        format!("POST /x HTTP/1.1\r\nHost: h\r\n{rest}")
    }

    #[test]
    fn a_plain_request_is_read_to_its_end_and_not_a_byte_further() {
        for (rest, body, trailers) in [
            ("\r\n", "", vec![]),
            ("Content-Length: 2\r\n\r\nab", "ab", vec![]),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "ab", vec![]),
            (
                "Transfer-Encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n",
                "",
                vec![("a".to_owned(), "b".to_owned())],
            ),
        ] {
            let whole = request(rest);
            let (found, length) = read(format!("{whole}GET").as_bytes()).expect(rest).expect(rest);
            assert_eq!(
                (found.body, found.trailers, length),
                (body.into(), trailers, whole.len()),
                "{rest:?}"
            );
            for cut in 0..whole.len() {
                assert_eq!(read(&whole.as_bytes()[..cut]), Ok(None), "{rest:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn every_request_that_two_readers_could_read_differently_is_ambiguous() {
        for rest in [
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Content-Length: +2\r\n\r\n",
            "Content-Length: 2,2\r\n\r\n",
            "Content-Length:\r\n\r\n",
            "Transfer-Encoding: Chunked\r\n\r\n",
            "Transfer-Encoding: gzip, chunked\r\n\r\n",
            "Host: h\r\n\r\n",
            "a : b\r\n\r\n",
            "a: b\r\n c\r\n\r\n",
            "a: b\nc: d\r\n\r\n",
            "a: b\rc: d\r\n\r\n",
            "a\r\n\r\n",
            ": b\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n",
            "Transfer-Encoding: chunked\r\n\r\n2 \r\n",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nabcd",
            "Transfer-Encoding: chunked\r\n\r\n0\r\na: b\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n",
        ] {
            assert!(read(request(rest).as_bytes()).is_err(), "{rest:?}");
        }
        for line in
            ["GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET / http/1.1", " GET / HTTP/1.1", "GET /\u{b} HTTP/1.1"]
        {
            assert!(read(format!("{line}\r\nHost: h\r\n\r\n").as_bytes()).is_err(), "{line:?}");
        }
    }
}
