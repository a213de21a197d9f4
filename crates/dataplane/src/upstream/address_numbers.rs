//! An address as the numbers that it consists of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address in a form that is cheap to compare. The standard library compares addresses byte by byte, with
/// a call for each comparison, and an activator looks for a pod among hundreds, several times per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AddressNumbers {
    ip: u128,
    port: u16,
    /// The parts that an address of IPv4 does not have.
    of_v6: Option<V6Numbers>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct V6Numbers {
    scope_id: u32,
    flowinfo: u32,
}

impl From<SocketAddr> for AddressNumbers {
    fn from(address: SocketAddr) -> Self {
        let port = address.port();
        match address {
            SocketAddr::V4(address) => Self { ip: address.ip().to_bits().into(), port, of_v6: None },
            SocketAddr::V6(address) => Self {
                ip: address.ip().to_bits(),
                port,
                of_v6: Some(V6Numbers { scope_id: address.scope_id(), flowinfo: address.flowinfo() }),
            },
        }
    }
}

impl From<AddressNumbers> for SocketAddr {
    fn from(numbers: AddressNumbers) -> Self {
        let AddressNumbers { ip, port, of_v6 } = numbers;
        if let Some(V6Numbers { scope_id, flowinfo }) = of_v6 {
            SocketAddrV6::new(Ipv6Addr::from_bits(ip), port, flowinfo, scope_id).into()
        } else {
            let ip = u32::try_from(ip).expect("an address of IPv4 has 32 bits");
            Self::new(IpAddr::V4(Ipv4Addr::from_bits(ip)), port)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = SocketAddr> {
        // Few values of each part, so that many pairs differ in one part alone.
        let part = || prop_oneof![Just(0_u32), Just(1), any::<u32>()];
        let ip = prop_oneof![
            any::<u32>().prop_map(|ip| IpAddr::V4(Ipv4Addr::from_bits(ip))),
            Just(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Just(IpAddr::V6(Ipv6Addr::from_bits(0x7f00_0001))),
            any::<u128>().prop_map(|ip| IpAddr::V6(Ipv6Addr::from_bits(ip))),
        ];
        (ip, 0..3_u16, part(), part()).prop_map(|(ip, port, flowinfo, scope_id)| match ip {
            IpAddr::V4(_) => SocketAddr::new(ip, port),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, flowinfo, scope_id).into(),
        })
    }

    proptest! {
        #[test]
        fn two_addresses_are_the_same_if_their_numbers_are(one in address(), other in address()) {
            let (numbers, others) = (AddressNumbers::from(one), AddressNumbers::from(other));
            prop_assert_eq!(one == other, numbers == others);
            prop_assert_eq!(SocketAddr::from(numbers), one);
        }
    }
}
