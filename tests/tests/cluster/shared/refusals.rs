//! What cannot be served is told in an Event of the Service, and left to Kubernetes as it is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use kube::api::{GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Client, discovery};
use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, bring, in_namespace};
use tests::eventually;
use vocabulary::{INJECT_LABEL, REVISION_ANNOTATION};

/// A Service that names a workload, and what people are told.
struct RefusedService {
    name: &'static str,
    /// Its selector and its ports are the usual ones, where this says nothing else.
    spec: Value,
    names: &'static str,
    reason: &'static str,
    /// What the Event's note says among other things.
    word: &'static str,
}

fn refused_services() -> Vec<RefusedService> {
    let not_servable = |name, spec, word| RefusedService {
        name,
        spec,
        names: "deployment/hello",
        reason: "NotServable",
        word,
    };
    let naming = |name, names, reason, word| RefusedService { name, spec: json!({}), names, reason, word };
    let with_udp = json!([{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    vec![
        not_servable(
            "elsewhere",
            json!({"type": "ExternalName", "externalName": "example.com", "selector": null}),
            "ExternalName",
        ),
        not_servable("headless", json!({"clusterIP": "None"}), "headless"),
        not_servable("inside", json!({"internalTrafficPolicy": "Local"}), "internalTrafficPolicy is Local"),
        not_servable(
            "outside",
            json!({"type": "NodePort", "externalTrafficPolicy": "Local"}),
            "externalTrafficPolicy is Local",
        ),
        not_servable("udp", json!({"ports": with_udp}), "port 53 is of protocol UDP"),
        RefusedService {
            // All pods with a queue-proxy: both workloads'.
            spec: json!({"selector": {INJECT_LABEL: "true"}}),
            ..naming("both", "deployment/hello", "SeveralWorkloads", "make two Services")
        },
        naming("nobodys", "deployment/nobody", "NoWorkload", "deployment/nobody, which is not there"),
        naming("daemon", "daemonset/hello", "BadAnnotation", "statefulset/NAME"),
        naming("crew", "crews.tests.ebb.dev/hello", "NotScalable", "no scale subresource"),
        naming("groupless", "rollouts.nobody.ebb.dev/hello", "NotScalable", "no API group nobody.ebb.dev"),
    ]
}

/// A kind of objects that have no scale.
async fn bring_crews(client: &Client) {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": anything}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crews.tests.ebb.dev"},
        "spec": {
            "group": "tests.ebb.dev", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "crews", "singular": "crew", "kind": "Crew"},
        },
    });
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    bring(client, &kind, definition).await;
    // As ebb looks: else it would be told first that there is no such kind, and then only counted.
    eventually("the API server tells of crews", PATIENCE, || async {
        let group = discovery::group(client, "tests.ebb.dev").await.map_err(|error| error.to_string())?;
        let mut resources = group.recommended_resources().into_iter();
        let found = resources.any(|(resource, _)| resource.plural == "crews");
        if found { Ok(()) } else { Err("it does not".to_owned()) }
    })
    .await;
}

