//! An activator that stands in many slices goes: whose are written first, and how fast?

use cluster::{BURST, WRITE_EVERY};

use std::collections::BTreeSet;

use super::*;

const AT_REST: usize = 200;

pub(super) fn activator() -> Value {
    let labels = json!({"app.kubernetes.io/name": "ebb", "app.kubernetes.io/component": "activator"});
    let metadata = json!({"name": "activator-1", "namespace": "ebb-system", "labels": labels});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    json!({"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Running", "podIP": "10.244.1.9", "conditions": ready}})
}

#[tokio::test]
async fn slices_of_revisions_with_pods_come_first_and_all_of_them_no_faster_than_the_pace() {
    let mut laboratory = Laboratory::start().await;
    // By their names the last.
    let awake = ["z1", "z2", "z3"].map(str::to_owned);
    let at_rest = (0..AT_REST).map(|number| format!("a{number:03}"));
    let names: BTreeSet<String> = at_rest.chain(awake.clone()).collect();
    laboratory.server.put(PODS, activator());
    for name in &names {
        laboratory.server.put(DEPLOYMENTS, deployment(name, u32::from(awake.contains(name))));
        laboratory.server.put(SERVICES, service(name));
    }
    let mut unknown: BTreeSet<RevisionName> = names.iter().map(|name| revision(name)).collect();
    laboratory
        .wait("all are known", |fact| {
            if let PlatformFact::RevisionChanged(facts) = fact {
                unknown.remove(&facts.name);
            }
            unknown.is_empty().then_some(())
        })
        .await;
    let mut waiting = BTreeSet::new();
    for name in &names {
        laboratory.orders += 1;
        let id = OrderId(laboratory.orders);
        let activators = vec![ReplicaName::new("activator-1")];
        let what = Order::Route { revision: revision(name), routing: Routing::ThroughActivator, activators };
        laboratory.seat.execute(PlatformOrder { id, fence: laboratory.fence, what });
        waiting.insert(id);
    }
    laboratory
        .wait("all routes are written", |fact| {
            if let PlatformFact::OrderEnded { order, outcome: OrderOutcome::Done } = fact {
                waiting.remove(order);
            }
            waiting.is_empty().then_some(())
        })
        .await;
    assert_eq!(laboratory.server.objects(SLICES).len(), names.len());

    laboratory.server.remove(PODS, "ebb-system", "activator-1");
    let path =
        |name: &String| format!("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/{name}-ebb-ipv4-0");
    let written = async {
        loop {
            let all: Vec<Option<Timestamp>> = names
                .iter()
                .map(|name| laboratory.server.asked("PUT", &path(name)).last().copied())
                .collect();
            if let Some(all) = all.into_iter().collect::<Option<Vec<Timestamp>>>() {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let written = tokio::time::timeout(PATIENCE, written).await.expect("all slices are written");
    let mut by_time: Vec<(Timestamp, &String)> = written.into_iter().zip(&names).collect();
    by_time.sort();
    let burst = usize::try_from(BURST).expect("a small number");
    let first: BTreeSet<&String> = by_time[..burst].iter().map(|(_, name)| *name).collect();
    assert!(awake.iter().all(|name| first.contains(name)), "{first:?}");
    // The first and the last: some of a burst may have been due to what came before.
    let took = by_time[names.len() - 1].0.saturating_since(by_time[0].0);
    let least = WRITE_EVERY * u32::try_from(names.len() - burst - 1).expect("a small number");
    assert!(took >= least, "{took:?} for all, not {least:?} at least");
}
