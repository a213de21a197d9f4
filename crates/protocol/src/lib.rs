//! How is a request written on the wire? Bytes in; messages and bytes out, for both ends of HTTP/1.1 and
//! HTTP/2.
//!
//! Nothing here can open a socket, read a clock or wait. The owner of a socket (`dataplane`) hands over the
//! bytes that it read, in whatever pieces they came, and writes out the bytes that it is given; so every rule
//! about bytes can be tested by a call, and fuzzed.
//!
//! Messages are read to the letter. A reader before us or behind us may be less strict, and bytes out of
//! which two servers can read two different messages are refused (request smuggling). Texts that we take
//! although the grammar does not stand in a table beside the strict reader that judges ours in the tests
//! (`http1::strict`).

mod ambiguity;
mod byte_table;
mod content_length;
mod fields;
mod headers;
pub mod http1;
pub mod http2;
mod message;
mod parts_box;
mod pieces;
mod request_target;
mod sync;
mod target;

pub use ambiguity::{Ambiguity, ambiguity};
pub use fields::Fields;
pub use headers::{
    ClientAddress, connection_asks_to_upgrade, effective_host, end_hop, has_hop_by_hop, has_internal,
    is_host, may_be_trailer, names, remove_hop_by_hop, set_forwarded_for, set_host, strip_forwarded,
    strip_internal, strip_refusal, strip_shadowing, switches_as_offered, written_host,
};
pub use message::{Request, RequestParts, Response, ResponseParts};
pub use pieces::{BodyPieces, COPIED_BYTES_MAX};
pub use request_target::RequestTarget;
pub use target::{MisplacedByte, RawTarget, TargetProblem, path_and_query};
