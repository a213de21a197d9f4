//! The whole roll-over and back on twenty Services under load: contract §7.4, each step once over all of
//! them.

use std::time::Duration;

use serde_json::json;
use tests::bench::clock;
use tests::cluster::kubectl;

use crate::app::in_knative;
use crate::installing::{apply, folder, restoring_ebb_on_failure};
use crate::mixed_services::{IdleServices, MixedServices};
use crate::queue_proxies::have_queue_proxies;

/// A step that replaces all pods on a small machine. It only bounds how long a failing test takes.
const ALL_PODS_LIMIT: Duration = Duration::from_secs(180);

/// The Services, and the lines about requests that were not answered so far. All steps are gone through, so
/// that one run tells of every step.
struct RollOver {
    services: MixedServices,
    missing: Vec<String>,
}

impl RollOver {
    /// Runs a step while every Service has its clients.
    async fn under_load(&mut self, name: &str, idle: IdleServices, step: RollOverStep) {
        if idle == IdleServices::Woken {
            self.services.idle_ones_are_at_zero().await;
        }
        let begun = clock::now();
        let traffic = self.services.begin_traffic(idle).await;
        step.run(&self.services).await;
        let missing = traffic.end().await;
        println!("{name}: {:.1} s", clock::since(begun).as_secs_f64());
        for line in missing {
            // At once, too: a later step that fails would hide it.
            println!("{name}: {line}");
            self.missing.push(format!("{name}: {line}"));
        }
    }
}

/// A step of the contract's §7.4, or what is done between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RollOverStep {
    /// Nothing is changed: each Service is served in its way.
    Settled,
    ActivatorsIn,
    QueueProxiesIn,
    /// The traffic of a Service goes back to a revision that is at zero.
    TrafficBack,
    QueueProxiesOut,
    ActivatorsOut,
    /// Knative's manifest alone, and ebb's autoscaler again.
    AutoscalerOutAndIn,
}

impl RollOverStep {
    async fn run(self, services: &MixedServices) {
        match self {
            Self::Settled => {}
            Self::ActivatorsIn => apply("overlay-activator", &["activator"]).await,
            Self::QueueProxiesIn => {
                apply("overlay-queue-proxy", &[]).await;
                have_all_queue_proxies(services, "ebb-queue-proxy:test").await;
                // It ends with an error where anything differs.
                kubectl(&["diff", "-k", &folder("overlay-queue-proxy")]).await;
            }
            Self::TrafficBack => roll_back(services).await,
            Self::QueueProxiesOut => {
                apply("overlay-activator", &[]).await;
                have_all_queue_proxies(services, "knative-queue-proxy:test").await;
            }
            Self::ActivatorsOut => apply("overlay", &["activator"]).await,
            Self::AutoscalerOutAndIn => {
                apply("release", &["autoscaler"]).await;
                kubectl(&["diff", "-k", &folder("release")]).await;
                apply("overlay", &["autoscaler", "activator"]).await;
            }
        }
        services.are_served_their_way().await;
    }
}

async fn have_all_queue_proxies(services: &MixedServices, image: &str) {
    have_queue_proxies(&services.renewed().namespace, image, ALL_PODS_LIMIT).await;
}

/// As `kn service update --traffic` does: the first revision, which is at zero, gets all requests, and the
/// second one goes to zero.
async fn roll_back(services: &MixedServices) {
    let app = services.renewed();
    let [first, second] = [1, 2].map(|generation| app.own_revision(generation));
    app.has_count(&first, |count| count == 0).await;
    app.change_traffic(&json!([{"revisionName": first, "percent": 100}])).await;
    app.has_count(&second, |count| count == 0).await;
    app.has_count(&first, |count| count == 1).await;
}

/// Steps 2 and 4, which follow step 1, and the way back through all of them to step 1.
async fn there_and_back(mut roll_over: RollOver) {
    for (name, idle, step) in [
        ("beside Knative's activators", IdleServices::LeftAlone, RollOverStep::Settled),
        ("activators in", IdleServices::Woken, RollOverStep::ActivatorsIn),
        ("queue-proxies in", IdleServices::Woken, RollOverStep::QueueProxiesIn),
        ("traffic back", IdleServices::Woken, RollOverStep::TrafficBack),
        ("queue-proxies out", IdleServices::Woken, RollOverStep::QueueProxiesOut),
        ("activators out", IdleServices::Woken, RollOverStep::ActivatorsOut),
        ("autoscaler out and in", IdleServices::LeftAlone, RollOverStep::AutoscalerOutAndIn),
    ] {
        roll_over.under_load(name, idle, step).await;
    }
    assert!(roll_over.missing.is_empty(), "requests were lost:\n{}", roll_over.missing.join("\n"));
}

#[test]
fn twenty_services_lose_no_request_while_ebb_comes_in_and_leaves_again() {
    in_knative("knative-roll-over", async |namespace| {
        let services = MixedServices::apply(&namespace).await;
        assert_eq!(services.services.len(), 20);
        restoring_ebb_on_failure(there_and_back(RollOver { services, missing: Vec::new() })).await;
    });
}
