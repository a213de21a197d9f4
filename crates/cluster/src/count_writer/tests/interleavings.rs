//! Every sequence of a few orders, refusals, answers, news of the watch, writes of other clients and changes
//! of owner, before a made-up API server. The autoscaler is made up too: it goes on from the count that it
//! knows, and knows what it ordered, what the watch showed since, and what a conflict named.

use std::collections::{BTreeSet, VecDeque};

use super::*;

/// So many events, in each order in which they are possible, before everything is let come to rest.
const EVENTS: usize = 7;
/// Steps within which everything comes to rest.
const REST_WITHIN: usize = 60;
/// The count that another client writes, which no sequence of orders reaches.
const FOREIGN: PodCount = PodCount::new(90);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountEvent {
    MoreAsked,
    FewerAsked,
    WriteBegins,
    /// A fact forbids the write that is due.
    WriteRefused,
    /// The server does as it is asked, and says so.
    Answered,
    /// The server does as it is asked, and the answer does not come.
    AnswerLost,
    /// The server does nothing, and the request fails.
    WriteFails,
    /// Another autoscaler has the bucket when the request is to be sent.
    BucketLost,
    /// The next version of the object comes.
    WatchShows,
    /// The watch leaves out all versions but the last.
    WatchSkips,
    /// Another client, or the bucket's other owner, writes a count.
    OtherWrites,
    /// The autoscaler is rebuilt, and hears of the workload anew.
    SeatTaken,
}

use CountEvent::{
    AnswerLost, Answered, BucketLost, FewerAsked, MoreAsked, OtherWrites, SeatTaken, WatchShows, WatchSkips,
    WriteBegins, WriteFails, WriteRefused,
};

const ALL: [CountEvent; 12] = [
    MoreAsked,
    FewerAsked,
    WriteBegins,
    WriteRefused,
    Answered,
    AnswerLost,
    WriteFails,
    BucketLost,
    WatchShows,
    WatchSkips,
    OtherWrites,
    SeatTaken,
];

/// Whether versions of the workload's object can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectVersions {
    Comparable,
    /// A watch that left out our count, and shows the former one written again, looks like a watch that is
    /// late: it does not leave out what other clients wrote.
    Unknown,
}

/// The number of ways in which a request can end.
const ENDINGS: usize = 5;

fn place_of(ending: WriteEnding) -> usize {
    match ending {
        WriteEnding::Written(Some(_)) => 0,
        WriteEnding::Written(None) => 1,
        WriteEnding::GivenUp => 2,
        WriteEnding::NotOwner => 3,
        WriteEnding::Failed(_) => 4,
    }
}

/// The sequences that were gone through.
#[derive(Default)]
struct Explored {
    worlds: usize,
    /// The ways in which a request ended in one of them.
    endings: [bool; ENDINGS],
}

#[derive(Clone)]
struct CountWorld {
    writer: CountWriter,
    now: Timestamp,
    versions: ObjectVersions,
    /// The count at the API server, and the version of the object.
    count: PodCount,
    version: u64,
    /// Versions of the object that the watch has not shown; the oldest first.
    unseen: VecDeque<ShownCount>,
    /// The count from which the autoscaler goes on.
    known: PodCount,
    seat: SeatNumber,
    orders: u64,
    /// Orders that have not ended.
    open: BTreeSet<OrderId>,
    /// The ways in which requests ended.
    endings: [bool; ENDINGS],
    /// Everything that happened, for the text of a failure.
    past: Vec<CountEvent>,
}

impl CountWorld {
    fn new(versions: ObjectVersions) -> Self {
        let mut world = Self {
            writer: CountWriter::default(),
            now: Timestamp::ZERO,
            versions,
            count: PodCount::new(2),
            version: 10,
            unseen: VecDeque::new(),
            known: PodCount::new(2),
            seat: SeatNumber(1),
            orders: 0,
            open: BTreeSet::new(),
            endings: [false; ENDINGS],
            past: Vec::new(),
        };
        world.writer.show(world.as_shown());
        world
    }

    /// The version of the object at the API server, if it can be compared.
    fn object_version(&self) -> Option<ObjectVersion> {
        (self.versions == ObjectVersions::Comparable).then_some(ObjectVersion(self.version))
    }

