//! The shape of a line: text, and fields of Go's `text/template` as Knative names them.
//!
//! Of Go's language there is what shapes of lines are made of: `{{.Field}}`, `{{js .Field}}` or `{{.Field |
//! js}}`, and headers by name. Everything else is refused with the column at which it stands, when it is
//! read: Knative notices at each request.

use std::fmt;

use thiserror::Error;

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLogTemplate(Vec<TemplatePart>);

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {what}")]
pub struct TemplateProblem {
    /// The place of the problem in the template, in characters from 1.
    pub column: usize,
    /// What is there, and what could be.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Text(String),
    Field { field: TemplateField, is_escaped: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateField {
    Method,
    RequestUri,
    Path,
    RawQuery,
    Proto,
    Host,
    ContentLength,
    RemoteAddr,
    UserAgent,
    Referer,
    /// The first value of the header.
    Header(String),
    /// All values of the header, as Go prints a list.
    HeaderValues(String),
    Response(ResponseField),
    RevisionName,
    RevisionNamespace,
    RevisionService,
    RevisionConfiguration,
    PodName,
    PodIp,
    TraceId,
}

/// What is known at the end only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseField {
    Code,
    Size,
    Latency,
}

/// Every name that needs nothing more.
const NAMES: [(&str, TemplateField); 19] = [
    (".Request.Method", TemplateField::Method),
    (".Request.RequestURI", TemplateField::RequestUri),
    (".Request.URL", TemplateField::RequestUri),
    (".Request.URL.Path", TemplateField::Path),
    (".Request.URL.RawQuery", TemplateField::RawQuery),
    (".Request.Proto", TemplateField::Proto),
    (".Request.Host", TemplateField::Host),
    (".Request.ContentLength", TemplateField::ContentLength),
    (".Request.RemoteAddr", TemplateField::RemoteAddr),
    (".Request.UserAgent", TemplateField::UserAgent),
    (".Request.Referer", TemplateField::Referer),
    (".Response.Code", TemplateField::Response(ResponseField::Code)),
    (".Response.Size", TemplateField::Response(ResponseField::Size)),
    (".Response.Latency", TemplateField::Response(ResponseField::Latency)),
    (".Revision.Name", TemplateField::RevisionName),
    (".Revision.Namespace", TemplateField::RevisionNamespace),
    (".Revision.Service", TemplateField::RevisionService),
    (".Revision.Configuration", TemplateField::RevisionConfiguration),
    (".Revision.PodName", TemplateField::PodName),
];

/// The same, by names that do not fit there.
const MORE_NAMES: [(&str, TemplateField); 2] =
    [(".Revision.PodIP", TemplateField::PodIp), (".TraceID", TemplateField::TraceId)];

impl RequestLogTemplate {
    /// Reads a template. A line ends where the template does.
    pub fn parse(text: &str) -> Result<Self, TemplateProblem> {
        let (mut parts, mut rest) = (Vec::new(), text);
        let column_of = |rest: &str| text[..text.len() - rest.len()].chars().count() + 1;
        while let Some((before, opened)) = rest.split_once("{{") {
            push_text(&mut parts, before);
            let column = column_of(&rest[before.len()..]);
            let Some((action, after)) = opened.split_once("}}") else {
                return Err(TemplateProblem { column, what: "{{ has no }}; close it".to_owned() });
            };
            let part = field(action).ok_or_else(|| TemplateProblem { column, what: advice(action) })?;
            parts.push(part);
            rest = after;
        }
        push_text(&mut parts, rest.trim_end_matches('\n'));
        push_text(&mut parts, "\n");
        Ok(Self(parts))
    }

    pub(super) fn parts(&self) -> &[TemplatePart] {
        &self.0
    }
}

fn push_text(parts: &mut Vec<TemplatePart>, text: &str) {
    if let Some(TemplatePart::Text(last)) = parts.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        parts.push(TemplatePart::Text(text.to_owned()));
    }
}

fn advice(action: &str) -> String {
    format!(
        "{{{{{action}}}}} is not understood; write a field such as {{{{.Request.Method}}}}, {{{{.Response.Code}}}} or \
         {{{{.Revision.Name}}}}, {{{{js .Request.UserAgent}}}} to escape it, or \
         {{{{index .Request.Header \"X-Name\"}}}} for a header"
    )
}

/// What stands between the braces.
fn field(action: &str) -> Option<TemplatePart> {
    let (command, pipe) = match action.split_once('|') {
        Some((command, pipe)) => (command, Some(pipe.trim())),
        None => (action, None),
    };
    if pipe.is_some_and(|pipe| pipe != "js") {
        return None;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let (is_escaped, words) = match words[..] {
        ["js", ref operand @ ..] => (true, operand.to_vec()),
        _ => (pipe.is_some(), words),
    };
    let field = match words[..] {
        [name] => named(name)?,
        ["index", ".Request.Header", name] => TemplateField::HeaderValues(quoted(name)?),
        [".Request.Header.Get", name] => TemplateField::Header(quoted(name)?),
        _ => return None,
    };
    Some(TemplatePart::Field { field, is_escaped })
}

fn named(name: &str) -> Option<TemplateField> {
    NAMES.iter().chain(&MORE_NAMES).find(|(known, _)| *known == name).map(|(_, field)| field.clone())
}

fn quoted(word: &str) -> Option<String> {
    let name = word.strip_prefix('"')?.strip_suffix('"')?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_token)).then(|| name.to_ascii_lowercase())
}

/// Escapes as JavaScript and JSON both read it; Go's own escape of `'` is none of JSON.
pub(super) struct EscapedWriter<'o>(pub(super) &'o mut String);

impl fmt::Write for EscapedWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => self.0.push_str(r"\\"),
                '"' => self.0.push_str("\\\""),
                '\'' | '<' | '>' | '&' | '=' => write!(self.0, "\\u{:04X}", u32::from(character))?,
                character if character.is_control() => write!(self.0, "\\u{:04X}", u32::from(character))?,
                character => self.0.push(character),
            }
        }
        Ok(())
    }
}
