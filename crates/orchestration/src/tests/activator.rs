//! An activator as the tests play it: the value that the program runs, with the requests that tests send to
//! it and the words that are under way on its link.
//!
//! The link delays each kind of words by itself: acknowledgements, what waits and what is empty, loads. Each
//! kind keeps its order, and all that is under way is lost with the link.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use throttling::{
    ActivatorCommand, ActivatorEvent, ActivatorIdentity, ActivatorRevision, ActivatorRevisions, Dispatch,
    LinkNumber, QueueLimits, RequestEvent, RequestRefusal, Ticket,
};
use vocabulary::{
    ActivatorHello, ActivatorWord, Assignment, BootId, Ownership, PodName, PodState, PresentCount,
    ReplicaName, RevisionName, Slice, Timestamp, Version,
};

use crate::*;

/// What an activator was told.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Everything(Ownership, Vec<Arc<Assignment>>),
    Assignment(Arc<Assignment>),
    Unassigned(Version, Unassignment),
}

/// One activator, and what it holds of the one revision that there is.
#[derive(Debug)]
pub(super) struct PlayedActivator {
    pub(super) life: ActivatorLife,
    pub(super) boot: u64,
    pub(super) is_linked: bool,
    pub(super) is_stalled: bool,
    name: String,
    revision: RevisionName,
    end: ActivatorRevisions,
    link: LinkNumber,
    /// What it was told while it was stalled, and on which link.
    unread: VecDeque<(LinkNumber, Told)>,
    /// The assignment that this activator acts upon.
    pub(super) applied: Option<Arc<Assignment>>,
    pub(super) forgotten: usize,
    /// What it told its present owner, in its present boot, that it acts upon.
    pub(super) acknowledged: Option<Version>,
    pub(super) last_version: Version,
    /// The last version of the former owner.
    pub(super) former_version: Version,
    acknowledgements: VecDeque<ActivatorWord>,
    counts: VecDeque<ActivatorWord>,
    loads: VecDeque<ActivatorWord>,
    waiting: BTreeSet<Ticket>,
    running: Vec<(PodName, Dispatch)>,
    pub(super) refusals: Vec<RequestRefusal>,
    /// How many requests came in each of its seconds.
    arrivals: BTreeMap<u64, u32>,
    began: Timestamp,
}

const LIMITS: QueueLimits = QueueLimits { per_revision: 1_000, in_all: 1_100 };

impl PlayedActivator {
    pub(super) fn new(name: &str, boot: u64, now: Timestamp) -> Self {
        let identity = ActivatorIdentity { name: ReplicaName::new(name), boot: BootId(boot) };
        Self {
            life: ActivatorLife::default(),
            boot,
            is_linked: false,
            is_stalled: false,
            name: name.to_owned(),
            revision: super::world::name(),
            end: ActivatorRevisions::new(identity, LIMITS, (), boot, now),
            link: LinkNumber(0),
            unread: VecDeque::new(),
            applied: None,
            forgotten: 0,
            acknowledged: None,
            last_version: Version::default(),
            former_version: Version::default(),
            acknowledgements: VecDeque::new(),
            counts: VecDeque::new(),
            loads: VecDeque::new(),
            waiting: BTreeSet::new(),
            running: Vec::new(),
            refusals: Vec::new(),
            arrivals: BTreeMap::new(),
            began: Timestamp::from_secs(now.whole_secs()),
        }
    }

    /// The process is killed, and another one of its name begins.
    pub(super) fn restarted(&self, boot: u64, now: Timestamp) -> Self {
        Self { life: self.life, ..Self::new(&self.name, boot, now) }
    }

    /// The link is gone, with all that was under way on it.
    pub(super) fn unlink(&mut self, now: Timestamp) {
        self.is_linked = false;
        self.handle(ActivatorEvent::LinkClosed { link: self.link }, now);
        self.acknowledgements.clear();
        self.counts.clear();
        self.loads.clear();
    }

