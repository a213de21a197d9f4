//! Connections that were established before their Service was adopted.
//!
//! A node leads an established connection to the port at which it began for as long as it lives. A client
//! that connected before the adoption is served on the app's own port from then on, past the queue-proxy:
//! its requests are no load, and only the kernel's table of sockets shows that it is there.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One adoption of a workload's Service; a later one has a greater number, whichever autoscaler says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AdoptionId(pub u64);

/// What a queue-proxy knows of connections to its app's ports from before an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdoptedConnections {
    /// Those that are still open.
    Open(ConnectionTally),
    /// The kernel shows its sockets in no way that was tried, for so long.
    Unreadable {
        /// The time since the first try.
        age: Duration,
    },
}

/// How many connections are open, and from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTally {
    /// The number of open connections; zero for none.
    pub count: u32,
    /// The time since the oldest of them was first seen.
    pub age: Duration,
    /// Addresses of some of the clients.
    pub peers: PeerList,
}

/// At most three addresses of clients, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerList([Option<IpAddr>; Self::MAX]);

impl PeerList {
    /// The list that holds no address.
    pub const NONE: Self = Self([None; Self::MAX]);
    /// The most addresses that one list has.
    pub const MAX: usize = 3;

    /// Takes the first addresses, each once.
    pub fn of(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut list = Self::default();
        for address in addresses {
            if list.iter().any(|known| known == address) {
                continue;
            }
            let Some(free) = list.0.iter_mut().find(|place| place.is_none()) else { break };
            *free = Some(address);
        }
        list
    }

    /// The addresses, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        self.0.into_iter().flatten()
    }

    /// Whether the list has no address.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}

impl fmt::Display for PeerList {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.iter().enumerate() {
            let before = if index == 0 { "" } else { ", " };
            write!(to, "{before}{address}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_peers_names_three_different_addresses_at_most() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let list = PeerList::of([7, 7, 8, 7, 9, 10].map(address));
        assert_eq!(list.to_string(), "10.0.0.7, 10.0.0.8, 10.0.0.9");
        assert_eq!(list.iter().count(), PeerList::MAX);
        assert!(PeerList::default().is_empty() && !list.is_empty());
        assert_eq!(PeerList::of([]).to_string(), "");
    }
}
