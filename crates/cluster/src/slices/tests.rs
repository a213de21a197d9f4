mod writes;

use vocabulary::RevisionName;

use super::*;
use crate::resources::ports::TargetPort;

fn service() -> AdoptedService {
    AdoptedService {
        namespace: "default".to_owned(),
        name: "hello".to_owned(),
        uid: "u1".to_owned(),
        revision: RevisionName::new("default", "deployment", "hello").expect("a name"),
        ports: vec![ServicePort {
            name: Some("http".to_owned()),
            number: 80,
            target: TargetPort::Number(8080),
            app_protocol: None,
        }],
        families: vec!["IPv4".to_owned()],
        preference: TrafficPreference::None,
        names_unready: false,
    }
}

fn server(name: &str, address: &str) -> ServingAddress {
    let pod =
        PodReference { namespace: "default".to_owned(), name: name.to_owned(), uid: format!("uid-{name}") };
    ServingAddress {
        addresses: vec![address.parse().expect("an address")],
        is_serving: true,
        ports: vec![Some(8012)],
        node: Some("n1".to_owned()),
        zone: Some("z1".to_owned()),
        pod,
    }
}

fn route(routing: Routing) -> RouteInForce {
    RouteInForce { routing, activators: vec![ReplicaName::new("a1"), ReplicaName::new("a2")] }
}

fn slices_of(service: &AdoptedService, routing: Routing, servers: &Servers) -> Vec<EndpointSlice> {
    let route = route(routing);
    let entrances = vec![Some(10_007)];
    let proof = proof(service, &entrances, (&SliceKey::new(b"key"), ClaimNumber(3)));
    desired(&ServiceRoute { service, entrances, proof, route: &route, side: routing }, servers, &[])
}

fn addresses(slices: &[EndpointSlice]) -> Vec<&str> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    endpoints.flat_map(|endpoint| &endpoint.addresses).map(String::as_str).collect()
}

fn everybody() -> Servers {
    Servers {
        ready_pods: vec![server("p2", "10.0.0.2"), server("p1", "10.0.0.1")],
        ending_pods: vec![server("p3", "10.0.0.3")],
        activators: vec![server("a1", "10.0.1.1")],
        ..Servers::default()
    }
}

#[test]
fn addresses_that_can_serve_are_named_and_draining_pods_last() {
    let none = Servers::default();
    let unreachable = Servers { unreachable_pods: vec![server("p4", "10.0.0.4")], ..everybody() };
    let only_unreachable = Servers { ready_pods: Vec::new(), activators: Vec::new(), ..unreachable.clone() };
    let only_pods = Servers { activators: Vec::new(), ..everybody() };
    let only_activators = Servers { ready_pods: Vec::new(), ..everybody() };
    let only_ending = Servers { ending_pods: everybody().ending_pods, ..Servers::default() };
    let rows = [
        ("direct", Routing::Direct, everybody(), vec!["10.0.0.1", "10.0.0.2"]),
        ("direct without a ready pod", Routing::Direct, only_activators.clone(), vec!["10.0.1.1"]),
        ("through activators", Routing::ThroughActivator, everybody(), vec!["10.0.1.1"]),
        (
            "through activators, none there",
            Routing::ThroughActivator,
            only_pods,
            vec!["10.0.0.1", "10.0.0.2"],
        ),
        ("only a draining pod is left", Routing::Direct, only_ending, vec!["10.0.0.3"]),
        ("a pod that no client reaches", Routing::Direct, unreachable, vec!["10.0.0.1", "10.0.0.2"]),
        (
            "only a pod that no client reaches, and a draining one",
            Routing::Direct,
            only_unreachable,
            vec!["10.0.0.4"],
        ),
        ("no endpoint", Routing::ThroughActivator, none, vec![]),
    ];
    for (what, routing, servers, expected) in rows {
        let slices = slices_of(&service(), routing, &servers);
        assert_eq!(addresses(&slices), expected, "{what}");
        assert_eq!(slices.len(), 1, "{what}: the route is written even if no endpoint serves");
    }
}

