use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, SERVER};
use proptest::prelude::*;

use super::*;

/// The fields of a head with these lines, and whether they are kept as lines.
fn read(lines: &str) -> Fields {
    let bytes = Bytes::from(format!("GET / HTTP/1.1\r\n{lines}\r\nbehind"));
    let begin = "GET / HTTP/1.1\r\n".len();
    let mut seen = 0;
    if let Some((fields, end)) = Fields::read(&bytes, begin, 100, |_, _| seen += 1) {
        assert_eq!((seen, end), (fields.count(), bytes.len() - "behind".len()));
        return fields;
    }
    let block = bytes.slice(begin..);
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let parsed = httparse::parse_headers(&block, &mut headers).expect("legal");
    let httparse::Status::Complete((_, parsed)) = parsed else { panic!("it is whole") };
    map_of(&block, parsed).expect("legal").into()
}

fn written(fields: &Fields) -> Option<String> {
    let mut out = Vec::new();
    fields.lines()?.write(&mut out);
    Some(String::from_utf8(out).expect("ASCII"))
}

#[test]
fn lines_that_pass_are_written_as_they_came_with_what_is_added() {
    let lines = "Host: h:80\r\nACCEPT: */*\r\nx-mine: 1\r\nDate: now\r\nX-Mine: 2\r\nContent-Length: 05\r\n";
    let mut fields = read(lines);
    assert_eq!(written(&fields).as_deref(), Some(lines));
    let kept = fields.lines().expect("they pass");
    assert_eq!((kept.host(), kept.length(), kept.has_date()), (Some(&b"h:80"[..]), Some(5), true));
    assert_eq!((fields.first(&HOST), fields.first(&SERVER)), (Some(&b"h:80"[..]), None));
    assert_eq!(fields.first(&CONTENT_TYPE), None);
    assert_eq!((fields.host(), fields.content_type()), (Some(&b"h:80"[..]), None));
    assert_eq!(fields.first(&HeaderName::from_static("x-mine")), Some(&b"1"[..]));
    assert!(fields.of_hops().is_none());
    for value in ["former", "1.2.3.4"] {
        fields.set_of_hops(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_static(value));
    }
    assert_eq!(fields.count(), 7);
    let with_ours = format!("{lines}x-forwarded-for: 1.2.3.4\r\n");
    let mut with_another = fields.clone();
    with_another.add_of_hops(HeaderName::from_static("ebb-pod"), HeaderValue::from_static("p"));
    assert_eq!(written(&with_another), Some(format!("{with_ours}ebb-pod: p\r\n")));
    assert_eq!(written(&fields), Some(with_ours));
    assert_eq!(fields.map()["x-forwarded-for"], "1.2.3.4");
    assert_eq!(fields.map().get_all("x-mine").iter().collect::<Vec<_>>(), ["1", "2"]);
    fields.map_mut().insert(SERVER, HeaderValue::from_static("s"));
    assert_eq!((written(&fields), fields.count()), (None, 8), "the map is what counts");
    assert_eq!(fields.first(&SERVER), Some(&b"s"[..]));
    assert_eq!(fields.into_map().len(), 8);
}

#[test]
fn a_head_that_a_proxy_edits_or_would_write_otherwise_is_a_map() {
    for lines in [
        "Connection: close, x\r\n",
        "Connection: Upgrade\r\n",
        "Connection: close\r\nKeep-Alive: a\r\nProxy-Connection: close\r\n",
        "A: b\r\nTE: trailers\r\n",
        "Host: h\r\nX-Forwarded-For: 1.1.1.1\r\n",
        "ebb-pod: x\r\n",
        "ebb_pod: x\r\n",
        "Expect: 100-continue\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Host: h\r\nHost: h\r\n",
        "A:b\r\n",
        "A:  b\r\n",
        "A: b \r\n",
        "A: \tb\r\n",
        "A: b\n",
        "A: b\r\nC: d\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: +5\r\n",
        "A: \r\n",
    ] {
        let fields = read(lines);
        assert_eq!(written(&fields), None, "{lines:?}");
        assert_eq!(fields.of_hops().map(HeaderMap::len), Some(lines.matches('\n').count()), "{lines:?}");
    }
    let bytes = Bytes::from_static(b"A: b\r\nC: d\r\n\r\n");
    let limited = |bytes: &Bytes, count_max| Fields::read(bytes, 0, count_max, |_, _| {});
    assert!(limited(&bytes, 2).is_some());
    assert!(limited(&bytes, 1).is_none(), "they are too many");
    for length in 0..bytes.len() {
        assert!(limited(&bytes.slice(..length), 2).is_none(), "{length}");
    }
    let long = format!("A: {}\r\n", "b".repeat(4096));
    assert_eq!(written(&read(&long)), None, "its headers are counted");
}

