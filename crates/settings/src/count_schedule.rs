//! The lines of a schedule: `Mon-Fri 07:00-10:00 min=5 max=20`.
//!
//! Days come first and may be left out; several are separated by commas. A time that does not end after its
//! begin goes past midnight.

use vocabulary::{CountSchedule, Findings, PodCount, Problem, ScheduleLine, Weekdays, did_you_mean, shown};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MINUTES_OF_DAY: u32 = 24 * 60;
const EXAMPLE: &str = "write lines such as \"Mon-Fri 07:00-10:00 min=5 max=20\"";

/// Why a line is none, as the end of a sentence that names it.
type LineFlaw = String;

/// The bounds of a line, in the order in which they are written.
#[derive(Clone, Copy, Default)]
struct LineBounds {
    min: Option<PodCount>,
    max: Option<PodCount>,
}

/// Reads a schedule, one line below the other; `place` is where it is written. Every line that is wrong is
/// told at once.
pub fn read_count_schedule(place: &str, text: &str) -> Result<CountSchedule, Vec<Problem>> {
    let mut findings = Findings::default();
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match read_line(line) {
            Ok(line) => lines.push(line),
            Err(flaw) => findings.refuse_place(place, &format!("has the line {}, {flaw}", shown(line))),
        }
    }
    if lines.is_empty() && findings.problems.is_empty() {
        findings.refuse_place(place, &format!("is empty; {EXAMPLE}"));
    }
    let is_whole = findings.problems.is_empty();
    let schedule = CountSchedule::new(lines).unwrap_or_else(|contradiction| {
        // Lines are told by their places among those that can be read.
        if is_whole {
            findings.refuse_place(place, &format!("contradicts itself: {contradiction}; change one of them"));
        }
        CountSchedule::default()
    });
    findings.finish(schedule).map(|checked| checked.value)
}

/// What no count could obey: a line that asks for more pods than `max-scale` allows, or that allows fewer
/// than `min-scale` asks for.
pub fn check_schedule_bounds(
    place: &str,
    schedule: &CountSchedule,
    min_scale: PodCount,
    max_scale: Option<PodCount>,
) -> Vec<Problem> {
    let mut findings = Findings::default();
    for (number, line) in (1..).zip(schedule.lines()) {
        if let Some(min) = line.min
            && let Some(max_scale) = max_scale.filter(|max_scale| min > *max_scale)
        {
            let flaw = format!("line {number} asks for at least {min} pods, but max-scale is {max_scale}");
            findings.refuse_place(place, &format!("{flaw}; lower the one or raise the other"));
        }
        if let Some(max) = line.max.filter(|max| *max < min_scale) {
            let flaw = format!("line {number} allows at most {max} pods, but min-scale is {min_scale}");
            findings.refuse_place(place, &format!("{flaw}; raise the one or lower the other"));
        }
    }
    findings.problems
}

fn read_line(line: &str) -> Result<ScheduleLine, LineFlaw> {
    let mut words = line.split_whitespace().peekable();
    let days = match words.next_if(|word| !word.contains([':', '='])) {
        Some(word) => read_days(word)?,
        None => Weekdays::EVERY,
    };
    let time = words.next().ok_or_else(|| format!("which has no time; {EXAMPLE}"))?;
    let [from, to] = read_time(time)?;
    let bounds = read_bounds(words)?;
    Ok(ScheduleLine { days, from, to, min: bounds.min, max: bounds.max })
}

fn read_days(word: &str) -> Result<Weekdays, LineFlaw> {
    let mut days: Option<Weekdays> = None;
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = Weekdays::between(read_day(first)?, read_day(last)?);
        days = Some(days.map_or(read, |days| days.and(read)));
    }
    days.ok_or_else(|| format!("whose days are missing; {EXAMPLE}"))
}

fn read_day(word: &str) -> Result<u32, LineFlaw> {
    let known = (0..).zip(DAYS).find(|(_, day)| day.eq_ignore_ascii_case(word));
    known.map(|(day, _)| day).ok_or_else(|| {
        let likely = did_you_mean(word, DAYS);
        format!("where {} is no day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun{likely}", shown(word))
    })
}

fn read_time(word: &str) -> Result<[u32; 2], LineFlaw> {
    let flaw = || format!("where {} is no time; write one such as 07:00-10:00, up to 24:00", shown(word));
    let (from, to) = word.split_once('-').ok_or_else(flaw)?;
    let [from, to] = [minute_of_day(from).ok_or_else(flaw)?, minute_of_day(to).ok_or_else(flaw)?];
    if from == to {
        return Err(format!("where {} ends as it begins; write 00:00-24:00 for a whole day", shown(word)));
    }
    if from == MINUTES_OF_DAY { Err(flaw()) } else { Ok([from, to]) }
}

/// The minute of a day that is written with two digits for hour and minute, 24:00 included.
fn minute_of_day(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| is_plain)
    };
    let minute = number(minute).filter(|minute| *minute < 60)?;
    Some(number(hour)? * 60 + minute).filter(|minute| *minute <= MINUTES_OF_DAY)
}

