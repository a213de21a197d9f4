use super::*;
use crate::inject::inject;
use crate::inject::tests::settings;

/// A ConfigMap of others: cats are welcome, dogs are not.
const PETS: ConfigMapCheck = ConfigMapCheck {
    name: "config-pets",
    findings: |data| {
        let mut findings = Findings::default();
        for key in data.keys() {
            match key.as_str() {
                "cat" => findings.warn(key, "is asleep"),
                _ => findings.refuse_place(key, "is no cat"),
            }
        }
        findings
    },
};

fn pod() -> Value {
    json!({
        "metadata": {"generateName": "hello-", "labels": {INJECT_LABEL: "true"}},
        "spec": {"containers": [{"name": "app", "image": "app", "ports": [{"containerPort": 8080}]}]},
    })
}

fn ask(question: ReviewQuestion, object: &Value, former: &Value) -> Value {
    let request = json!({"uid": "u1", "object": object, "oldObject": former});
    let review = json!({"kind": "AdmissionReview", "request": request});
    let answered = answer(review.to_string().as_bytes(), question, &settings(), &[PETS]);
    let answered = answered.expect("it is a review");
    let ReviewAnswer { review, verdict } = answered;
    assert_eq!((&review["kind"], &review["response"]["uid"]), (&json!("AdmissionReview"), &json!("u1")));
    let response = review["response"].clone();
    // The same in one word.
    let is_there = |field: &str| response.get(field).is_some();
    let expected = match (response["allowed"] == true, is_there("patch"), is_there("warnings")) {
        (false, ..) => ReviewVerdict::Refused,
        (true, true, _) => ReviewVerdict::Injected,
        (true, false, true) => ReviewVerdict::Warned,
        (true, false, false) => ReviewVerdict::Accepted,
    };
    assert_eq!(verdict, expected);
    response
}

/// The object, as the API server goes on with it.
fn patched(object: &Value, response: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = BASE64_STANDARD.decode(patch).expect("base 64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch");
        json_patch::patch(&mut object, &patch).expect("it fits");
    }
    object
}

#[test]
fn a_pod_is_patched_into_what_ebb_inject_prints_and_a_second_time_not_at_all() {
    let response = ask(ReviewQuestion::Inject, &pod(), &Value::Null);
    let once = patched(&pod(), &response);
    let Outcome::Injected(Injection { pod: printed, .. }) = inject(&pod(), &settings()) else { panic!() };
    assert_eq!(once, printed);
    let again = ask(ReviewQuestion::Inject, &once, &Value::Null);
    assert_eq!((&again["allowed"], again.get("patch"), again.get("warnings")), (&json!(true), None, None));
}

#[test]
fn pods_that_do_not_ask_are_admitted_and_unservable_ones_hear_every_reason() {
    let plain = ask(ReviewQuestion::Inject, &json!({"spec": {}}), &Value::Null);
    assert_eq!((&plain["allowed"], plain.get("patch")), (&json!(true), None));
    let mut bad = pod();
    bad["spec"]["hostNetwork"] = json!(true);
    bad["metadata"]["annotations"] = json!({"ebb.dev/timeout": "soon"});
    let refused = ask(ReviewQuestion::Inject, &bad, &Value::Null);
    assert_eq!(refused["allowed"], false);
    let message = refused["status"]["message"].as_str().expect("it says why");
    assert!(message.contains("hostNetwork") && message.contains("ebb.dev/timeout"), "{message}");
}

fn workload(annotations: &Value) -> Value {
    json!({"kind": "Deployment", "metadata": {"annotations": annotations}, "spec": {"template": pod()}})
}

