//! How is a load written in a file?
//!
//! Either each line is the number of requests that arrived in one bin of time, or each line is one request:
//! the seconds from the beginning of the load until its arrival and, where that is known, the seconds of its
//! work:
//!
//! ```text
//!   120            12.5
//!   0              12.75,0.081
//!   98             13
//! ```
//!
//! Lines that begin with `#` say nothing, nor does a first line `value`, which is the name of the only
//! column. A first line of Azure Functions says that what follows is in one of their two forms. The caller
//! opens the file and hands in its lines.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use vocabulary::shown;

use crate::azure_trace::{self, AzureCounts, COUNTS_HEADER, FunctionChoice, REQUESTS_HEADER, TraceFlaw};
use crate::random::span_of;

/// More requests in a second than any simulation gets through.
const REQUESTS_PER_SECOND_MAX: u64 = 1_000_000;
/// So many requests take more than a gigabyte of memory.
const LINES_MAX: u64 = 50_000_000;
/// A year has so many seconds at most.
const SECONDS_MAX: f64 = 31_622_400.0;

/// The name of the only column, as a first line may have it.
const ONLY_COLUMN: &str = "value";
/// The bins of Azure Functions' counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The requests of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFile {
    /// How many requests arrived in each bin of time.
    Counts {
        /// The length of each bin, above zero.
        bin: Duration,
        /// The numbers of requests, bin by bin.
        counts: Arc<[u32]>,
    },
    /// Every single request, in the order of arrival.
    Requests(Arc<[ListedRequest]>),
}

/// One request of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedRequest {
    /// When it arrives, as a time since the load began.
    pub at: Duration,
    /// The work of its app, if the file says it.
    pub service_time: Option<Duration>,
}

impl LoadFile {
    /// How much time the file tells of: all of its bins, or the time until its last request.
    pub fn span(&self) -> Duration {
        match self {
            Self::Counts { bin, counts } => {
                bin.saturating_mul(u32::try_from(counts.len()).unwrap_or(u32::MAX))
            }
            Self::Requests(requests) => requests.last().map_or(Duration::ZERO, |last| last.at),
        }
    }
}

/// Why a line of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} is {}, which {flaw}", shown(.text))]
pub struct LoadLineProblem {
    line: u64,
    text: String,
    /// Ends the sentence and says what is allowed.
    flaw: String,
}

/// Takes in the lines of a file, one by one.
#[derive(Debug)]
pub struct LoadFileReader {
    lines: LoadLines,
    /// How many lines were taken in.
    count: u64,
    /// No line has said anything yet, so that the next one may name columns.
    awaits_header: bool,
    choice: FunctionChoice,
}

/// The counts or requests that the lines have given so far.
#[derive(Debug)]
enum LoadLines {
    Counts {
        bin: Duration,
        counts: Vec<u32>,
    },
    Requests(Vec<ListedRequest>),
    AzureCounts(AzureCounts),
    /// In the order of their ends.
    AzureRequests(Vec<ListedRequest>),
}

impl LoadFileReader {
    /// A reader of numbers for bins of this length or, without a length, of single requests.
    pub fn new(bin: Option<Duration>) -> Self {
        let lines = match bin {
            Some(bin) => LoadLines::Counts { bin, counts: Vec::new() },
            None => LoadLines::Requests(Vec::new()),
        };
        Self { lines, count: 0, awaits_header: true, choice: FunctionChoice::default() }
    }

    /// Takes in the requests of one function or app alone, which the beginning of its hash names. Files of
    /// Azure Functions alone tell functions apart: any other file is refused.
    #[must_use]
    pub fn of_function(self, function: Option<&str>) -> Self {
        Self { choice: FunctionChoice(function.map(str::to_owned)), ..self }
    }

    /// Takes in the next line.
    pub fn take_line(&mut self, line: &str) -> Result<(), LoadLineProblem> {
        self.count += 1;
        let text = line.trim();
        if text.starts_with('#') {
            return Ok(());
        }
        if self.count > LINES_MAX {
            let flaw =
                format!("comes after {LINES_MAX} lines, the most that are read; write numbers for bins");
            return Err(LoadLineProblem { line: self.count, text: text.to_owned(), flaw });
        }
        let taken = if std::mem::take(&mut self.awaits_header) {
            self.take_first(text)
        } else {
            self.take_next(text)
        };
        taken.map_err(|TraceFlaw { text, flaw }| LoadLineProblem { line: self.count, text, flaw })
    }

