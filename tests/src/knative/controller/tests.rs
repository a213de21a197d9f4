//! The controller against objects in memory: each write is applied, until nothing is missing.

use serde_json::{Value, json};

use super::conditions::condition;
use super::plan;
use super::planned_write::WriteForm;
use crate::knative::keys;
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind, label, number, text};

const SYSTEM: &str = "knative-serving";
/// More turns than any story takes.
const TURNS_MAX: usize = 30;

/// A cluster of objects alone.
struct World {
    known: KnownObjects,
    uids: u32,
}

impl World {
    /// With two activators and the Service `hello`.
    fn new() -> Self {
        let mut world = Self { known: KnownObjects::default(), uids: 0 };
        world.put(
            PlayedKind::ConfigMap,
            SYSTEM,
            "config-deployment",
            json!({"data": {"queue-sidecar-image": "q"}}),
        );
        world.put(PlayedKind::Endpoints, SYSTEM, "activator-service", addresses(&["10.0.1.1", "10.0.1.2"]));
        world.put(PlayedKind::KnativeService, "default", "hello", service("one"));
        world.settle();
        world
    }

    fn put(&mut self, kind: PlayedKind, namespace: &str, name: &str, mut object: Value) {
        self.uids += 1;
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        if object["metadata"]["generation"].is_null() {
            object["metadata"]["generation"] = json!(1);
        }
        self.known.put(ObjectId::new(kind, namespace, name), object);
    }

    fn object(&self, kind: PlayedKind, name: &str) -> Value {
        let id = ObjectId::new(kind, "default", name);
        self.known.get(&id).unwrap_or_else(|| panic!("{id:?} is not there")).clone()
    }

    fn change(&mut self, kind: PlayedKind, name: &str, patch: &Value) {
        let mut object = self.object(kind, name);
        merge(&mut object, patch);
        self.known.put(ObjectId::new(kind, "default", name), object);
        self.settle();
    }

    /// Applies what is missing until nothing is. An object that is never as it is wanted fails the test.
    fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            let writes = plan(&self.known, SYSTEM, "2026-11-27T10:00:00Z");
            if writes.is_empty() {
                return;
            }
            for write in writes {
                let (namespace, name) = (write.id.namespace.clone(), write.id.name.clone());
                match write.form {
                    WriteForm::Create(object) => self.put(write.id.kind, &namespace, &name, object),
                    WriteForm::Patch(patch) | WriteForm::PatchStatus(patch) => {
                        let mut object = self.known.get(&write.id).expect("it is there").clone();
                        merge(&mut object, &patch);
                        self.known.put(write.id, object);
                    }
                }
            }
        }
        panic!("something is missing for ever: {:?}", plan(&self.known, SYSTEM, "now"));
    }

    /// ebb writes a `ServerlessService`, and Kubernetes the Endpoints of its private Service.
    fn serve(&mut self, mode: &str, pods: &[&str]) {
        let name = "hello-00001";
        let serverless = json!({"spec": {
            "mode": mode, "numActivators": 2, "protocolType": "http1",
            "objectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
        }});
        self.put(PlayedKind::ServerlessService, "default", name, serverless);
        self.put(PlayedKind::Endpoints, "default", "hello-00001-private", addresses(pods));
        self.settle();
    }

    fn status(&mut self, status: &Value) {
        self.change(PlayedKind::PodAutoscaler, "hello-00001", &json!({"status": status}));
    }

    fn condition(&self, kind: PlayedKind, name: &str, condition_name: &str) -> [String; 2] {
        let object = self.object(kind, name);
        let found = condition(&object, condition_name);
        [found.status.to_owned(), found.reason.to_owned()]
    }
}

fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return object.clone_from(patch) };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().expect("it is one").remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

fn addresses(of: &[&str]) -> Value {
    let addresses: Vec<Value> = of.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"subsets": [{"addresses": addresses, "ports": [{"name": "http", "port": 8012}]}]})
}

fn service(text: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "1", "example.com/note": "kept"}},
        "spec": {
            "containerConcurrency": 10,
            "containers": [{"image": "test-app:test", "args": [text]}],
        },
    }}})
}

fn conditions(ready: [&str; 2], is_initialized: bool) -> Value {
    let initialized = if is_initialized { "True" } else { "Unknown" };
    json!([
        {"type": "Ready", "status": ready[0], "reason": ready[1]},
        {"type": "ScaleTargetInitialized", "status": initialized},
    ])
}

