//! Under which entries is the revision of a host looked up, besides the host itself?
//!
//! A wildcard (`*.example.org`) means every name below it, however deep; the longest one that fits is meant.
//! A request without a host (a health check over HTTP/1.0, say) and one for an address mean the revision that
//! has the entry of this machine's own address, which is the only one of a machine that runs one Service.

use std::net::IpAddr;

/// The entry of a revision that is reached by address.
const OF_ADDRESSES: &str = "127.0.0.1";

/// As long as a name of DNS may be (RFC 1035 §2.3.4). No wildcard means a longer one: each dot of a host
/// costs a look-up of all that follows it, so a host as long as a head may be would keep a worker busy for
/// seconds.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The entries that may stand for a host (lower case, without port), the nearest first.
pub(crate) fn stand_ins(host: &str) -> impl Iterator<Item = String> + '_ {
    let is_address = host.is_empty() || is_address(host);
    let of_addresses = is_address.then(|| OF_ADDRESSES.to_owned());
    let is_name = !is_address && host.len() <= NAME_BYTES_MAX;
    let dots = host.match_indices('.').filter(move |_| is_name);
    let wildcards = dots.map(move |(dot, _)| format!("*{}", &host[dot..]));
    wildcards.chain(of_addresses)
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    inner.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wildcard_comes_first_and_addresses_are_alike() {
        for (host, expected) in [
            ("a.shop.example.org", &["*.shop.example.org", "*.example.org", "*.org"][..]),
            ("localhost", &[][..]),
            ("", &[OF_ADDRESSES][..]),
            ("192.0.2.7", &[OF_ADDRESSES][..]),
            ("[2001:db8::1]", &[OF_ADDRESSES][..]),
        ] {
            assert_eq!(stand_ins(host).collect::<Vec<_>>(), expected, "{host:?}");
        }
    }

    #[test]
    fn a_host_that_is_too_long_for_a_name_has_no_wildcards() {
        for (dots, expected) in [(127, 127), (128, 0)] {
            let host = ".a".repeat(dots);
            assert_eq!(stand_ins(&host).count(), expected, "{} bytes", host.len());
        }
    }
}
