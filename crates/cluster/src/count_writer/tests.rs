//! Orders, answers, the watch and other owners in each order in which they can come: rows with a name for
//! what each of them means, and all sequences before a made-up API server.

mod interleavings;

use scaling::Trigger;
use vocabulary::{Bucket, Epoch};

use super::*;

/// A write for `default/deployment/hello`, ordered from the first seat.
pub(crate) fn write(from: u32, to: u32) -> CountWrite {
    CountWrite {
        order: OrderId(1),
        seat: SeatNumber(1),
        fence: Fence { bucket: Bucket(0), epoch: Epoch(1) },
        revision: RevisionName::new("default", "deployment", "hello").expect("a name"),
        from: PodCount::new(from),
        to: PodCount::new(to),
        end_first: Vec::new(),
        because: Arc::new(Decision::empty(Trigger::Tick, Timestamp::ZERO)),
    }
}

fn shown(count: u32, version: u64) -> ShownCount {
    ShownCount { count: PodCount::new(count), version: Some(ObjectVersion(version)) }
}

/// What happens to a writer.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// An order from the first seat: from, to.
    Asks(u32, u32),
    /// An order from the seat that was taken after it.
    NextSeatAsks(u32, u32),
    Begins,
    Refused,
    /// The request was done, and made this version of the object.
    Written(u64),
    WrittenWithoutVersion,
    GivenUp,
    NotOwner,
    Failed,
    /// The watch shows a count, in a version of the object.
    Shows(u32, u64),
    ShowsWithoutVersion(u32),
    /// An autoscaler that takes its seat, or becomes the owner, hears of the workload.
    ToldAnew,
    /// Another object has the workload's name.
    Replaced,
    Unscalable,
    Gone,
}

use Happening::{
    Asks, Begins, Failed, GivenUp, Gone, NextSeatAsks, NotOwner, Refused, Replaced, Shows,
    ShowsWithoutVersion, ToldAnew, Unscalable, Written, WrittenWithoutVersion,
};

/// A writer of a workload whose count of 2 was shown in version 10, with what is told of it.
struct Told {
    writer: CountWriter,
    now: Timestamp,
    words: Vec<String>,
}

fn steps(write: &CountWrite) -> String {
    format!("{}→{}", write.from, write.to)
}

impl Told {
    fn new() -> Self {
        let mut writer = CountWriter::default();
        writer.show(shown(2, 10));
        Self { writer, now: Timestamp::ZERO, words: Vec::new() }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Asks(from, to) => self.asks(write(from, to)),
            NextSeatAsks(from, to) => self.asks(CountWrite { seat: SeatNumber(2), ..write(from, to) }),
            Begins => {
                self.now = self.now.max(self.writer.next_deadline().unwrap_or_default());
                if let Some(begun) = self.writer.begin(self.now) {
                    self.words.push(format!("begins {}", steps(&begun)));
                }
            }
            Refused => {
                self.now = self.now.max(self.writer.next_deadline().unwrap_or_default());
                let refused = self.writer.refuse(self.now).expect("it is due");
                self.words.push(format!("refuses {}", steps(&refused)));
            }
            Written(version) => {
                self.answered("ends", WriteEnding::Written(Some(ObjectVersion(version))));
            }
            WrittenWithoutVersion => self.answered("ends", WriteEnding::Written(None)),
            GivenUp => self.answered("gives up", WriteEnding::GivenUp),
            NotOwner => self.answered("is not owner of", WriteEnding::NotOwner),
            Failed => self.answered("fails", WriteEnding::Failed(None)),
            Shows(count, version) => self.shows(shown(count, version)),
            ShowsWithoutVersion(count) => {
                self.shows(ShownCount { version: None, ..shown(count, 0) });
            }
            ToldAnew => self.writer.told_anew(),
            Replaced => self.writer.object_replaced(),
            Unscalable => self.writer.object_unscalable(),
            Gone => self.writer.object_gone(),
        }
    }

    fn asks(&mut self, write: CountWrite) {
        if let Some(replaced) = self.writer.want(write) {
            self.words.push(format!("replaces {}", steps(&replaced)));
        }
    }

    fn answered(&mut self, word: &str, ending: WriteEnding) {
        let ended = self.writer.answered(ending, self.now).expect("it is under way");
        self.words.push(format!("{word} {}", steps(&ended.write)));
        if ended.is_replaced {
            self.words.push("replaced".to_owned());
        }
        self.tell_news(ended.is_news);
    }

    fn shows(&mut self, shown: ShownCount) {
        let sighting = self.writer.show(shown);
        self.tell_news(sighting.is_news);
        if let Some(ForeignCount { former, present }) = sighting.foreign {
            self.words.push(format!("foreign {former}→{present}"));
        }
    }

    fn tell_news(&mut self, is_news: bool) {
        if is_news {
            let wanted = self.writer.wanted().expect("it is there");
            self.words.push(format!("news {wanted}"));
        }
    }

    /// Everything that was told, and what is left: the count, and the write that is asked.
    fn in_words(mut self) -> String {
        let wanted = self.writer.wanted().map_or_else(|| "none".to_owned(), |count| count.to_string());
        self.words.push(format!("at {wanted}"));
        if let Some(asked) = &self.writer.asked {
            self.words.push(format!("asked {}", steps(asked)));
        }
        self.words.join("; ")
    }
}

