//! What happens to the pods of a target, and what the metrics APIs say of them: by chance, but the same in
//! every run.

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::cluster::TestNamespace;

use super::dice::Dice;
use super::plan::Plan;
use crate::metrics_adapter::Answer;

/// What is measured, divided by its target: far off and near, within tolerance and on its edge.
const RATIOS_PERCENT: [u64; 14] = [0, 30, 50, 70, 89, 90, 95, 100, 105, 110, 111, 150, 220, 400];
const PODS_MAX: usize = 7;
/// Keeps a deleted pod there, as one that takes its time to end.
const FINALIZER: &str = "comparison.ebb.dev/held";

/// The pods of one target and their values.
pub(crate) struct Script {
    dice: Dice,
    api: Api<Pod>,
    name: String,
    namespace: String,
    /// As the API server has them.
    pub(crate) pods: Vec<Pod>,
    made: usize,
    /// Whether pods are deleted too. Kubernetes' pod garbage collector says `Failed` of one that is on no
    /// node whenever it comes round (every 20 s): among several metrics, each could see that or not.
    deletes: bool,
}

impl Script {
    pub(crate) async fn begin(namespace: &TestNamespace, plan: &Plan, deletes: bool) -> Self {
        let name = &plan.name;
        let seed =
            name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut script = Self {
            dice: Dice::new(seed),
            api: namespace.api(),
            name: name.clone(),
            namespace: namespace.name.clone(),
            pods: Vec::new(),
            made: 0,
            deletes,
        };
        for _ in 0..plan.pods {
            script.make_pod().await;
            let last = script.pods.len() - 1;
            script.write_status(last, "Running", Some("True")).await;
        }
        script
    }

    pub(crate) fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// As the API server has them now.
    pub(crate) async fn read_pods(&mut self) {
        let selected = ListParams::default().labels(&format!("app={}", self.name));
        self.pods = self.api.list(&selected).await.expect("pods can be listed").items;
    }

    /// The same pods with some of those `Failed` that the pod garbage collector has said it of since: each
    /// choice of them, the first being none.
    pub(crate) fn as_ended_since(&self, pods: &[Pod]) -> Vec<Vec<Pod>> {
        let mut lists = vec![pods.to_vec()];
        for (place, pod) in pods.iter().enumerate() {
            let since = self.pods.iter().find(|since| since.metadata.uid == pod.metadata.uid);
            let is_collected =
                |since: &&Pod| since.metadata.deletion_timestamp.is_some() && phase(since) == Some("Failed");
            let Some(since) = since.filter(is_collected).filter(|_| phase(pod) != Some("Failed")) else {
                continue;
            };
            let ended = lists.iter().map(|list| {
                let mut list = list.clone();
                list[place] = since.clone();
                list
            });
            lists.extend(ended.collect::<Vec<_>>());
        }
        lists
    }

    /// Something happens to one pod.
    pub(crate) async fn change_a_pod(&mut self) {
        let chosen = self.dice.below(self.pods.len().max(1));
        let happening = self.dice.below(10);
        if self.pods.is_empty() || (happening < 3 && self.pods.len() < PODS_MAX) {
            return self.make_pod().await;
        }
        let pod = &self.pods[chosen];
        let status = pod.status.clone().unwrap_or_default();
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        match (is_deleted || is_over, status.phase.as_deref(), ready.map(|ready| ready.status.as_str())) {
            (true, _, _) => self.remove_pod(chosen).await,
            (false, Some("Pending") | None, _) => self.write_status(chosen, "Running", Some("False")).await,
            (false, _, Some("False")) => self.write_status(chosen, "Running", Some("True")).await,
            (false, _, _) => match happening {
                3..6 => self.write_status(chosen, "Running", Some("False")).await,
                6 => self.write_status(chosen, "Running", Some("Unknown")).await,
                7 if self.pods.len() > 1 => self.write_status(chosen, "Failed", Some("False")).await,
                8 if self.pods.len() > 1 => self.write_status(chosen, "Succeeded", Some("False")).await,
                _ if self.deletes => self.delete_pod(chosen).await,
                _ => self.write_status(chosen, "Failed", Some("False")).await,
            },
        }
    }

