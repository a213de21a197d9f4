//! Services in the shapes that public manifests have, made anew: the schema takes those that the reader of
//! manifests takes, and a fault of form is a fault to both.

use std::collections::BTreeSet;

use platform_local::{ImageEngine, ImageSettings, ImageSupport, ManifestSource};
use serde_json::{Value, json};

use super::schema;
use super::validator::faults;

/// The number of shapes that are made.
const SHAPES: u64 = 250;

/// Choices that follow from the number of a shape, by the series of numbers `SplitMix64`.
struct Choices(u64);

impl Choices {
    /// One of a list; null stands for a field that is left out.
    fn one(&mut self, options: Value) -> Value {
        let Value::Array(mut options) = options else { panic!("options are a list") };
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let count = u64::try_from(options.len()).expect("a handful");
        let at = usize::try_from((mixed ^ (mixed >> 31)) % count).expect("below their number");
        options.swap_remove(at)
    }
}

/// A map of those fields that are not null.
fn map<const FIELDS: usize>(fields: [(&str, Value); FIELDS]) -> Value {
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Puts a value into a document, where maps on the way to it are made.
fn put(document: &mut Value, path: &str, value: Value) {
    let mut at = document;
    for part in path.split('/') {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part],
        };
    }
    *at = value;
}

fn probe(choices: &mut Choices) -> Value {
    choices.one(json!([
        null,
        {"tcpSocket": {"port": 0}},
        {"httpGet": {"path": "/healthz"}},
        {"httpGet": {"path": "/", "port": 0, "scheme": "HTTP"}, "initialDelaySeconds": 10},
        {"httpGet": {"httpHeaders": [{"name": "x-probe", "value": "1"}]}, "failureThreshold": 30},
        {"grpc": {"service": "liveness"}, "timeoutSeconds": 2, "successThreshold": 1},
        {"exec": {"command": ["cat", "/tmp/healthy"]}, "periodSeconds": 5},
    ]))
}

/// Fields of a container, without the command, the image and the ports.
fn container(choices: &mut Choices) -> Value {
    map([
        ("args", choices.one(json!([null, [], ["--verbose"], ["--mode", "production"]]))),
        (
            "env",
            choices.one(json!([
                null,
                [],
                [{"name": "TARGET", "value": "World"}],
                [{"name": "EMPTY"}, {"name": "ALSO_EMPTY", "value": ""}],
                [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "k", "key": "k", "optional": true}}}],
            ])),
        ),
        (
            "envFrom",
            choices.one(json!([
                null,
                [{"configMapRef": {"name": "settings", "optional": true}}],
                [{"prefix": "DB_", "secretRef": {"name": "database", "optional": true}}],
            ])),
        ),
        ("imagePullPolicy", choices.one(json!([null, "Always", "IfNotPresent"]))),
        (
            "resources",
            choices.one(json!([
                null,
                {},
                {"requests": {"cpu": "100m", "memory": "64Mi"}},
                {"limits": {"cpu": 1, "memory": "512Mi"}},
                {"requests": {"cpu": 0.5}, "limits": {"cpu": "2", "memory": "1Gi"}},
                {"limits": null},
            ])),
        ),
        (
            "securityContext",
            choices.one(json!([
                null,
                {},
                {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true},
                {"readOnlyRootFilesystem": true, "seccompProfile": {"type": "RuntimeDefault"}},
            ])),
        ),
        ("workingDir", choices.one(json!([null, null, "/tmp"]))),
    ])
}

