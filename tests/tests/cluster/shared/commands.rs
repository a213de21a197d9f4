//! What a person does with `ebb` itself: adopt, look, check, give back.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::PostParams;
use serde_json::{Value, json};
use tests::cluster::{
    PATIENCE, TestNamespace, WorkloadPlan, ebb, in_namespace, plugin_of_kubectl, succeeds, text,
};
use tests::eventually;

const KUBERNETES: &str = "endpointslice-controller.k8s.io";
const OURS: &str = "ebb.dev";

#[test]
fn a_service_is_adopted_looked_at_and_given_back_by_commands_under_load() {
    in_namespace("commands", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        hello.load().one().await.assert_all_answered();
        let load = hello.load().path("/?sleep=50").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(30)).await });

        let said = succeeds(&namespace, &["adopt", "service/hello"]).await;
        assert!(said.contains("is served through ebb, for deployment/hello"), "{said}");
        assert_eq!(hello.slice_writers().await, [OURS]);

        let list: Value =
            serde_json::from_str(&succeeds(&namespace, &["get", "-o", "json"]).await).expect("JSON");
        let revision = format!("{}/deployment/hello", namespace.name);
        assert_eq!(list["revisions"].as_array().map(Vec::len), Some(1), "those of the namespace alone");
        assert_eq!(list["revisions"][0]["name"], revision);
        let said = succeeds(&namespace, &["explain", "hello"]).await;
        assert!(said.contains(&revision) && said.contains("min-scale 1"), "{said}");
        let said = succeeds(&namespace, &["check"]).await;
        assert!(said.contains("ok       service/hello") && said.ends_with("all is well\n"), "{said}");
        for secret in ["ebb-ca", "ebb-autoscaler-tls", "ebb-activator-tls", "ebb-injector-tls"] {
            let expected = format!("ok       the certificate in Secret {secret} is good for ");
            assert!(said.contains(&expected), "{said}");
        }
        // Of how many depends on what other suites do to activators meanwhile.
        let is_linked = |line: &str| line.contains(" is linked to ") && line.ends_with(" activators");
        assert!(said.lines().any(is_linked), "{said}");

        let said = succeeds(&namespace, &["release", "service/hello"]).await;
        assert!(said.contains("is served by Kubernetes again"), "{said}");
        assert_eq!(hello.slice_writers().await, [KUBERNETES]);
        let service = namespace.api::<Service>().get("hello").await.expect("it is there");
        let selector = service.spec.and_then(|spec| spec.selector).unwrap_or_default();
        assert_eq!(selector.get("app").map(String::as_str), Some("hello"), "as it was");
        let left: Vec<String> = service.metadata.annotations.unwrap_or_default().into_keys().collect();
        assert!(!left.iter().any(|key| key.starts_with("ebb.dev/")), "{left:?}");

        let tally = traffic.await.expect("the client does not panic");
        tally.assert_nothing_missing();
    });
}

