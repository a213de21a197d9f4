use super::*;

const NOW: Timestamp = Timestamp::ZERO;
const WALL: WallSeconds = WallSeconds(1_000_000);

fn port(name: &str, number: u16, target: u16) -> ServicePort {
    let target = TargetPort::Number(target);
    ServicePort { name: Some(name.to_owned()), number, target, app_protocol: None }
}

fn revision() -> RevisionName {
    RevisionName::new("default", "deployment", "hello").expect("a name")
}

fn settle(book: &mut PortBook, uid: &str, ports: &[ServicePort], wall: WallSeconds) -> bool {
    let seeker = PortSeeker { uid, revision: &revision(), ports: ports.iter().collect() };
    book.settle(&seeker, &BTreeSet::new(), (NOW, wall))
}

fn record(book: &mut PortBook) {
    let notes = book.notes();
    book.recorded(&PortNotes::read(&notes.write()));
}

fn given(book: &PortBook, uid: &str) -> Vec<u16> {
    book.of_service(uid).filter_map(|entry| entry.port).collect()
}

/// The only bucket's, which is ours.
fn alone() -> PortBook {
    PortBook { is_ours: true, ..PortBook::new(PortShare { bucket: 0, buckets: 1 }) }
}

/// A book whose round ends with these ports.
fn near_the_end(left: u16) -> PortBook {
    PortBook { next: Some(LAST - left + 1), ..alone() }
}

#[test]
fn nothing_is_used_before_it_is_on_the_lease() {
    let mut book = alone();
    assert!(settle(&mut book, "a", &[port("http", 80, 8080), port("grpc", 81, 9090)], WALL));
    assert!(!book.is_settled("a"));
    assert!(given(&book, "a").is_empty());
    assert!(!book.recorded(&PortNotes::default()), "that was an older write");
    record(&mut book);
    assert!(book.is_settled("a"));
    assert_eq!(given(&book, "a"), [10_000, 10_001]);
    assert!(!settle(&mut book, "a", &[port("http", 80, 8080), port("grpc", 81, 9090)], WALL));
}

#[test]
fn a_port_that_is_renamed_or_renumbered_keeps_its_own() {
    let mut book = alone();
    settle(&mut book, "a", &[port("http", 80, 8080), port("grpc", 81, 9090)], WALL);
    record(&mut book);
    settle(&mut book, "a", &[port("web", 80, 8080), port("grpc", 9000, 9090)], WALL);
    assert_eq!(given(&book, "a"), [10_000, 10_001]);
    // A name that moves to another number takes its port along.
    settle(&mut book, "a", &[port("grpc", 80, 8080), port("web", 81, 9090)], WALL);
    assert_eq!(given(&book, "a"), [10_001, 10_000]);
    assert_eq!(book.former_of(&revision()).count(), 0);
}

#[test]
fn a_port_that_is_gone_serves_on_then_rests_and_comes_again_last() {
    let mut book = near_the_end(2);
    settle(&mut book, "a", &[port("http", 80, 8080), port("grpc", 81, 9090)], WALL);
    record(&mut book);
    settle(&mut book, "a", &[port("http", 80, 8080)], WALL);
    assert_eq!(book.former_of(&revision()).map(|(port, _)| port).collect::<Vec<_>>(), [LAST]);
    assert_eq!(book.expire(NOW), BTreeSet::new());
    assert_eq!(book.next_deadline(), Some(NOW + FORMER_SERVES));
    assert_eq!(book.expire(NOW + FORMER_SERVES), BTreeSet::from([revision()]));
    assert!(book.notes().given.contains(&LAST), "activators may still listen there");
    book.rest(LAST, WALL);
    assert!(!book.notes().given.contains(&LAST));
    // The round begins anew, and what rests is not given even when it is reached.
    settle(&mut book, "b", &[port("http", 80, 8080)], WALL);
    record(&mut book);
    assert_eq!(given(&book, "b"), [FIRST]);
    book.next = Some(LAST);
    let within = WallSeconds(WALL.0 + 3599);
    settle(&mut book, "c", &[port("http", 80, 8080)], within);
    record(&mut book);
    assert_eq!(given(&book, "c"), [FIRST + 1]);
    book.next = Some(LAST);
    settle(&mut book, "d", &[port("http", 80, 8080)], WallSeconds(WALL.0 + 3600));
    record(&mut book);
    assert_eq!(given(&book, "d"), [LAST]);
}

#[test]
fn the_next_owner_gives_no_port_that_another_service_has_or_had() {
    let mut first = alone();
    for uid in ["a", "b"] {
        settle(&mut first, uid, &[port("http", 80, 8080)], WALL);
    }
    let notes = PortNotes::read(&first.notes().write());
    // It finds the slices of one of them alone; the other was deleted while no bucket had an owner.
    let mut next = alone();
    let entry = PortEntry { name: Some("http".to_owned()), number: 80, target: None, port: Some(10_000) };
    let (entries, number) = (vec![entry], ClaimNumber(1));
    let claim = PortClaim { uid: "a".to_owned(), revision: revision(), entries, number };
    next.take_over(&notes, vec![claim], WALL);
    settle(&mut next, "a", &[port("http", 80, 8080)], WALL);
    settle(&mut next, "c", &[port("http", 80, 8080)], WALL);
    record(&mut next);
    assert_eq!((given(&next, "a"), given(&next, "c")), (vec![10_000], vec![10_002]));
    assert_eq!(next.notes().resting.keys().copied().collect::<Vec<_>>(), [10_001]);
}

#[test]
fn a_service_gets_no_port_of_another_one_when_none_is_left() {
    let mut book = alone();
    let all: Vec<_> = (FIRST..=LAST).map(|number| port(&format!("p{number}"), number, 1)).collect();
    settle(&mut book, "a", &all, WALL);
    settle(&mut book, "b", &[port("http", 80, 8080)], WALL);
    record(&mut book);
    assert!(book.is_settled("b"));
    assert_eq!(book.of_service("b").map(|entry| entry.port).collect::<Vec<_>>(), [None]);
    assert_eq!(book.notes().write()["ebb.dev/ports-given"], "10000-29999");
    assert_eq!(PortNotes::read(&book.notes().write()), book.notes());
}

#[test]
fn a_service_without_a_port_is_named_once_when_a_port_has_rested() {
    let mut book = PortBook { taken: (FIRST + 1..=LAST).collect(), ..alone() };
    settle(&mut book, "a", &[port("http", 80, 8080)], WALL);
    settle(&mut book, "b", &[port("http", 80, 8080)], WALL);
    assert_eq!(book.free_again(), None, "no time is known");
    book.remove_service("a");
    book.rest(FIRST, WALL);
    let again = WALL.later(REST);
    assert_eq!(book.free_again(), Some(again));
    assert_eq!(book.starving(WallSeconds(again.0 - 1)).count(), 0);
    assert_eq!(book.starving(again).collect::<Vec<_>>(), ["b"]);
    assert_eq!(book.starving(again).count(), 0, "once");
    settle(&mut book, "b", &[port("http", 80, 8080)], again);
    record(&mut book);
    assert_eq!(given(&book, "b"), [FIRST]);
}
