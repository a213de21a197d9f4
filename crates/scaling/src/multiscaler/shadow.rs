//! In shadow everything is measured and decided, and nothing is written: how often would the count have been
//! another?
//!
//! Each regular decision (a tick, a sync) is compared with the count that there is. Whether a person or
//! another autoscaler gives that count makes no difference.

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vocabulary::{PodCount, Timestamp};

use crate::decision::Sentence;

/// How decisions compare with the count that there was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowStatus {
    /// Since when they are compared.
    pub since: Timestamp,
    /// The number of decisions that were compared.
    pub compared: u64,
    /// How many of them would have been another count.
    pub differed: u64,
    /// Since when they differ without a break; `None` while they agree.
    pub differs_since: Option<Timestamp>,
    /// The last decision that differed; `None` before the first.
    pub last: Option<ShadowDifference>,
}

/// One decision that would have been another count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowDifference {
    /// The instant of the comparison.
    pub at: Timestamp,
    /// The count that was decided here.
    pub ours: PodCount,
    /// The count that the platform had.
    pub theirs: PodCount,
    /// Why ours is what it is.
    pub why: Option<Sentence>,
}

impl ShadowStatus {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { since: now, compared: 0, differed: 0, differs_since: None, last: None }
    }

    pub(super) fn compare(&mut self, difference: ShadowDifference) {
        self.compared += 1;
        if difference.ours == difference.theirs {
            self.differs_since = None;
            return;
        }
        self.differed += 1;
        self.differs_since.get_or_insert(difference.at);
        self.last = Some(difference);
    }
}

impl Serialize for ShadowStatus {
    /// For people and programs without the times; for an exact keyframe all of it.
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        let Self { since, compared, differed, differs_since, last } = self;
        if !to.is_human_readable() {
            return (since, compared, differed, differs_since, last).serialize(to);
        }
        let mut shown = to.serialize_struct("ShadowStatus", 3)?;
        shown.serialize_field("compared", compared)?;
        shown.serialize_field("differed", differed)?;
        shown.serialize_field("last", last)?;
        shown.end()
    }
}

impl<'de> Deserialize<'de> for ShadowStatus {
    /// Reads a status as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (since, compared, differed, differs_since, last) = Deserialize::deserialize(from)?;
        Ok(Self { since, compared, differed, differs_since, last })
    }
}

impl Serialize for ShadowDifference {
    /// For people and programs without the time; for an exact keyframe all of it.
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        let Self { at, ours, theirs, why } = self;
        if !to.is_human_readable() {
            return (at, ours, theirs, why).serialize(to);
        }
        let mut shown = to.serialize_struct("ShadowDifference", 3)?;
        shown.serialize_field("ours", ours)?;
        shown.serialize_field("theirs", theirs)?;
        shown.serialize_field("why", why)?;
        shown.end()
    }
}

impl<'de> Deserialize<'de> for ShadowDifference {
    /// Reads a difference as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (at, ours, theirs, why) = Deserialize::deserialize(from)?;
        Ok(Self { at, ours, theirs, why })
    }
}
