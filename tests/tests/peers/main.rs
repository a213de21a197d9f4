//! Before programs that others wrote: both proxies before h2spec, before clients of every maker, with large
//! bodies, and before grpc-go at full speed; their metrics before promtool, their traces before
//! OpenTelemetry's decoder, and class hpa and the Grafana board before Prometheus.
//!
//! `cargo suite peers`. It needs Go 1.19 or newer, and builds what it runs from `tests/interop`, whose
//! `go.sum` pins every version; the first time that takes the network. The clients are Debian's (`apt-get
//! install -y curl nghttp2-client nodejs python3-venv default-jdk-headless`) or made by a package manager
//! from the versions that `tests/interop` pins. Prometheus is Debian's (`apt-get install -y prometheus`).
//! `$PEERS_SECONDS` says how long data flows before grpc-go (10 if it does not), `$PEERS_MEGABYTES` how large
//! other bodies are (100).

mod board;
mod clients;
mod collector;
mod curl;
mod grpc_go;
mod h2spec;
mod nghttp2;
mod programs;
mod prometheus;
mod promtool;
mod stopwatch;
