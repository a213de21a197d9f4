//! How do both programs bind the ports on which they are called?

use std::net::{SocketAddr, TcpListener};

use anyhow::Context;

/// Binds an address of this program; an error names the address.
pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    runtime::listen(address).with_context(|| format!("listening on {address}"))
}
