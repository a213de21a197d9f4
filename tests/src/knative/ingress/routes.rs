//! Which host leads where: worked out from the traffic of Services, the Endpoints of their revisions, and
//! mapped names.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use crate::knative::keys;
use crate::knative::objects::{label, list, number, text};

/// The domain of hosts that clients outside of the cluster ask for.
const USERS_DOMAIN: &str = "example.com";
/// The domain of the cluster of tests.
const CLUSTER_DOMAIN: &str = "svc.cluster.local";

/// An object by its namespace and its name.
type PlaceName = (String, String);

/// The turns of a Service's requests go in steps of so many places. It has no divisor with 100 in common, so
/// that a hundred turns meet each place once, and no revision gets many turns one after the other.
const STEP: usize = 37;

/// All that an ingress knows.
#[derive(Debug, Default)]
pub(super) struct IngressRoutes {
    services: BTreeMap<PlaceName, RoutedService>,
    /// The ready addresses behind each revision's public Service.
    addresses: BTreeMap<PlaceName, Vec<SocketAddr>>,
    /// The Service of each name that a user mapped to it.
    mapped: BTreeMap<String, PlaceName>,
}

/// A Service whose requests lead somewhere.
#[derive(Debug, Default)]
struct RoutedService {
    shares: Vec<RevisionShare>,
    /// The number of requests so far, by which revisions take turns.
    turns: usize,
}

/// The share of a revision in a Service's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RevisionShare {
    revision: String,
    percent: usize,
}

/// The revision that a request is for, and how it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IngressRoute {
    pub(super) namespace: String,
    pub(super) revision: String,
    /// Another text for another version of the route.
    pub(super) version: String,
    /// The Host that a request for a mapped name gets.
    pub(super) rewritten_host: Option<String>,
    /// The addresses of activators or pods; none while the controller has written none.
    pub(super) addresses: Vec<SocketAddr>,
}

