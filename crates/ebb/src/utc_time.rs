//! Times of UTC, as people write them and as files have them.

use std::time::{Duration, UNIX_EPOCH};

use runtime::wall_time;
use time::{Date, Month, OffsetDateTime};

/// The time since the beginning of 1970 by this machine's clock; zero where the clock shows an earlier time.
pub(crate) fn now() -> Duration {
    wall_time().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time since the beginning of 1970 of a date with its time, such as `2026-11-27T12:03:20Z`; `None` for
/// other texts. Seconds and the `Z` may be left out.
pub(crate) fn instant(text: &str) -> Option<Duration> {
    let (date, time) = text.trim_end_matches('Z').split_once(['T', ' '])?;
    Some(midnight(date)? + time_of_day(time)?)
}

/// Hours, minutes and, if they are written, seconds.
pub(crate) fn time_of_day(text: &str) -> Option<Duration> {
    let mut parts = text.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    let is_time = hours < 24 && minutes < 60 && seconds < 60 && parts.next().is_none();
    is_time.then(|| Duration::from_secs(hours * 3_600 + minutes * 60 + seconds))
}

/// The text of a time since the beginning of 1970, in whole minutes, as [`instant`] reads it; `None` for a
/// time that no calendar has.
pub(crate) fn shown_minute(since_epoch: Duration) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(since_epoch.as_secs()).ok()?).ok()?;
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    Some(format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}Z", at.hour(), at.minute()))
}

/// The beginning of a day, after that of 1970.
fn midnight(date: &str) -> Option<Duration> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let seconds = u64::try_from(date.midnight().assume_utc().unix_timestamp()).ok()?;
    parts.next().is_none().then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_shown_is_read_again() {
        let at = Duration::from_secs(1_795_737_600 + 12 * 3_600 + 3 * 60);
        assert_eq!(shown_minute(at).as_deref(), Some("2026-11-27T12:03Z"));
        assert_eq!(instant("2026-11-27T12:03Z"), Some(at));
        assert_eq!(instant("2026-11-27 12:03:20"), Some(at + Duration::from_secs(20)));
        for text in ["", "12:03", "2026-11-27", "2026-13-01T00:00", "yesterday at noon"] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
