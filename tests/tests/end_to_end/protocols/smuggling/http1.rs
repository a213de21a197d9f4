//! The cases of HTTP/1.1 that a smuggler would try.

use super::Case;
use super::Verdict::{AloneWith, PassedWith, Refused};

/// A POST or GET up to its `Host`, and the rest.
macro_rules! post {
    ($rest:literal) => {
        concat!("POST PATH HTTP/1.1\r\nHost: HOST\r\n", $rest)
    };
}
macro_rules! get {
    ($rest:literal) => {
        concat!("GET PATH HTTP/1.1\r\nHost: HOST\r\n", $rest)
    };
}
macro_rules! chunked {
    ($body:literal) => {
        concat!("POST PATH HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n", $body)
    };
}

/// Where a line ends, what a name is, and how a request begins.
pub(super) const LINES: &[Case] = &[
    ("a bare line feed behind the request line", "GET PATH HTTP/1.1\nHost: HOST\r\n\r\n", Refused),
    ("a bare line feed between fields", "GET PATH HTTP/1.1\r\nHost: HOST\nX: y\r\n\r\n", Refused),
    ("a field behind a bare line feed", post!("X: y\nContent-Length: 5\r\n\r\nhello"), Refused),
    (
        "a coding behind a bare line feed",
        post!("Content-Length: 5\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Refused,
    ),
    ("a head that ends with bare line feeds", "GET PATH HTTP/1.1\r\nHost: HOST\n\n", Refused),
    ("a bare carriage return in a value", post!("X: y\rContent-Length: 5\r\n\r\n"), Refused),
    ("a bare carriage return in a name", get!("X\rY: z\r\n\r\n"), Refused),
    ("a bare carriage return in the request line", "GET PATH\rX HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a NUL in a value", get!("X: a\0b\r\n\r\n"), Refused),
    ("a NUL in a name", get!("X\0Y: z\r\n\r\n"), Refused),
    ("a NUL in the target", "GET PATH\0 HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a folded line", get!("X: y\r\n z\r\n\r\n"), Refused),
    ("a folded length", post!("Content-Length:\r\n 5\r\n\r\nhello"), Refused),
    ("a folded coding", post!("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), Refused),
    ("a blank before the first field", "GET PATH HTTP/1.1\r\n Host: HOST\r\n\r\n", Refused),
    ("a space before a colon", post!("Content-Length : 5\r\n\r\nhello"), Refused),
    ("a tab before a colon", post!("Content-Length\t: 5\r\n\r\nhello"), Refused),
    ("a space within a name", post!("Content Length: 5\r\n\r\nhello"), Refused),
    ("a field without a name", get!(": y\r\n\r\n"), Refused),
    ("a field without a colon", get!("X\r\n\r\n"), Refused),
    ("two hosts", get!("Host: other.example.com\r\n\r\n"), Refused),
    ("two spaces in the request line", "GET  PATH HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a space within the target", "GET PATH x HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a space behind the version", "GET PATH HTTP/1.1 \r\nHost: HOST\r\n\r\n", Refused),
    ("a version in small letters", "GET PATH http/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a version that HTTP/1 does not have", "GET PATH HTTP/2.0\r\nHost: HOST\r\n\r\n", Refused),
    ("no version", "GET PATH\r\nHost: HOST\r\n\r\n", Refused),
    ("a bare line feed before the request", "\nGET PATH HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a target that is a host", "GET HOST HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a target that is a host and a port", "GET HOST:80 HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a target that names a user", "GET http://user@HOSTPATH HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a target with a fragment", "GET /x#PATH HTTP/1.1\r\nHost: HOST\r\n\r\n", Refused),
    ("a whole target without a Host", "GET http://HOSTPATH HTTP/1.1\r\n\r\n", Refused),
    ("a user in the Host", "GET PATH HTTP/1.1\r\nHost: user@HOST\r\n\r\n", Refused),
    ("two hosts in one line", "GET PATH HTTP/1.1\r\nHost: HOST, other.example.com\r\n\r\n", Refused),
    ("an empty line before the request", "\r\nGET PATH HTTP/1.1\r\nHost: HOST\r\n\r\n", PassedWith("")),
];

/// How long a body is.
pub(super) const LENGTHS: &[Case] = &[
    (
        "a length and chunks",
        post!("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        AloneWith(""),
    ),
    (
        "chunks and a length",
        post!("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        AloneWith("hello"),
    ),
    (
        "chunks and an unknown coding",
        post!("Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n"),
        Refused,
    ),
    (
        "an unknown coding and chunks",
        post!("Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Refused,
    ),
    ("a coding that only looks like chunks", post!("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), Refused),
    ("quoted chunks", post!("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), Refused),
    ("chunks with a parameter", post!("Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"), Refused),
    ("chunks behind a vertical tab", post!("Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"), Refused),
    ("chunks before a NUL", post!("Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n"), Refused),
    ("a space before the coding's colon", post!("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), Refused),
    (
        "a coding that is broken over two lines",
        post!("Transfer-Encoding\r\n: chunked\r\n\r\n0\r\n\r\n"),
        Refused,
    ),
    ("chunks that are not last", post!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), Refused),
    ("identity", post!("Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"), Refused),
    (
        "chunks twice",
        post!("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Refused,
    ),
    ("no coding at all", post!("Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello"), Refused),
    ("chunks behind a comma", post!("Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n"), PassedWith("")),
    (
        "chunks behind a tab",
        post!("Transfer-Encoding:\tchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        PassedWith("hello"),
    ),
    (
        "chunks in capitals",
        post!("TRANSFER-ENCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        PassedWith("hello"),
    ),
    (
        "chunks of HTTP/1.0",
        "POST PATH HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        AloneWith(""),
    ),
    ("two lengths", post!("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), Refused),
    ("a list of lengths", post!("Content-Length: 5, 6\r\n\r\nhello"), Refused),
    (
        "the same length twice",
        post!("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        PassedWith("hello"),
    ),
    ("a list of the same length", post!("Content-Length: 5, 5\r\n\r\nhello"), PassedWith("hello")),
    ("a length with a plus", post!("Content-Length: +5\r\n\r\nhello"), Refused),
    ("a length with a minus", post!("Content-Length: -5\r\n\r\nhello"), Refused),
    ("a length with a space within", post!("Content-Length: 1 5\r\n\r\nhello"), Refused),
    ("a length in hexadecimal", post!("Content-Length: 0x5\r\n\r\nhello"), Refused),
    ("a length with an underscore", post!("Content-Length: 0_5\r\n\r\nhello"), Refused),
    ("a length with a fraction", post!("Content-Length: 5.0\r\n\r\nhello"), Refused),
    ("a length with a vertical tab", post!("Content-Length: 5\x0b\r\n\r\nhello"), Refused),
    ("a length in other digits", post!("Content-Length: ٥\r\n\r\nhello"), Refused),
    ("a length that overflows to 5", post!("Content-Length: 18446744073709551621\r\n\r\nhello"), Refused),
    ("no length at all", post!("Content-Length:\r\n\r\nhello"), Refused),
    ("a length with zeros", post!("Content-Length: 005\r\n\r\nhello"), PassedWith("hello")),
    ("a body of GET", get!("Content-Length: 5\r\n\r\nhello"), PassedWith("hello")),
];

/// The cases of how chunks are written.
pub(super) const CHUNKS: &[Case] = &[
    ("a size with junk", chunked!("5zz\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with a plus", chunked!("+5\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with a minus", chunked!("-5\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with 0x", chunked!("0x5\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with an underscore", chunked!("0_5\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size behind a space", chunked!(" 5\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with a blank behind", chunked!("5 \r\nhello\r\n0\r\n\r\n"), PassedWith("hello")),
    ("a size with a blank and junk behind", chunked!("5 x\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size with another behind a blank", chunked!("5 6\r\nhello\r\n0\r\n\r\n"), Refused),
    ("an extension without a name", chunked!("5;\r\nhello\r\n0\r\n\r\n"), Refused),
    ("an extension with a NUL", chunked!("5;a=\"\0\"\r\nhello\r\n0\r\n\r\n"), Refused),
    ("trailers that end with a bare line feed", chunked!("0\r\nX: y\n\r\n\r\n"), Refused),
    ("a trailer behind a bare line feed", chunked!("0\r\nX: y\nY: z\r\n\r\n"), Refused),
    ("trailers that end with two bare line feeds", chunked!("0\r\nX: y\n\n"), Refused),
    ("a size that overflows to 5", chunked!("10000000000000005\r\nhello\r\n0\r\n\r\n"), Refused),
    ("no size", chunked!("\r\nhello\r\n0\r\n\r\n"), Refused),
    ("a size that ends with a bare line feed", chunked!("5\nhello\r\n0\r\n\r\n"), Refused),
    ("a size that ends with a bare carriage return", chunked!("5\rhello\r\n0\r\n\r\n"), Refused),
    ("an extension that ends with a bare line feed", chunked!("5;a\nhello\r\n0\r\n\r\n"), Refused),
    ("an extension with a bare carriage return", chunked!("5;a\rb\r\nhello\r\n0\r\n\r\n"), Refused),
    ("more data than the size says", chunked!("5\r\nhello!\r\n0\r\n\r\n"), Refused),
    ("data that ends with a bare line feed", chunked!("5\r\nhello\n0\r\n\r\n"), Refused),
    ("data that ends with two other bytes", chunked!("5\r\nhelloXX0\r\n\r\n"), Refused),
    ("a last chunk that ends with a bare line feed", chunked!("0\n\n"), Refused),
    ("an end that is missing", chunked!("0\r\n"), Refused),
    ("a trailer with a bare carriage return", chunked!("0\r\nX: y\rz\r\n\r\n"), Refused),
    ("a trailer without a colon", chunked!("0\r\nX\r\n\r\n"), Refused),
    ("a trailer with a space before its colon", chunked!("0\r\nX : y\r\n\r\n"), Refused),
    ("a folded trailer", chunked!("0\r\nX: y\r\n z\r\n\r\n"), Refused),
    ("a trailer with a NUL", chunked!("0\r\nX: y\0z\r\n\r\n"), Refused),
    ("a length among the trailers", chunked!("0\r\nContent-Length: 99\r\n\r\n"), PassedWith("")),
    ("a coding among the trailers", chunked!("0\r\nTransfer-Encoding: chunked\r\n\r\n"), PassedWith("")),
    ("a host among the trailers", chunked!("0\r\nHost: other.example.com\r\n\r\n"), PassedWith("")),
    ("an extension", chunked!("5;a=b\r\nhello\r\n0\r\n\r\n"), PassedWith("hello")),
    ("a size with zeros", chunked!("0005\r\nhello\r\n000\r\n\r\n"), PassedWith("hello")),
];