/// One container, or one with a port and one beside it.
fn containers(choices: &mut Choices) -> Value {
    let mut app = container(choices);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = probe(choices);
        if !probe.is_null() {
            app[name] = probe;
        }
    }
    let command = json!({"command": ["ebb", "sample-app"]});
    let image = json!({"image": "ghcr.io/example/hello:1.2"});
    let both = json!({"image": "docker.io/example/hello@sha256:00ff", "command": ["ebb"]});
    let ports = json!([
        [{"containerPort": 8080}],
        [{"name": "h2c", "containerPort": 9000}],
        [{"name": "http1", "containerPort": 3000, "protocol": "TCP"}],
    ]);
    let is_alone = choices.one(json!([true, true, true, false])) == true;
    if !is_alone {
        let program = choices.one(json!([command, both]));
        let mut beside = container(choices);
        beside["name"] = json!("beside");
        beside["command"] = json!(["ebb", "sample-app"]);
        app["name"] = json!("app");
        app["ports"] = choices.one(ports);
        return json!([with(app, program), beside]);
    }
    let ports = choices.one(ports);
    let ports = choices.one(json!([null, [], ports]));
    let name = choices.one(json!([null, "user-container"]));
    for (field, value) in [("ports", ports), ("name", name)] {
        if !value.is_null() {
            app[field] = value;
        }
    }
    let program = choices.one(json!([command, image, both]));
    json!([with(app, program)])
}

/// A map with the fields of another one.
fn with(mut one: Value, other: Value) -> Value {
    let (Some(fields), Value::Object(others)) = (one.as_object_mut(), other) else { panic!("both are maps") };
    fields.extend(others);
    one
}

fn annotations(choices: &mut Choices) -> Value {
    choices.one(json!([
        null,
        {"autoscaling.knative.dev/target": "10"},
        {"autoscaling.knative.dev/min-scale": "1", "autoscaling.knative.dev/max-scale": "5"},
        {"autoscaling.knative.dev/minScale": "0", "autoscaling.knative.dev/maxScale": "3"},
        {"autoscaling.knative.dev/metric": "rps", "autoscaling.knative.dev/target": "150"},
        {"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev"},
        {"autoscaling.knative.dev/window": "40s", "autoscaling.knative.dev/scale-down-delay": "15m"},
        {"autoscaling.knative.dev/target-burst-capacity": "-1"},
        {"serving.knative.dev/progress-deadline": "120s"},
        {"sidecar.istio.io/inject": "true", "prometheus.io/scrape": "true"},
        {"run.googleapis.com/cpu-throttling": "false", "autoscaling.knative.dev/maxScale": "100"},
    ]))
}

fn template(choices: &mut Choices) -> Value {
    let metadata = map([
        ("annotations", annotations(choices)),
        ("labels", choices.one(json!([null, {"app": "hello"}, {"app.kubernetes.io/name": "hello"}]))),
        ("name", choices.one(json!([null, null, "hello-00001"]))),
    ]);
    let spec = map([
        ("containerConcurrency", choices.one(json!([null, 0, 1, 80, 1000]))),
        ("containers", containers(choices)),
        ("enableServiceLinks", choices.one(json!([null, false]))),
        ("idleTimeoutSeconds", choices.one(json!([null, null, 0, 60]))),
        ("responseStartTimeoutSeconds", choices.one(json!([null, null, 60]))),
        ("securityContext", choices.one(json!([null, {}, {"runAsNonRoot": true}]))),
        ("serviceAccountName", choices.one(json!([null, "default"]))),
        ("timeoutSeconds", choices.one(json!([null, 60, 300, 3600]))),
    ]);
    let printed = with(json!({"creationTimestamp": null}), metadata.clone());
    let metadata = choices.one(json!([null, metadata, metadata, printed]));
    map([("metadata", metadata), ("spec", spec)])
}

