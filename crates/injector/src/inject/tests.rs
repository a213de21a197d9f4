//! Templates as people write them, and what becomes of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::quality::Quality;

fn settings() -> InjectorSettings {
    let link_token = "000102030405060708090a0b0c0d0e0f".parse().expect("a token");
    InjectorSettings { image: "ebb-queue-proxy".to_owned(), link_token }
}

fn pod(annotations: &Value, spec: &Value) -> Value {
    json!({"metadata": {"labels": {INJECT_LABEL: "true"}, "annotations": annotations}, "spec": spec})
}

fn web(more: &Value) -> Value {
    let mut container =
        json!({"name": "app", "image": "app", "ports": [{"name": "http", "containerPort": 8080}]});
    let (Value::Object(map), Value::Object(more)) = (&mut container, more.clone()) else { unreachable!() };
    map.extend(more);
    container
}

fn one(container: &Value) -> Value {
    pod(&json!({}), &json!({"containers": [container]}))
}

#[track_caller]
fn injected(pod: &Value) -> Injection {
    match inject(pod, &settings()) {
        Outcome::Injected(injection) => injection,
        other @ (Outcome::NotAsked | Outcome::Refused(_)) => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(pod: &Value) -> String {
    match inject(pod, &settings()) {
        Outcome::Refused(problems) => problems.join("\n"),
        other @ (Outcome::NotAsked | Outcome::Injected(_)) => panic!("{other:?}"),
    }
}

fn sidecar(pod: &Value) -> &Value {
    let found = containers(pod).iter().find(|container| container["name"] == QUEUE_PROXY);
    found.expect("it was injected")
}

fn variable(pod: &Value, name: &str) -> String {
    let variables = sidecar(pod)["env"].as_array().into_iter().flatten();
    let mut found = variables.filter(|variable| variable["name"] == name);
    found.next().and_then(|variable| variable["value"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn who_does_not_ask_is_left_alone() {
    let mut pod = one(&web(&json!({})));
    pod["metadata"]["labels"][INJECT_LABEL] = json!("false");
    assert_eq!(inject(&pod, &settings()), Outcome::NotAsked);
    assert_eq!(inject(&json!({}), &settings()), Outcome::NotAsked);
}

#[test]
fn the_sidecar_comes_after_the_app_and_knows_its_port() {
    let pod = injected(&one(&web(&json!({})))).pod;
    let names: Vec<_> = containers(&pod).iter().map(|container| container["name"].clone()).collect();
    assert_eq!(names, ["app", QUEUE_PROXY]);
    assert_eq!(
        (variable(&pod, "USER_PORT"), variable(&pod, "QUEUE_SERVING_PORT")),
        ("8080".into(), "8012".into())
    );
    assert_eq!(variable(&pod, "SERVING_POD"), "$(SERVING_NAMESPACE)/$(POD_NAME)");
    assert_eq!(variable(&pod, "EBB_LINK_TOKEN").len(), 32);
}

#[test]
fn ports_that_the_app_has_are_left_to_it() {
    let taken = [8012, 8022, 19091].map(|port| json!({"containerPort": port}));
    let mut ports = vec![json!({"containerPort": 8080})];
    ports.extend(taken);
    let plain = json!({"ebb.dev/plain-ports": "8012, 8022,19091"});
    let pod = injected(&pod(&plain, &json!({"containers": [web(&json!({"ports": ports}))]}))).pod;
    let numbers = ["QUEUE_SERVING_PORT", "EBB_ADMIN_PORT", "EBB_LINK_PORT", "EBB_METRICS_PORT"]
        .map(|name| variable(&pod, name));
    assert_eq!(numbers, ["8100", "8110", "8024", "19179"]);
    assert_eq!(containers(&pod)[0]["lifecycle"]["preStop"]["httpGet"]["port"], 8110);
}

#[test]
fn an_undeclared_port_is_named_by_an_annotation() {
    let bare = json!({"containers": [{"name": "app", "image": "app"}]});
    assert!(refused(&pod(&json!({}), &bare)).contains("ebb.dev/ports"));
    let named = injected(&pod(&json!({"ebb.dev/ports": "3000"}), &bare)).pod;
    assert_eq!(variable(&named, "USER_PORT"), "3000");
    assert!(refused(&pod(&json!({"ebb.dev/ports": "http"}), &bare)).contains("\"http\""));
    let two = web(
        &json!({"ports": [{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 53, "protocol": "UDP"}]}),
    );
    let two = injected(&one(&two)).pod;
    assert_eq!(
        (variable(&two, "USER_PORT"), variable(&two, "EBB_MORE_PORTS")),
        ("80".into(), "8100:81".into())
    );
}

#[test]
fn each_declared_port_that_is_not_plain_has_a_port_of_the_queue_proxy() {
    let ports = json!([
        {"name": "grpc", "containerPort": 9090},
        {"name": "http", "containerPort": 8080},
        {"name": "metrics", "containerPort": 9100},
        {"name": "admin", "containerPort": 8100},
    ]);
    let probed = web(&json!({"ports": ports, "readinessProbe": {"httpGet": {"port": "http"}}}));
    let annotations = json!({"ebb.dev/plain-ports": "metrics", "ebb.dev/ports": "7070,8080"});
    let pod = injected(&pod(&annotations, &json!({"containers": [probed]}))).pod;
    assert_eq!(
        (variable(&pod, "USER_PORT"), variable(&pod, "QUEUE_SERVING_PORT")),
        ("9090".into(), "8012".into())
    );
    // 8100 is the app's own.
    assert_eq!(variable(&pod, "EBB_MORE_PORTS"), "8101:8080,8102:8100,8103:7070");
    let taken: Value = serde_json::from_str(&variable(&pod, "SERVING_READINESS_PROBE")).expect("JSON");
    assert_eq!(taken["httpGet"]["port"], 8080);
    let names: Vec<&str> = sidecar(&pod)["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| port["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "ebb-requests",
            "ebb-requests-2",
            "ebb-requests-3",
            "ebb-requests-4",
            "ebb-admin",
            "ebb-link",
            "ebb-metrics"
        ]
    );
}

#[test]
fn readiness_is_asked_by_the_queue_proxy_and_the_rest_by_kubelet() {
    let http = json!({"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5});
    let liveness = json!({"httpGet": {"path": "/live", "port": 8080}});
    let pod = injected(&one(&web(&json!({"readinessProbe": http, "livenessProbe": liveness})))).pod;
    let taken: Value = serde_json::from_str(&variable(&pod, "SERVING_READINESS_PROBE")).expect("JSON");
    let expected = json!({"host": "127.0.0.1", "path": "/ready", "port": 8080, "scheme": "HTTP"});
    assert_eq!(taken, json!({"httpGet": expected, "periodSeconds": 5}));
    assert_eq!(containers(&pod)[0].get("readinessProbe"), None);
    assert_eq!(containers(&pod)[0]["livenessProbe"]["httpGet"]["port"], 8080);
    assert!(sidecar(&pod).get("readinessProbe").is_some());

    let kept = [
        json!({"exec": {"command": ["true"]}}),
        json!({"httpGet": {"path": "/", "port": 9000}}),
        json!({"tcpSocket": {"port": "other"}}),
        // A queue-proxy could not read it, and would not start.
        json!({"tcpSocket": {"port": 8080}, "grpc": {"port": 8080}}),
        json!({"httpGet": {"path": "/", "port": 8080, "host": "example.com"}}),
    ];
    for probe in kept {
        let pod = injected(&one(&web(&json!({"readinessProbe": probe})))).pod;
        assert_eq!(containers(&pod)[0]["readinessProbe"], probe);
        assert_eq!(variable(&pod, "SERVING_READINESS_PROBE"), "");
    }
    let none = injected(&one(&web(&json!({})))).pod;
    assert!(variable(&none, "SERVING_READINESS_PROBE").contains("tcpSocket"), "whether it listens");
}

#[test]
fn a_hook_that_only_sleeps_is_replaced_and_any_other_is_kept() {
    let ours = json!({"httpGet": {"path": "/wait-for-drain", "port": 8022}});
    let rows = [
        (json!({"sleep": {"seconds": 5}}), true),
        (json!({"exec": {"command": ["sleep", "15"]}}), true),
        (json!({"exec": {"command": ["/bin/sh", "-c", "sleep 5s"]}}), true),
        (json!({"exec": {"command": ["sh", "-c", "sleep 5; nginx -s quit"]}}), false),
        (json!({"exec": {"command": ["sh", "-c", "sleep $(cat /grace)"]}}), false),
        (json!({"exec": {"command": ["nginx", "-s", "quit"]}}), false),
        (json!({"httpGet": {"path": "/bye", "port": 8080}}), false),
    ];
    for (hook, is_replaced) in rows {
        let Injection { pod, warnings } =
            injected(&one(&web(&json!({"lifecycle": {"preStop": hook, "postStart": {}}}))));
        let expected = if is_replaced { &ours } else { &hook };
        assert_eq!(&containers(&pod)[0]["lifecycle"]["preStop"], expected, "{hook}");
        assert_eq!(warnings.is_empty(), is_replaced, "{warnings:?}");
        assert_eq!(containers(&pod)[0]["lifecycle"]["postStart"], json!({}));
    }
    assert_eq!(containers(&injected(&one(&web(&json!({})))).pod)[0]["lifecycle"]["preStop"], ours);
}

#[test]
fn there_is_time_for_the_drain_and_for_the_app_after_it() {
    let grace = |annotations: Value, spec: Value| {
        let mut whole = json!({"containers": [web(&json!({"livenessProbe": {"httpGet": {"port": 8080}}}))]});
        let (Value::Object(map), Value::Object(more)) = (&mut whole, spec) else { unreachable!() };
        map.extend(more);
        let pod = injected(&pod(&annotations, &whole)).pod;
        let probe = containers(&pod)[0]["livenessProbe"]["terminationGracePeriodSeconds"].as_u64();
        (pod["spec"]["terminationGracePeriodSeconds"].as_u64(), probe, variable(&pod, "EBB_APP_GRACE"))
    };
    assert_eq!(grace(json!({}), json!({})), (Some(375), Some(40), "30s".into()));
    let timeout = json!({"ebb.dev/timeout": "1m"});
    assert_eq!(
        grace(timeout, json!({"terminationGracePeriodSeconds": 5})),
        (Some(110), Some(15), "5s".into())
    );
    assert_eq!(grace(json!({"ebb.dev/drain-limit": "10s"}), json!({})), (Some(85), Some(40), "30s".into()));
}

#[test]
fn the_class_is_what_kubernetes_makes_of_it() {
    let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let rows = [
        ("nothing", json!({}), json!({})),
        ("zeros", json!({"requests": both("0", "0")}), json!({})),
        ("a request", json!({"requests": {"cpu": "1"}}), json!({"requests": both("20m", "32Mi")})),
        (
            "limits above requests",
            json!({"requests": both("1", "1Gi"), "limits": both("2", "1Gi")}),
            json!({"requests": both("20m", "32Mi"), "limits": both("1", "256Mi")}),
        ),
        (
            "limits alone",
            json!({"limits": both("2", "1Gi")}),
            json!({"requests": both("250m", "128Mi"), "limits": both("250m", "128Mi")}),
        ),
        (
            "the same, otherwise written",
            json!({"requests": both("1", "1024Mi"), "limits": both("1000m", "1Gi")}),
            json!({"requests": both("250m", "128Mi"), "limits": both("250m", "128Mi")}),
        ),
    ];
    for (what, resources, expected) in rows {
        let pod = injected(&one(&web(&json!({"resources": resources})))).pod;
        assert_eq!(sidecar(&pod)["resources"], expected, "{what}");
    }
}

#[test]
fn what_cannot_be_served_is_refused_for_every_reason_at_once() {
    let mut other = one(&web(&json!({})));
    other["metadata"]["ownerReferences"] = json!([{"kind": "DaemonSet"}]);
    other["metadata"]["annotations"] =
        json!({"ebb.dev/container-concurrency": "many", "ebb.dev/timeout": "1.5s"});
    other["spec"]["hostNetwork"] = json!(true);
    other["spec"]["os"] = json!({"name": "windows"});
    other["spec"]["containers"] = json!([web(&json!({})), {"name": QUEUE_PROXY, "image": "another"}]);
    let problems = refused(&other);
    for word in [
        "hostNetwork",
        "windows",
        "DaemonSet",
        "called \"queue-proxy\"",
        "container-concurrency",
        "whole seconds",
    ] {
        assert!(problems.contains(word), "{word} is missing in:\n{problems}");
    }
}

#[test]
fn a_container_that_came_later_gets_the_hook_too() {
    let mut pod = injected(&one(&web(&json!({})))).pod;
    let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
    containers.push(json!({"name": "mesh", "image": "mesh"}));
    let again = injected(&pod).pod;
    assert!(again["spec"]["containers"][2]["lifecycle"]["preStop"].get("httpGet").is_some());
    assert_eq!(injected(&again).pod, again);
}

fn resources() -> impl Strategy<Value = Value> {
    let amount =
        || prop::option::of(prop::sample::select(vec!["0", "100m", "0.1", "1", "1000m", "64Mi", "1Gi"]));
    let pair = move || {
        (amount(), amount()).prop_map(|(cpu, memory)| {
            let pairs = [("cpu", cpu), ("memory", memory)].into_iter();
            Value::Object(
                pairs.filter_map(|(name, amount)| Some((name.to_owned(), json!(amount?)))).collect(),
            )
        })
    };
    (pair(), pair()).prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

fn containers_of(kind: &'static str, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Value>> {
    let probe =
        prop::option::of(prop::sample::select(vec!["readinessProbe", "livenessProbe", "startupProbe"]));
    let hook = prop::option::of(prop::sample::select(vec![
        json!({"sleep": {"seconds": 3}}),
        json!({"exec": {"command": ["x"]}}),
    ]));
    let container = (resources(), probe, hook).prop_map(|(resources, probe, hook)| {
        let mut container = json!({"image": "some", "resources": resources, "x-unknown": {"kept": [1, 2]}});
        if let Some(probe) = probe {
            container[probe] = json!({"tcpSocket": {"port": 8080}});
        }
        if let Some(hook) = hook {
            container["lifecycle"] = json!({"preStop": hook});
        }
        container
    });
    prop::collection::vec(container, count).prop_map(move |mut containers| {
        for (number, container) in containers.iter_mut().enumerate() {
            container["name"] = json!(format!("{kind}-{number}"));
        }
        containers
    })
}

fn pods() -> impl Strategy<Value = Value> {
    let containers = (containers_of("app", 1..4), containers_of("init", 0..3));
    (containers, prop::option::of(0_u64..100)).prop_map(|((mut app, init), grace)| {
        app[0]["ports"] = json!([{"containerPort": 8080}]);
        let mut spec = json!({"containers": app, "initContainers": init});
        if let Some(grace) = grace {
            spec["terminationGracePeriodSeconds"] = json!(grace);
        }
        pod(&json!({}), &spec)
    })
}

/// The class alone.
fn class(pod: &Value) -> &'static str {
    match Quality::of(pod) {
        Quality::BestEffort => "BestEffort",
        Quality::Burstable(_) => "Burstable",
        Quality::Guaranteed => "Guaranteed",
    }
}

proptest! {
    #[test]
    fn a_second_pass_changes_nothing(pod in pods()) {
        let once = injected(&pod);
        prop_assert_eq!(&injected(&once.pod).pod, &once.pod);
    }

    #[test]
    fn the_class_never_changes(pod in pods()) {
        prop_assert_eq!(class(&injected(&pod).pod), class(&pod));
    }

    #[test]
    fn everything_else_of_the_pod_is_as_it_was(pod in pods()) {
        let after = injected(&pod).pod;
        prop_assert_eq!(&after["spec"]["initContainers"], &pod["spec"]["initContainers"]);
        for (before, after) in containers(&pod).iter().zip(containers(&after)) {
            for field in ["name", "image", "ports", "resources", "x-unknown"] {
                prop_assert_eq!(before.get(field), after.get(field));
            }
            prop_assert!(after["lifecycle"].get("preStop").is_some());
        }
        let own = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_DEFAULT);
        prop_assert_eq!(after["spec"]["terminationGracePeriodSeconds"].as_u64(), Some(own + 345));
    }
}
