//! Each value of the chart, changed once, and the same change as a patch of the kustomization.

use serde_json::{Value, json};

/// The version of the workspace, which images have as their tag.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The Deployments, by whose names their values go.
pub(crate) const PROGRAMS: [&str; 3] = ["autoscaler", "activator", "injector"];

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// A value that is not its default, and the fields of a kustomization that say the same.
pub(crate) struct ValueChange {
    /// The path of the value, with dots.
    pub(crate) path: String,
    pub(crate) values: Value,
    pub(crate) patches: Vec<Value>,
    pub(crate) images: Vec<Value>,
}

/// The change of one value to another one.
fn change(path: &str, value: Value) -> ValueChange {
    let nested = path.rsplit('.').fold(value, |inner, name| json!({name: inner}));
    ValueChange { path: path.to_owned(), values: nested, patches: Vec::new(), images: Vec::new() }
}

impl ValueChange {
    fn patched(mut self, kind: &str, name: &str, operations: &Value) -> Self {
        self.patches.push(json!({"target": {"kind": kind, "name": name}, "patch": operations.to_string()}));
        self
    }

    /// The same operation on each Deployment.
    fn patched_everywhere(self, operations: &Value) -> Self {
        PROGRAMS.iter().fold(self, |change, program| change.patched("Deployment", program, operations))
    }

    fn without(self, api: &str, kind: &str, name: &str) -> Self {
        let deletion =
            json!({"$patch": "delete", "apiVersion": api, "kind": kind, "metadata": {"name": name}});
        self.patched(kind, name, &deletion)
    }

    fn with_image(mut self, image: Value) -> Self {
        self.images.push(image);
        self
    }

    fn with_queue_proxy(self, image: &str) -> Self {
        let path = format!("{CONTAINER}/env/3/value");
        let operations = json!([
            {"op": "test", "path": format!("{CONTAINER}/env/3/name"), "value": "QUEUE_PROXY_IMAGE"},
            {"op": "replace", "path": path, "value": image},
        ]);
        self.patched("Deployment", "injector", &operations)
    }
}

fn operation(name: &str, path: &str, value: &Value) -> Value {
    json!([{"op": name, "path": path, "value": value}])
}

/// All values but the keys of the ConfigMaps.
pub(crate) fn changes() -> Vec<ValueChange> {
    let mut all = images();
    all.extend(PROGRAMS.iter().flat_map(|program| of_program(program)));
    let buckets = json!({"name": "AUTOSCALER_BUCKETS", "value": "2"});
    all.push(change("autoscaler.buckets", json!(2)).patched(
        "Deployment",
        "autoscaler",
        &operation("add", &format!("{CONTAINER}/env/-"), &buckets),
    ));
    all.extend(priority_class());
    let policies = change("networkPolicies.enabled", json!(false));
    all.push(
        PROGRAMS
            .iter()
            .fold(policies, |change, name| change.without("networking.k8s.io/v1", "NetworkPolicy", name)),
    );
    all.push(change("namespace.create", json!(true)));
    all
}

fn images() -> Vec<ValueChange> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let policy = operation("add", &format!("{CONTAINER}/imagePullPolicy"), &json!("Always"));
    let secrets = json!([{"name": "registry"}]);
    let pull_secrets = operation("add", &format!("{POD}/imagePullSecrets"), &secrets);
    vec![
        change("images.registry", json!("r.example:5000/a/"))
            .with_image(json!({"name": "ebb", "newName": "r.example:5000/a/ebb"}))
            .with_queue_proxy(&format!("r.example:5000/a/ebb-queue-proxy:{VERSION}")),
        change("images.tag", json!("9.9"))
            .with_image(json!({"name": "ebb", "newTag": "9.9"}))
            .with_queue_proxy("ebb-queue-proxy:9.9"),
        change("images.ebb", json!(format!("r.example/x@{digest}")))
            .with_image(json!({"name": "ebb", "newName": "r.example/x", "digest": digest})),
        change("images.queueProxy", json!("r.example/y:1")).with_queue_proxy("r.example/y:1"),
        change("images.pullPolicy", json!("Always")).patched_everywhere(&policy),
        change("images.pullSecrets", secrets).patched_everywhere(&pull_secrets),
    ]
}

fn of_program(program: &str) -> Vec<ValueChange> {
    let of = |name: &str, value: &Value, operations: &Value| {
        change(&format!("{program}.{name}"), value.clone()).patched("Deployment", program, operations)
    };
    let selector = json!({"disk": "ssd"});
    let tolerations = json!([{"key": "only", "operator": "Equal", "value": "ebb", "effect": "NoSchedule"}]);
    let resources = json!({"limits": {"memory": "1Gi"}});
    let memory = format!("{CONTAINER}/resources/limits/memory");
    let no_count = json!([{"op": "remove", "path": "/spec/replicas"}]);
    vec![
        of("replicas", &json!(5), &operation("replace", "/spec/replicas", &json!(5))),
        of("replicas", &Value::Null, &no_count),
        of("resources", &resources, &operation("replace", &memory, &json!("1Gi"))),
        of("nodeSelector", &selector, &operation("add", &format!("{POD}/nodeSelector"), &selector)),
        of("tolerations", &tolerations, &operation("add", &format!("{POD}/tolerations"), &tolerations)),
    ]
}

fn priority_class() -> Vec<ValueChange> {
    const API: &str = "scheduling.k8s.io/v1";
    const KIND: &str = "PriorityClass";
    const NAME: &str = "ebb-control-plane";
    let of_pods = format!("{POD}/priorityClassName");
    let named = change("priorityClass.name", json!("other"));
    vec![
        change("priorityClass.create", json!(false)).without(API, KIND, NAME),
        named
            .patched(KIND, NAME, &operation("replace", "/metadata/name", &json!("other")))
            .patched_everywhere(&operation("replace", &of_pods, &json!("other"))),
        change("priorityClass.name", json!(""))
            .without(API, KIND, NAME)
            .patched_everywhere(&json!([{"op": "remove", "path": of_pods}])),
        change("priorityClass.value", json!(1_000_001)).patched(
            KIND,
            NAME,
            &operation("replace", "/value", &json!(1_000_001)),
        ),
    ]
}

/// One key of a ConfigMap, by the name that the ConfigMap has behind `config-`.
pub(crate) fn key_change(section: &str, key: &str) -> ValueChange {
    let operations = operation("add", &format!("/data/{key}"), &json!("7"));
    let set = change(&format!("config.{section}"), json!({key: "7"}));
    set.patched("ConfigMap", &format!("config-{section}"), &operations)
}