/// The Service with this number, as people write them and as `kubectl get` prints them.
fn shape(number: u64) -> Value {
    let mut choices = Choices(number);
    let metadata = map([
        ("name", json!(format!("hello-{number}"))),
        ("namespace", choices.one(json!([null, "default", "team-a"]))),
        ("labels", choices.one(json!([null, {}, {"networking.knative.dev/visibility": "cluster-local"}]))),
        (
            "annotations",
            choices.one(json!([
                null,
                {"serving.knative.dev/creator": "a@example.com"},
                {"run.googleapis.com/ingress": "all", "client.knative.dev/user-image": "example/hello"},
                {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            ])),
        ),
        ("generation", choices.one(json!([null, null, 3]))),
        ("uid", choices.one(json!([null, null, "8a1f"]))),
    ]);
    let all = json!({"latestRevision": true, "percent": 100});
    let traffic = choices.one(json!([null, null, [], [all], [{"percent": 100}]]));
    let spec = map([("template", template(&mut choices)), ("traffic", traffic)]);
    let status = choices.one(json!([null, null, {}, {"url": "http://hello.example.com", "conditions": []}]));
    let service = map([
        ("apiVersion", json!("serving.knative.dev/v1")),
        ("kind", json!("Service")),
        ("metadata", metadata),
        ("spec", spec),
        ("status", status),
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [service]});
    choices.one(json!([service, service, service, list]))
}

/// The problems that the reader of manifests finds.
fn problems(document: &Value) -> Vec<String> {
    let images = ImageSettings { support: ImageSupport::By(ImageEngine::Podman), ..ImageSettings::default() };
    let source = ManifestSource::of_text(document.to_string(), "example.com").with_images(images);
    let problems = platform_local::load(&source).err().map(|findings| findings.problems).unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn shapes_of_public_manifests_are_valid_to_the_reader_and_to_the_schema() {
    let schema = schema();
    let mut shapes = BTreeSet::new();
    for number in 0..SHAPES {
        let shape = shape(number);
        assert_eq!(problems(&shape), [""; 0], "{shape}");
        assert_eq!(faults(&schema, &shape), [""; 0], "{shape}");
        // Without its name, which no other has.
        shapes.insert(shape.to_string().replace(&format!("hello-{number}\""), ""));
    }
    assert!(shapes.len() >= 200, "{} shapes are different", shapes.len());
}

#[test]
fn a_fault_of_form_is_one_to_the_reader_and_to_the_schema() {
    let planted = [
        ("apiVersion", json!("serving.knative.dev/v2")),
        ("kind", json!("Servce")),
        ("metadata", json!(null)),
        ("metadata/generateName", json!("hello-")),
        ("metadata/labels", json!({"version": 2})),
        ("metadata/name", json!("Hello_World")),
        ("spec/runLatest", json!({})),
        ("spec/template/metadata/annotations", json!({"autoscaling.knative.dev/min-scale": 1})),
        ("spec/template/metadata/annotations", json!({"autoscaling.knative.dev/minscale": "1"})),
        ("spec/template/spec/containerConcurrency", json!("10")),
        ("spec/template/spec/containers", json!([])),
        ("spec/template/spec/containers/0/enviroment", json!([])),
        ("spec/template/spec/containers/0/env", json!([{"name": "COUNT", "value": 1}])),
        ("spec/template/spec/containers/0/env", json!([{"name": "NOTHING", "valueFrom": {}}])),
        ("spec/template/spec/containers/0/livenessProbe", json!({"httpGet": {"portt": 80}})),
        ("spec/template/spec/containers/0/ports", json!({"containerPort": 8080})),
        ("spec/template/spec/containers/0/readinessProbe", json!({"timeoutSeconds": 0})),
        ("spec/template/spec/containers/0/resources", json!({"limits": {"cpu": true}})),
        ("spec/template/spec/nodeSelector", json!({"disk": "ssd"})),
        ("spec/template/spec/securityContext", json!({"runAsUser": "1000"})),
        ("spec/template/spec/timeoutSeconds", json!(-1)),
        ("spec/template/spec/volumes", json!([])),
        ("spec/traffic", json!([{"revisionName": "hello-00001", "percent": 50}])),
    ];
    let schema = schema();
    for (number, (path, value)) in (0..SHAPES).zip(planted.iter().cycle()) {
        let mut shape = shape(number);
        if shape["kind"] == "List" {
            shape = shape["items"][0].take();
        }
        put(&mut shape, path, value.clone());
        assert!(!problems(&shape).is_empty(), "the reader takes {path} {value}: {shape}");
        assert!(!faults(&schema, &shape).is_empty(), "the schema takes {path} {value}: {shape}");
    }
}
