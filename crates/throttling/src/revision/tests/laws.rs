//! What holds for one revision, whatever happens to its requests, its pods and its place in the activator, in
//! every order that chance makes.

use proptest::prelude::*;

use super::*;

const DEPTH: u32 = 3;
const PODS: [&str; 3] = ["a", "b", "c"];

/// One event of a random world; a number chooses among the requests that the event can happen to.
#[derive(Clone, Debug)]
enum RevisionHappening {
    Arrives,
    GivesUp(usize),
    Ends(usize),
    Starts(usize),
    NotStarted(usize),
    FindsNoRoom(usize),
    Rests(usize),
    RestEnds(usize),
    RestIsGivenUp(usize),
    GoesDirect,
    DirectJoins(usize),
    DirectEnds(usize),
    /// The state and the slots of each pod, as far as the assignment names it.
    Assigned(Vec<Option<(PodState, u32)>>),
    Held,
    Places(usize),
    TimePasses(u64),
    SecondEnds,
    Leaves,
    Removed,
}

fn pods() -> impl Strategy<Value = Vec<Option<(PodState, u32)>>> {
    let state = prop_oneof![
        3 => Just(PodState::Ready),
        1 => Just(PodState::Unready),
        1 => Just(PodState::Draining),
        1 => Just(PodState::Unheard)
    ];
    prop::collection::vec(prop::option::of((state, 1..3_u32)), PODS.len())
}

/// Requests that come, run and go, and assignments: nothing makes a pod suspect or full.
fn smooth_happening() -> impl Strategy<Value = RevisionHappening> {
    prop_oneof![
        6 => Just(RevisionHappening::Arrives),
        2 => any::<usize>().prop_map(RevisionHappening::GivesUp),
        4 => any::<usize>().prop_map(RevisionHappening::Ends),
        1 => any::<usize>().prop_map(RevisionHappening::Starts),
        2 => pods().prop_map(RevisionHappening::Assigned),
        1 => (0..400_u64).prop_map(RevisionHappening::TimePasses),
        1 => Just(RevisionHappening::SecondEnds),
    ]
}

fn happening() -> impl Strategy<Value = RevisionHappening> {
    prop_oneof![
        16 => smooth_happening(),
        2 => any::<usize>().prop_map(RevisionHappening::NotStarted),
        1 => any::<usize>().prop_map(RevisionHappening::FindsNoRoom),
        1 => any::<usize>().prop_map(RevisionHappening::Rests),
        1 => any::<usize>().prop_map(RevisionHappening::RestEnds),
        1 => any::<usize>().prop_map(RevisionHappening::RestIsGivenUp),
        2 => Just(RevisionHappening::GoesDirect),
        1 => any::<usize>().prop_map(RevisionHappening::DirectJoins),
        1 => any::<usize>().prop_map(RevisionHappening::DirectEnds),
        1 => Just(RevisionHappening::Held),
        1 => (0..6_usize).prop_map(RevisionHappening::Places),
        1 => Just(RevisionHappening::Leaves),
    ]
}

/// A revision, and where each of its requests is, as the tests know.
struct PlayedRevision {
    revision: ActivatorRevision,
    now: Timestamp,
    second_began: Timestamp,
    /// How many may wait in the activator.
    places: usize,
    is_removed: bool,
    waiting: Vec<Ticket>,
    running: Vec<(PodName, Dispatch)>,
    /// When each resting request arrived.
    resting: Vec<Timestamp>,
    direct: Vec<DirectPick>,
    /// The requests that became load in this second.
    joined: u32,
    was_refused_under_hold: bool,
}

impl PlayedRevision {
    fn new() -> Self {
        Self {
            revision: revision(&[("a", 1)]),
            now: START,
            second_began: START,
            places: 100,
            is_removed: false,
            waiting: Vec::new(),
            running: Vec::new(),
            resting: Vec::new(),
            direct: Vec::new(),
            joined: 0,
            was_refused_under_hold: false,
        }
    }

