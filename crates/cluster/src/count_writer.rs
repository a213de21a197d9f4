//! Which count does a workload have, which count is it to get, and whose is the count that the watch shows?
//!
//! A [`CountWriter`] is everything that is remembered of one workload's count on its way to the API server.
//! It sends no request and reads no clock: orders, answers and what the watch shows go in; the write that is
//! to begin, and what people and the autoscaler are to hear, come out.
//!
//! ```text
//!            want           begin                 answered: Written
//!   order ────────► asked ────────► under way ─────────────────────────► written
//!                     ▲                 │                                   │ show, of a version
//!                     └─────────────────┘                                   ▼ that is as new
//!             answered: Failed, and no other write is asked               shown
//! ```
//!
//! One request is under way at a time, and one write waits. A count is written over the count that it was
//! decided upon, so each write that takes the place of another, or waited while another was done, is put upon
//! the count that is there then. Orders of another seat are left as they are: an autoscaler that took its
//! seat later was told the present count, and has decided upon that.
//!
//! The autoscaler must not hear the former count again while ours is on its way: it would decide the same
//! once more, and policies and Events would count both. So a count of ours counts as there
//! ([`CountWriter::wanted`]) from the beginning of its request, until the request fails or the watch shows a
//! version that is as new.

mod own_counts;

use std::sync::Arc;
use std::time::Duration;

use orchestration::{Fence, OrderId, OrderOutcome, decided_upon};
use scaling::Decision;
use vocabulary::{PodCount, PodName, RevisionName, Timestamp};

use self::own_counts::OwnCounts;
use crate::resources::workload::{ObjectVersion, ScaleSubject, ShownCount};
use crate::seat::SeatNumber;
use crate::write_turns::WriteTurns;

/// Minimum interval between two writes of one workload's replica count; bursts of two. The first of many
/// requests that come at once brings the first order, and the second order knows the requests of the first
/// milliseconds: it must not wait until the first pod takes the processor. Counts that are ordered within the
/// interval are not written: they would be more writes, and counts at which no workload was meant to stay.
///
/// Activators say every 10 ms that they hold more. This is two of these times and the way of a report: after
/// 20 ms a third write began just before the reports that it was to wait for, and a fourth write followed.
const COUNT_EVERY: Duration = Duration::from_millis(25);

/// One write of a workload's count, with the decision that led to it.
#[derive(Clone, Debug)]
pub struct CountWrite {
    pub(crate) order: OrderId,
    pub(crate) seat: SeatNumber,
    /// The right by which the count was ordered.
    pub fence: Fence,
    /// The workload whose count is written.
    pub revision: RevisionName,
    /// The count that is to be there before the write.
    pub from: PodCount,
    /// The count that is to be there after the write.
    pub to: PodCount,
    /// With a smaller count, the pods whose end disturbs the fewest requests.
    pub(crate) end_first: Vec<PodName>,
    pub(crate) because: Arc<Decision>,
}

impl CountWrite {
    /// This write takes the place of `replaced`, which was not done: the count that `replaced` would have
    /// written is not there.
    fn supersede(&mut self, replaced: &Self) {
        if self.seat == replaced.seat {
            self.from = decided_upon(self.from, replaced.from, replaced.to);
        }
    }

    /// This write waited while `before` was done. The autoscaler may have ordered it before it knew that: a
    /// count that was decided upon the former count is written over the present one.
    fn rebase_onto(&mut self, before: &Self) {
        if self.seat == before.seat && self.from == before.from {
            self.from = before.to;
        }
    }
}

/// What is to be done next about a count that was asked for.
#[derive(Debug)]
pub(crate) enum CountStep {
    /// A request begins, which [`CountWriter::answered`] ends.
    Begin(CountWrite, ScaleSubject),
    /// The write is not begun, and its order ends so.
    Refuse(CountWrite, OrderOutcome),
}

/// How the request of a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnding {
    /// The workload has the count, from this version of the object on; `None` if versions of it cannot be
    /// compared.
    Written(Option<ObjectVersion>),
    /// The write is not tried again: another count is there, or another object, and the outcome says so.
    GivenUp,
    /// The write had no right, and is not tried again: its order was of an epoch that is over.
    NotOwner,
    /// The write is tried again, after this wait if the server asked for one. It may have been done: an
    /// answer can be lost.
    Failed(Option<Duration>),
}

