//! The past demand of a revision in a file of the form that loads of the simulator have.
//!
//! Its lines are requests, or counts of requests. They do not say on which day the requests came, nor how
//! many were in flight at once. Comments say it, which the simulator passes over:
//!
//! ```text
//! # begins 2026-11-12T00:00Z      when the first line begins, by UTC
//! # bin 1m                        the span that each line counts; without it each line is one request
//! # service-time 100ms            how long a request takes, where requests in flight are meant
//! # missing 120                   the next 120 lines were not measured
//! ```

use std::ops::Range;
use std::time::Duration;

use autoscaler::api_types::DemandView;
use simulator::LoadFile;
use vocabulary::{format_duration, parse_duration, shown};

use crate::utc_time::{instant, shown_minute};

const MINUTE: u64 = 60;
const MINUTE_SECONDS: f64 = 60.0;
/// Fifteen days are kept; a file of more than four times as much is taken for a mistake.
const SECONDS_MAX: u64 = 60 * 24 * 60 * 60;
/// The most minutes that are sent: those of the fifteen days that are kept, and of the present day.
const MINUTES_MAX: usize = 16 * 24 * 60;
/// How long a request is taken to last in a file that is written, where requests in flight are counted: short
/// enough that a part of a request in flight is some requests.
const SERVICE_TIME: Duration = Duration::from_millis(100);

/// What a file says beside its requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FileNotes {
    /// When the first line begins, since 1970.
    pub(super) begins: Option<Duration>,
    /// The span that each line counts.
    pub(super) bin: Option<Duration>,
    /// How long a request takes.
    pub(super) service_time: Option<Duration>,
    /// The lines that were not measured, counted from 0.
    missing: Vec<Range<u64>>,
    /// How many lines were taken in, without comments and the heading.
    lines: u64,
}

/// Minutes that follow one another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PastMinutes {
    /// When the first of them begins, since 1970.
    pub(super) begins: Duration,
    /// The mean and the greatest second of each, where it was measured.
    pub(super) minutes: Vec<Option<[f64; 2]>>,
}

impl FileNotes {
    /// Takes in the next line of the file.
    pub(super) fn take_line(&mut self, line: &str) -> Result<(), String> {
        let Some(comment) = line.trim().strip_prefix('#') else {
            self.lines += u64::from(line.trim() != "value");
            return Ok(());
        };
        let words: Vec<&str> = comment.split_whitespace().collect();
        let [key, value] = words[..] else { return Ok(()) };
        let flaw =
            |advice: &str| format!("the comment {} cannot be read; write {advice}", shown(line.trim()));
        match key {
            "begins" => {
                let begins = instant(value).ok_or_else(|| flaw("# begins 2026-11-27T00:00Z"))?;
                self.begins = Some(begins);
            }
            "bin" => self.bin = Some(parse_duration(value).map_err(|_| flaw("# bin 1m"))?),
            "service-time" => {
                self.service_time = Some(parse_duration(value).map_err(|_| flaw("# service-time 100ms"))?);
            }
            "missing" => {
                let count: u64 = value.parse().map_err(|_| flaw("# missing 120"))?;
                self.missing.push(self.lines..self.lines.saturating_add(count));
            }
            _ => {}
        }
        Ok(())
    }

    /// The minutes that the requests of the file make, in the unit of this metric.
    pub(super) fn minutes(&self, file: &LoadFile, metric: &str) -> Result<PastMinutes, String> {
        let begins = self.begins.ok_or(
            "it does not say when it begins; write --begins 2026-11-27T00:00, or the same as a line: # begins 2026-11-27T00:00Z",
        )?;
        let unit = if metric == "rps" {
            DemandUnit::RequestsPerSecond
        } else {
            DemandUnit::InFlight { service_time: self.service_time }
        };
        let seconds = FileSeconds::of(file, unit)?;
        let first = begins.as_secs().div_ceil(MINUTE);
        let skipped = first * MINUTE - begins.as_secs();
        let mut minutes = Vec::new();
        let whole =
            seconds.demand.get(as_usize(skipped)..).unwrap_or_default().chunks_exact(as_usize(MINUTE));
        for (minute, demand) in (0..).zip(whole) {
            let at = skipped + minute * MINUTE;
            let is_missing = self.missing.iter().any(|lines| {
                lines.start * seconds.of_line < at + MINUTE && at < lines.end.saturating_mul(seconds.of_line)
            });
            let mean = demand.iter().sum::<f64>() / MINUTE_SECONDS;
            // The sum of parts may lie a hair above sixty times the greatest.
            let maximum = demand.iter().copied().fold(mean, f64::max);
            minutes.push((!is_missing).then_some([mean, maximum]));
        }
        let dropped = minutes.len().saturating_sub(MINUTES_MAX);
        let minutes = minutes.split_off(dropped);
        let begins = first + u64::try_from(dropped).unwrap_or(u64::MAX);
        Ok(PastMinutes { begins: Duration::from_secs(begins * MINUTE), minutes })
    }
}

