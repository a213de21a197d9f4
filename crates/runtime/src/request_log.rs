//! The request log: the text of a line, and when it is written.
//!
//! The shape of a line is Knative's `logging.request-log-template`. What a request says of itself is rendered
//! when it arrives, because by its end others have taken it apart; what its answer says is put into the gaps
//! that were left. A line is written in one piece and at once, or dropped and counted: no forwarded request
//! waits for a reader of logs.

mod logged_request;
mod template;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::rc::Rc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use crate::logs::{LogFormat, LossyWriter, timestamp};
use template::{EscapedWriter, ResponseField, TemplateField, TemplatePart};

pub use logged_request::{LoggedRequest, LoggedRevision};
pub use template::RequestLogTemplate;

/// Knative's template: one JSON object.
pub(crate) const REQUEST_LOG_TEMPLATE: &str = concat!(
    r#"{"httpRequest": {"requestMethod": "{{.Request.Method}}", "requestUrl": "{{js .Request.RequestURI}}", "#,
    r#""requestSize": "{{.Request.ContentLength}}", "status": {{.Response.Code}}, "#,
    r#""responseSize": "{{.Response.Size}}", "userAgent": "{{js .Request.UserAgent}}", "#,
    r#""remoteIp": "{{js .Request.RemoteAddr}}", "serverIp": "{{.Revision.PodIP}}", "#,
    r#""referer": "{{js .Request.Referer}}", "latency": "{{.Response.Latency}}s", "#,
    r#""protocol": "{{.Request.Proto}}"}, "traceId": "{{.TraceID}}"}"#
);

/// As long as a line may be: readers of logs divide or drop longer ones (the Docker and containerd runtimes
/// at 16 KiB, of which they use some themselves), and clients decide how long the values of their requests
/// are.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// The text that stands at the end of a value that was cut.
const CUT: &str = "...";

/// As long as what an answer says may be, once in a line.
const ANSWER_FIELD_BYTES: usize = 24;

/// Writes the request log of one thread.
#[derive(Clone, Debug)]
pub struct RequestLog(Rc<LogQueue>);

#[derive(Debug)]
struct LogQueue {
    template: RequestLogTemplate,
    revision: LoggedRevision,
    output: RefCell<LossyWriter<io::Stderr>>,
    format: LogFormat,
    dropped: Counter,
    /// How much a request may say of itself in a line.
    room: usize,
}

/// A line that waits for the answer of its request. It is written when this is dropped.
#[derive(Debug)]
pub struct RequestLogLine {
    log: RequestLog,
    /// The line so far. `gaps` are the places in it where values of the answer go.
    text: String,
    gaps: Vec<(usize, ResponseField)>,
    answer: LoggedAnswer,
    is_wanted: bool,
}

/// The answer of a request, as far as it is known.
#[derive(Clone, Copy, Debug)]
struct LoggedAnswer {
    code: u16,
    size: u64,
    latency: Duration,
}

impl RequestLog {
    /// Lines for standard error, as they are or, where every line is JSON, within an object; those that were
    /// not read in time are counted in `dropped`.
    pub fn new(
        template: RequestLogTemplate,
        revision: LoggedRevision,
        format: LogFormat,
        dropped: Counter,
    ) -> Self {
        let notice = |lines| {
            format!(
                "({lines} lines of the request log were dropped because standard error was not read fast enough)\n"
            )
        };
        let output = RefCell::new(LossyWriter::new(io::stderr(), notice));
        let fixed: usize = template.parts().iter().map(fixed_bytes).sum();
        let room = LINE_BYTES_MAX.saturating_sub(fixed);
        Self(Rc::new(LogQueue { template, revision, output, format, dropped, room }))
    }

    /// Begins the line of a request.
    pub fn begin(&self, request: LoggedRequest<'_>) -> RequestLogLine {
        self.begin_for(&self.0.revision, request)
    }

