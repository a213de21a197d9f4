//! What `ebb up` says once it serves: addresses, and which forwarding headers it replaces.

use std::net::SocketAddr;

use platform_local::{FrontDoor, LoadedManifest, ServiceAddress};
use serde_json::json;
use tracing::info;

use crate::cli::{LogStyle, UpOptions};

/// Logs which clients' forwarding headers reach the apps, where clients of other machines may connect.
pub(super) fn log_trusted_forwarders(options: &UpOptions, door: FrontDoor) {
    let addresses = [Some(door.requests), door.tls.map(|tls| tls.address)];
    if addresses.into_iter().flatten().all(|address| address.ip().to_canonical().is_loopback()) {
        return;
    }
    let networks: Vec<String> = options.operation.trust_forwarded.iter().map(ToString::to_string).collect();
    info!(
        trusted = networks.join(","),
        "X-Forwarded-* and Forwarded are replaced in requests of other clients (--trust-forwarded)"
    );
}

/// The lines that say at which addresses requests, the API and each Service are reached.
pub(super) fn startup_message(
    style: LogStyle,
    loaded: &LoadedManifest,
    front_door: FrontDoor,
    api: SocketAddr,
) -> String {
    let requests = front_door.requests;
    let tls = front_door.tls.map(|door| door.address);
    if matches!(style, LogStyle::Json) {
        let service = |address: ServiceAddress| {
            let ServiceAddress { service, address, browser_url, host } = address;
            json!({"name": service, "url": address, "host": host, "browser_url": browser_url})
        };
        let services: Vec<_> = loaded.addresses(front_door).map(service).collect();
        let mut line = json!({"requests": format!("http://{requests}"), "api": format!("http://{api}"), "services": services});
        if let Some(tls) = tls {
            line["requests_over_tls"] = json!(format!("https://{tls}"));
        }
        return line.to_string();
    }
    let mut lines = vec![format!("requests: http://{requests}"), format!("api: http://{api}")];
    lines.extend(tls.map(|tls| format!("requests over TLS: https://{tls}")));
    let service = |address: ServiceAddress| {
        let ServiceAddress { service, address, browser_url, host } = address;
        format!("{service}: {address} (Host: {host}; in a browser {browser_url})")
    };
    lines.extend(loaded.addresses(front_door).map(service));
    lines.join("\n")
}
