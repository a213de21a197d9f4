//! A request as the request log sees it, and what each field of a template says of it.

use std::fmt;
use std::net::SocketAddr;

use http::{HeaderMap, Method, Uri, Version};

use super::template::TemplateField;

/// The revision and the pod of the requests: the same on every line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedRevision {
    /// The name of the revision.
    pub name: String,
    /// The namespace of the revision.
    pub namespace: String,
    /// The Service to which the revision belongs.
    pub service: String,
    /// The Configuration to which the revision belongs.
    pub configuration: String,
    /// The name of the pod that answers.
    pub pod_name: String,
    /// The IP address of the pod that answers.
    pub pod_ip: String,
}

/// A request as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct LoggedRequest<'r> {
    /// The method of the request.
    pub method: &'r Method,
    /// The target of the request.
    pub uri: &'r Uri,
    /// Which protocol it came over.
    pub version: Version,
    /// The headers of the request, as they arrived.
    pub headers: &'r HeaderMap,
    /// The host it is for.
    pub host: &'r str,
    /// The address of the client's end of the connection.
    pub remote: SocketAddr,
    /// How long its body is, if that is known.
    pub content_length: Option<u64>,
}

impl LoggedRequest<'_> {
    pub(super) fn write(
        &self,
        field: &TemplateField,
        revision: &LoggedRevision,
        out: &mut impl fmt::Write,
    ) -> fmt::Result {
        let Self { method, uri, version, headers, .. } = *self;
        match field {
            TemplateField::Method => out.write_str(method.as_str()),
            TemplateField::RequestUri => out.write_str(target(uri)),
            TemplateField::Path => out.write_str(uri.path()),
            TemplateField::RawQuery => out.write_str(uri.query().unwrap_or_default()),
            TemplateField::Proto => out.write_str(proto(version)),
            TemplateField::Host => out.write_str(self.host),
            TemplateField::ContentLength => match self.content_length {
                Some(length) => write!(out, "{length}"),
                None => out.write_str("-1"),
            },
            TemplateField::RemoteAddr => write!(out, "{}", self.remote),
            TemplateField::UserAgent => out.write_str(header(headers, "user-agent")),
            TemplateField::Referer => out.write_str(header(headers, "referer")),
            TemplateField::Header(name) => out.write_str(header(headers, name)),
            TemplateField::HeaderValues(name) => write_values(headers, name, out),
            // Put in at the end.
            TemplateField::Response(_) => Ok(()),
            TemplateField::RevisionName => out.write_str(&revision.name),
            TemplateField::RevisionNamespace => out.write_str(&revision.namespace),
            TemplateField::RevisionService => out.write_str(&revision.service),
            TemplateField::RevisionConfiguration => out.write_str(&revision.configuration),
            TemplateField::PodName => out.write_str(&revision.pod_name),
            TemplateField::PodIp => out.write_str(&revision.pod_ip),
            TemplateField::TraceId => out.write_str(trace_id(headers)),
        }
    }
}

fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

fn proto(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// All values of a header, as Go prints a list.
fn write_values(headers: &HeaderMap, name: &str, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('[')?;
    for (index, value) in headers.get_all(name).iter().enumerate() {
        if index > 0 {
            out.write_char(' ')?;
        }
        out.write_str(value.to_str().unwrap_or_default())?;
    }
    out.write_char(']')
}

/// The second part of a `traceparent`, else what B3 says.
fn trace_id(headers: &HeaderMap) -> &str {
    let mut parts = header(headers, "traceparent").split('-').skip(1);
    match (parts.next(), parts.next()) {
        (Some(trace), Some(_parent)) => trace,
        _ => header(headers, "x-b3-traceid"),
    }
}
