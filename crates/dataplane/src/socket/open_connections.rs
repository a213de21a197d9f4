//! Which connections does an app have, as the kernel of its pod knows them?
//!
//! A queue-proxy shares its pod's network with the app, so the kernel shows it connections that it does not
//! carry. Two ways lead to them: questions by `sock_diag(7)`, which also say how many bytes have moved, and,
//! where a kernel or a sandbox refuses those, the table in `/proc/self/net/tcp` and `tcp6`, which does not.
//! Either way a connection has an identity beyond its two ends, so that a later one between the same ends is
//! another.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use runtime::TcpTableRow;

use crate::socket::diagnosis::{DiagnosedConnection, SocketDiagnosis};
use crate::socket::silence::ConnectionEnds;

/// States in the table: both sides are open, or the peer has ended its sending side.
const OPEN_STATES: [u8; 2] = [1, 8];

/// Identifies one connection of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    ends: ConnectionEnds,
    /// The kernel's number of the socket.
    socket: u64,
}

impl ConnectionId {
    /// A connection between these ends, on the socket that the kernel knows by this number.
    pub fn new(own: SocketAddr, peer: SocketAddr, socket: u64) -> Self {
        Self { ends: ConnectionEnds { own, peer }, socket }
    }

    /// The address and port of this machine, or this pod.
    pub fn own(&self) -> SocketAddr {
        self.ends.own
    }

    /// The address and port of the other end.
    pub fn peer(&self) -> SocketAddr {
        self.ends.peer
    }
}

/// A connection that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConnection {
    /// By which it is known again.
    pub id: ConnectionId,
    /// Bytes that have arrived, in both directions together; `None` where the kernel does not say.
    pub bytes: Option<u64>,
}

impl From<DiagnosedConnection> for KernelConnection {
    fn from(DiagnosedConnection { ends, cookie, bytes }: DiagnosedConnection) -> Self {
        Self { id: ConnectionId { ends, socket: cookie }, bytes: Some(bytes) }
    }
}

/// A way to read connections that this kernel allows.
#[derive(Debug)]
pub struct ConnectionReader(Source);

#[derive(Debug)]
enum Source {
    Diagnosis(SocketDiagnosis),
    Table,
}

impl ConnectionReader {
    /// Finds a way, and returns with it the open connections whose own port is one of these. Fails where
    /// there is no way.
    pub fn open(ports: &[u16]) -> io::Result<(Self, Vec<KernelConnection>)> {
        let by_diagnosis = SocketDiagnosis::open().map(|diagnosis| Self(Source::Diagnosis(diagnosis)));
        // A kernel may refuse the socket, and may refuse the question.
        if let Ok(reader) = by_diagnosis
            && let Ok(found) = reader.all(ports)
        {
            return Ok((reader, found));
        }
        let reader = Self(Source::Table);
        let found = reader.all(ports)?;
        Ok((reader, found))
    }

    /// The open connections whose own port is one of these. Takes as long as the kernel's table of sockets
    /// is, which is some milliseconds.
    pub fn all(&self, ports: &[u16]) -> io::Result<Vec<KernelConnection>> {
        match &self.0 {
            Source::Diagnosis(_) => {
                let mut found = Vec::new();
                for any in [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
                    for port in ports {
                        let answered = SocketDiagnosis::open()?.all_at(any, *port)?;
                        found.extend(answered.into_iter().map(KernelConnection::from));
                    }
                }
                Ok(found)
            }
            Source::Table => {
                let all = read_tables()?;
                Ok(all.into_iter().filter(|found| ports.contains(&found.id.own().port())).collect())
            }
        }
    }

    /// Those of these connections that are still open.
    pub fn still_open(&self, ids: &[ConnectionId]) -> io::Result<Vec<KernelConnection>> {
        match &self.0 {
            Source::Diagnosis(diagnosis) => {
                let looks = ids.iter().map(|id| diagnosis.if_still_open(&id.ends, id.socket));
                let found = looks.collect::<io::Result<Vec<_>>>()?;
                Ok(found.into_iter().flatten().map(KernelConnection::from).collect())
            }
            Source::Table => {
                let all = read_tables()?;
                Ok(all.into_iter().filter(|found| ids.contains(&found.id)).collect())
            }
        }
    }
}

fn read_tables() -> io::Result<Vec<KernelConnection>> {
    Ok(runtime::tcp_table()?.into_iter().filter_map(open_connection).collect())
}

