//! Who sends the requests of a revision.

use std::net::IpAddr;

/// A client, as its requests tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The beginning of its `User-Agent`; empty if it sends none.
    pub user_agent: Box<str>,
    /// Its IP address: as trusted proxies say it, or else that of its connection.
    pub address: IpAddr,
}

impl Caller {
    /// How much of a `User-Agent` is kept.
    pub const AGENT_BYTES_MAX: usize = 96;
    /// How many callers of a revision are named.
    pub const NAMED_MAX: usize = 5;
}
