use std::collections::BTreeSet;
use std::time::Duration;

use bytes::BytesMut;
use proptest::prelude::*;
use vocabulary::{
    ActivatorHello, ActivatorWord, AdoptedConnections, AdoptionId, Assignment, BootId, Bucket, Concurrency,
    ConnectionTally, Departure, Epoch, HeadSizeLimit, HopKey, IgnoredUserAgents, LateBytes, LateTimeout,
    LinkVersion, Load, MilliValue, Ownership, PeerList, PodAssignment, PodExits, PodHello, PodName,
    PodSettings, PodState, PodWord, PresentCount, ReplicaName, RequestRate, RequestTimeouts, ResourceUsage,
    RevisionLoad, RevisionName, Routing, Sample, Slice, Standing, Version,
};

use super::*;
use crate::{ActivatorOrder, PodOrder};

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

fn settings_one() -> PodSettings {
    PodSettings {
        version: Version { epoch: Epoch(2), counter: 5 },
        surge_threshold: Some(0),
        routing: Routing::ThroughActivator,
        hop_keys: vec![HopKey::new("k".to_owned())],
        departure: Departure::NotPlanned,
        adoption: None,
        head_size_limit: HeadSizeLimit::default(),
        late: LateTimeout::Reset,
    }
}

fn second_of_a_pod(sample: Sample) -> PodWord {
    PodWord::Load { sample, usage: None, late_bytes: None }
}

/// Since programs of one machine say what their apps use; those that do not know the field read the second
/// without it.
#[test]
fn the_bytes_of_what_an_app_used_are_pinned() {
    let usage = ResourceUsage {
        cpu: MilliValue::new(250),
        memory: MilliValue::new(4_096_000),
        window: Duration::from_nanos(15),
    };
    let sample = Sample { second: 300, load: Load::default() };
    let bytes = bytes_of(&PodWord::Load { sample, usage: Some(usage), late_bytes: None });
    let expected = vec![0x12, 13, 0x08, 0xac, 0x02, 0x1a, 8, 0x08, 0xfa, 1, 0x10, 0x80, 0x20, 0x18, 15];
    assert_eq!(bytes, expected);
}

/// An owner that does not know the field reads the second without it, too.
#[test]
fn the_bytes_of_what_an_app_sent_behind_responses_are_pinned() {
    let late_bytes = LateBytes { connections: 3, reuse_in: Duration::from_nanos(300) };
    let sample = Sample { second: 300, load: Load::default() };
    let bytes = bytes_of(&PodWord::Load { sample, usage: None, late_bytes: Some(late_bytes) });
    assert_eq!(bytes, vec![0x12, 10, 0x08, 0xac, 0x02, 0x22, 5, 0x08, 3, 0x10, 0xac, 0x02]);
}

