//! Asks the kernel about connections, as `ss` does: `sock_diag(7)`, which needs no capability. To read its
//! table of all sockets (`/proc/net/tcp`) takes 12 ms where there are five of them, because the table is that
//! long; a question about one connection takes a few microseconds.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::socket::silence::ConnectionEnds;

/// Kinds of messages: `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR` and `NLMSG_DONE`.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST`, alone and with `NLM_F_DUMP`.
const REQUEST: u16 = 1;
const DUMP: u16 = REQUEST | 0x300;
/// `struct nlmsghdr` before `struct inet_diag_req_v2`, or before `struct inet_diag_msg`.
const HEADER: usize = 16;
const QUESTION: usize = HEADER + 56;
/// `struct inet_diag_msg`, behind which attributes follow.
const MESSAGE: usize = HEADER + 72;
/// Of which family the socket is, and in which state. Where there is no connection, the kernel tells of the
/// process that listens there.
const FAMILY: usize = HEADER;
const STATE: usize = HEADER + 1;
const LISTENS: u8 = 10;
/// Which timer of a connection runs, and how often it has in vain.
const TIMER: usize = HEADER + 2;
const RETRIES: usize = HEADER + 3;
/// `struct inet_diag_sockid`: ports, addresses and the number by which the kernel knows the socket again.
const OWN_PORT: usize = HEADER + 4;
const PEER_PORT: usize = HEADER + 6;
const OWN_ADDRESS: usize = HEADER + 8;
const PEER_ADDRESS: usize = HEADER + 24;
const COOKIE: usize = HEADER + 44;
/// The timer that sends again what was not acknowledged, and the one that asks whether there is room.
const RETRANSMITS: u8 = 1;
const PROBES: u8 = 4;
/// `INET_DIAG_INFO` as an attribute, and as a wish for it.
const INFO: u16 = 2;
const WANTS_INFO: u8 = 1 << (INFO - 1);
/// In `struct tcp_info`: bytes that the peer has acknowledged, and bytes received, since Linux 4.1.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
/// A connection whose two sides are open, and one whose peer has ended its sending side.
const ESTABLISHED: u8 = 1;
const CLOSE_WAIT: u8 = 8;
/// The largest size of one answer of the kernel, in bytes.
const ANSWER_MAX: usize = 32 << 10;
const NO_COOKIE: [u8; 8] = [0xff; 8];
/// Numbers of errors that Linux gives to a question about a connection that is gone.
const ENOENT: i32 = 2;
const ESTALE: i32 = 116;

/// A netlink socket to `sock_diag` of the kernel.
#[derive(Debug)]
pub(crate) struct SocketDiagnosis(OwnedFd);

/// An open connection, as the kernel tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiagnosedConnection {
    pub(crate) ends: ConnectionEnds,
    /// No other socket of this kernel has it, nor will one.
    pub(crate) cookie: u64,
    /// Bytes that have arrived, in both directions together.
    pub(crate) bytes: u64,
}

