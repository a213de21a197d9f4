//! What travels through `ebb up` arrives as it was sent: one test for each thing that a protocol can do, over
//! activator and queue-proxy, on the real executable.
//!
//! Each test runs in both routings (see [`world`]) and, where both can do it, in both protocols. Proof is
//! always what was observed: where something must arrive before something else is sent, the test sends the
//! latter only after it saw the former. Time appears as deadlines alone.

mod autobahn;
mod bodies;
mod bridging;
mod broken;
mod cancels;
mod client;
mod early;
mod events;
mod framing;
mod grpc;
mod half_closed;
mod headers;
mod interim;
mod queueing;
mod refusals;
mod semantics;
mod smuggling;
mod targets;
mod timers;
mod trailers;
mod websocket;
mod world;
