//! A frame of reports, back to its calls.

use std::borrow::Cow;
use std::time::Duration;

use vocabulary::{MilliValue, PodCount, ResourceUsage, RevisionLoad, RevisionName, Sample, Timestamp};

use super::calls::{SECOND_MAX, SteadyCall};
use super::columns::{ReadColumn, unzigzag};
use super::loads::load_in;
use super::memory::ReportMemory;
use super::packing::{
    ACTIVATOR_LOADS, ADVANCE, EXPECTED_LINK, EXPECTED_SECOND, EXPECTED_TIME, HAS_OUTCOME, HAS_USAGE,
    KIND_MASK, OTHER_USAGE, POD_LOAD, SAME_USAGE, UNKNOWN,
};
use crate::frame_fault::FrameFault;
use crate::outcome::CommandOutcome;
use crate::read_frame::ReadFrame;
use crate::wire::proto::ReportsMessage;
use crate::wire::revision_name;

/// The longest word that a link takes has less of each. A call takes a head, and a load a code, so no more of
/// them are read than these.
const HEADS_MAX: usize = 1 << 20;
const CODES_MAX: usize = 8 << 20;
const VALUES_MAX: usize = 64 << 20;

/// Unpacks the frames of one segment, from its first one on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportUnpacker {
    memory: ReportMemory,
    /// The revisions that the segment has named, by their numbers.
    revisions: Vec<RevisionName>,
}

impl ReportUnpacker {
    /// The calls of a frame, the last of which was made at `at`; `before` is the time of the frame before.
    pub(crate) fn unpack(
        &mut self,
        message: &ReportsMessage,
        before: Timestamp,
        at: Timestamp,
    ) -> Result<Vec<ReadFrame>, FrameFault> {
        let mut frame = OpenFrame {
            heads: ReadColumn::new("the heads of reports", &message.heads),
            codes: ReadColumn::new("the codes of reports", &message.codes),
            values: ReadColumn::new("the values of reports", &message.values),
            known: self,
            last: before.as_nanos(),
        };
        let columns = [(&frame.heads, HEADS_MAX), (&frame.codes, CODES_MAX), (&frame.values, VALUES_MAX)];
        for (column, bytes_max) in columns {
            column.check_size(bytes_max)?;
        }
        let mut calls = Vec::new();
        while !frame.heads.is_at_end() {
            calls.push(frame.next_call()?);
        }
        let (last, codes, values) = (frame.last, frame.codes, frame.values);
        for column in [&codes, &values] {
            if !column.is_at_end() {
                return Err(column.bad("go on behind the last report"));
            }
        }
        if last != at.as_nanos() {
            return Err(values.bad("end at another time than their frame says"));
        }
        Ok(calls)
    }
}

/// A frame that is read, as far as its columns are.
struct OpenFrame<'a> {
    heads: ReadColumn<'a>,
    codes: ReadColumn<'a>,
    values: ReadColumn<'a>,
    known: &'a mut ReportUnpacker,
    /// The time of the last call, in nanoseconds.
    last: u64,
}

