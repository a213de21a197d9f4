mod laws;

use std::time::Duration;

use vocabulary::{
    ActivatorWord, BootId, Bucket, Epoch, HeadSizeLimit, PodAssignment, PodExits, PodName, PodState,
    ReplicaName, Routing, Slice, Standing,
};

use super::*;
use crate::revision::RequestRefusal;

const START: Timestamp = Timestamp::from_secs(60);
const ONE: LinkNumber = LinkNumber(1);
const TWO: LinkNumber = LinkNumber(2);

fn name() -> RevisionName {
    RevisionName::parse("default/service/hello").expect("a name")
}

fn version(epoch: u64, counter: u64) -> Version {
    Version { epoch: Epoch(epoch), counter }
}

fn assignment(version: Version, pods: &[u8]) -> Assignment {
    let pod = |&number: &u8| PodAssignment {
        pod: PodName::new(&format!("p{number}")),
        address: ([10, 0, 0, number], 8012).into(),
        exits: PodExits::default(),
        state: PodState::Ready,
        slots: 1,
        slice: Slice::Undivided,
        is_plain: false,
    };
    Assignment {
        hosts: vec!["hello".to_owned()],
        container_concurrency: 1,
        pods: pods.iter().map(pod).collect(),
        ..Assignment::of_nothing(name(), version)
    }
}

/// An activator with one open link, which has said hello.
struct Played {
    end: ActivatorRevisions,
    now: Timestamp,
}

impl Played {
    fn new() -> Self {
        let identity = ActivatorIdentity { name: ReplicaName::new("a"), boot: BootId(1) };
        let limits = QueueLimits { per_revision: 10, in_all: 3 };
        let mut played = Self { end: ActivatorRevisions::new(identity, limits, (), 7, START), now: START };
        played.open(ONE);
        played
    }

    fn open(&mut self, link: LinkNumber) {
        self.handle(ActivatorEvent::LinkOpened { link });
        assert!(matches!(self.words(link)[..], [ActivatorWord::Hello(_)]), "the hello comes first");
    }

    fn handle(&mut self, event: ActivatorEvent) -> Vec<ActivatorCommand> {
        self.end.handle(event, self.now);
        std::iter::from_fn(|| self.end.next_command()).collect()
    }

    fn words(&mut self, link: LinkNumber) -> Vec<ActivatorWord> {
        let mut words = Vec::new();
        loop {
            let next = self.end.next_words(link, self.now);
            if next.is_empty() {
                return words;
            }
            words.extend(next);
        }
    }

    fn sync(&mut self, link: LinkNumber, epoch: u64, assignments: &[Assignment]) -> Vec<ActivatorCommand> {
        let ownership = Ownership::of_everything(Epoch(epoch));
        let owner = ReplicaName::new(&format!("owner-{}", link.0));
        let mut commands = self.handle(ActivatorEvent::SyncBegan { link, owner, ownership });
        for assignment in assignments {
            commands.extend(self.assign(link, assignment));
        }
        commands.extend(self.handle(ActivatorEvent::SyncEnded { link }));
        commands
    }

    fn assign(&mut self, link: LinkNumber, assignment: &Assignment) -> Vec<ActivatorCommand> {
        self.handle(ActivatorEvent::Assigned { link, assignment: Arc::new(assignment.clone()) })
    }

    fn arrive(&mut self) -> (Ticket, Vec<ActivatorCommand>) {
        let ticket = self.end.draw_ticket(&name()).expect("the revision is known");
        (ticket, self.request(RequestEvent::Arrived { ticket }))
    }

    fn request(&mut self, event: RequestEvent) -> Vec<ActivatorCommand> {
        self.handle(ActivatorEvent::Request { revision: name(), event })
    }

    fn in_force(&self) -> Option<Version> {
        self.end.cell(&name()).map(|revision| revision.assignment().version)
    }
}

fn acknowledged(version: Version) -> ActivatorWord {
    ActivatorWord::Acknowledged { revision: name(), version }
}

fn upkeep(commands: &[ActivatorCommand]) -> Option<(UpkeepId, usize)> {
    commands.iter().find_map(|command| {
        if let ActivatorCommand::CarryOut { upkeep, closed, .. } = command {
            Some((*upkeep, closed.len()))
        } else {
            None
        }
    })
}