#[track_caller]
fn check(rows: &[(&str, &[Happening], &str)]) {
    for (name, happenings, expected) in rows {
        let mut told = Told::new();
        for happening in *happenings {
            told.happens(*happening);
        }
        assert_eq!(told.in_words(), *expected, "{name}");
    }
}

#[test]
fn a_count_of_ours_is_there_from_its_request_on_and_hides_older_versions_alone() {
    check(&[
        (
            "answer, then watch",
            &[Asks(2, 5), Begins, Written(13), Shows(5, 13)],
            "begins 2→5; ends 2→5; at 5",
        ),
        (
            "watch, then answer",
            &[Asks(2, 5), Begins, Shows(5, 13), Written(13)],
            "begins 2→5; ends 2→5; at 5",
        ),
        (
            "the former count comes late",
            &[Asks(2, 5), Begins, Written(13), Shows(2, 12)],
            "begins 2→5; ends 2→5; at 5",
        ),
        ("asked and not begun", &[Asks(2, 5), Shows(2, 11)], "at 2; asked 2→5"),
        (
            "the watch leaves ours out, and the count is the former one",
            &[Asks(2, 5), Begins, Written(13), Shows(2, 14)],
            "begins 2→5; ends 2→5; news 2; at 2",
        ),
        (
            "another client writes after ours",
            &[Asks(2, 5), Begins, Written(13), Shows(5, 13), Shows(3, 14)],
            "begins 2→5; ends 2→5; news 3; foreign 5→3; at 3",
        ),
        (
            "another client writes after ours, before our answer comes",
            &[Asks(2, 5), Begins, Shows(3, 14), Written(13)],
            "begins 2→5; foreign 2→3; ends 2→5; news 3; at 3",
        ),
        (
            "the same count is ours once",
            &[Asks(2, 5), Begins, Written(13), Shows(5, 13), Shows(2, 14), Shows(5, 15)],
            "begins 2→5; ends 2→5; news 2; foreign 5→2; news 5; foreign 2→5; at 5",
        ),
        (
            "versions of the watch cannot be compared",
            &[Asks(2, 5), Begins, Written(13), ShowsWithoutVersion(2)],
            "begins 2→5; ends 2→5; news 2; at 2",
        ),
        (
            "the answer has no version",
            &[Asks(2, 5), Begins, WrittenWithoutVersion, Shows(5, 13)],
            "begins 2→5; ends 2→5; news 5; at 5",
        ),
    ]);
}

