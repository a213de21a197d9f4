//! Whose addresses stand behind the public Service of a revision: contract §3.2 and §3.3, points 3 and 4.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conditions::{ConditionText, written};
use super::planned_write::{ControllerStep, PlannedWrite, WriteForm, ensured_status};
use super::services::{is_h2c, labels_of, private_id, public_id};
use crate::knative::keys;
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind, list, number, owner_reference, text};
use crate::knative::revision_spec::request_port;
use crate::knative::subset::chosen;

/// The Service in front of all activators.
const ACTIVATORS: &str = "activator-service";
/// The message of a `ServerlessService` that is not ready.
const NOT_READY: &str = "K8s Service is not ready";

/// Whose addresses the public Endpoints hold, and the two conditions that follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndpointsChoice {
    are_activators: bool,
    is_populated: bool,
    is_by_activators: bool,
}

/// The table of `kpa.md` §7.11.
fn choice(mode: &str, ready_pods: usize, ready_activators: usize) -> EndpointsChoice {
    let by = |are_activators, is_populated, is_by_activators| EndpointsChoice {
        are_activators,
        is_populated,
        is_by_activators,
    };
    match (mode, ready_pods, ready_activators) {
        (_, 0, 0) => by(false, false, true),
        (_, 0, _) => by(true, false, true),
        ("Serve", _, _) => by(false, true, false),
        // With pods and without activators the pods are taken, and the condition says so all the same.
        (_, _, activators) => by(activators > 0, true, true),
    }
}

/// The Endpoints of the public Service, where they are not as they are to be.
pub(super) fn of_serverless(
    known: &KnownObjects,
    system: &str,
    id: &ObjectId,
    serverless: &Value,
) -> Option<PlannedWrite> {
    known.get(&public_id(id))?;
    let wanted = wanted_subsets(known, system, id, serverless)?;
    let endpoints = id.beside(PlayedKind::Endpoints, &id.name);
    let step = ControllerStep::Endpoints;
    let Some(live) = known.get(&endpoints) else {
        let object = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "namespace": id.namespace, "name": id.name,
                "labels": labels_of(serverless, "Public"),
                "ownerReferences": owner_reference(PlayedKind::ServerlessService, serverless),
            },
            "subsets": wanted,
        });
        return Some(PlannedWrite { step, id: endpoints, form: WriteForm::Create(object) });
    };
    let is_same = keys_of(live.get("subsets").unwrap_or(&Value::Null)) == keys_of(&wanted);
    let form = (!is_same).then(|| WriteForm::Patch(json!({"subsets": wanted})))?;
    Some(PlannedWrite { step, id: endpoints, form })
}

/// The subsets as they are to be; `None` until both sources are there.
fn wanted_subsets(known: &KnownObjects, system: &str, id: &ObjectId, serverless: &Value) -> Option<Value> {
    let (pods, activators) = sources(known, system, id)?;
    let port = request_port(is_h2c(serverless));
    let choice = choice(text(serverless, "/spec/mode"), ready(pods).len(), ready(activators).len());
    if !choice.are_activators {
        return Some(subsets(pods, port, None));
    }
    let count = usize::try_from(number(serverless, "/spec/numActivators")).unwrap_or(0);
    let all = ready(activators);
    // The name alone, without the namespace.
    Some(subsets(activators, port, Some(&chosen(&all, count, &id.name))))
}

/// The Endpoints of the pods and those of the activators.
fn sources<'k>(known: &'k KnownObjects, system: &str, id: &ObjectId) -> Option<(&'k Value, &'k Value)> {
    let pods = known.get(&id.beside(PlayedKind::Endpoints, &private_id(id).name))?;
    Some((pods, known.get(&ObjectId::new(PlayedKind::Endpoints, system, ACTIVATORS))?))
}

/// The addresses that are ready.
fn ready(endpoints: &Value) -> BTreeSet<&str> {
    let addresses = list(endpoints, "/subsets").iter().flat_map(|subset| list(subset, "/addresses"));
    addresses.filter_map(|address| address["ip"].as_str()).collect()
}

/// Copies ready addresses, or those of them that are named, with the ports of requests and TLS.
fn subsets(source: &Value, port: u16, named: Option<&BTreeSet<&str>>) -> Value {
    let kept = list(source, "/subsets").iter().filter_map(|subset| {
        let is_named = |address: &&Value| {
            named.is_none_or(|named| address["ip"].as_str().is_some_and(|ip| named.contains(ip)))
        };
        let addresses = subset["addresses"].as_array()?.iter().filter(is_named);
        let addresses: Vec<&Value> = addresses.collect();
        let is_kept = |entry: &&Value| {
            [Some(i64::from(port)), Some(i64::from(keys::TLS_PORT))].contains(&entry["port"].as_i64())
        };
        let ports: Vec<&Value> = subset["ports"].as_array()?.iter().filter(is_kept).collect();
        (!addresses.is_empty()).then(|| json!({"addresses": addresses, "ports": ports}))
    });
    kept.collect()
}