#[test]
fn every_new_problem_is_told_at_once_and_an_old_one_stands_in_nobodys_way() {
    let two =
        workload(&json!({"autoscaling.knative.dev/window": "5", "autoscaling.knative.dev/target": "none"}));
    let refused = ask(ReviewQuestion::Validate, &two, &Value::Null);
    assert_eq!(refused["allowed"], false);
    let message = refused["status"]["message"].as_str().expect("it says why");
    assert!(message.contains("window") && message.contains("target"), "{message}");
    // One of two is repaired, the other one stays for now.
    let one = workload(&json!({"autoscaling.knative.dev/window": "5"}));
    let repaired = ask(ReviewQuestion::Validate, &one, &two);
    assert_eq!(
        (&repaired["allowed"], repaired["warnings"].as_array().map(Vec::len)),
        (&json!(true), Some(1))
    );
    // Another one comes instead.
    let other = workload(&json!({"autoscaling.knative.dev/target": "none"}));
    assert_eq!(ask(ReviewQuestion::Validate, &other, &one)["allowed"], false);
    let good = workload(&json!({"autoscaling.knative.dev/window": "30s", "example.com/x": "y"}));
    let response = ask(ReviewQuestion::Validate, &good, &one);
    assert_eq!((&response["allowed"], response.get("warnings")), (&json!(true), None));
}

/// A document of class hpa is read with the annotations beside it, on the workload and on the template.
#[test]
fn every_problem_of_a_document_is_told_with_those_of_the_annotations() {
    let malformed = json!({"ebb.dev/hpa": "{maxReplicas: 0, minReplica: 1}", "ebb.dev/routing-dwell": "5"});
    let mut on_template = workload(&json!({}));
    on_template["spec"]["template"]["metadata"]["annotations"] = malformed.clone();
    for object in [workload(&malformed), on_template] {
        let refused = ask(ReviewQuestion::Validate, &object, &Value::Null);
        assert_eq!(refused["allowed"], false, "{refused}");
        let message = refused["status"]["message"].as_str().expect("it says why");
        for place in ["ebb.dev/hpa.maxReplicas is 0", "ebb.dev/hpa.minReplica ", "ebb.dev/routing-dwell"] {
            assert!(message.contains(place), "{place} is missing in {message}");
        }
    }
    let no_yaml = workload(&json!({"ebb.dev/hpa": "{maxReplicas"}));
    assert_eq!(ask(ReviewQuestion::Validate, &no_yaml, &Value::Null)["allowed"], false);
    let sound = workload(&json!({"ebb.dev/hpa": "maxReplicas: 3"}));
    assert_eq!(ask(ReviewQuestion::Validate, &sound, &Value::Null)["allowed"], true);
}

#[test]
fn a_manifest_that_names_the_count_is_warned_of() {
    let applied = r#"{"spec":{"replicas":3}}"#;
    let object = workload(&json!({"kubectl.kubernetes.io/last-applied-configuration": applied}));
    let response = ask(ReviewQuestion::Validate, &object, &Value::Null);
    assert!(
        response["allowed"] == true
            && response["warnings"][0].as_str().is_some_and(|text| text.contains("replicas"))
    );
}

#[test]
fn a_server_side_apply_that_names_the_count_is_warned_of() {
    let entry = |operation: &str, subresource: &str, field: &str| json!({"manager": "m", "operation": operation, "subresource": subresource, "fieldsV1": {"f:spec": {field: {}}}});
    let rows = [
        (entry("Apply", "", "f:replicas"), true),
        (entry("Apply", "", "f:template"), false),
        (entry("Update", "", "f:replicas"), false),
        (entry("Apply", "scale", "f:replicas"), false),
    ];
    for (entry, is_warned) in rows {
        let mut object = workload(&json!({}));
        object["metadata"]["managedFields"] = json!([{"manager": "other", "operation": "Update"}, entry]);
        let response = ask(ReviewQuestion::Validate, &object, &Value::Null);
        let warning = response["warnings"][0].as_str().unwrap_or_default();
        assert_eq!(warning.contains("spec.replicas"), is_warned, "{object}");
    }
}

