//! One write after the other: what stays, and whether everybody is named all the time.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Its second port is plain: it always leads to pods.
fn two_ports() -> AdoptedService {
    let metrics = ServicePort {
        name: Some("metrics".to_owned()),
        number: 9090,
        target: TargetPort::Number(9090),
        app_protocol: None,
    };
    let mut service = service();
    service.ports.push(metrics);
    service
}

fn pod(number: u8, ports: [Option<u16>; 2]) -> ServingAddress {
    ServingAddress { ports: ports.into(), ..server(&format!("p{number:03}"), &format!("10.0.0.{number}")) }
}

fn pods(numbers: std::ops::Range<u8>) -> Servers {
    let ready_pods = numbers.map(|number| pod(number, [Some(8012), Some(9090)])).collect();
    let mut activator = server("a1", "10.0.1.1");
    activator.ports = vec![Some(10_007), None];
    Servers { ready_pods, activators: vec![activator], ..Servers::default() }
}

fn wanted(routing: Routing, servers: &Servers, present: &[EndpointSlice]) -> Vec<EndpointSlice> {
    let (service, route) = (two_ports(), route(routing));
    let entrances = vec![Some(10_007), None];
    let present: Vec<_> = present.iter().collect();
    let proof = String::new();
    let route = ServiceRoute { service: &service, entrances, proof, route: &route, side: routing };
    desired(&route, servers, &present)
}

/// Which endpoints are named, for which of a Service's ports, and where.
fn named(slices: &[EndpointSlice]) -> BTreeSet<(String, i32, String)> {
    let pairs = slices.iter().flat_map(|slice| {
        let ports = slice.ports.iter().flatten();
        ports.flat_map(|port| {
            let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
            let name = port.name.clone().unwrap_or_default();
            addresses.map(move |address| (name.clone(), port.port.unwrap_or_default(), address.clone()))
        })
    });
    pairs.collect()
}

fn served(named: &BTreeSet<(String, i32, String)>) -> BTreeSet<String> {
    named.iter().map(|(port, _, _)| port.clone()).collect()
}

/// As the API server does it.
fn write(present: &mut Vec<EndpointSlice>, change: &SliceChange) {
    let (SliceChange::Create(slice) | SliceChange::Replace(slice) | SliceChange::Delete(slice)) = change;
    let is_it = |other: &EndpointSlice| other.metadata.name == slice.metadata.name;
    assert_eq!(present.iter().any(is_it), !matches!(change, SliceChange::Create(_)), "{change:?}");
    present.retain(|other| !is_it(other));
    if !matches!(change, SliceChange::Delete(_)) {
        present.push(written(slice.clone()));
    }
}

/// Writes what is to be written from one situation to the next; returns how many writes that took.
fn go(present: &mut Vec<EndpointSlice>, routing: Routing, servers: &Servers) -> usize {
    let target = wanted(routing, servers, present);
    let (before, after) = (named(present), named(&target));
    let both: BTreeSet<_> = before.intersection(&after).cloned().collect();
    let ports: BTreeSet<_> = served(&before).intersection(&served(&after)).cloned().collect();
    let changes = changes(&target, &present.iter().collect::<Vec<_>>());
    for change in &changes {
        write(present, change);
        let now = named(present);
        assert!(both.is_subset(&now), "after {change:?} {:?} are not named", both.difference(&now));
        assert!(ports.is_subset(&served(&now)), "after {change:?} a port has no endpoint");
    }
    assert_eq!(named(present), after);
    assert!(present.iter().all(|slice| slice.endpoints.len() <= 100));
    let again = wanted(routing, servers, present);
    assert_eq!(super::changes(&again, &present.iter().collect::<Vec<_>>()), [], "nothing is left");
    changes.len()
}

fn written_at_once(routing: Routing, servers: &Servers) -> Vec<EndpointSlice> {
    let mut present = Vec::new();
    go(&mut present, routing, servers);
    present
}

#[test]
fn a_plain_port_has_its_pods_while_activators_enter_and_leave() {
    let servers = pods(1..3);
    let mut present = written_at_once(Routing::Direct, &servers);
    assert_eq!(present.len(), 1);
    assert_eq!(go(&mut present, Routing::ThroughActivator, &servers), 2);
    assert_eq!(present.len(), 2);
    assert_eq!(go(&mut present, Routing::Direct, &servers), 2);
    assert_eq!(present.len(), 1);
}

#[test]
fn pods_of_another_template_leave_those_of_the_first_alone() {
    let mut servers = pods(1..3);
    let mut present = written_at_once(Routing::Direct, &servers);
    let first = present[0].clone();
    servers.ready_pods.insert(0, pod(0, [Some(8012), Some(7070)]));
    assert_eq!(go(&mut present, Routing::Direct, &servers), 1);
    assert!(present.contains(&first), "it is not written again");
}

#[test]
fn one_pod_of_many_is_one_write() {
    let mut servers = pods(0..250);
    let mut present = written_at_once(Routing::Direct, &servers);
    assert_eq!(present.len(), 3);
    let first = servers.ready_pods.remove(0);
    assert_eq!(go(&mut present, Routing::Direct, &servers), 1, "one less");
    servers.ready_pods.push(first);
    assert_eq!(go(&mut present, Routing::Direct, &servers), 1, "one more");
    servers.ready_pods.remove(120);
    servers.ready_pods.push(pod(251, [Some(8012), Some(9090)]));
    assert_eq!(go(&mut present, Routing::Direct, &servers), 1, "one instead of another");
}

#[test]
fn surplus_slices_are_deleted() {
    let mut present = written_at_once(Routing::Direct, &pods(0..250));
    let few = Servers { activators: Vec::new(), ..pods(0..1) };
    go(&mut present, Routing::Direct, &few);
    assert_eq!(present.len(), 1);
    go(&mut present, Routing::Direct, &Servers::default());
    assert_eq!(
        (present.len(), present[0].endpoints.len()),
        (1, 0),
        "one slice says the route while no endpoint serves"
    );
    assert_eq!(go(&mut present, Routing::Direct, &few), 1);
}

fn any_situation() -> impl Strategy<Value = (Routing, Servers)> {
    let routing = prop_oneof![Just(Routing::Direct), Just(Routing::ThroughActivator)];
    let port = |usual: u16| prop_oneof![4 => Just(Some(usual)), 1 => Just(Some(usual + 1)), 1 => Just(None)];
    let ready = proptest::collection::btree_map(0..=255_u8, (port(8012), port(9090)), 0..240);
    (routing, ready, any::<bool>()).prop_map(|(routing, ready, has_activator)| {
        let mut servers = pods(0..0);
        servers.ready_pods =
            ready.into_iter().map(|(number, (http, metrics))| pod(number, [http, metrics])).collect();
        if !has_activator {
            servers.activators.clear();
        }
        (routing, servers)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn remaining_addresses_are_named_after_every_single_write(
        situations in proptest::collection::vec(any_situation(), 1..5),
    ) {
        let mut present = Vec::new();
        for (routing, servers) in situations {
            go(&mut present, routing, &servers);
        }
    }
}