    /// A new link comes up, on which the activator says hello.
    pub(super) fn relink(&mut self, now: Timestamp) -> ActivatorHello {
        self.unlink(now);
        self.is_linked = true;
        self.link.0 += 1;
        self.end.handle(ActivatorEvent::LinkOpened { link: self.link }, now);
        let words = self.end.next_words(self.link, now);
        self.obey(now);
        let [ActivatorWord::Hello(hello)] = &words[..] else { panic!("the hello comes first: {words:?}") };
        hello.clone()
    }

    /// Takes an order from the link, or leaves it there while the activator is stalled.
    pub(super) fn tell(&mut self, told: Told, now: Timestamp) {
        self.unread.push_back((self.link, told));
        self.read(now);
    }

    /// Reads what lies on the link, unless the activator is stalled. What lies on a former link is lost.
    pub(super) fn read(&mut self, now: Timestamp) {
        if !self.is_stalled {
            for (link, told) in std::mem::take(&mut self.unread) {
                self.carry_out(link, told, now);
            }
        }
    }

    fn carry_out(&mut self, link: LinkNumber, told: Told, now: Timestamp) {
        match told {
            Told::Everything(ownership, assignments) => {
                let owner = ReplicaName::new("owner");
                self.handle(ActivatorEvent::SyncBegan { link, owner, ownership }, now);
                for assignment in assignments {
                    self.handle(ActivatorEvent::Assigned { link, assignment }, now);
                }
                self.handle(ActivatorEvent::SyncEnded { link }, now);
            }
            Told::Assignment(assignment) => {
                self.handle(ActivatorEvent::Assigned { link, assignment }, now);
            }
            Told::Unassigned(version, Unassignment::Removed) => {
                let (revision, before) = (self.revision.clone(), self.forgotten);
                self.handle(ActivatorEvent::Removed { link, revision, version }, now);
                self.forgotten = before;
            }
            Told::Unassigned(version, Unassignment::Forgotten) => {
                let revision = self.revision.clone();
                self.handle(ActivatorEvent::ForgettingAllowed { link, revision, version }, now);
            }
        }
    }

    fn handle(&mut self, event: ActivatorEvent, now: Timestamp) {
        self.end.handle(event, now);
        self.obey(now);
    }

    fn request(&mut self, event: RequestEvent, now: Timestamp) {
        self.handle(ActivatorEvent::Request { revision: self.revision.clone(), event }, now);
    }

    /// Carries out one round of commands, and takes what the link has to bring.
    fn obey(&mut self, now: Timestamp) {
        while let Some(command) = self.end.next_command() {
            match command {
                ActivatorCommand::Grant { dispatch, .. } => {
                    let pod = self.revision().and_then(|revision| revision.pod_name(&dispatch)).cloned();
                    self.waiting.remove(&dispatch.ticket);
                    self.running.push((pod.expect("a pod that runs a request has a name"), dispatch));
                }
                ActivatorCommand::Refuse { ticket, refusal, .. } => {
                    self.waiting.remove(&ticket);
                    self.refusals.push(refusal);
                }
                ActivatorCommand::CarryOut { upkeep, .. } => {
                    self.end.handle(ActivatorEvent::UpkeepEnded { upkeep }, now);
                }
                ActivatorCommand::CloseLink { .. } => panic!("it has one link at a time"),
                ActivatorCommand::Write { .. }
                | ActivatorCommand::LeadHost { .. }
                | ActivatorCommand::ReleaseHost { .. }
                | ActivatorCommand::LimitHeads { .. }
                | ActivatorCommand::NoteSynced
                | ActivatorCommand::NoteReleased
                | ActivatorCommand::CountStaleOrder => {}
            }
        }
        self.take_words(now);
        let revision = self.revision();
        let applied = revision.map(|revision| {
            Arc::new(Assignment { standing: revision.standing(), ..Assignment::clone(revision.assignment()) })
        });
        if self.applied.is_some() && applied.is_none() {
            self.forgotten += 1;
            self.running.clear();
        }
        self.applied = applied;
    }

    fn take_words(&mut self, now: Timestamp) {
        loop {
            let words = self.end.next_words(self.link, now);
            if words.is_empty() {
                return;
            }
            for word in words {
                match word {
                    ActivatorWord::Acknowledged { .. } => self.acknowledgements.push_back(word),
                    ActivatorWord::Present { .. } | ActivatorWord::Emptied { .. } => {
                        self.counts.push_back(word);
                    }
                    ActivatorWord::Loads { .. } => self.loads.push_back(word),
                    ActivatorWord::Hello(_) | ActivatorWord::Draining => panic!("unexpected: {word:?}"),
                }
            }
        }
    }

