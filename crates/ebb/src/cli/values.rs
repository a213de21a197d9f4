//! How a value on the command line is read, and what the error says about a value that cannot be used.

use std::net::SocketAddr;
use std::time::Duration;

use nix::unistd::{Group, getegid, geteuid, getgroups};
use vocabulary::{parse_duration, parse_quantity};

use crate::utc_time::instant;

/// More than this on one machine only take each other's cores.
const ACTIVATORS_MAX: usize = 16;

/// Each holds every revision and pod, and all share one thread: more than a few only cost memory.
const AUTOSCALERS_MAX: usize = 8;

pub(super) fn activators(text: &str) -> Result<usize, String> {
    number_up_to(ACTIVATORS_MAX, text)
}

pub(super) fn autoscalers(text: &str) -> Result<usize, String> {
    number_up_to(AUTOSCALERS_MAX, text)
}

fn number_up_to(max: usize, text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("it must be a number from 1 to {max}"))
}

/// Reads a name of the DNS; a host in any other form could never match.
pub(super) fn domain(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if text.split('.').all(is_label) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("it must be letters, digits and \"-\", in parts separated by single dots, such as example.com"
            .to_owned())
    }
}

pub(super) fn pod_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| "write a whole number, at least 1".to_owned())
}

/// A smaller record would hold minutes.
const RECORD_BYTES_MIN: u64 = 1 << 20;

/// Reads a size in bytes, as Kubernetes writes amounts of memory.
pub(super) fn record_size(text: &str) -> Result<u64, String> {
    let bytes = parse_quantity(text).ok().and_then(|amount| u64::try_from(amount.value() / 1000).ok());
    let bytes = bytes.filter(|bytes| *bytes >= RECORD_BYTES_MIN);
    bytes.ok_or_else(|| "write an amount of memory, at least 1Mi, such as 256Mi or 2Gi".to_owned())
}

/// Reads a date with its time.
pub(super) fn utc_instant(text: &str) -> Result<Duration, String> {
    instant(text).ok_or_else(|| "write a date and a time of UTC, such as 2026-11-27T12:03".to_owned())
}

/// Reads a span of time that is not zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    let written = duration(text)?;
    if written.is_zero() {
        Err("it must be more than nothing, such as 100ms".to_owned())
    } else {
        Ok(written)
    }
}

/// Reads a span of time.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; write something like 10s, 5m or 1h30m"))
}

/// The running `ebb up` that a new one takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOverTarget {
    /// The one whose API is at the address of the new one's API.
    SameApi,
    /// The one whose API is at this address.
    ApiAt(SocketAddr),
}

pub(super) fn take_over_target(text: &str) -> Result<TakeOverTarget, String> {
    if text.is_empty() {
        Ok(TakeOverTarget::SameApi)
    } else {
        socket_address(text).map(TakeOverTarget::ApiAt)
    }
}

/// Reads an address with its port.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080; 0.0.0.0:8080 listens on every address of this \
         machine"
            .to_owned()
    })
}

/// A group of this machine's users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenGroup {
    /// As a person wrote it.
    pub(crate) name: String,
    pub(crate) number: u32,
}

impl TokenGroup {
    /// Whether this user may give files to it.
    pub(crate) fn has_this_user(&self) -> bool {
        let others = || getgroups().unwrap_or_default();
        geteuid().is_root()
            || getegid().as_raw() == self.number
            || others().iter().any(|group| group.as_raw() == self.number)
    }
}

pub(super) fn token_group(text: &str) -> Result<TokenGroup, String> {
    let named = || Some(Group::from_name(text).ok()??.gid.as_raw());
    let number = text.parse().ok().or_else(named);
    let number = number.ok_or_else(|| "there is no such group on this machine".to_owned())?;
    Ok(TokenGroup { name: text.to_owned(), number })
}

/// A name that a unit can hold as it is.
pub(super) fn user_name(text: &str) -> Result<String, String> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_legal) && !text.starts_with('-') {
        Ok(text.to_owned())
    } else {
        Err("write a user's name, of letters, digits, \"_\", \"-\" and \".\"".to_owned())
    }
}

/// The name of a Gateway and its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

pub(super) fn gateway_name(text: &str) -> Result<GatewayName, String> {
    // Kubernetes' names are those of the DNS in lower case.
    let is_name = |text: &str| domain(text).is_ok_and(|lower| lower == text);
    let parts = text.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
    let (namespace, name) = parts.ok_or_else(|| {
        "it must be NAMESPACE/NAME, each of lower-case letters, digits, \"-\" and \".\", such as infra/public"
            .to_owned()
    })?;
    Ok(GatewayName { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_name_or_a_number() {
        let root = TokenGroup { name: "root".to_owned(), number: 0 };
        assert_eq!(token_group("root"), Ok(root));
        assert_eq!(token_group("4711").map(|group| group.number), Ok(4711));
        assert!(token_group("no such group").is_err_and(|advice| advice.contains("no such group")));
    }

    #[test]
    fn a_gateway_has_names_of_kubernetes() {
        let public = GatewayName { namespace: "infra".to_owned(), name: "public.v2".to_owned() };
        assert_eq!(gateway_name("infra/public.v2"), Ok(public));
        for text in ["", "public", "infra/", "/public", "Infra/public", "infra/Public", "a/b/c", "a b/c"] {
            assert!(gateway_name(text).is_err_and(|advice| advice.contains("NAMESPACE/NAME")), "{text}");
        }
    }

    #[test]
    fn a_record_has_a_mebibyte_at_least() {
        assert_eq!(record_size("256Mi"), Ok(256 << 20));
        for text in ["", "0", "512Ki", "-1Gi", "much"] {
            assert!(record_size(text).is_err_and(|advice| advice.contains("at least 1Mi")), "{text}");
        }
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(socket_address("[::1]:80").map(|address| address.port()), Ok(80));
        for text in ["8080", ":8080", "localhost:8080", "::1:8080:", ""] {
            assert!(socket_address(text).is_err_and(|advice| advice.contains("127.0.0.1:8080")), "{text}");
        }
    }

    #[test]
    fn a_domain_is_a_name_of_the_dns() {
        assert_eq!(domain("Example.COM").as_deref(), Ok("example.com"));
        assert_eq!(domain("localhost").as_deref(), Ok("localhost"));
        for text in ["", "a b/", "a..b", ".a", "a.", "-a", "a-.b", "a:80"] {
            assert!(domain(text).is_err(), "{text}");
        }
    }
}
