//! May this request come from a foreign web page in a browser?
//!
//! A person who opens a web page lends its author a browser that reaches what its author does not: the API on
//! loopback, the admin port of a pod. Two things give such a request away. It names the page's `Origin`,
//! where that differs from the address asked; and where the page was made to seem of the same origin, by a
//! name that first led to its author's server and now leads here (DNS rebinding), its `Host` is that name. An
//! address cannot be led anywhere, so a request by address is allowed; kubelet and Prometheus do. Metrics
//! name every revision and its load, and are no open page. What every client may know ([`OPEN_PAGES`]) looks
//! at neither.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;
use http::header::{HOST, HeaderMap, HeaderName, ORIGIN};

/// Pages that change nothing and tell nothing that a stranger may not know.
const OPEN_PAGES: [&str; 3] = ["/healthz", "/ready", "/wait-for-drain"];

/// Names that are only known within a machine or a cluster, so that no page can have been served under them.
const OWN_NAMES: [&str; 3] = ["localhost", "*.svc", "*.svc.cluster.local"];

/// The names under which a program may be asked, besides addresses and those that every program has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedHosts(Vec<TrustedHost>);

/// A trusted host: a name, or every name below one (`*.svc.example.org`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedHost(String);

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedHostError(String);

impl fmt::Display for TrustedHostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is no host; write a name without scheme and port, such as \"ebb.example.com\" or \"*.example.com\"",
            self.0
        )
    }
}

impl std::error::Error for TrustedHostError {}

impl FromStr for TrustedHost {
    type Err = TrustedHostError;
    fn from_str(text: &str) -> Result<Self, TrustedHostError> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !name.split('.').all(is_label) {
            return Err(TrustedHostError(text.to_owned()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// Names with commas between them, as an environment has them.
impl FromStr for TrustedHosts {
    type Err = TrustedHostError;
    fn from_str(text: &str) -> Result<Self, TrustedHostError> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::parse).collect::<Result<Vec<_>, _>>().map(Self)
    }
}

impl From<Vec<TrustedHost>> for TrustedHosts {
    fn from(hosts: Vec<TrustedHost>) -> Self {
        Self(hosts)
    }
}

/// Why a request is refused; its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRequest {
    header: &'static str,
    value: String,
}

impl fmt::Display for ForeignRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {:?} is foreign: the request may come from another site's web page; ask by address or as localhost, or allow the name (EBB_TRUSTED_HOSTS, --trusted-host)",
            self.header, self.value
        )
    }
}

impl TrustedHosts {
    /// Refuses a request that a foreign web page may have made a browser send, unless it is for an open page.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ForeignRequest> {
        if OPEN_PAGES.contains(&uri.path()) {
            return Ok(());
        }
        // HTTP/2 and absolute targets name the host in the target.
        let target = uri.authority().map(|authority| authority.as_str().to_owned());
        let host = one_value(headers, &HOST)?;
        for asked in [target.as_deref(), host].into_iter().flatten() {
            if !Authority::of(asked).is_some_and(|asked| self.is_own(asked.host)) {
                return Err(ForeignRequest { header: "host", value: asked.to_owned() });
            }
        }
        let asked = host.or(target.as_deref()).and_then(Authority::of);
        match one_value(headers, &ORIGIN)? {
            Some(origin) if !self.is_own_origin(origin, asked) => {
                Err(ForeignRequest { header: "origin", value: origin.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        is_address(host) || OWN_NAMES.iter().any(|pattern| matches(pattern, host)) || self.is_configured(host)
    }

    fn is_configured(&self, host: &str) -> bool {
        self.0.iter().any(|TrustedHost(pattern)| matches(pattern, host))
    }

    /// A page of ours has the host and port that it asks; one that a proxy serves for us has a name that
    /// an administrator configured.
    fn is_own_origin(&self, origin: &str, asked: Option<Authority<'_>>) -> bool {
        let (scheme, authority) = origin.split_once("://").unwrap_or_default();
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            // "null" among them: a page without an origin belongs to no host.
            _ => return false,
        };
        let Some(page) = Authority::of(authority) else { return false };
        let is_same = asked.is_some_and(|asked| {
            let port = |authority: Authority<'_>| authority.port.unwrap_or(default_port);
            page.host.eq_ignore_ascii_case(asked.host) && port(page) == port(asked)
        });
        is_same || self.is_configured(page.host)
    }
}

/// A header that may be there once. Of two, one reader would take the first and another the last.
fn one_value<'h>(
    headers: &'h HeaderMap,
    name: &'static HeaderName,
) -> Result<Option<&'h str>, ForeignRequest> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let foreign =
        || ForeignRequest { header: if *name == HOST { "host" } else { "origin" }, value: "…".to_owned() };
    text.map(Some).ok_or_else(foreign)
}

/// A host and perhaps a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Authority<'t> {
    host: &'t str,
    port: Option<u16>,
}

impl<'t> Authority<'t> {
    /// `None` if the text is none. What could be read in two ways (user names, paths) is not read.
    fn of(text: &'t str) -> Option<Self> {
        let host_end = match text.strip_prefix('[') {
            Some(bracketed) => bracketed.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, rest) = text.split_at(host_end);
        let port = match rest.strip_prefix(':') {
            Some(digits) => Some(digits.parse().ok()?),
            None if rest.is_empty() => None,
            None => return None,
        };
        (!host.is_empty() && !host.contains(['/', '@', ',', ' '])).then_some(Self { host, port })
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        None => host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
    }
}

/// Whether a name is the pattern, or below it if that begins with `*.`.
fn matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(suffix) => {
            let start = host.len().checked_sub(suffix.len()).filter(|start| *start > 0);
            start.and_then(|start| host.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        }
        None => host.eq_ignore_ascii_case(pattern),
    }
}

#[cfg(test)]
mod tests;
