//! How is a span written? OpenTelemetry's protocol, the part of it that we say.
//!
//! Field for field and number for number as `opentelemetry/proto/trace/v1/trace.proto` has them; what a
//! collector makes of it is tried with the field's own decoder.

use prost::{Enumeration, Message, Oneof};

/// The message that a collector is sent.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resources: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scopes: Vec<ScopeSpans>,
}

/// The program whose spans are sent, as attributes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<SpanRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// The span of one request at one hop.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SpanRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) began: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) ended: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<SpanEvent>,
    #[prost(uint32, tag = "12")]
    pub(super) dropped_events: u32,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Server = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    pub(super) at: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum StatusCode {
    Unset = 0,
    Error = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AttributeValue", tags = "1, 2, 3, 4")]
    pub(super) value: Option<AttributeValue>,
}

/// The kinds of values that an attribute may have.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AttributeValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Truth(bool),
    #[prost(int64, tag = "3")]
    Whole(i64),
    #[prost(double, tag = "4")]
    Number(f64),
}

impl KeyValue {
    pub(super) fn new(key: &str, value: AttributeValue) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}

/// Spans of one program, as a collector is sent them.
pub(super) fn written(program: &Resource, spans: Vec<SpanRecord>) -> Vec<u8> {
    let scope = Scope { name: "ebb".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let scopes = vec![ScopeSpans { scope: Some(scope), spans }];
    let resources = vec![ResourceSpans { resource: Some(program.clone()), scopes }];
    ExportRequest { resources }.encode_to_vec()
}
