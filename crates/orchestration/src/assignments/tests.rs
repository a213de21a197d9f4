use vocabulary::{Assignment, PodExits, RevisionName};

use super::*;

fn pod(name: &str, state: PodState) -> PodAssignment {
    PodAssignment {
        pod: PodName::new(name),
        address: ([127, 0, 0, 1], 8012).into(),
        exits: PodExits::default(),
        state,
        slots: 1,
        slice: Slice::Undivided,
        is_plain: false,
    }
}

fn with(pods: &[(&str, PodState)]) -> Assignment {
    Assignment {
        container_concurrency: 1,
        pods: pods.iter().map(|&(name, state)| pod(name, state)).collect(),
        ..Assignment::of_nothing(
            RevisionName::parse("default/service/hello").expect("a name"),
            Version::default(),
        )
    }
}

#[test]
fn a_change_is_urgent_only_if_usable_pods_or_the_path_changed() {
    let empty = with(&[]);
    let starting = with(&[("a", PodState::Starting)]);
    let ready = with(&[("a", PodState::Ready)]);
    let mut plain = ready.clone();
    plain.pods[0].is_plain = true;
    let more = with(&[("a", PodState::Ready), ("b", PodState::Unheard)]);
    let leaving = with(&[("a", PodState::Draining), ("b", PodState::Unheard)]);
    let direct = Assignment { routing: Routing::Direct, ..leaving.clone() };
    let rows = [
        ("the first", None, &empty, Some(Urgency::AtOnce)),
        ("a repeat", Some(&empty), &empty, None),
        ("a pod starts", Some(&empty), &starting, Some(Urgency::Soon)),
        ("it is ready", Some(&starting), &ready, Some(Urgency::AtOnce)),
        ("it has a link", Some(&plain), &ready, Some(Urgency::AtOnce)),
        ("another one", Some(&ready), &more, Some(Urgency::Soon)),
        ("the first leaves", Some(&more), &leaving, Some(Urgency::AtOnce)),
        ("another path", Some(&leaving), &direct, Some(Urgency::AtOnce)),
    ];
    for (row, previous, next, expected) in rows {
        assert_eq!(urgency(previous, next), expected, "{row}");
    }
}

#[test]
fn versions_grow_within_an_epoch() {
    let mut versions = Versions::default();
    let (one, two) = (versions.next(Epoch(4)), versions.next(Epoch(4)));
    assert_eq!(
        (one, two),
        (Version { epoch: Epoch(4), counter: 1 }, Version { epoch: Epoch(4), counter: 2 })
    );
}

/// Contract of an installed Knative, §5.4 and §7.2: a queue-proxy of Knative's would show its app a key.
#[test]
fn a_pod_is_plain_without_a_link_and_in_knatives_place_until_it_has_spoken_on_one() {
    use vocabulary::{LinkAddress, LinkChannel};

    use crate::readiness::tests::{heard, pod as facts};

    let named = |text| RevisionName::parse(text).expect("a name");
    let (ours, knatives) = (named("default/service/hello"), named("default/revision/hello-00001"));
    let unheard = HeardOfPod::default();
    let spoken = HeardOfPod { container_concurrency: Some(0), ..heard(PodState::Ready) };
    for (channel, expected) in [
        (LinkChannel::TlsOfPod, [false, false, true, false]),
        (LinkChannel::Scraped, [true; 4]),
        (LinkChannel::Unasked, [true; 4]),
    ] {
        let link = LinkAddress { channel, ..SocketAddr::from(([10, 0, 0, 1], 8024)).into() };
        let pod = PodFacts { link: Some(link), ..facts("p") };
        let found = [(&ours, &unheard), (&ours, &spoken), (&knatives, &unheard), (&knatives, &spoken)]
            .map(|(revision, heard)| is_plain(revision, &pod, heard));
        assert_eq!(found, expected, "{channel:?}");
    }
}

#[test]
fn each_pod_with_a_limit_is_inside_the_slice_of_exactly_one_activator() {
    let pods = ["a", "b", "c", "d", "e"].map(|name| (name, PodState::Ready));
    let whole = Arc::new(with(&pods));
    let members = [ReplicaId(4), ReplicaId(7)];
    let inside = |member| {
        let part = for_member(&whole, &members, member);
        part.pods.iter().map(|pod| pod.slice == Slice::Inside).collect::<Vec<_>>()
    };
    // Rows C5 of the slices: two each, and the last one to the first.
    assert_eq!(inside(ReplicaId(4)), [true, true, false, false, true]);
    assert_eq!(inside(ReplicaId(7)), [false, false, true, true, false]);
    let unlimited = Arc::new(Assignment { container_concurrency: 0, ..Assignment::clone(&whole) });
    assert!(Arc::ptr_eq(&for_member(&unlimited, &members, ReplicaId(7)), &unlimited), "nothing to overfill");
    assert!(Arc::ptr_eq(&for_member(&whole, &members[..1], ReplicaId(4)), &whole), "nobody to share with");
}

/// Contract of an installed Knative, §3.3: any activator may be asked for any revision, also one that the
/// controller has not put into the path.
#[test]
fn must_let_an_activator_without_a_share_try_every_pod() {
    let whole = Arc::new(with(&["a", "b", "c"].map(|name| (name, PodState::Ready))));
    let part = for_member(&whole, &[ReplicaId(1), ReplicaId(2)], ReplicaId(3));
    assert!(part.pods.iter().all(|pod| pod.slice == Slice::Inside), "{part:?}");
}

/// The same contract, §7.3: Knative's activators divide pods by the text of their addresses.
#[test]
fn pods_of_an_installed_knative_are_divided_in_the_order_of_their_addresses() {
    let mut whole = with(&["a", "b"].map(|name| (name, PodState::Ready)));
    for (pod, last) in whole.pods.iter_mut().zip([9, 10]) {
        pod.address = ([10, 0, 0, last], 8012).into();
    }
    let slices = |whole: &Assignment| {
        let part = for_member(&Arc::new(whole.clone()), &[ReplicaId(1), ReplicaId(2)], ReplicaId(1));
        part.pods.iter().map(|pod| pod.slice).collect::<Vec<_>>()
    };
    assert_eq!(slices(&whole), [Slice::Inside, Slice::Outside], "elsewhere by their names");
    whole.revision = RevisionName::parse("default/revision/hello-00001").expect("a name");
    assert_eq!(slices(&whole), [Slice::Outside, Slice::Inside], "10.0.0.10 comes before 10.0.0.9");
}
