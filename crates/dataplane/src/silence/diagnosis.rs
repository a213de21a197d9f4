//! Asks the kernel about one connection at a time, as `ss` does: `sock_diag(7)`. To read its table of all
//! sockets (`/proc/net/tcp`) takes 12 ms where there are five of them, because the table is that long.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::ConnectionEnds;

/// `SOCK_DIAG_BY_FAMILY` and `NLM_F_REQUEST`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// `struct nlmsghdr` before `struct inet_diag_req_v2`, or before `struct inet_diag_msg`.
const HEADER: usize = 16;
const QUESTION: usize = HEADER + 56;
/// In which state it is. Where there is no connection, the kernel tells of who listens there.
const STATE: usize = HEADER + 1;
const LISTENS: u8 = 10;
/// Which timer of a connection runs, and how often it has in vain.
const TIMER: usize = HEADER + 2;
const RETRIES: usize = HEADER + 3;
/// The timer that sends again what was not acknowledged, and the one that asks whether there is room.
const RETRANSMITS: u8 = 1;
const PROBES: u8 = 4;

/// A way to ask.
#[derive(Debug)]
pub(crate) struct SocketDiagnosis(OwnedFd);

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
        send(self.0.as_raw_fd(), &question(ends), MsgFlags::empty())?;
        let mut answer = [0; 512];
        // The kernel has answered by the time it has taken the question.
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
        said(&answer[..length]).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn question(ends: &ConnectionEnds) -> [u8; QUESTION] {
    // An address of IPv4 is the same connection whether its socket knows both families or not.
    let [own, peer] = [ends.own, ends.peer].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
    let family = if own.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let mut question = [0; QUESTION];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        question[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&u32::try_from(QUESTION).unwrap_or_default().to_ne_bytes());
    put(&BY_FAMILY.to_ne_bytes());
    put(&REQUEST.to_ne_bytes());
    // The question's number and who asks: one is asked at a time.
    put(&[0; 8]);
    // TCP, nothing beyond the plain answer, whatever state it is in.
    put(&[family as u8, SockProtocol::Tcp as u8, 0, 0]);
    put(&u32::MAX.to_ne_bytes());
    put(&own.port().to_be_bytes());
    put(&peer.port().to_be_bytes());
    for end in [own, peer] {
        match end.ip() {
            IpAddr::V4(address) => {
                put(&address.octets());
                put(&[0; 12]);
            }
            IpAddr::V6(address) => put(&address.octets()),
        }
    }
    // By whichever interface; and no cookie, by which the kernel would know it again.
    put(&[0; 4]);
    put(&[0xff; 8]);
    question
}

/// What an answer says of a connection; `None` if there is none.
fn said(answer: &[u8]) -> Option<u32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let (state, timer, retries) = (*answer.get(STATE)?, *answer.get(TIMER)?, *answer.get(RETRIES)?);
    let is_connection = kind == BY_FAMILY && state != LISTENS;
    is_connection.then(|| if matches!(timer, RETRANSMITS | PROBES) { retries.into() } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

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
            let nobody = ConnectionEnds { peer: SocketAddr::new(to, 1), ..ends };
            diagnosis.attempts(&nobody).expect_err("nobody is connected from there");
        }
    }
}
