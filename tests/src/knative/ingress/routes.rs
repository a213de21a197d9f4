//! Which host leads where: worked out from Services, the Endpoints of their revisions, and mapped names.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use crate::knative::keys;
use crate::knative::objects::{label, list, text};

/// The domain of hosts that clients outside of the cluster ask for.
const USERS_DOMAIN: &str = "example.com";
/// The domain of the cluster of tests.
const CLUSTER_DOMAIN: &str = "svc.cluster.local";

/// An object by its namespace and its name.
type PlaceName = (String, String);

/// All that an ingress knows.
#[derive(Debug, Default)]
pub(super) struct IngressRoutes {
    /// The latest ready revision of each Service.
    revisions: BTreeMap<PlaceName, String>,
    /// The ready addresses behind each revision's public Service.
    addresses: BTreeMap<PlaceName, Vec<SocketAddr>>,
    /// The Service of each name that a user mapped to it.
    mapped: BTreeMap<String, PlaceName>,
}

/// The revision that a request is for, and how it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IngressRoute {
    pub(super) namespace: String,
    pub(super) revision: String,
    /// The Host that a request for a mapped name gets.
    pub(super) rewritten_host: Option<String>,
    /// The addresses of activators or pods; none while the controller has written none.
    pub(super) addresses: Vec<SocketAddr>,
}

impl IngressRoutes {
    pub(super) fn note_service(&mut self, object: &Value, is_there: bool) {
        let revision = text(object, "/status/latestReadyRevisionName");
        if is_there && !revision.is_empty() {
            self.revisions.insert(name_of(object), revision.to_owned());
        } else {
            self.revisions.remove(&name_of(object));
        }
    }

    /// Takes in Endpoints; those of public Services alone lead anywhere.
    pub(super) fn note_endpoints(&mut self, object: &Value, is_there: bool) {
        if label(object, keys::SERVICE_TYPE) != "Public" {
            return;
        }
        if is_there {
            self.addresses.insert(name_of(object), addresses(object));
        } else {
            self.addresses.remove(&name_of(object));
        }
    }

    /// Takes in the ConfigMap of mapped names: each key is a name, each value `NAMESPACE/SERVICE`.
    pub(super) fn note_mapped(&mut self, object: &Value) {
        let data = object.get("data").and_then(Value::as_object).into_iter().flatten();
        let pairs = data.filter_map(|(name, service)| {
            let (namespace, service) = service.as_str()?.split_once('/')?;
            Some((name.clone(), (namespace.to_owned(), service.to_owned())))
        });
        self.mapped = pairs.collect();
    }

    /// The route of a host without its port.
    pub(super) fn find(&self, host: &str) -> Option<IngressRoute> {
        let mapped = self.mapped.get(host);
        let service = mapped.cloned().or_else(|| service_of(host))?;
        let revision = self.revisions.get(&service)?;
        let (namespace, name) = service;
        let key = (namespace.clone(), revision.clone());
        Some(IngressRoute {
            rewritten_host: mapped.is_some().then(|| format!("{name}.{namespace}.{CLUSTER_DOMAIN}")),
            addresses: self.addresses.get(&key).cloned().unwrap_or_default(),
            namespace,
            revision: revision.clone(),
        })
    }

    /// All hosts that lead to a Service which has a ready revision.
    pub(super) fn hosts(&self) -> Vec<String> {
        let users =
            self.revisions.keys().map(|(namespace, name)| format!("{name}.{namespace}.{USERS_DOMAIN}"));
        let is_ready = |service: &&PlaceName| self.revisions.contains_key(*service);
        let mapped =
            self.mapped.iter().filter(|(_, service)| is_ready(service)).map(|(name, _)| name.clone());
        users.chain(mapped).collect()
    }
}

fn name_of(object: &Value) -> PlaceName {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

/// The Service that a host names by itself, in either domain.
fn service_of(host: &str) -> Option<PlaceName> {
    let stems = [USERS_DOMAIN, CLUSTER_DOMAIN].map(|domain| host.strip_suffix(domain));
    let stem = stems.into_iter().flatten().find_map(|stem| stem.strip_suffix('.'));
    let (name, namespace) = stem?.split_once('.')?;
    (!namespace.contains('.')).then(|| (namespace.to_owned(), name.to_owned()))
}

/// Ready addresses, each with the port for the protocol of the revision.
fn addresses(endpoints: &Value) -> Vec<SocketAddr> {
    let of_subset = |subset: &Value| -> Vec<SocketAddr> {
        let ports = [keys::HTTP1_PORT, keys::H2C_PORT];
        let is_there = |port: &u16| list(subset, "/ports").iter().any(|of| of["port"] == *port);
        let Some(port) = ports.into_iter().find(is_there) else { return Vec::new() };
        let ready =
            list(subset, "/addresses").iter().filter_map(|address| address["ip"].as_str()?.parse().ok());
        ready.map(|ip| SocketAddr::new(ip, port)).collect()
    };
    list(endpoints, "/subsets").iter().flat_map(of_subset).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn routes() -> IngressRoutes {
        let mut routes = IngressRoutes::default();
        let metadata = json!({"namespace": "shop", "name": "hello"});
        let status = json!({"latestReadyRevisionName": "hello-00002"});
        routes.note_service(&json!({"metadata": metadata, "status": status}), true);
        let subset = json!({
            "addresses": [{"ip": "10.0.0.1"}],
            "notReadyAddresses": [{"ip": "10.0.0.2"}],
            "ports": [{"name": "https", "port": 8112}, {"name": "http2", "port": 8013}],
        });
        let labels = json!({keys::SERVICE_TYPE: "Public"});
        let metadata = json!({"namespace": "shop", "name": "hello-00002", "labels": labels});
        routes.note_endpoints(&json!({"metadata": metadata, "subsets": [subset]}), true);
        routes.note_mapped(&json!({"data": {"www.example.org": "shop/hello", "broken": "x"}}));
        routes
    }

    #[test]
    fn a_host_leads_to_the_latest_ready_revision_and_a_mapped_name_gets_the_local_host() {
        let routes = routes();
        let users = routes.find("hello.shop.example.com").expect("a user's host");
        assert_eq!((users.namespace.as_str(), users.revision.as_str()), ("shop", "hello-00002"));
        assert_eq!(users.addresses, ["10.0.0.1:8013".parse::<SocketAddr>().expect("an address")]);
        assert_eq!(users.rewritten_host, None);
        assert_eq!(routes.find("hello.shop.svc.cluster.local"), Some(users));
        let mapped = routes.find("www.example.org").expect("a mapped name");
        assert_eq!(mapped.rewritten_host.as_deref(), Some("hello.shop.svc.cluster.local"));
        for other in ["hello.other.example.com", "a.hello.shop.example.com", "example.com", ""] {
            assert_eq!(routes.find(other), None, "{other}");
        }
        assert_eq!(routes.hosts(), ["hello.shop.example.com", "www.example.org"]);
    }

    #[test]
    fn a_service_that_is_gone_has_no_host() {
        let mut routes = routes();
        routes.note_service(&json!({"metadata": {"namespace": "shop", "name": "hello"}}), false);
        assert_eq!((routes.find("www.example.org"), routes.hosts()), (None, Vec::<String>::new()));
    }
}
