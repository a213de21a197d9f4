//! Which Events are to be written, so that people read what happened, and few enough to read?
//!
//! The first word about an object and a reason is written at once. What follows within a minute is
//! counted, and written as one series when the minute is over; the next word begins another Event, with words
//! of its own. Over all objects, writes are paced, and what waits too long behind others is dropped: an Event
//! is a convenience, and what is so stands in the problems.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use vocabulary::Timestamp;

use crate::notice::Tone;

/// One Event of a kind in so long.
const SERIES_LASTS: Duration = Duration::from_secs(60);
/// Writes that may come at once, and how soon another may: less than what API servers grant a client for
/// Events.
const BURST: u32 = 25;
const ONE_EVERY: Duration = Duration::from_millis(200);
/// Events that wait to be written.
const WAITING_MAX: usize = 500;

/// The object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventObject {
    /// The group and version of the object's kind.
    pub api_version: String,
    /// The kind, as objects name it: `Deployment`.
    pub kind: String,
    /// The namespace of the object, and of its Events.
    pub namespace: String,
    /// The object's name in its namespace.
    pub name: String,
    /// The uid, which tells the object from a later one of its name.
    pub uid: String,
}

/// One occurrence for which an object gets an Event, or a count in a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// The object that the Event is about.
    pub object: EventObject,
    /// A word for programs: what happened.
    pub reason: &'static str,
    /// A word for programs: what ebb was doing.
    pub action: &'static str,
    /// Whether people have to do something.
    pub tone: Tone,
    /// What happened, in a sentence for people.
    pub text: String,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventWrite {
    /// A new Event, under this name.
    Create {
        /// The name of the Event object.
        name: String,
        /// What the Event is to say.
        note: EventNote,
    },
    /// The series of a former Event: how often the same happened since.
    Count {
        /// The name of the former Event object.
        name: String,
        /// The object that the Event is about.
        object: EventObject,
        /// How often the same has happened.
        count: i32,
    },
}

#[derive(Debug)]
struct EventSeries {
    name: String,
    count: i32,
}

/// All series of the last minute.
#[derive(Debug)]
pub(crate) struct EventBook {
    /// Unlike that of any other process, so that names are.
    salt: u64,
    numbered: u64,
    series: BTreeMap<(EventObject, &'static str), EventSeries>,
    ends: BTreeSet<(Timestamp, EventObject, &'static str)>,
    waiting: VecDeque<EventWrite>,
    budget: u32,
    refilled: Timestamp,
    pub(crate) dropped: u64,
}

impl EventBook {
    pub(crate) fn new(salt: u64) -> Self {
        Self {
            salt,
            numbered: 0,
            series: BTreeMap::new(),
            ends: BTreeSet::new(),
            waiting: VecDeque::new(),
            budget: BURST,
            refilled: Timestamp::ZERO,
            dropped: 0,
        }
    }

    pub(crate) fn note(&mut self, note: EventNote, now: Timestamp) {
        self.end_series(now);
        let key = (note.object.clone(), note.reason);
        if let Some(series) = self.series.get_mut(&key) {
            series.count = series.count.saturating_add(1);
            return;
        }
        self.numbered += 1;
        // A name of an object has 253 letters at most.
        let stem: String = note.object.name.chars().take(200).collect();
        let name = format!("{stem}.{:08x}{:06x}", self.salt & 0xffff_ffff, self.numbered);
        self.ends.insert((now + SERIES_LASTS, key.0.clone(), key.1));
        self.series.insert(key, EventSeries { name: name.clone(), count: 1 });
        self.wait(EventWrite::Create { name, note });
    }

    /// What may be written now.
    pub(crate) fn next_write(&mut self, now: Timestamp) -> Option<EventWrite> {
        self.end_series(now);
        while self.budget < BURST && now.saturating_since(self.refilled) >= ONE_EVERY {
            self.budget += 1;
            self.refilled += ONE_EVERY;
        }
        // What is full gathers nothing more: counted from the last refill, a quiet hour would pay for many
        // bursts.
        if self.budget == BURST {
            self.refilled = now;
        }
        if self.budget == 0 {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.budget -= 1;
        Some(next)
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let paced = match (self.waiting.is_empty(), self.budget) {
            (true, _) => None,
            (false, 0) => Some(self.refilled + ONE_EVERY),
            (false, _) => Some(Timestamp::ZERO),
        };
        let ends = self.ends.first().map(|(at, _, _)| *at);
        paced.into_iter().chain(ends).min()
    }

    fn end_series(&mut self, now: Timestamp) {
        while let Some((at, _, _)) = self.ends.first()
            && *at <= now
            && let Some((_, object, reason)) = self.ends.pop_first()
        {
            let Some(series) = self.series.remove(&(object.clone(), reason)) else { continue };
            if series.count > 1 {
                self.wait(EventWrite::Count { name: series.name, object, count: series.count });
            }
        }
    }

    fn wait(&mut self, write: EventWrite) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_duration(Duration::from_millis(millis))
    }

    fn note(name: &str, reason: &'static str, text: &str) -> EventNote {
        let object = EventObject {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: "u".to_owned(),
        };
        EventNote { object, reason, action: "Scale", tone: Tone::Normal, text: text.to_owned() }
    }

    fn written(book: &mut EventBook, now: Timestamp) -> Vec<String> {
        let writes = std::iter::from_fn(|| book.next_write(now));
        let short = |write| match write {
            EventWrite::Create { note, .. } => note.text,
            EventWrite::Count { count, .. } => format!("x{count}"),
        };
        writes.map(short).collect()
    }

    #[test]
    fn a_minute_has_one_event_of_a_kind_and_counts_the_rest() {
        let mut book = EventBook::new(1);
        for (millis, text) in [(0, "0 to 1"), (5_000, "1 to 2"), (50_000, "2 to 5")] {
            book.note(note("hello", "ScaledUp", text), at(millis));
        }
        book.note(note("hello", "ScaledDown", "5 to 4"), at(51_000));
        assert_eq!(written(&mut book, at(51_000)), ["0 to 1", "5 to 4"]);
        assert_eq!(book.next_deadline(), Some(at(60_000)));
        assert_eq!(written(&mut book, at(60_000)), ["x3"]);
        book.note(note("hello", "ScaledUp", "4 to 6"), at(61_000));
        assert_eq!(written(&mut book, at(61_000)), ["4 to 6"]);
        assert_eq!(written(&mut book, at(200_000)), Vec::<String>::new(), "one is no series");
    }

    #[test]
    fn writes_are_paced_and_the_oldest_are_dropped() {
        let mut book = EventBook::new(1);
        let names: Vec<String> = (0..WAITING_MAX + 10).map(|number| format!("w{number}")).collect();
        for name in &names {
            book.note(note(name, "ScaledUp", name), at(0));
        }
        assert_eq!(book.dropped, 10);
        let first = written(&mut book, at(0));
        assert_eq!((first.len(), first[0].as_str()), (25, "w10"));
        assert_eq!(book.next_deadline(), Some(at(200)));
        assert_eq!((written(&mut book, at(199)).len(), written(&mut book, at(1_000)).len()), (0, 5));
    }
}
