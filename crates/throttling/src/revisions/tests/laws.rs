//! What holds for all revisions of one activator, whatever its owners say on whatever link, in every order
//! that chance makes.

use proptest::prelude::*;

use super::*;
use crate::throttler::Dispatch;

const REVISIONS: [&str; 2] = ["one", "two"];
const HOSTS: [&str; 3] = ["x", "y", "z"];

/// One event of a random world. Links, revisions and requests are chosen by a number.
#[derive(Clone, Debug)]
enum LinkHappening {
    Opens,
    Closes(usize),
    /// The owner of a link names its bucket anew, in an epoch that is so much behind the last one.
    SyncBegins(usize, u64),
    SyncEnds(usize),
    /// A revision is assigned under some hosts, in an epoch that is so much behind the last one.
    Assigned(usize, usize, u64, Vec<usize>),
    Repeated(usize, usize),
    Removed(usize, usize),
    ForgettingAllowed(usize, usize),
    Arrives(usize),
    Ends(usize),
    UpkeepEnds(usize),
    Written(usize),
    TimePasses(u64),
    Leaves,
}

fn happening() -> impl Strategy<Value = LinkHappening> {
    let link = || any::<usize>();
    let revision = || 0..REVISIONS.len();
    let hosts = prop::collection::vec(0..HOSTS.len(), 0..3);
    prop_oneof![
        2 => Just(LinkHappening::Opens),
        1 => link().prop_map(LinkHappening::Closes),
        3 => (link(), 0..2_u64).prop_map(|(link, behind)| LinkHappening::SyncBegins(link, behind)),
        2 => link().prop_map(LinkHappening::SyncEnds),
        8 => (link(), revision(), 0..2_u64, hosts).prop_map(|(link, revision, behind, hosts)| {
            LinkHappening::Assigned(link, revision, behind, hosts)
        }),
        1 => (link(), revision()).prop_map(|(link, revision)| LinkHappening::Repeated(link, revision)),
        1 => (link(), revision()).prop_map(|(link, revision)| LinkHappening::Removed(link, revision)),
        2 => (link(), revision()).prop_map(|(link, revision)| {
            LinkHappening::ForgettingAllowed(link, revision)
        }),
        5 => revision().prop_map(LinkHappening::Arrives),
        4 => any::<usize>().prop_map(LinkHappening::Ends),
        3 => any::<usize>().prop_map(LinkHappening::UpkeepEnds),
        4 => link().prop_map(LinkHappening::Written),
        2 => (1..2_500_u64).prop_map(LinkHappening::TimePasses),
        1 => Just(LinkHappening::Leaves),
    ]
}

/// What the tests know of an activator.
struct PlayedLinks {
    end: ActivatorRevisions,
    now: Timestamp,
    epoch: u64,
    counter: u64,
    links: Vec<LinkNumber>,
    opened: u64,
    upkeep: Vec<UpkeepId>,
    waiting: Vec<(RevisionName, Ticket)>,
    running: Vec<(RevisionName, Dispatch)>,
    by_host: BTreeMap<String, RevisionName>,
    /// The version of each known revision that was in force last.
    in_force: BTreeMap<RevisionName, Version>,
    /// The links that have something to say, and do not know it yet.
    called: BTreeSet<LinkNumber>,
    greeted: BTreeSet<LinkNumber>,
    /// The next second that each link is to be told.
    seconds: BTreeMap<LinkNumber, u64>,
    is_leaving: bool,
    /// Revisions of which a word has allowed that they go in this event.
    may_go: Option<RevisionName>,
}

