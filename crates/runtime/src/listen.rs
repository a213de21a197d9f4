//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections may wait to be accepted. The kernel takes `net.core.somaxconn` if that is less (4,096 unless somebody changed it). What does not
/// fit is not refused but forgotten, and its client tries again after one second, then three, then seven; the standard library's 128 is less than one burst.
const BACKLOG: i32 = 4096;

/// Listens on `address`, without blocking whoever accepts, and also where connections of an earlier process have not quite ended.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};
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

    #[test]
    fn a_port_in_use_is_said_to_be() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("bound");
        let again = listen(address).expect_err("it is taken");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }
}
