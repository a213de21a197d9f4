//! Which addresses does the pod's node have on the pod's own network? Those to which the pod's routes lead: a
//! node's end of it is the pod's gateway, and the kubelet's connections come from there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The gateways of this network namespace; none where the kernel does not show its routes.
pub(crate) fn gateways() -> Vec<IpAddr> {
    let [four, six] = ["/proc/self/net/route", "/proc/self/net/ipv6_route"]
        .map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let four = four.lines().filter_map(gateway_v4);
    let mut found: Vec<IpAddr> = four.chain(six.lines().filter_map(gateway_v6)).collect();
    found.sort();
    found.dedup();
    found
}

/// `eth0 00000000 0100000A 0003 …`: the third field, in this machine's order of bytes.
fn gateway_v4(line: &str) -> Option<IpAddr> {
    let word = u32::from_str_radix(line.split_ascii_whitespace().nth(2)?, 16).ok()?;
    let address = Ipv4Addr::from(word.to_ne_bytes());
    (!address.is_unspecified()).then(|| address.into())
}

/// The fifth of `destination, its length, source, its length, next hop`, as 32 digits.
fn gateway_v6(line: &str) -> Option<IpAddr> {
    let text = line.split_ascii_whitespace().nth(4)?;
    let address = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32).map(Ipv6Addr::from)?;
    (!address.is_unspecified()).then(|| address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateways_among_routes_are_found() {
        let route = "eth0\t00000000\t0100C80A\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        if cfg!(target_endian = "little") {
            assert_eq!(gateway_v4(route), Some([10, 200, 0, 1].into()));
        }
        assert_eq!(gateway_v4("eth0\t0000C80A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"), None);
        assert_eq!(gateway_v4("Iface\tDestination\tGateway \tFlags"), None);
        let zero = "0".repeat(32);
        let hop = "fd000000000000000000000000000001";
        let six =
            |hop: &str| format!("{zero} 00 {zero} 00 {hop} 00000400 00000001 00000000 00000003     eth0");
        assert_eq!(gateway_v6(&six(hop)), "fd00::1".parse().ok());
        assert_eq!(gateway_v6(&six(&zero)), None);
        assert_eq!(gateway_v6(""), None);
        assert!(gateways().iter().all(|gateway| !gateway.is_unspecified()), "of this machine");
    }
}