    fn happen(&mut self, happening: &RevisionHappening) {
        match happening {
            RevisionHappening::Arrives => {
                let ticket = self.revision.draw_ticket();
                self.join(ticket, RequestEvent::Arrived { ticket });
            }
            RevisionHappening::GivesUp(which) => {
                if let Some(ticket) = take(&mut self.waiting, *which) {
                    self.handle(RequestEvent::GaveUp { ticket });
                }
            }
            RevisionHappening::Ends(which) => {
                if let Some((_, dispatch)) = take(&mut self.running, *which) {
                    self.handle(RequestEvent::Ended { dispatch });
                }
            }
            RevisionHappening::Starts(which) => {
                if let Some((pod, dispatch)) = take(&mut self.running, *which) {
                    self.running.push((pod, dispatch));
                    self.handle(RequestEvent::Started { dispatch });
                }
            }
            RevisionHappening::NotStarted(which) => {
                if let Some((_, dispatch)) = take(&mut self.running, *which) {
                    self.wait_again(dispatch.ticket, RequestEvent::NotStarted { dispatch });
                }
            }
            RevisionHappening::FindsNoRoom(which) => {
                if let Some((_, dispatch)) = take(&mut self.running, *which) {
                    self.wait_again(dispatch.ticket, RequestEvent::FoundNoRoom { dispatch });
                }
            }
            RevisionHappening::Rests(which) => {
                if let Some((_, dispatch)) = take(&mut self.running, *which) {
                    self.resting.push(dispatch.arrived);
                    self.handle(RequestEvent::RestBegan { dispatch });
                }
            }
            RevisionHappening::RestEnds(which) => {
                if let Some(arrived) = take(&mut self.resting, *which) {
                    let ticket = self.revision.draw_ticket();
                    self.wait_again(ticket, RequestEvent::RestEnded { ticket, arrived });
                }
            }
            RevisionHappening::RestIsGivenUp(which) => {
                if take(&mut self.resting, *which).is_some() {
                    self.handle(RequestEvent::RestGivenUp);
                }
            }
            RevisionHappening::GoesDirect
            | RevisionHappening::DirectJoins(_)
            | RevisionHappening::DirectEnds(_) => self.happen_past_the_queue(happening),
            RevisionHappening::Assigned(_)
            | RevisionHappening::Held
            | RevisionHappening::Places(_)
            | RevisionHappening::TimePasses(_)
            | RevisionHappening::SecondEnds
            | RevisionHappening::Leaves
            | RevisionHappening::Removed => self.happen_to_the_revision(happening),
        }
    }

    fn happen_past_the_queue(&mut self, happening: &RevisionHappening) {
        if let RevisionHappening::GoesDirect = happening {
            self.direct.extend(self.revision.pick_direct(self.now));
        }
        if let RevisionHappening::DirectJoins(which) = happening
            && let Some(pick) = take(&mut self.direct, *which)
        {
            self.handle(RequestEvent::DirectNotStarted { pick });
            let (ticket, arrived) = (self.revision.draw_ticket(), self.now);
            self.direct.push(pick);
            self.join(ticket, RequestEvent::Rejoined { ticket, arrived });
            self.direct.pop();
            self.handle(RequestEvent::DirectEnded { pick });
        }
        if let RevisionHappening::DirectEnds(which) = happening
            && let Some(pick) = take(&mut self.direct, *which)
        {
            self.handle(RequestEvent::DirectEnded { pick });
        }
    }

