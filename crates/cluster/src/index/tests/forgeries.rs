//! Slices that look like ours: no later owner of the bucket believes the ports that they name.

use super::*;
use crate::index::known_slice::KnownSlice;
use crate::notice::FORGED_SLICE;
use crate::slice_key::SliceKey;
use crate::slices::{self, SliceAuthor};

const HOUR: Duration = Duration::from_hours(1);

fn revision_of(namespace: &str) -> RevisionName {
    RevisionName::new(namespace, "deployment", "hello").expect("a name")
}

fn key_of(namespace: &str) -> ObjectKey {
    ObjectKey { namespace: namespace.to_owned(), name: "hello".to_owned() }
}

/// A tenant's `hello`: a Service that goes by this uid, with a workload.
fn put_tenant(index: &mut Index, namespace: &str, uid: &str) {
    let annotations = json!({"ebb.dev/revision": "hello"});
    let metadata = json!({"name": "hello", "namespace": namespace, "uid": uid, "annotations": annotations});
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let spec = json!({"clusterIP": "10.96.0.7", "ipFamilies": ["IPv4"], "ports": ports});
    let service = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service");
    index.put_service(&key_of(namespace), service::read(&service));
    let mut shown = workload(0, &json!({}));
    (shown.record.revision, shown.record.uid) = (revision_of(namespace), format!("deployment-{uid}"));
    index.put_workload(shown, RevisionOrigin::Found);
    index.set_route(&revision_of(namespace), route(Routing::ThroughActivator));
}

/// Settles everything, and writes the slices of these tenants; returns what stands on the Lease then.
fn work(index: &mut Index, namespaces: &[&str], now: WallSeconds) -> LeaseNotes {
    index.settle_ports(NOW, now);
    let mut lease = LeaseNotes::new();
    for (bucket, notes) in index.port_notes() {
        index.ports_noted(bucket, &notes);
        lease = notes;
    }
    for namespace in namespaces {
        for change in index.slice_changes(&revision_of(namespace)) {
            match change {
                SliceChange::Create(slice) | SliceChange::Replace(slice) => index.put_slice(slice),
                SliceChange::Delete(slice) => index.remove_slice(&ObjectKey::of(&slice.metadata)),
            }
        }
    }
    lease
}

/// With an activator, and this Lease.
fn owner(lease: &LeaseNotes, objects: impl FnOnce(&mut Index), now: WallSeconds) -> Index {
    let mut index = Index::new(keys(), 1);
    index.kind_listed(&WorkloadKind::Deployment);
    put_activator(&mut index);
    objects(&mut index);
    index.listed();
    index.take_over_ports(Bucket(0), lease, &[], now);
    index
}

fn port_of(index: &Index, uid: &str) -> Vec<u16> {
    index.ports.of_service(uid).filter_map(|entry| entry.port).collect()
}

fn slices_in(index: &Index, namespace: &str) -> Vec<EndpointSlice> {
    let all = index.services.slices().filter(|(key, _)| key.namespace == namespace);
    all.map(|(_, slice)| slice.object.clone()).collect()
}

fn annotate(slice: &mut EndpointSlice, key: &str, value: Option<&str>) {
    let annotations = slice.metadata.annotations.get_or_insert_default();
    match value {
        Some(value) => annotations.insert(format!("ebb.dev/{key}"), value.to_owned()),
        None => annotations.remove(&format!("ebb.dev/{key}")),
    };
}

fn is_told(index: &Index, namespace: &str) -> bool {
    let about = RevisionName::new(namespace, "service", "hello").expect("a name");
    let notices = index.notices.of(&Subject::Revision(about));
    notices.iter().any(|notice| notice.reason == FORGED_SLICE)
}

fn announced(index: &mut Index) -> usize {
    index.take_announcements().filter(|one| one.notice.reason == FORGED_SLICE).count()
}

/// `bank` has 10000 and `thief` 10001, and what stands on the Lease.
fn two_tenants() -> (Index, LeaseNotes) {
    let mut first = owner(&LeaseNotes::new(), |index| put_tenant(index, "bank", "u-bank"), WALL);
    work(&mut first, &["bank"], WALL);
    put_tenant(&mut first, "thief", "u-thief");
    let lease = work(&mut first, &["bank", "thief"], WALL);
    assert_eq!((port_of(&first, "u-bank"), port_of(&first, "u-thief")), (vec![10_000], vec![10_001]));
    (first, lease)
}