#[test]
fn a_count_in_a_manifest_is_warned_of_only_where_the_manifest_is_applied() {
    let manifest = |replicas: u32| format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#);
    let applied = |manifest: &str, replicas: u32, other: &str| {
        let mut object = workload(&json!({"kubectl.kubernetes.io/last-applied-configuration": manifest}));
        object["metadata"]["labels"] = json!({"other": other});
        object["spec"]["replicas"] = json!(replicas);
        object
    };
    let is_warned = |object: &Value, former: &Value| {
        let response = ask(ReviewQuestion::Validate, object, former);
        response["warnings"][0].as_str().is_some_and(|text| text.contains("spec.replicas"))
    };
    let former = applied(&manifest(3), 3, "a");
    assert!(is_warned(&former, &Value::Null), "it is created");
    assert!(!is_warned(&applied(&manifest(3), 3, "b"), &former), "a label is written");
    assert!(is_warned(&applied(&manifest(4), 4, "a"), &former), "another manifest is applied");
    assert!(is_warned(&former, &applied(&manifest(3), 7, "a")), "the same manifest is applied again");
    let by_server = |time: &str| {
        let mut object = workload(&json!({}));
        let fields = json!({"f:spec": {"f:replicas": {}}});
        object["metadata"]["managedFields"] =
            json!([{"operation": "Apply", "time": time, "fieldsV1": fields}]);
        object
    };
    assert!(!is_warned(&by_server("1"), &by_server("1")) && is_warned(&by_server("2"), &by_server("1")));
}

#[test]
fn a_page_in_a_file_is_refused_on_a_cluster() {
    for (page, is_allowed) in [("auto", true), ("off", true), ("page.html", false), ("", false)] {
        let response =
            ask(ReviewQuestion::Validate, &workload(&json!({"ebb.dev/waiting-page": page})), &Value::Null);
        assert_eq!(response["allowed"], is_allowed, "{response}");
    }
}

/// Each of these is fixed when a pod is made, from its template.
#[test]
fn template_annotations_on_a_workload_are_warned_of() {
    for (key, value) in [
        ("ebb.dev/drain-limit", "10s"),
        ("ebb.dev/ignore-user-agents", "HAProxy"),
        ("ebb.dev/queue-proxy-cpu-limit", "2"),
    ] {
        let response = ask(ReviewQuestion::Validate, &workload(&json!({key: value})), &Value::Null);
        let warning = response["warnings"][0].as_str().unwrap_or_default();
        assert!(response["allowed"] == true && warning.contains(key), "{response}");
        let mut sound = workload(&json!({}));
        sound["spec"]["template"]["metadata"]["annotations"] = json!({key: value});
        let response = ask(ReviewQuestion::Validate, &sound, &Value::Null);
        assert_eq!((&response["allowed"], response.get("warnings")), (&json!(true), None), "{response}");
    }
}

#[test]
fn annotations_are_checked_against_the_clusters_settings() {
    let object = workload(&json!({"autoscaling.knative.dev/max-scale": "20"}));
    let review = json!({"request": {"uid": "u1", "object": object}});
    let data = [("max-scale", "5"), ("max-scale-limit", "10")];
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let cluster = ClusterConfig::parse(&data).expect("it is sound").value;
    let settings = InjectorSettings { cluster, ..settings() };
    let review = review.to_string();
    let refused = answer(review.as_bytes(), ReviewQuestion::Validate, &settings, &[]);
    let refused = refused.expect("it is a review");
    let message = refused.review["response"]["status"]["message"].as_str().expect("it says why");
    assert!(message.contains("above max-scale-limit 10"), "{message}");
}