    /// The count at the API server, as the watch is to show it.
    fn as_shown(&self) -> ShownCount {
        ShownCount { count: self.count, version: self.object_version() }
    }

    fn is_possible(&self, event: CountEvent) -> bool {
        match event {
            MoreAsked => true,
            FewerAsked => self.known > PodCount::ZERO,
            WriteBegins | WriteRefused => self.writer.next_deadline().is_some(),
            Answered | AnswerLost | WriteFails | BucketLost => self.writer.under_way.is_some(),
            WatchShows => !self.unseen.is_empty(),
            WatchSkips => {
                let is_whole = self.versions == ObjectVersions::Unknown && self.past.contains(&OtherWrites);
                self.unseen.len() > 1 && !is_whole
            }
            OtherWrites => self.count != FOREIGN,
            SeatTaken => !self.past.contains(&SeatTaken),
        }
    }

    fn take(&mut self, event: CountEvent) {
        self.past.push(event);
        match event {
            MoreAsked => self.ask(PodCount::new(self.known.value() + 3)),
            FewerAsked => self.ask(PodCount::new(self.known.value() - 1)),
            WriteBegins => self.begin(),
            WriteRefused => self.refuse(),
            Answered => {
                let ending = self.serve();
                self.answer(ending);
            }
            AnswerLost => {
                self.serve();
                self.answer(WriteEnding::Failed(None));
            }
            WriteFails => self.answer(WriteEnding::Failed(None)),
            BucketLost => self.answer(WriteEnding::NotOwner),
            WatchShows => {
                let next = self.unseen.pop_front().expect("it is possible");
                self.show(next);
            }
            WatchSkips => {
                let last = self.unseen.pop_back().expect("it is possible");
                self.unseen.clear();
                self.show(last);
            }
            OtherWrites => self.put(FOREIGN),
            SeatTaken => {
                self.seat = SeatNumber(self.seat.0 + 1);
                self.writer.told_anew();
                self.hear();
            }
        }
        self.check_laws();
    }

    fn ask(&mut self, to: PodCount) {
        self.orders += 1;
        let order = OrderId(self.orders);
        self.open.insert(order);
        let asked = CountWrite { order, seat: self.seat, from: self.known, to, ..write(0, 0) };
        self.known = to;
        if let Some(replaced) = self.writer.want(asked) {
            self.order_ends(replaced.order);
        }
    }

    fn begin(&mut self) {
        self.now = self.now.max(self.writer.next_deadline().expect("it is possible"));
        let begun = self.writer.begin(self.now);
        assert!(begun.is_some(), "its turn has come: {:?}", self.past);
        assert!(self.writer.begin(self.now).is_none(), "one request at a time: {:?}", self.past);
    }

    fn refuse(&mut self) {
        self.now = self.now.max(self.writer.next_deadline().expect("it is possible"));
        let refused = self.writer.refuse(self.now).expect("its turn has come");
        self.order_ends(refused.order);
        if refused.seat == self.seat {
            // The conflict names the count that is there as far as the writer knows.
            self.hear();
        }
    }

    /// The server's part: the count is written over the count that it was decided upon, and no other.
    fn serve(&mut self) -> WriteEnding {
        let request = self.writer.under_way.as_ref().expect("it is possible");
        let (from, to) = (request.write.from, request.write.to);
        let disturbances = [OtherWrites, AnswerLost, BucketLost, SeatTaken];
        let is_disturbed = self.versions == ObjectVersions::Unknown
            || disturbances.iter().any(|event| self.past.contains(event));
        assert!(is_disturbed || self.count == from, "our orders are in each other's way: {:?}", self.past);
        if self.count == from {
            self.put(to);
        }
        if self.count == to { WriteEnding::Written(self.object_version()) } else { WriteEnding::GivenUp }
    }

    fn put(&mut self, count: PodCount) {
        if count != self.count {
            self.count = count;
            self.version += 1;
            self.unseen.push_back(self.as_shown());
        }
    }