#[test]
fn release_all_brings_back_what_rests_at_zero() {
    in_namespace("release-all", async |namespace| {
        let hello = WorkloadPlan::new("hello").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        succeeds(&namespace, &["adopt", "svc/hello", "--workload", "hello"]).await;
        hello.has_pods(0).await;
        succeeds(&namespace, &["release", "--all"]).await;
        hello.has_only_slices_of(KUBERNETES).await;
        hello.has_pods(1).await;
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn a_service_that_is_deleted_while_it_is_given_back_is_no_failure() {
    in_namespace("deleted", async |namespace| {
        // No pod of it is ever ready, so that the command waits.
        let plan = WorkloadPlan::new("hello").app_args(&["--start-delay-ms", "600000"]);
        let hello = plan.create(&namespace).await;
        let deleted = async {
            eventually("the Service has its selector back", PATIENCE, || async {
                let service = namespace.api::<Service>().get("hello").await.expect("it is there");
                let selector = service.spec.and_then(|spec| spec.selector).unwrap_or_default();
                if selector.is_empty() { Err("it has none".to_owned()) } else { Ok(()) }
            })
            .await;
            hello.delete().await;
        };
        let release = succeeds(&namespace, &["release", "service/hello", "--selector", "app=hello"]);
        let (said, ()) = tokio::join!(release, deleted);
        assert!(
            said.contains("service/hello in deleted-") && said.contains("was deleted meanwhile"),
            "{said}"
        );
    });
}

#[test]
fn every_holder_of_a_workload_is_named_and_a_workload_at_zero_is_not_given_back() {
    in_namespace("held", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(0).await;
        hello.annotate("ebb.dev/paused", Some("true")).await;
        hello.has_event("Paused").await;
        let said = text(&ebb(&namespace, &["get"]).await);
        let paused = format!("deployment {}/hello: annotation ebb.dev/paused", namespace.name);
        assert!(said.contains(&paused) && !said.contains("last good configuration"), "{said}");
        let said = succeeds(&namespace, &["check"]).await;
        let remark = format!("remark   deployment/hello in {} is as ebb wants it", namespace.name);
        assert!(said.contains(&remark) && said.contains("ebb.dev/paused"), "{said}");

        let release = ["release", "service/hello", "--selector", "app=hello"];
        let output = ebb(&namespace, &release).await;
        assert!(!output.status.success() && text(&output).contains("scale it first"), "{}", text(&output));
        assert_eq!(hello.slice_writers().await, [OURS], "it is as it was");
        hello.scale_by_hand(1).await;
        hello.has_pods(1).await;
        succeeds(&namespace, &release).await;
        hello.has_only_slices_of(KUBERNETES).await;
    });
}

#[test]
fn a_service_that_cannot_be_served_is_left_as_it_was_with_the_reason() {
    in_namespace("not-servable", async |namespace| {
        let hello = WorkloadPlan::new("hello").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        let spec = json!({"clusterIP": "None", "selector": {"app": "hello"}, "ports": [{"port": 80}]});
        let service = serde_json::from_value(json!({"metadata": {"name": "headless"}, "spec": spec}));
        let api = namespace.api::<Service>();
        api.create(&PostParams::default(), &service.expect("a Service")).await.expect("it is made");

        let output = ebb(&namespace, &["adopt", "service/headless"]).await;
        assert!(!output.status.success() && text(&output).contains("headless"), "{}", text(&output));
        let after = api.get("headless").await.expect("it is there");
        assert_eq!(after.metadata.annotations, None);
        assert!(
            after.spec.and_then(|spec| spec.selector).is_some_and(|selector| selector.contains_key("app"))
        );

        let output = ebb(&namespace, &["adopt", "service/nobody"]).await;
        assert!(text(&output).contains("there is no service/nobody"), "{}", text(&output));
    });
}

#[test]
fn as_a_plugin_of_kubectl_it_means_the_cluster() {
    in_namespace("plugin", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_event("Adopted").await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = plugin_of_kubectl(&namespace, folder.path());
        command.args(["get", "--all-namespaces", "-o", "json"]);
        let output = command.output().await.expect("it runs");
        let list: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        let name = format!("{}/deployment/hello", namespace.name);
        let names: Vec<&Value> =
            list["revisions"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        assert!(names.iter().any(|one| **one == name.as_str()), "{names:?}");
    });
}

/// The kubeconfig of the test with two contexts of its own: one that works, in the test's namespace, and the
/// present one, which names a cluster that is not there.
fn two_contexts(namespace: &TestNamespace) -> Value {
    let text = std::fs::read_to_string(&namespace.kubeconfig).expect("it can be read");
    let mut config: Value = serde_saphyr::from_str(&text).expect("it is YAML");
    let present = config["current-context"].clone();
    let mut contexts = config["contexts"].as_array().into_iter().flatten();
    let mut context = contexts.find(|context| context["name"] == present).expect("it is there").clone();
    context["name"] = json!("good");
    context["context"]["namespace"] = json!(namespace.name);
    let broken =
        json!({"name": "broken", "context": {"cluster": "nowhere", "user": context["context"]["user"]}});
    config["contexts"] = json!([broken, context]);
    config["current-context"] = json!("broken");
    config
}

#[test]
fn flags_name_the_kubeconfig_the_context_and_the_namespace_as_they_do_for_kubectl() {
    in_namespace("flags", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_event("Adopted").await;
        // Beside the other, for it may name files by where it lies.
        let folder = namespace.kubeconfig.parent().expect("it lies in a folder");
        let file = tempfile::NamedTempFile::new_in(folder).expect("a file");
        std::fs::write(file.path(), two_contexts(&namespace).to_string()).expect("it can be written");
        let file = file.path().to_str().expect("its name is text");
        let run = async |arguments: &[&str]| {
            let mut command = tokio::process::Command::new(tests::ebb::executable());
            command.args(["get", "-o", "json"]).args(arguments).env_remove("EBB_API").kill_on_drop(true);
            // The flag is stronger than what would do for everything else.
            command.env("KUBECONFIG", "/nowhere/config");
            command.output().await.expect("the executable runs (cargo build -p ebb)")
        };
        let names = async |arguments: &[&str]| -> Vec<String> {
            let output = run(arguments).await;
            assert!(output.status.success(), "{arguments:?}: {}", text(&output));
            let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let revisions = list["revisions"].as_array().cloned().unwrap_or_default().into_iter();
            revisions.filter_map(|revision| Some(revision["name"].as_str()?.to_owned())).collect()
        };
        let ours = format!("{}/deployment/hello", namespace.name);
        let good = ["--kubeconfig", file, "--context", "good"];
        assert_eq!(names(&good).await, [ours.as_str()], "the context has a namespace");
        let elsewhere = ["--kubeconfig", file, "--context", "good", "-n", "kube-system"];
        assert_eq!(names(&elsewhere).await, Vec::<String>::new());
        for (arguments, named) in [
            (&["--kubeconfig", file][..], "context broken of the kubeconfig cannot be used"),
            (&["--kubeconfig", file, "--context", "absent"][..], "context absent of the kubeconfig"),
            (&["-n", namespace.name.as_str()][..], "no cluster is known"),
        ] {
            let output = run(arguments).await;
            assert!(!output.status.success() && text(&output).contains(named), "{}", text(&output));
        }
    });
}