#[test]
fn versions_only_grow_and_an_older_assignment_changes_nothing() {
    let mut played = Played::new();
    let commands = played.sync(ONE, 1, &[assignment(version(1, 5), &[1])]);
    assert!(commands.contains(&ActivatorCommand::NoteSynced));
    assert_eq!(played.words(ONE), [acknowledged(version(1, 5))]);
    let stale = played.assign(ONE, &assignment(version(1, 4), &[]));
    assert_eq!((stale, played.in_force()), (vec![ActivatorCommand::CountStaleOrder], Some(version(1, 5))));
    played.assign(ONE, &assignment(version(1, 5), &[1]));
    assert_eq!(played.words(ONE), [acknowledged(version(1, 5))], "a repeat is acknowledged again");
}

#[test]
fn a_version_is_acknowledged_when_no_work_for_its_revision_is_left() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[1, 2])]);
    played.words(ONE);
    let first = upkeep(&played.assign(ONE, &assignment(version(1, 2), &[1])));
    let (first, closed) = first.expect("connections to a pod are closed");
    assert_eq!((closed, played.words(ONE)), (1, Vec::new()));
    let second = upkeep(&played.assign(ONE, &assignment(version(1, 3), &[])));
    let (second, _) = second.expect("connections to a pod are closed");
    played.handle(ActivatorEvent::UpkeepEnded { upkeep: second });
    played.assign(ONE, &assignment(version(1, 3), &[]));
    assert_eq!(played.words(ONE), [], "a repeat acknowledges nothing early");
    played.handle(ActivatorEvent::UpkeepEnded { upkeep: first });
    assert_eq!(played.words(ONE), [acknowledged(version(1, 3))]);
    played.handle(ActivatorEvent::UpkeepEnded { upkeep: first });
    assert_eq!(played.words(ONE), [], "what has ended ends once");
}

#[test]
fn a_removal_refuses_what_waits_and_is_acknowledged_once_the_ports_are_closed() {
    let mut played = Played::new();
    let assignment = Assignment { ports: BTreeSet::from([9000]), ..assignment(version(1, 1), &[]) };
    let opening = upkeep(&played.sync(ONE, 1, &[assignment])).expect("a port is opened");
    played.handle(ActivatorEvent::UpkeepEnded { upkeep: opening.0 });
    let (ticket, _) = played.arrive();
    played.words(ONE);
    let removed = ActivatorEvent::Removed { link: ONE, revision: name(), version: version(1, 2) };
    let commands = played.handle(removed.clone());
    let refusal = RequestRefusal::Gone;
    assert!(commands.contains(&ActivatorCommand::Refuse { revision: name(), ticket, refusal }));
    assert!(commands.contains(&ActivatorCommand::ReleaseHost { host: "hello".to_owned() }));
    assert_eq!((played.in_force(), played.words(ONE)), (None, Vec::new()));
    let closing = upkeep(&commands).expect("the port is closed");
    played.handle(ActivatorEvent::UpkeepEnded { upkeep: closing.0 });
    assert_eq!(played.words(ONE), [acknowledged(version(1, 2))]);
    played.handle(removed);
    assert_eq!(played.words(ONE), [acknowledged(version(1, 2))], "an unknown revision is gone");
}

#[test]
fn a_revision_that_is_not_named_is_retired_and_forgotten_when_it_is_empty() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[])]);
    let (ticket, _) = played.arrive();
    assert_eq!(played.sync(ONE, 1, &[]), [], "nothing is refused, and the link knows that there are words");
    let standing = played.end.cell(&name()).map(ActivatorRevision::standing);
    assert_eq!(standing, Some(Standing::Retired));
    played.words(ONE);
    let forget = |version| ActivatorEvent::ForgettingAllowed { link: ONE, revision: name(), version };
    played.handle(forget(version(1, 1)));
    assert_eq!(played.in_force(), Some(version(1, 1)), "an old word forgets nothing");
    played.handle(forget(version(1, 2)));
    assert_eq!(played.in_force(), Some(version(1, 1)), "it is not empty");
    assert_eq!(played.words(ONE), []);
    let commands = played.request(RequestEvent::GaveUp { ticket });
    assert!(commands.contains(&ActivatorCommand::ReleaseHost { host: "hello".to_owned() }));
    assert_eq!((played.in_force(), played.words(ONE)), (None, vec![acknowledged(version(1, 2))]));
    played.handle(forget(version(1, 3)));
    assert_eq!(played.words(ONE), [acknowledged(version(1, 3))]);
}

