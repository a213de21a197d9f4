//! The port at which the autoscaler calls, and by what it proves itself there.
//!
//! In Knative's place nothing but requests is worth the end of a pod: a container of the app may have the
//! port, and no authority need be known. The pod goes on without a link then, and the autoscaler asks the
//! port of Knative's measurements. (Contract of the installation, §6.5.)

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Context;
use link::{LinkAccess, LinkTlsAcceptor};
use runtime::new_link_token;
use tracing::{error, info};
use vocabulary::LinkToken;

use crate::config::{Config, PortAudience, QueueProxyPlace};

/// The port of the link, as far as it could be had.
pub(super) struct LinkPort {
    /// What is announced together with the port.
    pub(super) token: Option<LinkToken>,
    /// `None` where the pod goes on without a link.
    pub(super) open: Option<OpenLinkPort>,
}

/// A port at which the autoscaler can call.
pub(super) struct OpenLinkPort {
    pub(super) access: LinkAccess,
    pub(super) listener: TcpListener,
}

impl LinkPort {
    /// Binds the port. Fails, but for Knative's place, if it cannot be had.
    pub(super) fn bind(config: &Config) -> anyhow::Result<Self> {
        // The reader of the announcement gets the token as well.
        let announced = (config.announce == PortAudience::Stdout).then(new_link_token);
        let token = config.link_token.or(announced);
        let has_proof = config.link_ca.is_some() || token.is_some();
        let open = match config.place {
            QueueProxyPlace::Ebb => Some(OpenLinkPort::bind(config, token)?),
            // On loopback the app itself could give this process orders.
            QueueProxyPlace::Knative if !has_proof => {
                info!(
                    "ROOT_CA names no authority (queue-sidecar-rootca of config-deployment): no link is taken"
                );
                None
            }
            QueueProxyPlace::Knative => OpenLinkPort::bind(config, token)
                .inspect_err(|error| error!("{error:#}; no link is taken, and the pod serves without it"))
                .ok(),
        };
        Ok(Self { token, open })
    }

    /// The number of the port; 0 where there is none.
    pub(super) fn number(&self) -> u16 {
        let address = self.open.as_ref().and_then(|open| open.listener.local_addr().ok());
        address.map_or(0, |address| address.port())
    }
}

impl OpenLinkPort {
    fn bind(config: &Config, token: Option<LinkToken>) -> anyhow::Result<Self> {
        let access = match &config.link_ca {
            Some(roots) => {
                let acceptor = LinkTlsAcceptor::of_pod(roots.as_bytes());
                LinkAccess::Tls(acceptor.context(authority_variable(config.place))?)
            }
            None => token.into(),
        };
        let port = config.ports.link;
        let address = SocketAddr::new(link_address(config.bind, &access), port);
        let listener = runtime::listen(address).with_context(|| format!("port {port} (link)"))?;
        Ok(Self { access, listener })
    }
}

fn authority_variable(place: QueueProxyPlace) -> &'static str {
    match place {
        QueueProxyPlace::Ebb => "EBB_LINK_CA",
        QueueProxyPlace::Knative => "EBB_LINK_CA or ROOT_CA",
    }
}

/// Without a proof every caller of the link port could give this process orders, so then only its own machine
/// reaches it.
fn link_address(bind: IpAddr, access: &LinkAccess) -> IpAddr {
    match access {
        LinkAccess::Open if !bind.to_canonical().is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        LinkAccess::Open | LinkAccess::Token(_) | LinkAccess::Tls(_) => bind,
    }
}
