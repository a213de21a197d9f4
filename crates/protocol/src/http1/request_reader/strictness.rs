//! Of heads we accept what a strict reader accepts, however they come.

use http::Version;
use proptest::prelude::*;

use super::super::request_head::{read_any, read_ordinary};
use super::*;
use crate::ambiguity;
use crate::http1::BodyFraming;
use crate::http1::strict::{self, BodyLength, ODD_BYTES, StrictVerdict, check_accepted, pieces, spoil};

/// What we make of a head, and how many bytes of the text it is. `None` if it is not whole or refused.
fn read(text: &[u8], sizes: &[usize]) -> Option<(strict::StrictRequestHead, usize)> {
    let mut reader = RequestReader::new(HeadLimits::OUTER);
    let mut read = 0;
    for piece in pieces(text, sizes) {
        read += piece.len();
        if let Some((next, rest)) = reader.take(Bytes::copy_from_slice(piece)).ok()? {
            if next != NextMessage::Request {
                return None;
            }
            let head = reader.take_head()?;
            // Some of what is ambiguous is refused once the head was read.
            return ambiguity(&head.request).is_none().then(|| (seen(&head), read - rest.len()));
        }
    }
    None
}

/// A head as the strict reader would tell it, but for the target.
fn seen(head: &RequestHead) -> strict::StrictRequestHead {
    let request = &head.request;
    strict::StrictRequestHead {
        method: request.method().as_str().as_bytes().to_vec(),
        target: request.uri().to_string().into_bytes(),
        version: if request.version() == Version::HTTP_10 { b"HTTP/1.0" } else { b"HTTP/1.1" }.to_vec(),
        fields: request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
            .collect(),
        body: match head.framing {
            BodyFraming::Length(length) => BodyLength::Bytes(length),
            BodyFraming::Chunked => BodyLength::Chunked,
            BodyFraming::UntilClose => panic!("a request does not end like that"),
        },
    }
}

