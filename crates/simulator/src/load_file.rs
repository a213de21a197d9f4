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
//! Lines that begin with `#` say nothing. The caller opens the file and hands in its lines.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use vocabulary::shown;

use crate::random::span_of;

/// More requests in a second than any simulation gets through.
const REQUESTS_PER_SECOND_MAX: u64 = 1_000_000;
/// So many requests take more than a gigabyte of memory.
const LINES_MAX: u64 = 50_000_000;
/// A year has so many seconds at most.
const SECONDS_MAX: f64 = 31_622_400.0;

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
}

/// The counts or requests that the lines have given so far.
#[derive(Debug)]
enum LoadLines {
    Counts { bin: Duration, counts: Vec<u32> },
    Requests(Vec<ListedRequest>),
}

impl LoadFileReader {
    /// A reader of numbers for bins of this length or, without a length, of single requests.
    pub fn new(bin: Option<Duration>) -> Self {
        let lines = match bin {
            Some(bin) => LoadLines::Counts { bin, counts: Vec::new() },
            None => LoadLines::Requests(Vec::new()),
        };
        Self { lines, count: 0 }
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
        let taken = match &mut self.lines {
            LoadLines::Counts { bin, counts } => count_in(text, *bin).map(|count| counts.push(count)),
            LoadLines::Requests(requests) => {
                request_in(text, requests.last().copied()).map(|request| requests.push(request))
            }
        };
        taken.map_err(|flaw| LoadLineProblem { line: self.count, text: text.to_owned(), flaw })
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
