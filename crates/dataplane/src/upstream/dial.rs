//! Establishes a TCP connection, within a limit.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

use super::SendErrorKind;
use crate::socket::options::{keep_alive, set_options};

pub(crate) async fn dial(to: SocketAddr, limit: Duration) -> Result<TcpStream, SendErrorKind> {
    let connected = connect(to, limit).await.and_then(|stream| {
        if is_own(&stream, to) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        set_options(&stream)?;
        // A peer on this machine is never gone without a word: the kernel closes its connections.
        if !to.ip().is_loopback() {
            keep_alive(&stream)?;
        }
        Ok(stream)
    });
    connected.map_err(|error| {
        let kind = error.kind();
        if kind == io::ErrorKind::ConnectionRefused {
            SendErrorKind::ConnectRefused
        } else if kind == io::ErrorKind::TimedOut {
            SendErrorKind::ConnectTimedOut
        } else {
            SendErrorKind::ConnectFailed(kind.to_string())
        }
    })
}

async fn connect(to: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // On one machine a connection is established before the kernel returns, which says that it is under way
    // nevertheless: so it is asked, because the runtime would not hear of it before the next news from the
    // kernel.
    let is_established = match socket.connect(&to.into()) {
        Ok(()) => true,
        Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => is_established(&socket)?,
        Err(error) => return Err(error),
    };
    let stream = TcpStream::from_std(socket.into())?;
    if !is_established {
        tokio::time::timeout(limit, stream.writable()).await??;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
    Ok(stream)
}

/// Whether a connection within this machine leads to itself: the kernel may choose, as our end of it, the
/// very port on which no app listens yet. Holding the connection would keep the app from listening there.
fn is_own(stream: &TcpStream, to: SocketAddr) -> bool {
    to.ip().is_loopback() && stream.local_addr().is_ok_and(|own| own == to)
}

fn is_established(socket: &Socket) -> io::Result<bool> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(socket.peer_addr().is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use socket2::SockRef;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn a_connection_to_itself_is_known() {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let itself = socket.local_addr().expect("bound");
        let stream = socket.connect(itself).await.expect("the kernel connects a socket with itself");
        assert!(is_own(&stream, itself));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let other = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(other).await.expect("a connection");
        assert!(!is_own(&stream, other));
    }

    #[tokio::test]
    async fn an_app_elsewhere_is_asked_whether_it_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        // Written so, the way to this machine looks like one to another.
        let mapped: Ipv6Addr = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        for (to, is_asked) in
            [(SocketAddr::from((mapped, port)), true), (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), false)]
        {
            let stream = dial(to, Duration::from_secs(10)).await.expect("it listens");
            assert_eq!(SockRef::from(&stream).keepalive().expect("known"), is_asked, "{to}");
        }
    }
}
