//! Before programs that others wrote: both proxies before h2spec and grpc-go at full speed, their metrics before promtool, and class hpa
//! before Prometheus.
//!
//! `cargo test -p tests --features peers --test peers`. It needs Go 1.19 or newer, and builds what it runs from `tests/interop`, whose `go.sum` pins every
//! version; the first time that takes the network. Prometheus is Debian's (`apt-get install -y prometheus`).
//! `$PEERS_SECONDS` says how long data flows (10 if it does not).

mod grpc_go;
mod h2spec;
mod programs;
mod prometheus;
mod promtool;