    fn answer(&mut self, ending: WriteEnding) {
        self.endings[place_of(ending)] = true;
        let ended = self.writer.answered(ending, self.now).expect("it is possible");
        match ending {
            WriteEnding::Written(_) | WriteEnding::NotOwner => self.order_ends(ended.write.order),
            WriteEnding::GivenUp => {
                self.order_ends(ended.write.order);
                if ended.write.seat == self.seat {
                    // The conflict names the count that was found.
                    self.known = self.count;
                }
            }
            WriteEnding::Failed(_) if ended.is_replaced => self.order_ends(ended.write.order),
            WriteEnding::Failed(_) => {}
        }
        if ended.is_news {
            self.hear();
        }
    }

    fn show(&mut self, shown: ShownCount) {
        let sighting = self.writer.show(shown);
        let is_alone = !self.past.contains(&OtherWrites);
        assert!(!is_alone || sighting.foreign.is_none(), "no other client wrote: {:?}", self.past);
        if sighting.is_news || sighting.shows_other {
            self.hear();
        }
    }

    /// The autoscaler is told of the workload.
    fn hear(&mut self) {
        self.known = self.writer.wanted().expect("it is there");
    }

    fn order_ends(&mut self, order: OrderId) {
        assert!(self.open.remove(&order), "{order:?} ends once: {:?}", self.past);
    }

    /// What holds after each event.
    fn check_laws(&self) {
        let is_certain = self.versions == ObjectVersions::Comparable
            && !self.past.contains(&OtherWrites)
            && !self.past.contains(&AnswerLost);
        if is_certain && self.writer.under_way.is_none() {
            let wanted = self.writer.wanted();
            assert_eq!(wanted, Some(self.count), "the former count is heard again: {:?}", self.past);
        }
    }

    /// The next event of a world in which requests succeed and the autoscaler wants `target`, until there is
    /// none.
    fn next_to_rest(&self, target: PodCount) -> Option<CountEvent> {
        [WatchShows, Answered, WriteBegins].into_iter().find(|event| self.is_possible(*event)).or_else(|| {
            // Any order will do, for it is the target that is asked.
            (self.known != target).then_some(MoreAsked)
        })
    }

    fn come_to_rest(mut self) {
        let target = self.known;
        for _ in 0..REST_WITHIN {
            let Some(event) = self.next_to_rest(target) else { break };
            if event == MoreAsked {
                self.ask(target);
            } else {
                self.take(event);
            }
        }
        let past = &self.past;
        assert_eq!(self.next_to_rest(target), None, "it comes to rest: {past:?}");
        assert!(self.writer.asked.is_none() && self.open.is_empty(), "each order has ended: {past:?}");
        assert_eq!(self.count, target, "the count that the autoscaler wants is there: {past:?}");
        let (shown, wanted) = (self.writer.shown(), self.writer.wanted());
        assert_eq!((shown, wanted), (Some(target), Some(target)), "and it is known: {past:?}");
    }
}

/// Goes on from a world in all possible ways, until each has come to rest.
fn go_on(world: &CountWorld, events_left: usize, explored: &mut Explored) {
    if events_left == 0 {
        explored.worlds += 1;
        for (known, seen) in explored.endings.iter_mut().zip(world.endings) {
            *known |= seen;
        }
        return world.clone().come_to_rest();
    }
    for event in ALL.into_iter().filter(|event| world.is_possible(*event)) {
        let mut next = world.clone();
        next.take(event);
        go_on(&next, events_left - 1, explored);
    }
}

fn all_sequences(versions: ObjectVersions, events: usize) -> Explored {
    let mut explored = Explored::default();
    go_on(&CountWorld::new(versions), events, &mut explored);
    explored
}

#[test]
fn every_interleaving_ends_each_order_once_and_comes_to_the_count_that_is_wanted() {
    let Explored { worlds, endings } = all_sequences(ObjectVersions::Comparable, EVENTS);
    assert!(worlds > 80_000, "{worlds} worlds are hardly all");
    assert_eq!(endings, [true, false, true, true, true], "each way in which a request can end");
}

#[test]
fn every_interleaving_comes_to_the_count_that_is_wanted_where_versions_cannot_be_compared() {
    let Explored { worlds, endings } = all_sequences(ObjectVersions::Unknown, EVENTS - 1);
    assert!(worlds > 15_000, "{worlds} worlds are hardly all");
    assert_eq!(endings, [false, true, true, true, true], "each way in which a request can end");
}