fn read_bounds<'t>(words: impl Iterator<Item = &'t str>) -> Result<LineBounds, LineFlaw> {
    let mut bounds = LineBounds::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let bound = match key {
            "min" => &mut bounds.min,
            "max" => &mut bounds.max,
            _ => return Err(format!("where {} is neither min=… nor max=…; {EXAMPLE}", shown(word))),
        };
        let is_plain = value.bytes().all(|digit| digit.is_ascii_digit());
        let count = value.parse::<u32>().ok().filter(|count| is_plain && *count <= PodCount::MAX.value());
        let count = count.ok_or_else(|| {
            format!("where {} is no number of pods; write 0 to {}", shown(word), PodCount::MAX)
        })?;
        if bound.replace(PodCount::new(count)).is_some() {
            return Err(format!("which has {key} twice; leave one of them out"));
        }
    }
    match bounds {
        LineBounds { min: None, max: None } => Err(format!("which sets neither min nor max; {EXAMPLE}")),
        LineBounds { max: Some(PodCount::ZERO), .. } => {
            Err("where max=0 would refuse every request; write 1 or more".to_owned())
        }
        LineBounds { min: Some(min), max: Some(max) } if min > max => {
            Err(format!("where min={min} is more than max={max}; exchange them"))
        }
        bounds => Ok(bounds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "annotation ebb.dev/schedule of default/hello";

    fn line(days: Weekdays, [from, to]: [u32; 2], bounds: [Option<u32>; 2]) -> ScheduleLine {
        let [min, max] = bounds.map(|bound| bound.map(PodCount::new));
        ScheduleLine { days, from, to, min, max }
    }

    #[test]
    fn lines_are_read_in_every_form() {
        let text = "Mon-Fri 07:00-10:00 min=5 max=20\n\n  sat,Sun 10:30-24:00 max=4\n22:00-06:00 min=1\n";
        let schedule = read_count_schedule(PLACE, text).expect("it is well written");
        let weekend = Weekdays::between(5, 6);
        assert_eq!(
            schedule.lines(),
            [
                line(Weekdays::between(0, 4), [420, 600], [Some(5), Some(20)]),
                line(weekend, [630, 1440], [None, Some(4)]),
                line(Weekdays::EVERY, [1320, 360], [Some(1), None]),
            ]
        );
    }

    #[test]
    fn a_line_beyond_the_bounds_of_the_revision_is_refused() {
        let text = "07:00-10:00 min=5 max=20\n12:00-13:00 max=2";
        let schedule = read_count_schedule(PLACE, text).expect("it is well written");
        let check = |min: u32, max: Option<u32>| -> Vec<String> {
            let problems =
                check_schedule_bounds(PLACE, &schedule, PodCount::new(min), max.map(PodCount::new));
            problems.into_iter().map(|problem| problem.message.replace(PLACE, "")).collect()
        };
        assert!(check(2, Some(5)).is_empty() && check(0, None).is_empty());
        assert_eq!(
            check(3, Some(4)),
            [
                " line 1 asks for at least 5 pods, but max-scale is 4; lower the one or raise the other",
                " line 2 allows at most 2 pods, but min-scale is 3; raise the one or lower the other",
            ]
        );
    }

    #[track_caller]
    fn check(text: &str, flaws: &[&str]) {
        let problems = read_count_schedule(PLACE, text).expect_err("something is wrong with it");
        let said: Vec<&str> =
            problems.iter().map(|problem| problem.message.strip_prefix(PLACE).unwrap_or_default()).collect();
        assert_eq!(said, flaws);
        assert!(problems.iter().all(|problem| problem.key == PLACE));
    }

    #[test]
    fn every_line_that_is_wrong_is_told_with_what_to_write() {
        check(
            "Mo 07:00-10:00 min=5\nMon 7-10 min=5\nMon 07:00-10:00",
            &[
                " has the line \"Mo 07:00-10:00 min=5\", where \"Mo\" is no day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun; did you mean Mon?",
                " has the line \"Mon 7-10 min=5\", where \"7-10\" is no time; write one such as 07:00-10:00, up to 24:00",
                " has the line \"Mon 07:00-10:00\", which sets neither min nor max; write lines such as \"Mon-Fri 07:00-10:00 min=5 max=20\"",
            ],
        );
        check(
            "07:00-07:00 min=5\n07:00-24:01 min=5\n07:00-10:00 min=5 min=6\n07:00-10:00 mni=5",
            &[
                " has the line \"07:00-07:00 min=5\", where \"07:00-07:00\" ends as it begins; write 00:00-24:00 for a whole day",
                " has the line \"07:00-24:01 min=5\", where \"07:00-24:01\" is no time; write one such as 07:00-10:00, up to 24:00",
                " has the line \"07:00-10:00 min=5 min=6\", which has min twice; leave one of them out",
                " has the line \"07:00-10:00 mni=5\", where \"mni=5\" is neither min=… nor max=…; write lines such as \"Mon-Fri 07:00-10:00 min=5 max=20\"",
            ],
        );
        check(
            "07:00-10:00 min=-1\n07:00-10:00 max=0\n07:00-10:00 min=6 max=5",
            &[
                " has the line \"07:00-10:00 min=-1\", where \"min=-1\" is no number of pods; write 0 to 2147483647",
                " has the line \"07:00-10:00 max=0\", where max=0 would refuse every request; write 1 or more",
                " has the line \"07:00-10:00 min=6 max=5\", where min=6 is more than max=5; exchange them",
            ],
        );
        check(" \n", &[" is empty; write lines such as \"Mon-Fri 07:00-10:00 min=5 max=20\""]);
        check(
            "07:00-10:00 max=5\nTue 09:00-12:00 min=6",
            &[
                " contradicts itself: line 2 asks for at least 6 pods while line 1 allows at most 5; change one of them",
            ],
        );
    }
}
