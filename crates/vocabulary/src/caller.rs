//! Who sends the requests of a revision.

use std::net::IpAddr;

/// A client, as its requests tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The beginning of its `User-Agent`; empty if it sends none.
    pub user_agent: Box<str>,
    /// Where it is: as proxies say that are trusted, or as its connection does.
    pub address: IpAddr,
}

impl Caller {
    /// How much of a `User-Agent` is kept.
    pub const AGENT_BYTES_MAX: usize = 96;
    /// How many callers of a revision are named.
    pub const NAMED_MAX: usize = 5;
}