/// Header maps keep the values of one name in order, and nothing else; a URI has a slash where an absolute
/// target left it out, and its scheme and host in whatever case.
fn comparable(mut head: strict::StrictRequestHead) -> strict::StrictRequestHead {
    head.fields.sort_by(|one, other| one.0.cmp(&other.0));
    let target = String::from_utf8_lossy(&head.target).into_owned();
    if let Some((scheme, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let slash = if path.starts_with('/') { "" } else { "/" };
        head.target = format!("{}://{}{slash}{path}", scheme.to_ascii_lowercase(), host).into_bytes();
    }
    head
}

fn head() -> impl Strategy<Value = Vec<u8>> {
    let method = prop::sample::select(vec!["GET", "POST", "OPTIONS", "X-Y"]);
    let target = prop_oneof![
        "/[a-z/%2]{0,6}(\\?[a-z&=?/]{0,5})?".prop_map(|text| text.replace('%', "%2f")),
        "http://[a-z.]{1,5}(:[0-9]{1,4})?(/[a-z]{0,3})?(\\?[a-z]{0,3})?",
        Just("*".to_owned()),
        Just("h:80".to_owned()),
        Just("http://u@h/".to_owned()),
        Just("/a#b".to_owned()),
        Just("?x".to_owned()),
    ];
    let version = prop::sample::select(vec!["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]);
    let line = prop_oneof![
        "X-[a-z]{1,3}:[ \t]{0,2}[!-~]{0,4}[ \t]{0,2}",
        Just("Content-Length: 5".to_owned()),
        Just("Content-Length: 05".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just("Transfer-Encoding: gzip, chunked".to_owned()),
        Just("Connection: close, x".to_owned()),
        Just("Host: other".to_owned()),
        Just("X: \u{e9}\t \u{e9}".to_owned()),
    ];
    let host =
        prop::sample::select(vec!["Host: h\r\n", "host:h:80 \r\n", "Host: [::1]:80\r\n", "Host:\r\n", ""]);
    let before = prop::sample::select(vec!["", "", "\r\n", "\r\n\r\n"]);
    (before, method, target, version, host, prop::collection::vec(line, 0..3), "[A-Z\r\n]{0,5}").prop_map(
        |(before, method, target, version, host, lines, next)| {
            let lines = lines.iter().map(|line| [line, "\r\n"].concat()).collect::<String>();
            format!("{before}{method} {target} {version}\r\n{host}{lines}\r\n{next}").into_bytes()
        },
    )
}

fn ordinary_head() -> impl Strategy<Value = Vec<u8>> {
    let method = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
    let line = prop_oneof![
        "X-[a-z]{1,3}: [!-~]{1,12}( [!-~]{1,4})?",
        Just("Content-Length: 5".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just("Connection: close, Upgrade".to_owned()),
        Just("connection: keep-alive".to_owned()),
        Just("Expect: 100-continue".to_owned()),
        Just("Host: other".to_owned()),
        Just("ebb-pod: p".to_owned()),
        Just("Date: d".to_owned()),
        Just("User-Agent: curl/8".to_owned()),
    ];
    (method, "/[a-z/%2]{0,6}(\\?[a-z&=?/]{0,5})?", prop::collection::vec(line, 0..4)).prop_map(
        |(method, target, lines)| {
            let lines = lines.iter().map(|line| [line, "\r\n"].concat()).collect::<String>();
            format!("{method} {target} HTTP/1.1\r\nHost: h:80\r\n{lines}\r\nbehind").into_bytes()
        },
    )
}

/// All that is told of a head.
fn told(head: &RequestHead) -> String {
    let RequestHead { request, bytes, framing, asked, expects_continue, offers_upgrade } = head;
    let (method, uri, version) = (request.method(), request.uri(), request.version());
    let doubt = ambiguity(request);
    let path = crate::target::path_and_query(request).escape_ascii();
    let headers = request.headers();
    format!(
        "{method} {uri:?} {path} {version:?} {headers:?} {bytes} {framing:?} {asked:?} {expects_continue} {offers_upgrade} {doubt:?}"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// And what it accepts, we do: it is no stricter than the grammar.
    #[test]
    fn texts_of_the_grammar_are_read_as_the_strict_reader_reads_them(
        text in head(),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let ours = read(&text, &sizes);
        if let StrictVerdict::Whole(head, length) = strict::request_head(&text) {
            let shown = String::from_utf8_lossy(&text).into_owned();
            let Some((seen, read)) = ours else { panic!("refused: {shown:?}") };
            prop_assert_eq!((comparable(seen), read), (comparable(head), length), "{:?}", shown);
        }
    }

    /// The pass over ordinary heads finds what the reader of every head finds, and leaves to that one
    /// whatever it refuses.
    #[test]
    fn an_ordinary_head_says_what_the_reader_of_every_head_finds(
        mut text in prop_oneof![head(), ordinary_head()],
        changes in prop::collection::vec((any::<usize>(), prop::sample::select(ODD_BYTES), any::<u8>()), 0..3),
    ) {
        spoil(&mut text, &changes);
        let bytes = Bytes::from(text);
        if let Some((head, length)) = read_ordinary(&bytes, HeadLimits::OUTER) {
            let any = read_any(&bytes, HeadLimits::OUTER);
            let Ok(Some((any, any_length))) = any else { panic!("{bytes:?}: {any:?}") };
            prop_assert_eq!(length, any_length);
            prop_assert_eq!(told(&head), told(&any), "{:?}", bytes);
        }
    }

    #[test]
    fn accepted_texts_are_accepted_by_the_strict_reader(
        mut text in head(),
        changes in prop::collection::vec((any::<usize>(), prop::sample::select(ODD_BYTES), any::<u8>()), 0..4),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        spoil(&mut text, &changes);
        let ours = read(&text, &sizes);
        prop_assert_eq!(&ours, &read(&text, &[usize::MAX]));
        if let Some((seen, read)) = ours {
            let strict = match strict::request_head(&text) {
                StrictVerdict::Whole(head, length) => StrictVerdict::Whole(comparable(head), length),
                verdict @ (StrictVerdict::Partial | StrictVerdict::Refused(_)) => verdict,
            };
            check_accepted(&text, &(comparable(seen), read), strict);
        }
    }
}