/// The owner that takes over from `former`, hours later, with these slices of the thief's in place of its
/// own.
fn next_with(former: &Index, lease: &LeaseNotes, thiefs: Vec<EndpointSlice>) -> Index {
    let objects = |index: &mut Index| {
        // The forged ones first and last: nothing follows from the order of watches.
        thiefs.iter().cloned().for_each(|slice| index.put_slice(slice));
        for slice in slices_in(former, "bank") {
            index.put_slice(slice);
        }
        put_tenant(index, "bank", "u-bank");
        put_tenant(index, "thief", "u-thief");
        for slice in thiefs {
            index.put_slice(slice);
        }
    };
    owner(lease, objects, WALL.later(3 * HOUR))
}

#[test]
fn a_forged_slice_takes_no_port_of_another_tenant() {
    let (former, lease) = two_tenants();
    let genuine = slices_in(&former, "thief").remove(0);
    let port = |text: &str| {
        let mut slice = genuine.clone();
        annotate(&mut slice, "activator-ports", Some(text));
        slice
    };
    let unsigned = |mut slice: EndpointSlice| {
        annotate(&mut slice, "activator-ports-proof", None);
        slice
    };
    let mut of_the_bank = unsigned(port("http:80=10001"));
    let owners = of_the_bank.metadata.owner_references.as_mut().expect("it goes with its Service");
    owners[0].uid = "u-bank".to_owned();
    let mut banks_own = slices_in(&former, "bank").remove(0);
    banks_own.metadata.namespace = Some("thief".to_owned());
    let all: Vec<String> = (10_000..30_000).map(|port| format!("p{port}:{port}={port}")).collect();
    let rows = [
        ("the bank's port", port("http:80=10000")),
        ("the bank's port, unsigned", unsigned(port("http:80=10000"))),
        ("a free port, unsigned", unsigned(port("http:80=17000"))),
        ("the admin port of activators", unsigned(port("http:80=8022"))),
        ("all ports", port(&all.join(","))),
        ("all ports, unsigned", unsigned(port(&all.join(",")))),
        ("another port for the bank", of_the_bank),
        ("the bank's slice, copied", banks_own),
    ];
    for (what, forged) in rows {
        let mut next = next_with(&former, &lease, vec![forged]);
        let lease = work(&mut next, &["bank", "thief"], WALL.later(3 * HOUR));
        assert_eq!(port_of(&next, "u-bank"), [10_000], "{what}");
        // The former one rests: nothing that can be believed says whose it was.
        assert_eq!(port_of(&next, "u-thief"), [10_002], "{what}");
        assert!(!lease["ebb.dev/ports-given"].contains("29999"), "{what}: {lease:?}");
        put_tenant(&mut next, "newcomer", "u-new");
        work(&mut next, &["newcomer"], WALL.later(3 * HOUR));
        assert_eq!(port_of(&next, "u-new"), [10_003], "{what}");
    }
}

#[test]
fn a_forged_slice_is_told_of_once_and_written_anew_and_other_services_get_none() {
    let (mut index, _) = two_tenants();
    let genuine = slices_in(&index, "thief").remove(0);
    let mut forged = genuine.clone();
    annotate(&mut forged, "activator-ports", Some("http:80=10000"));
    index.take_unrouted();
    for _ in 0..2 {
        index.put_slice(forged.clone());
    }
    assert!(is_told(&index, "thief") && !is_told(&index, "bank"));
    assert_eq!(announced(&mut index), 1);
    assert!(index.take_unrouted().contains(&revision_of("thief")));
    let [SliceChange::Replace(next)] = &index.slice_changes(&revision_of("thief"))[..] else {
        panic!("it is to be replaced")
    };
    assert_eq!(next.metadata.annotations, genuine.metadata.annotations);
    work(&mut index, &["thief"], WALL);
    assert!(!is_told(&index, "thief"));
    // One without any signature is none of ours either: what there was before is known.
    let mut unsigned = genuine;
    annotate(&mut unsigned, "activator-ports-proof", None);
    index.put_slice(unsigned);
    assert!(is_told(&index, "thief"));
    assert_eq!((port_of(&index, "u-bank"), port_of(&index, "u-thief")), (vec![10_000], vec![10_001]));
}