/// The addresses with their pods, and the ports: the API server keeps them in an order of its own.
fn keys_of(subsets: &Value) -> BTreeSet<String> {
    let of_subset = |subset: &Value| -> Vec<String> {
        let ports = list(subset, "/ports").iter();
        let mut ports: Vec<String> = ports.map(|port| format!("{}:{}", port["name"], port["port"])).collect();
        ports.sort();
        let key =
            |address: &Value| format!("{} {} {ports:?}", address["ip"], text(address, "/targetRef/uid"));
        list(subset, "/addresses").iter().map(key).collect()
    };
    list(subsets, "").iter().flat_map(of_subset).collect()
}

/// The status of a `ServerlessService`, where it is not as it is to be.
pub(super) fn status_of(
    known: &KnownObjects,
    system: &str,
    id: &ObjectId,
    serverless: &Value,
    now: &str,
) -> Option<PlannedWrite> {
    let has = |id: &ObjectId| known.get(id).is_some();
    let has_endpoints = has(&id.beside(PlayedKind::Endpoints, &id.name));
    // The controller says nothing of addresses that it has not written yet.
    if has_endpoints && of_serverless(known, system, id, serverless).is_some() {
        return None;
    }
    let choice = sources(known, system, id).map(|(pods, activators)| {
        choice(text(serverless, "/spec/mode"), ready(pods).len(), ready(activators).len())
    });
    let populated = ConditionText::new("EndpointsPopulated", "Unknown");
    let populated = match choice {
        _ if !has(&private_id(id)) => populated.because("CreatingPrivateService", NOT_READY),
        _ if !has(&public_id(id)) => populated.because("CreatingPublicService", NOT_READY),
        Some(choice) if has_endpoints && choice.is_populated => ConditionText::new(populated.kind, "True"),
        Some(_) if has_endpoints => populated.because("NoHealthyBackends", NOT_READY),
        _ => populated.because("CreatingPublicEndpoints", NOT_READY),
    };
    let is_by_activators = has_endpoints && choice.is_some_and(|choice| choice.is_by_activators);
    let by_activators =
        ConditionText::new("ActivatorEndpointsPopulated", if is_by_activators { "True" } else { "False" });
    let conditions = [populated, populated.renamed("Ready"), by_activators.for_information()];
    let name = |id: ObjectId| if has(&id) { json!(id.name) } else { Value::Null };
    let status = json!({
        "observedGeneration": number(serverless, "/metadata/generation"),
        "serviceName": name(public_id(id)),
        "privateServiceName": name(private_id(id)),
        "conditions": written(serverless, &conditions, now),
    });
    ensured_status(ControllerStep::ServerlessStatus, id, serverless, &status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_table_of_modes() {
        for (mode, pods, activators, expected) in [
            ("Serve", 2, 2, (false, true, false)),
            ("Serve", 2, 0, (false, true, false)),
            ("Serve", 0, 2, (true, false, true)),
            ("Proxy", 2, 2, (true, true, true)),
            ("Proxy", 0, 2, (true, false, true)),
            ("Proxy", 2, 0, (false, true, true)),
            ("Serve", 0, 0, (false, false, true)),
            ("Proxy", 0, 0, (false, false, true)),
        ] {
            let found = choice(mode, pods, activators);
            let found = (found.are_activators, found.is_populated, found.is_by_activators);
            assert_eq!(found, expected, "{mode} {pods} {activators}");
        }
    }

    #[test]
    fn ready_addresses_are_copied_with_the_ports_of_requests() {
        let source = json!({"subsets": [{
            "addresses": [{"ip": "10.0.0.1", "targetRef": {"uid": "a"}}, {"ip": "10.0.0.2"}],
            "notReadyAddresses": [{"ip": "10.0.0.3"}],
            "ports": [{"name": "http", "port": 8012}, {"name": "http2", "port": 8013}, {"name": "m", "port": 9090}],
        }]});
        let named = BTreeSet::from(["10.0.0.1", "10.0.0.3"]);
        let copied = subsets(&source, 8012, Some(&named));
        let expected = json!([{
            "addresses": [{"ip": "10.0.0.1", "targetRef": {"uid": "a"}}], "ports": [{"name": "http", "port": 8012}],
        }]);
        assert_eq!(copied, expected);
        assert_eq!(subsets(&source, 8012, Some(&BTreeSet::new())), json!([]));
        assert_eq!(keys_of(&copied).len(), 1);
    }
}