impl PlayedLinks {
    fn new() -> Self {
        let identity = ActivatorIdentity { name: ReplicaName::new("a"), boot: BootId(1) };
        let limits = QueueLimits { per_revision: 10, in_all: 100 };
        Self {
            end: ActivatorRevisions::new(identity, limits, (), 7, START),
            now: START,
            epoch: 1,
            counter: 0,
            links: Vec::new(),
            opened: 0,
            upkeep: Vec::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            by_host: BTreeMap::new(),
            in_force: BTreeMap::new(),
            called: BTreeSet::new(),
            greeted: BTreeSet::new(),
            seconds: BTreeMap::new(),
            is_leaving: false,
            may_go: None,
        }
    }

    fn happen(&mut self, happening: &LinkHappening) {
        self.may_go = None;
        match happening {
            LinkHappening::Opens => {
                self.opened += 1;
                let link = LinkNumber(self.opened);
                self.links.push(link);
                self.handle(ActivatorEvent::LinkOpened { link });
            }
            LinkHappening::Closes(which) => {
                if let Some(link) = self.link(*which) {
                    self.forget_link(link);
                    self.handle(ActivatorEvent::LinkClosed { link });
                }
            }
            LinkHappening::Arrives(which) => self.arrive(&revision_of(*which)),
            LinkHappening::Ends(which) => self.end(*which),
            LinkHappening::UpkeepEnds(which) => {
                if !self.upkeep.is_empty() {
                    let upkeep = self.upkeep.remove(which % self.upkeep.len());
                    self.handle(ActivatorEvent::UpkeepEnded { upkeep });
                }
            }
            LinkHappening::Written(which) => {
                if let Some(link) = self.link(*which) {
                    self.write(link);
                }
            }
            LinkHappening::TimePasses(milliseconds) => {
                self.now += Duration::from_millis(*milliseconds);
                while self.end.next_deadline() <= self.now {
                    self.handle(ActivatorEvent::TimePassed);
                }
            }
            LinkHappening::Leaves => {
                self.is_leaving = true;
                self.handle(ActivatorEvent::LeavingBegan);
            }
            LinkHappening::SyncBegins(..)
            | LinkHappening::SyncEnds(_)
            | LinkHappening::Assigned(..)
            | LinkHappening::Repeated(..)
            | LinkHappening::Removed(..)
            | LinkHappening::ForgettingAllowed(..) => self.order(happening),
        }
    }

    /// An owner says something on its link.
    fn order(&mut self, happening: &LinkHappening) {
        let (LinkHappening::SyncBegins(which, _)
        | LinkHappening::SyncEnds(which)
        | LinkHappening::Assigned(which, ..)
        | LinkHappening::Repeated(which, _)
        | LinkHappening::Removed(which, _)
        | LinkHappening::ForgettingAllowed(which, _)) = happening
        else {
            return;
        };
        let Some(link) = self.link(*which) else { return };
        if let LinkHappening::SyncBegins(_, behind) = happening {
            let owner = ReplicaName::new(&format!("owner-{}", link.0 % 3));
            self.epoch += 1 - behind;
            let ownership = Ownership::of_everything(Epoch(self.epoch.saturating_sub(*behind)));
            self.handle(ActivatorEvent::SyncBegan { link, owner, ownership });
        }
        if let LinkHappening::SyncEnds(_) = happening {
            self.handle(ActivatorEvent::SyncEnded { link });
        }
        if let LinkHappening::Assigned(_, revision, behind, hosts) = happening {
            let version = self.next_version(*behind);
            let hosts: BTreeSet<usize> = hosts.iter().copied().collect();
            let assignment = Assignment {
                revision: revision_of(*revision),
                hosts: hosts.into_iter().map(|host| HOSTS[host].to_owned()).collect(),
                ports: (version.counter % 3 == 1).then_some(9000).into_iter().collect(),
                ..assignment(version, &[1])
            };
            self.handle(ActivatorEvent::Assigned { link, assignment: Arc::new(assignment) });
        }
        if let LinkHappening::Repeated(_, revision) = happening
            && let Some(known) = self.end.cell(&revision_of(*revision))
        {
            let assignment = Arc::clone(known.assignment());
            self.handle(ActivatorEvent::Assigned { link, assignment });
        }
        if let LinkHappening::Removed(_, revision) = happening {
            let (revision, version) = (revision_of(*revision), self.next_version(0));
            self.may_go = Some(revision.clone());
            self.handle(ActivatorEvent::Removed { link, revision, version });
        }
        if let LinkHappening::ForgettingAllowed(_, revision) = happening {
            let (revision, version) = (revision_of(*revision), self.next_version(0));
            self.handle(ActivatorEvent::ForgettingAllowed { link, revision, version });
        }
    }