    fn happen_to_the_revision(&mut self, happening: &RevisionHappening) {
        if let RevisionHappening::Assigned(pods) = happening {
            let named = PODS.iter().zip(pods).filter_map(|(name, pod)| Some((*name, (*pod)?)));
            let states = named.clone().map(|(_, (state, _))| state);
            let slots: Vec<(&str, u32)> = named.clone().map(|(name, (_, slots))| (name, slots)).collect();
            let mut next = assignment(self.revision.assignment().version.counter + 1, &slots);
            next.pods.iter_mut().zip(states).for_each(|(pod, state)| pod.state = state);
            self.assign(next);
        }
        if let RevisionHappening::Held = happening {
            let held = Assignment::clone(self.revision.assignment());
            self.assign(Assignment { hold: Some("paused".to_owned()), ..held });
        }
        if let RevisionHappening::Places(places) = happening {
            self.places = *places;
        }
        if let RevisionHappening::TimePasses(milliseconds) = happening {
            self.now += Duration::from_millis(*milliseconds);
            self.revision.advance(self.now);
            self.obey(None);
        }
        if let RevisionHappening::SecondEnds = happening {
            self.close_second();
        }
        if let RevisionHappening::Leaves = happening {
            self.revision.leave();
        }
        if let RevisionHappening::Removed = happening {
            self.is_removed = true;
            self.revision.remove(self.now);
            self.obey(None);
        }
    }

    fn assign(&mut self, next: Assignment) {
        self.revision.assign(&Arc::new(next), self.now);
        self.obey(None);
    }

    fn handle(&mut self, event: RequestEvent) {
        self.revision.handle(event, self.now);
        self.obey(None);
    }

    /// A request that was no part of the load comes.
    fn join(&mut self, ticket: Ticket, event: RequestEvent) {
        let waiting = self.waiting.len();
        self.waiting.push(ticket);
        self.revision.handle(event, self.now);
        match self.obey(Some(ticket)) {
            None | Some(RequestRefusal::ActivatorQueueFull) => self.joined += 1,
            Some(RequestRefusal::RevisionQueueFull { limit }) => {
                assert!(limit == DEPTH && waiting >= 3, "{waiting} wait");
            }
            Some(RequestRefusal::Held) => self.was_refused_under_hold = true,
            Some(RequestRefusal::Gone) => {}
        }
    }

    /// A request that is part of the load waits again.
    fn wait_again(&mut self, ticket: Ticket, event: RequestEvent) {
        self.waiting.push(ticket);
        self.revision.handle(event, self.now);
        self.obey(Some(ticket));
    }

    /// Carries out all commands, and judges each refusal. Returns that of the request that is on its way in.
    fn obey(&mut self, own: Option<Ticket>) -> Option<RequestRefusal> {
        let (mut found_no_place, mut refused) = (None, None);
        while let Some(command) = self.revision.next_command() {
            match command {
                RevisionCommand::Grant { dispatch } => {
                    self.stop_waiting(dispatch.ticket);
                    let pod = self.revision.pod_name(&dispatch).cloned();
                    self.running.push((pod.expect("a pod that runs a request has a name"), dispatch));
                }
                RevisionCommand::Refuse { ticket, refusal } => {
                    self.stop_waiting(ticket);
                    self.judge(refusal, found_no_place == Some(ticket), own == Some(ticket));
                    refused = refused.or(Some(refusal).filter(|_| own == Some(ticket)));
                }
                RevisionCommand::Wait { ticket } => {
                    assert_eq!(own, Some(ticket), "only a request that comes is made to wait");
                    if self.waiting.len() > self.places {
                        found_no_place = Some(ticket);
                        self.revision.handle(RequestEvent::PlaceRefused { ticket }, self.now);
                    }
                }
                RevisionCommand::TakeNews => {}
            }
        }
        refused
    }

    fn stop_waiting(&mut self, ticket: Ticket) {
        let found = self.waiting.iter().position(|waiting| *waiting == ticket);
        self.waiting.remove(found.expect("only a request that waits has an answer"));
    }

    /// Nothing that waits is refused but by the end of the revision, a limit with a name, or a hold.
    fn judge(&self, refusal: RequestRefusal, found_no_place: bool, is_own: bool) {
        match refusal {
            RequestRefusal::Gone => assert!(self.is_removed, "the revision exists"),
            RequestRefusal::Held => {
                assert!(self.revision.assignment().hold.is_some(), "the assignment carries no hold");
                assert!(!self.revision.has_ready_pod(), "a pod is ready");
            }
            RequestRefusal::ActivatorQueueFull => assert!(found_no_place, "there was a place"),
            RequestRefusal::RevisionQueueFull { .. } => assert!(is_own, "the request waited already"),
        }
    }

