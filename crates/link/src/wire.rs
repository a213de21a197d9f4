//! How the messages look on the wire, as protobuf, and which values are refused.
//!
//! Field numbers are promises: they are pinned by tests on bytes and are never reused. Conversion to our own
//! words is lossless for everything we send; what a peer sends is checked field by field, and the first bad
//! value refuses the message by name. Texts for people are cut to [`DETAIL_BYTES_MAX`] by the sender,
//! everything else is refused when out of bounds.

mod activator;
pub(crate) mod fields;
mod loads;
mod measures;
mod pod;
mod proto;

use bytes::BytesMut;
use prost::Message as _;
use thiserror::Error;

pub(crate) use proto::{Fragment, Greeting};

/// The longest text for people (a pod's trouble, what a revision waits for), in bytes of UTF-8.
pub(crate) const DETAIL_BYTES_MAX: usize = 512;

/// The first byte of a [`Fragment`] frame: field 15, length-delimited. No message has a field 15 of its own.
pub(crate) const FRAGMENT_KEY: u8 = (15 << 3) | 2;
/// What a [`Fragment`] adds to its part: two keys, a length of up to four bytes and a flag, rounded up.
pub(crate) const FRAGMENT_OVERHEAD_BYTES: usize = 16;

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WireError {
    /// Not protobuf, or not of this message.
    #[error("not a message: {0}")]
    Malformed(String),
    /// A message lacks a field that it must have.
    #[error("{field} is missing")]
    Missing {
        /// As the message type calls it.
        field: &'static str,
    },
    /// A field's value is not acceptable.
    #[error("{field} {problem}")]
    BadValue {
        /// As the message type calls it.
        field: &'static str,
        /// The reason why the value is refused.
        problem: String,
    },
}

/// A message that travels on a link.
pub trait Message: Sized + Send + 'static {
    /// The longest frame in its direction, in bytes.
    const FRAME_BYTES_MAX: usize;
    /// The longest message in its direction, in bytes; what is longer than a frame travels in several.
    const MESSAGE_BYTES_MAX: usize;

    /// How many bytes [`Message::encode`] writes.
    fn encoded_len(&self) -> usize;
    /// Appends the message to `bytes`, without the length in front.
    fn encode(&self, bytes: &mut BytesMut);
    /// Reads a message and checks every value; an error names the first that is wrong.
    fn decode(bytes: &[u8]) -> Result<Self, WireError>;
}

/// Frames from and to a queue-proxy: a hello with 60 full seconds takes 3 KiB.
pub(crate) const POD_FRAME_BYTES_MAX: usize = 4 << 10;
/// Frames from and to an activator: a second of 10,000 revisions.
pub(crate) const ACTIVATOR_FRAME_BYTES_MAX: usize = 1 << 20;
/// Messages from and to an activator: a hello with 60 seconds of 10,000 revisions.
pub(crate) const ACTIVATOR_MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A type of our own words, the protobuf message that carries it, and the limits of its direction.
macro_rules! on_the_wire {
    ($words:ty, $proto:ty, $frame:expr, $message:expr) => {
        impl Message for $words {
            const FRAME_BYTES_MAX: usize = $frame;
            const MESSAGE_BYTES_MAX: usize = $message;

            fn encoded_len(&self) -> usize {
                <$proto>::from(self).encoded_len()
            }

            fn encode(&self, bytes: &mut BytesMut) {
                <$proto>::from(self).encode(bytes).expect("a growing buffer has room");
            }

            fn decode(bytes: &[u8]) -> Result<Self, WireError> {
                Self::try_from(decoded::<$proto>(bytes)?)
            }
        }
    };
}
on_the_wire!(vocabulary::PodWord, proto::PodReport, POD_FRAME_BYTES_MAX, POD_FRAME_BYTES_MAX);
on_the_wire!(crate::PodOrder, proto::PodOrder, POD_FRAME_BYTES_MAX, POD_FRAME_BYTES_MAX);
on_the_wire!(
    vocabulary::ActivatorWord,
    proto::ActivatorReport,
    ACTIVATOR_FRAME_BYTES_MAX,
    ACTIVATOR_MESSAGE_BYTES_MAX
);
on_the_wire!(
    crate::ActivatorOrder,
    proto::ActivatorOrder,
    ACTIVATOR_FRAME_BYTES_MAX,
    ACTIVATOR_MESSAGE_BYTES_MAX
);

fn decoded<Proto: prost::Message + Default>(bytes: &[u8]) -> Result<Proto, WireError> {
    Proto::decode(bytes).map_err(|error| WireError::Malformed(error.to_string()))
}

impl Greeting {
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Looks at the token alone, whatever else the frame holds.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        decoded(bytes)
    }
}

impl Fragment {
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        decoded(bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests;