#[test]
fn an_empty_retired_revision_is_reported_at_once_and_after_each_request() {
    let mut played = Played::new();
    let retired = Assignment { standing: Standing::Retired, ..assignment(version(1, 1), &[]) };
    let emptied = ActivatorWord::Emptied { revision: name() };
    played.sync(ONE, 1, &[retired]);
    assert_eq!(played.words(ONE), [acknowledged(version(1, 1)), emptied.clone()]);
    let (ticket, _) = played.arrive();
    assert!(matches!(played.words(ONE)[..], [ActivatorWord::Present { .. }]));
    played.request(RequestEvent::GaveUp { ticket });
    assert_eq!(played.words(ONE), [emptied]);
}

#[test]
fn a_later_owner_speaks_alone_and_a_late_one_changes_nothing() {
    let mut played = Played::new();
    played.sync(ONE, 5, &[assignment(version(5, 1), &[])]);
    played.words(ONE);
    played.open(TWO);
    played.sync(TWO, 6, &[assignment(version(6, 1), &[])]);
    assert_eq!((played.words(ONE), played.words(TWO)), (Vec::new(), vec![acknowledged(version(6, 1))]));
    let late = played.assign(ONE, &assignment(version(5, 9), &[1]));
    assert_eq!((late, played.in_force()), (vec![ActivatorCommand::CountStaleOrder], Some(version(6, 1))));
    played.handle(ActivatorEvent::LinkClosed { link: TWO });
    played.assign(ONE, &assignment(version(5, 9), &[1]));
    played.assign(TWO, &assignment(version(6, 2), &[1]));
    assert_eq!(played.in_force(), Some(version(6, 1)), "a closed link orders nothing");
    let buckets = BTreeSet::from([Bucket(0)]);
    assert_eq!(played.handle(ActivatorEvent::Released { link: ONE, buckets: buckets.clone() }), []);
    played.open(LinkNumber(3));
    played.sync(LinkNumber(3), 6, &[]);
    let released = played.handle(ActivatorEvent::Released { link: LinkNumber(3), buckets });
    assert_eq!(released, [ActivatorCommand::NoteReleased]);
}

#[test]
fn a_host_that_another_revision_took_over_is_not_released() {
    let mut played = Played::new();
    let other = RevisionName::parse("default/service/other").expect("a name");
    let with = |revision: &RevisionName, counter, host: &str| Assignment {
        revision: revision.clone(),
        hosts: vec![host.to_owned()],
        ..assignment(version(1, counter), &[])
    };
    played.sync(ONE, 1, &[with(&name(), 1, "one"), with(&other, 1, "two")]);
    let taken = played.assign(ONE, &with(&other, 2, "one"));
    assert!(taken.contains(&ActivatorCommand::ReleaseHost { host: "two".to_owned() }));
    let given = played.assign(ONE, &with(&name(), 2, "two"));
    assert!(!given.contains(&ActivatorCommand::ReleaseHost { host: "one".to_owned() }));
    assert_eq!((played.end.find("one"), played.end.find("two")), (Some(&other), Some(&name())));
}

#[test]
fn the_greatest_limit_of_a_known_revision_counts_once_all_were_named() {
    let mut played = Played::new();
    let of = |revision: &str, counter, kib: u32| Assignment {
        revision: RevisionName::new("default", "service", revision).expect("a name"),
        hosts: Vec::new(),
        head_size_limit: HeadSizeLimit::new(kib << 10).expect("a limit"),
        ..assignment(version(1, counter), &[])
    };
    let most = |commands: &[ActivatorCommand]| {
        let mut limits = commands.iter().filter_map(|command| {
            if let ActivatorCommand::LimitHeads { limit } = command { Some(limit.to_string()) } else { None }
        });
        limits.next_back().unwrap_or_default()
    };
    assert_eq!(most(&played.assign(ONE, &of("one", 1, 64))), "", "others may be named yet");
    assert_eq!(most(&played.sync(ONE, 1, &[of("one", 1, 64)])), "64Ki");
    played.assign(ONE, &of("two", 1, 256));
    played.assign(ONE, &of("three", 1, 256));
    assert_eq!(most(&played.assign(ONE, &of("three", 2, 8))), "256Ki", "one revision has it still");
    let mut remove = |revision: &str| {
        let revision = RevisionName::new("default", "service", revision).expect("a name");
        most(&played.handle(ActivatorEvent::Removed { link: ONE, revision, version: version(1, 9) }))
    };
    assert_eq!(remove("two"), "64Ki");
    remove("one");
    assert_eq!(remove("three"), "128Ki", "without a revision the default counts");
}