impl SocketDiagnosis {
    /// Fails where the kernel, or a sandbox, does not know of it.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkSockDiag;
        Ok(Self(socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?))
    }

    /// How often the kernel has tried in vain since it last heard of the peer: to send it what it has not
    /// acknowledged, or to learn whether it has room. Fails where there is no such connection.
    pub(crate) fn attempts(&self, ends: &ConnectionEnds) -> io::Result<u32> {
        let answer = self.ask_once(&Question::about(ends))?;
        attempts_of_connection(&answer).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Looks at a known connection once more; `None` if it is not open any more.
    pub(crate) fn if_still_open(
        &self,
        ends: &ConnectionEnds,
        cookie: u64,
    ) -> io::Result<Option<DiagnosedConnection>> {
        let question =
            Question { extensions: WANTS_INFO, cookie: cookie.to_ne_bytes(), ..Question::about(ends) };
        let answer = self.ask_once(&question)?;
        if kind(&answer) == Some(ERROR) {
            let error = error_of(&answer);
            // None is there, or one that came later.
            let is_gone = matches!(error.raw_os_error(), Some(ENOENT | ESTALE));
            return if is_gone { Ok(None) } else { Err(error) };
        }
        Ok(open_connection(&answer).filter(|found| found.cookie == cookie))
    }

    /// Every open connection whose own port is this one, of the family of `any`, the address that stands for
    /// all. IPv4 over a socket of both families is included in IPv6. Of a failed one, parts of the answer may
    /// still be to come, so nothing else may be asked on it afterwards.
    pub(crate) fn all_at(self, any: IpAddr, port: u16) -> io::Result<Vec<DiagnosedConnection>> {
        let question = Question {
            flags: DUMP,
            extensions: WANTS_INFO,
            states: (1 << ESTABLISHED) | (1 << CLOSE_WAIT),
            own: SocketAddr::new(any, port),
            peer: SocketAddr::new(any, 0),
            cookie: NO_COOKIE,
        };
        send(self.0.as_raw_fd(), &question.bytes(), MsgFlags::empty())?;
        let mut found = Vec::new();
        let mut answer = vec![0; ANSWER_MAX];
        loop {
            // The kernel goes on with the next part as this one is taken, so something is always there.
            let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
            for message in messages(&answer[..length]) {
                match kind(message) {
                    Some(BY_FAMILY) => found.extend(open_connection(message)),
                    Some(DONE) => return Ok(found),
                    Some(ERROR) => return Err(error_of(message)),
                    Some(_) | None => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
        }
    }

    fn ask_once(&self, question: &Question) -> io::Result<Vec<u8>> {
        send(self.0.as_raw_fd(), &question.bytes(), MsgFlags::empty())?;
        let mut answer = vec![0; 1024];
        // The kernel has answered by the time it has taken the question.
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
        answer.truncate(length);
        Ok(answer)
    }
}

/// What the kernel is asked: `struct inet_diag_req_v2`.
struct Question {
    flags: u16,
    extensions: u8,
    /// A bit for each state that is of interest.
    states: u32,
    own: SocketAddr,
    peer: SocketAddr,
    cookie: [u8; 8],
}

impl Question {
    /// About one connection, whatever state it is in.
    fn about(ends: &ConnectionEnds) -> Self {
        // An address of IPv4 is the same connection whether its socket knows both families or not.
        let [own, peer] = [ends.own, ends.peer].map(canonical);
        Self { flags: REQUEST, extensions: 0, states: u32::MAX, own, peer, cookie: NO_COOKIE }
    }

    fn bytes(&self) -> [u8; QUESTION] {
        let family = if self.own.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let mut question = [0; QUESTION];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            question[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&u32::try_from(QUESTION).unwrap_or_default().to_ne_bytes());
        put(&BY_FAMILY.to_ne_bytes());
        put(&self.flags.to_ne_bytes());
        // The numbers of the question and of the socket that asks: one is asked at a time.
        put(&[0; 8]);
        put(&[family as u8, SockProtocol::Tcp as u8, self.extensions, 0]);
        put(&self.states.to_ne_bytes());
        put(&self.own.port().to_be_bytes());
        put(&self.peer.port().to_be_bytes());
        for end in [self.own, self.peer] {
            match end.ip() {
                IpAddr::V4(address) => {
                    put(&address.octets());
                    put(&[0; 12]);
                }
                IpAddr::V6(address) => put(&address.octets()),
            }
        }
        // By whichever interface.
        put(&[0; 4]);
        put(&self.cookie);
        question
    }
}

fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

/// How many times in a row the kernel has repeated bytes or probes on the connection without an answer of the
/// peer; `None` without a connection.
fn attempts_of_connection(answer: &[u8]) -> Option<u32> {
    let (state, timer, retries) = (*answer.get(STATE)?, *answer.get(TIMER)?, *answer.get(RETRIES)?);
    let is_connection = kind(answer)? == BY_FAMILY && state != LISTENS;
    is_connection.then(|| if matches!(timer, RETRANSMITS | PROBES) { retries.into() } else { 0 })
}

/// The connection that an answer tells of, if it is open.
fn open_connection(answer: &[u8]) -> Option<DiagnosedConnection> {
    if kind(answer)? != BY_FAMILY || !matches!(*answer.get(STATE)?, ESTABLISHED | CLOSE_WAIT) {
        return None;
    }
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes(array(answer, port)?);
        let address: IpAddr = if i32::from(*answer.get(FAMILY)?) == AddressFamily::Inet6 as i32 {
            Ipv6Addr::from(array::<16>(answer, address)?).into()
        } else {
            Ipv4Addr::from(array::<4>(answer, address)?).into()
        };
        Some(canonical(SocketAddr::new(address, port)))
    };
    let ends = ConnectionEnds { own: end(OWN_PORT, OWN_ADDRESS)?, peer: end(PEER_PORT, PEER_ADDRESS)? };
    let cookie = u64::from_ne_bytes(array(answer, COOKIE)?);
    Some(DiagnosedConnection { ends, cookie, bytes: bytes_moved(answer.get(MESSAGE..)?) })
}

/// By the `struct tcp_info` among attributes; zero where the kernel sends none.
fn bytes_moved(mut attributes: &[u8]) -> u64 {
    while let (Some(length), Some(kind)) = (array(attributes, 0), array(attributes, 2)) {
        let length = usize::from(u16::from_ne_bytes(length));
        let Some(value) = attributes.get(4..length) else { return 0 };
        if u16::from_ne_bytes(kind) == INFO {
            let count = |at| array(value, at).map_or(0, u64::from_ne_bytes);
            return count(BYTES_ACKED).wrapping_add(count(BYTES_RECEIVED));
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    0
}

fn kind(message: &[u8]) -> Option<u16> {
    array(message, 4).map(u16::from_ne_bytes)
}

/// The number of an error stands behind the header, negative.
fn error_of(message: &[u8]) -> io::Error {
    let number = array(message, HEADER).map_or(0, i32::from_ne_bytes);
    io::Error::from_raw_os_error(number.wrapping_neg())
}

/// The messages of one answer.
fn messages(mut answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(array(answer, 0)?)).ok()?;
        let message = answer.get(..length).filter(|message| message.len() >= HEADER)?;
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn array<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn the_kernel_knows_connections_of_every_family_and_says_so_of_others() {
        let diagnosis = SocketDiagnosis::open().expect("this kernel knows of it");
        // Of both families, as those of servers are.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        for to in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let client = TcpStream::connect((to, port)).await.expect("it listens");
            let (accepted, _) = listener.accept().await.expect("open");
            for end in [&client, &accepted] {
                let ends = ConnectionEnds::of(end).expect("open");
                assert_eq!(diagnosis.attempts(&ends).expect("it is there"), 0, "{ends:?}");
            }
            let ends = ConnectionEnds::of(&accepted).expect("open");
            let unconnected = ConnectionEnds { peer: SocketAddr::new(to, 1), ..ends };
            diagnosis.attempts(&unconnected).expect_err("no client is connected from there");
        }
    }
}