async fn create(namespace: &TestNamespace, refused: &RefusedService) {
    let mut spec =
        json!({"selector": {"app": "hello"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    for (field, value) in refused.spec.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let service = json!({"metadata": {"name": refused.name}, "spec": spec});
    let service: Service = serde_json::from_value(service).expect("a Service");
    let made = namespace.api::<Service>().create(&PostParams::default(), &service).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", refused.name));
}

/// What all clients know Services by, slices and Endpoints, by kind and name.
async fn known(namespace: &TestNamespace) -> BTreeMap<String, ObjectMeta> {
    let all = ListParams::default();
    let slices = namespace.api::<EndpointSlice>().list(&all).await.expect("slices can be listed").items;
    let endpoints = namespace.api::<Endpoints>().list(&all).await.expect("Endpoints can be listed").items;
    let slices = slices.into_iter().map(|slice| ("slice", slice.metadata));
    let endpoints = endpoints.into_iter().map(|one| ("Endpoints", one.metadata));
    let named = |(kind, meta): (&str, ObjectMeta)| {
        (format!("{kind} {}", meta.name.as_deref().unwrap_or_default()), meta)
    };
    slices.chain(endpoints).map(named).collect()
}

/// Waits until Kubernetes has made all that it makes for these, with a pod in it.
async fn are_served_by_kubernetes(namespace: &TestNamespace, services: &[RefusedService]) {
    eventually("Kubernetes serves all of them", PATIENCE, || async {
        let slices = namespace.api::<EndpointSlice>().list(&ListParams::default()).await;
        let slices = slices.map_err(|error| error.to_string())?.items;
        let known = known(namespace).await;
        let lacks = |service: &&RefusedService| {
            let pods = if service.name == "both" { 2 } else { 1 };
            let prefix = format!("{}-", service.name);
            let is_its = |slice: &&EndpointSlice| {
                slice.metadata.name.as_deref().is_some_and(|name| name.starts_with(&prefix))
            };
            let is_ready = |slice: &EndpointSlice| {
                let ready = slice.endpoints.iter().filter(|one| {
                    one.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
                });
                ready.count() == pods
            };
            let has_slice = slices.iter().filter(is_its).any(is_ready);
            let is_external = service.name == "elsewhere";
            !(is_external || has_slice && known.contains_key(&format!("Endpoints {}", service.name)))
        };
        let lacking: Vec<&str> = services.iter().filter(lacks).map(|service| service.name).collect();
        if lacking.is_empty() { Ok(()) } else { Err(format!("not {lacking:?}")) }
    })
    .await;
}

#[test]
fn a_service_that_cannot_be_served_is_told_with_the_reason_and_not_touched() {
    in_namespace("refused", async |namespace| {
        bring_crews(&namespace.client).await;
        // Whatever a Service that names it asks for, a pod is there all the time.
        let one = |name| WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = one("hello").served_by_kubernetes().create(&namespace).await;
        let other = one("other").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        other.has_pods(1).await;
        let services = refused_services();
        for service in &services {
            create(&namespace, service).await;
        }
        are_served_by_kubernetes(&namespace, &services).await;

        let before = known(&namespace).await;
        let api = namespace.api::<Service>();
        for RefusedService { name, names, .. } in &services {
            let annotate = Patch::Merge(json!({"metadata": {"annotations": {REVISION_ANNOTATION: names}}}));
            api.patch(name, &PatchParams::default(), &annotate).await.expect("a person may annotate it");
        }
        for RefusedService { name, reason, word, .. } in &services {
            eventually(&format!("{name}: an Event {reason} that says {word:?}"), PATIENCE, || async {
                let events = namespace.api::<Event>().list(&ListParams::default()).await;
                let events = events.map_err(|error| error.to_string())?.items.into_iter();
                let is_about = |event: &Event| {
                    let about = event.regarding.as_ref();
                    about.is_some_and(|about| {
                        about.kind.as_deref() == Some("Service") && about.name.as_deref() == Some(*name)
                    })
                };
                let told = |event: Event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default());
                let told: Vec<(String, String)> = events.filter(is_about).map(told).collect();
                let is_told = told.iter().any(|(why, note)| why == reason && note.contains(*word));
                if is_told { Ok(()) } else { Err(format!("{told:?}")) }
            })
            .await;
        }
        let after = known(&namespace).await;
        assert_eq!(after, before);
        let labels = after.values().filter_map(|meta| meta.labels.as_ref()).flatten();
        let ours: Vec<_> =
            labels.filter(|(key, value)| key.contains("ebb") || value.contains("ebb")).collect();
        assert!(ours.is_empty(), "{ours:?}");
        for service in &services {
            let found = api.get(service.name).await.expect("it is there");
            assert_eq!(found.metadata.labels, None, "{}", service.name);
            let annotations = found.metadata.annotations.unwrap_or_default();
            assert_eq!(
                annotations.into_keys().collect::<Vec<_>>(),
                [REVISION_ANNOTATION],
                "{}",
                service.name
            );
        }
        hello.load().one().await.assert_all_answered();
    });
}
