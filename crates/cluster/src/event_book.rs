//! Which Events are to be written, so that people read what happened, and few enough to read?
//!
//! The first word about an object and a reason is written at once. What follows within a minute is counted,
//! and written when the minute is over: as a series of the first Event, or, of changes of a count, as an
//! Event that leads from the first count to the last, since the words of an Event cannot be changed. The next
//! word begins another Event. Over all objects, writes are paced, and what waits too long behind others is
//! dropped: an Event is a convenience, and what is so stands in the problems.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use vocabulary::{PodCount, Timestamp};

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
    /// What happened, in words for people.
    pub text: EventText,
}

/// The words of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventText {
    /// One sentence, which is told as it is.
    Sentence(String),
    /// A change of a count, which several within a minute continue.
    CountChange {
        /// The count of pods before the change.
        from: PodCount,
        /// The count of pods after the change.
        to: PodCount,
        /// Why, with the reasons of the last change.
        why: String,
    },
}

impl fmt::Display for EventText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentence(text) => to.write_str(text),
            Self::CountChange { from, to: count, why } => {
                let word = if *count == PodCount::ONE { "pod" } else { "pods" };
                write!(to, "from {from} to {count} {word}: {why}")
            }
        }
    }
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
    /// The last change of a count, from the count with which the minute began; `None` for sentences.
    whole_change: Option<EventNote>,
}

impl EventSeries {
    fn of(name: String, note: &EventNote) -> Self {
        let is_change = matches!(note.text, EventText::CountChange { .. });
        Self { name, count: 1, whole_change: is_change.then(|| note.clone()) }
    }

    /// Notes that the same happened again.
    fn add(&mut self, note: &EventNote) {
        self.count = self.count.saturating_add(1);
        let Some(whole) = &mut self.whole_change else { return };
        if let (
            EventText::CountChange { to, why, .. },
            EventText::CountChange { to: last, why: because, .. },
        ) = (&mut whole.text, &note.text)
        {
            (*to, *why) = (*last, because.clone());
        }
    }
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
            series.add(&note);
            return;
        }
        let name = self.next_name(&note.object);
        self.ends.insert((now + SERIES_LASTS, key.0.clone(), key.1));
        self.series.insert(key, EventSeries::of(name.clone(), &note));
        self.wait(EventWrite::Create { name, note });
    }

    fn next_name(&mut self, object: &EventObject) -> String {
        self.numbered += 1;
        // A name of an object has 253 letters at most.
        let stem: String = object.name.chars().take(200).collect();
        format!("{stem}.{:08x}{:06x}", self.salt & 0xffff_ffff, self.numbered)
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
            let EventSeries { name, count, whole_change } = series;
            match whole_change {
                _ if count == 1 => {}
                Some(note) => {
                    let name = self.next_name(&object);
                    self.wait(EventWrite::Create { name, note });
                }
                None => self.wait(EventWrite::Count { name, object, count }),
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
        let text = EventText::Sentence(text.to_owned());
        EventNote { object, reason, action: "Scale", tone: Tone::Normal, text }
    }

    fn written(book: &mut EventBook, now: Timestamp) -> Vec<String> {
        let writes = std::iter::from_fn(|| book.next_write(now));
        let short = |write| match write {
            EventWrite::Create { note, .. } => note.text.to_string(),
            EventWrite::Count { count, .. } => format!("x{count}"),
        };
        writes.map(short).collect()
    }

    fn change(from: u32, to: u32, why: &str) -> EventNote {
        let text =
            EventText::CountChange { from: PodCount::new(from), to: PodCount::new(to), why: why.to_owned() };
        EventNote { text, ..note("hello", "ScaledUp", "") }
    }

    #[test]
    fn changes_of_a_minute_are_told_from_where_it_began() {
        let mut book = EventBook::new(1);
        for (millis, from, to, why) in [(0, 0, 1, "a request"), (2_000, 1, 4, "more"), (50_000, 4, 8, "most")]
        {
            book.note(change(from, to, why), at(millis));
        }
        assert_eq!(written(&mut book, at(59_000)), ["from 0 to 1 pod: a request"]);
        assert_eq!(written(&mut book, at(60_000)), ["from 0 to 8 pods: most"]);
        book.note(change(8, 9, "again"), at(61_000));
        assert_eq!(written(&mut book, at(200_000)), ["from 8 to 9 pods: again"], "and once is enough");
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
