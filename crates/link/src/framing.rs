//! Frames on a connection: how much a peer may send at once, how long it may be silent, and how long we wait
//! for it to read.
//!
//! A frame is a 4-byte big-endian length and that many bytes of protobuf. A message longer than a frame may
//! be (an activator's history of thousands of revisions) travels as several [`wire::Fragment`] frames; a
//! queue-proxy may not do that.
//!
//! The dialler's first frame carries the token of the process that it calls. Before that frame the process
//! reads one small frame and waits for it a short time, whatever a link may say later.
//!
//! Both ends are bounded in time and memory, so a peer that is silent, sends a byte a second, never reads or
//! sends garbage costs one task and a few hundred bytes until it is cut off, with the reason as a
//! [`LinkError`].

mod link_error;

use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::time::Sleep;
use tokio_util::codec::length_delimited::LengthDelimitedCodecError;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use vocabulary::LinkToken;

use crate::connection::{IncomingBytes, OutgoingBytes};
use crate::wire::{self, Message};

pub use link_error::LinkError;
pub(crate) use link_error::{FIRST_FRAME_WITHIN, SILENCE_MAX, WRITE_MAX};

/// Every side sends at least one frame in this time. Each costs both ends a turn, asleep or not.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// A link without a complete frame for this long is late: a heartbeat and half a second on its way.
pub const LATE_AFTER: Duration = Duration::from_millis(2500);
/// The longest first frame: what a queue-proxy's link takes at any time. It is read before its sender has
/// proved anything.
pub(crate) const FIRST_FRAME_BYTES_MAX: usize = wire::POD_FRAME_BYTES_MAX;

/// Most frames are a few dozen bytes, and there are as many buffers as pods.
const BUFFER_BYTES_AT_START: usize = 256;
/// The capacity that a buffer may keep between messages.
const BUFFER_BYTES_KEPT: usize = 4096;
const LENGTH_BYTES: usize = 4;

/// The result of one wait for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reception<In> {
    /// A message that arrived whole and was valid.
    Message(In),
    /// No complete frame arrived in [`LATE_AFTER`]; said once until the next frame.
    Late,
    /// The peer closed the link between two frames.
    End,
}

/// The receiving half of a link.
pub struct Reader<In> {
    frames: FramedRead<IncomingBytes, LengthDelimitedCodec>,
    /// Runs out [`LATE_AFTER`] after the last frame and once more [`SILENCE_MAX`] after it, whichever task
    /// polls and however often a read is cancelled. One timer for both: there are as many as pods.
    silence: Pin<Box<Sleep>>,
    /// Whether it has run out for the first time.
    is_late: bool,
    /// The parts of a message that came in fragments so far.
    parts: BytesMut,
    message: PhantomData<fn() -> In>,
}

