//! How far zones of local time are from UTC, as the database of the machine has it, or the one that comes
//! with this program where the machine has none.
//!
//! The core knows no zones: it names those that its revisions go by, and is told how far local time was from
//! UTC in the past two weeks, how far it is now, and when that changes next.

use std::collections::BTreeSet;
use std::time::Duration;

use forecasting::ZoneOffsets;
use jiff::Timestamp as WallTime;
use jiff::tz::{Offset, TimeZone};
use vocabulary::TimeZoneName;

/// Rules look back for two weeks, and their minutes lie a little before.
const LOOKED_BACK: Duration = Duration::from_hours(15 * 24);
/// The changes that are told from then on. No zone has more within the time that matters.
const CHANGES_TOLD: usize = 3;

/// The zones of both databases.
#[derive(Debug, Default)]
pub(crate) struct LocalZones {
    /// The zones that were looked up in vain, each of which is warned of once.
    missing: BTreeSet<TimeZoneName>,
}

impl LocalZones {
    /// How far a zone is from UTC around this time since the beginning of 1970; `None` for a zone that
    /// neither database has.
    pub(crate) fn offsets(&mut self, zone: &TimeZoneName, since_epoch: Duration) -> Option<ZoneOffsets> {
        match offsets_around(zone, since_epoch) {
            Ok(offsets) => {
                self.missing.remove(zone);
                Some(offsets)
            }
            Err(error) => {
                if self.missing.insert(zone.clone()) {
                    tracing::warn!(
                        %zone,
                        error = &error as &dyn std::error::Error,
                        "time zone not found on this machine, nor in this program; schedules and prediction that go by it rest"
                    );
                }
                None
            }
        }
    }
}

fn offsets_around(zone: &TimeZoneName, since_epoch: Duration) -> Result<ZoneOffsets, jiff::Error> {
    let time_zone = TimeZone::get(zone.as_str())?;
    let seconds = since_epoch.saturating_sub(LOOKED_BACK).as_secs();
    let begin = WallTime::from_second(i64::try_from(seconds).unwrap_or(i64::MAX))?;
    let mut offsets = ZoneOffsets::fixed(minutes_of(time_zone.to_offset(begin)));
    for change in time_zone.following(begin).take(CHANGES_TOLD) {
        // The first of these changes may lie before 1970 for no clock that is right.
        let minute = u64::try_from(change.timestamp().as_second() / 60).unwrap_or(0);
        offsets.change_at(minute, minutes_of(change.offset()));
    }
    Ok(offsets)
}

/// Offsets of present zones are whole minutes.
fn minutes_of(offset: Offset) -> i32 {
    offset.seconds() / 60
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-27 12:00 UTC, a Friday.
    const NOON: u64 = 20_784 * 1440 + 720;

    #[test]
    fn a_zone_with_summer_time_is_told_with_its_next_change() {
        let since_epoch = Duration::from_secs(NOON * 60);
        let mut zones = LocalZones::default();
        let berlin = TimeZoneName::new("Europe/Berlin");
        let offsets = zones.offsets(&berlin, since_epoch).expect("the zone comes with the program");
        let minute_of = |day: u32, minute: u32| vocabulary::WeekMinute::of_day(day, minute);
        assert_eq!(offsets.week_minute(NOON), minute_of(4, 13 * 60));
        // 2027-03-28 12:00 UTC, the Sunday of the change to summer time.
        assert_eq!(offsets.week_minute(NOON + 121 * 1440), minute_of(6, 14 * 60));
        let kolkata = zones.offsets(&TimeZoneName::new("Asia/Kolkata"), since_epoch).expect("as is Berlin");
        assert_eq!(kolkata.week_minute(NOON), minute_of(4, 17 * 60 + 30));
    }

    #[test]
    fn a_zone_that_no_database_has_is_not_told() {
        let mut zones = LocalZones::default();
        assert_eq!(zones.offsets(&TimeZoneName::new("Mars/Olympus"), Duration::from_secs(NOON * 60)), None);
        assert_eq!(zones.missing.len(), 1);
    }
}
