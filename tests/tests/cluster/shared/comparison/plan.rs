//! Twenty autoscalers side by side: every kind of metric and target, behavior of every kind.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tests::cluster::TestNamespace;
use vocabulary::PodCount;

/// The kind of our targets: a count without a controller, with pods that the script makes.
const GROUP: &str = "comparison.ebb.dev";
/// What objects' numbers are about: kind and name.
const FRONT: (&str, &str) = ("Service", "front");
/// The API server refuses more, so that a count cannot be written now and then.
pub(crate) const COUNT_MAX: PodCount = PodCount::new(10);

/// One autoscaler of the comparison: its document and its pods.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// The spec of `autoscaling/v2`, without `scaleTargetRef`.
    pub(crate) spec: Value,
    pub(crate) pods: usize,
    /// Whether another client writes the count now and then.
    pub(crate) is_disturbed: bool,
}

impl Plan {
    /// One that only shows whether targets of its kind are known.
    pub(crate) fn probe() -> Self {
        let spec = json!({"maxReplicas": 1, "metrics": [external("probe", &json!({"type": "Value", "value": "1"}))]});
        Self { name: "probe".to_owned(), spec, pods: 0, is_disturbed: false }
    }
}

pub(crate) fn autoscalers(namespace: &TestNamespace) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("autoscaling", "v2", "HorizontalPodAutoscaler");
    let resource = ApiResource::from_gvk_with_plural(&kind, "horizontalpodautoscalers");
    Api::namespaced_with(namespace.client.clone(), &namespace.name, &resource)
}

pub(crate) fn targets(namespace: &TestNamespace) -> Api<DynamicObject> {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", "Target"), "targets");
    Api::namespaced_with(namespace.client.clone(), &namespace.name, &resource)
}

pub(crate) fn target_api_version() -> String {
    format!("{GROUP}/v1")
}

/// Makes the kind of our targets known, and leaves it there for the next time.
pub(crate) async fn know_targets(client: &Client) {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("targets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": "Target", "plural": "targets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "maximum": COUNT_MAX.value()}}}, "status": free}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector"}},
            }],
        },
    });
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let parameters = PatchParams::apply("tests").force();
    let name = format!("targets.{GROUP}");
    api.patch(&name, &parameters, &Patch::Apply(definition)).await.expect("a kind can be made known");
    tests::eventually("the API server serves targets", tests::cluster::PATIENCE, || async {
        let definition = api.get(&name).await.map_err(|error| error.to_string())?;
        let conditions = definition.data["status"]["conditions"].to_string();
        if conditions.contains("InitialNamesAccepted") { Ok(()) } else { Err(conditions) }
    })
    .await;
}

fn resource(name: &str, target: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": name, "target": target}})
}

fn of_container(name: &str, target: &Value) -> Value {
    json!({"type": "ContainerResource", "containerResource": {"name": name, "container": "app", "target": target}})
}

fn packets() -> Value {
    json!({"type": "Pods", "pods": {"metric": {"name": "packets", "selector": {"matchLabels": {"port": "http"}}}, "target": average("10")}})
}

fn object((kind, described): (&str, &str), name: &str, target: &Value) -> Value {
    let described = json!({"apiVersion": "v1", "kind": kind, "name": described});
    json!({"type": "Object", "object": {"metric": {"name": format!("hits-{name}")}, "describedObject": described, "target": target}})
}

fn external(name: &str, target: &Value) -> Value {
    json!({"type": "External", "external": {"metric": {"name": format!("jobs-{name}")}, "target": target}})
}

fn utilization(percent: u32) -> Value {
    json!({"type": "Utilization", "averageUtilization": percent})
}

fn average(value: &str) -> Value {
    json!({"type": "AverageValue", "averageValue": value})
}

fn total(value: &str) -> Value {
    json!({"type": "Value", "value": value})
}

fn policy(kind: &str, value: u32, period: u32) -> Value {
    json!({"type": kind, "value": value, "periodSeconds": period})
}

/// A row of the table: bounds, metrics, behavior.
type Row = (u32, u32, Vec<Value>, Option<Value>);

/// All of them. Windows and periods are a few passes long.
pub(crate) fn plans(namespace: &str) -> Vec<Plan> {
    let rows = [of_resources(), of_numbers_of_pods(), of_totals(), of_several(), of_rest(namespace)].concat();
    let plan = |(number, (min, max, metrics, behavior)): (usize, Row)| {
        let mut spec = json!({"minReplicas": min, "maxReplicas": max, "metrics": metrics});
        if let Some(behavior) = behavior {
            spec["behavior"] = behavior;
        }
        let is_disturbed = matches!(number, 18 | 19);
        Plan { name: format!("h{number:02}"), spec, pods: 2 + number % 3, is_disturbed }
    };
    (1..).zip(rows).map(plan).collect()
}

