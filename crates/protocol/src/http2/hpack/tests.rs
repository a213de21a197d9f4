use std::ops::ControlFlow;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::repeats::RepeatedLiterals;
use super::*;
use crate::fields::Fields;
use crate::message::Request;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal"))
        .collect()
}

impl Field {
    /// As it is written in HTTP/1.1.
    fn line(&self) -> String {
        match self {
            Field::Method(method) => format!(":method: {method}"),
            Field::Scheme(scheme) => format!(":scheme: {scheme}"),
            Field::Authority(authority) => format!(":authority: {authority}"),
            Field::Path(path) => format!(":path: {path}"),
            Field::OddPath(path) => format!(":path: {}", path.escape_ascii()),
            Field::RefusedTarget(problem) => format!("refused: {problem}"),
            Field::Status(status) => format!(":status: {}", status.as_str()),
            Field::Header(name, value) => format!("{name}: {}", value.to_str().expect("ASCII")),
            Field::Malformed => "malformed".to_owned(),
        }
    }
}

/// The fields of a head as text.
fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<String>, CompressionError> {
    let mut lines = Vec::new();
    decoder.decode(block, |field, _| {
        lines.push(field.line());
        ControlFlow::Continue(())
    })?;
    Ok(lines)
}

/// RFC 7541 appendix C.3 (plain) and C.4 (Huffman): three requests on one connection.
#[test]
fn requests_of_the_rfc() {
    let plain = [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ];
    let compressed = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ];
    for blocks in [plain, compressed] {
        let mut decoder = HpackDecoder::default();
        let mut head = |block: &str| decoded(&mut decoder, &bytes(block)).expect("legal").join("\n");
        let first = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";
        assert_eq!(head(blocks[0]), first);
        assert_eq!(head(blocks[1]), format!("{first}\ncache-control: no-cache"));
        assert_eq!(
            head(blocks[2]),
            ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value"
        );
    }
}