#[test]
fn a_count_that_was_not_written_hides_nothing_and_a_failed_write_is_tried_again() {
    check(&[
        ("failed", &[Asks(2, 5), Begins, Failed], "begins 2→5; fails 2→5; at 2; asked 2→5"),
        (
            "failed, then done",
            &[Asks(2, 5), Begins, Failed, Begins, Written(13)],
            "begins 2→5; fails 2→5; begins 2→5; ends 2→5; at 5",
        ),
        ("given up", &[Asks(2, 5), Begins, GivenUp], "begins 2→5; gives up 2→5; at 2"),
        (
            "no right: the outcome may be unheard, so the count is told",
            &[Asks(2, 5), Begins, NotOwner],
            "begins 2→5; is not owner of 2→5; news 2; at 2",
        ),
        (
            "given up for the count of another client, which the watch has shown",
            &[Asks(2, 5), Begins, Shows(7, 11), GivenUp],
            "begins 2→5; foreign 2→7; gives up 2→5; news 7; at 7",
        ),
        (
            "given up for the count of another client, which the watch shows later",
            &[Asks(2, 5), Begins, GivenUp, Shows(7, 11)],
            "begins 2→5; gives up 2→5; news 7; foreign 2→7; at 7",
        ),
        (
            "failed, while another client wrote",
            &[Asks(2, 5), Begins, Shows(3, 12), Failed],
            "begins 2→5; foreign 2→3; fails 2→5; news 3; at 3; asked 2→5",
        ),
        (
            "done although the answer was lost, and shown",
            &[Asks(2, 5), Begins, Failed, Shows(5, 13)],
            "begins 2→5; fails 2→5; news 5; at 5; asked 2→5",
        ),
        ("not begun", &[Asks(2, 5), Refused], "refuses 2→5; at 2"),
        (
            "a count that the watch has not shown stays when the next write fails",
            &[Asks(2, 5), Begins, Written(13), Asks(5, 8), Begins, Failed],
            "begins 2→5; ends 2→5; begins 5→8; fails 5→8; at 5; asked 5→8",
        ),
        (
            "a count that the watch showed meanwhile is no news when the next write fails",
            &[Asks(2, 5), Begins, Written(13), Asks(5, 8), Begins, Shows(5, 13), Failed],
            "begins 2→5; ends 2→5; begins 5→8; fails 5→8; at 5; asked 5→8",
        ),
    ]);
}

#[test]
fn a_write_is_put_upon_the_count_that_is_there_when_it_begins() {
    check(&[
        ("asked twice", &[Asks(2, 5), Asks(5, 8), Begins], "replaces 2→5; begins 2→8; at 8"),
        ("asked and taken back", &[Asks(2, 5), Asks(5, 2), Begins], "replaces 2→5; begins 2→2; at 2"),
        (
            "asked twice, with the count of another client between",
            &[Asks(2, 5), Asks(3, 8), Begins],
            "replaces 2→5; begins 3→8; at 8",
        ),
        ("one request at a time", &[Asks(2, 5), Begins, Asks(5, 8), Begins], "begins 2→5; at 5; asked 5→8"),
        (
            "asked while the former write was done",
            &[Asks(2, 5), Begins, Asks(5, 8), Written(13), Begins],
            "begins 2→5; ends 2→5; begins 5→8; at 8",
        ),
        (
            "asked before the autoscaler knew that the former write began",
            &[Asks(2, 5), Begins, Asks(2, 8), Written(13), Begins],
            "begins 2→5; ends 2→5; begins 5→8; at 8",
        ),
        (
            "asked while the former write failed",
            &[Asks(2, 5), Begins, Asks(5, 8), Failed, Begins],
            "begins 2→5; fails 2→5; replaced; begins 2→8; at 8",
        ),
        (
            "asked after the former write failed",
            &[Asks(2, 5), Begins, Failed, Asks(5, 8), Begins],
            "begins 2→5; fails 2→5; replaces 2→5; begins 2→8; at 8",
        ),
        (
            "asked while the former write was given up",
            &[Asks(2, 5), Begins, Asks(5, 8), GivenUp, Begins],
            "begins 2→5; gives up 2→5; begins 5→8; at 8",
        ),
        (
            "asked twice while the former write was done",
            &[Asks(2, 5), Begins, Asks(5, 8), Asks(8, 3), Written(13), Begins],
            "begins 2→5; replaces 5→8; ends 2→5; begins 5→3; at 3",
        ),
    ]);
}

#[test]
fn an_order_of_a_later_seat_is_left_as_it_is() {
    check(&[
        ("before it begins", &[Asks(2, 5), NextSeatAsks(2, 8), Begins], "replaces 2→5; begins 2→8; at 8"),
        (
            "decided upon a count that a write of the former seat would have made",
            &[Asks(2, 5), NextSeatAsks(5, 8), Begins],
            "replaces 2→5; begins 5→8; at 8",
        ),
        (
            "while the write of the former seat is done",
            &[Asks(2, 5), Begins, NextSeatAsks(5, 8), Written(13), Begins],
            "begins 2→5; ends 2→5; begins 5→8; at 8",
        ),
        (
            "decided upon the former count, while the write of the former seat is done",
            &[Asks(2, 5), Begins, NextSeatAsks(2, 8), Written(13), Begins],
            "begins 2→5; ends 2→5; begins 2→8; at 8",
        ),
        (
            "while the write of the former seat fails",
            &[Asks(2, 5), Begins, NextSeatAsks(5, 8), Failed, Begins],
            "begins 2→5; fails 2→5; replaced; begins 5→8; at 8",
        ),
        (
            "while the write of the former seat is refused for want of the bucket",
            &[Asks(2, 5), Begins, NextSeatAsks(5, 8), GivenUp, Begins],
            "begins 2→5; gives up 2→5; begins 5→8; at 8",
        ),
    ]);
}

