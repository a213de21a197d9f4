//! How the sockets of requests are set, towards clients and towards apps.

use std::io;

use socket2::SockRef;
use tokio::net::TcpStream;

/// So much may wait in the kernel before it is sent, beyond what is on its way. More makes nothing faster: it only lets one connection's megabytes push ahead
/// of what others wait for, and takes the kernel's memory for who reads slowly. Measured with the benchmark `hop` (64 and 1,000 connections, 1 MB): at the same
/// throughput and CPU time, p99 is a third higher with 512 KB.
const UNSENT_BYTES_MAX: u32 = 128 * 1024;

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
        let (peer, _) = listener.accept().await.expect("open");
        set_options(&stream).expect("the kernel knows them");
        let piece = [0; 16 * 1024];
        let mut written = 0;
        // Of its own accord the kernel takes several megabytes.
        while let Ok(length) = stream.try_write(&piece) {
            written += length;
        }
        let on_its_way = SockRef::from(&peer).recv_buffer_size().expect("the kernel knows");
        let most = UNSENT_BYTES_MAX as usize + on_its_way + piece.len();
        assert!(written <= most, "{written} bytes, not {most}");
    }
}