    /// As [`RequestLog::begin`], for a program whose requests are of several revisions.
    pub fn begin_for(&self, revision: &LoggedRevision, request: LoggedRequest<'_>) -> RequestLogLine {
        let (mut text, mut gaps) = (String::with_capacity(512), Vec::new());
        let mut room = self.0.room;
        for part in self.0.template.parts() {
            let from = text.len();
            match part {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Field { field: TemplateField::Response(field), .. } => {
                    gaps.push((text.len(), *field));
                }
                TemplatePart::Field { field, is_escaped } => {
                    // A string takes whatever is written to it.
                    let _ = if *is_escaped {
                        request.write(field, revision, &mut EscapedWriter(&mut text))
                    } else {
                        request.write(field, revision, &mut text)
                    };
                    if text.len() - from > room {
                        cut(&mut text, from, room);
                    }
                    room -= text.len() - from;
                }
            }
        }
        let answer = LoggedAnswer { code: 0, size: 0, latency: Duration::ZERO };
        RequestLogLine { log: self.clone(), text, gaps, answer, is_wanted: true }
    }

    fn write(&self, line: &str) {
        let object;
        let line = match self.0.format {
            LogFormat::Text => line,
            LogFormat::Json => {
                object = within_json(&self.0.revision.pod_name, line);
                &object
            }
        };
        let mut output = self.0.output.borrow_mut();
        // Fails if standard error is closed: then no reader wants the line.
        let _ = output.write(line.as_bytes());
        self.0.dropped.inc_by(output.take_newly_dropped());
    }
}

impl RequestLogLine {
    /// Notes the status of the answer, which begins.
    pub fn answered(&mut self, code: u16) {
        self.answer.code = code;
    }

    /// Adds bytes of the answer's body that are on their way.
    pub fn sent(&mut self, bytes: u64) {
        self.answer.size += bytes;
    }

    /// Notes how long the request took, from its arrival to the end of its answer.
    pub fn ended_after(&mut self, latency: Duration) {
        self.answer.latency = latency;
    }

    /// Drops the line: another program writes the line of this request.
    pub fn forget(mut self) {
        self.is_wanted = false;
    }

    fn render(&self) -> String {
        let mut line = String::with_capacity(self.text.len() + 64);
        let mut from = 0;
        for (at, field) in &self.gaps {
            line.push_str(&self.text[from..*at]);
            from = *at;
            let _ = match field {
                ResponseField::Code => write!(line, "{}", self.answer.code),
                ResponseField::Size => write!(line, "{}", self.answer.size),
                ResponseField::Latency => write!(line, "{}", self.answer.latency.as_secs_f64()),
            };
        }
        line.push_str(&self.text[from..]);
        line
    }
}

impl Drop for RequestLogLine {
    fn drop(&mut self) {
        if self.is_wanted {
            self.log.write(&self.render());
        }
    }
}

/// A line where every line is JSON.
fn within_json(source: &str, line: &str) -> String {
    let mut text = String::with_capacity(line.len() + 128);
    // A string takes whatever is written to it.
    let _ = write!(text, "{{\"timestamp\":\"{}\",\"source\":\"", timestamp());
    let _ = EscapedWriter(&mut text).write_str(source);
    text.push_str("\",\"stream\":\"request-log\",\"line\":\"");
    let (from, end) = (text.len(), "\"}\n");
    let _ = EscapedWriter(&mut text).write_str(line.trim_end_matches('\n'));
    let room = LINE_BYTES_MAX.saturating_sub(from + end.len());
    if text.len() - from > room {
        cut(&mut text, from, room);
    }
    text.push_str(end);
    text
}

/// How much of a line a part of the template takes at most, beside what a request says of itself.
fn fixed_bytes(part: &TemplatePart) -> usize {
    match part {
        TemplatePart::Text(literal) => literal.len(),
        TemplatePart::Field { field: TemplateField::Response(_), .. } => ANSWER_FIELD_BYTES,
        TemplatePart::Field { .. } => 0,
    }
}

/// Cuts what stands behind `from` to so many bytes, between two characters or escapes. A backslash that is no
/// escape is taken for one: then a few bytes more are cut.
fn cut(text: &mut String, from: usize, room: usize) {
    let kept_most = from + room.saturating_sub(CUT.len());
    let mut at = from;
    while let Some(character) = text[at..].chars().next() {
        let length = match (character, text.as_bytes().get(at + 1)) {
            ('\\', Some(b'u')) => r"\u0000".len(),
            ('\\', Some(_)) => r"\\".len(),
            (character, _) => character.len_utf8(),
        };
        let next = at + length;
        if next > kept_most || !text.is_char_boundary(next) {
            break;
        }
        at = next;
    }
    text.truncate(at);
    text.push_str(&CUT[..CUT.len().min(room)]);
}

#[cfg(test)]
mod tests;
