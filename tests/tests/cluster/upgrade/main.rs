//! ebb is upgraded from the version before it, under load, on a cluster where
//! `tests/cluster/install-previous` has installed that one.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tests::cluster::{
    PATIENCE, RequestPath, SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace, kubectl,
};
use tests::{asked_until, eventually};

const AUTOSCALERS: usize = 2;
const PREVIOUS: &str = "previous";
const PRESENT: &str = "test";
/// How long the rollout of autoscalers stands still with each version deciding about one bucket.
const BOTH_VERSIONS_SECONDS: u32 = 30;

/// The images' tags of a component's pods that do not end, without repeats.
async fn tags_of(namespace: &TestNamespace, component: &str) -> BTreeSet<String> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let selected = ListParams::default().labels(&format!("app.kubernetes.io/component={component}"));
    let pods = pods.list(&selected).await.expect("pods can be listed").items;
    pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).flat_map(tags).collect()
}

fn tags(pod: &Pod) -> Vec<String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .filter_map(|container| Some(container.image.as_ref()?.rsplit_once(':')?.1.to_owned()))
        .collect()
}

/// The tags of those who decide, bucket by bucket.
async fn tags_of_owners(namespace: &TestNamespace) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let mut found = Vec::new();
    for owner in namespace.bucket_owners().await.values() {
        // One that has just left may have no pod any more.
        let pod = pods.get_opt(owner).await.expect("pods can be read");
        found.extend(pod.iter().flat_map(tags));
    }
    found.sort();
    found
}

/// The image of the queue-proxy in a workload's pods.
async fn sidecars_of(namespace: &TestNamespace, workload: &Workload) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in workload.pod_names().await {
        let pod = namespace.api::<Pod>().get_opt(&name).await.expect("pods can be read");
        let containers = pod.and_then(|pod| pod.spec).map(|spec| spec.containers).unwrap_or_default();
        found.extend(
            containers
                .into_iter()
                .filter(|container| container.name == "queue-proxy")
                .filter_map(|container| container.image),
        );
    }
    found
}

/// Two buckets, of which each autoscaler has one. A version that gives none to who has none shares them only
/// when all start together, and then not every time.
async fn share_buckets(namespace: &TestNamespace) {
    namespace.set_buckets(2).await;
    let are_shared = async || {
        let owners: BTreeSet<_> = namespace.bucket_owners().await.into_values().collect();
        if owners.len() == AUTOSCALERS { Ok(()) } else { Err(format!("{owners:?}")) }
    };
    for _ in 0..10 {
        if asked_until(Duration::from_secs(20), are_shared).await.is_ok() {
            return;
        }
        for count in ["0", "2"] {
            kubectl(&["-n", SYSTEM, "scale", "deployment/autoscaler", &format!("--replicas={count}")]).await;
            kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/autoscaler", "--timeout=90s"]).await;
        }
    }
    panic!("one autoscaler always has both buckets: {:?}", namespace.bucket_owners().await);
}

/// A workload that the injector of whichever version is there gives its queue-proxies.
async fn kept(namespace: &TestNamespace, path: RequestPath) -> Workload {
    let plan = WorkloadPlan::new(path.name()).through_webhook().by(path);
    let workload = plan.annotated("autoscaling.knative.dev/min-scale", "1").create(namespace).await;
    workload.has_pods(1).await;
    workload
}

/// Wakes both, which sleep in a bucket each, and waits until they sleep again.
async fn wake_and_rest([first, second]: &[Workload; 2]) {
    let (of_first, of_second) = (first.load(), second.load());
    let (of_first, of_second) = tokio::join!(of_first.burst(5), of_second.burst(5));
    of_first.assert_all_answered();
    of_second.assert_all_answered();
    tokio::join!(first.has_pods(0), second.has_pods(0));
}

/// The activators' ports before each.
async fn ports_of(workloads: &[&Workload]) -> Vec<Vec<u16>> {
    let mut ports = Vec::new();
    for workload in workloads {
        ports.push(workload.activator_ports().await);
    }
    ports
}

/// Waits until an autoscaler of the present version has signed all their slices; no Event calls one forged.
async fn all_are_signed(workloads: &[&Workload]) {
    for workload in workloads {
        eventually("its slices are signed", PATIENCE, || async {
            let slices = workload.slices().await;
            let proofs = slices.iter().filter(|slice| {
                let annotations = slice.metadata.annotations.as_ref();
                annotations.is_some_and(|all| all.contains_key("ebb.dev/activator-ports-proof"))
            });
            if proofs.count() == slices.len() { Ok(()) } else { Err(format!("{slices:?}")) }
        })
        .await;
        let reasons = workload.events().await.into_iter().filter_map(|event| event.reason);
        assert_eq!(reasons.filter(|reason| reason == "ForgedSlice").count(), 0);
    }
}

/// What the version before reads and the present one warns of, by name: keys that are retired, and a
/// hexadecimal number.
const RETIRED: [(&str, &str); 6] = [
    ("hpa-tolerance-by-distance", "true"),
    ("hpa-on-target-keeps-count", "true"),
    ("hpa-none-ready-keeps-count", "true"),
    ("hpa-ignore-terminating-pods", "true"),
    ("hpa-lacking-requests-are-missing", "true"),
    ("activator-capacity", "0x1p7"),
];

async fn write_retired_settings() {
    let data: serde_json::Map<String, serde_json::Value> =
        RETIRED.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let patch = serde_json::json!({"data": data}).to_string();
    kubectl(&["-n", SYSTEM, "patch", "configmap/config-autoscaler", "--type=merge", "-p", &patch]).await;
}