    fn link(&self, which: usize) -> Option<LinkNumber> {
        if self.links.is_empty() { None } else { Some(self.links[which % self.links.len()]) }
    }

    /// A version that no word had before, of the present epoch or of a former one, which is late.
    fn next_version(&mut self, behind: u64) -> Version {
        self.counter += 1;
        // Until a first owner has named its bucket no word is late.
        let behind = if self.epoch > 1 { behind } else { 0 };
        version(self.epoch - behind, self.counter)
    }

    fn arrive(&mut self, revision: &RevisionName) {
        let Some(ticket) = self.end.draw_ticket(revision) else { return };
        self.waiting.push((revision.clone(), ticket));
        let event = RequestEvent::Arrived { ticket };
        self.handle(ActivatorEvent::Request { revision: revision.clone(), event });
    }

    /// A request that runs ends, if any runs; else one that waits gives up.
    fn end(&mut self, which: usize) {
        if !self.running.is_empty() {
            let (revision, dispatch) = self.running.remove(which % self.running.len());
            self.handle(ActivatorEvent::Request { revision, event: RequestEvent::Ended { dispatch } });
        } else if !self.waiting.is_empty() {
            let (revision, ticket) = self.waiting.remove(which % self.waiting.len());
            self.handle(ActivatorEvent::Request { revision, event: RequestEvent::GaveUp { ticket } });
        }
    }

    fn handle(&mut self, event: ActivatorEvent) {
        self.end.handle(event, self.now);
        while let Some(command) = self.end.next_command() {
            self.obey(command);
        }
        let known: BTreeSet<&RevisionName> = self.end.cells().map(|(name, _)| name).collect();
        // The value knows nothing of the requests of a former life of a revision.
        self.running.retain(|(revision, _)| known.contains(revision));
    }

    fn obey(&mut self, command: ActivatorCommand) {
        match command {
            ActivatorCommand::CloseLink { link } => self.forget_link(link),
            ActivatorCommand::Write { link } => {
                assert!(self.links.contains(&link), "{link:?} is closed");
                assert!(self.called.insert(link), "{link:?} is called once until it is drained");
            }
            ActivatorCommand::LeadHost { host, revision } => {
                self.by_host.insert(host, revision);
            }
            ActivatorCommand::ReleaseHost { host } => {
                self.by_host.remove(&host).expect("only a host that led to a revision is released");
            }
            ActivatorCommand::CarryOut { upkeep, .. } => self.upkeep.push(upkeep),
            ActivatorCommand::Grant { revision, dispatch } => {
                self.stop_waiting(&revision, dispatch.ticket);
                self.running.push((revision, dispatch));
            }
            ActivatorCommand::Refuse { revision, ticket, refusal } => {
                self.stop_waiting(&revision, ticket);
                let is_removed = self.may_go == Some(revision);
                match refusal {
                    RequestRefusal::Gone => assert!(is_removed, "the revision exists"),
                    RequestRefusal::RevisionQueueFull { .. } => {}
                    RequestRefusal::ActivatorQueueFull | RequestRefusal::Held => panic!("{refusal:?}"),
                }
            }
            ActivatorCommand::LimitHeads { .. }
            | ActivatorCommand::NoteSynced
            | ActivatorCommand::NoteReleased
            | ActivatorCommand::CountStaleOrder => {}
        }
    }