/// What a demand is counted in.
#[derive(Clone, Copy, Debug)]
enum DemandUnit {
    RequestsPerSecond,
    /// Requests in flight, of which each takes so long unless the file says it better.
    InFlight {
        service_time: Option<Duration>,
    },
}

/// The demand of a file by the second.
struct FileSeconds {
    demand: Vec<f64>,
    /// How many seconds a line tells of; no line of single requests can be missing.
    of_line: u64,
}

impl FileSeconds {
    fn of(file: &LoadFile, unit: DemandUnit) -> Result<Self, String> {
        let span = file.span().as_secs();
        if span > SECONDS_MAX {
            let (span, most) = (Duration::from_secs(span), Duration::from_secs(SECONDS_MAX));
            let (span, most) = (format_duration(span), format_duration(most));
            return Err(format!(
                "it tells of {span}, and the last fifteen days are kept; write at most {most}"
            ));
        }
        match file {
            LoadFile::Counts { bin, counts } => {
                let seconds = bin.as_secs();
                let is_even =
                    seconds > 0 && (MINUTE.is_multiple_of(seconds) || seconds.is_multiple_of(MINUTE));
                if bin.subsec_nanos() > 0 || !is_even {
                    let bin = format_duration(*bin);
                    return Err(format!(
                        "its bins are of {bin}; write bins of whole minutes, or of 1s, 2s, 5s, 10s, 15s, 20s or 30s"
                    ));
                }
                let weight = match unit {
                    DemandUnit::RequestsPerSecond => 1.0,
                    DemandUnit::InFlight { service_time } => {
                        service_time.ok_or_else(no_service_time)?.as_secs_f64()
                    }
                };
                let factor = weight / bin.as_secs_f64();
                let of_bin = |count: &u32| std::iter::repeat_n(f64::from(*count) * factor, as_usize(seconds));
                Ok(Self { demand: counts.iter().flat_map(of_bin).collect(), of_line: seconds })
            }
            LoadFile::Requests(requests) => {
                // The second of the last request is not over, as far as the file tells.
                let mut demand = vec![0.0; as_usize(span)];
                for request in requests.iter() {
                    match unit {
                        DemandUnit::RequestsPerSecond => add(&mut demand, request.at.as_secs(), 1.0),
                        DemandUnit::InFlight { service_time } => {
                            let time = request.service_time.or(service_time).ok_or_else(no_service_time)?;
                            add_in_flight(&mut demand, request.at.as_secs_f64(), time.as_secs_f64());
                        }
                    }
                }
                Ok(Self { demand, of_line: 0 })
            }
        }
    }
}

/// A request is in flight for so many seconds.
fn add_in_flight(demand: &mut [f64], at: f64, time: f64) {
    let end = at + time;
    let first = Duration::from_secs_f64(at).as_secs();
    for (second, begins) in (first..).map(|second| (second, Duration::from_secs(second).as_secs_f64())) {
        let within = end.min(begins + 1.0) - at.max(begins);
        if within <= 0.0 || as_usize(second) >= demand.len() {
            return;
        }
        add(demand, second, within);
    }
}

fn add(demand: &mut [f64], second: u64, amount: f64) {
    if let Some(known) = demand.get_mut(as_usize(second)) {
        *known += amount;
    }
}

/// A number as a length or a place; the greatest one where this machine has no such number.
fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn no_service_time() -> String {
    "requests in flight follow from it only with the time that a request takes; write --service-time 100ms, or the same as a line: # service-time 100ms".to_owned()
}

