//! Days by local time: the same minute of an earlier day, also where a day has 23 or 25 hours.
//!
//! The edge knows the zones of the world and says here how far local time is from UTC, and when that changes.
//! What is kept are the changes of the days that rules look at.

use serde::{Deserialize, Serialize};
use vocabulary::WeekMinute;

const MINUTES_OF_HOUR: u64 = 60;
pub(crate) const MINUTES_OF_DAY: u64 = 24 * MINUTES_OF_HOUR;
/// Rules look back for two weeks. No zone has more changes in that time and the next one.
const CHANGES_KEPT: usize = 4;

/// How far local time is ahead of UTC, in minutes, before and after each change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneOffsets {
    first: i32,
    changes: Vec<OffsetChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OffsetChange {
    /// The first minute since 1970, by UTC, with the new offset.
    minute: u64,
    offset: i32,
}

/// A minute since 1970 by local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocalMinute(u64);

impl ZoneOffsets {
    /// A zone whose time is always this many minutes ahead of UTC.
    pub const fn fixed(offset: i32) -> Self {
        Self { first: offset, changes: Vec::new() }
    }

    /// From this minute since 1970 on, by UTC, local time is so many minutes ahead. What was said of this
    /// minute and later ones before is forgotten.
    pub fn change_at(&mut self, minute: u64, offset: i32) {
        self.changes.retain(|change| change.minute < minute);
        if self.offset_at(minute) != offset {
            self.changes.push(OffsetChange { minute, offset });
        }
        while self.changes.len() > CHANGES_KEPT {
            self.first = self.changes.remove(0).offset;
        }
    }

    /// How far local time is ahead of UTC before the first change, in minutes.
    pub fn first(&self) -> i32 {
        self.first
    }

    /// Each change: the first minute since 1970, by UTC, with the new offset.
    pub fn changes(&self) -> impl Iterator<Item = (u64, i32)> {
        self.changes.iter().map(|change| (change.minute, change.offset))
    }

    fn offset_at(&self, minute: u64) -> i32 {
        let last = self.changes.iter().rev().find(|change| change.minute <= minute);
        last.map_or(self.first, |change| change.offset)
    }

    pub(crate) fn local(&self, minute: u64) -> LocalMinute {
        LocalMinute(minute.saturating_add_signed(i64::from(self.offset_at(minute))))
    }

    /// The minute of the week that local clocks show in a minute since 1970 by UTC.
    pub fn week_minute(&self, minute: u64) -> WeekMinute {
        WeekMinute::of_local(self.local(minute).0)
    }

    /// The minute, by UTC, in which local clocks showed what they show in `minute`, so many days before. Of a
    /// time that clocks showed twice it is the later one, and of a time that they left out the one an hour
    /// later.
    pub(crate) fn days_before(&self, minute: u64, days: u64) -> Option<u64> {
        let by_utc = minute.checked_sub(days * MINUTES_OF_DAY)?;
        let difference = self.offset_at(minute) - self.offset_at(by_utc);
        by_utc.checked_add_signed(i64::from(difference))
    }
}

impl LocalMinute {
    pub(crate) fn hour(self) -> u64 {
        self.0 / MINUTES_OF_HOUR
    }

    pub(crate) fn minute_of_day(self) -> u64 {
        self.0 % MINUTES_OF_DAY
    }

    pub(crate) fn day(self) -> u64 {
        self.0 / MINUTES_OF_DAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-29 01:00 UTC: clocks of Central Europe go from 02:00 to 03:00.
    const SPRING: u64 = 20_541 * MINUTES_OF_DAY + 60;
    /// 2026-10-25 01:00 UTC: they go from 03:00 to 02:00.
    const AUTUMN: u64 = 20_751 * MINUTES_OF_DAY + 60;

    fn central_europe() -> ZoneOffsets {
        let mut zone = ZoneOffsets::fixed(60);
        zone.change_at(SPRING, 120);
        zone.change_at(AUTUMN, 60);
        zone
    }

    #[test]
    fn a_day_of_23_hours_compares_by_local_time() {
        let zone = central_europe();
        // 09:00 of the next day is 07:00 UTC; 09:00 of the day before the change was 08:00 UTC.
        let nine = SPRING - 60 + MINUTES_OF_DAY + 7 * 60;
        assert_eq!(zone.local(nine).0 % MINUTES_OF_DAY, 9 * 60);
        assert_eq!(zone.days_before(nine, 1), Some(nine - MINUTES_OF_DAY));
        assert_eq!(zone.days_before(nine, 2), Some(nine - 2 * MINUTES_OF_DAY + 60));
        // 02:30 was left out.
        let half_past_two = SPRING - 30 + MINUTES_OF_DAY;
        assert_eq!(zone.local(half_past_two).0 % MINUTES_OF_DAY, 150);
        assert_eq!(zone.days_before(half_past_two, 1), Some(SPRING + 30));
    }

    #[test]
    fn a_day_of_25_hours_compares_by_local_time() {
        let zone = central_europe();
        let nine = AUTUMN + 7 * 60;
        assert_eq!(zone.local(nine).0 % MINUTES_OF_DAY, 9 * 60);
        assert_eq!(zone.days_before(nine, 1), Some(nine - MINUTES_OF_DAY - 60));
        // 02:30 of the next day was there twice: the later one counts.
        let half_past_two = AUTUMN + 30 + MINUTES_OF_DAY;
        assert_eq!(zone.days_before(half_past_two, 1), Some(AUTUMN + 30));
        assert_eq!(zone.days_before(10, 1), None);
    }

    #[test]
    fn changes_are_kept_in_order_and_bounded() {
        let mut zone = central_europe();
        zone.change_at(AUTUMN, 90);
        assert_eq!([zone.offset_at(AUTUMN - 1), zone.offset_at(AUTUMN)], [120, 90]);
        zone.change_at(AUTUMN + 10, 90);
        assert_eq!(zone.changes.len(), 2, "that was no change");
        for later in 1..20_u8 {
            zone.change_at(AUTUMN + u64::from(later), i32::from(later));
        }
        assert_eq!(zone.changes.len(), CHANGES_KEPT);
        assert_eq!(zone.offset_at(AUTUMN + 30), 19);
    }
}
