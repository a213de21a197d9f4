//! An `ebb up` in which the same app is served in both routings.

use std::time::Duration;

use crate::{ConfigMap, Ebb, Service};

/// How long anything may take on a slow, busy machine. Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether requests wait in the activator's queue for a slot, or pass it while a pod is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Requests wait in the activator's queue for a slot.
    ThroughActivator,
    /// Requests pass the activator while a pod is ready.
    Direct,
}

/// Both of them, for tests that prove the same of each.
pub const ROUTINGS: [Routing; 2] = [Routing::ThroughActivator, Routing::Direct];

impl Routing {
    /// The service that is routed this way.
    pub const fn service(self) -> &'static str {
        match self {
            Self::ThroughActivator => "through",
            Self::Direct => "direct",
        }
    }

    /// The Host of that service.
    pub fn host(self) -> String {
        format!("{}.default.example.com", self.service())
    }

    /// The service that is routed this way, of several that are alike.
    fn copy(self, number: usize) -> String {
        format!("{}-{number}", self.service())
    }

    /// The Host of that service.
    pub fn copy_host(self, number: usize) -> String {
        format!("{}.default.example.com", self.copy(number))
    }

    /// The annotation that brings it about: always, or never while a pod is ready.
    const fn target_burst_capacity(self) -> &'static str {
        match self {
            Self::ThroughActivator => "-1",
            Self::Direct => "0",
        }
    }

    /// How the API calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::ThroughActivator => "through_activator",
            Self::Direct => "direct",
        }
    }
}

/// Starts one service for each routing, made by `shape`, and waits until each has its one pod and its
/// routing.
pub async fn warm(shape: impl Fn(Service) -> Service) -> Ebb {
    warm_with(&[], shape).await
}

/// The same with further arguments of `ebb up`.
pub async fn warm_with(arguments: &[&str], shape: impl Fn(Service) -> Service) -> Ebb {
    let services = ROUTINGS.map(|routing| (routing, routing.service().to_owned()));
    warm_services(arguments, &services, shape).await
}

/// The same with so many services for each routing.
pub async fn warm_copies(arguments: &[&str], copies: usize) -> Ebb {
    let numbers = 0..copies;
    let services = numbers.flat_map(|number| ROUTINGS.map(|routing| (routing, routing.copy(number))));
    warm_services(arguments, &services.collect::<Vec<_>>(), |service| service).await
}

async fn warm_services(
    arguments: &[&str],
    named: &[(Routing, String)],
    shape: impl Fn(Service) -> Service,
) -> Ebb {
    let services =
        named.iter().map(|(routing, name)| shape(service(*routing, name)).scaling("min-scale", "1"));
    let config = ConfigMap::short().set("routing-dwell", "0s");
    let ebb = Ebb::up_with(&services.collect::<Vec<_>>(), &config, arguments).await;
    for (routing, name) in named {
        let is_settled =
            |revision: &crate::Revision| revision.ready() == 1 && revision.0["routing"] == routing.name();
        ebb.until(name, "one ready pod in its routing", is_settled).await;
    }
    ebb
}

/// Starts one service for each routing that has no pod yet.
pub async fn cold(shape: impl Fn(Service) -> Service) -> Ebb {
    let services =
        ROUTINGS.map(|routing| shape(service(routing, routing.service())).scaling("initial-scale", "0"));
    let config = ConfigMap::short().set("routing-dwell", "0s").set("allow-zero-initial-scale", "true");
    Ebb::up(&services, &config).await
}

fn service(routing: Routing, name: &str) -> Service {
    Service::new(name)
        .scaling("target-burst-capacity", routing.target_burst_capacity())
        .scaling("max-scale", "1")
}

/// Waits for what must happen, with a deadline.
pub async fn within<Output>(what: &str, happening: impl Future<Output = Output>) -> Output {
    let happened = tokio::time::timeout(PATIENCE, happening).await;
    happened.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
