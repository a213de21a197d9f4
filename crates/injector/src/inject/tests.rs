//! Templates as people write them, and what becomes of them.

use proptest::prelude::*;
use serde_json::{Value, json};
use settings::ClusterConfig;

use super::*;
use crate::quality::Quality;

/// What every cluster starts with.
pub(crate) fn settings() -> InjectorSettings {
    InjectorSettings {
        image: "ebb-queue-proxy".to_owned(),
        link_ca: "the authority's".to_owned(),
        cluster: ClusterConfig::default(),
        observability: None,
    }
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
fn a_pod_that_does_not_ask_is_left_alone() {
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
    assert_eq!(variable(&pod, "EBB_LINK_CA"), "the authority's");
    assert_eq!(variable(&pod, "EBB_STAT_PORT"), "off");
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

/// They share the pod's network, some of them for as long as it lives.
#[test]
fn ports_of_containers_that_start_before_the_app_are_left_to_them() {
    let ports = [8012, 8022, 8024, 19091].map(|port| json!({"containerPort": port}));
    let mesh = json!({"name": "mesh", "image": "mesh", "restartPolicy": "Always", "ports": ports});
    let spec = json!({"containers": [web(&json!({}))], "initContainers": [mesh]});
    let pod = injected(&pod(&json!({}), &spec)).pod;
    let numbers = ["QUEUE_SERVING_PORT", "EBB_ADMIN_PORT", "EBB_LINK_PORT", "EBB_METRICS_PORT"]
        .map(|name| variable(&pod, name));
    assert_eq!(numbers, ["8100", "8110", "8112", "19179"]);
    assert_eq!(variable(&pod, "USER_PORT"), "8080", "theirs are not served");
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
    let expected = json!({
        "httpGet": {"host": "127.0.0.1", "path": "/ready", "port": 8080, "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3,
    });
    assert_eq!(taken, expected);
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
        // The queue-proxy knows nothing of the app then, and must not say that it is ready.
        assert_eq!(variable(&pod, "EBB_READINESS_JUDGE"), "platform");
    }
    let none = injected(&one(&web(&json!({})))).pod;
    assert!(variable(&none, "SERVING_READINESS_PROBE").contains("tcpSocket"), "whether it listens");
    assert_eq!(variable(&none, "EBB_READINESS_JUDGE"), "");
}

/// As Kubernetes does it: nothing else is asked before the app has started, and every container must be
/// ready.
#[test]
fn readiness_waits_for_the_startup_probe_and_for_what_only_kubelet_asks() {
    let of = |containers: Value, more: Value| {
        let mut spec = json!({"containers": containers});
        let (Value::Object(map), Value::Object(more)) = (&mut spec, more) else { unreachable!() };
        map.extend(more);
        let pod = injected(&pod(&json!({}), &spec)).pod;
        ["SERVING_READINESS_PROBE", "EBB_STARTUP_PROBE", "EBB_READINESS_JUDGE"]
            .map(|name| variable(&pod, name))
    };
    let started = |probe: Value| web(&json!({"startupProbe": probe}));
    let other = |probe: Value| json!({"name": "other", "image": "other", "readinessProbe": probe});
    let exec = json!({"exec": {"command": ["true"]}});
    let nothing = || json!({});

    let [readiness, startup, judge] = of(
        json!([started(json!({"httpGet": {"port": "http"}, "periodSeconds": 5, "failureThreshold": 3}))]),
        nothing(),
    );
    let startup: Value = serde_json::from_str(&startup).expect("JSON");
    // It is kubelet who gives up on an app.
    assert_eq!(
        (&startup["httpGet"]["port"], &startup["failureThreshold"]),
        (&json!(8080), &json!(20_000_000))
    );
    assert!(readiness.contains("tcpSocket") && judge.is_empty());

    for (what, containers, more) in [
        ("a startup probe that runs a command", json!([started(exec.clone())]), nothing()),
        ("another container", json!([web(&nothing()), other(exec.clone())]), nothing()),
        (
            "a gate",
            json!([web(&nothing())]),
            json!({"readinessGates": [{"conditionType": "example.com/ready"}]}),
        ),
        (
            "a sidecar that starts before",
            json!([web(&nothing())]),
            json!({"initContainers": [{"name": "side", "restartPolicy": "Always", "readinessProbe": exec}]}),
        ),
    ] {
        let [readiness, startup, judge] = of(containers, more);
        assert_eq!((startup.as_str(), judge.as_str()), ("", "platform"), "{what}");
        assert_eq!(readiness.is_empty(), what.starts_with("a startup probe"), "{what}");
    }
}

#[test]
fn the_name_of_the_queue_proxy_is_nobody_elses() {
    let app = || web(&json!({}));
    for spec in [
        json!({"containers": [app(), {"name": QUEUE_PROXY, "image": "another"}]}),
        json!({"containers": [app()], "initContainers": [{"name": QUEUE_PROXY, "image": "another"}]}),
    ] {
        assert!(refused(&pod(&json!({}), &spec)).contains("called \"queue-proxy\""), "{spec}");
    }
}

#[test]
fn a_hook_that_only_sleeps_is_replaced_and_any_other_is_kept() {
    let ours = json!({"httpGet": {"path": "/wait-for-drain", "port": 8022, "scheme": "HTTP"}});
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
fn the_grace_period_after_a_failed_probe_stays_as_long() {
    let after = |kind: &str, given: Option<u64>, hook: Option<Value>| {
        let mut probe = json!({"tcpSocket": {"port": 8080}});
        if let Some(given) = given {
            probe["terminationGracePeriodSeconds"] = json!(given);
        }
        let mut fields = json!({kind: probe});
        if let Some(hook) = hook {
            fields["lifecycle"] = json!({"preStop": hook});
        }
        let pod = injected(&one(&web(&fields))).pod;
        containers(&pod)[0][kind]["terminationGracePeriodSeconds"].as_u64()
    };
    for kind in ["livenessProbe", "startupProbe"] {
        assert_eq!(after(kind, Some(5), None), Some(15), "{kind}: its own, and the hook's wait");
        assert_eq!(after(kind, None, None), Some(40), "{kind}: the pod's own, and the hook's wait");
        // A hook of the app's waits for no drain.
        let hook = || Some(json!({"exec": {"command": ["save"]}}));
        assert_eq!((after(kind, Some(5), hook()), after(kind, None, hook())), (Some(5), Some(30)), "{kind}");
    }
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

/// What the containers ask for must fit into that, and may use it up already.
#[test]
fn a_pod_that_says_what_it_may_have_as_a_whole_gives_the_sidecar_its_part() {
    let both = json!({"cpu": "1", "memory": "1Gi"});
    let app = web(&json!({"resources": {"requests": both, "limits": both}}));
    for resources in [json!({"requests": both, "limits": both}), json!({"limits": {"memory": "1Gi"}})] {
        let pod = injected(&pod(&json!({}), &json!({"containers": [app], "resources": resources}))).pod;
        assert_eq!(sidecar(&pod)["resources"], json!({}), "{resources}");
    }
    let pod = injected(&pod(&json!({}), &json!({"containers": [app], "resources": {}}))).pod;
    assert_eq!(sidecar(&pod)["resources"]["limits"]["cpu"], "250m", "it says nothing");
}

/// With these keys of the ConfigMap.
fn settings_of(data: &[(&str, &str)]) -> InjectorSettings {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    InjectorSettings { cluster: ClusterConfig::parse(&data).expect("it is sound").value, ..settings() }
}

#[track_caller]
fn injected_by(pod: &Value, settings: &InjectorSettings) -> Value {
    match inject(pod, settings) {
        Outcome::Injected(injection) => injection.pod,
        other @ (Outcome::NotAsked | Outcome::Refused(_)) => panic!("{other:?}"),
    }
}

#[test]
fn the_clusters_drain_limit_counts_where_the_template_says_nothing() {
    let settings = settings_of(&[("drain-limit", "10s")]);
    let grace = |annotations: Value| {
        let pod = injected_by(&pod(&annotations, &json!({"containers": [web(&json!({}))]})), &settings);
        (variable(&pod, "EBB_DRAIN_LIMIT"), pod["spec"]["terminationGracePeriodSeconds"].as_u64())
    };
    assert_eq!(grace(json!({})), ("10s".into(), Some(10 + 45 + 30)));
    assert_eq!(grace(json!({"ebb.dev/drain-limit": "20s"})), ("20s".into(), Some(20 + 45 + 30)));
    assert_eq!(grace(json!({"ebb.dev/timeout": "60s"})), ("10s".into(), Some(60 + 45 + 30)));
}

#[test]
fn observability_settings_stand_in_the_queue_proxy_alone() {
    let plain = one(&web(&json!({})));
    let without = injected(&plain).pod;
    // Kubelet would take `$(POD_NAME)` for the pod's name, and `$$` for `$`.
    let observability = r#"{"requestLogTemplate":"$(POD_NAME) $$ {{.Request.Method}}"}"#;
    let settings = InjectorSettings { observability: Some(observability.to_owned()), ..settings() };
    let mut with = injected_by(&plain, &settings);
    assert_eq!(
        variable(&with, "OBSERVABILITY_CONFIG"),
        r#"{"requestLogTemplate":"$$(POD_NAME) $$$$ {{.Request.Method}}"}"#
    );
    let Outcome::Injected(again) = inject(&with, &settings) else { panic!("it is ours") };
    assert_eq!(again.pod, with, "a second pass changes nothing");
    // The rest is as it would be without.
    let sidecar = with["spec"]["containers"].as_array_mut().and_then(|containers| containers.last_mut());
    let variables = sidecar.and_then(|sidecar| sidecar["env"].as_array_mut()).expect("it has some");
    let address = json!({"name": "SERVING_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}});
    assert!(variables.contains(&address), "{variables:?}");
    variables.retain(|variable| variable["name"] != "OBSERVABILITY_CONFIG" && *variable != address);
    assert_eq!(with, without);
}

#[test]
fn the_clusters_ignored_user_agents_count_where_the_template_says_nothing() {
    const KEY: &str = "ebb.dev/ignore-user-agents";
    let agents = |data: &[(&str, &str)], annotations: Value| {
        let pod = pod(&annotations, &json!({"containers": [web(&json!({}))]}));
        variable(&injected_by(&pod, &settings_of(data)), "EBB_IGNORE_USER_AGENTS")
    };
    assert_eq!(agents(&[], json!({})), "kube-probe/,GoogleHC/,ELB-HealthChecker/");
    let ours = [("ignore-user-agents", "HAProxy, Prometheus/")];
    assert_eq!(agents(&ours, json!({})), "HAProxy,Prometheus/");
    assert_eq!(agents(&ours, json!({KEY: "kube-probe/"})), "kube-probe/");
    assert_eq!(agents(&ours, json!({KEY: ""})), "", "none");
    let wrong = pod(&json!({KEY: "a,,b"}), &json!({"containers": [web(&json!({}))]}));
    let Outcome::Refused(reasons) = inject(&wrong, &settings()) else { panic!("it cannot be started") };
    let expected = "annotation ebb.dev/ignore-user-agents is \"a,,b\", which has nothing between two commas";
    assert!(reasons.len() == 1 && reasons[0].starts_with(expected), "{reasons:?}");
}

#[test]
fn the_clusters_amounts_count_by_class_where_the_template_says_nothing() {
    let settings = settings_of(&[
        ("queue-proxy-cpu-request", "50m"),
        ("queue-proxy-memory-limit", "512Mi"),
        ("queue-proxy-guaranteed-cpu", "2"),
    ]);
    let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let of = |annotations: &Value, resources: &Value| {
        let container = web(&json!({"resources": resources}));
        let pod = injected_by(&pod(annotations, &json!({"containers": [container]})), &settings);
        sidecar(&pod)["resources"].clone()
    };
    let (none, requests) = (json!({}), json!({"requests": both("1", "1Gi")}));
    let limited = json!({"requests": both("1", "1Gi"), "limits": both("2", "1Gi")});
    let guaranteed = json!({"limits": both("2", "1Gi")});
    let own =
        json!({"ebb.dev/queue-proxy-cpu-request": "75m", "ebb.dev/queue-proxy-guaranteed-memory": "64Mi"});
    for (what, annotations, resources, expected) in [
        ("best effort", &own, &none, json!({})),
        ("burstable", &none, &requests, json!({"requests": both("50m", "32Mi")})),
        ("burstable, the template's", &own, &requests, json!({"requests": both("75m", "32Mi")})),
        ("limited", &none, &limited, json!({"requests": both("50m", "32Mi"), "limits": both("1", "512Mi")})),
        (
            "guaranteed",
            &none,
            &guaranteed,
            json!({"requests": both("2", "128Mi"), "limits": both("2", "128Mi")}),
        ),
        (
            "guaranteed, the template's",
            &own,
            &guaranteed,
            json!({"requests": both("2", "64Mi"), "limits": both("2", "64Mi")}),
        ),
    ] {
        assert_eq!(of(annotations, resources), expected, "{what}");
    }
    let bad = pod(
        &json!({"ebb.dev/queue-proxy-memory-request": "lots", "ebb.dev/queue-proxy-cpu-request": "2"}),
        &json!({"containers": [web(&json!({}))]}),
    );
    let problems = refused(&bad);
    assert!(
        problems.contains("memory-request is \"lots\"") && problems.contains("cpu-limit 1"),
        "{problems}"
    );
}

#[test]
fn an_unservable_pod_is_refused_for_every_reason_at_once() {
    let mut other = one(&web(&json!({})));
    other["metadata"]["ownerReferences"] = json!([{"kind": "DaemonSet"}]);
    other["metadata"]["annotations"] = json!({"ebb.dev/container-concurrency": "many", "ebb.dev/timeout": "1.5s", "ebb.dev/drain-limit": "25h"});
    other["spec"]["hostNetwork"] = json!(true);
    other["spec"]["os"] = json!({"name": "windows"});
    other["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    other["spec"]["containers"] = json!([web(&json!({})), {"name": QUEUE_PROXY, "image": "another"}]);
    let problems = refused(&other);
    for word in [
        "hostNetwork",
        "spec.os.name is windows",
        "spec.nodeSelector is windows",
        "DaemonSet",
        "called \"queue-proxy\"",
        "container-concurrency",
        "timeout is \"1.5s\"",
        "whole seconds",
        "from 0s to 24h",
    ] {
        assert!(problems.contains(word), "{word} is missing in:\n{problems}");
    }
}

#[test]
fn a_pod_that_ends_by_itself_is_refused() {
    let mut job = one(&web(&json!({})));
    job["metadata"]["ownerReferences"] = json!([{"kind": "Job"}]);
    assert!(refused(&job).contains("belongs to a Job, which is not scaled"));
    job["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet"}]);
    injected(&job);
}

/// Its requests would come to a pod whose mesh is not ready, if the queue-proxy's word were enough.
#[test]
fn containers_added_later_are_probed_by_kubelet_and_keep_their_grace() {
    let added = |place: &str, fields: Value| {
        let startup = json!({"tcpSocket": {"port": 8080}});
        let app = web(&json!({"startupProbe": startup}));
        let spec = json!({"containers": [app], "initContainers": [], "terminationGracePeriodSeconds": 7});
        let mut pod = injected(&pod(&json!({}), &spec)).pod;
        let mut mesh = json!({"name": "mesh", "image": "mesh"});
        let (Value::Object(map), Value::Object(more)) = (&mut mesh, fields) else { unreachable!() };
        map.extend(more);
        pod["spec"][place].as_array_mut().expect("a list").insert(0, mesh);
        let again = injected(&pod).pod;
        assert_eq!(injected(&again).pod, again, "a third pass changes nothing");
        again
    };
    let exec = || json!({"exec": {"command": ["true"]}});
    let judge = |place: &str, fields: Value| variable(&added(place, fields), "EBB_READINESS_JUDGE");
    for place in ["containers", "initContainers"] {
        assert_eq!(judge(place, json!({})), "", "{place}");
        assert_eq!(judge(place, json!({"readinessProbe": exec()})), "platform", "{place}");
    }
    assert_eq!(judge("containers", json!({"startupProbe": exec()})), "platform");
    assert_eq!(judge("initContainers", json!({"startupProbe": exec()})), "", "the app starts after it");

    let pod = added("containers", json!({"livenessProbe": exec()}));
    let grace = |container: usize, kind: &str| {
        containers(&pod)[container][kind]["terminationGracePeriodSeconds"].as_u64()
    };
    assert_eq!((grace(0, "livenessProbe"), grace(1, "startupProbe")), (Some(17), Some(17)));
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

/// The name of a pod's quality-of-service class.
fn class(pod: &Value) -> &'static str {
    match Quality::of(pod) {
        Quality::BestEffort => "BestEffort",
        Quality::Burstable(_) => "Burstable",
        Quality::Guaranteed => "Guaranteed",
        Quality::OfThePod => "the pod's own",
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
