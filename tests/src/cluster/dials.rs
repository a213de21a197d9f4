//! Connections that are asked for one after another, and how each of them went.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

use crate::bench::clock;

/// A client that waits no longer, so that the connections of a moment say how it is in that moment.
const CLIENT_WAITS: Duration = Duration::from_secs(1);

/// How connections to one address went.
#[derive(Debug)]
pub struct Dials {
    /// When each was asked for, as [`clock::now`] counts, and what was wrong with it.
    dials: Vec<(Duration, Result<(), String>)>,
}

impl Dials {
    /// Asks for a connection once in `each`, however long those before it take, until the clock says `until`.
    /// `address` is one of IPv4.
    ///
    /// Each connection has a port of its own. A node remembers for two minutes to which endpoint it sent the
    /// unanswered SYN of a port (`nf_conntrack_tcp_timeout_syn_sent`), and sends the next one of that port
    /// there too, whatever the slices say meanwhile.
    pub async fn made(address: SocketAddr, each: Duration, until: Duration) -> Self {
        let mut under_way = Vec::<JoinHandle<(Duration, Result<(), String>)>>::new();
        let mut used = HashSet::new();
        while clock::now() < until {
            let socket = socket_of_unused_port(&mut used).expect("this machine has ports");
            under_way.push(tokio::spawn(async move {
                let asked = clock::now();
                let how = match tokio::time::timeout(CLIENT_WAITS, socket.connect(address)).await {
                    Ok(Ok(_)) => Ok(()),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("no answer".to_owned()),
                };
                (asked, how)
            }));
            tokio::time::sleep(each).await;
        }
        let mut dials = Vec::new();
        for dial in under_way {
            dials.push(dial.await.expect("it does not panic"));
        }
        Self { dials }
    }

    /// How many failed in each second after `began`, and why, for the output of a test.
    pub fn failures(&self, began: Duration) -> String {
        let mut counts = BTreeMap::<(u64, &str), u32>::new();
        for (asked, how) in &self.dials {
            if let Err(why) = how {
                *counts.entry((asked.saturating_sub(began).as_secs(), why)).or_default() += 1;
            }
        }
        let counts = counts.iter().map(|((second, why), count)| format!("{second}s: {count} {why}"));
        counts.collect::<Vec<_>>().join("; ")
    }

    /// When the last one was asked for that failed; `None` if none did.
    pub fn last_failure(&self) -> Option<Duration> {
        self.dials.iter().filter(|(_, how)| how.is_err()).map(|(asked, _)| *asked).max()
    }
}

/// A socket whose port is none of the `used` ones, among which it is from then on.
fn socket_of_unused_port(used: &mut HashSet<u16>) -> io::Result<TcpSocket> {
    loop {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        if used.insert(socket.local_addr()?.port()) {
            return Ok(socket);
        }
    }
}