/// A write whose request has ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedWrite {
    pub(crate) write: CountWrite,
    /// The write failed while another write was asked, which takes its place.
    pub(crate) is_replaced: bool,
    /// Whether the workload has another count than the autoscaler knows.
    pub(crate) is_news: bool,
}

/// What follows from a count that the watch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountSighting {
    /// Whether the workload has another count than before this was shown.
    pub(crate) is_news: bool,
    /// Whether the watch showed another count before. The count is told to the autoscaler then, even one of
    /// ours: an autoscaler that took its seat after the order knows an earlier count.
    pub(crate) shows_other: bool,
    pub(crate) foreign: Option<ForeignCount>,
}

/// A count that another client wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignCount {
    /// The count that the watch showed before.
    pub(crate) former: PodCount,
    pub(crate) present: PodCount,
}

/// The request of a write, until its answer comes.
#[derive(Clone, Debug)]
struct CountRequest {
    write: CountWrite,
    /// The count that the workload had when the request began; `None` once that object is lost, so that the
    /// write says nothing of the workload that is there now.
    over: Option<PodCount>,
    /// The count from which the autoscaler goes on if the write is not done.
    unless_written: PodCount,
}

/// A count of ours that is there, from this version of the object on.
#[derive(Clone, Copy, Debug)]
struct WrittenCount {
    count: PodCount,
    version: ObjectVersion,
}

/// The count of one workload: asked, under way, written and shown.
#[derive(Clone, Debug)]
pub(crate) struct CountWriter {
    /// The write that begins at the next turn.
    asked: Option<CountWrite>,
    under_way: Option<CountRequest>,
    /// A count of ours that the watch has not shown.
    written: Option<WrittenCount>,
    /// What the watch showed last; `None` while there is no workload that can be scaled.
    shown: Option<ShownCount>,
    own_counts: OwnCounts,
    turns: WriteTurns,
}

impl Default for CountWriter {
    fn default() -> Self {
        Self {
            asked: None,
            under_way: None,
            written: None,
            shown: None,
            own_counts: OwnCounts::default(),
            turns: WriteTurns::paced(COUNT_EVERY),
        }
    }
}

impl CountWriter {
    /// Asks for a write; returns the write that waited until now, whose place it takes.
    pub(crate) fn want(&mut self, mut write: CountWrite) -> Option<CountWrite> {
        if let Some(waiting) = &self.asked {
            write.supersede(waiting);
        }
        self.asked.replace(write)
    }

    /// The write whose turn has come, if any.
    pub(crate) fn due(&self, now: Timestamp) -> Option<&CountWrite> {
        self.asked.as_ref().filter(|_| self.next_deadline().is_some_and(|at| at <= now))
    }

