use std::time::Duration;

use bytes::BytesMut;
use proptest::prelude::*;
use vocabulary::{
    Assignment, BootId, Concurrency, HopKey, Load, PodAssignment, PodName, PodState, PresentCount,
    ReplicaName, RequestRate, RequestTimeouts, RevisionName, Routing, Sample, Slice, Version,
};

use super::*;
use crate::{ActivatorHello, ActivatorOrder, ActivatorReport, PodHello, PodOrder, PodReport, RevisionLoad};

fn bytes_of(message: &impl Message) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes);
    assert_eq!(bytes.len(), message.encoded_len());
    bytes.to_vec()
}

fn hello_name() -> RevisionName {
    RevisionName::parse("a/service/b").unwrap()
}

fn load(concurrency: f64) -> Load {
    Load { concurrency: Concurrency::new(concurrency).unwrap(), ..Load::default() }
}

/// What every later version must still understand, byte by byte (the second half of vector N8: our own bytes).
#[test]
fn bytes_on_the_wire_are_pinned() {
    let pins: Vec<(&str, Vec<u8>, Vec<u8>)> = vec![
        (
            "heartbeat of a pod",
            bytes_of(&PodReport::Load(Sample { second: 300, load: Load::default() })),
            vec![0x12, 3, 0x08, 0xac, 0x02],
        ),
        (
            "load of a pod",
            bytes_of(&PodReport::Load(Sample { second: 1, load: load(1.0) })),
            vec![0x12, 13, 0x08, 1, 0x12, 9, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ),
        (
            "state of a pod",
            bytes_of(&PodReport::State { state: PodState::Ready, detail: "ok".to_owned() }),
            vec![0x1a, 6, 0x08, 3, 0x12, 2, b'o', b'k'],
        ),
        (
            "present count of a pod",
            bytes_of(&PodReport::Present(PresentCount { in_flight: 7, waiting: 2 })),
            vec![0x22, 4, 0x08, 7, 0x10, 2],
        ),
        ("heartbeat to a pod", bytes_of(&PodOrder::Heartbeat), vec![0x12, 0]),
        (
            "settings to a pod",
            bytes_of(&PodOrder::Settings {
                surge_threshold: Some(0),
                routing: Routing::ThroughActivator,
                hop_keys: vec![HopKey::new("k".to_owned())],
            }),
            vec![0x0a, 7, 0x08, 0, 0x10, 2, 0x1a, 1, b'k'],
        ),
        (
            "acknowledgement of an activator",
            bytes_of(&ActivatorReport::Acknowledged {
                revision: hello_name(),
                version: Version { epoch: 2, counter: 5 },
            }),
            [&[0x22, 19, 0x0a, 11], b"a/service/b".as_slice(), &[0x12, 4, 0x08, 2, 0x10, 5]].concat(),
        ),
        ("start of a sync", bytes_of(&ActivatorOrder::SyncBegin), vec![0x0a, 0]),
        ("end of a sync", bytes_of(&ActivatorOrder::SyncEnd), vec![0x22, 0]),
        ("heartbeat to an activator", bytes_of(&ActivatorOrder::Heartbeat), vec![0x2a, 0]),
        ("fragment", Fragment { part: vec![9], last: true }.encode(), vec![0x7a, 1, 9, 0x80, 1, 1]),
    ];
    for (name, actual, expected) in pins {
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn a_pods_longest_hello_fits_its_frame() {
    let full = Load {
        concurrency: Concurrency::clamped(123_456.789),
        proxied_concurrency: Concurrency::clamped(1.0 / 3.0),
        request_rate: RequestRate::clamped(99_999.5),
        proxied_request_rate: RequestRate::clamped(0.1),
        queued: u32::MAX,
    };
    let second = 1 << 40;
    let hello = PodReport::Hello(PodHello {
        pod: PodName::new(&"p".repeat(253)),
        boot: BootId(u64::MAX),
        state: PodState::Unready,
        detail: "é".repeat(1000),
        container_concurrency: u32::MAX,
        timeouts: RequestTimeouts {
            request: Some(Duration::MAX),
            response_start: Some(Duration::MAX),
            idle: Some(Duration::MAX),
        },
        current_second: second,
        history: (1..=60).rev().map(|age| Sample { second: second - age, load: full }).collect(),
    });
    assert!(hello.encoded_len() <= PodReport::FRAME_BYTES_MAX, "{} bytes", hello.encoded_len());
    let PodReport::Hello(read) = PodReport::decode(&bytes_of(&hello)).unwrap() else { panic!("a hello") };
    assert_eq!((read.history.len(), read.detail.len()), (60, DETAIL_BYTES_MAX));
}

/// Each refused value is named by its field.
#[test]
fn bad_values_are_refused_by_name() {
    let sample = |change: fn(&mut proto::Load)| {
        let mut load = proto::Load::default();
        change(&mut load);
        let body = proto::PodReportBody::Load(proto::Sample { second: 1, load: Some(load) });
        proto::PodReport { body: Some(body) }.encode_to_vec()
    };
    for (bytes, field) in [
        (sample(|load| load.concurrency = f64::NAN), "load.concurrency"),
        (sample(|load| load.proxied_concurrency = -1.0), "load.proxied_concurrency"),
        (sample(|load| load.request_rate = f64::INFINITY), "load.request_rate"),
        (sample(|load| load.proxied_request_rate = 1e10), "load.proxied_request_rate"),
        (vec![0x1a, 2, 0x08, 9], "state.state"),
        (vec![0x1a, 0], "state.state"),
        (vec![0x12, 7, 0x08, 0x81, 0x80, 0x80, 0x80, 0x80, 0x20], "load.second"),
        (vec![], "pod_report.body"),
        (vec![0x0a, 0], "hello.pod"),
    ] {
        let error = PodReport::decode(&bytes).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field} ")), "{field}: {error}");
    }
    let too_many = proto::PodHello {
        pod: "p".to_owned(),
        state: 3,
        history: Some(proto::PodHistory { ages: vec![0; 61], ..Default::default() }),
        ..Default::default()
    };
    assert!(matches!(PodHello::try_from(too_many), Err(WireError::BadValue { field: "hello.history", .. })));
    let ragged = proto::PodHello {
        pod: "p".to_owned(),
        state: 3,
        history: Some(proto::PodHistory { ages: vec![0], ..Default::default() }),
        ..Default::default()
    };
    assert!(matches!(PodHello::try_from(ragged), Err(WireError::BadValue { field: "hello.history", .. })));
}

#[test]
fn a_bad_hop_key_is_refused_and_not_repeated() {
    let order = PodOrder::Settings {
        surge_threshold: None,
        routing: Routing::Direct,
        hop_keys: vec![HopKey::new("secret with spaces".to_owned())],
    };
    let error = PodOrder::decode(&bytes_of(&order)).unwrap_err().to_string();
    assert!(error.contains("settings.hop_keys") && !error.contains("secret"), "{error}");
}

fn any_load() -> impl Strategy<Value = Load> {
    let number = prop_oneof![Just(0.0), 0.0..1e9];
    (number.clone(), number.clone(), number.clone(), number, any::<u32>()).prop_map(|(a, b, c, d, queued)| {
        Load {
            concurrency: Concurrency::clamped(a),
            proxied_concurrency: Concurrency::clamped(b),
            request_rate: RequestRate::clamped(c),
            proxied_request_rate: RequestRate::clamped(d),
            queued,
        }
    })
}

fn any_second() -> impl Strategy<Value = u64> {
    0..=(1_u64 << 40)
}

fn any_state() -> impl Strategy<Value = PodState> {
    prop_oneof![
        Just(PodState::Unheard),
        Just(PodState::Starting),
        Just(PodState::Ready),
        Just(PodState::Unready),
        Just(PodState::Draining),
    ]
}

fn any_routing() -> impl Strategy<Value = Routing> {
    prop_oneof![Just(Routing::Direct), Just(Routing::ThroughActivator)]
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,30}"
}

fn any_revision() -> impl Strategy<Value = RevisionName> {
    (any_name(), any_name())
        .prop_map(|(namespace, name)| RevisionName::new(&namespace, "service", &name).unwrap())
}

fn any_duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn any_timeouts() -> impl Strategy<Value = RequestTimeouts> {
    proptest::array::uniform3(proptest::option::of(any_duration()))
        .prop_map(|[request, response_start, idle]| RequestTimeouts { request, response_start, idle })
}

fn any_keys() -> impl Strategy<Value = Vec<HopKey>> {
    proptest::collection::vec("[!-~]{1,64}".prop_map(HopKey::new), 0..3)
}

fn any_count() -> impl Strategy<Value = PresentCount> {
    any::<(u32, u32)>().prop_map(|(in_flight, waiting)| PresentCount { in_flight, waiting })
}

fn any_version() -> impl Strategy<Value = Version> {
    any::<(u64, u64)>().prop_map(|(epoch, counter)| Version { epoch, counter })
}

fn any_pod_hello() -> impl Strategy<Value = PodHello> {
    let history = proptest::collection::vec((0..100_u64, any_load()), 0..60);
    let who = (any_name(), any::<u64>(), any_state(), "\\PC{0,80}");
    (who, any::<u32>(), any_timeouts(), 100..(1_u64 << 40), history).prop_map(
        |((pod, boot, state, detail), container_concurrency, timeouts, current_second, history)| PodHello {
            pod: PodName::from(pod),
            boot: BootId(boot),
            state,
            detail,
            container_concurrency,
            timeouts,
            current_second,
            history: (history.into_iter())
                .map(|(age, load)| Sample { second: current_second - age, load })
                .collect(),
        },
    )
}

fn any_pod_report() -> impl Strategy<Value = PodReport> {
    prop_oneof![
        any_pod_hello().prop_map(PodReport::Hello),
        (any_second(), any_load()).prop_map(|(second, load)| PodReport::Load(Sample { second, load })),
        (any_state(), "\\PC{0,80}").prop_map(|(state, detail)| PodReport::State { state, detail }),
        any_count().prop_map(PodReport::Present),
    ]
}

fn any_pod_order() -> impl Strategy<Value = PodOrder> {
    prop_oneof![
        (proptest::option::of(any::<u32>()), any_routing(), any_keys()).prop_map(
            |(surge_threshold, routing, hop_keys)| PodOrder::Settings { surge_threshold, routing, hop_keys }
        ),
        Just(PodOrder::Heartbeat),
    ]
}

fn any_loads() -> impl Strategy<Value = Vec<RevisionLoad>> {
    let load = (any_revision(), any_load(), any_duration())
        .prop_map(|(revision, load, oldest_wait)| RevisionLoad { revision, load, oldest_wait });
    proptest::collection::vec(load, 0..4)
}

fn any_activator_report() -> impl Strategy<Value = ActivatorReport> {
    let history = proptest::collection::vec((0..=1000_u64, any_loads()), 0..5);
    let present = proptest::collection::vec((any_revision(), any_count()), 0..4);
    let routings = proptest::collection::vec((any_revision(), any_routing()), 0..4);
    let hello = (any_name(), any::<u64>(), 1000..(1_u64 << 40), history, present, routings).prop_map(
        |(activator, boot, current_second, history, present, routings)| ActivatorHello {
            activator: ReplicaName::from(activator),
            boot: BootId(boot),
            current_second,
            history,
            present,
            routings,
        },
    );
    prop_oneof![
        hello.prop_map(ActivatorReport::Hello),
        (any_second(), any_loads()).prop_map(|(second, loads)| ActivatorReport::Loads { second, loads }),
        (any_revision(), any_count(), any_duration()).prop_map(|(revision, count, oldest_wait)| {
            ActivatorReport::Present { revision, count, oldest_wait }
        }),
        (any_revision(), any_version())
            .prop_map(|(revision, version)| ActivatorReport::Acknowledged { revision, version }),
    ]
}

fn any_slice() -> impl Strategy<Value = Slice> {
    prop_oneof![Just(Slice::Undivided), Just(Slice::Inside), Just(Slice::Outside)]
}

fn any_assignment() -> impl Strategy<Value = Assignment> {
    let address = any::<(std::net::IpAddr, u16)>();
    let pod = (any_name(), address, any_state(), any::<u32>(), any_slice()).prop_map(
        |(pod, address, state, slots, slice)| PodAssignment {
            pod: PodName::from(pod),
            address: address.into(),
            state,
            slots,
            slice,
        },
    );
    let identity = (any_revision(), any_version(), proptest::collection::vec(any_name(), 0..3));
    let limits = (any_routing(), any::<u32>(), any_timeouts());
    (identity, limits, proptest::collection::vec(pod, 0..5), any_keys(), any_texts()).prop_map(
        |(
            (revision, version, hosts),
            (routing, container_concurrency, timeouts),
            pods,
            hop_keys,
            (waiting_for, hold),
        )| {
            Assignment {
                revision,
                version,
                hosts,
                routing,
                container_concurrency,
                timeouts,
                pods,
                hop_keys,
                waiting_for,
                hold,
            }
        },
    )
}

fn any_texts() -> impl Strategy<Value = (String, Option<String>)> {
    ("\\PC{0,80}", proptest::option::of("\\PC{0,80}"))
}

fn any_activator_order() -> impl Strategy<Value = ActivatorOrder> {
    prop_oneof![
        any_assignment().prop_map(|assignment| ActivatorOrder::Assign(Box::new(assignment))),
        (any_revision(), any_version())
            .prop_map(|(revision, version)| ActivatorOrder::Remove { revision, version }),
        Just(ActivatorOrder::SyncBegin),
        Just(ActivatorOrder::SyncEnd),
        Just(ActivatorOrder::Heartbeat),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        pod_report in any_pod_report(),
        pod_order in any_pod_order(),
        activator_report in any_activator_report(),
        activator_order in any_activator_order(),
    ) {
        prop_assert_eq!(PodReport::decode(&bytes_of(&pod_report)), Ok(pod_report));
        prop_assert_eq!(PodOrder::decode(&bytes_of(&pod_order)), Ok(pod_order));
        prop_assert_eq!(ActivatorReport::decode(&bytes_of(&activator_report)), Ok(activator_report));
        prop_assert_eq!(ActivatorOrder::decode(&bytes_of(&activator_order)), Ok(activator_order));
    }

    /// Whatever a peer sends, the answer is a message or a reason, and what was accepted can be said again.
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(report) = PodReport::decode(&bytes) {
            prop_assert_eq!(PodReport::decode(&bytes_of(&report)), Ok(report));
        }
        let _ = PodOrder::decode(&bytes);
        let _ = ActivatorReport::decode(&bytes);
        let _ = ActivatorOrder::decode(&bytes);
        let _ = Fragment::decode(&bytes);
    }

    /// As above, starting from something valid, so that the deeper fields are reached.
    #[test]
    fn a_damaged_message_never_panics(
        report in any_activator_report(),
        order in any_activator_order(),
        hello in any_pod_hello(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let damaged = |mut bytes: Vec<u8>| { let index = at.index(bytes.len()); bytes[index] = to; bytes };
        let _ = ActivatorReport::decode(&damaged(bytes_of(&report)));
        let _ = ActivatorOrder::decode(&damaged(bytes_of(&order)));
        let _ = PodReport::decode(&damaged(bytes_of(&PodReport::Hello(hello))));
    }
}