    fn revision(&self) -> Option<&ActivatorRevision> {
        self.end.cell(&self.revision)
    }

    fn is_heard(&self) -> bool {
        self.is_linked && !self.is_stalled
    }

    /// The acknowledgements that are under way arrive.
    pub(super) fn acknowledge(&mut self) -> Vec<ActivatorWord> {
        if !self.is_heard() {
            return Vec::new();
        }
        for word in &self.acknowledgements {
            if let ActivatorWord::Acknowledged { version, .. } = word
                && *version > self.former_version
            {
                self.acknowledged = self.applied.as_ref().map(|_| *version);
            }
        }
        self.acknowledgements.drain(..).collect()
    }

    /// What waits, and what is empty, is heard.
    pub(super) fn counted(&mut self) -> Vec<ActivatorWord> {
        if self.is_heard() { self.counts.drain(..).collect() } else { Vec::new() }
    }

    /// The seconds that are under way arrive.
    pub(super) fn measured(&mut self) -> Vec<ActivatorWord> {
        if self.is_heard() { self.loads.drain(..).collect() } else { Vec::new() }
    }

    /// So many requests are held from now on, unless more are already.
    pub(super) fn hold(&mut self, count: PresentCount, now: Timestamp) {
        while self.present().in_flight < count.in_flight && self.arrive(now).is_ok() {}
    }

    fn arrive(&mut self, now: Timestamp) -> Result<(), RequestRefusal> {
        let ticket = self.end.draw_ticket(&self.revision).ok_or(RequestRefusal::Gone)?;
        self.waiting.insert(ticket);
        let before = self.refusals.len();
        self.request(RequestEvent::Arrived { ticket }, now);
        let refusal = self.refusals[before..].last().copied();
        if matches!(refusal, None | Some(RequestRefusal::ActivatorQueueFull)) {
            *self.arrivals.entry(now.saturating_since(self.began).as_secs()).or_default() += 1;
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Everything that is held ends, running and waiting.
    pub(super) fn empty(&mut self, now: Timestamp) {
        while let Some(&ticket) = self.waiting.first() {
            self.waiting.remove(&ticket);
            self.request(RequestEvent::GaveUp { ticket }, now);
        }
        while let Some((_, dispatch)) = self.running.pop() {
            self.request(RequestEvent::Ended { dispatch }, now);
        }
    }

    /// The oldest running request ends.
    pub(super) fn end_one(&mut self, now: Timestamp) {
        if !self.running.is_empty() {
            let (_, dispatch) = self.running.remove(0);
            self.request(RequestEvent::Ended { dispatch }, now);
        }
    }

    /// Closes each second as it ends.
    pub(super) fn advance(&mut self, now: Timestamp) {
        while self.end.next_deadline() <= now {
            let at = self.end.next_deadline();
            self.handle(ActivatorEvent::TimePassed, at);
        }
    }

    pub(super) fn present(&self) -> PresentCount {
        self.revision().map(ActivatorRevision::present).unwrap_or_default()
    }

    /// A pod that would take what waits, by this activator's own slots: nothing else tells of it.
    pub(super) fn unused_slot(&self) -> Option<PodName> {
        let applied = self.applied.as_ref().filter(|_| !self.waiting.is_empty())?;
        let mut ready = applied.pods.iter().filter(|pod| pod.state == PodState::Ready);
        let is_free = |pod: &vocabulary::PodAssignment| {
            let running = self.running.iter().filter(|(name, _)| *name == pod.pod).count();
            pod.slots == 0 || running < usize::try_from(pod.slots).expect("32 bits")
        };
        ready.find(|pod| pod.slice != Slice::Outside && is_free(pod)).map(|pod| pod.pod.clone())
    }

    /// How many requests came in a second that is over.
    pub(super) fn arrivals_in(&self, second: u64) -> u32 {
        self.arrivals.get(&second).copied().unwrap_or_default()
    }

    /// What the requests of the test and the value count as waiting.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