#[test]
fn lines_that_end_at_the_hop_are_left_out_where_lines_are_written() {
    let mut fields = read("Connection: Keep-Alive\r\nHost: h\r\nKeep-Alive: timeout=5\r\nA: b\r\n");
    assert_eq!(written(&fields).as_deref(), Some("Host: h\r\nA: b\r\n"));
    // Whoever looks before the hop is over sees what came.
    assert_eq!((fields.count(), fields.map().len()), (4, 4));
    assert_eq!(fields.map()["keep-alive"], "timeout=5");
    fields.forget_dropped();
    assert_eq!(fields.count(), 2);
    let left: Vec<&str> = fields.map().keys().map(HeaderName::as_str).collect();
    assert_eq!(left, ["host", "a"]);
    assert_eq!(fields.first(&HOST), Some(&b"h"[..]));
    assert_eq!(fields.first(&http::header::CONNECTION), None);
    assert_eq!(written(&read("A: b\r\nproxy-connection: x\r\n")).as_deref(), Some("A: b\r\n"));
}

fn line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Host",
        "Date",
        "X-A",
        "x-a",
        "Accept",
        "User-Agent",
        "Via",
        "Cookie",
        "CONTENT-TYPE",
        "Content-Length",
        "Connection",
        "K-Proxy-Request",
    ]);
    let value = prop_oneof!["[!-~]{1,8}", "[ -~]{0,8}", Just("a\tb".to_owned())];
    (name, prop::sample::select(vec![": ", ":", ":  "]), value)
        .prop_map(|(name, colon, value)| format!("{name}{colon}{value}\r\n"))
}

fn header() -> impl Strategy<Value = (HeaderName, HeaderValue)> {
    let name = prop::sample::select(vec![
        "host",
        "date",
        "x-a",
        "accept",
        "user-agent",
        "cookie",
        "content-length",
        "te",
        "k-proxy-request",
        "x_forwarded_for",
    ]);
    let value = prop_oneof!["[!-~]{1,8}", Just("5".to_owned()), Just("5".to_owned())];
    (name, value).prop_map(|(name, value)| {
        (HeaderName::from_static(name), HeaderValue::try_from(value).expect("text is a value"))
    })
}

#[test]
fn text_ends_where_a_byte_is_none() {
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    for byte in 0..=u8::MAX {
        for at in 0..20 {
            let mut text = b"some words to be read".to_vec();
            text[at] = byte;
            let expected = if is_text(byte) { text.len() } else { at };
            assert_eq!(text_length(&text), expected, "{byte} at {at}");
        }
    }
}

