//! How do both programs bind the ports on which they are called?

use std::net::{SocketAddr, TcpListener};

use anyhow::Context;

/// Listens for whoever calls this program.
pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    runtime::listen(address).with_context(|| format!("listening on {address}"))
}
