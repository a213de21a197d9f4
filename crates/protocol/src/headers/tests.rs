use std::net::IpAddr;

use http::Version;

use super::forwarded::FORWARDED_PARTS_BYTES_MAX;
use super::*;
use crate::fields::{FieldName, Fields};
use crate::message::Request;

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::try_from(*name).expect("legal");
        headers.append(name, HeaderValue::try_from(*value).expect("legal"));
    }
    headers
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map_or("-".to_owned(), |value| value.to_str().expect("ASCII").to_owned())
}

const LOOPBACK: ClientAddress = ClientAddress(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

#[test]
fn the_trace_of_the_way_is_kept_as_knative_does() {
    for (id, given, forwarded, forwarded_for) in [
        ("H1", &[][..], "-", "127.0.0.1"),
        (
            "H2",
            &[
                ("x-forwarded-for", "1.2.3.4, ::1"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "a.b"),
            ],
            "for=1.2.3.4;host=a.b;proto=https, for=\"[::1]\"",
            "1.2.3.4, ::1, 127.0.0.1",
        ),
        ("H3 host", &[("x-forwarded-host", "h")], "host=h", "127.0.0.1"),
        ("H3 proto", &[("x-forwarded-proto", "p")], "proto=p", "127.0.0.1"),
        ("H3 both", &[("x-forwarded-host", "h"), ("x-forwarded-proto", "p")], "host=h;proto=p", "127.0.0.1"),
        (
            "H4",
            &[("x-forwarded-for", "127.0.0.1, ::1"), ("x-forwarded-proto", "p")],
            "for=127.0.0.1;proto=p, for=\"[::1]\"",
            "127.0.0.1, ::1, 127.0.0.1",
        ),
        ("H5", &[("x-forwarded-for", ",,")], "for=, for=, for=", ",,, 127.0.0.1"),
        (
            "H6",
            &[("x-forwarded-for", " ,1.1.1.1"), ("x-forwarded-host", "h")],
            "for=host=h, for=1.1.1.1",
            " ,1.1.1.1, 127.0.0.1",
        ),
        ("H7", &[("forwarded", "for=me"), ("x-forwarded-host", "h")], "for=me", "127.0.0.1"),
        (
            "repeated",
            &[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")],
            "for=1.1.1.1",
            "1.1.1.1, 2.2.2.2, 127.0.0.1",
        ),
    ] {
        let mut fields = Fields::from(map(given));
        set_forwarded_for(&mut fields, &LOOPBACK.to_value());
        let headers = fields.into_map();
        assert_eq!(text(&headers, "forwarded"), forwarded, "{id}");
        assert_eq!(text(&headers, "x-forwarded-for"), forwarded_for, "{id}");
    }
}

#[test]
fn h11_only_te_trailers_survives_a_hop() {
    let mut headers = map(&[
        ("connection", "foo, keep-alive"),
        ("foo", "bar"),
        ("keep-alive", "timeout=5"),
        ("proxy-authorization", "secret"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip, trailers"),
        ("accept", "*/*"),
    ]);
    remove_hop_by_hop(&mut headers);
    let mut left: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    left.sort();
    assert_eq!(left, ["accept: \"*/*\"", "te: \"trailers\""]);
}

#[test]
fn connection_cannot_remove_what_we_rely_on() {
    let mut headers = map(&[
        ("connection", "Host, Content-Length, X-Forwarded-For, EBB-Hop-Key"),
        ("host", "h"),
        ("content-length", "3"),
        ("x-forwarded-for", "1.1.1.1"),
        ("ebb-hop-key", "secret"),
    ]);
    remove_hop_by_hop(&mut headers);
    assert_eq!(headers.len(), 4);
}

#[test]
fn headers_without_a_trusted_sender_are_stripped() {
    let mut headers = map(&[
        ("k-original-host", "h"),
        ("k-proxy-request", "activator"),
        ("knative-serving-revision", "r"),
        ("ebb-no-queue", "1"),
        ("keep", "1"),
        ("ebbing", "1"),
    ]);
    strip_internal(&mut headers);
    let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["ebbing", "keep"]);
}

#[test]
fn an_upgrade_needs_both_headers_and_another_protocol_than_h2c() {
    let asks = |pairs: &[(&str, &str)]| connection_asks_to_upgrade(&map(pairs)).is_some();
    let asked = |pairs: &[(&str, &str)]| {
        let asked = connection_asks_to_upgrade(&map(pairs)).expect("it asks");
        asked.to_str().expect("ASCII").to_owned()
    };
    let upgrade = ("connection", "upgrade");
    assert_eq!(asked(&[upgrade, ("upgrade", "WebSocket")]), "WebSocket");
    assert_eq!(asked(&[upgrade, ("upgrade", "h2c, websocket")]), "websocket");
    assert_eq!(
        asked(&[upgrade, ("upgrade", "websocket"), ("upgrade", "H2C/1,h2,foo/2")]),
        "websocket, foo/2"
    );
    assert!(!asks(&[upgrade, ("upgrade", "h2c, h2")]));
    assert!(!asks(&[upgrade, ("upgrade", ",")]));
    assert!(asks(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
    assert!(!asks(&[("connection", "keep-alive"), ("upgrade", "websocket")]));
    assert!(!asks(&[("connection", "upgrade")]));
    assert!(!asks(&[("connection", "upgrade, http2-settings"), ("upgrade", "h2c")]), "L44");
}

#[test]
fn a_switch_is_to_what_was_offered() {
    let switches = |pairs: &[(&str, &str)], offered| {
        switches_as_offered(&map(pairs), &HeaderValue::from_static(offered))
    };
    assert!(switches(&[("upgrade", "WebSocket")], "websocket"));
    assert!(switches(&[("upgrade", "b"), ("upgrade", "a")], "a, b, c"));
    assert!(!switches(&[("upgrade", "websocket, x")], "websocket"));
    assert!(!switches(&[("upgrade", "h2c")], "websocket"));
    assert!(!switches(&[("upgrade", "")], "websocket"));
    assert!(!switches(&[], "websocket"));
}

#[test]
fn headers_that_an_app_could_take_for_ours_are_dropped() {
    let mut headers = map(&[
        ("k_original_host", "h"),
        ("k-original_host", "h"),
        ("x_forwarded_for", "1.1.1.1"),
        ("x-forwarded_proto", "https"),
        ("ebb_hop_key", "k"),
        ("knative_serving_revision", "r"),
        ("x_request_id", "1"),
        ("kind_of", "1"),
        ("x-forwarded-for", "1.1.1.1"),
        ("k-proxy-request", "1"),
    ]);
    strip_shadowing(&mut headers);
    let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["k-proxy-request", "kind_of", "x-forwarded-for", "x_request_id"]);
}

#[test]
fn nothing_of_a_senders_way_is_left_where_its_word_is_not_believed() {
    let mut headers = map(&[
        ("forwarded", "for=9.9.9.9"),
        ("x-forwarded-for", "9.9.9.9"),
        ("x-forwarded-for", "8.8.8.8"),
        ("x-forwarded-host", "bank.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-prefix", "/admin"),
        ("x-forwarded", "kept"),
        ("x-request-id", "kept"),
    ]);
    strip_forwarded(&mut headers);
    let mut fields = Fields::from(headers);
    set_forwarded_for(&mut fields, &LOOPBACK.to_value());
    let headers = fields.into_map();
    let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["x-forwarded", "x-forwarded-for", "x-request-id"]);
    assert_eq!(headers["x-forwarded-for"], "127.0.0.1");
}

#[test]
fn from_parts_that_are_too_long_no_forwarded_is_built() {
    for (bytes, expected) in [(FORWARDED_PARTS_BYTES_MAX, true), (FORWARDED_PARTS_BYTES_MAX + 1, false)] {
        let mut fields = Fields::from(map(&[("x-forwarded-for", &",".repeat(bytes))]));
        set_forwarded_for(&mut fields, &LOOPBACK.to_value());
        let headers = fields.into_map();
        assert_eq!(headers.contains_key("forwarded"), expected);
        assert_eq!(headers["x-forwarded-for"].len(), bytes + ", 127.0.0.1".len());
    }
}

#[test]
fn fields_that_frame_address_authorise_or_trace_a_message_are_no_trailers() {
    for (name, expected) in [
        ("grpc-status", true),
        ("grpc-message", true),
        ("x-checksum", true),
        ("server-timing", true),
        ("content-length", false),
        ("transfer-encoding", false),
        ("connection", false),
        ("keep-alive", false),
        ("host", false),
        ("te", false),
        ("upgrade", false),
        ("trailer", false),
        ("proxy-authorization", false),
        ("authorization", false),
        ("cookie", false),
        ("set-cookie", false),
        ("expect", false),
        ("content-encoding", false),
        ("x-forwarded-for", false),
        ("x_forwarded_for", false),
        ("k-proxy-request", false),
        ("knative-serving-revision", false),
        ("ebb-not-started", false),
        ("ebb_not_started", false),
    ] {
        assert_eq!(may_be_trailer(&HeaderName::from_static(name)), expected, "{name}");
    }
}

#[test]
fn the_target_takes_the_form_of_its_hop_and_keeps_path_and_query_as_they_are() {
    let build = |version, uri: &str, host: Option<&str>| {
        let request = http::Request::builder().version(version).uri(uri).body(());
        let mut request = Request::from(request.expect("legal"));
        if let Some(host) = host {
            request.headers_mut().insert(HOST, HeaderValue::try_from(host).expect("legal"));
        }
        request
    };
    let seen = |mut request: Request<()>, host: Option<&'static str>| {
        set_host(&mut request, host.map(HeaderValue::from_static), "127.0.0.1:1");
        format!("{} {}", request.uri(), text(request.headers(), "host"))
    };
    let odd = "/%2e%2e/x//y?a;b=%zz";
    assert_eq!(seen(build(Version::HTTP_11, odd, Some("h")), None), format!("{odd} h"));
    assert_eq!(seen(build(Version::HTTP_11, odd, Some("h")), Some("orig")), format!("{odd} orig"), "H8");
    let absolute = build(Version::HTTP_11, "http://there/x?y", Some("h"));
    assert_eq!(seen(absolute, None), "/x?y there");
    assert_eq!(seen(build(Version::HTTP_11, "http://there?y", Some("h")), None), "/?y there");
    assert_eq!(seen(build(Version::HTTP_11, "http://there", Some("h")), None), "/ there");
    assert_eq!(seen(build(Version::HTTP_10, "/", None), None), "/ 127.0.0.1:1");
    assert_eq!(seen(build(Version::HTTP_2, "http://h/x?y", None), None), "http://h/x?y -");
    assert_eq!(seen(build(Version::HTTP_2, "http://h/x", None), Some("orig")), "http://orig/x -");
}

/// What passes with its head's other lines is looked at by none of the functions here.
#[test]
fn no_name_that_is_removed_or_read_here_passes() {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "te",
        "expect",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-anything",
        "x_forwarded_anything",
        "x-forwarded_for",
        "ebb-hop-key",
        "ebb_hop_key",
        "k-anything",
        "k_anything",
        "knative-serving-revision",
        "knative_serving-revision",
    ] {
        let known = HeaderName::from_static(name);
        let is_looked_at = is_hop_by_hop(name) || is_internal(&known) || is_shadowing(&known);
        let is_about_way = name == "forwarded" || name.starts_with("x-forwarded-") || known == EXPECT;
        assert!(is_looked_at || is_about_way, "{name}");
        for spelt in [name.to_owned(), name.to_ascii_uppercase()] {
            assert!(!FieldName::of(spelt.as_bytes()).passes(), "{spelt}");
        }
    }
}