#[test]
fn a_forged_slice_makes_no_service_ours() {
    let (former, lease) = two_tenants();
    let mut forged = slices_in(&former, "thief").remove(0);
    annotate(&mut forged, "activator-ports-proof", Some("9 00"));
    let objects = |index: &mut Index| {
        index.put_slice(forged);
        put_annotated_in(index, "thief", &json!({}));
    };
    let mut next = owner(&lease, objects, WALL);
    work(&mut next, &["thief"], WALL);
    assert_eq!(next.services.custody(&key_of("thief")), None);
    assert!(is_told(&next, "thief"));
    next.remove_service(&key_of("thief"));
    assert!(!is_told(&next, "thief"), "no Service could be told");
}

fn put_annotated_in(index: &mut Index, namespace: &str, annotations: &Value) {
    let metadata =
        json!({"name": "hello", "namespace": namespace, "uid": "u-thief", "annotations": annotations});
    let spec = json!({"clusterIP": "10.96.0.7", "ports": [{"port": 80}]});
    let service = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service");
    index.put_service(&key_of(namespace), service::read(&service));
}

#[test]
fn a_slice_that_a_tenant_has_kept_takes_back_no_port() {
    let (mut index, _) = two_tenants();
    let kept = slices_in(&index, "thief");
    // Its port is gone, and another tenant's after the rest.
    put_ports(&mut index, "thief", &json!([{"name": "metrics", "port": 81, "targetPort": 9100}]));
    work(&mut index, &["thief"], WALL);
    index.settle_ports(NOW + Duration::from_mins(2), WALL);
    index.release_port(10_001, WALL);
    let rested = WALL.later(2 * HOUR);
    let own = slices_in(&index, "thief");
    let resting = work(&mut index, &[], WALL);
    let mut next = next_with(&index, &resting, kept.iter().cloned().chain(own.clone()).collect());
    put_tenant(&mut next, "thief", "u-thief");
    work(&mut next, &["thief"], WALL);
    assert_ne!(port_of(&next, "u-thief"), [10_001], "it rested");

    let mut index = owner(
        &LeaseNotes::from([("ebb.dev/ports-next".to_owned(), "10001".to_owned())]),
        |index| {
            put_tenant(index, "heir", "u-heir");
        },
        rested,
    );
    let lease = work(&mut index, &["heir"], rested);
    assert_eq!(port_of(&index, "u-heir"), [10_001]);
    let heirs = slices_in(&index, "heir");
    let objects = |next: &mut Index| {
        kept.iter().chain(&heirs).cloned().for_each(|slice| next.put_slice(slice));
        put_tenant(next, "thief", "u-thief");
        put_tenant(next, "heir", "u-heir");
    };
    let mut lease = lease;
    // As it stands after many that were given meanwhile.
    lease.insert("ebb.dev/ports-number".to_owned(), "40".to_owned());
    let mut next = owner(&lease, objects, rested);
    work(&mut next, &["thief", "heir"], rested);
    let (thiefs, heirs) = (port_of(&next, "u-thief"), port_of(&next, "u-heir"));
    assert!(!thiefs.iter().any(|port| heirs.contains(port)), "{thiefs:?} {heirs:?}");
    // And while it owns the bucket.
    kept.iter().cloned().for_each(|slice| next.put_slice(slice));
    next.remove_service(&key_of("thief"));
    put_tenant(&mut next, "thief", "u-thief");
    for slice in kept {
        next.put_slice(slice);
    }
    work(&mut next, &["thief", "heir"], rested);
    assert_eq!(port_of(&next, "u-heir"), heirs);
    assert!(!port_of(&next, "u-thief").iter().any(|port| heirs.contains(port)));
}

fn put_ports(index: &mut Index, namespace: &str, ports: &Value) {
    let metadata = json!({"name": "hello", "namespace": namespace, "uid": format!("u-{namespace}"), "annotations": {"ebb.dev/revision": "hello"}});
    let spec = json!({"clusterIP": "10.96.0.7", "ipFamilies": ["IPv4"], "ports": ports});
    let service = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service");
    index.put_service(&key_of(namespace), service::read(&service));
}

/// As the version before wrote them: nothing is signed, and the Lease has no number.
fn before_the_upgrade() -> (Vec<EndpointSlice>, LeaseNotes) {
    let (former, mut lease) = two_tenants();
    lease.remove("ebb.dev/ports-number").expect("it stands there");
    lease.remove("ebb.dev/ports-unsigned-until").expect("it stands there");
    let mut slices = slices_in(&former, "bank");
    slices.extend(slices_in(&former, "thief"));
    for slice in &mut slices {
        annotate(slice, "activator-ports-proof", None);
    }
    (slices, lease)
}

