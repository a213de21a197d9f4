//! The whole platform in an installed Knative, before an API server that knows its kinds: what is watched,
//! and how the two objects of a revision are written.

use super::*;

const SERVERLESS_SERVICES: &str = "apis/networking.internal.knative.dev/v1alpha1/serverlessservices";
const POD_AUTOSCALERS: &str = "apis/autoscaling.internal.knative.dev/v1alpha1/podautoscalers";
const LEASES: &str = "apis/coordination.k8s.io/v1/leases";
const SYSTEM: &str = "knative-serving";

/// A platform in Knative's place, and its autoscaler's seat.
struct Place {
    server: ScriptedServer,
    facts: mpsc::Receiver<PlatformFact>,
    seat: Box<dyn Seat>,
    _platform: Arc<KubernetesPlatform>,
}

fn of_revision(name: &str) -> Value {
    json!({"serving.knative.dev/revision": name, "serving.knative.dev/revisionUID": format!("uid-of-{name}")})
}

fn revision_of(name: &str) -> RevisionName {
    RevisionName::new("shop", "revision", name).expect("a name")
}

async fn start(server: &ScriptedServer) -> Result<Arc<KubernetesPlatform>, StartError> {
    let uri = format!("http://{}", server.address).parse().expect("an address");
    let client = connection::client(kube::Config::new(uri)).expect("a client");
    let place = KnativePlace { address: "10.0.0.7".to_owned(), domain: "cluster.local".to_owned() };
    let config = KubernetesConfig {
        name: ReplicaName::new("autoscaler-1"),
        namespace: SYSTEM.to_owned(),
        buckets: 1,
        knative: Some(place),
        clock: Clock::start(),
    };
    KubernetesPlatform::start_with(client, config).await
}

impl Place {
    /// With the revision `hello-00001`, of one pod that is wanted and none that is there.
    async fn take() -> Self {
        let server = ScriptedServer::start().await;
        let (labels, name) = (of_revision("hello-00001"), "hello-00001-deployment");
        server.put(
            DEPLOYMENTS,
            json!({
                "metadata": {"name": name, "namespace": "shop", "labels": labels},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"serving.knative.dev/revisionUID": "uid-of-hello-00001"}},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "queue-proxy"}]}},
                },
            }),
        );
        let class = json!({"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev"});
        server.put(
            POD_AUTOSCALERS,
            json!({
                "apiVersion": "autoscaling.internal.knative.dev/v1alpha1", "kind": "PodAutoscaler",
                "metadata": {"name": "hello-00001", "namespace": "shop", "annotations": class},
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                    "protocolType": "http1"},
            }),
        );
        let platform = start(&server).await.expect("it starts");
        let Subscription { facts, seat, .. } = platform.subscribe(&ReplicaName::new("autoscaler-1"));
        Self { server, facts, seat, _platform: platform }
    }

    /// Waits until an object of this collection is as it should be, and returns what `read` makes of it.
    async fn wait<Found>(&self, collection: &str, read: impl Fn(&Value) -> Option<Found>) -> Found {
        let found = async {
            loop {
                if let Some(found) = self.server.objects(collection).iter().find_map(&read) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("{collection}: {:?}", self.server.objects(collection)))
    }
}

#[tokio::test]
async fn a_revisions_objects_are_written_under_knatives_lease_and_its_workload_is_told() {
    let mut place = Place::take().await;
    let lease = place.wait(LEASES, |lease| {
        (lease["metadata"]["name"] == "autoscaler-bucket-00-of-01").then(|| lease["spec"].clone())
    });
    let lease = lease.await;
    assert_eq!(lease["holderIdentity"], "autoscaler-1_10.0.0.7");
    // A candidate of Knative's waits for no less than 15 s.
    assert_eq!(lease["leaseDurationSeconds"], 15);
    let spec = place.wait(SERVERLESS_SERVICES, |service| Some(service["spec"].clone())).await;
    assert_eq!((&spec["mode"], &spec["numActivators"]), (&json!("Proxy"), &json!(2)));
    let status = place.wait(POD_AUTOSCALERS, |object| object.get("status").cloned()).await;
    assert_eq!((&status["desiredScale"], &status["serviceName"]), (&json!(-1), &json!("")));

    let told = async {
        loop {
            if let PlatformFact::RevisionChanged(facts) = place.facts.recv().await.expect("it goes on") {
                return facts;
            }
        }
    };
    let facts = tokio::time::timeout(PATIENCE, told).await.expect("it is told");
    assert_eq!((facts.name.clone(), facts.wanted), (revision_of("hello-00001"), PodCount::ONE));
}

#[tokio::test]
async fn a_spec_is_replaced_by_an_update_and_a_decision_stands_in_the_status() {
    let place = Place::take().await;
    let mut service = place.wait(SERVERLESS_SERVICES, |service| Some(service.clone())).await;
    // As the controller leaves it, with a field of its own beside ours.
    service["metadata"]["annotations"]["controller"] = json!("was here");
    service["status"] = json!({
        "serviceName": "hello-00001", "privateServiceName": "hello-00001-private",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T10:00:00Z"}],
    });
    place.server.put(SERVERLESS_SERVICES, service);
    place
        .wait(POD_AUTOSCALERS, |object| (object["status"]["serviceName"] == "hello-00001").then_some(()))
        .await;
    let decision = Decision { intended: Some(PodCount::new(4)), activators: PodCount::new(5), ..decision() };
    place.seat.decided(&revision_of("hello-00001"), &decision);
    // The route that was found is in force: only the number of activators is another.
    let changed = place.wait(SERVERLESS_SERVICES, |service| {
        (service["spec"]["numActivators"] == 5)
            .then(|| service["metadata"]["annotations"]["controller"].clone())
    });
    assert_eq!(changed.await, "was here");
    place.wait(POD_AUTOSCALERS, |object| (object["status"]["desiredScale"] == 4).then_some(())).await;
    let path =
        "/apis/networking.internal.knative.dev/v1alpha1/namespaces/shop/serverlessservices/hello-00001";
    assert!(place.server.asked("PATCH", path).is_empty(), "it may be updated, and not patched");
}

#[tokio::test]
async fn system_internal_tls_is_refused_at_start_by_name() {
    let server = ScriptedServer::start().await;
    let data = json!({"system-internal-tls": "Enabled"});
    server.put(
        "api/v1/configmaps",
        json!({"metadata": {"name": "config-network", "namespace": SYSTEM}, "data": data}),
    );
    let refused = start(&server).await.expect_err("peers would send TLS");
    assert!(refused.to_string().contains("system-internal-tls"), "{refused}");
}

/// Each object of a release names it, also the ConfigMap that is read at start anyway.
#[tokio::test]
async fn a_release_that_is_too_old_is_refused_at_start_by_name() {
    let server = ScriptedServer::start().await;
    let labels = json!({"app.kubernetes.io/version": "1.20.4"});
    server.put(
        "api/v1/configmaps",
        json!({"metadata": {"name": "config-network", "namespace": SYSTEM, "labels": labels}}),
    );
    let refused = start(&server).await.expect_err("its kinds may be others");
    assert!(refused.to_string().contains("Knative 1.20.4 is older than 1.21"), "{refused}");
}