/// The file of what an autoscaler remembers, when the clock shows this time since 1970.
pub(super) fn file_of(past: &DemandView, service_time: Option<Duration>, now: Duration) -> String {
    let ago = Duration::from_millis(past.first_ms_ago);
    // Clocks of two machines differ a little, and minutes are whole ones there.
    let begins = (now.saturating_sub(ago) + Duration::from_secs(MINUTE / 2)).as_secs() / MINUTE;
    let begins = shown_minute(Duration::from_secs(begins * MINUTE)).unwrap_or_default();
    let mut lines =
        vec![format!("# {} by the minute", past.name), format!("# begins {begins}"), "# bin 1m".to_owned()];
    let mut requests_of_one = MINUTE_SECONDS;
    if past.metric != "rps" {
        let service_time = service_time.unwrap_or(SERVICE_TIME);
        lines.push(format!("# service-time {}", format_duration(service_time)));
        requests_of_one /= service_time.as_secs_f64();
    }
    for run in past.minutes.chunk_by(|one, other| one.is_some() == other.is_some()) {
        if run.contains(&None) {
            lines.push(format!("# missing {}", run.len()));
        }
        let mean = |minute: &Option<[f64; 2]>| minute.map_or(0.0, |[mean, _]| mean);
        lines.extend(run.iter().map(|minute| format!("{:.0}", mean(minute) * requests_of_one)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use simulator::LoadFileReader;
    use vocabulary::RevisionName;

    use super::*;

    const BEGINS: u64 = 1_795_737_600;

    /// What is read of a text.
    fn read(text: &str, metric: &str) -> Result<PastMinutes, String> {
        let mut notes = FileNotes::default();
        for line in text.lines() {
            notes.take_line(line)?;
        }
        let mut reader = LoadFileReader::new(notes.bin);
        for line in text.lines() {
            reader.take_line(line).map_err(|problem| problem.to_string())?;
        }
        notes.minutes(&reader.finish().expect("it has lines"), metric)
    }

    fn near(minutes: &[Option<[f64; 2]>], expected: &[Option<[f64; 2]>]) {
        let is_near = |one: &Option<[f64; 2]>, other: &Option<[f64; 2]>| match (one, other) {
            (Some(one), Some(other)) => one.iter().zip(other).all(|(one, other)| (one - other).abs() < 0.01),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let are_near = minutes.iter().zip(expected).all(|(one, other)| is_near(one, other));
        assert!(minutes.len() == expected.len() && are_near, "{minutes:?}, not {expected:?}");
    }

    #[test]
    fn a_file_that_was_written_is_read_as_what_was_remembered() {
        let minutes = vec![Some([2.0, 2.0]), None, None, Some([0.0, 0.0]), Some([0.05, 0.05])];
        for metric in ["concurrency", "rps"] {
            let past = DemandView {
                version: 1,
                name: RevisionName::parse("default/service/hello").expect("a name"),
                owner: None,
                metric: metric.to_owned(),
                first_ms_ago: 7 * 60_000 + 17,
                minutes: minutes.clone(),
            };
            let text = file_of(&past, None, Duration::from_secs(BEGINS + 7 * 60));
            assert!(text.contains("# begins 2026-11-27T00:00Z\n# bin 1m\n"), "{text}");
            assert!(text.contains("\n# missing 2\n0\n0\n"), "{text}");
            let again = read(&text, metric).expect("it was just written");
            assert_eq!(again.begins, Duration::from_secs(BEGINS));
            near(&again.minutes, &minutes);
        }
    }

    #[test]
    fn counts_and_requests_are_demand_of_whole_minutes() {
        let counts = "# begins 2026-11-26T23:59:40Z\n# bin 20s\n600\n20\n40\n180\n20\n";
        let past = read(counts, "rps").expect("it is whole");
        assert_eq!(past.begins, Duration::from_secs(BEGINS));
        near(&past.minutes, &[Some([4.0, 9.0])]);
        let in_flight = counts.replace("# bin", "# service-time 500ms\n# bin");
        near(&read(&in_flight, "concurrency").expect("it is whole").minutes, &[Some([2.0, 4.5])]);
        let requests = "# begins 2026-11-27T00:00Z\n0.5,1\n0.5,30\n59.5,20\n61\n130\n";
        near(
            &read(&requests.replace("61", "61,0").replace("130", "130,0"), "concurrency")
                .expect("it is whole")
                .minutes,
            &[Some([31.5 / 60.0, 1.5]), Some([19.5 / 60.0, 1.0])],
        );
        near(
            &read(requests, "rps").expect("it is whole").minutes,
            &[Some([3.0 / 60.0, 2.0]), Some([1.0 / 60.0, 1.0])],
        );
    }

    #[test]
    fn a_file_that_leaves_something_out_names_it() {
        for (text, metric, expected) in [
            ("# bin 1m\n5\n", "rps", "it does not say when it begins; write --begins"),
            ("# begins 2026-11-27T00:00Z\n# bin 1m\n5\n", "concurrency", "write --service-time 100ms"),
            ("# begins 2026-11-27T00:00Z\n1,2\n5\n", "concurrency", "write --service-time 100ms"),
            ("# begins 2026-11-27T00:00Z\n# bin 7s\n5\n", "rps", "its bins are of 7s; write bins of whole"),
            ("# begins noon\n5\n", "rps", "the comment \"# begins noon\" cannot be read; write # begins"),
            ("# missing some\n5\n", "rps", "write # missing 120"),
            ("# begins 2026-11-27T00:00Z\n# bin 24h\n5\n", "rps", ""),
        ] {
            match read(text, metric) {
                Ok(past) => assert_eq!((past.minutes.len(), expected), (1440, ""), "{text}"),
                Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{text}: {error}"),
            }
        }
    }
}
