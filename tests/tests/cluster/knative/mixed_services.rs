//! Twenty Services as an installation has them, each with the clients that it is made for.

use std::time::Duration;

use serde_json::json;
use tests::cluster::TestNamespace;
use tests::{BackgroundLoad, Load, Tally};
use tokio::task::JoinHandle;

use crate::app::{KnativeApp, KnativeAppPlan};
use crate::gateway::Gateway;
use crate::sockets::SocketLoad;

/// For each Service: all of them together keep a small part of a small machine busy.
const PER_SECOND: u32 = 2;
/// Between the beginnings of two loads, so that their requests do not come in one instant.
const APART: Duration = Duration::from_millis(23);
/// A first start may take long while the pods of all begin at once.
const PROGRESS_DEADLINE: [&str; 2] = ["serving.knative.dev/progress-deadline", "120s"];
/// The share of the first of two revisions, in per cent.
const FIRST_SHARE: u32 = 60;
/// Of so many requests both revisions get some, whatever probes of the ingress take their turns between them.
const SHARED_FROM: usize = 20;

/// The clients of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceClients {
    /// A steady load of requests.
    Steady,
    /// A steady load of conversations over WebSockets.
    Sockets,
    /// One request now and then; at rest the Service is at zero.
    Rare,
    /// A steady load, which two revisions share.
    Split,
    /// A steady load of a Service whose first revision is at zero, and to which a test goes back.
    Renewed,
}

/// Whether clients send a request to Services that are at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleServices {
    Woken,
    /// For a time in which no autoscaler decides.
    LeftAlone,
}

/// The way of requests while pods are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServicePath {
    ThroughActivators,
    /// At least one pod, so that it stays so.
    Direct,
    /// By the target of the settings.
    BySettings,
}

/// One of the Services, and the plan that it was applied by.
pub(crate) struct MixedService {
    pub(crate) app: KnativeApp,
    pub(crate) clients: ServiceClients,
    path: ServicePath,
    plan: KnativeAppPlan,
}

/// All of the Services, and the ingress to which their clients go.
pub(crate) struct MixedServices {
    pub(crate) services: Vec<MixedService>,
    gateway: Gateway,
}

/// A plan by which a Service has one small pod at most.
fn small(path: ServicePath) -> KnativeAppPlan {
    let [key, deadline] = PROGRESS_DEADLINE;
    let plan = KnativeAppPlan::default().annotated(key, deadline).scaled("max-scale", "1");
    match path {
        ServicePath::ThroughActivators => plan.scaled("target-burst-capacity", "-1"),
        ServicePath::Direct => plan.scaled("target-burst-capacity", "0").scaled("min-scale", "1"),
        ServicePath::BySettings => plan,
    }
}

/// What a group of Services has besides the common plan.
type PlanChange = fn(KnativeAppPlan) -> KnativeAppPlan;

/// A Service that is to be applied.
struct ServiceDraft {
    name: String,
    path: ServicePath,
    clients: ServiceClients,
    plan: KnativeAppPlan,
}

/// The drafts of all Services, in groups that differ in the way of requests alone.
fn drafts() -> Vec<ServiceDraft> {
    use ServiceClients::{Rare, Renewed, Sockets, Split, Steady};
    use ServicePath::{BySettings, Direct, ThroughActivators};
    let mut drafts = Vec::new();
    let mut add = |group: &str, paths: &[ServicePath], clients, planned: PlanChange| {
        for (at, path) in paths.iter().enumerate() {
            let (name, plan) = (format!("{group}-{at}"), planned(small(*path)));
            drafts.push(ServiceDraft { name, path: *path, clients, plan });
        }
    };
    let each_twice = [ThroughActivators, ThroughActivators, Direct, Direct, BySettings, BySettings];
    add("http1", &each_twice, Steady, |plan| plan);
    add("h2c", &[ThroughActivators, Direct, BySettings], Steady, KnativeAppPlan::h2c);
    add("socket", &[ThroughActivators, Direct], Sockets, |plan| plan);
    add("single", &[ThroughActivators, Direct], Steady, |plan| plan.container_concurrency(1));
    add("warm", &[ThroughActivators, BySettings], Steady, |plan| plan.scaled("min-scale", "1"));
    add("idle", &[ThroughActivators, BySettings], Rare, |plan| plan);
    add("split", &[ThroughActivators, Direct], Split, |plan| plan);
    add("renewed", &[ThroughActivators], Renewed, |plan| plan);
    drafts
}

impl MixedServices {
    /// Applies all, and waits until each is ready with all of its revisions and the ingress leads there.
    pub(crate) async fn apply(namespace: &TestNamespace) -> Self {
        let mut services = Vec::new();
        for ServiceDraft { name, path, clients, plan } in drafts() {
            let app = plan.clone().apply_as(&name, namespace).await;
            services.push(MixedService { app, clients, path, plan });
        }
        for service in &services {
            service.app.is_ready(1).await;
        }
        for service in &services {
            service.renew().await;
        }
        let hosts: Vec<String> = services.iter().map(|service| service.app.users_host()).collect();
        let gateway = Gateway::find(namespace).await;
        gateway.has_programmed(&hosts).await;
        Self { services, gateway }
    }

