//! How are the requests of Azure Functions written that its operator has published?
//!
//! | year | first line | each further line |
//! |---|---|---|
//! | 2019 | `HashOwner,HashApp,HashFunction,Trigger,1,2,…,1440` | the requests of one function in each minute of a day |
//! | 2021 | `app,func,end_timestamp,duration` | one request: its end and its length in seconds |
//!
//! A load is one function, all functions of one app, or all of the file together. Files of several days of
//! 2019 may stand one behind the other: each first line begins another day.

/// How the first line begins that names the columns of counts.
pub(crate) const COUNTS_HEADER: &str = "HashOwner,HashApp,HashFunction,Trigger,";
/// The first line of a list of requests.
pub(crate) const REQUESTS_HEADER: &str = "app,func,end_timestamp,duration";

/// The columns before the first minute.
const LABELS: usize = 4;
/// A year has so many seconds at most.
const SECONDS_MAX: f64 = 31_622_400.0;

/// What is wrong with a part of a line. The flaw ends a sentence and says what is allowed.
#[derive(Debug)]
pub(crate) struct TraceFlaw {
    pub(crate) text: String,
    pub(crate) flaw: String,
}

impl TraceFlaw {
    fn new(text: &str, flaw: &str) -> Self {
        Self { text: text.to_owned(), flaw: flaw.to_owned() }
    }
}

/// The function, or the app, whose requests are taken; without one those of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionChoice(pub(crate) Option<String>);

impl FunctionChoice {
    /// A hash may be cut short: a person need not write all of its 64 digits.
    fn includes(&self, app: &str, function: &str) -> bool {
        let begins_so = |wanted: &String| app.starts_with(wanted) || function.starts_with(wanted);
        self.0.as_ref().is_none_or(begins_so)
    }
}

/// The requests of the chosen functions in each minute.
#[derive(Debug)]
pub(crate) struct AzureCounts {
    choice: FunctionChoice,
    /// The minutes of the present day.
    minutes: usize,
    /// The number of minutes before the present day.
    day_begins: usize,
    counts: Vec<u32>,
    has_function: bool,
}

impl AzureCounts {
    pub(crate) fn new(header: &str, choice: FunctionChoice) -> Self {
        let mut counts = Self { choice, minutes: 0, day_begins: 0, counts: Vec::new(), has_function: false };
        counts.begin_day(header);
        counts
    }

    /// Another first line: what follows are the minutes of the next day.
    fn begin_day(&mut self, header: &str) {
        self.day_begins += self.minutes;
        self.minutes = header.split(',').count().saturating_sub(LABELS);
        self.counts.resize(self.day_begins + self.minutes, 0);
    }

    pub(crate) fn take_line(&mut self, text: &str) -> Result<(), TraceFlaw> {
        if text.starts_with(COUNTS_HEADER) {
            self.begin_day(text);
            return Ok(());
        }
        let mut fields = text.split(',');
        let labels: Vec<&str> = fields.by_ref().take(LABELS).collect();
        let [_, app, function, _] = labels[..] else {
            return Err(TraceFlaw::new(text, &self.advice("has too few columns")));
        };
        if !self.choice.includes(app, function) {
            return Ok(());
        }
        self.has_function = true;
        let mut taken = 0;
        for field in fields {
            let count = field.trim().parse::<u32>();
            let count = count.map_err(|_| TraceFlaw::new(field, &self.advice("is no number of requests")))?;
            let minute = self.counts.get_mut(self.day_begins + taken);
            let Some(minute) = minute else {
                return Err(TraceFlaw::new(field, &self.advice("is one column too many")));
            };
            *minute = minute.saturating_add(count);
            taken += 1;
        }
        if taken < self.minutes {
            return Err(TraceFlaw::new(text, &self.advice("has too few columns")));
        }
        Ok(())
    }

    fn advice(&self, fault: &str) -> String {
        format!(
            "{fault}; write owner, app, function and trigger, then {} whole numbers from 0, as the first line names them",
            self.minutes
        )
    }

    /// The counts, minute by minute; `None` if no function was chosen.
    pub(crate) fn finish(self) -> Option<Vec<u32>> {
        self.has_function.then_some(self.counts)
    }
}

/// One request of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TracedRequest {
    /// Seconds from the beginning of the trace until it arrived.
    pub(crate) arrives: f64,
    /// The seconds of its work.
    pub(crate) lasts: f64,
}

/// The request of a line; `None` if its function was not chosen. One that was under way when the trace began
/// arrives with the beginning.
pub(crate) fn request_in(text: &str, choice: &FunctionChoice) -> Result<Option<TracedRequest>, TraceFlaw> {
    let fields: Vec<&str> = text.split(',').collect();
    let [app, function, end, duration] = fields[..] else {
        return Err(TraceFlaw::new(text, &flaw_of_request("has not four columns")));
    };
    if !choice.includes(app, function) {
        return Ok(None);
    }
    let (end, lasts) = (seconds_in(end)?, seconds_in(duration)?);
    Ok(Some(TracedRequest { arrives: (end - lasts).max(0.0), lasts }))
}

fn seconds_in(text: &str) -> Result<f64, TraceFlaw> {
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    let fault = if text.trim().starts_with('-') { "is negative" } else { "cannot be read or is too great" };
    seconds.ok_or_else(|| TraceFlaw::new(text, &flaw_of_request(fault)))
}

fn flaw_of_request(fault: &str) -> String {
    format!("{fault}; write app,func,end_timestamp,duration with two times from 0 to {SECONDS_MAX} s")
}