    async fn make_pod(&mut self) {
        self.made += 1;
        let name = format!("{}-{}", self.name, self.made);
        // Every eighth says nothing of what it requests.
        let requests = match self.made % 8 {
            0 => json!({}),
            odd if odd % 2 == 1 => json!({"cpu": "200m", "memory": "128Mi"}),
            _ => json!({"cpu": "100m", "memory": "64Mi"}),
        };
        let container = |name: &str, requests: &Value| json!({"name": name, "image": "none", "resources": {"requests": requests}});
        let mut containers = vec![container("app", &requests)];
        if self.made.is_multiple_of(3) {
            containers.push(container("side", &json!({"cpu": "50m", "memory": "32Mi"})));
        }
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": self.name}},
            // It is not scheduled, so that the script alone says how it is.
            "spec": {"schedulerName": "nobody", "containers": containers, "automountServiceAccountToken": false},
        });
        let pod = serde_json::from_value(pod).expect("a Pod");
        self.pods.push(self.api.create(&PostParams::default(), &pod).await.expect("a pod can be made"));
    }

    async fn write_status(&mut self, index: usize, phase: &str, ready: Option<&str>) {
        let pod = &self.pods[index];
        let now = seconds(wall_now());
        let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
        let started = started.map_or_else(|| now.clone(), |time| time.0.to_string());
        let conditions: Vec<Value> = ready
            .into_iter()
            .map(|ready| json!({"type": "Ready", "status": ready, "lastTransitionTime": now}))
            .collect();
        let status = json!({"status": {"phase": phase, "startTime": started, "conditions": conditions}});
        let name = pod.metadata.name.clone().unwrap_or_default();
        let written = self.api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        self.pods[index] = written.expect("a pod's status can be written");
    }

    async fn delete_pod(&mut self, index: usize) {
        let name = self.pods[index].metadata.name.clone().unwrap_or_default();
        let held = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
        self.api.patch(&name, &PatchParams::default(), &held).await.expect("a pod can be held");
        self.api.delete(&name, &DeleteParams::default()).await.expect("a pod can be deleted");
        self.pods[index] = self.api.get(&name).await.expect("it is held");
    }

    async fn remove_pod(&mut self, index: usize) {
        let pod = self.pods.remove(index);
        self.free(&pod).await;
        let name = pod.metadata.name.unwrap_or_default();
        // One that was deleted has gone by itself.
        let _ = self.api.delete(&name, &DeleteParams::default()).await;
    }

    /// Pods that are deleted may go.
    pub(crate) async fn free_pods(&mut self) {
        self.read_pods().await;
        for pod in &self.pods {
            self.free(pod).await;
        }
    }

    async fn free(&self, pod: &Pod) {
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let name = pod.metadata.name.clone().unwrap_or_default();
        // It may be gone by now.
        let _ = self.api.patch(&name, &PatchParams::default(), &free).await;
    }

    /// What is said of one metric now: this quotient of what is measured and its target, in percent, or what
    /// comes by chance.
    pub(crate) fn answer(&mut self, metric: &Value, ratio: Option<u64>) -> Answer {
        if let Some(ratio) = ratio {
            return self.measured(metric, ratio);
        }
        match self.dice.below(100) {
            0..5 => return Answer::not_found("the script knows no such metric now"),
            5..8 => {
                return Answer::found(
                    &json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}),
                );
            }
            _ => {}
        }
        let ratio = *self.dice.one_of(&RATIOS_PERCENT);
        self.measured(metric, ratio)
    }

    fn measured(&mut self, metric: &Value, ratio: u64) -> Answer {
        match metric["type"].as_str().unwrap_or_default() {
            "Resource" | "ContainerResource" => self.usage(ratio),
            "Pods" => self.of_pods(ratio),
            "Object" => Answer::found(&json!({
                "kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {},
                "items": [value(&json!({"kind": "Service", "name": "front"}), "hits", ratio * 1000)]})),
            _ => self.external(ratio),
        }
    }

    /// Of pods that have a sample, and now and then of one that is gone.
    fn measured_pods(&mut self) -> Vec<String> {
        let mut names: Vec<String> = self.pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        names.retain(|_| self.dice.percent(85));
        if self.dice.percent(6) {
            names.push(format!("{}-gone", self.name));
        }
        names
    }

    /// As metrics-server says it: targets are about 100 m of a core and 100 Mi of memory.
    fn usage(&mut self, ratio: u64) -> Answer {
        let names = self.measured_pods();
        let second = jiff::SignedDuration::from_secs(1);
        let now = wall_now();
        let items: Vec<Value> = names
            .iter()
            .map(|name| {
                let spread = u64::try_from(self.dice.below(21)).unwrap_or_default();
                let cpu = format!("{}n", ratio * 1_000_000 + spread * 777_777);
                let memory = format!("{}Ki", ratio * 1024 + spread * 100);
                let age = i32::try_from(self.dice.below(4)).unwrap_or_default();
                let window = *self.dice.one_of(&["1s", "4.5s", "20s"]);
                let mut containers = vec![json!({"name": "app", "usage": {"cpu": cpu, "memory": memory}})];
                if self.dice.percent(20) {
                    containers
                        .push(json!({"name": "side", "usage": {"cpu": "12345678n", "memory": "1500Ki"}}));
                } else if self.dice.percent(5) {
                    containers.push(json!({"name": "side", "usage": {"memory": "1500Ki"}}));
                }
                json!({"metadata": {"name": name, "namespace": self.namespace, "labels": {"app": self.name}},
                    "timestamp": seconds(now - second * age), "window": window, "containers": containers})
            })
            .collect();
        Answer::found(
            &json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}),
        )
    }

    fn of_pods(&mut self, ratio: u64) -> Answer {
        let names = self.measured_pods();
        let items: Vec<Value> = names
            .iter()
            .map(|name| {
                let spread = u64::try_from(self.dice.below(9)).unwrap_or_default();
                value(
                    &json!({"kind": "Pod", "apiVersion": "/v1", "name": name}),
                    "packets",
                    ratio * 100 + spread * 7,
                )
            })
            .collect();
        Answer::found(
            &json!({"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {}, "items": items}),
        )
    }

    fn external(&mut self, ratio: u64) -> Answer {
        let series = 1 + self.dice.below(2);
        let item = |milli: u64| json!({"metricName": "jobs", "metricLabels": {}, "timestamp": seconds(wall_now()), "value": format!("{milli}m")});
        let items: Vec<Value> = match series {
            1 => vec![item(ratio * 1000)],
            _ => vec![item(ratio * 700), item(ratio * 300)],
        };
        Answer::found(
            &json!({"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {}, "items": items}),
        )
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn value(described: &Value, metric: &str, milli: u64) -> Value {
    json!({"describedObject": described, "metric": {"name": metric}, "timestamp": seconds(wall_now()), "value": format!("{milli}m")})
}

/// Times of the API are whole seconds.
fn seconds(at: WallTime) -> String {
    jiff::Timestamp::from_second(at.as_second()).unwrap_or_default().to_string()
}

/// What time it is, by the one place that reads it.
pub(crate) fn wall_now() -> WallTime {
    WallTime::try_from(runtime::wall_time()).unwrap_or_default()
}
