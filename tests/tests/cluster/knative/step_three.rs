//! ebb's queue-proxies in the place of Knative's, too: contract §6 and the last step of §7.4, and back to the
//! first one.

use tests::cluster::{PATIENCE, kubectl};
use tests::{BackgroundLoad, Load};

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};
use crate::installing::{apply, folder, restoring_ebb_on_failure};
use crate::queue_proxies::have_queue_proxies;

const PER_SECOND: u32 = 20;

/// Two apps: requests of the one go through activators always, those of the other reach its pods.
struct RolledApps {
    behind_activators: KnativeApp,
    direct: KnativeApp,
}

/// As an ingress sends requests: on a connection for each.
async fn load(app: &KnativeApp) -> Load {
    app.load(&KnativeApp::revision(1)).await.path("/?sleep=50").one_connection_each()
}

impl RolledApps {
    async fn are_ready(&self) {
        self.behind_activators.is_ready(1).await;
        self.direct.is_ready(1).await;
        self.direct.is_served_by_pods(&KnativeApp::revision(1)).await;
    }

    async fn have_queue_proxies(&self, image: &str) {
        have_queue_proxies(&self.behind_activators.namespace, image, PATIENCE).await;
        have_queue_proxies(&self.direct.namespace, image, PATIENCE).await;
    }

    async fn begin_traffic(&self) -> [BackgroundLoad; 2] {
        let loads = [load(&self.behind_activators).await, load(&self.direct).await];
        loads.map(|load| load.in_background(PER_SECOND))
    }
}

async fn assert_nothing_missing(traffic: [BackgroundLoad; 2]) {
    for load in traffic {
        load.end().await.assert_nothing_missing();
    }
}

/// Steps 2 and 4, a life at zero and back there, and step 1 again.
async fn in_and_out(apps: RolledApps) {
    let (app, revision) = (&apps.behind_activators, KnativeApp::revision(1));
    let traffic = apps.begin_traffic().await;
    apply("overlay-activator", &["activator"]).await;
    apply("overlay-queue-proxy", &[]).await;
    apps.have_queue_proxies("ebb-queue-proxy:test").await;
    assert_nothing_missing(traffic).await;
    // It ends with an error where anything differs.
    kubectl(&["diff", "-k", &folder("overlay-queue-proxy")]).await;

    app.has_count(&revision, |count| count == 0).await;
    load(app).await.one().await.assert_all_answered();

    let traffic = apps.begin_traffic().await;
    apply("overlay-activator", &[]).await;
    apps.have_queue_proxies("knative-queue-proxy:test").await;
    apply("overlay", &["activator"]).await;
    app.is_served_by_activators(&revision).await;
    assert_nothing_missing(traffic).await;
    kubectl(&["diff", "-k", &folder("overlay")]).await;
}

#[test]
fn ebbs_queue_proxies_come_in_and_leave_again_under_load() {
    in_knative("knative-step-three", async |namespace| {
        let through = KnativeAppPlan::default().scaled("target-burst-capacity", "-1");
        let behind_activators = through.apply(&namespace).await;
        namespace
            .beside("knative-step-three-direct", async |other| {
                let plan = KnativeAppPlan::default().scaled("target-burst-capacity", "0");
                let direct = plan.scaled("min-scale", "1").apply(&other).await;
                let apps = RolledApps { behind_activators, direct };
                apps.are_ready().await;
                restoring_ebb_on_failure(in_and_out(apps)).await;
            })
            .await;
    });
}