#[test]
fn the_activator_as_a_whole_keeps_no_more_waiting_requests_than_its_limit() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[])]);
    for _ in 0..3 {
        played.arrive();
    }
    let (ticket, commands) = played.arrive();
    let refusal = RequestRefusal::ActivatorQueueFull;
    assert!(commands.contains(&ActivatorCommand::Refuse { revision: name(), ticket, refusal }));
    assert_eq!(played.end.cell(&name()).expect("it is known").present().in_flight, 3);
}

#[test]
fn each_second_is_said_once_on_each_link_and_again_in_a_hello() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[])]);
    played.arrive();
    played.words(ONE);
    assert_eq!(played.end.next_deadline(), START + Duration::from_secs(1));
    played.now = START + Duration::from_secs(3);
    let called = played.handle(ActivatorEvent::TimePassed);
    assert_eq!(called, [ActivatorCommand::Write { link: ONE }]);
    let words = played.words(ONE);
    let said: Vec<(u64, usize, f64)> = words
        .iter()
        .filter_map(|word| {
            if let ActivatorWord::Loads { second, loads } = word {
                Some((*second, loads.len(), loads[0].load.request_rate.value()))
            } else {
                None
            }
        })
        .collect();
    let third = 1.0 / 3.0;
    assert_eq!(said, [(0, 1, third), (1, 1, third), (2, 1, third)]);
    assert_eq!(played.words(ONE), []);
    played.handle(ActivatorEvent::LinkOpened { link: TWO });
    let [ActivatorWord::Hello(hello)] = &played.words(TWO)[..] else { panic!("a hello and no more") };
    assert_eq!((hello.current_second, hello.history.len(), hello.present.len()), (3, 3, 1));
    let drains = played.handle(ActivatorEvent::LeavingBegan);
    assert_eq!(drains.len(), 2);
    assert_eq!(
        (played.words(ONE), played.words(TWO)),
        (vec![ActivatorWord::Draining], vec![ActivatorWord::Draining])
    );
}

#[test]
fn a_look_at_a_revision_reports_once_what_time_has_made_due() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[])]);
    played.arrive();
    played.words(ONE);
    played.now += Duration::from_millis(3);
    played.arrive();
    assert_eq!(played.words(ONE), [], "no report within 10 ms of the last");
    played.now += Duration::from_millis(7);
    let look = ActivatorEvent::RevisionIsDue { revision: name() };
    assert_eq!(played.handle(look.clone()), [ActivatorCommand::Write { link: ONE }]);
    assert!(matches!(played.words(ONE)[..], [ActivatorWord::Present { .. }]));
    assert_eq!(played.handle(look), []);
}

#[test]
fn a_new_link_of_the_same_owner_ends_its_former_link() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[]);
    played.open(TWO);
    let owner = ReplicaName::new("owner-1");
    let ownership = Ownership::of_everything(Epoch(1));
    let commands = played.handle(ActivatorEvent::SyncBegan { link: TWO, owner, ownership });
    assert_eq!(commands, [ActivatorCommand::CloseLink { link: ONE }]);
    assert_eq!(played.words(ONE), []);
}

#[test]
fn the_last_second_of_a_forgotten_revision_is_said() {
    let mut played = Played::new();
    played.sync(ONE, 1, &[assignment(version(1, 1), &[])]);
    let (ticket, _) = played.arrive();
    played.request(RequestEvent::GaveUp { ticket });
    let forget = ActivatorEvent::ForgettingAllowed { link: ONE, revision: name(), version: version(1, 2) };
    played.handle(forget);
    assert_eq!(played.in_force(), None);
    played.words(ONE);
    for loads in [1, 0] {
        played.now += Duration::from_secs(1);
        played.handle(ActivatorEvent::TimePassed);
        let words = played.words(ONE);
        let [ActivatorWord::Loads { loads: said, .. }] = &words[..] else { panic!("one second: {words:?}") };
        assert_eq!(said.len(), loads);
    }
}

#[test]
fn a_request_goes_past_the_queue_where_its_assignment_leads_to_a_ready_pod() {
    let mut played = Played::new();
    assert_eq!(played.end.way_of_request(&name(), START), None, "the revision is not known");
    let mut goes_past_the_queue = |routing: Routing, counter: u64, pods: &[u8]| {
        played.sync(ONE, 1, &[Assignment { routing, ..assignment(version(1, counter), pods) }]);
        matches!(played.end.way_of_request(&name(), START), Some(RequestWay::Direct(_)))
    };
    assert!(!goes_past_the_queue(Routing::ThroughActivator, 1, &[1]));
    assert!(goes_past_the_queue(Routing::Direct, 2, &[1]));
    assert!(!goes_past_the_queue(Routing::Direct, 3, &[]), "no pod is ready");
}
