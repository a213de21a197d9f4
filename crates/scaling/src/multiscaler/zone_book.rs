//! The zones of local time that revisions go by, as far as the edge has told of them.

use std::collections::BTreeMap;

use forecasting::ZoneOffsets;
use serde::{Deserialize, Serialize};
use vocabulary::TimeZoneName;

/// The zone of the minutes themselves, which is always known.
static UTC: ZoneOffsets = ZoneOffsets::fixed(0);

/// How far each zone is ahead of UTC, and when that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ZoneBook(BTreeMap<TimeZoneName, ZoneOffsets>);

impl ZoneBook {
    /// The offsets of a zone; `None` until they were told.
    pub(super) fn offsets(&self, zone: &TimeZoneName) -> Option<&ZoneOffsets> {
        if zone.is_utc() { Some(&UTC) } else { self.0.get(zone) }
    }

    /// Notes the offsets of a zone.
    pub(super) fn note(&mut self, zone: TimeZoneName, offsets: ZoneOffsets) {
        self.0.insert(zone, offsets);
    }
}