    fn stop_waiting(&mut self, revision: &RevisionName, ticket: Ticket) {
        let found = self.waiting.iter().position(|(name, waiting)| name == revision && *waiting == ticket);
        self.waiting.remove(found.expect("only a request that waits has an answer"));
    }

    fn forget_link(&mut self, link: LinkNumber) {
        self.links.retain(|known| *known != link);
        self.called.remove(&link);
    }

    /// Takes all words of a link, and judges them.
    fn write(&mut self, link: LinkNumber) {
        let mut has_words = false;
        loop {
            let words = self.end.next_words(link, self.now);
            if words.is_empty() {
                break;
            }
            has_words = true;
            for word in words {
                self.hear(link, word);
            }
        }
        // What a link was called for may be no news any more.
        assert!(self.called.remove(&link) || !has_words, "a link that has words is called");
    }

    fn hear(&mut self, link: LinkNumber, word: ActivatorWord) {
        assert_eq!(self.greeted.contains(&link), !matches!(word, ActivatorWord::Hello(_)), "{word:?}");
        match word {
            ActivatorWord::Hello(hello) => {
                self.greeted.insert(link);
                self.seconds.insert(link, hello.current_second);
                let known: Vec<&RevisionName> = self.end.cells().map(|(name, _)| name).collect();
                let named: Vec<&RevisionName> = hello.routings.iter().map(|(name, _)| name).collect();
                assert_eq!(named, known, "it names what is known");
            }
            ActivatorWord::Loads { second, .. } => {
                let next = self.seconds.insert(link, second + 1);
                assert!(next.is_some_and(|next| next <= second), "each second is said once");
            }
            ActivatorWord::Acknowledged { revision, version } => {
                let in_force = self.end.cell(&revision).map(|known| known.assignment().version);
                let is_acted_upon = in_force.is_none_or(|in_force| version <= in_force);
                assert!(is_acted_upon, "{version} is acknowledged, and {in_force:?} is in force");
            }
            ActivatorWord::Emptied { .. } | ActivatorWord::Present { .. } => {}
            ActivatorWord::Draining => assert!(self.is_leaving, "it stays"),
        }
    }

    fn check(&mut self) {
        let led: Vec<(String, RevisionName)> =
            self.by_host.iter().map(|(host, name)| (host.clone(), name.clone())).collect();
        for (host, name) in led {
            assert_eq!(self.end.find(&host), Some(&name), "{host}");
            let known = self.end.cell(&name).expect("a host leads to what is known");
            assert!(known.assignment().hosts.contains(&host), "{name} is not known under {host}");
        }
        self.in_force.retain(|name, _| self.end.cell(name).is_some());
        for (name, known) in self.end.cells() {
            let version = known.assignment().version;
            let before = self.in_force.insert(name.clone(), version);
            assert!(before.is_none_or(|before| before <= version), "{version} after {before:?}");
            let waiting = self.waiting.iter().filter(|(of, _)| of == name).count();
            let running = self.running.iter().filter(|(of, _)| of == name).count();
            let present = known.present();
            let counted = (usize::try_from(present.waiting), usize::try_from(present.in_flight));
            assert_eq!(counted, (Ok(waiting), Ok(waiting + running)), "{name}");
        }
        assert_eq!(self.end.known_count(), self.end.cells().count());
    }
}

fn revision_of(which: usize) -> RevisionName {
    RevisionName::new("default", "service", REVISIONS[which]).expect("a name")
}

proptest! {
    /// Versions only grow, no request that waits is refused but by a removal, hosts lead to what is known
    /// under them, each link hears a hello first and each second once, and load is counted once.
    #[test]
    fn owners_and_links_in_any_order_keep_every_promise(
        happenings in prop::collection::vec(happening(), 1..120),
    ) {
        let mut played = PlayedLinks::new();
        for happening in &happenings {
            played.happen(happening);
            played.check();
        }
    }
}