/// RFC 7541 appendix C.6: responses with a table of 256 bytes, in which old entries make room.
#[test]
fn responses_of_the_rfc_with_eviction() {
    let mut decoder = HpackDecoder::default();
    // 256 = 31 + 225.
    let first = format!(
        "3fe101{}",
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3"
    );
    let location = "location: https://www.example.com";
    let head = decoded(&mut decoder, &bytes(&first)).expect("legal");
    assert_eq!(
        head,
        [":status: 302", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", location]
    );
    let head = decoded(&mut decoder, &bytes("4883640effc1c0bf")).expect("legal");
    assert_eq!(
        head,
        [":status: 307", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", location]
    );
    let third = "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007";
    let head = decoded(&mut decoder, &bytes(third)).expect("legal");
    assert_eq!(
        head,
        [
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            location,
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
        ]
    );
    assert_eq!(decoded(&mut decoder, &bytes("c1")), Err(CompressionError::Index), "that one was evicted");
}

#[test]
fn a_head_that_cannot_be_read_says_why() {
    for (block, expected) in [
        ("80", CompressionError::Index),
        ("be", CompressionError::Index),
        ("ffffffffff7f", CompressionError::Integer),
        ("4001", CompressionError::Truncated),
        ("400a6375", CompressionError::Truncated),
        ("3fe21f", CompressionError::TableSize),
        ("8220", CompressionError::TableSize),
        ("410800", CompressionError::Truncated),
        ("4181ff", CompressionError::Huffman),
    ] {
        let failed = decoded(&mut HpackDecoder::default(), &bytes(block));
        assert_eq!(failed, Err(expected), "{block}");
    }
}

#[test]
fn fields_that_http_forbids_are_malformed_and_still_enter_the_table() {
    let mut decoder = HpackDecoder::default();
    // "A: b", then the same entry again, then ":path: a", an empty ":authority".
    let block = "40014101 62 be 44 01 61 81";
    let head = decoded(&mut decoder, &bytes(block)).expect("legal HPACK");
    let refused = format!("refused: {}", TargetProblem::Form);
    assert_eq!(head, ["malformed", "malformed", &refused, "malformed"]);
}

/// An entry whose name is malformed counts as its writer counts it, also where its name is used again; else
/// the tables would differ from there on.
#[test]
fn a_malformed_name_counts_for_its_letters() {
    let mut decoder = HpackDecoder::default();
    // A table of 109 bytes; "AAA: b" (36), again by its name with "c" (36), and ":path: /d" by the static
    // name (39): together 111.
    let block = "3f4e 400341414101 62 7e 01 63 44 02 2f64";
    assert_eq!(
        decoded(&mut decoder, &bytes(block)).expect("legal HPACK"),
        ["malformed", "malformed", ":path: /d"]
    );
    assert_eq!(decoded(&mut decoder, &bytes("be bf")).expect("two are left"), [":path: /d", "malformed"]);
    assert_eq!(decoded(&mut decoder, &bytes("c0")), Err(CompressionError::Index), "the first made room");
}

#[test]
fn an_entry_larger_than_the_table_empties_it() {
    let mut decoder = HpackDecoder::default();
    assert!(decoded(&mut decoder, &bytes("4001610162")).is_ok());
    let mut large = bytes("400163 7f812f");
    large.extend(vec![b'x'; 127 + 0x2f * 128 + 1]);
    assert_eq!(decoded(&mut decoder, &large).expect("legal").len(), 1);
    assert_eq!(decoded(&mut decoder, &bytes("be")), Err(CompressionError::Index));
}

/// Of a head that is too large nothing is needed but what later heads refer to.
#[test]
fn unwanted_fields_still_enter_the_table() {
    // A reference, "a: b" for the table, "c: d" for none, a reference to "a: b", and one with a Huffman code
    // that is not looked at.
    let block = bytes("82 40 0161 0162 00 0163 0164 be 00 0165 81ff");
    let mut decoder = HpackDecoder::default();
    let mut lines = Vec::new();
    let read = decoder.decode(&block, |field, _| {
        lines.push(field.line());
        ControlFlow::Break(())
    });
    assert_eq!((read, lines), (Ok(()), vec![":method: GET".to_owned()]));
    assert_eq!(decoded(&mut decoder, &bytes("be")).expect("legal"), ["a: b"]);
    for (block, expected) in [
        ("82 bf", CompressionError::Index),
        ("82 0f7f 0161", CompressionError::Index),
        ("82 00 0161 05", CompressionError::Truncated),
    ] {
        let read = HpackDecoder::default().decode(&bytes(block), |_, _| ControlFlow::Break(()));
        assert_eq!(read, Err(expected), "{block}");
    }
}

/// RFC 9113 §6.5.2: name, value, and 32.
#[test]
fn references_count_for_what_they_stand_for() {
    let size = |block: &str| {
        let mut size = 0;
        let read = HpackDecoder::default().decode(&bytes(block), |_, bytes| {
            size += bytes;
            ControlFlow::Continue(())
        });
        read.map(|()| size)
    };
    for index in 1..=61_u8 {
        let mut lengths = Vec::new();
        let read = HpackDecoder::default().decode(&[0x80 | index], |field, bytes| {
            let line = field.line();
            let said = if line == "malformed" { ":authority".len() } else { line.len() - ": ".len() };
            lengths.push((bytes, said + 32));
            ControlFlow::Continue(())
        });
        assert_eq!(read, Ok(()));
        assert!(lengths.iter().all(|(counted, expected)| counted == expected), "{index}: {lengths:?}");
    }
    assert_eq!(size("40 0161 0162 be"), Ok(2 * (2 + 32)));
}

#[test]
fn written_heads_are_read_back() {
    let mut headers = HeaderMap::new();
    let long = "v".repeat(5000);
    for (name, value) in [
        ("date", "now"),
        ("accept-encoding", "gzip, deflate"),
        ("www-authenticate", "x"),
        ("x-other", ""),
        ("grpc-status", "0"),
        ("set-cookie", &long),
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("ASCII"));
    }
    let mut secret = HeaderValue::from_static("secret");
    secret.set_sensitive(true);
    headers.insert("authorization", secret);
    let expected: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII"))).collect();

    let mut out = Vec::new();
    let mut encoder = Encoder::default();
    encoder.begin(&mut out);
    encoder.begin(&mut out);
    assert_eq!(out, [0x20], "said once");
    let request = http::Request::patch("http://a.example:81/b?c=d").body(());
    let mut request = Request::from(request.expect("legal"));
    *request.headers_mut() = headers;
    encode_request(&request, &mut out);
    let mut decoder = HpackDecoder::default();
    let head = decoded(&mut decoder, &out).expect("legal");
    assert_eq!(head[..4], [":method: PATCH", ":scheme: http", ":authority: a.example:81", ":path: /b?c=d"]);
    assert_eq!(head[4..], expected);

    for status in [200, 204, 206, 304, 400, 404, 500, 503, 418] {
        let mut out = Vec::new();
        encode_response(StatusCode::from_u16(status).expect("legal"), &Fields::default(), &mut out);
        assert_eq!(decoded(&mut decoder, &out).expect("legal"), [format!(":status: {status}")]);
    }
    let mut is_secret = false;
    decoder
        .decode(&out, |field, _| {
            if let Field::Header(name, value) = field {
                is_secret |= name == "authorization" && value.is_sensitive();
            }
            ControlFlow::Continue(())
        })
        .expect("legal");
    assert!(is_secret, "a value that must not be indexed stays so");
}

#[test]
fn the_size_of_the_table_changes_twice_before_a_head_and_not_once_more() {
    for (changes, expected) in [(1, Ok(())), (2, Ok(())), (3, Err(CompressionError::TableSize))] {
        let block = [vec![0x20; changes], vec![0x82]].concat();
        for wanted in [ControlFlow::Continue(()), ControlFlow::Break(())] {
            assert_eq!(HpackDecoder::default().decode(&block, |_, _| wanted), expected, "{changes}");
        }
        let mut head = UnwantedHead::default();
        let stepped = HpackDecoder::default().step_over_part(&mut head, &block);
        assert_eq!(stepped.map(drop), expected, "{changes}");
    }
}

/// A literal with a new name, compressed or not being the same here.
fn literal(form: u8, name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![form];
    for text in [name, value] {
        let mut length = text.len();
        if length < 127 {
            out.push(u8::try_from(length).expect("short"));
        } else {
            out.push(127);
            length -= 127;
            while length >= 128 {
                out.push(0x80 | u8::try_from(length % 128).expect("seven bits"));
                length /= 128;
            }
            out.push(u8::try_from(length).expect("seven bits"));
        }
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// Whatever the pieces are in which it comes, the table is afterwards what it is behind a head that was read.
#[test]
fn a_head_that_is_stepped_over_leaves_the_table_of_one_that_is_read() {
    let long = "v".repeat(20_000);
    let middle = "m".repeat(5_000);
    let heads = [
        [literal(0x40, "a", "1"), vec![0x82], literal(0, "b", "2"), literal(0x40, "c", "3")].concat(),
        [literal(0x40, "a", "1"), literal(0x10, "secret", &long), literal(0x40, "c", "3")].concat(),
        [literal(0x40, "a", "1"), literal(0x40, "b", &long), literal(0x40, "c", "3")].concat(),
        [literal(0x40, "a", "1"), literal(0x40, &long, &long), literal(0x40, "c", "3")].concat(),
        [literal(0x40, "a", "1"), literal(0x40, "b", &middle), literal(0, &long, "x")].concat(),
        [vec![0x20, 0x3f, 0xe1, 0x0f], literal(0x40, "a", "1"), literal(0x40, "c", "3")].concat(),
    ];
    for (number, block) in heads.iter().enumerate() {
        let mut reader = HpackDecoder::default();
        reader.decode(block, |_, _| ControlFlow::Continue(())).expect("legal");
        for step in [1, 2, 3, 7, 1_000, 16_384, block.len()] {
            let mut decoder = HpackDecoder::default();
            let (mut head, mut rest, mut kept_most) = (UnwantedHead::default(), Vec::new(), 0);
            for part in block.chunks(step) {
                rest.extend_from_slice(part);
                let done = decoder.step_over_part(&mut head, &rest).expect("legal");
                rest.drain(..done);
                kept_most = kept_most.max(rest.len());
            }
            assert!(head.is_whole() && rest.is_empty(), "head {number} in pieces of {step}");
            assert!(kept_most < 16 * 1024, "head {number} in pieces of {step} kept {kept_most} bytes");
            for index in 62..66_u8 {
                let seen = |decoder: &mut HpackDecoder| decoded(decoder, &[0x80 | index]);
                assert_eq!(seen(&mut decoder), seen(&mut reader), "head {number}, entry {index}");
            }
        }
    }
}

/// Writes a field in one of the forms that there are, with one of few names and values.
fn write_in_form((form, name, value): (u8, usize, usize), out: &mut Vec<u8>) {
    let string = |text: &str, out: &mut Vec<u8>| {
        out.push(u8::try_from(text.len()).expect("short"));
        out.extend_from_slice(text.as_bytes());
    };
    match form {
        // With its name written out: in no table, in the table, and in none at any hop.
        0..=2 => {
            out.push([0, 0x40, 0x10][usize::from(form)]);
            string(["x-a", "x-b", ":path"][name], out);
        }
        // With the name `:path` of the static table, and with that of the newest entry of the dynamic one.
        3 => out.push(4),
        4 => out.extend([15, 62 - 15]),
        // The newest entry.
        _ => return out.push(0x80 | 0x3e),
    }
    string(["/", "/a", "/b"][value], out);
}

/// All that is read of a head, with what each field counts for.
fn fields_of(
    decoder: &mut HpackDecoder,
    block: &[u8],
) -> (Vec<(Field, usize)>, Result<(), CompressionError>) {
    let mut fields = Vec::new();
    let read = decoder.decode(block, |field, bytes| {
        fields.push((field, bytes));
        ControlFlow::Continue(())
    });
    (fields, read)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// A literal means what it says, whether a head before had it in the same place or not.
    #[test]
    fn literals_that_are_repeated_are_read_as_new_ones(
        heads in prop::collection::vec(prop::collection::vec((0..6_u8, 0..3_usize, 0..3_usize), 0..6), 1..40),
    ) {
        let (mut decoder, mut forgetful) = (HpackDecoder::default(), HpackDecoder::default());
        for head in heads {
            let mut block = Vec::new();
            for field in head {
                write_in_form(field, &mut block);
            }
            forgetful.repeats = RepeatedLiterals::default();
            let expected = fields_of(&mut forgetful, &block);
            prop_assert_eq!(fields_of(&mut decoder, &block), expected.clone(), "{:x?}", block);
            if expected.1.is_err() {
                break;
            }
        }
    }
}
