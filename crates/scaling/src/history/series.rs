//! The part of a history that a chart shows: equal steps, some of them without data.

use std::time::Duration;

use super::revision::{HOUR, HOURS_KEPT, MINUTE, OpenSpan, RevisionHistory};
use super::span::HistorySpan;
use super::tally::{span_of, span_of_second};

/// The past that a series reaches back to, each range with its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesRange {
    /// Fifteen minutes, by the second.
    QuarterHour,
    /// Twenty-four hours, by the minute.
    Day,
    /// Thirty days, by the hour.
    Month,
}

impl SeriesRange {
    /// Every range that can be asked for.
    pub const ALL: [Self; 3] = [Self::QuarterHour, Self::Day, Self::Month];

    /// The word by which the API knows the range.
    pub fn word(self) -> &'static str {
        match self {
            Self::QuarterHour => "15m",
            Self::Day => "24h",
            Self::Month => "30d",
        }
    }

    /// The range of a word; `None` for a word of none.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.word() == word)
    }

    /// The length of one step.
    pub fn step(self) -> Duration {
        Duration::from_secs(self.step_seconds())
    }

    fn step_seconds(self) -> u64 {
        match self {
            Self::QuarterHour => 1,
            Self::Day => MINUTE,
            Self::Month => HOUR,
        }
    }

    fn steps(self) -> u64 {
        match self {
            Self::QuarterHour => 15 * 60,
            Self::Day => 24 * 60,
            Self::Month => 30 * 24,
        }
    }
}

/// A part of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The second since 1970 at which the first span begins.
    pub first_second: u64,
    /// How long ago that was, in whole seconds.
    pub first_ago: Duration,
    /// The length of each span.
    pub step: Duration,
    /// The spans, oldest first; `None` for one that was not observed. The last may not have ended.
    pub spans: Vec<Option<HistorySpan>>,
}

impl RevisionHistory {
    /// The newest spans of a range, up to the last second that is closed.
    pub(super) fn series(&self, range: SeriesRange) -> Series {
        let step = range.step_seconds();
        let end = self.next.div_ceil(step);
        let first = end.saturating_sub(range.steps());
        let length = usize::try_from(end - first).unwrap_or(0);
        let mut window = SeriesWindow { first, spans: vec![None; length] };
        match range {
            SeriesRange::QuarterHour => {
                for run in self.seconds.runs() {
                    window.put(run.first, run.count, span_of_second(&run.row));
                }
            }
            SeriesRange::Day => {
                for run in self.minutes.runs() {
                    window.put(run.first, run.count, span_of(&run.row));
                }
                window.put_open(&self.minute);
            }
            SeriesRange::Month => {
                for run in self.hours.runs() {
                    window.put(run.first, run.count, span_of(&run.row));
                }
                window.put_open(&self.hour);
            }
        }
        let first_second = first * step;
        let first_ago = Duration::from_secs(self.running_second().saturating_sub(first_second));
        Series { first_second, first_ago, step: range.step(), spans: window.spans }
    }

    /// The hours that are kept, oldest first, each with its number since 1970; the last may not have ended.
    pub fn hours(&self) -> impl Iterator<Item = (u64, HistorySpan)> {
        let oldest = (self.next / HOUR).saturating_sub(HOURS_KEPT.rows);
        let rows = self.hours.runs().flat_map(|run| {
            let span = span_of(&run.row);
            (run.first..run.first + run.count).map(move |hour| (hour, span))
        });
        let open = (!self.hour.tally.is_empty()).then(|| (self.hour.index, self.hour.tally.span()));
        rows.filter(move |(hour, _)| *hour >= oldest).chain(open)
    }
}

/// The spans of a series while they are filled in.
struct SeriesWindow {
    first: u64,
    spans: Vec<Option<HistorySpan>>,
}

impl SeriesWindow {
    fn put_open(&mut self, open: &OpenSpan) {
        if !open.tally.is_empty() {
            self.put(open.index, 1, open.tally.span());
        }
    }

    /// Puts equal spans in their places, as far as the series has these.
    fn put(&mut self, first: u64, count: u64, span: HistorySpan) {
        let place = |index: u64| usize::try_from(index.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let (from, to) = (place(first), place(first.saturating_add(count)).min(self.spans.len()));
        if let Some(places) = self.spans.get_mut(from..to) {
            places.fill(Some(span));
        }
    }
}
