//! The multiscaler and local time: which zones it goes by, and how far these are from UTC.

use std::collections::BTreeSet;
use std::sync::Arc;

use forecasting::ZoneOffsets;
use vocabulary::TimeZoneName;

use super::Multiscaler;

impl Multiscaler {
    /// The zones of revisions to which the time of the day matters, but UTC. [`super::Event::ZoneRead`] tells
    /// of each.
    pub fn zones_in_use(&self) -> BTreeSet<TimeZoneName> {
        let zones = self.revisions.values().filter_map(|revision| revision.zone_in_use());
        zones.filter(|zone| !zone.is_utc()).cloned().collect()
    }

    /// Gives every revision the zones that are known, as after an exact keyframe was read, in which they
    /// stand once.
    pub fn share_zones(&mut self) {
        for revision in self.revisions.values_mut() {
            revision.set_zones(Arc::clone(&self.zones));
        }
    }

    pub(super) fn zone_read(&mut self, zone: TimeZoneName, offsets: ZoneOffsets) {
        if self.zones.offsets(&zone) == Some(&offsets) {
            return;
        }
        Arc::make_mut(&mut self.zones).note(zone, offsets);
        self.share_zones();
    }
}
