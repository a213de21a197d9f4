//! Calls that come each second, into a frame.

use std::collections::BTreeMap;

use vocabulary::{ResourceUsage, RevisionLoad, Timestamp};

use super::calls::SteadyCall;
use super::columns::{WrittenColumn, zigzag};
use super::loads::load_out;
use super::memory::ReportMemory;
use crate::wire::proto::{OutcomeMessage, ReportsMessage};

/// The lowest bits of a head are the kind of its call.
pub(super) const ADVANCE: u8 = 0;
pub(super) const POD_LOAD: u8 = 1;
pub(super) const ACTIVATOR_LOADS: u8 = 2;
pub(super) const KIND_MASK: u8 = 3;
/// Commands came out of the call.
pub(super) const HAS_OUTCOME: u8 = 1 << 2;
/// The time is the expected one: that of the call before, or of a link that keeps its pace.
pub(super) const EXPECTED_TIME: u8 = 1 << 3;
/// The link is the one that followed the link before.
pub(super) const EXPECTED_LINK: u8 = 1 << 4;
/// The second is the next one of the link.
pub(super) const EXPECTED_SECOND: u8 = 1 << 5;
/// The pod told of its usage.
pub(super) const HAS_USAGE: u8 = 1 << 6;
/// No program writes it so far.
pub(super) const UNKNOWN: u8 = 1 << 7;

/// The usage is the one that the link told of last.
pub(super) const SAME_USAGE: u8 = 0;
pub(super) const OTHER_USAGE: u8 = 1;

/// Packs the calls of one segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportPacker {
    memory: ReportMemory,
    /// The numbers of the revisions that the segment has named.
    numbers: BTreeMap<String, u64>,
    /// The time of the call or frame before, in nanoseconds.
    last: u64,
    heads: WrittenColumn,
    codes: WrittenColumn,
    values: WrittenColumn,
}

impl ReportPacker {
    /// Adds a call. `before` is the time of the last call or frame of the segment.
    pub(crate) fn push(
        &mut self,
        before: Timestamp,
        at: Timestamp,
        call: &SteadyCall<'_>,
        outcome: Option<&OutcomeMessage>,
    ) {
        self.last = before.as_nanos();
        let at = at.as_nanos();
        let outcome_bit = if outcome.is_some() { HAS_OUTCOME } else { 0 };
        match call {
            SteadyCall::Advance => {
                let head = ADVANCE | outcome_bit | self.push_time(at, Some(self.last));
                self.heads.byte(head);
            }
            SteadyCall::PodLoad { link, sample, usage } => {
                let head = POD_LOAD | outcome_bit | self.push_reporter(*link, sample.second, at);
                self.heads.byte(head | if usage.is_some() { HAS_USAGE } else { 0 });
                load_out(&sample.load, &mut self.codes, &mut self.values);
                if let Some(usage) = usage {
                    self.push_usage(*link, *usage);
                }
                self.memory.note(*link, sample.second, at, *usage);
            }
            SteadyCall::ActivatorLoads { link, second, loads } => {
                let head = ACTIVATOR_LOADS | outcome_bit | self.push_reporter(*link, *second, at);
                self.heads.byte(head);
                self.push_loads(loads);
                self.memory.note(*link, *second, at, None);
            }
        }
        if let Some(outcome) = outcome {
            self.push_outcome(outcome);
        }
    }

    /// How many bytes wait for [`ReportPacker::take`].
    pub(crate) fn size(&self) -> usize {
        self.heads.size() + self.codes.size() + self.values.size()
    }

    /// The calls since the last time; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<ReportsMessage> {
        (self.heads.size() > 0).then(|| ReportsMessage {
            heads: self.heads.take(),
            codes: self.codes.take(),
            values: self.values.take(),
        })
    }

    /// The part of the values that is about link, second and time; returns the bits of what was expected.
    fn push_reporter(&mut self, link: u64, second: u64, at: u64) -> u8 {
        let mut expected = 0;
        if self.memory.expected_link() == Some(link) {
            expected |= EXPECTED_LINK;
        } else {
            self.values.difference(self.memory.last_link, link);
        }
        if self.memory.expected_second(link) == Some(second) {
            expected |= EXPECTED_SECOND;
        } else {
            self.values.number(second);
        }
        expected | self.push_time(at, self.memory.expected_time(link, second))
    }

    fn push_time(&mut self, at: u64, expected: Option<u64>) -> u8 {
        if expected == Some(at) {
            return EXPECTED_TIME;
        }
        self.values.difference(self.last, at);
        0
    }

    fn push_usage(&mut self, link: u64, usage: ResourceUsage) {
        if self.memory.usage(link) == Some(usage) {
            return self.codes.byte(SAME_USAGE);
        }
        self.codes.byte(OTHER_USAGE);
        self.values.number(zigzag(usage.cpu.value().cast_unsigned()));
        self.values.number(zigzag(usage.memory.value().cast_unsigned()));
        self.values.number(u64::try_from(usage.window.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The loads are in the order of the names of their revisions, so most have numbers behind each other:
    /// they are written in runs of such numbers.
    fn push_loads(&mut self, loads: &[RevisionLoad]) {
        let numbered: Vec<(u64, bool, &RevisionLoad)> = loads
            .iter()
            .map(|load| {
                let (number, is_new) = self.number_of(load.revision.as_str());
                (number, is_new, load)
            })
            .collect();
        self.values.number(count(&numbered));
        let mut expected = 0_u64;
        for run in numbered.chunk_by(|(one, ..), (next, ..)| one.wrapping_add(1) == *next) {
            let first = run[0].0;
            self.values.difference(expected, first);
            self.values.number(count(run));
            for (_, is_new, load) in run {
                if *is_new {
                    self.values.text(load.revision.as_str());
                }
                load_out(&load.load, &mut self.codes, &mut self.values);
                if load.load.queued > 0 {
                    self.values.number(u64::try_from(load.oldest_wait.as_nanos()).unwrap_or(u64::MAX));
                }
            }
            expected = first.wrapping_add(count(run));
        }
    }

    fn push_outcome(&mut self, outcome: &OutcomeMessage) {
        self.values.low_bytes(outcome.commands, 8);
        self.values.number(outcome.decided.into());
        self.values.number(count(&outcome.counts));
        // What is due is done in the order of revisions, so most have numbers behind each other here, too.
        let mut expected = 0_u64;
        for wanted in &outcome.counts {
            let (number, is_new) = self.number_of(&wanted.revision);
            self.values.difference(expected, number);
            if is_new {
                self.values.text(&wanted.revision);
            }
            self.values.number(wanted.count.into());
            expected = number.wrapping_add(1);
        }
    }

    /// The number of a revision, and whether the segment has not named it yet.
    fn number_of(&mut self, revision: &str) -> (u64, bool) {
        if let Some(number) = self.numbers.get(revision) {
            return (*number, false);
        }
        let number = u64::try_from(self.numbers.len()).unwrap_or(u64::MAX);
        self.numbers.insert(revision.to_owned(), number);
        (number, true)
    }
}

fn count<Item>(list: &[Item]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}
