//! Sockets that listen, with a backlog for bursts.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections may wait to be accepted. The kernel takes `net.core.somaxconn` if that is less (4,096
/// unless the machine says otherwise). What does not fit is not refused but forgotten, and its client tries
/// again after one second, then three, then seven; the standard library's 128 is less than one burst.
const BACKLOG: i32 = 4096;

/// Listens on `address`, without blocking the thread that accepts, and also where connections of an earlier
/// process have not quite ended. `[::]` is every address of this machine, those of IPv4 too; where there is
/// no IPv6, it is those of IPv4.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let is_everywhere = address.is_ipv6() && address.ip().is_unspecified();
    match listen_at(address, is_everywhere) {
        Err(error) if is_everywhere && error.kind() != io::ErrorKind::AddrInUse => {
            listen_at((Ipv4Addr::UNSPECIFIED, address.port()).into(), false)
        }
        listening => listening,
    }
}

/// Whether a connection could not be accepted because its own peer has gone. Other errors say that none can
/// be accepted now, most likely for want of file descriptors.
pub fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

fn listen_at(address: SocketAddr, is_everywhere: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if is_everywhere {
        // Not every machine's default (`net.ipv6.bindv6only`).
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpStream};
    use std::time::Duration;

    use super::*;

    /// Less than a client waits before it tries again for the third time.
    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn a_burst_of_connections_waits_to_be_accepted() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("bound");
        let connections: Vec<_> = (0..300)
            .map(|_| TcpStream::connect_timeout(&address, PATIENCE).expect("there is room"))
            .collect();
        let mut accepted = 0;
        while listener.accept().is_ok() {
            accepted += 1;
        }
        assert_eq!(accepted, connections.len());
    }

    /// Also on a machine without IPv6.
    #[test]
    fn every_address_includes_those_of_ipv4() {
        let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).expect("a port is free");
        let port = listener.local_addr().expect("bound").port();
        TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), PATIENCE).expect("it listens there");
        let again = listen((Ipv6Addr::UNSPECIFIED, port).into()).expect_err("it is taken");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_in_use_is_said_to_be() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("bound");
        let again = listen(address).expect_err("it is taken");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }
}