/// The connection of a socket, if it is open.
fn open_connection(row: TcpTableRow) -> Option<KernelConnection> {
    let id = ConnectionId::new(row.own, row.peer, row.inode);
    OPEN_STATES.contains(&row.state).then_some(KernelConnection { id, bytes: None })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Both ways, on real sockets.
    fn readers() -> [ConnectionReader; 2] {
        let (first, _) = ConnectionReader::open(&[1]).expect("this kernel shows its sockets");
        assert!(matches!(first.0, Source::Diagnosis(_)), "this kernel answers questions");
        [first, ConnectionReader(Source::Table)]
    }

    async fn connected(listener: &TcpListener, to: IpAddr) -> (TcpStream, TcpStream) {
        let port = listener.local_addr().expect("bound").port();
        let client = TcpStream::connect((to, port)).await.expect("it listens");
        (client, listener.accept().await.expect("open").0)
    }

    async fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        (listener, port)
    }

    #[tokio::test]
    async fn open_connections_of_both_families_are_found_and_closed_ones_are_not() {
        let (listener, port) = listen().await;
        let four = connected(&listener, Ipv4Addr::LOCALHOST.into()).await;
        let six = connected(&listener, Ipv6Addr::LOCALHOST.into()).await;
        let mut expected = [&four, &six].map(|(client, _)| client.local_addr().expect("open"));
        expected.sort();
        for reader in readers() {
            let found = reader.all(&[port]).expect("it answers");
            let mut peers: Vec<SocketAddr> = found.iter().map(|found| found.id.peer()).collect();
            peers.sort();
            assert_eq!(peers, expected, "{reader:?}");
            assert!(found.iter().all(|found| found.id.own().port() == port), "{found:?}");
            assert_eq!(reader.all(&[port ^ 1]).expect("it answers"), [], "no connection has the other port");
        }
        let ids = readers().map(|reader| {
            let found = reader.all(&[port]).expect("it answers");
            found.into_iter().map(|found| found.id).collect::<Vec<_>>()
        });
        let gone = four.0.local_addr().expect("open");
        four.0.set_zero_linger().expect("open");
        drop(four);
        for (reader, ids) in readers().into_iter().zip(ids) {
            let left = reader.still_open(&ids).expect("it answers");
            let peers: Vec<SocketAddr> = left.iter().map(|found| found.id.peer()).collect();
            assert_eq!(peers, [six.0.local_addr().expect("open")], "{reader:?}: {gone} is gone");
        }
    }

    /// An address that no other socket has: the kernel gives out no port below 32768 by itself, and the
    /// loopback address is this process's own. A port of the kernel's choice could belong to another socket
    /// as soon as its connection has ended.
    fn address_of_this_test() -> SocketAddr {
        let [.., high, low] = std::process::id().to_be_bytes();
        (Ipv4Addr::new(127, 83, high, low), 11_999).into()
    }

    async fn connect_from(from: SocketAddr, port: u16) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("a new socket");
        socket.bind(from).expect("no other socket has the address");
        socket.connect((Ipv4Addr::LOCALHOST, port).into()).await.expect("it listens")
    }

    #[tokio::test]
    async fn a_later_connection_between_the_same_ends_is_another() {
        let (listener, port) = listen().await;
        let from = address_of_this_test();
        let client = connect_from(from, port).await;
        let (server, _) = listener.accept().await.expect("open");
        let ids = readers().map(|reader| reader.all(&[port]).expect("it answers")[0].id);
        client.set_zero_linger().expect("open");
        drop((client, server));
        let again = connect_from(from, port).await;
        let _server = listener.accept().await.expect("open");
        assert_eq!(again.local_addr().expect("open"), from);
        for (reader, id) in readers().into_iter().zip(ids) {
            assert_eq!(reader.still_open(&[id]).expect("it answers"), [], "{reader:?}");
            assert_eq!(reader.all(&[port]).expect("it answers").len(), 1, "{reader:?}");
        }
    }

    #[tokio::test]
    async fn bytes_in_either_direction_are_counted_and_a_half_closed_connection_is_open() {
        let (listener, port) = listen().await;
        let (mut client, mut server) = connected(&listener, Ipv4Addr::LOCALHOST.into()).await;
        let [reader, table] = readers();
        let bytes = |reader: &ConnectionReader| reader.all(&[port]).expect("it answers")[0].bytes;
        let idle = bytes(&reader).expect("questions are answered with bytes");
        assert_eq!((bytes(&reader), bytes(&table)), (Some(idle), None));
        client.write_all(b"ask").await.expect("open");
        server.read_exact(&mut [0; 3]).await.expect("open");
        let asked = bytes(&reader).expect("as before");
        assert_eq!(asked, idle + 3);
        client.shutdown().await.expect("open");
        assert_eq!(server.read(&mut [0; 1]).await.expect("open"), 0);
        server.write_all(b"answer").await.expect("open");
        client.read_exact(&mut [0; 6]).await.expect("open");
        assert!(bytes(&reader) >= Some(asked + 6), "{:?}", bytes(&reader));
        assert_eq!(bytes(&table), None);
    }

    #[test]
    fn a_line_of_the_table_is_read_as_the_kernel_writes_it() {
        let rest =
            "00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 20 4 30 10 -1";
        let line = |ends: &str, state: &str| format!("   0: {ends} {state} {rest}");
        let connection_of = |line: &str| TcpTableRow::read(line).and_then(open_connection);
        let read = |line: &str| {
            connection_of(line)
                .map(|found| (found.id.own().to_string(), found.id.peer().to_string(), found.id.socket))
        };
        let four = "0100000A:1F90 0200000A:9C40";
        let expected = ("10.0.0.1:8080".to_owned(), "10.0.0.2:40000".to_owned(), 4711);
        if cfg!(target_endian = "little") {
            assert_eq!(read(&line(four, "01")), Some(expected.clone()));
            let mapped = "0000000000000000FFFF00000100000A:1F90 0000000000000000FFFF00000200000A:9C40";
            assert_eq!(read(&line(mapped, "08")), Some(expected));
        }
        for state in ["0A", "06", "02"] {
            assert_eq!(read(&line(four, state)), None, "{state}");
        }
        for bad in
            ["", "  sl  local_address rem_address   st", "   0: 0100:1F90 02:9C40 01", &line("x:1 y:2", "01")]
        {
            assert_eq!(connection_of(bad), None, "{bad}");
        }
    }
}
