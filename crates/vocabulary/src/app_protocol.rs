//! Which protocol an app speaks.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::findings::shown;

/// Which protocol an app speaks, as the name of its port says (Knative's `http1` and `h2c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppProtocol {
    /// Not declared. It is asked as clients ask; an app that turns out to speak no HTTP/2 is asked over
    /// HTTP/1.1.
    #[default]
    Unsaid,
    /// HTTP/1.1 to the app, whichever protocol the client speaks.
    Http1,
    /// HTTP/2 with prior knowledge, whatever clients speak.
    H2c,
}

/// A name that says nothing about a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("is {}; write http1, h2c or nothing", shown(.0))]
pub struct AppProtocolError(String);

impl AppProtocol {
    /// As ports are named; empty if no protocol is named.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsaid => "",
            Self::Http1 => "http1",
            Self::H2c => "h2c",
        }
    }
}

impl FromStr for AppProtocol {
    type Err = AppProtocolError;

    /// `http` names a port and no version of the protocol.
    fn from_str(name: &str) -> Result<Self, AppProtocolError> {
        match name {
            "" | "http" => Ok(Self::Unsaid),
            "http1" => Ok(Self::Http1),
            "h2c" => Ok(Self::H2c),
            other => Err(AppProtocolError(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_knatives() {
        for protocol in [AppProtocol::Unsaid, AppProtocol::Http1, AppProtocol::H2c] {
            assert_eq!(protocol.as_str().parse(), Ok(protocol));
        }
        assert_eq!("http".parse(), Ok(AppProtocol::Unsaid));
        let refused = "grpc".parse::<AppProtocol>().expect_err("unknown");
        assert_eq!(refused.to_string(), "is \"grpc\"; write http1, h2c or nothing");
    }
}