/// As [`text_length`] says it, one byte after the other.
fn length_by_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == b'\t' || (**byte >= b' ' && **byte != 0x7f)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whether a head stays text or not, its headers are those that a map of all its lines has.
    #[test]
    fn the_map_of_lines_is_the_map_of_the_head(lines in prop::collection::vec(line(), 0..8)) {
        let text = lines.concat();
        let block = Bytes::from(format!("{text}\r\n"));
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let parsed = httparse::parse_headers(&block, &mut headers).expect("legal");
        let httparse::Status::Complete((_, parsed)) = parsed else { panic!("it is whole") };
        let expected = map_of(&block, parsed).expect("legal");
        let fields = read(&text);
        prop_assert_eq!(fields.count(), expected.len());
        for name in expected.keys() {
            prop_assert_eq!(fields.first(name), expected.get(name).map(HeaderValue::as_bytes), "{}", name);
        }
        if let Some(written) = written(&fields) {
            prop_assert_eq!(written, text);
        }
        prop_assert_eq!(fields.map(), &expected);
    }

    /// Where several bytes are none, the first one counts, and a tab in between changes nothing.
    #[test]
    fn text_is_as_long_as_a_look_at_each_byte_finds(
        text in prop::collection::vec(
            prop_oneof![8 => any::<u8>().prop_map(|byte| byte | 0x40), 2 => Just(b'\t'), 1 => any::<u8>()],
            0..40,
        ),
    ) {
        prop_assert_eq!(text_length(&text), length_by_bytes(&text), "{}", text.escape_ascii());
    }

    /// Whether the headers of a head stay a list or not, they are those that a map of all of them has.
    #[test]
    fn the_map_of_a_list_is_the_map_of_the_head(headers in prop::collection::vec(header(), 0..8)) {
        let (mut list, mut expected) = (FieldList::default(), HeaderMap::new());
        for (name, value) in &headers {
            list.push(FieldName::of(name.as_str().as_bytes()), name.clone(), value.clone());
            expected.append(name, value.clone());
        }
        let mut fields = Fields::from(list);
        let map = Fields::from(expected.clone());
        let has_odd = expected.keys().any(|name| !FieldName::of(name.as_str().as_bytes()).passes());
        let is_doubtful = |name: HeaderName| expected.get_all(name).iter().count() > 1;
        let is_map = has_odd
            || is_doubtful(HOST)
            || is_doubtful(CONTENT_LENGTH)
            || map.announced_length() == Err(AmbiguousLength);
        prop_assert_eq!(fields.of_hops().is_some(), is_map);
        let lengths = (fields.announced_length(), map.announced_length());
        prop_assert_eq!((fields.count(), lengths.0), (expected.len(), lengths.1));
        for name in expected.keys().chain([&HOST, &SERVER]) {
            prop_assert_eq!(fields.first(name), map.first(name), "{}", name);
        }
        prop_assert_eq!(fields.host(), map.first(&HOST));
        let mut shown = HeaderMap::new();
        fields.each(|name, value| {
            shown.append(name, value.clone());
        });
        prop_assert_eq!((&shown, fields.map()), (&expected, &expected));
        for value in ["former", "1.2.3.4"] {
            fields.set_of_hops(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_static(value));
        }
        expected.insert("x-forwarded-for", HeaderValue::from_static("1.2.3.4"));
        prop_assert_eq!((fields.count(), fields.map()), (expected.len(), &expected));
        prop_assert_eq!(fields.clone().into_map(), expected.clone());
        fields.map_mut().insert(SERVER, HeaderValue::from_static("s"));
        expected.insert(SERVER, HeaderValue::from_static("s"));
        prop_assert_eq!(fields.of_hops(), Some(&expected));
    }

    /// What httparse takes for a name or a value is one to a map: a head that stays text can become one.
    #[test]
    fn names_and_values_of_httparse_are_those_of_a_map(
        name in prop::collection::vec(any::<u8>(), 1..4),
        value in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let block = Bytes::from([&name[..], b": ", &value, b"\r\n\r\n"].concat());
        let mut headers = [httparse::EMPTY_HEADER; 4];
        if let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(&block, &mut headers) {
            prop_assert!(map_of(&block, parsed).is_some(), "{:?}", block);
        }
    }
}

#[test]
fn every_byte_that_httparse_takes_in_a_name_or_a_value_is_one_to_a_map() {
    for byte in 0..=u8::MAX {
        for (before, behind) in [(&b"a"[..], &b"b: v\r\n\r\n"[..]), (b"a: v", b"v\r\n\r\n")] {
            let block = Bytes::from([before, &[byte], behind].concat());
            let mut headers = [httparse::EMPTY_HEADER; 4];
            if let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(&block, &mut headers)
            {
                assert!(map_of(&block, parsed).is_some(), "{block:?}");
            }
        }
    }
}
