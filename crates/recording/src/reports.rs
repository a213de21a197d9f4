//! Frames of many reports: what comes each second, in few bytes.
//!
//! Nearly all that an orchestrator is told are the seconds of pods and activators, and calls of which nothing
//! comes out. They stand together in one frame, each in the bytes that cannot be foretold: the link that
//! followed the same link before, the next second of a link, and a time that is as many seconds after the
//! former one are a bit each. A revision is named once in a segment and has a number from then on. A quantity
//! that is a whole number of nanoseconds, or of requests, is that number; any other one is its 64 bits. So
//! reports are read bit for bit as they were handled, and a segment is read by itself.
//!
//! A frame has three columns: heads (a byte for each call), codes (a byte or two for each load, how its
//! quantities are written) and values. Alike bytes stand together there, and are compressed well.

mod calls;
mod columns;
mod loads;
mod memory;
mod packing;
mod quantities;
#[cfg(test)]
mod tests;
mod unpacking;

pub(crate) use calls::SteadyCall;
pub(crate) use packing::ReportPacker;
pub(crate) use unpacking::ReportUnpacker;