    /// The write that is due begins; it is under way from then on.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<CountWrite> {
        let write = self.take_due(now)?;
        if write.from != write.to {
            self.own_counts.written(write.to);
        }
        let over = self.wanted();
        let unless_written = over.unwrap_or(write.from);
        self.under_way = Some(CountRequest { write: write.clone(), over, unless_written });
        Some(write)
    }

    /// The write that is due is not begun, and is not asked any more.
    pub(crate) fn refuse(&mut self, now: Timestamp) -> Option<CountWrite> {
        let write = self.take_due(now)?;
        self.turns.ended();
        Some(write)
    }

    fn take_due(&mut self, now: Timestamp) -> Option<CountWrite> {
        self.due(now)?;
        self.turns.begin(now);
        self.asked.take()
    }

    /// The request under way has ended; returns its write.
    pub(crate) fn answered(&mut self, ending: WriteEnding, now: Timestamp) -> Option<EndedWrite> {
        let CountRequest { write, over, unless_written } = self.under_way.take()?;
        let mut is_replaced = false;
        match ending {
            WriteEnding::Written(version) => {
                self.turns.ended();
                if let Some(waiting) = &mut self.asked {
                    waiting.rebase_onto(&write);
                }
                if over.is_some() {
                    self.written = version.map(|version| WrittenCount { count: write.to, version });
                    self.catch_up();
                }
            }
            WriteEnding::GivenUp | WriteEnding::NotOwner => self.turns.ended(),
            WriteEnding::Failed(at_least) => {
                self.turns.failed(at_least, now);
                if let Some(waiting) = &mut self.asked {
                    waiting.supersede(&write);
                    is_replaced = true;
                } else {
                    self.asked = Some(write.clone());
                }
            }
        }
        let known = match ending {
            WriteEnding::Written(Some(_)) => write.to,
            WriteEnding::Written(None) => over.unwrap_or(write.from),
            WriteEnding::GivenUp | WriteEnding::NotOwner | WriteEnding::Failed(_) => unless_written,
        };
        // An autoscaler that has become the owner anew takes its former orders for done and hears no outcome
        // of them.
        let is_unheard = ending == WriteEnding::NotOwner;
        // A count that another client wrote meanwhile was told as ours.
        let is_news = over.is_some() && (is_unheard || self.wanted() != Some(known));
        Some(EndedWrite { write, is_replaced, is_news })
    }

    /// The workload's count is told to an autoscaler that has not ordered what is under way, or is the owner
    /// anew. It goes on from the count under way, and no outcome of an order says that this was not written.
    pub(crate) fn told_anew(&mut self) {
        if let Some(request) = &mut self.under_way {
            request.unless_written = request.write.to;
        }
    }

    /// The watch shows the workload.
    pub(crate) fn show(&mut self, shown: ShownCount) -> CountSighting {
        let (before, former) = (self.wanted(), self.shown.replace(shown));
        self.catch_up();
        let changed = former.map(|former| former.count).filter(|former| *former != shown.count);
        let foreign = match changed {
            Some(former) if !self.own_counts.seen(shown.count) => {
                Some(ForeignCount { former, present: shown.count })
            }
            Some(_) | None => None,
        };
        CountSighting { is_news: self.wanted() != before, shows_other: changed.is_some(), foreign }
    }

    /// Our write counts as shown once the watch shows a version that is as new.
    fn catch_up(&mut self) {
        let Some((written, shown)) = self.written.zip(self.shown) else { return };
        // Where versions cannot be compared, the watch is believed.
        if shown.version.is_none_or(|version| version >= written.version) {
            self.written = None;
        }
    }

    /// Another object has the workload's name now: what was written to the former one says nothing of it.
    pub(crate) fn object_replaced(&mut self) {
        self.written = None;
        if let Some(request) = &mut self.under_way {
            request.over = None;
        }
    }

    /// The workload cannot be scaled as it is now.
    pub(crate) fn object_unscalable(&mut self) {
        self.object_replaced();
        self.shown = None;
    }

    /// The workload is gone, with all that was remembered of its counts. A write that is asked ends when its
    /// turn comes, and a request with its answer.
    pub(crate) fn object_gone(&mut self) {
        self.object_unscalable();
        self.own_counts.forget();
    }

    /// The count that the watch showed last, if there is a workload.
    pub(crate) fn shown(&self) -> Option<PodCount> {
        self.shown.map(|shown| shown.count)
    }

    /// The count of pods that the workload is to have, with a write of ours that the watch has not shown.
    pub(crate) fn wanted(&self) -> Option<PodCount> {
        let shown = self.shown()?;
        let begun = self.under_way.as_ref().filter(|request| request.over.is_some());
        let ours = begun.map(|request| request.write.to).or(self.written.map(|written| written.count));
        Some(ours.unwrap_or(shown))
    }

    /// The greatest count that the workload may have: a request under way may be done or not.
    pub(crate) fn greatest_count(&self) -> Option<PodCount> {
        let begun = self.under_way.as_ref().and_then(|request| request.over);
        self.wanted().map(|wanted| begun.map_or(wanted, |over| wanted.max(over)))
    }

    /// When a write may begin again.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        (self.asked.is_some() && self.under_way.is_none()).then(|| self.turns.next_turn())
    }

    /// Whether no write is asked or under way, and no pause is left.
    pub(crate) fn is_at_rest(&self, now: Timestamp) -> bool {
        self.asked.is_none() && self.under_way.is_none() && self.turns.are_over(now)
    }
}

#[cfg(test)]
pub(crate) mod tests;
