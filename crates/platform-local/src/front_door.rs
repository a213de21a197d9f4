//! Where do clients come in, and by which URL is a Service reached there?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::manifest::ManifestService;

/// The addresses at which requests are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontDoor {
    /// The address at which requests are taken without TLS.
    pub requests: SocketAddr,
    /// Over TLS, if that is spoken.
    pub tls: Option<FrontTlsDoor>,
}

/// Where requests are taken over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontTlsDoor {
    /// The address at which clients speak TLS.
    pub address: SocketAddr,
    /// The names for which a certificate is shown there.
    pub names: CertifiedNames,
}

/// The names in the certificates that the front door shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertifiedNames {
    /// Every name of every Service, those of this machine too: a development certificate.
    All,
    /// The hosts of the Services alone: no public authority certifies names of `localhost`.
    Hosts,
}

impl FrontDoor {
    /// A front door without TLS.
    pub fn without_tls(requests: SocketAddr) -> Self {
        Self { requests, tls: None }
    }

    /// The URL at which every client of this machine reaches all Services, by the header `Host`: an address
    /// needs no resolver, while not every one knows names of `localhost`.
    pub(crate) fn address(&self) -> String {
        let here = match self.requests.ip() {
            IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            address @ (IpAddr::V4(_) | IpAddr::V6(_)) => address,
        };
        format!("http://{}", SocketAddr::new(here, self.requests.port()))
    }

    /// Where a browser reaches a Service: over TLS where that is spoken, by a name that the certificate
    /// holds; on this machine by the shortest name that needs no set-up, elsewhere by its host.
    pub(crate) fn url(&self, service: &ManifestService) -> String {
        let (scheme, usual_port, address, names) = match self.tls {
            Some(FrontTlsDoor { address, names }) => ("https", 443, address, names),
            None => ("http", 80, self.requests, CertifiedNames::All),
        };
        let is_here = address.ip().is_loopback() || address.ip().is_unspecified();
        let hosts = service.hosts();
        let host = match names {
            CertifiedNames::All if is_here => hosts.get(1).unwrap_or(&service.host),
            CertifiedNames::All | CertifiedNames::Hosts => &service.host,
        };
        let port = address.port();
        if port == usual_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_needs_no_resolver() {
        for (listen, address) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:8080", "http://[::1]:8080"),
            ("192.0.2.7:8080", "http://192.0.2.7:8080"),
        ] {
            let door = FrontDoor::without_tls(listen.parse().expect("an address"));
            assert_eq!(door.address(), address);
        }
    }
}