fn own_addresses(world: &World) -> Vec<String> {
    let endpoints = world.object(PlayedKind::Endpoints, "hello-00001");
    let list = endpoints["subsets"].as_array().expect("subsets").iter();
    let list = list.flat_map(|subset| subset["addresses"].as_array().cloned().unwrap_or_default());
    list.map(|address| address["ip"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_service_has_a_revision_a_deployment_and_a_pod_autoscaler() {
    let world = World::new();
    let autoscaler = world.object(PlayedKind::PodAutoscaler, "hello-00001");
    assert_eq!(
        text(&autoscaler, "/metadata/annotations/autoscaling.knative.dev~1class"),
        "kpa.autoscaling.knative.dev"
    );
    assert_eq!(text(&autoscaler, "/spec/scaleTargetRef/name"), "hello-00001-deployment");
    assert_eq!(number(&autoscaler, "/spec/containerConcurrency"), 10);
    assert!(autoscaler.pointer("/metadata/finalizers").is_none());
    let revision = world.object(PlayedKind::Revision, "hello-00001");
    assert_eq!(label(&autoscaler, keys::REVISION_UID), text(&revision, "/metadata/uid"));

    let deployment = world.object(PlayedKind::Deployment, "hello-00001-deployment");
    let annotations = deployment["metadata"]["annotations"].as_object().expect("annotations");
    assert!(annotations.keys().all(|key| key == "example.com/note"), "{annotations:?}");
    assert_eq!(number(&deployment, "/spec/replicas"), 1, "min-scale is not looked at");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(number(pod, "/terminationGracePeriodSeconds"), 300);
    assert_eq!(pod["containers"][1]["readinessProbe"]["httpGet"]["port"], 8012);
}

#[test]
fn an_annotation_that_changes_on_a_revision_changes_on_its_autoscaler() {
    let mut world = World::new();
    let key = "autoscaling.knative.dev/min-scale";
    world.change(PlayedKind::Revision, "hello-00001", &json!({"metadata": {"annotations": {key: "3"}}}));
    let value = |world: &World| {
        world.object(PlayedKind::PodAutoscaler, "hello-00001")["metadata"]["annotations"][key].clone()
    };
    assert_eq!(value(&world), "3");
    world.change(PlayedKind::Revision, "hello-00001", &json!({"metadata": {"annotations": {key: null}}}));
    assert_eq!(value(&world), Value::Null);
}

#[test]
fn public_addresses_are_those_of_pods_or_activators() {
    let mut world = World::new();
    world.serve("Proxy", &[]);
    assert_eq!(own_addresses(&world), ["10.0.1.1", "10.0.1.2"]);
    let serverless = PlayedKind::ServerlessService;
    assert_eq!(world.condition(serverless, "hello-00001", "Ready"), ["Unknown", "NoHealthyBackends"]);
    assert_eq!(text(&world.object(serverless, "hello-00001"), "/status/serviceName"), "hello-00001");

    world.serve("Serve", &["10.0.2.1"]);
    assert_eq!(own_addresses(&world), ["10.0.2.1"]);
    assert_eq!(world.condition(serverless, "hello-00001", "Ready"), ["True", ""]);
    assert_eq!(world.condition(serverless, "hello-00001", "ActivatorEndpointsPopulated"), ["False", ""]);
}

#[test]
fn a_revision_is_ready_once_initialized_and_stays_so_at_zero() {
    let mut world = World::new();
    let ready = |world: &World| world.condition(PlayedKind::Revision, "hello-00001", "Ready");
    assert_eq!(ready(&world), ["Unknown", "Deploying"]);
    let status = |ready, is_initialized| json!({"serviceName": "hello-00001", "desiredScale": 1, "actualScale": 1, "conditions": conditions(ready, is_initialized)});
    world.status(&status(["True", ""], true));
    assert_eq!(ready(&world), ["True", ""]);
    assert_eq!(world.condition(PlayedKind::KnativeService, "hello", "Ready"), ["True", ""]);
    assert_eq!(
        text(&world.object(PlayedKind::PodAutoscaler, "hello-00001"), "/spec/reachability"),
        "Reachable"
    );

    world.status(&status(["False", "NoTraffic"], true));
    assert_eq!(ready(&world), ["True", ""]);
    assert_eq!(world.condition(PlayedKind::Revision, "hello-00001", "Active"), ["False", "NoTraffic"]);
}

/// The rule behind "Ready is never False while a first start has time".
#[test]
fn a_moment_of_false_before_the_first_start_fails_a_revision_until_it_is_initialized() {
    let mut world = World::new();
    let ready = |world: &World| world.condition(PlayedKind::Revision, "hello-00001", "Ready");
    let without_a_service =
        json!({"serviceName": "", "conditions": conditions(["False", "TimedOut"], false)});
    world.status(&without_a_service);
    assert_eq!(ready(&world), ["Unknown", "Deploying"]);
    let named = |ready, is_initialized| json!({"serviceName": "hello-00001", "conditions": conditions(ready, is_initialized)});
    world.status(&named(["False", "TimedOut"], false));
    assert_eq!(ready(&world), ["False", "ProgressDeadlineExceeded"]);
    world.status(&named(["Unknown", "Queued"], false));
    assert_eq!(ready(&world), ["False", "ProgressDeadlineExceeded"]);
    world.status(&named(["True", ""], true));
    assert_eq!(ready(&world), ["True", ""]);
}

#[test]
fn a_new_revision_takes_over_once_it_is_ready() {
    let mut world = World::new();
    let status = json!({"serviceName": "x", "conditions": conditions(["True", ""], true)});
    world.status(&status);
    let mut second = service("two");
    second["metadata"] = json!({"generation": 2});
    world.put(PlayedKind::KnativeService, "default", "hello", second);
    world.settle();
    let reachability = |world: &World, name: &str| {
        text(&world.object(PlayedKind::PodAutoscaler, name), "/spec/reachability").to_owned()
    };
    assert_eq!(
        (reachability(&world, "hello-00001").as_str(), reachability(&world, "hello-00002").as_str()),
        ("Reachable", "")
    );
    world.change(PlayedKind::PodAutoscaler, "hello-00002", &json!({"status": status}));
    assert_eq!(reachability(&world, "hello-00001"), "Unreachable");
    assert_eq!(reachability(&world, "hello-00002"), "Reachable");
}

fn target(revision: &str, percent: u32, is_latest: bool) -> Value {
    json!({"revisionName": revision, "percent": percent, "latestRevision": is_latest})
}

#[test]
fn traffic_says_which_revisions_are_reachable_and_makes_none() {
    let mut world = World::new();
    let status = json!({"serviceName": "x", "conditions": conditions(["True", ""], true)});
    world.status(&status);
    let mut second = service("two");
    let split = [json!({"revisionName": "hello-00001", "percent": 80}), json!({"percent": 20})];
    second["spec"]["traffic"] = json!(split);
    world.put(PlayedKind::KnativeService, "default", "hello", second);
    world.settle();
    world.change(PlayedKind::PodAutoscaler, "hello-00002", &json!({"status": status}));
    let traffic =
        |world: &World| world.object(PlayedKind::KnativeService, "hello")["status"]["traffic"].clone();
    let split = json!([target("hello-00001", 80, false), target("hello-00002", 20, true)]);
    assert_eq!(traffic(&world), split);
    let reachability = |world: &World| {
        ["hello-00001", "hello-00002"]
            .map(|name| text(&world.object(PlayedKind::PodAutoscaler, name), "/spec/reachability").to_owned())
    };
    assert_eq!(reachability(&world), ["Reachable", "Reachable"]);

    let lead_to = |world: &mut World, revision: &str| {
        let traffic = json!({"spec": {"traffic": [{"revisionName": revision, "percent": 100}]}});
        world.change(PlayedKind::KnativeService, "hello", &traffic);
    };
    lead_to(&mut world, "hello-00001");
    assert_eq!(traffic(&world), json!([target("hello-00001", 100, false)]));
    assert_eq!(reachability(&world), ["Reachable", "Unreachable"], "rolled back");
    lead_to(&mut world, "hello-00003");
    assert_eq!(traffic(&world), json!([target("hello-00001", 100, false)]), "the former traffic stays");
    let third = ObjectId::new(PlayedKind::Revision, "default", "hello-00003");
    assert!(world.known.get(&third).is_none(), "the template is the one of the second revision");
}

#[test]
fn a_foreign_change_of_the_template_stays_until_the_hash_changes() {
    let mut world = World::new();
    let foreign = json!({"spec": {"template": {"spec": {"priorityClassName": "high"}}, "replicas": 7}});
    world.change(PlayedKind::Deployment, "hello-00001-deployment", &foreign);
    let image = |world: &World| {
        let deployment = world.object(PlayedKind::Deployment, "hello-00001-deployment");
        let containers = &deployment["spec"]["template"]["spec"]["containers"];
        (text(&containers[1], "/image").to_owned(), number(&deployment, "/spec/replicas"))
    };
    assert_eq!(image(&world), ("q".to_owned(), 7));
    world.put(
        PlayedKind::ConfigMap,
        SYSTEM,
        "config-deployment",
        json!({"data": {"queue-sidecar-image": "ebb"}}),
    );
    world.settle();
    assert_eq!(image(&world), ("ebb".to_owned(), 7), "the count stays");
}
