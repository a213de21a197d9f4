//! Both proxies before programs that others wrote: h2spec, and grpc-go at full speed.
//!
//! `cargo test -p tests --features peers --test peers`. It needs Go 1.19 or newer, and builds what it runs from `tests/interop`, whose `go.sum` pins every
//! version; the first time that takes the network. `$PEERS_SECONDS` says how long data flows (10 if it does not).

mod grpc_go;
mod h2spec;
mod programs;