    /// Takes in the first line, which may name columns.
    fn take_first(&mut self, text: &str) -> Result<(), TraceFlaw> {
        if text.starts_with(COUNTS_HEADER) {
            self.lines = LoadLines::AzureCounts(AzureCounts::new(text, self.choice.clone()));
            return Ok(());
        }
        if text == REQUESTS_HEADER {
            self.lines = LoadLines::AzureRequests(Vec::new());
            return Ok(());
        }
        if let Some(function) = &self.choice.0 {
            let flaw = format!(
                "begins no trace of Azure Functions, and no other file tells functions apart; leave #{function} out"
            );
            return Err(TraceFlaw { text: text.to_owned(), flaw });
        }
        if text == ONLY_COLUMN { Ok(()) } else { self.take_next(text) }
    }

    fn take_next(&mut self, text: &str) -> Result<(), TraceFlaw> {
        let whole_line = |flaw| TraceFlaw { text: text.to_owned(), flaw };
        match &mut self.lines {
            LoadLines::Counts { bin, counts } => {
                counts.push(count_in(text, *bin).map_err(whole_line)?);
            }
            LoadLines::Requests(requests) => {
                requests.push(request_in(text, requests.last().copied()).map_err(whole_line)?);
            }
            LoadLines::AzureCounts(counts) => counts.take_line(text)?,
            LoadLines::AzureRequests(requests) => {
                let request = azure_trace::request_in(text, &self.choice)?;
                requests.extend(request.map(|request| ListedRequest {
                    at: span_of(request.arrives),
                    service_time: Some(span_of(request.lasts)),
                }));
            }
        }
        Ok(())
    }

    /// The load that the lines say; `None` if they say nothing.
    pub fn finish(self) -> Option<LoadFile> {
        match self.lines {
            LoadLines::Counts { bin, counts } => {
                (!counts.is_empty()).then(|| LoadFile::Counts { bin, counts: counts.into() })
            }
            LoadLines::Requests(requests) => {
                (!requests.is_empty()).then(|| LoadFile::Requests(requests.into()))
            }
            LoadLines::AzureCounts(counts) => {
                let counts = counts.finish()?;
                Some(LoadFile::Counts { bin: MINUTE, counts: counts.into() })
            }
            LoadLines::AzureRequests(mut requests) => {
                requests.sort_by_key(|request| request.at);
                (!requests.is_empty()).then(|| LoadFile::Requests(requests.into()))
            }
        }
    }
}

fn count_in(text: &str, bin: Duration) -> Result<u32, String> {
    let most = REQUESTS_PER_SECOND_MAX.saturating_mul(bin.as_secs().max(1));
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let count = text.parse::<u32>().ok().filter(|count| *count <= most);
    count.ok_or_else(|| {
        let advice = format!("the number of requests in the bin, a whole number from 0, for none, to {most}");
        flaw_of(text, &advice)
    })
}

fn request_in(text: &str, before: Option<ListedRequest>) -> Result<ListedRequest, String> {
    let (at, service_time) = match text.split_once(',') {
        Some((at, work)) => (seconds_in(at)?, Some(seconds_in(work)?)),
        None => (seconds_in(text)?, None),
    };
    if before.is_some_and(|before| at < before.at) {
        return Err(
            "arrives before the request of the line above; sort the lines by their first number".to_owned()
        );
    }
    Ok(ListedRequest { at, service_time })
}

fn seconds_in(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.map(span_of).ok_or_else(|| {
        let advice = format!(
            "SECONDS or SECONDS,WORK: when the request arrives after the load began and how long its app works, each from 0 to {SECONDS_MAX} s"
        );
        flaw_of(text, &advice)
    })
}