    fn close_second(&mut self) {
        self.now = self.now.max(self.second_began + Duration::from_secs(1));
        let closed = self.revision.close_seconds(1, self.second_began, self.now);
        let rate = closed.map_or(0.0, |closed| closed.load.request_rate.value());
        if !self.was_refused_under_hold || self.joined > 0 {
            assert_eq!(rate, f64::from(self.joined), "each request is counted in one second");
        }
        (self.joined, self.was_refused_under_hold, self.second_began) = (0, false, self.now);
        self.revision.advance(self.now);
        self.obey(None);
    }

    fn check_load(&self) {
        let counted = [self.waiting.len(), self.running.len(), self.resting.len()];
        let count = |requests: usize| u32::try_from(requests).expect("few");
        let expected =
            PresentCount { in_flight: count(counted.iter().sum()), waiting: count(self.waiting.len()) };
        assert_eq!(self.revision.present(), expected, "waiting, running, resting: {counted:?}");
        let held = self.waiting.len() + self.running.len() + self.direct.len();
        assert_eq!(self.revision.held(), count(held));
    }

    /// A ready pod that has a free slot while a request waits.
    fn unused_slot(&self) -> Option<&PodAssignment> {
        let running = |name: &PodName| self.running.iter().filter(|(pod, _)| pod == name).count();
        let mut ready = self.revision.assignment().pods.iter().filter(|pod| pod.state == PodState::Ready);
        let is_free = |pod: &PodAssignment| running(&pod.pod) < usize::try_from(pod.slots).expect("few");
        ready.find(|pod| !self.waiting.is_empty() && is_free(pod))
    }
}

fn take<T>(from: &mut Vec<T>, which: usize) -> Option<T> {
    if from.is_empty() { None } else { Some(from.remove(which % from.len())) }
}

proptest! {
    /// A request is part of the load from its arrival to its end, once, however it comes and goes; and
    /// nothing that waits is refused but by the end of its revision, a named limit or a hold.
    #[test]
    fn load_is_counted_once_and_each_refusal_has_its_cause(
        happenings in prop::collection::vec(happening(), 1..120),
    ) {
        let mut played = PlayedRevision::new();
        for happening in &happenings {
            played.happen(happening);
            played.check_load();
        }
        played.happen(&RevisionHappening::Removed);
        played.check_load();
        prop_assert!(played.waiting.is_empty(), "what waits is refused");
        played.happen(&RevisionHappening::Arrives);
        played.check_load();
    }

    /// Without a timer: the event that frees a slot, or brings one, hands it out.
    #[test]
    fn a_free_slot_is_used_within_one_round_of_commands(
        happenings in prop::collection::vec(smooth_happening(), 1..120),
    ) {
        let mut played = PlayedRevision::new();
        for happening in &happenings {
            played.happen(happening);
            prop_assert!(played.unused_slot().is_none(), "{:?} is free", played.unused_slot());
        }
    }

    /// Of a slot that rests, or whose request waits for the budget of retries, time alone makes use.
    #[test]
    fn a_free_slot_is_used_when_time_has_passed(happenings in prop::collection::vec(happening(), 1..120)) {
        let mut played = PlayedRevision::new();
        for happening in &happenings {
            played.happen(happening);
        }
        for _ in 0..1000 {
            let Some(deadline) = played.revision.next_deadline() else { break };
            let passing = deadline.saturating_since(played.now) + Duration::from_millis(1);
            let milliseconds = u64::try_from(passing.as_millis()).expect("soon");
            played.happen(&RevisionHappening::TimePasses(milliseconds));
        }
        prop_assert!(played.unused_slot().is_none(), "{:?} is free", played.unused_slot());
    }
}
