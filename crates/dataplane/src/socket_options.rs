//! How the sockets of requests are set, towards clients and towards apps.

use std::io;

use socket2::SockRef;
use tokio::net::TcpStream;

/// So much may wait in the kernel before it is sent, beyond what is on its way. More makes nothing faster: it only lets one connection's megabytes push ahead
/// of what others wait for, and takes the kernel's memory for who reads slowly.
const UNSENT_BYTES_MAX: u32 = 512 * 1024;

/// Sets a new connection.
pub(crate) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}
