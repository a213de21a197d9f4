//! The sockets at which `ebb up` listens for requests and for calls of its API.

use std::net::{SocketAddr, TcpListener};

use anyhow::Context;
use platform_local::{FrontDoor, FrontTlsDoor};

use super::service_manager::GivenSockets;
use super::{take_over, tls};
use crate::cli::{TlsOptions, UpOptions};

/// The sockets that outlive every part.
pub(super) struct Sockets {
    pub(super) requests: TcpListener,
    pub(super) api: TcpListener,
    /// Where clients speak TLS, if somewhere they do.
    pub(super) tls: Option<TcpListener>,
}

impl Sockets {
    /// Binds the sockets that the options name; sockets that a service manager gave take their place.
    pub(super) fn bind(options: &UpOptions, given: GivenSockets) -> Result<Self, Vec<anyhow::Error>> {
        let requests = given.requests.map_or_else(|| bind(options.listen, "--listen"), Ok);
        let api = given.api.map_or_else(|| bind(options.api, "--api"), Ok);
        let api = api.map_err(|error| explained(error, take_over::has_left_a_socket(options.api)));
        let tls = match (given.tls, tls::address(&options.tls, options.listen)) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(anyhow::anyhow!(
                "LISTEN_FDS gives a third socket, which is for TLS; add --tls-cert and --tls-key, or --tls dev"
            )),
            (Some(given), Some(_)) => Ok(Some(given)),
            (None, Some(address)) => bind(address, tls::LISTEN_OPTION).map(Some),
        };
        match (requests, api, tls) {
            (Ok(requests), Ok(api), Ok(tls)) => Ok(Self { requests, api, tls }),
            (requests, api, tls) => {
                Err([requests.err(), api.err(), tls.err()].into_iter().flatten().collect())
            }
        }
    }

    /// The addresses at which clients are served.
    pub(super) fn front_door(&self, options: &TlsOptions) -> std::io::Result<FrontDoor> {
        let tls = self.tls.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(FrontDoor {
            requests: self.requests.local_addr()?,
            tls: tls.map(|address| FrontTlsDoor { address, names: tls::names(options) }),
        })
    }
}

/// The same error with what to do if it is an `ebb up` of this user that has the address.
fn explained(error: anyhow::Error, runs_already: bool) -> anyhow::Error {
    if !runs_already {
        return error;
    }
    error.context(
        "another `ebb up` of this user has its API at the address of --api; add --take-over to take its place without a lost request",
    )
}

pub(super) fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    runtime::listen(address).with_context(|| {
        format!("cannot listen on {address}; end what uses it, or choose another address with {option}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_another_ebb_up_has_can_be_taken_over() {
        let error = || anyhow::anyhow!("cannot listen on 127.0.0.1:8080");
        let alone = format!("{:#}", explained(error(), false));
        assert_eq!(alone, "cannot listen on 127.0.0.1:8080");
        let beside = format!("{:#}", explained(error(), true));
        assert!(beside.contains("--take-over") && beside.ends_with(&alone), "{beside}");
    }
}