fn upgraded(slices: &[EndpointSlice], lease: &LeaseNotes, now: WallSeconds) -> Index {
    let objects = |index: &mut Index| {
        slices.iter().cloned().for_each(|slice| index.put_slice(slice));
        put_tenant(index, "bank", "u-bank");
        put_tenant(index, "thief", "u-thief");
    };
    owner(lease, objects, now)
}

#[test]
fn an_upgrade_changes_no_port_and_signs_all_slices() {
    let (slices, lease) = before_the_upgrade();
    let mut index = upgraded(&slices, &lease, WALL);
    let lease = work(&mut index, &["bank", "thief"], WALL);
    assert_eq!((port_of(&index, "u-bank"), port_of(&index, "u-thief")), (vec![10_000], vec![10_001]));
    assert_eq!(announced(&mut index), 0);
    let is_signed = |slice: &KnownSlice| {
        matches!(slices::author_of(&slice.object, &SliceKey::new(b"key")), SliceAuthor::Autoscaler(_))
    };
    assert!(index.services.slices().all(|(_, slice)| is_signed(slice)));
    // An owner that takes over at once, before all are signed, believes the others too.
    let next = upgraded(&slices, &lease, WALL.later(Duration::from_secs(30)));
    assert_eq!((port_of(&next, "u-bank"), port_of(&next, "u-thief")), (vec![10_000], vec![10_001]));
    // An hour later no owner does.
    let late = upgraded(&slices, &lease, WALL.later(HOUR));
    assert_eq!((port_of(&late, "u-bank"), port_of(&late, "u-thief")), (vec![], vec![]));
    assert!(is_told(&late, "bank"));
}

#[test]
fn once_all_slices_are_signed_no_owner_believes_an_unsigned_one() {
    let (slices, lease) = before_the_upgrade();
    let mut index = upgraded(&slices, &lease, WALL);
    work(&mut index, &["bank", "thief"], WALL);
    let signed = work(&mut index, &["bank", "thief"], WALL.later(Duration::from_secs(10)));
    assert_eq!((port_of(&index, "u-bank"), port_of(&index, "u-thief")), (vec![10_000], vec![10_001]));
    let next = upgraded(&slices, &signed, WALL.later(Duration::from_secs(30)));
    assert_eq!((port_of(&next, "u-bank"), port_of(&next, "u-thief")), (vec![], vec![]));
    assert!(is_told(&next, "bank") && is_told(&next, "thief"));
    // In between, an owner of the former version writes the Lease without the notes that it does not know.
    let again = upgraded(&slices, &lease, WALL.later(Duration::from_secs(60)));
    assert_eq!((port_of(&again, "u-bank"), port_of(&again, "u-thief")), (vec![10_000], vec![10_001]));
}

#[test]
fn a_new_installation_believes_no_unsigned_slice() {
    let (mut slices, _) = before_the_upgrade();
    annotate(&mut slices[0], "activator-ports", Some("http:80=17000"));
    let mut index = upgraded(&slices, &LeaseNotes::new(), WALL);
    assert!(is_told(&index, "bank") && is_told(&index, "thief"));
    work(&mut index, &["bank", "thief"], WALL);
    assert_eq!((port_of(&index, "u-bank"), port_of(&index, "u-thief")), (vec![10_000], vec![10_001]));
    assert!(!is_told(&index, "bank") && !is_told(&index, "thief"), "all are written anew");
}

#[test]
fn a_slice_that_was_forged_before_the_upgrade_takes_no_port() {
    let (mut slices, lease) = before_the_upgrade();
    let thiefs = slices.last_mut().expect("there are two");
    annotate(thiefs, "activator-ports", Some("http:80=10000"));
    let mut index = upgraded(&slices, &lease, WALL);
    work(&mut index, &["bank", "thief"], WALL);
    let (banks, thiefs) = (port_of(&index, "u-bank"), port_of(&index, "u-thief"));
    assert!(!thiefs.contains(&10_000) && banks != thiefs, "{banks:?} {thiefs:?}");
    // In another namespace than the Service that it names it counts for nothing.
    let (mut slices, lease) = before_the_upgrade();
    let mut strange = slices[0].clone();
    strange.metadata.namespace = Some("thief".to_owned());
    strange.metadata.name = Some("strange".to_owned());
    annotate(&mut strange, "activator-ports", Some("http:80=10001"));
    slices.push(strange);
    let index = upgraded(&slices, &lease, WALL);
    assert_eq!((port_of(&index, "u-bank"), port_of(&index, "u-thief")), (vec![10_000], vec![10_001]));
}