#[test]
fn a_count_that_was_told_anew_is_news_when_it_is_not_written() {
    check(&[
        ("failed", &[Asks(2, 5), Begins, ToldAnew, Failed], "begins 2→5; fails 2→5; news 2; at 2; asked 2→5"),
        ("given up", &[Asks(2, 5), Begins, ToldAnew, GivenUp], "begins 2→5; gives up 2→5; news 2; at 2"),
        (
            "given up for the count of another client, which was known when it began",
            &[Asks(2, 5), Shows(7, 11), Begins, ToldAnew, GivenUp],
            "news 7; foreign 2→7; begins 2→5; gives up 2→5; news 7; at 7",
        ),
        ("done", &[Asks(2, 5), Begins, ToldAnew, Written(13)], "begins 2→5; ends 2→5; at 5"),
        (
            "done, without a version",
            &[Asks(2, 5), Begins, ToldAnew, WrittenWithoutVersion],
            "begins 2→5; ends 2→5; at 2",
        ),
        (
            "told before it began",
            &[Asks(2, 5), ToldAnew, Begins, Failed],
            "begins 2→5; fails 2→5; at 2; asked 2→5",
        ),
    ]);
}

#[test]
fn a_write_to_an_object_that_is_lost_says_nothing_of_the_next_one() {
    check(&[
        (
            "replaced under way",
            &[Asks(2, 5), Begins, Replaced, Shows(1, 20), Written(13)],
            "begins 2→5; news 1; foreign 2→1; ends 2→5; at 1",
        ),
        (
            "replaced after the write",
            &[Asks(2, 5), Begins, Written(13), Replaced, Shows(1, 3)],
            "begins 2→5; ends 2→5; news 1; foreign 2→1; at 1",
        ),
        ("gone under way", &[Asks(2, 5), Begins, Gone, Written(13)], "begins 2→5; ends 2→5; at none"),
        (
            "gone under way, and made anew",
            &[Asks(2, 5), Begins, Gone, Shows(1, 20), Shows(5, 21), Written(13)],
            "begins 2→5; news 1; news 5; foreign 1→5; ends 2→5; at 5",
        ),
        ("gone while it is asked", &[Asks(2, 5), Gone, Refused], "refuses 2→5; at none"),
        (
            "unscalable for a while: a count of ours is still known as ours",
            &[Asks(2, 5), Begins, Unscalable, Shows(2, 12), Shows(5, 13), Written(13)],
            "begins 2→5; news 2; news 5; ends 2→5; at 5",
        ),
    ]);
}

#[test]
fn writes_begin_twice_at_once_and_then_apart_and_later_after_a_failure() {
    let at = Timestamp::from_millis;
    let mut writer = CountWriter::default();
    writer.show(shown(2, 10));
    for (from, to) in [(2, 3), (3, 4)] {
        writer.want(write(from, to));
        assert!(writer.begin(at(100)).is_some());
        writer.answered(WriteEnding::Written(None), at(100));
    }
    assert!(!writer.is_at_rest(at(124)), "a third write has to wait");
    writer.want(write(4, 5));
    assert_eq!((writer.next_deadline(), writer.begin(at(124)).is_none()), (Some(at(125)), true));
    assert!(writer.begin(at(125)).is_some());
    assert_eq!(writer.next_deadline(), None);
    writer.answered(WriteEnding::Failed(None), at(130));
    assert_eq!(writer.next_deadline(), Some(at(230)));
    assert!(writer.begin(at(230)).is_some());
    writer.answered(WriteEnding::Failed(Some(Duration::from_secs(7))), at(230));
    assert_eq!(writer.next_deadline(), Some(at(7230)));
}
