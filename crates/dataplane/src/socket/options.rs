//! How the sockets of requests are set, towards clients and towards apps.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// So much may wait in the kernel before it is sent, beyond what is on its way. More makes nothing faster: it
/// only lets one connection's megabytes push ahead of what others wait for, and takes the kernel's memory for
/// who reads slowly. Measured with the benchmark `hop` (64 and 1,000 connections, 1 MB): at the same
/// throughput and CPU time, p99 is a third higher with 512 KB.
const UNSENT_BYTES_MAX: u32 = 128 * 1024;

/// A peer that is gone without a word is noticed by the kernel after 40 s and three questions 15 s apart, so
/// that no place in a queue outlives its client by more than 90 s. One that was closed while we do not read
/// it answers the first question; by the second its kernel has forgotten the socket, and resets it.
///
/// That is so while nothing is on its way to it. Bytes that it has not acknowledged are sent again instead,
/// `net.ipv4.tcp_retries2` times, which takes a quarter of an hour by default: such peers are looked for in
/// [`crate::socket::silence`].
///
/// `TCP_USER_TIMEOUT` would bound that without a look, but since Linux 5.11 it also ends a connection whose
/// peer lives, acknowledges every question, and only does not read for that long (measured on 6.18: 5 s were
/// ended after 5.6 s, while without it such a peer is waited for). A paused download is no dead peer.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(40);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_QUESTIONS: u32 = 3;

/// Lets the kernel ask a silent peer now and then whether it is there. What a listening socket is told holds
/// for its connections as well, for which it costs nothing then.
pub(crate) fn keep_alive(socket: &impl AsFd) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(socket).set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_QUESTIONS))
}

/// How many questions a client that has ended its sending side may leave unanswered.
const HALF_CLOSED_QUESTIONS: u32 = 3;

/// Lets the kernel ask a client that has ended its sending side whether it is there, sooner and more often
/// than others: nothing that it does will tell.
pub(crate) fn probe_half_closed(socket: &impl AsFd, interval: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(interval).with_interval(interval);
    SockRef::from(socket).set_tcp_keepalive(&keepalive.with_retries(HALF_CLOSED_QUESTIONS))
}

/// Sets the options of a new connection: no delay of small writes, and little that is written and unsent.
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
    async fn connections_are_asked_whether_they_live_as_their_listener_was_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        keep_alive(&listener).expect("the kernel knows it");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("open");
        let (accepted, _) = listener.accept().await.expect("open");
        let (told, untold) = (SockRef::from(&accepted), SockRef::from(&client));
        assert!(told.keepalive().expect("known") && !untold.keepalive().expect("known"));
        let times =
            [told.tcp_keepalive_time(), told.tcp_keepalive_interval()].map(|time| time.expect("known"));
        let questions = told.tcp_keepalive_retries().expect("known");
        assert!(times[0] + times[1] * questions <= Duration::from_secs(90));
    }

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
