//! What changes in a request that goes on in another protocol than it came in.
//!
//! Heads, bodies and trailers mean the same in HTTP/1.1 and HTTP/2, and both ends of this crate read and
//! write them in one form; what belongs to one connection ended before ([`crate::Forwarded`]), and the target
//! takes the form that its version wants in [`crate::set_host`], which comes after this. What is left is what
//! one of the two writes in another way.

use http::Version;
use http::header::{COOKIE, HeaderMap, HeaderValue};
use protocol::Request;

use crate::body::Body;
use crate::upstream::Protocol;

/// Gives a request the version that it goes on with.
pub fn translate(request: &mut Request<Body>, to: Protocol) {
    if Protocol::of(request.version()) == to {
        return;
    }
    match to {
        Protocol::Http1 => {
            *request.version_mut() = Version::HTTP_11;
            join_cookies(request.headers_mut());
        }
        Protocol::Http2 => *request.version_mut() = Version::HTTP_2,
    }
}

/// HTTP/2 may divide a cookie to compress it better; peers of HTTP/1.1 expect one line (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let joined = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]));
    headers.insert(COOKIE, joined.expect("header text joined is header text"));
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::set_host;

    #[test]
    fn a_request_goes_on_in_the_other_form() {
        let request = http::Request::builder()
            .method(Method::GET)
            .uri("http://hello.example.com/a?b")
            .version(Version::HTTP_2)
            .header("cookie", "a=1")
            .header("te", "trailers")
            .header("cookie", "b=2");
        let mut request = Request::from(request.body(Body::empty()).expect("legal"));
        translate(&mut request, Protocol::Http1);
        set_host(&mut request, None, "localhost");
        assert_eq!((request.version(), request.uri().to_string().as_str()), (Version::HTTP_11, "/a?b"));
        let cookies: Vec<_> = request.headers().get_all("cookie").iter().collect();
        assert_eq!(cookies, ["a=1; b=2"]);
        assert_eq!(request.headers()["te"], "trailers");
        assert_eq!(request.headers()["host"], "hello.example.com");
        translate(&mut request, Protocol::Http2);
        set_host(&mut request, None, "localhost");
        assert_eq!(request.version(), Version::HTTP_2);
        assert_eq!(request.uri(), "http://hello.example.com/a?b");
        assert!(!request.headers().contains_key("host"));
    }

    #[test]
    fn an_old_version_of_the_same_protocol_stays() {
        let request = http::Request::builder().version(Version::HTTP_10).uri("/");
        let mut request = Request::from(request.body(Body::empty()).expect("legal"));
        translate(&mut request, Protocol::Http1);
        assert_eq!(request.version(), Version::HTTP_10);
    }
}
