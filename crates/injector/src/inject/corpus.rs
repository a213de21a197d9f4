//! Pods as people run them (`testdata/pods.yaml`), and what injection must leave as it is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use vocabulary::{MilliValue, parse_quantity};

use super::tests::settings;
use super::*;

/// Each asks for a queue-proxy.
fn corpus() -> Vec<Value> {
    let mut pods: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../testdata/pods.yaml")).expect("it is YAML");
    for pod in &mut pods {
        pod["metadata"]["labels"] = json!({INJECT_LABEL: "true"});
    }
    pods
}

fn injected(pod: &Value) -> Value {
    match inject(pod, &settings()) {
        Outcome::Injected(injection) => injection.pod,
        other @ (Outcome::NotAsked | Outcome::Refused(_)) => panic!("{}: {other:?}", pod["metadata"]["name"]),
    }
}

/// Amounts of a container, or of a whole pod, that count for the class: those above zero.
fn written(holder: &Value, part: &str) -> BTreeMap<&'static str, MilliValue> {
    let of = |name: &'static str| {
        let text = holder["resources"][part][name].as_str()?;
        let amount = parse_quantity(text).expect("a quantity");
        Some((name, amount)).filter(|(_, amount)| *amount > MilliValue::ZERO)
    };
    ["cpu", "memory"].into_iter().filter_map(of).collect()
}

/// The same of a container, where a request that is not written is the limit.
fn amounts(container: &Value, part: &str) -> BTreeMap<&'static str, MilliValue> {
    let mut amounts = if part == "requests" { written(container, "limits") } else { BTreeMap::new() };
    amounts.extend(written(container, part));
    amounts
}

/// The class as Kubernetes' API server computes it, by the sums over all containers: another way than the
/// injector's.
fn class(pod: &Value) -> &'static str {
    let list = |key: &str| pod["spec"][key].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = list("containers").into_iter().chain(list("initContainers")).collect();
    let sum = |part: &str| {
        let mut sum = BTreeMap::new();
        for (name, amount) in all.iter().flat_map(|container| amounts(container, part)) {
            *sum.entry(name).or_insert(0) += amount.value();
        }
        sum
    };
    let (mut requests, mut limits) = (sum("requests"), sum("limits"));
    let mut are_limited = all.iter().all(|container| amounts(container, "limits").len() == 2);
    // What a pod says as a whole counts alone. Where it gives a limit and no request, that is what its
    // containers request together, or else the limit.
    let of_pod = |part: &str| -> BTreeMap<&str, _> {
        written(&pod["spec"], part).into_iter().map(|(name, amount)| (name, amount.value())).collect()
    };
    if !of_pod("requests").is_empty() || !of_pod("limits").is_empty() {
        let of_containers = requests;
        limits = of_pod("limits");
        let not_written =
            limits.iter().map(|(name, limit)| (*name, *of_containers.get(name).unwrap_or(limit)));
        requests = not_written.chain(of_pod("requests")).collect();
        are_limited = limits.len() == 2;
    }
    match () {
        () if requests.is_empty() && limits.is_empty() => "BestEffort",
        () if are_limited && requests == limits => "Guaranteed",
        () => "Burstable",
    }
}

/// Amounts that the API server takes: no request is above its limit.
fn resources() -> impl Strategy<Value = Value> {
    let amounts =
        [None, Some("0"), Some("100m"), Some("0.1"), Some("1"), Some("1000m"), Some("64Mi"), Some("1Gi")];
    let one = move || (select(amounts.to_vec()), select(amounts.to_vec()));
    (one(), one()).prop_map(|(cpu, memory)| {
        let mut resources = json!({"requests": {}, "limits": {}});
        for (name, (request, limit)) in [("cpu", cpu), ("memory", memory)] {
            let amount = |text: Option<&str>| text.map(|text| parse_quantity(text).expect("a quantity"));
            let is_too_much = limit.is_some() && amount(request) > amount(limit);
            let request = if is_too_much { limit } else { request };
            for (part, text) in [("requests", request), ("limits", limit)] {
                if let Some(text) = text {
                    resources[part][name] = json!(text);
                }
            }
        }
        resources
    })
}

/// A pod of the corpus, some of whose containers ask for something else.
fn pods() -> impl Strategy<Value = Value> {
    let changes = prop::collection::vec(prop::option::of(resources()), 6);
    (select(corpus()), changes).prop_map(|(mut pod, changes)| {
        let mut changes = changes.into_iter();
        for key in ["containers", "initContainers"] {
            for container in pod["spec"][key].as_array_mut().into_iter().flatten() {
                if let Some(resources) = changes.next().flatten() {
                    container["resources"] = resources;
                }
            }
        }
        pod
    })
}

#[test]
fn every_pod_of_the_corpus_gets_a_queue_proxy_and_a_second_pass_changes_nothing() {
    for pod in corpus() {
        let once = injected(&pod);
        assert_eq!(injected(&once), once, "{}", pod["metadata"]["name"]);
    }
}

proptest! {
    #[test]
    fn the_class_of_no_pod_changes(pod in pods()) {
        prop_assert_eq!(class(&injected(&pod)), class(&pod));
    }
}
