//! Of which clients are `Forwarded` and `X-Forwarded-*` passed on? These headers name another sender and
//! another protocol than those of the connection. Apps believe them, so a client that may write them can pose
//! as any other.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// The clients whose headers about a request's way are passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustedForwarders {
    /// All of them, as in Knative: what stands before a cluster's activators has looked at the headers.
    #[default]
    AllClients,
    /// Those with an address in one of these networks.
    Networks(Arc<[Network]>),
}

impl TrustedForwarders {
    pub(crate) fn trusts(&self, client: IpAddr) -> bool {
        match self {
            Self::AllClients => true,
            Self::Networks(networks) => networks.iter().any(|network| network.contains(client)),
        }
    }
}

/// Addresses that begin alike, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many bits are alike.
    bits: u32,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        // Of two numbers that begin alike, what differs is small.
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

/// A text that is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError;

impl fmt::Display for NetworkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("write an address or a network, such as 192.0.2.7, 10.0.0.0/8 or fd00::/8")
    }
}

impl std::error::Error for NetworkError {}

impl FromStr for Network {
    type Err = NetworkError;
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), str::parse).map_err(|_| NetworkError)?;
        if bits > all || address != address.to_canonical() {
            return Err(NetworkError);
        }
        Ok(Self { address, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        for (network, address, expected) in [
            ("127.0.0.0/8", "127.9.9.9", true),
            ("127.0.0.0/8", "128.0.0.1", false),
            ("127.0.0.0/8", "::ffff:127.0.0.1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("10.1.2.3/8", "10.200.0.1", true),
            ("0.0.0.0/0", "203.0.113.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::1/128", "::1", true),
            ("::1/128", "127.0.0.1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "2001:db8::1", true),
        ] {
            let network: Network = network.parse().expect("a network");
            assert_eq!(
                network.contains(address.parse().expect("an address")),
                expected,
                "{network} {address}"
            );
        }
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "::ffff:10.0.0.0/104",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text:?}");
        }
    }
}