impl<In: Message> Reader<In> {
    pub(crate) fn new(stream: IncomingBytes) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(In::FRAME_BYTES_MAX).new_codec();
        Self {
            // A link mostly carries some hundred bytes a second, and there are as many as pods.
            frames: FramedRead::with_capacity(stream, codec, BUFFER_BYTES_AT_START),
            silence: Box::pin(tokio::time::sleep(LATE_AFTER)),
            is_late: false,
            parts: BytesMut::new(),
            message: PhantomData,
        }
    }

    /// A reader for a peer that has proved nothing yet; call [`Reader::first`] before [`Reader::next`].
    pub(crate) fn of_unproved_peer(stream: IncomingBytes) -> Self {
        let mut reader = Self::new(stream);
        // A length is believed before a byte of its frame is here, and room is made for it. Strangers get
        // little.
        reader.frames.decoder_mut().set_max_frame_length(FIRST_FRAME_BYTES_MAX);
        reader
    }

    /// The first message, with the token if one is wanted. It comes whole: a peer that has not shown a token
    /// has nothing collected for it.
    pub(crate) async fn first(&mut self, token: Option<LinkToken>) -> Result<In, LinkError> {
        let frame = tokio::time::timeout(FIRST_FRAME_WITHIN, self.frames.next());
        let frame = frame.await.map_err(|_| LinkError::FirstFrameLate)?;
        let frame = frame.ok_or_else(|| LinkError::Broken(io::ErrorKind::UnexpectedEof.into()))?;
        let frame = frame.map_err(|error| Self::refusal(error, FIRST_FRAME_BYTES_MAX))?;
        // A message in parts is collected, and nothing is collected for a peer that has not shown a token.
        if frame.first() == Some(&wire::FRAGMENT_KEY) {
            return Err(LinkError::TooLarge { max: FIRST_FRAME_BYTES_MAX });
        }
        if let Some(token) = token
            && !token.is(&wire::Greeting::decode(&frame)?.token)
        {
            return Err(LinkError::Unauthorised);
        }
        // From here on the peer is known, and its frames may be as long as the protocol allows.
        self.frames.decoder_mut().set_max_frame_length(In::FRAME_BYTES_MAX);
        self.heard();
        Ok(In::decode(&frame)?)
    }

    /// The next message; `None` when the peer closed the link between two frames. Cancel-safe: a dropped call
    /// loses nothing and does not extend the time that the peer may be silent.
    pub async fn next(&mut self) -> Result<Option<In>, LinkError> {
        loop {
            match self.received().await? {
                Reception::Message(message) => return Ok(Some(message)),
                Reception::Late => {}
                Reception::End => return Ok(None),
            }
        }
    }

    /// The next message, or that it is late. Cancel-safe like [`Reader::next`].
    pub async fn received(&mut self) -> Result<Reception<In>, LinkError> {
        loop {
            // Cancel-safe: half a frame stays in the reader's buffer, and the timer is the reader's own.
            let frame = tokio::select! {
                biased;
                frame = self.frames.next() => frame,
                () = self.silence.as_mut() => {
                    if std::mem::replace(&mut self.is_late, true) {
                        return Err(LinkError::Silent);
                    }
                    self.silence.set(tokio::time::sleep(SILENCE_MAX.saturating_sub(LATE_AFTER)));
                    return Ok(Reception::Late);
                }
            };
            let frame = match frame {
                None => return Ok(Reception::End),
                // A process that ends says no goodbye of TLS. Whether a message is whole is said by its
                // length alone.
                Some(Err(error)) if self.is_end_between_frames(&error) => return Ok(Reception::End),
                Some(frame) => frame.map_err(|error| Self::refusal(error, In::FRAME_BYTES_MAX))?,
            };
            self.heard();
            if let Some(message) = self.message_of(&frame)? {
                return Ok(Reception::Message(message));
            }
        }
    }

    /// A frame arrived, so the time of silence begins anew.
    fn heard(&mut self) {
        self.is_late = false;
        // The old timer leaves the wheel here and the new one enters it: no allocation.
        self.silence.set(tokio::time::sleep(LATE_AFTER));
    }

    fn is_end_between_frames(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::UnexpectedEof && self.frames.read_buffer().is_empty()
    }

    /// Reads a frame: a message, or one more part of a long one.
    fn message_of(&mut self, frame: &[u8]) -> Result<Option<In>, LinkError> {
        if frame.first() != Some(&wire::FRAGMENT_KEY) {
            return Ok(Some(In::decode(frame)?));
        }
        let fragment = wire::Fragment::decode(frame)?;
        // Before the part is taken. The second condition refuses parts where no message may be longer than a
        // frame: they could only be a way to make us collect.
        if self.parts.len() + fragment.part.len() > In::MESSAGE_BYTES_MAX
            || In::MESSAGE_BYTES_MAX <= In::FRAME_BYTES_MAX
        {
            return Err(LinkError::TooLarge { max: In::MESSAGE_BYTES_MAX });
        }
        self.parts.extend_from_slice(&fragment.part);
        if !fragment.last {
            return Ok(None);
        }
        let whole = std::mem::take(&mut self.parts);
        Ok(Some(In::decode(&whole)?))
    }

    fn refusal(error: io::Error, max: usize) -> LinkError {
        let too_large =
            error.get_ref().and_then(|inner| inner.downcast_ref::<LengthDelimitedCodecError>()).is_some();
        if too_large { LinkError::TooLarge { max } } else { LinkError::Broken(error) }
    }
}