/// What every later version must still understand, byte by byte (the second half of vector N8: our own
/// bytes).
#[test]
fn bytes_on_the_wire_are_pinned() {
    let pins: Vec<(&str, Vec<u8>, Vec<u8>)> = vec![
        (
            "heartbeat of a pod",
            bytes_of(&second_of_a_pod(Sample { second: 300, load: Load::default() })),
            vec![0x12, 3, 0x08, 0xac, 0x02],
        ),
        (
            "load of a pod",
            bytes_of(&second_of_a_pod(Sample { second: 1, load: load(1.0) })),
            vec![0x12, 13, 0x08, 1, 0x12, 9, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ),
        (
            "state of a pod",
            bytes_of(&PodWord::State { state: PodState::Ready, detail: "ok".to_owned() }),
            vec![0x1a, 6, 0x08, 3, 0x12, 2, b'o', b'k'],
        ),
        (
            "present count of a pod",
            bytes_of(&PodWord::Present(PresentCount { in_flight: 7, waiting: 2 })),
            vec![0x22, 4, 0x08, 7, 0x10, 2],
        ),
        ("heartbeat to a pod", bytes_of(&PodOrder::Heartbeat), vec![0x12, 0]),
        (
            "settings to a pod",
            bytes_of(&PodOrder::Settings(settings_one().into())),
            vec![0x0a, 13, 0x08, 0, 0x10, 2, 0x1a, 1, b'k', 0x22, 4, 0x08, 2, 0x10, 5],
        ),
        (
            "acknowledgement of an activator",
            bytes_of(&ActivatorWord::Acknowledged {
                revision: hello_name(),
                version: Version { epoch: Epoch(2), counter: 5 },
            }),
            [&[0x22, 19, 0x0a, 11], b"a/service/b".as_slice(), &[0x12, 4, 0x08, 2, 0x10, 5]].concat(),
        ),
        (
            "start of a sync",
            bytes_of(&ActivatorOrder::SyncBegin {
                owner: ReplicaName::new("a"),
                ownership: Ownership { epochs: [(Bucket(1), Epoch(9))].into(), buckets: 2 },
            }),
            vec![0x0a, 11, 0x0a, 1, b'a', 0x12, 4, 0x08, 1, 0x10, 9, 0x18, 2],
        ),
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
    let hello = PodWord::Hello(PodHello {
        speaks: LinkVersion::CURRENT,
        pod: PodName::new(&"p".repeat(253)),
        boot: BootId(u64::MAX),
        state: PodState::Unready,
        detail: "é".repeat(1000),
        container_concurrency: u32::MAX,
        timeouts: RequestTimeouts {
            request: Some(Duration::MAX),
            response_start: Some(Duration::MAX),
            idle: Some(Duration::MAX),
            late: LateTimeout::Append,
        },
        current_second: second,
        history: (1..=60).rev().map(|age| Sample { second: second - age, load: full }).collect(),
    });
    assert!(hello.encoded_len() <= PodWord::FRAME_BYTES_MAX, "{} bytes", hello.encoded_len());
    let PodWord::Hello(read) = PodWord::decode(&bytes_of(&hello)).unwrap() else { panic!("a hello") };
    assert_eq!((read.history.len(), read.detail.len()), (60, DETAIL_BYTES_MAX));
}

/// Each refused value is named by its field.
#[test]
fn bad_values_are_refused_by_name() {
    let sample = |change: fn(&mut proto::Load)| {
        let mut load = proto::Load::default();
        change(&mut load);
        let body = proto::PodReportBody::Load(proto::Sample {
            second: 1,
            load: Some(load),
            usage: None,
            late_bytes: None,
        });
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
        let error = PodWord::decode(&bytes).unwrap_err().to_string();
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

/// What a program of the first version wrote, from before there were numbers: owners without names or
/// buckets, settings without versions, assignments without a standing.
#[test]
fn the_words_of_the_first_version_are_understood() {
    let sync = ActivatorOrder::decode(&[0x0a, 0]);
    let (owner, ownership) = (ReplicaName::new("autoscaler"), Ownership::of_everything(Epoch(0)));
    assert_eq!(sync, Ok(ActivatorOrder::SyncBegin { owner, ownership }));
    let settings = PodOrder::decode(&[0x0a, 7, 0x08, 0, 0x10, 2, 0x1a, 1, b'k']);
    let expected = PodSettings { version: Version::default(), ..settings_one() };
    assert_eq!(settings, Ok(PodOrder::Settings(expected.into())));
    let hello = PodWord::decode(&[0x0a, 16, 0x0a, 1, b'p', 0x11, 7, 0, 0, 0, 0, 0, 0, 0, 0x18, 3, 0x38, 9]);
    let Ok(PodWord::Hello(hello)) = hello else { panic!("{hello:?}") };
    let read = (hello.speaks, hello.pod.as_str(), hello.boot, hello.state, hello.current_second);
    assert_eq!(read, (LinkVersion::FIRST, "p", BootId(7), PodState::Ready, 9));
    let hello = ActivatorWord::decode(&[0x0a, 14, 0x0a, 1, b'a', 0x11, 7, 0, 0, 0, 0, 0, 0, 0, 0x18, 9]);
    let Ok(ActivatorWord::Hello(hello)) = hello else { panic!("{hello:?}") };
    assert_eq!((hello.speaks, hello.activator.as_str()), (LinkVersion::FIRST, "a"));
    let assign = [
        &[0x12, 38, 0x0a, 11][..],
        b"a/service/b",
        &[0x12, 4, 0x08, 2, 0x10, 5, 0x1a, 1, b'h', 0x20, 1, 0x28, 3, 0x42, 1, b'k', 0x4a, 7],
        b"waiting",
    ];
    let Ok(ActivatorOrder::Assign(assignment)) = ActivatorOrder::decode(&assign.concat()) else {
        panic!("an assignment")
    };
    assert_eq!((assignment.standing, assignment.hold.as_deref()), (Standing::Assigned, None));
    assert_eq!(
        (assignment.hosts.as_slice(), assignment.waiting_for.as_str()),
        (&["h".to_owned()][..], "waiting")
    );
    assert_eq!(assignment.ignored_user_agents, IgnoredUserAgents::default(), "nobody has said otherwise");
}

/// Since activators are told whose requests are not measured; those that do not know the field read the
/// assignment without it.
#[test]
fn the_bytes_of_ignored_user_agents_are_pinned() {
    let assign = |agents: IgnoredUserAgents| {
        let bytes =
            [&[0x12, 23, 0x0a, 11][..], b"a/service/b", &[0x12, 4, 0x08, 2, 0x10, 5, 0x20, 1, 0x32, 0]];
        let Ok(ActivatorOrder::Assign(assignment)) = ActivatorOrder::decode(&bytes.concat()) else {
            panic!("an assignment")
        };
        bytes_of(&ActivatorOrder::Assign(Box::new(Assignment { ignored_user_agents: agents, ..*assignment })))
    };
    let agents = |text: &str| text.parse::<IgnoredUserAgents>().unwrap();
    assert!(assign(agents("x/,y")).ends_with(&[0x6a, 7, 0x0a, 2, b'x', b'/', 0x0a, 1, b'y']));
    assert!(assign(IgnoredUserAgents::none()).ends_with(&[0x6a, 0]), "none is not the same as unsaid");
    for text in ["x/,y", "", "kube-probe/"] {
        let Ok(ActivatorOrder::Assign(read)) = ActivatorOrder::decode(&assign(agents(text))) else {
            panic!("an assignment")
        };
        assert_eq!(read.ignored_user_agents, agents(text));
    }
    let empty = [
        &[0x12, 27, 0x0a, 11][..],
        b"a/service/b",
        &[0x12, 4, 0x08, 2, 0x10, 5, 0x20, 1],
        &[0x6a, 4, 0x0a, 2, b' ', b'x'],
    ];
    let error = ActivatorOrder::decode(&empty.concat()).unwrap_err().to_string();
    assert!(error.starts_with("assign.ignored_user_agents "), "{error}");
}

/// Since the size of heads is a setting. Programs that do not know the field go by 128 KiB, and an owner that
/// does not know it says nothing of it.
#[test]
fn the_bytes_of_a_head_size_limit_are_pinned() {
    let (small, usual) = (HeadSizeLimit::MIN, HeadSizeLimit::default());
    let settings =
        |head_size_limit| PodOrder::Settings(PodSettings { head_size_limit, ..settings_one() }.into());
    let begin = [0x08, 0, 0x10, 2, 0x1a, 1, b'k', 0x22, 4, 0x08, 2, 0x10, 5];
    assert_eq!(bytes_of(&settings(small)), [&[0x0a, 16][..], &begin, &[0x40, 0x80, 0x40]].concat());
    assert_eq!(bytes_of(&settings(usual)), [&[0x0a, 13][..], &begin].concat());
    let error = PodOrder::decode(&[&[0x0a, 15][..], &begin, &[0x40, 1]].concat()).unwrap_err().to_string();
    assert!(error.starts_with("settings.head_size_limit is 1 bytes"), "{error}");
    let begin = [&[0x0a, 11][..], b"a/service/b", &[0x12, 4, 0x08, 2, 0x10, 5, 0x20, 1]].concat();
    let said = [0x70, 0x80, 0x40];
    for (more, expected) in [(&[][..], Ok(usual)), (&said[..], Ok(small)), (&[0x70, 1][..], Err(()))] {
        let length = u8::try_from(begin.len() + more.len()).expect("short");
        let read = ActivatorOrder::decode(&[&[0x12, length][..], &begin, more].concat());
        match (read, expected) {
            (Ok(ActivatorOrder::Assign(assignment)), Ok(limit)) => {
                assert_eq!(assignment.head_size_limit, limit);
                let written = bytes_of(&ActivatorOrder::Assign(assignment));
                assert_eq!(written.ends_with(&said), limit == small);
            }
            (Err(error), Err(())) => {
                assert!(error.to_string().starts_with("assign.head_size_limit is 1 bytes"), "{error}");
            }
            (read, _) => panic!("{read:?}"),
        }
    }
}

/// What this version writes, recorded: every later one must understand it.
#[test]
fn the_words_of_the_second_version_are_pinned() {
    let version = Version { epoch: Epoch(2), counter: 5 };
    let revision = hello_name;
    let name = b"a/service/b".as_slice();
    let versioned = [&[19, 0x0a, 11][..], name, &[0x12, 4, 0x08, 2, 0x10, 5]].concat();
    let leaving = |departure| PodOrder::Settings(PodSettings { departure, ..settings_one() }.into());
    let settings = [0x08, 0, 0x10, 2, 0x1a, 1, b'k', 0x22, 4, 0x08, 2, 0x10, 5];
    let in_a_second = Departure::Leaving { within: Duration::from_nanos(5) };
    let released = ActivatorOrder::Released { buckets: [Bucket(1), Bucket(3)].into() };
    let pins = [
        (bytes_of(&PodWord::SettingsAcknowledged(version)), vec![0x2a, 4, 0x08, 2, 0x10, 5]),
        (bytes_of(&ActivatorWord::Emptied { revision: revision() }), [&[0x2a, 11][..], name].concat()),
        (bytes_of(&ActivatorWord::Draining), vec![0x32, 0]),
        (
            bytes_of(&ActivatorOrder::Forget { revision: revision(), version }),
            [&[0x32][..], &versioned].concat(),
        ),
        (bytes_of(&released), vec![0x3a, 4, 0x0a, 2, 1, 3]),
        (bytes_of(&leaving(in_a_second)), [&[0x0a, 15][..], &settings, &[0x28, 5]].concat()),
        (bytes_of(&leaving(Departure::Released)), [&[0x0a, 15][..], &settings, &[0x30, 1]].concat()),
    ];
    for (actual, expected) in pins {
        assert_eq!(actual, expected);
    }
}

/// Since Services are adopted with their clients. A queue-proxy that does not know the field reads settings
/// without it, and an owner that does not know the word is not told it: it names no adoption.
#[test]
fn the_bytes_of_adopted_connections_are_pinned() {
    let settings = PodSettings { adoption: Some(AdoptionId(300)), ..settings_one() };
    let expected =
        [&[0x0a, 16, 0x08, 0, 0x10, 2, 0x1a, 1, b'k', 0x22, 4, 0x08, 2, 0x10, 5][..], &[0x38, 0xac, 0x02]];
    assert_eq!(bytes_of(&PodOrder::Settings(settings.into())), expected.concat());
    let peers = PeerList::of(["10.0.0.7".parse().unwrap()]);
    let tally = ConnectionTally { count: 4, age: Duration::from_nanos(5), peers };
    let expected = [&[0x32, 14, 0x08, 4, 0x10, 5, 0x1a, 8][..], b"10.0.0.7"].concat();
    assert_eq!(bytes_of(&PodWord::Adopted(AdoptedConnections::Open(tally))), expected);
    let none = AdoptedConnections::Open(ConnectionTally::default());
    assert_eq!(bytes_of(&PodWord::Adopted(none)), [0x32, 0]);
    assert_eq!(PodWord::decode(&[0x32, 0]), Ok(PodWord::Adopted(none)));
    let unreadable = AdoptedConnections::Unreadable { age: Duration::from_nanos(5) };
    assert_eq!(bytes_of(&PodWord::Adopted(unreadable)), [0x32, 4, 0x10, 5, 0x20, 1]);
    let error = PodWord::decode(&[0x32, 3, 0x1a, 1, b'x']).unwrap_err().to_string();
    assert!(error.starts_with("adopted.peers "), "{error}");
    // Four addresses in one list: the first three are read.
    let many = [&[0x32, 44][..], &[&[0x1a, 9][..], b"10.0.0.70"].concat().repeat(4)].concat();
    assert!(matches!(PodWord::decode(&many), Ok(PodWord::Adopted(AdoptedConnections::Open(_)))));
}

#[test]
fn a_bad_hop_key_is_refused_and_not_repeated() {
    let hop_keys = vec![HopKey::new("secret with spaces".to_owned())];
    let order = PodOrder::Settings(PodSettings { hop_keys, ..settings_one() }.into());
    let error = PodOrder::decode(&bytes_of(&order)).unwrap_err().to_string();
    assert!(error.contains("settings.hop_keys") && !error.contains("secret"), "{error}");
}

fn any_late_bytes() -> impl Strategy<Value = LateBytes> {
    (any::<u32>(), any_duration()).prop_map(|(connections, reuse_in)| LateBytes { connections, reuse_in })
}

fn any_usage() -> impl Strategy<Value = ResourceUsage> {
    (0..i64::MAX, 0..i64::MAX / 1000, any_duration()).prop_map(|(cpu, bytes, window)| ResourceUsage {
        cpu: MilliValue::new(cpu),
        memory: MilliValue::new(bytes * 1000),
        window,
    })
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
    let limits = proptest::array::uniform3(proptest::option::of(any_duration()));
    (limits, any_late_timeout()).prop_map(|([request, response_start, idle], late)| RequestTimeouts {
        request,
        response_start,
        idle,
        late,
    })
}

fn any_late_timeout() -> impl Strategy<Value = LateTimeout> {
    any::<bool>().prop_map(LateTimeout::of_append)
}

fn any_keys() -> impl Strategy<Value = Vec<HopKey>> {
    proptest::collection::vec("[!-~]{1,64}".prop_map(HopKey::new), 0..3)
}

fn any_count() -> impl Strategy<Value = PresentCount> {
    any::<(u32, u32)>().prop_map(|(in_flight, waiting)| PresentCount { in_flight, waiting })
}

fn any_version() -> impl Strategy<Value = Version> {
    any::<(u64, u64)>().prop_map(|(epoch, counter)| Version { epoch: Epoch(epoch), counter })
}

fn any_pod_hello() -> impl Strategy<Value = PodHello> {
    let history = proptest::collection::vec((0..100_u64, any_load()), 0..60);
    let who = (any_name(), any::<u64>(), any_state(), "\\PC{0,80}");
    (who, any::<u32>(), any_timeouts(), 100..(1_u64 << 40), history).prop_map(
        |((pod, boot, state, detail), container_concurrency, timeouts, current_second, history)| PodHello {
            speaks: LinkVersion::CURRENT,
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

fn any_pod_report() -> impl Strategy<Value = PodWord> {
    prop_oneof![
        any_pod_hello().prop_map(PodWord::Hello),
        (
            any_second(),
            any_load(),
            proptest::option::of(any_usage()),
            proptest::option::of(any_late_bytes()),
        )
            .prop_map(|(second, load, usage, late_bytes)| {
                PodWord::Load { sample: Sample { second, load }, usage, late_bytes }
            }),
        (any_state(), "\\PC{0,80}").prop_map(|(state, detail)| PodWord::State { state, detail }),
        any_count().prop_map(PodWord::Present),
        any_version().prop_map(PodWord::SettingsAcknowledged),
        any_adopted_connections().prop_map(PodWord::Adopted),
    ]
}

fn any_adopted_connections() -> impl Strategy<Value = AdoptedConnections> {
    let peers = proptest::collection::vec(any::<std::net::IpAddr>(), 0..5);
    prop_oneof![
        any_duration().prop_map(|age| AdoptedConnections::Unreadable { age }),
        (any::<u32>(), any_duration(), peers).prop_map(|(count, age, peers)| {
            AdoptedConnections::Open(ConnectionTally { count, age, peers: PeerList::of(peers) })
        }),
    ]
}

fn any_adoption() -> impl Strategy<Value = Option<AdoptionId>> {
    proptest::option::of(any::<u64>().prop_map(AdoptionId))
}

fn any_departure() -> impl Strategy<Value = Departure> {
    prop_oneof![
        Just(Departure::NotPlanned),
        any_duration().prop_map(|within| Departure::Leaving { within }),
        Just(Departure::Released),
    ]
}

fn any_pod_order() -> impl Strategy<Value = PodOrder> {
    prop_oneof![
        (
            any_version(),
            proptest::option::of(any::<u32>()),
            any_routing(),
            any_keys(),
            any_departure(),
            any_adoption(),
            (any_head_size(), any_late_timeout()),
        )
            .prop_map(
                |(
                    version,
                    surge_threshold,
                    routing,
                    hop_keys,
                    departure,
                    adoption,
                    (head_size_limit, late),
                )| {
                    let settings = PodSettings {
                        version,
                        surge_threshold,
                        routing,
                        hop_keys,
                        departure,
                        adoption,
                        head_size_limit,
                        late,
                    };
                    PodOrder::Settings(settings.into())
                }
            ),
        Just(PodOrder::Heartbeat),
    ]
}

fn any_loads() -> impl Strategy<Value = Vec<RevisionLoad>> {
    let caller = ("[ -~]{0,96}", any::<std::net::IpAddr>())
        .prop_map(|(user_agent, address)| vocabulary::Caller { user_agent: user_agent.into(), address });
    let callers = proptest::collection::vec(caller, 0..=vocabulary::Caller::NAMED_MAX);
    let load = (any_revision(), any_load(), any_duration(), callers).prop_map(
        |(revision, load, oldest_wait, callers)| RevisionLoad { revision, load, oldest_wait, callers },
    );
    proptest::collection::vec(load, 0..4)
}

pub(crate) fn any_activator_report() -> impl Strategy<Value = ActivatorWord> {
    let history = proptest::collection::vec((0..=1000_u64, any_loads()), 0..5);
    let present = proptest::collection::vec((any_revision(), any_count()), 0..4);
    let routings = proptest::collection::vec((any_revision(), any_routing()), 0..4);
    let hello = (any_name(), any::<u64>(), 1000..(1_u64 << 40), history, present, routings).prop_map(
        |(activator, boot, current_second, history, present, routings)| ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: ReplicaName::from(activator),
            boot: BootId(boot),
            current_second,
            history,
            present,
            routings,
        },
    );
    prop_oneof![
        hello.prop_map(ActivatorWord::Hello),
        (any_second(), any_loads()).prop_map(|(second, loads)| ActivatorWord::Loads { second, loads }),
        (any_revision(), any_count(), any_duration()).prop_map(|(revision, count, oldest_wait)| {
            ActivatorWord::Present { revision, count, oldest_wait }
        }),
        (any_revision(), any_version())
            .prop_map(|(revision, version)| ActivatorWord::Acknowledged { revision, version }),
        any_revision().prop_map(|revision| ActivatorWord::Emptied { revision }),
        Just(ActivatorWord::Draining),
    ]
}

fn any_slice() -> impl Strategy<Value = Slice> {
    prop_oneof![Just(Slice::Undivided), Just(Slice::Inside), Just(Slice::Outside)]
}

fn any_hosts_and_ports() -> impl Strategy<Value = (Vec<String>, BTreeSet<u16>)> {
    (proptest::collection::vec(any_name(), 0..3), proptest::collection::btree_set(1_u16.., 0..3))
}

fn any_user_agents() -> impl Strategy<Value = IgnoredUserAgents> {
    let prefix = "[!-+\\--~]{1,64}";
    proptest::collection::vec(prefix, 0..4).prop_map(|prefixes| IgnoredUserAgents::new(prefixes).unwrap())
}

fn any_head_size() -> impl Strategy<Value = HeadSizeLimit> {
    (HeadSizeLimit::MIN.bytes()..=HeadSizeLimit::MAX.bytes())
        .prop_map(|bytes| HeadSizeLimit::new(bytes).expect("in range"))
}

fn any_assignment() -> impl Strategy<Value = Assignment> {
    let address = any::<(std::net::IpAddr, u16)>();
    let exits = proptest::collection::btree_map(1_u16.., 1_u16.., 0..3);
    let pod = (any_name(), address, exits, any_state(), any::<u32>(), any_slice(), any::<bool>()).prop_map(
        |(pod, address, exits, state, slots, slice, is_plain)| PodAssignment {
            pod: PodName::from(pod),
            address: address.into(),
            exits: PodExits(exits),
            state,
            slots,
            slice,
            is_plain,
        },
    );
    let identity = (any_revision(), any_version(), any_hosts_and_ports());
    let limits = (any_routing(), any::<u32>(), any_timeouts(), any_user_agents(), any_head_size());
    let standing = prop_oneof![Just(Standing::Assigned), Just(Standing::Retired)];
    let page = prop_oneof![
        Just(vocabulary::WaitingPage::Off),
        Just(vocabulary::WaitingPage::Auto),
        "\\PC{1,80}".prop_map(|text| vocabulary::WaitingPage::Text(text.into())),
    ];
    let texts = ("\\PC{0,80}", standing, proptest::option::of("\\PC{0,80}"), page);
    (identity, limits, proptest::collection::vec(pod, 0..5), any_keys(), texts).prop_map(
        |(
            (revision, version, (hosts, ports)),
            (routing, container_concurrency, timeouts, ignored_user_agents, head_size_limit),
            pods,
            hop_keys,
            (waiting_for, standing, hold, waiting_page),
        )| {
            Assignment {
                revision,
                version,
                hosts,
                ports,
                routing,
                container_concurrency,
                timeouts,
                pods,
                hop_keys,
                waiting_for,
                standing,
                hold,
                ignored_user_agents,
                head_size_limit,
                waiting_page,
            }
        },
    )
}

fn any_ownership() -> impl Strategy<Value = Ownership> {
    let owned = proptest::collection::btree_map(0..10_u16, any::<u64>(), 0..4);
    (owned, 10..20_u16).prop_map(|(owned, buckets)| {
        let epochs = owned.into_iter().map(|(bucket, epoch)| (Bucket(bucket), Epoch(epoch)));
        Ownership { epochs: epochs.collect(), buckets }
    })
}

fn any_activator_order() -> impl Strategy<Value = ActivatorOrder> {
    prop_oneof![
        any_assignment().prop_map(|assignment| ActivatorOrder::Assign(Box::new(assignment))),
        (any_revision(), any_version())
            .prop_map(|(revision, version)| ActivatorOrder::Remove { revision, version }),
        (any_name(), any_ownership()).prop_map(|(owner, ownership)| ActivatorOrder::SyncBegin {
            owner: ReplicaName::from(owner),
            ownership,
        }),
        (any_revision(), any_version())
            .prop_map(|(revision, version)| ActivatorOrder::Forget { revision, version }),
        any_ownership()
            .prop_map(|owned| ActivatorOrder::Released { buckets: owned.epochs.into_keys().collect() }),
        Just(ActivatorOrder::SyncEnd),
        Just(ActivatorOrder::Heartbeat),
    ]
}

proptest! {
    #[test]
    fn a_written_message_is_read_back_unchanged(
        pod_report in any_pod_report(),
        pod_order in any_pod_order(),
        activator_report in any_activator_report(),
        activator_order in any_activator_order(),
    ) {
        prop_assert_eq!(PodWord::decode(&bytes_of(&pod_report)), Ok(pod_report));
        prop_assert_eq!(PodOrder::decode(&bytes_of(&pod_order)), Ok(pod_order));
        prop_assert_eq!(ActivatorWord::decode(&bytes_of(&activator_report)), Ok(activator_report));
        prop_assert_eq!(ActivatorOrder::decode(&bytes_of(&activator_order)), Ok(activator_order));
    }

    /// Whatever a peer sends, the answer is a message or a reason, and what was accepted can be said again.
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(report) = PodWord::decode(&bytes) {
            prop_assert_eq!(PodWord::decode(&bytes_of(&report)), Ok(report));
        }
        let _ = PodOrder::decode(&bytes);
        let _ = ActivatorWord::decode(&bytes);
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
        let _ = ActivatorWord::decode(&damaged(bytes_of(&report)));
        let _ = ActivatorOrder::decode(&damaged(bytes_of(&order)));
        let _ = PodWord::decode(&damaged(bytes_of(&PodWord::Hello(hello))));
    }
}