/// The present autoscalers read the ConfigMap with a warning for each retired setting, and refuse nothing.
async fn retired_settings_are_warned_of() {
    eventually("each retired setting has a warning", PATIENCE, || async {
        let log = kubectl(&["-n", SYSTEM, "logs", "deployment/autoscaler", "--all-pods", "--tail=-1"]).await;
        let has_warning = |key: &str| {
            log.lines().any(|line| line.contains(key) && line.contains("is retired and has no effect"))
        };
        let missing: Vec<&str> =
            RETIRED.iter().map(|(key, _)| *key).filter(|key| !has_warning(key)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} in {log:.4000}")) }
    })
    .await;
}

/// `kubectl apply -k`, and nothing else; autoscalers wait in the midst of their rollout.
async fn begin_upgrade() {
    let waits = format!(r#"{{"spec": {{"paused": true, "minReadySeconds": {BOTH_VERSIONS_SECONDS}}}}}"#);
    kubectl(&["-n", SYSTEM, "patch", "deployment/autoscaler", "-p", &waits]).await;
    // Those that are there must have been ready for so long as well, or they count as broken and go at once.
    let available = format!("--for=jsonpath={{.status.availableReplicas}}={AUTOSCALERS}");
    kubectl(&["-n", SYSTEM, "wait", "deployment/autoscaler", &available, "--timeout=2m"]).await;
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/deploy");
    kubectl(&["apply", "-k", deploy.to_str().expect("its path is text")]).await;
    // A new one is there before an old one leaves, so it is the new one that has no bucket yet and takes the
    // one that becomes free.
    let one_by_one = r#"{"spec": {"paused": false, "strategy": {"rollingUpdate": {"maxUnavailable": 0}}}}"#;
    kubectl(&["-n", SYSTEM, "patch", "deployment/autoscaler", "-p", one_by_one]).await;
}

async fn end_upgrade(namespace: &TestNamespace) {
    for component in ["injector", "activator", "autoscaler"] {
        let deployment = format!("deployment/{component}");
        kubectl(&["-n", SYSTEM, "rollout", "status", &deployment, "--timeout=3m"]).await;
        eventually(&format!("{component}s are of the present version"), PATIENCE, || async {
            let tags = tags_of(namespace, component).await;
            if tags == BTreeSet::from([PRESENT.to_owned()]) { Ok(()) } else { Err(format!("{tags:?}")) }
        })
        .await;
    }
    let at_once = r#"{"spec": {"minReadySeconds": 0}}"#;
    kubectl(&["-n", SYSTEM, "patch", "deployment/autoscaler", "-p", at_once]).await;
}

#[test]
fn from_the_version_before_under_load_with_each_version_deciding_about_a_bucket_and_nothing_is_lost() {
    in_namespace("upgrade", async |namespace| {
        for component in ["autoscaler", "activator", "injector"] {
            let tags = tags_of(&namespace, component).await;
            let expected = BTreeSet::from([PREVIOUS.to_owned()]);
            assert_eq!(tags, expected, "{component}: tests/cluster/install-previous comes first");
        }
        write_retired_settings().await;
        share_buckets(&namespace).await;
        let direct = kept(&namespace, RequestPath::Direct).await;
        let through = kept(&namespace, RequestPath::ThroughActivator).await;
        let [first, second] = namespace.plans_in_each_bucket("asleep").map(WorkloadPlan::through_webhook);
        let asleep = [first.create(&namespace).await, second.create(&namespace).await];
        // Nodes may hear of a new Service later than its pods are ready.
        tokio::join!(asleep[0].takes_connections(), asleep[1].takes_connections());
        wake_and_rest(&asleep).await;
        let all = [&direct, &through, &asleep[0], &asleep[1]];
        let ports = ports_of(&all).await;
        let loads = [&direct, &through].map(|workload| workload.load().path("/?sleep=100").in_background(20));

        begin_upgrade().await;
        eventually("each version decides about a bucket", PATIENCE, || async {
            let tags = tags_of_owners(&namespace).await;
            if tags == [PREVIOUS, PRESENT] { Ok(()) } else { Err(format!("{tags:?}")) }
        })
        .await;
        wake_and_rest(&asleep).await;
        end_upgrade(&namespace).await;
        namespace.settled_owner().await;
        retired_settings_are_warned_of().await;
        // Slices of the version before are believed once, and signed.
        assert_eq!(ports_of(&all).await, ports, "no port of activators is another");
        all_are_signed(&all).await;
        wake_and_rest(&asleep).await;
        assert_eq!(ports_of(&all).await, ports, "nor later");

        // Pods keep the queue-proxy that they were made with, and those of both versions are served.
        let old = BTreeSet::from([format!("ebb-queue-proxy:{PREVIOUS}")]);
        assert_eq!(sidecars_of(&namespace, &direct).await, old);
        for workload in [&direct, &through] {
            workload.restart().await;
            eventually("new pods have the present queue-proxy, and old ones are gone", PATIENCE, || async {
                let present = BTreeSet::from([format!("ebb-queue-proxy:{PRESENT}")]);
                let sidecars = sidecars_of(&namespace, workload).await;
                if sidecars == present { Ok(()) } else { Err(format!("{sidecars:?}")) }
            })
            .await;
            workload.has_pods(1).await;
        }
        for load in loads {
            load.end().await.assert_nothing_missing();
        }
        namespace.set_buckets(1).await;
        wake_and_rest(&asleep).await;
    });
}
