//! Which user agents' requests are no load? Health checks of load balancers and scrapes come for ever; if
//! they counted, no pod would ever be without traffic.
//!
//! They are known by how their `User-Agent` begins, which is all that such programs reliably say of
//! themselves. Any client may say the same, so nothing but measuring follows from it: limits hold for these
//! requests too.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::findings::shown;

/// As many prefixes are compared with each request.
const PREFIXES_MAX: usize = 16;
/// Longer than any product name with its version.
const PREFIX_BYTES_MAX: usize = 64;

/// User agents whose requests are not measured, by how they begin: at most 16 prefixes of 1 to 64 visible
/// ASCII characters without commas. Written with commas between them; nothing means none. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IgnoredUserAgents(Arc<[Box<str>]>);

/// They are no user agents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UserAgentsError {
    /// More than any request should be compared with.
    #[error("names {0} user agents; write at most {PREFIXES_MAX}")]
    TooMany(usize),
    /// Every user agent begins with nothing.
    #[error(
        "has nothing between two commas or at an end; write user agents with a comma between two, or nothing at all"
    )]
    Empty,
    /// One of them is not what a user agent begins with.
    #[error("has {}; write 1 to {PREFIX_BYTES_MAX} visible ASCII characters for each, such as \"kube-probe/\"", shown(.0))]
    NotVisible(String),
}

impl IgnoredUserAgents {
    /// None: every request is measured.
    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// The user agents that begin like one of these.
    pub fn new<Prefix: Into<Box<str>>>(
        prefixes: impl IntoIterator<Item = Prefix>,
    ) -> Result<Self, UserAgentsError> {
        let prefixes: Arc<[Box<str>]> = prefixes.into_iter().map(Into::into).collect();
        if prefixes.len() > PREFIXES_MAX {
            return Err(UserAgentsError::TooMany(prefixes.len()));
        }
        for prefix in prefixes.iter() {
            if prefix.is_empty() {
                return Err(UserAgentsError::Empty);
            }
            let is_visible = prefix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
            if !is_visible || prefix.len() > PREFIX_BYTES_MAX {
                return Err(UserAgentsError::NotVisible(prefix.to_string()));
            }
        }
        Ok(Self(prefixes))
    }

    /// The prefixes by which values of `User-Agent` are recognised.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|prefix| &**prefix)
    }

    /// Whether this is one of them, given the value of a `User-Agent` header.
    pub fn include(&self, user_agent: &[u8]) -> bool {
        self.prefixes().any(|prefix| user_agent.starts_with(prefix.as_bytes()))
    }
}

impl Default for IgnoredUserAgents {
    /// kubelet, Google Cloud's load balancers, Amazon's.
    fn default() -> Self {
        Self(["kube-probe/", "GoogleHC/", "ELB-HealthChecker/"].map(Box::from).into())
    }
}

impl FromStr for IgnoredUserAgents {
    type Err = UserAgentsError;

    fn from_str(text: &str) -> Result<Self, UserAgentsError> {
        if text.trim().is_empty() {
            return Ok(Self::none());
        }
        Self::new(text.split(',').map(str::trim))
    }
}

impl fmt::Display for IgnoredUserAgents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, prefix) in self.prefixes().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            formatter.write_str(prefix)?;
        }
        Ok(())
    }
}

impl TryFrom<String> for IgnoredUserAgents {
    type Error = UserAgentsError;

    fn try_from(text: String) -> Result<Self, UserAgentsError> {
        text.parse()
    }
}

impl From<IgnoredUserAgents> for String {
    fn from(agents: IgnoredUserAgents) -> Self {
        agents.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_known_by_its_beginning() {
        let agents = IgnoredUserAgents::default();
        for (agent, is_one) in [
            ("kube-probe/1.31", true),
            ("GoogleHC/1.0", true),
            ("ELB-HealthChecker/2.0", true),
            ("kube-probe/", true),
            ("kube-probe", false),
            ("Kube-Probe/1.31", false),
            ("curl/8 kube-probe/1.31", false),
            ("", false),
        ] {
            assert_eq!(agents.include(agent.as_bytes()), is_one, "{agent}");
        }
        assert!(!IgnoredUserAgents::none().include(b""));
        assert!(!IgnoredUserAgents::none().include(b"kube-probe/1.31"));
    }

    #[test]
    fn written_user_agents_read_back_the_same() {
        for (text, written) in [
            ("kube-probe/", "kube-probe/"),
            (" HAProxy , Prometheus/ ", "HAProxy,Prometheus/"),
            ("", ""),
            ("  ", ""),
        ] {
            let agents: IgnoredUserAgents = text.parse().expect(text);
            assert_eq!(agents.to_string(), written, "{text:?}");
            assert_eq!(agents.to_string().parse(), Ok(agents), "{text:?}");
        }
        let default = IgnoredUserAgents::default();
        assert_eq!(default.to_string(), "kube-probe/,GoogleHC/,ELB-HealthChecker/");
        assert_eq!(default.to_string().parse(), Ok(default));
    }

    #[test]
    fn a_prefix_that_matches_everything_or_nothing_is_refused() {
        let sixteen = vec!["a/"; 16].join(",");
        let longest = "x".repeat(64);
        for text in [&sixteen, &longest] {
            assert!(text.parse::<IgnoredUserAgents>().is_ok(), "{text}");
        }
        for (text, expected) in [
            (format!("{sixteen},b/"), "names 17 user agents; write at most 16"),
            ("a/,,b/".to_owned(), "has nothing between two commas"),
            (",".to_owned(), "has nothing between two commas"),
            ("a/,".to_owned(), "has nothing between two commas"),
            ("a b".to_owned(), "has \"a b\"; write 1 to 64 visible ASCII characters"),
            ("a/,é".to_owned(), "has \"é\"; write 1 to 64"),
            ("a\nb".to_owned(), "has \"a\\nb\"; write 1 to 64"),
            (format!("{longest}x"), "has \"xxxx"),
        ] {
            let error = text.parse::<IgnoredUserAgents>().expect_err(&text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        assert_eq!(
            IgnoredUserAgents::new(["a,b"]),
            Err(UserAgentsError::NotVisible("a,b".to_owned())),
            "it could not be written"
        );
    }
}