    /// The Service that a test rolls back.
    pub(crate) fn renewed(&self) -> &KnativeApp {
        let mut found = self.services.iter().filter(|service| service.clients == ServiceClients::Renewed);
        &found.next().expect("one of the Services is renewed").app
    }

    /// Waits until the Services with few requests are at zero.
    pub(crate) async fn idle_ones_are_at_zero(&self) {
        for service in &self.services {
            if service.clients == ServiceClients::Rare {
                service.app.has_count(&service.app.own_revision(1), |count| count == 0).await;
            }
        }
    }

    /// Waits until clients reach activators, or pods, where a Service is made so.
    pub(crate) async fn are_served_their_way(&self) {
        for service in &self.services {
            let revision = service.app.own_revision(1);
            match service.path {
                ServicePath::ThroughActivators => service.app.is_served_by_activators(&revision).await,
                ServicePath::Direct => service.app.is_served_by_pods(&revision).await,
                ServicePath::BySettings => {}
            }
        }
    }

    /// Begins the load of each Service, one a little after the other.
    pub(crate) async fn begin_traffic(&self, idle: IdleServices) -> MixedTraffic<'_> {
        let mut loads = Vec::new();
        for service in &self.services {
            tokio::time::sleep(APART).await;
            loads.extend(service.begin_load(self.gateway, idle).map(|load| (service, load)));
        }
        MixedTraffic(loads)
    }
}

impl MixedService {
    /// Makes the second revision of a Service that has two.
    async fn renew(&self) {
        let app = &self.app;
        match self.clients {
            ServiceClients::Steady | ServiceClients::Sockets | ServiceClients::Rare => return,
            ServiceClients::Renewed => {}
            ServiceClients::Split => {
                let first = json!({"revisionName": app.own_revision(1), "percent": FIRST_SHARE});
                let latest = json!({"latestRevision": true, "percent": 100 - FIRST_SHARE});
                app.change_traffic(&json!([first, latest])).await;
            }
        }
        app.change(&self.plan.clone().arg("--finish")).await;
        app.is_ready(2).await;
    }

    fn begin_load(&self, gateway: Gateway, idle: IdleServices) -> Option<RunningLoad> {
        let host = self.app.users_host();
        let load = Load::new(gateway.requests(), &host).path("/?sleep=50");
        match (self.clients, idle) {
            (ServiceClients::Steady | ServiceClients::Split | ServiceClients::Renewed, _) => {
                Some(RunningLoad::Steady(load.in_background(PER_SECOND)))
            }
            (ServiceClients::Sockets, _) => {
                let gap = Duration::from_secs(1) / PER_SECOND;
                Some(RunningLoad::Sockets(SocketLoad::begin(gateway.requests(), &host, gap)))
            }
            (ServiceClients::Rare, IdleServices::LeftAlone) => None,
            // The test that ends it notices a panic of it.
            (ServiceClients::Rare, IdleServices::Woken) => {
                Some(RunningLoad::Single(tokio::spawn(async move { load.one().await })))
            }
        }
    }
}

/// The load of one Service, which goes on.
enum RunningLoad {
    Steady(BackgroundLoad),
    Sockets(SocketLoad),
    Single(JoinHandle<Tally>),
}

/// The loads of all Services, until they are ended.
pub(crate) struct MixedTraffic<'s>(Vec<(&'s MixedService, RunningLoad)>);

impl MixedTraffic<'_> {
    /// Goes on for a second, so that requests meet all that the test has seen, and ends. Returns a line for
    /// each Service with requests that were not answered, with all that is known of them.
    pub(crate) async fn end(self) -> Vec<String> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut missing = Vec::new();
        for (service, load) in self.0 {
            let lack = match load {
                RunningLoad::Steady(load) => lack_of(service, &load.end().await),
                RunningLoad::Single(load) => {
                    lack_of(service, &load.await.expect("the client does not panic"))
                }
                RunningLoad::Sockets(load) => {
                    let tally = load.end().await;
                    let is_whole = tally.begun > 0 && tally.broken.is_empty();
                    (!is_whole).then(|| format!("{} conversations: {:?}", tally.begun, tally.broken))
                }
            };
            missing.extend(lack.map(|lack| format!("{}: {lack}", service.app.name)));
        }
        missing
    }
}

/// What is wrong with the answers that the clients of a Service got, if anything is.
fn lack_of(service: &MixedService, tally: &Tally) -> Option<String> {
    if tally.sent == 0 || tally.answered() != tally.sent {
        return Some(format!("of {}: {:?}; {:?}", tally.sent, tally.outcomes, tally.unanswered));
    }
    let has_answered = |generation| {
        let revision = service.app.own_revision(generation);
        tally.pods_since.keys().any(|pod| pod.starts_with(&revision))
    };
    // Of fewer requests one revision may get all.
    let is_to_be_shared = service.clients == ServiceClients::Split && tally.sent >= SHARED_FROM;
    let is_whole = !is_to_be_shared || (has_answered(1) && has_answered(2));
    (!is_whole).then(|| format!("one of two revisions got none of {}: {:?}", tally.sent, tally.pods_since))
}
