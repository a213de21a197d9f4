//! As which user does the process run that has accepted a connection? The kernel's tables of sockets say so
//! of processes of this machine (`proc_pid_net(5)`).

use std::net::SocketAddr;

use runtime::TcpTableRow;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApiConnectionEnds {
    pub(super) ours: SocketAddr,
    pub(super) theirs: SocketAddr,
}

/// The number of the user whose process has accepted it; `None` if that is not on this machine, or has not
/// accepted it yet. The user who listens may be another: a service manager listens as root for each service.
pub(super) fn user_of_peer(ends: ApiConnectionEnds) -> Option<u32> {
    user_in(runtime::tcp_table().ok()?, ends)
}

fn user_in(table: impl IntoIterator<Item = TcpTableRow>, ends: ApiConnectionEnds) -> Option<u32> {
    let (ours, theirs) = (canonical(ends.ours), canonical(ends.theirs));
    // A connection that waits to be accepted has no inode, and seems to be root's.
    let is_it = |row: &TcpTableRow| row.own == theirs && row.peer == ours && row.inode != 0;
    table.into_iter().find(is_it).map(|row| row.user)
}

/// A socket that takes both families has an address of version 4 within one of version 6.
fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_known_once_it_is_accepted() {
        for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(listen).expect("a free port");
            let port = listener.local_addr().expect("it is bound").port();
            let to = if listen.starts_with("[::1") { "::1" } else { "127.0.0.1" };
            let stream = TcpStream::connect((to, port)).expect("it listens");
            let ends = ApiConnectionEnds {
                ours: stream.local_addr().expect("it is bound"),
                theirs: stream.peer_addr().expect("it is connected"),
            };
            assert_eq!(user_of_peer(ends), None, "{listen}: it is not accepted yet");
            let accepted = listener.accept().expect("one waits");
            assert_eq!(user_of_peer(ends), Some(geteuid().as_raw()), "{listen}");
            drop(accepted);
        }
    }

    #[test]
    fn of_many_connections_the_right_end_of_the_right_one_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:2328 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 12 2 0 20 4 31 11 -1
   2: 0100007F:9C40 0100007F:2328 01 00000000:00000000 00:00000000 00000000  1001        0 13 2 0 20 4 30 11 -1
   3: 0100007F:2328 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 2 0 20 4 30 11 -1
";
        // The table is written as a machine with the least byte first writes it.
        if cfg!(target_endian = "big") {
            return;
        }
        let rows = table.lines().filter_map(TcpTableRow::read);
        let theirs = ([127, 0, 0, 1], 9000).into();
        let of =
            |port| user_in(rows.clone(), ApiConnectionEnds { ours: ([127, 0, 0, 1], port).into(), theirs });
        assert_eq!((of(40_000), of(40_001), of(40_002)), (Some(1000), None, None));
    }
}