/// The sending half of a link.
pub struct Writer<Out> {
    stream: OutgoingBytes,
    /// The token that the first message carries; `None` once it was sent, or if none is wanted.
    token: Option<LinkToken>,
    /// Bytes of whole frames that have not left yet.
    unsent: BytesMut,
    /// Runs out [`HEARTBEAT_EVERY`] after the last message.
    idle: Pin<Box<Sleep>>,
    message: PhantomData<fn(Out)>,
}

impl<Out: Message> Writer<Out> {
    pub(crate) fn new(stream: OutgoingBytes, token: Option<LinkToken>) -> Self {
        Self {
            stream,
            token,
            unsent: BytesMut::with_capacity(BUFFER_BYTES_AT_START),
            idle: Box::pin(tokio::time::sleep(HEARTBEAT_EVERY)),
            message: PhantomData,
        }
    }

    /// Sends a message, within `WRITE_MAX`. A dropped call tears no frame: what has not left goes before
    /// the next message.
    pub async fn send(&mut self, message: &Out) -> Result<(), LinkError> {
        // Into the buffer first, whole. If this call is dropped while it writes, the next one goes on with
        // the rest of this frame before its own, so the peer never sees half of one.
        self.frame(message)?;
        self.idle.set(tokio::time::sleep(HEARTBEAT_EVERY));
        tokio::time::timeout(WRITE_MAX, self.stream.write_all_buf(&mut self.unsent))
            .await
            .map_err(|_| LinkError::Stalled)?
            .map_err(LinkError::Broken)?;
        // One sync of ten thousand revisions would otherwise leave its room with each link for good.
        if self.unsent.capacity() > BUFFER_BYTES_KEPT {
            self.unsent = BytesMut::with_capacity(BUFFER_BYTES_AT_START);
        }
        Ok(())
    }

    /// Waits until nothing was sent for [`HEARTBEAT_EVERY`]: time for a heartbeat. Cancel-safe; comes back at
    /// once until the next [`Writer::send`].
    pub async fn idle(&mut self) {
        if !self.idle.is_elapsed() {
            self.idle.as_mut().await;
        }
    }

    /// Appends a message to the unsent bytes, in fragments if it is longer than a frame may be.
    fn frame(&mut self, message: &Out) -> Result<(), LinkError> {
        // Taken and not looked at: a second message must not carry the secret again.
        if let Some(token) = self.token.take() {
            return self.first_frame(&token, message);
        }
        let length = message.encoded_len();
        if length > Out::MESSAGE_BYTES_MAX {
            return Err(LinkError::TooLarge { max: Out::MESSAGE_BYTES_MAX });
        }
        if length <= Out::FRAME_BYTES_MAX {
            self.unsent.reserve(LENGTH_BYTES + length);
            self.unsent.put_u32(u32::try_from(length).expect("a frame is at most a MiB"));
            message.encode(&mut self.unsent);
            return Ok(());
        }
        let mut whole = BytesMut::with_capacity(length);
        message.encode(&mut whole);
        while whole.has_remaining() {
            let part = whole.split_to(whole.len().min(Out::FRAME_BYTES_MAX - wire::FRAGMENT_OVERHEAD_BYTES));
            let frame = wire::Fragment { part: part.to_vec(), last: whole.is_empty() }.encode();
            self.unsent.put_u32(u32::try_from(frame.len()).expect("a frame is at most a MiB"));
            self.unsent.extend_from_slice(&frame);
        }
        Ok(())
    }

    /// Appends the token and the first message as one frame: fields of a protobuf message may stand in any
    /// order, so those of both make one message, of which a receiver from before the token reads what it
    /// knows.
    fn first_frame(&mut self, token: &LinkToken, message: &Out) -> Result<(), LinkError> {
        let greeting = wire::Greeting { token: token.expose().to_vec() }.encode();
        let length = greeting.len() + message.encoded_len();
        if length > FIRST_FRAME_BYTES_MAX {
            return Err(LinkError::TooLarge { max: FIRST_FRAME_BYTES_MAX });
        }
        self.unsent.put_u32(u32::try_from(length).expect("a first frame is at most 4 KiB"));
        self.unsent.extend_from_slice(&greeting);
        message.encode(&mut self.unsent);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