impl IngressRoutes {
    pub(super) fn note_service(&mut self, object: &Value, is_there: bool) {
        let shares = shares(object);
        if is_there && !shares.is_empty() {
            // Its turns go on.
            self.services.entry(name_of(object)).or_default().shares = shares;
        } else {
            self.services.remove(&name_of(object));
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

    /// The route of the next request for a host, which is without its port.
    pub(super) fn take_turn(&mut self, host: &str) -> Option<IngressRoute> {
        let (namespace, name) = self.service(host)?;
        let routed = self.services.get_mut(&(namespace.clone(), name.clone()))?;
        let revision = routed.revision_of(routed.turns)?.to_owned();
        let version = routed.version(&namespace);
        routed.turns = routed.turns.wrapping_add(1);
        let is_mapped = self.mapped.contains_key(host);
        let key = (namespace, revision);
        let addresses = self.addresses.get(&key).cloned().unwrap_or_default();
        let (namespace, revision) = key;
        let rewritten_host = is_mapped.then(|| format!("{name}.{namespace}.{CLUSTER_DOMAIN}"));
        Some(IngressRoute { namespace, revision, version, rewritten_host, addresses })
    }

    /// The version of the route of a host.
    pub(super) fn version(&self, host: &str) -> Option<String> {
        let service = self.service(host)?;
        Some(self.services.get(&service)?.version(&service.0))
    }

    fn service(&self, host: &str) -> Option<PlaceName> {
        self.mapped.get(host).cloned().or_else(|| service_of(host))
    }

    /// All hosts that lead to a Service which has a ready revision.
    pub(super) fn hosts(&self) -> Vec<String> {
        let users =
            self.services.keys().map(|(namespace, name)| format!("{name}.{namespace}.{USERS_DOMAIN}"));
        let is_ready = |service: &&PlaceName| self.services.contains_key(*service);
        let mapped =
            self.mapped.iter().filter(|(_, service)| is_ready(service)).map(|(name, _)| name.clone());
        users.chain(mapped).collect()
    }
}

impl RoutedService {
    /// The revision whose turn it is.
    fn revision_of(&self, turn: usize) -> Option<&str> {
        let all: usize = self.shares.iter().map(|share| share.percent).sum();
        let mut place = turn.wrapping_mul(STEP).checked_rem(all)?;
        for share in &self.shares {
            if place < share.percent {
                return Some(&share.revision);
            }
            place -= share.percent;
        }
        None
    }

    fn version(&self, namespace: &str) -> String {
        let share = |share: &RevisionShare| format!("{}={}", share.revision, share.percent);
        format!("{namespace}/{}", self.shares.iter().map(share).collect::<Vec<_>>().join(","))
    }
}

/// The shares that a Service's status says.
fn shares(service: &Value) -> Vec<RevisionShare> {
    let share = |target: &Value| {
        let percent = usize::try_from(number(target, "/percent")).ok().filter(|percent| *percent > 0)?;
        let revision = text(target, "/revisionName").to_owned();
        (!revision.is_empty()).then_some(RevisionShare { revision, percent })
    };
    list(service, "/status/traffic").iter().filter_map(share).collect()
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

    fn service(traffic: &Value) -> Value {
        json!({"metadata": {"namespace": "shop", "name": "hello"}, "status": {"traffic": traffic}})
    }

    fn routes() -> IngressRoutes {
        let mut routes = IngressRoutes::default();
        routes.note_service(&service(&json!([{"revisionName": "hello-00002", "percent": 100}])), true);
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
    fn a_host_leads_to_the_revision_of_the_traffic_and_a_mapped_name_gets_the_local_host() {
        let mut routes = routes();
        let users = routes.take_turn("hello.shop.example.com").expect("a user's host");
        assert_eq!((users.namespace.as_str(), users.revision.as_str()), ("shop", "hello-00002"));
        assert_eq!(users.addresses, ["10.0.0.1:8013".parse::<SocketAddr>().expect("an address")]);
        assert_eq!(users.rewritten_host, None);
        assert_eq!(routes.take_turn("hello.shop.svc.cluster.local"), Some(users));
        let mapped = routes.take_turn("www.example.org").expect("a mapped name");
        assert_eq!(mapped.rewritten_host.as_deref(), Some("hello.shop.svc.cluster.local"));
        for other in ["hello.other.example.com", "a.hello.shop.example.com", "example.com", ""] {
            assert_eq!(routes.take_turn(other), None, "{other}");
        }
        assert_eq!(routes.hosts(), ["hello.shop.example.com", "www.example.org"]);
    }

    #[test]
    fn revisions_get_their_shares_and_another_split_is_another_version() {
        let mut routes = routes();
        let host = "hello.shop.example.com";
        let before = routes.version(host);
        let target = |revision: &str, percent: u32| json!({"revisionName": revision, "percent": percent});
        let split = json!([target("hello-00001", 80), target("hello-00003", 0), target("hello-00002", 20)]);
        routes.note_service(&service(&split), true);
        assert_ne!(routes.version(host), before);
        let turns: Vec<IngressRoute> = (0..200).filter_map(|_| routes.take_turn(host)).collect();
        assert!(turns.iter().all(|route| Some(&route.version) == routes.version(host).as_ref()));
        let is_of_few = |route: &&IngressRoute| route.revision == "hello-00002";
        assert_eq!((turns.len(), turns.iter().filter(is_of_few).count()), (200, 40));
        // Also of few requests each revision gets some.
        assert!(turns.chunks(10).all(|ten| ten.iter().any(|route| route.revision == "hello-00002")));
    }

    #[test]
    fn a_service_that_is_gone_has_no_host() {
        let mut routes = routes();
        routes.note_service(&service(&Value::Null), false);
        assert_eq!((routes.take_turn("www.example.org"), routes.hosts()), (None, Vec::<String>::new()));
    }
}