#[test]
fn a_draining_pod_serves_but_is_not_ready() {
    let only_ending = Servers { ending_pods: everybody().ending_pods, ..Servers::default() };
    let slices = slices_of(&service(), Routing::Direct, &only_ending);
    let conditions = slices[0].endpoints[0].conditions.clone().expect("they are written");
    assert_eq!(
        (conditions.ready, conditions.serving, conditions.terminating),
        (Some(false), Some(true), Some(true))
    );
}

#[test]
fn the_next_owner_reads_the_route_from_the_slices() {
    for routing in [Routing::Direct, Routing::ThroughActivator] {
        for slice in slices_of(&service(), routing, &everybody()) {
            assert_eq!(route_of(&slice), Some(route(routing)));
            let (name, target) = (Some("http".to_owned()), None);
            let entry = PortEntry { name, number: 80, target, port: Some(10_007) };
            assert_eq!(entrances_of(&slice), Some(vec![entry]));
            let author = author_of(&slice, &SliceKey::new(b"key"));
            assert_eq!(author, SliceAuthor::Autoscaler(ClaimNumber(3)));
        }
    }
    assert_eq!(route_of(&EndpointSlice::default()), None);
    assert_eq!(author_of(&EndpointSlice::default(), &SliceKey::new(b"key")), SliceAuthor::Unsigned);
}

#[test]
fn no_slice_holds_more_than_a_hundred_addresses_or_another_family() {
    let mut servers = Servers::default();
    for number in 0..250_u8 {
        servers.ready_pods.push(server(&format!("p{number:03}"), &format!("10.0.0.{number}")));
    }
    servers.ready_pods.push(server("six", "fd00::6"));
    let two = AdoptedService { families: vec!["IPv4".to_owned(), "IPv6".to_owned()], ..service() };
    let slices = slices_of(&two, Routing::Direct, &servers);
    let sizes: Vec<_> =
        slices.iter().map(|slice| (slice.address_type.as_str(), slice.endpoints.len())).collect();
    assert_eq!(sizes, [("IPv4", 100), ("IPv4", 100), ("IPv4", 50), ("IPv6", 1)]);
    let mut names: Vec<_> = slices.iter().filter_map(|slice| slice.metadata.name.clone()).collect();
    names.dedup();
    assert_eq!(names.len(), slices.len());
}

#[test]
fn an_endpoint_with_both_families_is_in_the_slices_of_both() {
    let mut both = server("both", "10.0.0.7");
    both.addresses.push("fd00::7".parse().expect("an address"));
    let servers = Servers { ready_pods: vec![both.clone()], activators: vec![both], ..Servers::default() };
    let two = AdoptedService { families: vec!["IPv6".to_owned(), "IPv4".to_owned()], ..service() };
    for routing in [Routing::Direct, Routing::ThroughActivator] {
        assert_eq!(addresses(&slices_of(&two, routing, &servers)), ["fd00::7", "10.0.0.7"]);
        assert_eq!(addresses(&slices_of(&service(), routing, &servers)), ["10.0.0.7"]);
    }
}

