//! Cron patterns as times of a schedule, as far as a schedule can say the same: hours or one time of the day,
//! on days of the week.

use std::cmp::Ordering;

/// The days as a schedule names them, in its order.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// The last hour of a day.
const LAST_HOUR: u32 = 23;

/// The times in which a pattern holds that names hours: `* 7-9 ? * MON-FRI` holds in `Mon-Fri 07:00-10:00`.
/// `None` for a pattern that no schedule can say.
pub(super) fn times_of_hours(pattern: &str) -> Option<Vec<String>> {
    let [minute, hours, days] = time_fields(pattern)?;
    if !is_any(minute) && minute != "0-59" {
        return None;
    }
    let days = days_text(days)?;
    let time = |hours: &str| {
        let (first, last) =
            if is_any(hours) { (0, LAST_HOUR) } else { range(hours, |text| number(text, LAST_HOUR))? };
        (first <= last).then(|| format!("{days}{first:02}:00-{:02}:00", last + 1))
    };
    hours.split(',').map(time).collect()
}

/// The time from one pattern to another, each of which holds in one minute of a day: from `0 6 * * *` until
/// `30 20 * * *` is `06:00-20:30`.
pub(super) fn time_between(start: &str, end: &str) -> Option<String> {
    let [[minute, hour, days], [end_minute, end_hour, end_days]] = [time_fields(start)?, time_fields(end)?];
    if days != end_days {
        return None;
    }
    let of_day = |hour: &str, minute: &str| {
        Some(format!("{:02}:{:02}", number(hour, LAST_HOUR)?, number(minute, 59)?))
    };
    Some(format!("{}{}-{}", days_text(days)?, of_day(hour, minute)?, of_day(end_hour, end_minute)?))
}

/// Minutes, hours and days of the week; `None` where the pattern names days of a month, or months.
fn time_fields(pattern: &str) -> Option<[&str; 3]> {
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    let [minute, hour, day_of_month, month, day_of_week] = fields[..] else { return None };
    (is_any(day_of_month) && is_any(month)).then_some([minute, hour, day_of_week])
}

fn is_any(field: &str) -> bool {
    matches!(field, "*" | "?")
}

/// The first and the last of a range; one value is a range of itself.
fn range<Value>(text: &str, value: impl Fn(&str) -> Option<Value>) -> Option<(Value, Value)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((value(first)?, value(last)?))
}

fn number(text: &str, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| *number <= most)
}

/// The days with a space behind them; nothing for every day.
fn days_text(field: &str) -> Option<String> {
    if is_any(field) {
        return Some(String::new());
    }
    let parts: Option<Vec<String>> = field.split(',').map(|part| range(part, day).map(days_of)).collect();
    Some(format!("{} ", parts?.join(",")))
}

/// A range of days. One that goes past Sunday is a list, for a week of a schedule ends with it.
fn days_of((first, last): (usize, usize)) -> String {
    match first.cmp(&last) {
        Ordering::Equal => DAYS[first].to_owned(),
        Ordering::Less => format!("{}-{}", DAYS[first], DAYS[last]),
        Ordering::Greater => {
            let days: Vec<&str> = (first..=last + DAYS.len()).map(|day| DAYS[day % DAYS.len()]).collect();
            days.join(",")
        }
    }
}

/// The place of a day by its name or its number, of which 0 and 7 are Sunday.
fn day(text: &str) -> Option<usize> {
    if let Some(number) = number(text, 7) {
        return usize::try_from((number + 6) % 7).ok();
    }
    DAYS.iter().position(|day| day.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, times: &[&str]) {
        assert_eq!(
            times_of_hours(pattern),
            Some(times.iter().map(|&time| time.to_owned()).collect()),
            "{pattern}"
        );
    }

    #[test]
    fn hours_and_days_of_the_week_become_times() {
        check("* 7-9 ? * *", &["07:00-10:00"]);
        check("* 17-23 ? * MON-FRI", &["Mon-Fri 17:00-24:00"]);
        check("* 8 * * 1-5", &["Mon-Fri 08:00-09:00"]);
        check("0-59 7,9-10 ? * sat,0", &["Sat,Sun 07:00-08:00", "Sat,Sun 09:00-11:00"]);
        check("* * * * 6-1", &["Sat,Sun,Mon 00:00-24:00"]);
    }

    #[test]
    fn other_patterns_are_no_times() {
        for pattern in
            ["0 7 ? * *", "*/5 7 * * *", "* 9-7 * * *", "* 7 1 * *", "* 7 * 6 *", "* 24 * * *", "* 7", ""]
        {
            assert_eq!(times_of_hours(pattern), None, "{pattern}");
        }
        assert_eq!(times_of_hours("* 7 * * MONDAY#1"), None);
    }

    #[test]
    fn two_patterns_of_the_same_days_are_a_time() {
        let time = |start: &str, end: &str| time_between(start, end);
        assert_eq!(time("0 6 * * *", "30 20 * * *"), Some("06:00-20:30".to_owned()));
        assert_eq!(time("0 22 * * 1-5", "0 6 * * 1-5"), Some("Mon-Fri 22:00-06:00".to_owned()));
        assert_eq!(time("0 22 * * 1-5", "0 6 * * 2-6"), None);
        assert_eq!(time("*/10 6 * * *", "0 7 * * *"), None);
        assert_eq!(time("0 6 1 * *", "0 7 1 * *"), None);
    }
}
