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
    // A kernel that does not know this (a sandbox's may not) serves as well, only less evenly.
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_peer_that_does_not_read_fills_little_of_the_kernels_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("open");
        let _peer = listener.accept().await.expect("open");
        set_options(&stream).expect("the kernel knows them");
        let mut written = 0;
        // Of its own accord the kernel takes several megabytes.
        while let Ok(length) = stream.try_write(&[0; 16 * 1024]) {
            written += length;
        }
        assert!(written <= 2 * UNSENT_BYTES_MAX as usize, "{written} bytes");
    }
}