/// What pods use of CPU and memory.
fn of_resources() -> Vec<Row> {
    let (one, fast) = (policy("Pods", 1, 3), policy("Percent", 50, 4));
    vec![
        (1, 8, vec![resource("cpu", &utilization(50))], None),
        (
            2,
            9,
            vec![resource("cpu", &utilization(80))],
            Some(json!({"scaleDown": {"stabilizationWindowSeconds": 2}})),
        ),
        (
            1,
            9,
            vec![resource("cpu", &average("100m"))],
            Some(
                json!({"scaleUp": {"policies": [one]}, "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [policy("Pods", 1, 2)]}}),
            ),
        ),
        (
            1,
            20,
            vec![resource("memory", &average("100Mi"))],
            Some(
                json!({"scaleUp": {"policies": [fast]}, "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [policy("Percent", 30, 3)]}}),
            ),
        ),
        (
            1,
            6,
            vec![of_container("cpu", &utilization(60))],
            Some(json!({"scaleDown": {"selectPolicy": "Disabled"}})),
        ),
        (
            1,
            9,
            vec![of_container("memory", &average("100Mi"))],
            Some(
                json!({"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"stabilizationWindowSeconds": 1}}),
            ),
        ),
    ]
}

/// A number that each pod has.
fn of_numbers_of_pods() -> Vec<Row> {
    vec![
        (
            1,
            9,
            vec![packets()],
            Some(
                json!({"scaleUp": {"stabilizationWindowSeconds": 3}, "scaleDown": {"stabilizationWindowSeconds": 5}}),
            ),
        ),
        (
            1,
            9,
            vec![packets()],
            Some(
                json!({"scaleUp": {"tolerance": "300m"}, "scaleDown": {"tolerance": "50m", "stabilizationWindowSeconds": 0}}),
            ),
        ),
    ]
}

/// Numbers of objects and from outside, to zero too.
fn of_totals() -> Vec<Row> {
    vec![
        (1, 12, vec![object(FRONT, "h09", &total("100"))], None),
        (
            3,
            30,
            vec![object(FRONT, "h10", &average("20"))],
            Some(
                json!({"scaleUp": {"selectPolicy": "Min", "policies": [policy("Pods", 2, 3), policy("Percent", 100, 5)]},
                "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min", "policies": [policy("Pods", 3, 2), policy("Percent", 20, 4)]}}),
            ),
        ),
        (
            1,
            40,
            vec![external("h11", &total("100"))],
            Some(json!({"scaleUp": {"policies": [policy("Pods", 4, 2), policy("Percent", 10, 6)]},
                "scaleDown": {"stabilizationWindowSeconds": 4, "policies": [policy("Pods", 4, 3), policy("Percent", 10, 6)]}})),
        ),
        (
            0,
            6,
            vec![external("h12", &average("20"))],
            Some(json!({"scaleDown": {"stabilizationWindowSeconds": 2}})),
        ),
        (
            0,
            9,
            vec![resource("cpu", &utilization(50)), external("h13", &average("20"))],
            Some(json!({"scaleDown": {"stabilizationWindowSeconds": 1}})),
        ),
    ]
}

/// Several metrics, of which some fail.
fn of_several() -> Vec<Row> {
    vec![
        (1, 9, vec![resource("cpu", &utilization(50)), packets(), object(FRONT, "h14", &total("100"))], None),
        (
            2,
            9,
            vec![packets(), external("h15", &total("100"))],
            Some(json!({"scaleDown": {"stabilizationWindowSeconds": 0}})),
        ),
        (1, 9, vec![resource("cpu", &utilization(70)), resource("memory", &average("100Mi"))], None),
    ]
}

/// A namespace, counts that another client writes, and all kinds together.
fn of_rest(namespace: &str) -> Vec<Row> {
    vec![
        (
            1,
            15,
            vec![object(("Namespace", namespace), "h17", &total("100"))],
            Some(json!({"scaleUp": {"stabilizationWindowSeconds": 2}})),
        ),
        (
            2,
            9,
            vec![external("h18", &total("100"))],
            Some(json!({"scaleDown": {"stabilizationWindowSeconds": 1, "policies": [policy("Pods", 1, 2)]}})),
        ),
        (1, 9, vec![resource("cpu", &utilization(50))], None),
        (
            1,
            10,
            vec![
                resource("cpu", &average("100m")),
                of_container("memory", &average("100Mi")),
                packets(),
                object(FRONT, "h20", &average("20")),
                external("h20", &average("20")),
            ],
            Some(
                json!({"scaleUp": {"stabilizationWindowSeconds": 4, "tolerance": "0"}, "scaleDown": {"stabilizationWindowSeconds": 4, "tolerance": "500m"}}),
            ),
        ),
    ]
}
