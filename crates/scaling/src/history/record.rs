//! A history as it is written down and read again by one store.
//!
//! The record has a version and a check number of its own. A record of another version, or a damaged one, is
//! refused as a whole with the place of the first fault, and the history of no other revision is touched:
//! each has a record of its own. Every field has a default, so that the version is read before anything else
//! of a record that is not like this one.

use std::sync::Arc;

use forecasting::PredictionRecord;
use serde::{Deserialize, Serialize};
use settings::DemandMetric;
use thiserror::Error;

use super::demand_days::{DemandBin, DemandDays};
use super::packed::{BlockFault, PackedRows, RowBlock, RowLimits};
use super::revision::{
    CLOCK_REPEATS_MAX, HOUR, HOURS_KEPT, MINUTE, MINUTES_KEPT, OpenSpan, RevisionHistory, SECONDS_KEPT,
};
use super::tally::SpanTally;

/// The version of the record. Another meaning of any number in it is another version.
const VERSION: u32 = 2;
const MINUTES_OF_DAY: u64 = 24 * 60;

/// A history as it is written down. What is not closed yet, at most the last four seconds, is not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRecord {
    version: u32,
    /// A hash of all that follows, by which damage is known.
    check: u64,
    /// The first second since 1970 that is not part of the record.
    next: u64,
    seconds: RowsRecord,
    minutes: RowsRecord,
    hours: RowsRecord,
    minute: OpenSpanRecord,
    hour: OpenSpanRecord,
    demand: Option<DemandRecord>,
    /// What is kept of a forecast beside the demand. It is no part of what the check number counts.
    forecast: Option<Box<PredictionRecord>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct RowsRecord {
    blocks: Vec<RowBlockRecord>,
    repeats: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct RowBlockRecord {
    first: u64,
    rows: u64,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct OpenSpanRecord {
    index: u64,
    numbers: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DemandRecord {
    metric: DemandMetricWord,
    /// Whether minutes are seconds, as tests have them.
    #[serde(default)]
    is_by_second: bool,
    days: Vec<DemandDayRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DemandDayRecord {
    day: u64,
    /// The first minute of the day that is among the bytes.
    #[serde(default)]
    from: u16,
    bytes: Vec<u8>,
}

/// The metric of recorded demand, by its word in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DemandMetricWord {
    Concurrency,
    Rps,
    Cpu,
}

/// Why a record is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HistoryFault {
    /// The record was written by another version of the program.
    #[error("the history has version {0}, and only version {VERSION} is read")]
    Version(u32),
    /// The record is not as it was written.
    #[error("the history is damaged: its check number is {found:016x} and should be {expected:016x}")]
    Check {
        /// The number that the record gives.
        found: u64,
        /// The number of its content.
        expected: u64,
    },
    /// Rows of the record cannot be read.
    #[error("the history is damaged in its {level}, block {block}, byte {offset}: {fault}")]
    Rows {
        /// The level of the rows: seconds, minutes or hours.
        level: &'static str,
        /// The number of the block, from 0.
        block: usize,
        /// The number of the byte behind the last one that was read.
        offset: usize,
        /// The nature of the fault.
        fault: &'static str,
    },
    /// A part of the record cannot be what it stands for.
    #[error("the history is damaged: {part} has bytes or numbers that none can have")]
    Part {
        /// The part: the open minute, the open hour, the demand of a day.
        part: String,
    },
}

impl RevisionHistory {
    /// The history as it is written down.
    pub fn export(&self) -> HistoryRecord {
        self.unchecked_record().checked()
    }

    /// The record without its check number, for a caller that still changes it.
    fn unchecked_record(&self) -> HistoryRecord {
        HistoryRecord {
            version: VERSION,
            check: 0,
            next: self.next,
            seconds: RowsRecord::of(&self.seconds),
            minutes: RowsRecord::of(&self.minutes),
            hours: RowsRecord::of(&self.hours),
            minute: OpenSpanRecord::of(&self.minute),
            hour: OpenSpanRecord::of(&self.hour),
            demand: self.demand.as_deref().map(DemandRecord::of),
            forecast: self.forecast.clone(),
        }
    }

    /// The part of the history that has come since it was written down until this second; no seconds are
    /// among it. [`Self::extend`] puts both together.
    pub fn export_since(&self, second: u64) -> HistoryRecord {
        // A minute and an hour that ended with this second were open when it was written.
        let second = second.saturating_sub(1);
        let mut tail = self.clone();
        tail.seconds = PackedRows::new(&SECONDS_KEPT);
        tail.minutes = self.minutes.since(second / MINUTE);
        tail.hours = self.hours.since(second / HOUR);
        let mut record = tail.unchecked_record();
        if let Some(demand) = &mut record.demand {
            demand.keep_since(second / MINUTE);
        }
        record.checked()
    }

    /// Goes on with what was written down later. The seconds are those of the later part. Where the clock was
    /// put back far in between, what it had stamped after that is dropped, as while the history was written.
    pub fn extend(&mut self, later: Self) {
        if self.next.saturating_sub(later.next) > CLOCK_REPEATS_MAX {
            self.minutes.truncate(later.next / MINUTE);
            self.hours.truncate(later.next / HOUR);
        }
        self.minutes.extend(&later.minutes);
        self.hours.extend(&later.hours);
        match (&mut self.demand, later.demand) {
            (Some(demand), Some(later)) if demand.metric() == later.metric() => {
                Arc::make_mut(demand).extend(&later);
            }
            (demand, later) => *demand = later,
        }
        match (&mut self.forecast, later.forecast) {
            (Some(forecast), Some(later)) => forecast.extend(*later),
            (forecast, later) => *forecast = later,
        }
        self.seconds = later.seconds;
        (self.minute, self.hour, self.next) = (later.minute, later.hour, later.next);
        self.ended_hours = later.ended_hours;
    }

    /// The history that was written down. It knows nothing of the time since then.
    pub fn restore(record: HistoryRecord) -> Result<Self, HistoryFault> {
        if record.version != VERSION {
            return Err(HistoryFault::Version(record.version));
        }
        let expected = record.content_hash();
        if record.check != expected {
            return Err(HistoryFault::Check { found: record.check, expected });
        }
        let mut history = Self::beginning_at(record.next);
        history.seconds = record.seconds.restored("seconds", &SECONDS_KEPT, record.next)?;
        history.minutes = record.minutes.restored("minutes", &MINUTES_KEPT, record.next.div_ceil(MINUTE))?;
        history.hours = record.hours.restored("hours", &HOURS_KEPT, record.next.div_ceil(HOUR))?;
        history.minute = record.minute.restored("the open minute")?;
        history.hour = record.hour.restored("the open hour")?;
        history.count_without_open_hour();
        history.demand = record.demand.map(DemandRecord::restored).transpose()?.map(Arc::new);
        history.forecast = record.forecast;
        Ok(history)
    }
}

impl DemandDays {
    /// The minutes as they are written down: a history of nothing else.
    pub fn export(&self) -> HistoryRecord {
        let mut history = RevisionHistory::beginning_at(0);
        history.demand = Some(Arc::new(self.clone()));
        history.export()
    }
}

impl HistoryRecord {
    /// The first second since 1970 that is not part of the record.
    pub fn end(&self) -> u64 {
        self.next
    }

    /// The record with what is kept of a forecast.
    #[must_use]
    pub fn with_forecast(mut self, forecast: Option<PredictionRecord>) -> Self {
        self.forecast = forecast.map(Box::new);
        self
    }

    /// What is kept of a forecast.
    pub fn forecast(&self) -> Option<&PredictionRecord> {
        self.forecast.as_deref()
    }

    /// The record with the check number of its content.
    fn checked(mut self) -> Self {
        self.check = self.content_hash();
        self
    }

    /// The hash FNV-1a of the content: short, the same everywhere, and meant for accidents only.
    fn content_hash(&self) -> u64 {
        let mut hash = ContentHash(0xcbf2_9ce4_8422_2325);
        hash.number(self.next);
        for rows in [&self.seconds, &self.minutes, &self.hours] {
            hash.number(rows.repeats.into());
            for block in &rows.blocks {
                hash.number(block.first);
                hash.number(block.rows);
                hash.bytes(&block.bytes);
            }
        }
        for open in [&self.minute, &self.hour] {
            hash.number(open.index);
            open.numbers.iter().for_each(|&number| hash.number(number));
        }
        if let Some(demand) = &self.demand {
            hash.number(match demand.metric {
                DemandMetricWord::Concurrency => 1,
                DemandMetricWord::Rps => 2,
                DemandMetricWord::Cpu => 3,
            });
            if demand.is_by_second {
                hash.number(1);
            }
            for day in &demand.days {
                hash.number(day.day);
                if day.from > 0 {
                    hash.number(day.from.into());
                }
                hash.bytes(&day.bytes);
            }
        }
        hash.0
    }
}

struct ContentHash(u64);

impl ContentHash {
    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl RowsRecord {
    fn of<const N: usize>(rows: &PackedRows<N>) -> Self {
        let blocks = rows.blocks().map(|block| RowBlockRecord {
            first: block.first,
            rows: block.rows,
            bytes: block.bytes.to_vec(),
        });
        Self { blocks: blocks.collect(), repeats: rows.repeats() }
    }

    /// The rows, of which none may lie behind `end`.
    fn restored<const N: usize>(
        self,
        level: &'static str,
        limits: &RowLimits,
        end: u64,
    ) -> Result<PackedRows<N>, HistoryFault> {
        let count = self.blocks.len();
        let blocks = self.blocks.into_iter().map(|RowBlockRecord { first, rows, bytes }| RowBlock {
            first,
            rows,
            bytes: bytes.into(),
        });
        let rows = PackedRows::restored(limits, blocks.collect(), self.repeats).map_err(|fault| {
            let BlockFault { block, offset, kind } = fault;
            HistoryFault::Rows { level, block, offset, fault: kind.sentence() }
        })?;
        if rows.end().is_some_and(|last| last > end) {
            let fault = "its rows end behind the record";
            return Err(HistoryFault::Rows { level, block: count.saturating_sub(1), offset: 0, fault });
        }
        Ok(rows)
    }
}

impl OpenSpanRecord {
    fn of(open: &OpenSpan) -> Self {
        Self { index: open.index, numbers: open.tally.numbers() }
    }

    fn restored(self, part: &str) -> Result<OpenSpan, HistoryFault> {
        let tally = SpanTally::from_numbers(&self.numbers)
            .ok_or_else(|| HistoryFault::Part { part: part.to_owned() })?;
        Ok(OpenSpan { index: self.index, tally })
    }
}

impl DemandRecord {
    fn of(demand: &DemandDays) -> Self {
        let metric = match demand.metric() {
            DemandMetric::Concurrency => DemandMetricWord::Concurrency,
            DemandMetric::Rps => DemandMetricWord::Rps,
            DemandMetric::Cpu => DemandMetricWord::Cpu,
        };
        let days = demand.days().map(|(day, minutes)| DemandDayRecord {
            day,
            from: 0,
            bytes: minutes.iter().flatten().copied().collect(),
        });
        let is_by_second = demand.bin() == DemandBin::Second;
        Self { metric, is_by_second, days: days.collect() }
    }

    /// Drops what lies before a minute since 1970.
    fn keep_since(&mut self, minute: u64) {
        // Of demand by second, a second counts as a minute does.
        let minute = if self.is_by_second { minute.saturating_mul(MINUTE) } else { minute };
        let (first, place) = (minute / MINUTES_OF_DAY, minute % MINUTES_OF_DAY);
        self.days.retain(|day| day.day >= first);
        for day in self.days.iter_mut().filter(|day| day.day == first) {
            let place = u16::try_from(place).expect("a day has 1,440 minutes");
            day.bytes.drain(..day.bytes.len().min(2 * usize::from(place)));
            day.from = place;
        }
    }

    fn restored(self) -> Result<DemandDays, HistoryFault> {
        let metric = match self.metric {
            DemandMetricWord::Concurrency => DemandMetric::Concurrency,
            DemandMetricWord::Rps => DemandMetric::Rps,
            DemandMetricWord::Cpu => DemandMetric::Cpu,
        };
        let bin = if self.is_by_second { DemandBin::Second } else { DemandBin::Minute };
        let mut demand = DemandDays::new(metric, bin);
        for DemandDayRecord { day, from, bytes } in self.days {
            demand
                .restore_day(day, from, &bytes)
                .ok_or_else(|| HistoryFault::Part { part: format!("the demand of day {day}") })?;
        }
        Ok(demand)
    }
}

#[cfg(test)]
mod tests;