#[test]
fn nodes_prefer_near_endpoints_where_the_service_says_so() {
    let mut nowhere = server("nowhere", "10.0.0.8");
    nowhere.zone = None;
    let servers = Servers {
        ready_pods: vec![server("near", "10.0.0.7"), nowhere],
        activators: vec![server("activator", "10.1.0.1")],
        ..Servers::default()
    };
    let hints = |preference, routing, servers: &Servers| -> Vec<(Vec<String>, Vec<String>)> {
        let slices = slices_of(&AdoptedService { preference, ..service() }, routing, servers);
        let hints = slices.into_iter().flat_map(|slice| slice.endpoints).map(|endpoint| {
            let hints = endpoint.hints.unwrap_or_default();
            let zones = hints.for_zones.into_iter().flatten().map(|zone| zone.name).collect();
            (zones, hints.for_nodes.into_iter().flatten().map(|node| node.name).collect())
        });
        hints.collect()
    };
    let [zone, node] = ["z1", "n1"].map(|name| vec![name.to_owned()]);
    let unsaid = Vec::new();
    let unhinted = [(unsaid.clone(), unsaid.clone())];
    let two = [unhinted[0].clone(), unhinted[0].clone()];
    for (preference, expected) in [
        (TrafficPreference::None, two.clone()),
        (TrafficPreference::SameZone, [(zone.clone(), unsaid.clone()), unhinted[0].clone()]),
        (TrafficPreference::SameNode, [(zone, node.clone()), (unsaid, node)]),
    ] {
        assert_eq!(hints(preference, Routing::Direct, &servers), expected);
        assert_eq!(hints(preference, Routing::ThroughActivator, &servers), unhinted);
        let ending = Servers { ending_pods: servers.ready_pods.clone(), ..Servers::default() };
        assert_eq!(hints(preference, Routing::Direct, &ending), two);
    }
}

/// As the API server gives it back.
fn written(mut slice: EndpointSlice) -> EndpointSlice {
    slice.metadata.resource_version = Some("7".to_owned());
    slice.metadata.uid = Some("u9".to_owned());
    let labels = slice.metadata.labels.get_or_insert_default();
    labels.insert("foreign".to_owned(), "label".to_owned());
    slice
}

#[test]
fn a_slice_that_is_there_already_is_not_written_again() {
    let present: Vec<_> =
        slices_of(&service(), Routing::Direct, &everybody()).into_iter().map(written).collect();
    let present: Vec<_> = present.iter().collect();
    assert_eq!(changes(&slices_of(&service(), Routing::Direct, &everybody()), &present), []);
    let other = slices_of(&service(), Routing::ThroughActivator, &everybody());
    let changed = changes(&other, &present);
    let [SliceChange::Replace(slice)] = changed.as_slice() else { panic!("{changed:?}") };
    assert_eq!(slice.metadata.resource_version.as_deref(), Some("7"), "a later version is not overwritten");
}

#[test]
fn serving_addresses_are_added_before_others_are_removed() {
    let mut servers = everybody();
    for number in 3..150_u8 {
        servers.ready_pods.push(server(&format!("p{number:03}"), &format!("10.0.0.{number}")));
    }
    let many: Vec<_> = slices_of(&service(), Routing::Direct, &servers).into_iter().map(written).collect();
    let many: Vec<_> = many.iter().collect();
    assert_eq!(many.len(), 2);
    let changed = changes(&slices_of(&service(), Routing::ThroughActivator, &servers), &many);
    assert!(matches!(changed.as_slice(), [SliceChange::Replace(_), SliceChange::Delete(_)]), "{changed:?}");
    let first = changes(&slices_of(&service(), Routing::Direct, &everybody()), &[]);
    assert!(matches!(first.as_slice(), [SliceChange::Create(_)]), "{first:?}");
}

#[test]
fn pods_that_serve_at_other_ports_are_in_slices_of_their_own() {
    let mut other = server("p4", "10.0.0.4");
    other.ports = vec![Some(8100)];
    let mut without = server("p5", "10.0.0.5");
    without.ports = vec![None];
    let mut servers = everybody();
    servers.ready_pods.extend([other, without]);
    let slices = slices_of(&service(), Routing::Direct, &servers);
    let ports: Vec<Vec<Option<i32>>> =
        slices.iter().map(|slice| slice.ports.iter().flatten().map(|port| port.port).collect()).collect();
    assert_eq!(ports, [[Some(8012)], [Some(8100)]]);
    assert_eq!(addresses(&slices), ["10.0.0.1", "10.0.0.2", "10.0.0.4"]);
}