#[test]
fn the_configuration_of_the_cluster_is_checked_and_other_objects_are_not() {
    let config = |name: &str| json!({"kind": "ConfigMap", "metadata": {"name": name}, "data": {"stable-window": "soon", "no-such-key": "1"}});
    let refused = ask(ReviewQuestion::Validate, &config("config-autoscaler"), &Value::Null);
    let message = refused["status"]["message"].as_str().expect("it says why");
    assert!(message.contains("stable-window") && message.contains("no-such-key"), "{message}");
    assert_eq!(ask(ReviewQuestion::Validate, &config("other"), &Value::Null)["allowed"], true);
    for no_review in [r#"{"kind": "AdmissionReview"}"#, r#"{"request": 3}"#, r#"{"request": null}"#, "{", ""]
    {
        assert_eq!(
            answer(no_review.as_bytes(), ReviewQuestion::Inject, &settings(), &[]),
            None,
            "{no_review}"
        );
    }
}

/// Retired settings are accepted for one version, and the person who applies them is told their names.
#[test]
fn retired_settings_are_accepted_and_warned_of_by_name() {
    let data = json!({"hpa-ignore-terminating-pods": "true", "hpa-tolerance": "0x1p-2"});
    let config = json!({"kind": "ConfigMap", "metadata": {"name": "config-autoscaler"}, "data": data});
    let annotated = workload(&json!({"autoscaling.knative.dev/target": "0x1p4"}));
    let rows = [
        (config, vec!["hpa-ignore-terminating-pods", "hpa-tolerance"]),
        (annotated, vec!["autoscaling.knative.dev/target"]),
    ];
    for (object, keys) in rows {
        let response = ask(ReviewQuestion::Validate, &object, &Value::Null);
        assert_eq!(response["allowed"], true, "{response}");
        let warnings = response["warnings"].as_array().expect("there are some");
        let warns_of = |key: &str| {
            let mut texts = warnings.iter().filter_map(Value::as_str);
            texts.any(|text| text.contains(key) && text.contains("is retired"))
        };
        for key in &keys {
            assert!(warns_of(key), "{key} is missing in {response}");
        }
        assert_eq!(warnings.len(), keys.len(), "{response}");
    }
}

#[test]
fn config_maps_whose_keys_others_know_are_checked_by_those() {
    let config =
        |data: Value| json!({"kind": "ConfigMap", "metadata": {"name": "config-pets"}, "data": data});
    let broken = config(json!({"cat": "", "dog": "", "fish": ""}));
    let refused = ask(ReviewQuestion::Validate, &broken, &Value::Null);
    assert_eq!(refused["status"]["message"], "dog is no cat; fish is no cat");
    // One of two is repaired, the other one stays for now.
    let repaired = ask(ReviewQuestion::Validate, &config(json!({"cat": "", "dog": ""})), &broken);
    let warnings = json!(["dog is no cat", "cat is asleep"]);
    assert_eq!((&repaired["allowed"], &repaired["warnings"]), (&json!(true), &warnings));
}

/// What the API server is answered for each pod of the corpus, to the byte: the first time, and the second.
/// The object has parts that no check looks at, too.
#[test]
fn the_answers_are_those_that_are_written_down() {
    let pods: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../testdata/pods.yaml")).expect("it is YAML");
    let mut answers = Vec::new();
    for mut pod in pods {
        let name = pod["metadata"]["name"].clone();
        pod["metadata"]["labels"] = json!({INJECT_LABEL: "true", "app": name});
        pod["metadata"]["managedFields"] = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
        pod["status"] = json!({"phase": "Pending"});
        let first = ask(ReviewQuestion::Inject, &pod, &Value::Null);
        let second = ask(ReviewQuestion::Inject, &patched(&pod, &first), &Value::Null);
        let patch = BASE64_STANDARD.decode(first["patch"].as_str().unwrap_or_default()).expect("base 64");
        let patch = String::from_utf8(patch).expect("a text");
        answers.push(json!([name, patch, first["warnings"], first["status"], second]).to_string());
    }
    let written = include_str!("../../testdata/answers.txt").lines();
    assert!(answers.iter().map(String::as_str).eq(written), "{}", answers.join("\n"));
}