fn flaw_of(text: &str, advice: &str) -> String {
    let fault = if text.is_empty() {
        "is a gap"
    } else if text.starts_with('-') {
        "is negative"
    } else {
        "cannot be read or is too great"
    };
    format!("{fault}; write {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, bin: Option<Duration>) -> Result<Option<LoadFile>, LoadLineProblem> {
        let mut reader = LoadFileReader::new(bin);
        for line in text.split_inclusive('\n') {
            reader.take_line(line)?;
        }
        Ok(reader.finish())
    }

    #[test]
    fn a_list_of_counts_and_a_list_of_requests_are_read() {
        let counts = read("# per minute\n120\n0\n 98 \n", Some(Duration::from_secs(60))).expect("good lines");
        let counts = counts.expect("three bins");
        assert_eq!(counts, LoadFile::Counts { bin: Duration::from_secs(60), counts: [120, 0, 98].into() });
        assert_eq!(counts.span(), Duration::from_secs(180));
        let requests =
            read("12.5\n12.75, 0.081\n12.75\n", None).expect("good lines").expect("three requests");
        let of = |at: u64, work: Option<u64>| ListedRequest {
            at: Duration::from_millis(at),
            service_time: work.map(Duration::from_millis),
        };
        let expected = [of(12_500, None), of(12_750, Some(81)), of(12_750, None)];
        assert_eq!(requests, LoadFile::Requests(expected.into()));
        assert_eq!(requests.span(), Duration::from_millis(12_750));
        assert_eq!(read("# nothing\n", None), Ok(None));
    }

    fn read_trace(text: &str, function: Option<&str>) -> Result<Option<LoadFile>, LoadLineProblem> {
        let mut reader = LoadFileReader::new(None).of_function(function);
        for line in text.lines() {
            reader.take_line(line)?;
        }
        Ok(reader.finish())
    }

    const DAY_OF_2019: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\no,a1,f1,http,1,0,2\no,a1,f2,timer,5,5,5\no,a2,f3,queue,0,9,0\n";

    #[test]
    fn counts_of_azure_functions_are_added_up_over_functions_and_days() {
        let counts = |text: &str, function: Option<&str>| match read_trace(text, function) {
            Ok(Some(LoadFile::Counts { bin, counts })) => {
                assert_eq!(bin, MINUTE);
                counts.to_vec()
            }
            other => panic!("{function:?}: {other:?}"),
        };
        assert_eq!(counts(DAY_OF_2019, None), [6, 14, 7]);
        assert_eq!(counts(DAY_OF_2019, Some("f2")), [5, 5, 5]);
        assert_eq!(counts(DAY_OF_2019, Some("a1")), [6, 5, 7]);
        let two_days = format!("{DAY_OF_2019}{DAY_OF_2019}");
        assert_eq!(counts(&two_days, Some("f3")), [0, 9, 0, 0, 9, 0]);
        assert_eq!(read_trace(DAY_OF_2019, Some("f9")), Ok(None));
    }

    #[test]
    fn requests_of_azure_functions_are_sorted_by_their_beginning() {
        let text = "app,func,end_timestamp,duration\na1,f1,10.5,0.5\na1,f2,11,9\na2,f3,12,0\na2,f3,1,3\n";
        let of = |at: u64, work: u64| ListedRequest {
            at: Duration::from_secs(at),
            service_time: Some(Duration::from_millis(work)),
        };
        let all = [of(0, 3_000), of(2, 9_000), of(10, 500), of(12, 0)];
        assert_eq!(read_trace(text, None), Ok(Some(LoadFile::Requests(all.into()))));
        let one = [of(0, 3_000), of(12, 0)];
        assert_eq!(read_trace(text, Some("a2")), Ok(Some(LoadFile::Requests(one.into()))));
    }

    #[test]
    fn a_problem_of_a_trace_names_line_value_and_what_is_allowed() {
        let counts = "HashOwner,HashApp,HashFunction,Trigger,1,2\n";
        let requests = "app,func,end_timestamp,duration\n";
        for (text, function, expected) in [
            (format!("{counts}o,a,f,http,1,x\n"), None, "line 2 is \"x\", which is no number of requests"),
            (
                format!("{counts}o,a,f,http,1\n"),
                None,
                "which has too few columns; write owner, app, function",
            ),
            (format!("{counts}o,a,f,http,1,2,3\n"), None, "line 2 is \"3\", which is one column too many"),
            (format!("{requests}a,f,-1,2\n"), None, "line 2 is \"-1\", which is negative; write app,func,"),
            (format!("{requests}a,f,1\n"), None, "line 2 is \"a,f,1\", which has not four columns"),
            ("1\n2\n".to_owned(), Some("f"), "line 1 is \"1\", which begins no trace of Azure Functions"),
        ] {
            let error = read_trace(&text, function).expect_err(expected).to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_name_of_the_only_column_is_passed_over() {
        let counts = read("value\n3\n4\n", Some(MINUTE)).expect("good lines");
        assert_eq!(counts, Some(LoadFile::Counts { bin: MINUTE, counts: [3, 4].into() }));
        assert!(read("3\nvalue\n", Some(MINUTE)).is_err());
    }

    #[test]
    fn a_problem_names_line_value_and_what_is_allowed() {
        let minute = Some(Duration::from_secs(60));
        for (text, bin, expected) in [
            ("1\n\n2\n", minute, "line 2 is \"\", which is a gap; write the number of requests in the bin"),
            ("1\n-3\n", minute, "line 2 is \"-3\", which is negative; write"),
            ("minute\n", minute, "line 1 is \"minute\", which cannot be read or is too great; write"),
            ("1.5\n", minute, "a whole number from 0, for none, to 60000000"),
            ("60000001\n", minute, "line 1 is \"60000001\""),
            ("1\n\n", None, "line 2 is \"\", which is a gap; write SECONDS or SECONDS,WORK"),
            ("1,-2\n", None, "line 1 is \"1,-2\", which is negative"),
            ("NaN\n", None, "line 1 is \"NaN\", which cannot be read"),
            ("1700000000\n", None, "each from 0 to 31622400 s"),
            ("5\n4.9\n", None, "line 2 is \"4.9\", which arrives before the request of the line above"),
        ] {
            let error = read(text, bin).expect_err(text).to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