impl OpenFrame<'_> {
    fn next_call(&mut self) -> Result<ReadFrame, FrameFault> {
        let head = self.heads.byte()?;
        let call = match head & (KIND_MASK | UNKNOWN) {
            ADVANCE => {
                self.last = self.time(head, Some(self.last))?;
                SteadyCall::Advance
            }
            POD_LOAD => self.pod_load(head)?,
            ACTIVATOR_LOADS => self.activator_loads(head)?,
            _ => return Err(self.heads.bad("have a kind of call that this program does not know")),
        };
        let outcome = if head & HAS_OUTCOME == 0 { CommandOutcome::default() } else { self.outcome()? };
        Ok(ReadFrame { at: Timestamp::from_nanos(self.last), content: call.into_content(), outcome })
    }

    fn pod_load(&mut self, head: u8) -> Result<SteadyCall<'static>, FrameFault> {
        let (link, second) = self.reporter(head)?;
        let sample = Sample { second, load: load_in(&mut self.codes, &mut self.values)? };
        let usage = if head & HAS_USAGE == 0 { None } else { Some(self.usage(link)?) };
        self.known.memory.note(link, second, self.last, usage);
        Ok(SteadyCall::PodLoad { link, sample, usage })
    }

    fn activator_loads(&mut self, head: u8) -> Result<SteadyCall<'static>, FrameFault> {
        let (link, second) = self.reporter(head)?;
        let mut rest = self.values.number()?;
        let (mut loads, mut expected) = (Vec::new(), 0_u64);
        while rest > 0 {
            let first = self.values.difference(expected)?;
            let length = self.values.number()?;
            if length == 0 || length > rest {
                return Err(self.values.bad(&format!("have a run of {length} loads, of which {rest} come")));
            }
            rest -= length;
            expected = first.wrapping_add(length);
            // Each has a code, so a number that is too large ends with the codes.
            for place in 0..length {
                loads.push(self.load_of(first.wrapping_add(place))?);
            }
        }
        self.known.memory.note(link, second, self.last, None);
        Ok(SteadyCall::ActivatorLoads { link, second, loads: Cow::Owned(loads) })
    }

    /// The load of the revision with this number.
    fn load_of(&mut self, number: u64) -> Result<RevisionLoad, FrameFault> {
        let revision = self.revision(number)?;
        let load = load_in(&mut self.codes, &mut self.values)?;
        let oldest_wait = if load.queued > 0 { self.values.number()? } else { 0 };
        let oldest_wait = Duration::from_nanos(oldest_wait);
        Ok(RevisionLoad { revision, load, oldest_wait, callers: Vec::new() })
    }

    /// The link and the second of a report; its time is the last one then.
    fn reporter(&mut self, head: u8) -> Result<(u64, u64), FrameFault> {
        let memory = &self.known.memory;
        let link = if head & EXPECTED_LINK == 0 {
            self.values.difference(memory.last_link)?
        } else {
            memory.expected_link().ok_or_else(|| self.heads.bad("expect a link that has no follower"))?
        };
        let second = if head & EXPECTED_SECOND == 0 {
            self.values.number()?
        } else {
            memory.expected_second(link).ok_or_else(|| self.heads.bad("expect a second of a new link"))?
        };
        if second > SECOND_MAX {
            return Err(self.values.bad(&format!("have the second {second}, more than {SECOND_MAX}")));
        }
        let expected = memory.expected_time(link, second);
        self.last = self.time(head, expected)?;
        Ok((link, second))
    }

    fn time(&mut self, head: u8, expected: Option<u64>) -> Result<u64, FrameFault> {
        if head & EXPECTED_TIME == 0 {
            return self.values.difference(self.last);
        }
        expected.ok_or_else(|| self.heads.bad("expect a time of a new link"))
    }

    fn usage(&mut self, link: u64) -> Result<ResourceUsage, FrameFault> {
        match self.codes.byte()? {
            SAME_USAGE => {
                let known = self.known.memory.usage(link);
                known.ok_or_else(|| self.codes.bad("repeat a usage that the link has not told of"))
            }
            OTHER_USAGE => {
                let mut amount = || -> Result<MilliValue, FrameFault> {
                    Ok(MilliValue::new(unzigzag(self.values.number()?).cast_signed()))
                };
                let (cpu, memory) = (amount()?, amount()?);
                Ok(ResourceUsage { cpu, memory, window: Duration::from_nanos(self.values.number()?) })
            }
            _ => Err(self.codes.bad("have a usage that this program does not know")),
        }
    }

    fn outcome(&mut self) -> Result<CommandOutcome, FrameFault> {
        let commands = self.values.low_bytes(8)?;
        let decided = self.values.number()?;
        let decided = u32::try_from(decided).map_err(|_| self.values.bad("have too many decisions"))?;
        let mut outcome = CommandOutcome { commands, decided, ..CommandOutcome::default() };
        let mut expected = 0_u64;
        // Each has bytes of its own, so a number that is too large ends with the values.
        for _ in 0..self.values.number()? {
            let number = self.values.difference(expected)?;
            let revision = self.revision(number)?;
            let count = u32::try_from(self.values.number()?);
            let count = count.map_err(|_| self.values.bad("have a count of pods beyond 32 bits"))?;
            outcome.counts.push((revision, PodCount::new(count)));
            expected = number.wrapping_add(1);
        }
        Ok(outcome)
    }

    /// The revision with this number. The first time that it comes, its name follows.
    fn revision(&mut self, number: u64) -> Result<RevisionName, FrameFault> {
        let revisions = &mut self.known.revisions;
        // A number beyond those of the machine is in no list.
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if place == revisions.len() {
            revisions.push(revision_name(self.values.text()?)?);
        }
        let revision = revisions.get(place).cloned();
        revision.ok_or_else(|| self.values.bad(&format!("have a revision {number} that is not named")))
    }
}
